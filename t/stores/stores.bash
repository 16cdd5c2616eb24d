# What the tests of stores share, behind helper.bash: a PostgreSQL of one's own (installed by Debian, run by an
# ordinary user, in one directory), and hosts.

pg_bin() {
	local dirs=(/usr/lib/postgresql/*/bin)

	[ -x "${dirs[-1]}/initdb" ] && printf '%s\n' "${dirs[-1]}"
}

# pg_start DIR: make a cluster in DIR/data, reached by the socket in DIR alone; the URI is in $PG.
# DIR is short, for the length of a socket's name, and the user's who is to run it.
pg_start() {
	local bin

	bin=$(pg_bin) || return
	# Synced as ever, unless PG_OPTIONS has -c fsync=off; only the cluster's making never is.
	rv_as_user "$bin/initdb" -D "$1/data" -U ledger -A trust --no-sync --no-instructions -E UTF8 --locale=C >"$1/initdb.log" 2>&1 || {
		cat "$1/initdb.log" >&2
		return 1
	}
	pg_resume "$1" || return
	PG="host=$1 user=ledger dbname=postgres"
	export PG
}

pg_resume() {
	# Off with what a test's cluster has no use for: fewer processes, a smaller memory.
	rv_as_user "$(pg_bin)/pg_ctl" -D "$1/data" -l "$1/server.log" -w -t 60 \
		-o "-k $1 -c listen_addresses= -c autovacuum=off -c shared_buffers=16MB -c max_connections=30 ${PG_OPTIONS:-}" \
		start >"$1/ctl.log" 2>&1 3>&- || {
		cat "$1/ctl.log" "$1/server.log" >&2
		return 1
	}
}

# pg_stop DIR MODE
pg_stop() {
	[ ! -e "$1/data/postmaster.pid" ] ||
		rv_as_user "$(pg_bin)/pg_ctl" -D "$1/data" -m "$2" -w -t 60 stop >"$1/ctl.log" 2>&1 3>&-
}

# on_host NAME COMMAND...: this process becomes it, in namespaces of its own, as on another machine.
on_host() {
	local name=$1 user=

	shift
	[ "$(id -u)" -eq 0 ] || user='--user --map-root-user'
	# shellcheck disable=SC2086 # words, or none
	exec unshare $user --uts --pid --fork --kill-child --net sh -c 'hostname "$0" && exec "$@"' "$name" "$@"
}

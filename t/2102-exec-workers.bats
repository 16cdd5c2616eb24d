# rv-exec --stream: the workers of its slots, when one ends that should not, and when there is nothing to do.
load helper
load exec

# stream COMMAND...: a stream that feed() feeds; $host is its rv-exec.
stream() {
	rm -f in
	mkfifo in
	: >replies
	"$@" <in >replies 2>said 3>&- &
	pid=$!
	exec 9>in
	rv_until eval 'rv_exec_of $pid >host 2>&1'
	host=$(cat host)
}

# feed KEY [COMMAND ARG...]: one request.
feed() {
	local key=$1

	shift
	[ $# -gt 0 ] || set -- /bin/echo 1
	jq -cn --arg key "$key" '{id: $key, tool: "t", args: {}, spec: {command: $ARGS.positional[0], args: $ARGS.positional[1:]},
		ctx: {runId: "r", idempotencyKey: $key}}' --args "$@" >&9
}

answered() {
	[ "$(wc -l <replies)" -ge "$1" ]
}

# finish STATUS: the input ends, and so does the stream.
finish() {
	local status=0

	exec 9>&-
	wait "$pid" || status=$?
	rv_equal "$1" "$status"
}

codes() {
	jq -r 'if .ok then "ok" else .error.code end' replies | paste -s -d ' '
}

# Has every worker taken the ends that it was told of?
none_pending() {
	local worker

	for worker in $(children "$host"); do
		! grep -q '^ShdPnd:.*1....$' "/proc/$worker/status" || return
	done
}

kill_worker() {
	kill -9 "$1"
	rv_until ended "$1"
}

setup() {
	mkdir dirs
}

@test "a worker with nothing to do sleeps, whatever ended before" {
	local i

	stream rv-exec --stream --workdir-base "$PWD/dirs"
	feed k1
	rv_until answered 1
	for i in $(children "$host"); do
		kill -CHLD "$i" # an end that was seen before its signal, at will
	done
	rv_until none_pending
	for i in 2 3 4 5 6; do
		feed k$i /no/such/program
		rv_until answered "$i"
		rv_until none_pending
	done
	finish 1
	rv_equal 'ok spawn spawn spawn spawn spawn' "$(codes)"
}

@test "a worker that is killed while it has nothing to do is replaced before the next call" {
	local credentials
	local -a workers

	for credentials in '' '/bin/echo {}'; do
		rm -f ledger
		stream rv-exec --stream --workdir-base "$PWD/dirs" --ledger ledger ${credentials:+--credentials "$credentials"}
		feed k1
		rv_until answered 1
		# the tools', the host's, and of an ordinary user's two spare ones the one that would be taken first
		read -r -a workers <<<"$(children "$host")"
		kill_worker "${workers[0]}"
		[ -z "$credentials" ] || kill_worker "${workers[1]}"
		[ "${#workers[@]}" -le 2 ] || kill_worker "${workers[-1]}"
		feed k2
		feed k3
		rv_until answered 3
		finish 0
		rv_equal 'ok ok ok' "$(codes)"
		holds 'len(intents) == 3' '[r["outcome"] for r in outcomes] == ["ok"] * 3'
		no_workdir
	done
}

@test "one that ends between a call's intent and its start costs that call, and no later one" {
	# The credentials program of the second call kills the tools' worker.
	tool minter <<-TOOL
		#!/bin/sh
		if [ -s "$PWD/victim" ] && [ ! -e "$PWD/minted" ]; then
			read -r victim <"$PWD/victim"
			kill -9 \$victim
			until grep -q '^State:.Z' /proc/\$victim/status || [ ! -e /proc/\$victim ]; do :; done
			: >"$PWD/minted"
		fi
		echo {}
	TOOL
	stream rv-exec --stream --workdir-base "$PWD/dirs" --ledger ledger --credentials "$PWD/minter"
	feed k1
	rv_until answered 1
	children "$host" | cut -d ' ' -f 1 >victim
	feed k2
	feed k3
	feed k4
	rv_until answered 4
	finish 1
	rv_equal 'ok spawn ok ok' "$(codes)"
	holds 'len(intents) == 4' '[r["outcome"] for r in outcomes] == ["ok", "error", "ok", "ok"]'
	no_workdir
}

@test "an ordinary user's one job outlives lost workers; where none is left what waits is refused at once" {
	rv_need user userns-user
	local dir i busy

	dir=$(rv_user_dir)
	cd "$dir"
	mkdir work
	[ "$(id -u)" -ne 0 ] || chown "$RV_USER" work
	stream rv_as_user "$dir/bin/rv-exec" --stream --workdir-base "$dir/work"
	for i in 1 2 3 4 5; do
		feed k$i /bin/sleep 60
	done
	for i in 1 2 3; do
		# the worker that has a tool
		rv_until eval 'busy=$(for w in $(children "$host"); do [ -z "$(children "$w")" ] || echo "$w"; done); [ -n "$busy" ]'
		kill_worker "$busy"
		rv_until answered $i
	done
	rv_until answered 5
	feed k6
	rv_until answered 6
	finish 1
	rv_equal 'exit exit exit config config config' "$(codes)"
	grep -q 'a slot was lost and cannot be replaced' said
	rv_equal '' "$(ls -A work)"
}

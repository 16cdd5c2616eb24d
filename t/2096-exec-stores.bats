# scripts/ledger-store: rows in SQLite and in PostgreSQL, the real ones, and back to lines for the scan.
load helper
load exec
load stores/stores

store=$RV_SRC/scripts/ledger-store

setup_file() {
	# No test of these takes the power away; scripts/soak stores has it synced.
	export PG_DIR='' PG_OPTIONS='-c fsync=off'
	rv_have psycopg2 || return 0
	PG_DIR=$(mktemp -d /tmp/rv-pg.XXXXXX)
	[ "$(id -u)" -ne 0 ] || chown "$RV_USER" "$PG_DIR"
	pg_start "$PG_DIR"
}

teardown_file() {
	rv_file_ends
	[ -n "$PG_DIR" ] || return 0
	pg_stop "$PG_DIR" immediate || :
	rm -rf "$PG_DIR"
}

setup() {
	mark=stores-$BATS_TEST_NUMBER-$$-$RANDOM
	mkdir dirs
	marking_tool
}

teardown() {
	rv_until none_alive "$mark"
}

# fresh KIND: the words for a new and empty store.
fresh() {
	rm -f rows.db*
	kind=$1
	where=$PWD/rows.db
	if [ "$kind" = postgres ]; then
		rv_need psycopg2
		where=$PG
		"$(pg_bin)/psql" -qX "$PG" -c 'SET client_min_messages = error' -c 'DROP TABLE IF EXISTS rv_ledger'
	fi
	words="'$store' keep $kind '$where'"
}

# export: the store's rows, in ./ledger.
export_rows() {
	"$store" export "$kind" "$where" >ledger
}

# s PREFIX JOBS COUNT [OPTION...]: a stream of COUNT requests with the keys PREFIX1, ...
s() {
	local prefix=$1 jobs=$2 count=$3 i

	shift 3
	for ((i = 1; i <= count; i++)); do
		printf '{"id":%d,"tool":"t","args":{"n":"\\ud83d \\u0000 é"},"ctx":{"runId":"r","idempotencyKey":"%s%d"}}\n' "$i" "$prefix" "$i"
	done >"requests.$prefix"
	RV_MARK=$mark rv-exec --stream --jobs "$jobs" --workdir-base "$PWD/dirs" --ledger-exec "$words" "$@" -- "$PWD/mark" \
		<"requests.$prefix" >"replies.$prefix" 2>"stderr.$prefix"
}

# Whatever the store.
keeps_rows() {
	fresh "$1"
	s k 8 40 || rv_die "$(cat stderr.k replies.k)"
	s l 1 1
	export_rows
	rv-ledger-scan ledger
	holds 'len(intents) == len(outcomes) == 41' '{r["attemptId"] for r in intents} == {r["attemptId"] for r in outcomes}'
	# Byte for byte what a ledger would have had: no member is lost, none is written otherwise.
	printf '%s\n' '{"phase":"intent","idempotencyKey":"\ud800 é \u0000","attemptId":"a","x":1.0}' >line
	rv_equal ok "$("$store" keep "$kind" "$where" <line)"
	export_rows
	rv_equal "$(cat line)" "$(tail -n 1 ledger)"
}

@test "SQLite keeps the rows, and gives them back as they were" {
	keeps_rows sqlite
}

@test "PostgreSQL keeps the rows, and gives them back as they were" {
	keeps_rows postgres
}

killed_between() {
	fresh "$1"
	s k 4 8
	RV_MARK=$mark x --key orphaned --ledger-exec "$words" -- /bin/sh -c ": >'$PWD/going'; exec sleep 60" 3>&- 2>/dev/null &
	pid=$!
	rv_until test -e going
	kill -9 "$(rv_exec_of $pid)"
	wait $pid || true
	rv_until none_alive "$mark"
	export_rows
	rv_fails 1 rv-ledger-scan --format orphans ledger >orphans
	rv_equal "orphaned unknown" "$(member idempotencyKey orphans) $(member state orphans)"
	rm -rf dirs
}

@test "killed between intent and outcome: the export shows the orphan, from SQLite" {
	killed_between sqlite
}

@test "killed between intent and outcome: the export shows the orphan, from PostgreSQL" {
	killed_between postgres
}

@test "a row that the store cannot take is refused by name, and those beside it are not" {
	for kind in sqlite postgres; do
		[ "$kind" = sqlite ] || [ -n "$PG_DIR" ] || continue
		fresh $kind
		good='{"phase":"intent","idempotencyKey":"k","attemptId":"a"}'
		printf '%s\n' "$good" 'no json' '[]' "$good" '{"phase":"intent","idempotencyKey":"k","attemptId":"b"}' >rows
		"$store" keep $kind "$where" <rows >answers
		rv_equal 5 "$(wc -l <answers)"
		rv_equal 'ok ok' "$(sed -n '1p;5p' answers | paste -s -d ' ')" "$(cat answers)"
		rv_fails 1 grep -qx ok <(sed -n 2,4p answers)
		export_rows
		rv_equal "$(sed -n '1p;5p' rows)" "$(cat ledger)"
	done
}

@test "a store that is not there, or cannot be written, is ledger, and nothing ran" {
	for words in "'$store' keep sqlite /no/such/dir/rows.db" "'$store' keep postgres 'host=/no/such/dir'" "'$store' keep"; do
		fails ledger 122 x --new-call --ledger-exec "$words" -- "$PWD/mark"
	done
	fresh sqlite
	mkdir rows.db
	fails ledger 122 x --new-call --ledger-exec "$words" -- "$PWD/mark"
	[ ! -s ran ]
	rm -r rows.db
	rv_fails 1 "$store" export sqlite rows.db 2>stderr
	[ ! -e rows.db ]
	rv_fails 2 "$store" 2>stderr
	rv_fails 2 "$store" --no-such-option 2>stderr
	"$store" --help | grep -q '^usage: ledger-store'
	fresh sqlite
	s k 1 1
	rv_fails 1 "$store" export sqlite rows.db >/dev/full 2>stderr
}

@test "two hosts into one PostgreSQL: one is killed, one scan over the export finds what it left" {
	rv_need userns
	fresh postgres
	tool job <<-TOOL
		#!/bin/sh
		echo "\$RULVAR_IDEMPOTENCY_KEY" >>"$PWD/ran"
		case \$RULVAR_IDEMPOTENCY_KEY in a30) : >"$PWD/going"; exec sleep 60 ;; esac
		echo 1
	TOOL
	for host in a b; do
		for ((i = 1; i <= 60; i++)); do
			printf '{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"%s%d"}}\n' $host $i
		done >requests.$host
		RV_MARK=$mark on_host "host-$host" rv-exec --stream --jobs 3 --workdir-base "$PWD/dirs" --ledger-exec "$words" -- "$PWD/job" \
			<requests.$host >replies.$host 2>stderr.$host 3>&- &
		pids[$(printf '%d' "'$host")]=$!
	done
	rv_until test -e going
	kill -9 "${pids[97]}"
	wait "${pids[97]}" || true
	wait "${pids[98]}"
	rv_until none_alive "$mark"
	export_rows
	rv-ledger-scan --format orphans ledger >orphans || [ $? -eq 1 ]
	# b's rows are whole; each tool of a's that ran has its intent, and a30's is among the orphans.
	grep -q '"idempotencyKey":"a30"' orphans
	rv_fails 1 grep -q '"idempotencyKey":"b' orphans
	rv_equal '"host-a"' "$(jq -c .writer.host orphans | sort -u)"
	rv_equal 60 "$(count ledger 'r["phase"] == "outcome" and r["idempotencyKey"][0] == "b"')"
	rows ledger 'r["phase"] == "intent"' | jq -r .idempotencyKey | sort >intended
	rv_equal '' "$(sort ran | comm -23 - intended)" 'ran without an intent'
	rm -rf dirs
}

@test "PostgreSQL goes away: ledger, nothing runs without an intent, and what it confirmed is there" {
	fresh postgres
	tool stops <<-TOOL
		#!/bin/bash
		echo "\$RULVAR_IDEMPOTENCY_KEY" >>"$PWD/ran"
		[ "\$RULVAR_IDEMPOTENCY_KEY" != k5 ] || { : >"$PWD/stop"; until [ -e "$PWD/stopped" ]; do sleep 0.02; done; }
		echo 1
	TOOL
	mv stops mark
	(
		rv_until test -e stop
		pg_stop "$PG_DIR" immediate
		: >stopped
	) 3>&- &
	rv_fails 1 s k 1 8 --setenv PATH="$PATH"
	wait
	rv_equal 'ok ok ok ok ledger ledger ledger ledger' "$(jq -r 'if .ok then "ok" else .error.code end' replies.k | paste -s -d ' ')"
	rv_equal 5 "$(wc -l <ran)"
	pg_resume "$PG_DIR"
	export_rows
	rv_fails 1 rv-ledger-scan --format orphans ledger >orphans
	rv_equal k5 "$(member idempotencyKey orphans)"
	s l 1 1
}

@test "SQLite: ok is said behind the last sync, that of the directory with them" {
	rv_need strace
	fresh sqlite
	printf '{"phase":"intent","attemptId":"a","idempotencyKey":"k"}\n' >row
	strace -f -y -o trace -e trace=fsync,fdatasync,unlink,unlinkat,write "$store" keep sqlite "$where" <row >said
	rv_equal ok "$(cat said)"
	# the journal's removal is the commit: until the directory is synced it may come back, and take the row away
	grep -E "unlink|sync\([0-9]+<$PWD>\)|\"ok" trace | tail -n 3 | sed -E 's/^[0-9]+ +//; s/[(].*//' | paste -s -d ' ' >order
	grep -Eq '^unlink(at)? f(data)?sync write$' order || rv_die "$(cat order)"
}

# Writers in other PID namespaces, where their numbers mean something else, and a scan in one more: whose attempt
# lives is told by its lock alone.
load helper
load exec

setup() {
	rv_need userns
	mkdir dirs
}

teardown() {
	touch stop.a stop.b stop.c
	wait
}

# apart COMMAND...: as pid 1 of a namespace of its own, in a user namespace, too.
apart() {
	exec unshare --user --map-root-user --mount-proc --pid --fork --kill-child "$@"
}

# The same; of root without that user namespace.
apart_plain() {
	[ "$(id -u)" -eq 0 ] || apart "$@"
	exec unshare --mount-proc --pid --fork --kill-child "$@"
}

# start KEY [HOW]: an attempt of this key in a namespace of its own, which ends when stop.KEY is there.
start() {
	"${2:-apart}" rv-exec --tool t --key "$1" --ledger l.jsonl --workdir-base "$PWD/dirs" --setenv PATH="$PATH" -- \
		/bin/sh -c "until [ -e '$PWD/stop.$1' ]; do sleep 0.02; done; echo 1" >"out.$1" 2>"err.$1" 3>&- &
	echo $! >"pid.$1"
	rv_until grep -qs "\"idempotencyKey\":\"$1\"" l.jsonl
}

# kill_writer KEY: the rv-exec alone, which in its namespace is pid 1.
kill_writer() {
	kill -KILL "$(children "$(cat "pid.$1")")"
	wait "$(cat "pid.$1")" || true
}

# seen WANT: what a scan says from here, from a namespace where it is pid 1 as the writers were, and with less rights.
seen() {
	local got

	got=$(states rv-ledger-scan) && rv_equal "$1" "$got" "from here" || return
	got=$(states apart rv-ledger-scan) && rv_equal "$1" "$got" "from pid 1 of another" || return
	[ "$(id -u)" -ne 0 ] || got=$(states rv_as_user unshare --user --map-root-user --pid --fork "$user/bin/rv-ledger-scan") && rv_equal "$1" "$got" "from a user's"
}

states() {
	("$@" l.jsonl) >orphans || [ $? -eq 1 ] || return
	jq -r '.idempotencyKey + " " + .state' orphans | sort | paste -s -d ' '
}

@test "in other PID namespaces with the same pid: alive is running, killed is an orphan, and its pid's next owner changes nothing" {
	user=$(rv_user_dir)
	start a
	start b apart_plain
	chmod a+r l.jsonl
	rv_equal '1 1' "$(jq -r 'select(.phase == "intent") | .writer.pid' l.jsonl | paste -s -d ' ')"
	seen 'a running b running'
	rv-ledger-scan l.jsonl >out
	kill_writer a
	seen 'a orphan b running'
	rv_fails 1 rv-ledger-scan l.jsonl >out
	start c
	rv_equal 3 "$(jq -r 'select(.phase == "intent") | .writer.pid' l.jsonl | grep -cx 1)"
	seen 'a orphan b running c running'
	touch stop.b
	wait "$(cat pid.b)"
	rv_equal 1 "$(cat out.b)"
	seen 'a orphan c running'
	kill_writer c
	seen 'a orphan c orphan'
}

@test "two whole tortures in two PID namespaces on one ledger" {
	(apart "$RV_BIN/t/ledger-torture" . 3) >torture.a 3>&- &
	echo $! >pid.a
	(apart_plain "$RV_BIN/t/ledger-torture" . 3) >torture.b 3>&- &
	echo $! >pid.b
	for one in a b; do
		wait "$(cat pid.$one)" || true # its own verdict: the other one was not done yet
		grep -q 'nobody failed' "torture.$one" || rv_die "$(cat "torture.$one")"
		rv_fails 1 grep -q '^not ok.*\(nobody failed\|were killed\)' "torture.$one"
	done
	"$RV_BIN/t/ledger-torture" . 0 >out || rv_die "$(cat out)"
	rv-ledger-scan l.jsonl
}

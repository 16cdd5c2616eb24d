# rv-exec where the host forbids PID namespaces: what holds there, and that it is said.
load helper
load exec

# A host of that kind: a user namespace in which none may be made, nor in any below it.
forbidding() {
	unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces && exec "$@"' forbidding "$@"
}

setup() {
	rv_need userns
	forbidding true 2>/dev/null || {
		[ "${RV_MUST_WORK:-}" != 1 ] || rv_die "user.max_pid_namespaces cannot be set and RV_MUST_WORK=1"
		skip "user.max_pid_namespaces cannot be set here"
	}
	mark=reaper-$BATS_TEST_NUMBER-$$-$RANDOM
	mkdir dirs
}

y() {
	forbidding rv-exec --tool t --workdir-base "$PWD/dirs" --setenv RV_MARK="$mark" --setenv PATH="$PATH" "$@"
}

leaves_nothing() {
	within 5000 y --json --timeout 30s -- /bin/bash -c "$2" >reply 2>stderr || {
		cat reply stderr >&2
		return 1
	}
	holds "str(reply['result']) == '$1'" 'reply["survivors"] == 0' 'reply["containment"] == "subreaper"' || return
	none_alive "$mark" || rv_die "still running: $(alive "$mark")" || return
	no_workdir
}

@test "the reply and the intent say which way it was" {
	y --json --new-call --ledger ledger -- /bin/echo 1 >reply
	holds 'reply["containment"] == "subreaper" and reply["survivors"] == 0' '[r["containment"] for r in intents] == ["subreaper"]'
}

@test "--require-containment refuses, and nothing ran" {
	fails config 125 y --require-containment --new-call --ledger ledger -- /bin/sh -c ": >'$PWD/ran'; echo 1"
	[ ! -e ran ]
	[ ! -s ledger ]
	grep -q 'user.max_\|namespace' stderr
	no_workdir
}

@test "background children, setsid, double forks and stopped ones are found" {
	leaves_nothing 1 'sleep 30 & echo 1'
	leaves_nothing 1 'setsid sleep 30 & (setsid sleep 30 &) ; (setsid bash -c "(sleep 30 &) & sleep 30" &) ; echo 1'
	leaves_nothing 1 'trap "" TERM HUP; sleep 30 & kill -STOP $!; yes >&2 & echo 1'
}

@test "a deadline ends the whole tree" {
	rv_fails 124 within 4000 y --timeout 300ms --kill-grace 300ms -- /bin/bash -c 'trap "" TERM; setsid sleep 60 & sleep 60 & wait' 2>stderr
	none_alive "$mark"
	no_workdir
}

@test "a tool that kills its worker is an error, and what may be left is said" {
	rv_fails 1 within 5000 y --json --new-call --ledger ledger -- /bin/bash -c 'setsid sleep 30 & sleep 30 & kill -9 $PPID; sleep 30' >reply 2>stderr
	holds 'code == "exit" and reply["outcome"] == "error" and reply["signal"] == "SIGKILL" and reply["survivors"] is None' \
		'[r["outcome"] for r in outcomes] == ["error"]'
	grep -q 'may still run' stderr
	none_alive "$mark"
	no_workdir
}

@test "a tool that stops its worker is answered in time all the same" {
	rv_fails 124 within 4000 y --json --timeout 500ms --kill-grace 300ms -- /bin/bash -c 'kill -STOP $PPID; sleep 30 & sleep 30' >reply 2>stderr
	holds 'code == "timeout" and reply["survivors"] is None'
	none_alive "$mark"
	no_workdir
}

@test "SIGKILL of rv-exec: the worker ends what it started" {
	y -- /bin/bash -c 'setsid sleep 60 & sleep 60 & exec sleep 60' >out 2>stderr 3>&- &
	pid=$!
	rv_until eval '[ "$(alive "$mark")" -ge 3 ]'
	kill -9 "$(rv_exec_of $pid)"
	rv_until none_alive "$mark"
	wait $pid || true
}

@test "a dispatch there is as any other" {
	y --json --key K -- /bin/sh -c 'read -r line; echo "$line"' >reply
	rv_equal K "$(member result.idempotencyKey <reply)"
	rv_fails 1 y --json -- /bin/sh -c 'echo why >&2; exit 3' >reply 2>stderr
	holds 'code == "exit" and reply["exitCode"] == 3 and reply["survivors"] == 0'
	rv_fails 127 y -- /no/such/program 2>stderr
	rv_fails 121 y --max-output 10 -- /usr/bin/yes 2>stderr
	none_alive "$mark"
	no_workdir
}

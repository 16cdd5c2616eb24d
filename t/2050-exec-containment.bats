# rv-exec: nothing of a tool outlives its dispatch, where a PID namespace holds it.
load helper
load exec

setup() {
	mark=contain-$BATS_TEST_NUMBER-$$-$RANDOM
	contained || {
		[ "${RV_MUST_WORK:-}" != 1 ] || rv_die "no PID namespace here and RV_MUST_WORK=1"
		skip "this host lets no PID namespace be made"
	}
}

# leaves_nothing RESULT SCRIPT: a shell that does this answers RESULT at once, and nothing is left.
leaves_nothing() {
	mkdir -p dirs
	within 5000 x --json --timeout 30s --setenv RV_MARK="$mark" --setenv PATH="$PATH" -- /bin/bash -c "$2" >reply 2>stderr || {
		cat reply stderr >&2
		return 1
	}
	holds "str(reply['result']) == '$1'" 'reply["survivors"] == 0' 'reply["containment"] == "pid-namespace"' || return
	none_alive "$mark" || rv_die "still running: $(alive "$mark")" || return
	no_workdir
}

@test "a background child that holds stdout does not keep the answer" {
	leaves_nothing 1 'sleep 30 & echo 1'
	leaves_nothing 1 '(trap "" TERM HUP; sleep 30) & (sleep 30 >&- 2>&-) & echo 1'
	leaves_nothing 1 'yes >&2 & echo 1'
}

@test "setsid, a double fork, a daemon" {
	leaves_nothing 1 'setsid sleep 30 & (setsid sleep 30 &) ; (setsid bash -c "(sleep 30 &) & sleep 30" &) ; echo 1'
	leaves_nothing 2 'perl -MPOSIX -e "fork and exit; setsid; fork and exit; chdir q(/); open STDIN, q(/dev/null); open STDOUT, q(>/dev/null); open STDERR, q(>/dev/null); sleep 30"; echo 2'
}

@test "a stopped child, a child that ignores every signal" {
	leaves_nothing 1 'sleep 30 & kill -STOP $!; echo 1'
	leaves_nothing 1 'perl -e "\$SIG{\$_} = q(IGNORE) for keys %SIG; sleep 30 while 1" & echo 1'
}

@test "a fork storm" {
	tool storm <<-'TOOL'
		#!/usr/bin/perl
		# 30 lines of processes that replace themselves as fast as they can.
		$SIG{CHLD} = "IGNORE";
		for (1..30) { if (!fork) { while (1) { my $pid = fork; exit if $pid || !defined $pid && select(undef, undef, undef, 0.01) } } }
		select undef, undef, undef, 0.2;
		print 1;
	TOOL
	leaves_nothing 1 "exec '$PWD/storm'"
	rv_fails 124 within 6000 x --timeout 300ms --kill-grace 200ms --setenv RV_MARK="$mark" -- /bin/sh -c "'$PWD/storm' >/dev/null; sleep 60" 2>stderr
	none_alive "$mark"
}

@test "under a deadline: a shell whose child is deaf, and setsid" {
	for script in 'yes >/dev/null' 'trap "" TERM; sleep 72' 'setsid sleep 72 & wait' 'sleep 72 & sleep 72 & kill -STOP $$'; do
		rv_fails 124 within 4000 x --timeout 300ms --kill-grace 300ms --setenv RV_MARK="$mark" --setenv PATH="$PATH" -- /bin/sh -c "$script" 2>stderr
		none_alive "$mark"
	done
	no_workdir
}

@test "kill -9 of its parent, of pid 1 and of everybody reaches nobody outside" {
	sleep 300 3>&- &
	witness=$!
	# Only where the parent is pid 1 of a namespace of our own is kill -9 -1 safe to say.
	leaves_nothing 1 '[ "$PPID" = 1 ] || exit 9; kill -9 $PPID; kill -TERM 1; kill -STOP 1; kill -9 1; sleep 30 & echo 1'
	tool everybody <<-'TOOL'
		#!/bin/bash
		[ "$PPID" = 1 ] || exit 9
		sleep 30 &
		kill -9 -1
		echo '"still here"'
	TOOL
	leaves_nothing 'still here' "[ \"\$PPID\" = 1 ] && exec '$PWD/everybody'"
	kill -0 $witness
	kill $witness
}

@test "signals of every kind to pid 1 change nothing" {
	tool pest <<-'TOOL'
		#!/bin/bash
		[ "$PPID" = 1 ] || exit 9
		for i in {1..64}; do for j in 1 2 3; do kill -$i 1 2>/dev/null; done; done
		echo 1
	TOOL
	leaves_nothing 1 "exec '$PWD/pest'"
}

@test "the tool sees no process but its own" {
	tool ps <<-'TOOL'
		#!/bin/bash
		echo /proc/[0-9]* | tr ' ' '\n' | wc -l
	TOOL
	x --setenv PATH="$PATH" -- "$PWD/ps" >out
	[ "$(cat out)" -le 6 ] || rv_die "it sees $(cat out) processes"
}

@test "SIGKILL of rv-exec takes all along, and nothing else is needed" {
	x --setenv RV_MARK="$mark" --setenv PATH="$PATH" -- /bin/bash -c 'setsid sleep 60 & sleep 60 & exec sleep 60' >out 2>stderr 3>&- &
	pid=$!
	rv_until eval '[ "$(alive "$mark")" -ge 3 ]'
	kill -9 "$(rv_exec_of $pid)"
	rv_until none_alive "$mark"
	wait $pid || true
	[ ! -s out ]
}

@test "a worker that is killed from outside is an error and no result, and the tool is dead" {
	rv_need root
	x --json --setenv RV_MARK="$mark" -- /bin/sleep 60 >reply 2>stderr 3>&- &
	pid=$!
	rv_until running_tool "$mark"
	# shellcheck disable=SC2046 # one or more pids
	kill -9 $(children "$(rv_exec_of $pid)")
	status=0
	wait $pid || status=$?
	rv_equal 1 $status
	holds 'code == "exit" and reply["outcome"] == "error" and reply["signal"] == "SIGKILL" and reply["survivors"] == 0'
	none_alive "$mark"
	no_workdir
}

@test "an answer comes within deadline, grace and a second, whatever the tool does" {
	tool loud <<-'TOOL'
		#!/usr/bin/perl
		$SIG{$_} = "IGNORE" for qw(TERM INT HUP PIPE);
		for (1..100) { my $pid = fork; if (!$pid) { while (1) { syswrite STDERR, "x" } } }
		while (1) { syswrite STDERR, "y" x 65536 }
	TOOL
	rv_fails 124 within 2500 x --timeout 500ms --kill-grace 500ms --setenv RV_MARK="$mark" -- "$PWD/loud" 2>stderr
	none_alive "$mark"
	no_workdir
}

@test "--require-containment is met" {
	rv_equal 1 "$(x --require-containment -- /bin/echo 1)"
}

@test "limits that a tool sets for its worker are no other tool's: the slot is another then" {
	limits='for n in -n -u -f -d -t -c -s; do ulimit -S $n; ulimit -H $n; done'
	taken() {
		printf '{"tool":"t","args":{},"spec":{"command":"/bin/bash","args":["-c",%s]},"ctx":{"runId":"r","idempotencyKey":"k"}}\n' \
			"$(jq -n --arg w "$limits >&2; exit 3" '$w')" \
			"$(jq -n '"prlimit --pid $PPID --nofile=3:3 --nproc=0:0 --fsize=0:0 --data=1:1 >&2 && [ $PPID = 1 ] && echo 1"')" \
			"$(jq -n --arg w "(:) & wait; echo x >file; $limits >&2; exit 3" '$w')"
	}
	taken | rv-exec --stream --jobs 1 --workdir-base "$PWD/dirs" --allow-env PATH >replies || true
	rv_equal true "$(sed -n 2p replies | member ok)" "$(cat replies)"
	rv_equal "$(sed -n 1p replies | member error.message)" "$(sed -n 3p replies | member error.message)"
	rv_equal '3 exit' "$(sed -n 3p replies | member exitCode) $(sed -n 3p replies | member error.code)"
}

@test "nor is its niceness, its processors, its priority of input and output, its slack or its score" {
	look='{ nice; taskset -p $$; ionice -p $$; chrt -p $$; cat /proc/$$/timerslack_ns /proc/$$/oom_score_adj 2>/dev/null; } | sed "s/pid [0-9]*//" >&2; exit 3'
	set -- 'renice -n 7 -p 1' "taskset -p $(taskset -p $$ | sed 's/.*: \(.*\)/\1/; s/^[0-9a-f]*\([0-9a-f]\)$/\1/; s/[37bf]/1/') 1" 'ionice -c 3 -p 1' 'chrt -b -p 0 1'
	[ "$(id -u)" -ne 0 ] || set -- "$@" 'echo 500 >/proc/1/oom_score_adj' 'echo 70000 >/proc/1/timerslack_ns'
	for set; do
		printf '{"tool":"t","args":{},"spec":{"command":"/bin/bash","args":["-c",%s]},"ctx":{"runId":"r","idempotencyKey":"k"}}\n' \
			"$(jq -n --arg w "$look" '$w')" \
			"$(jq -n --arg w "[ \$PPID = 1 ] && $set >&2 && echo 1" '$w')" \
			"$(jq -n --arg w "(:) & wait; $look" '$w')" |
			rv-exec --stream --jobs 1 --workdir-base "$PWD/dirs" --allow-env PATH >replies || true
		# an ordinary user may be refused that, as behind a map of its own id; root is not
		[ "$(id -u)" -ne 0 ] && sed -n 2p replies | grep -q 'not permitted\|Permission denied' ||
			rv_equal true "$(sed -n 2p replies | member ok)" "$set: $(cat replies)"
		[[ $(sed -n 1p replies | member error.message) == *'scheduling priority'* ]]
		rv_equal "$(sed -n 1p replies | member error.message)" "$(sed -n 3p replies | member error.message)" "$set"
	done
}

@test "a stream whose last slot is lost answers all that waits, and at once" {
	[ "$(id -u)" -ne 0 ] || skip "root's slots can be made anew at any time"
	for i in {1..8}; do
		printf '{"tool":"t","args":{},"spec":{"command":"/bin/bash","args":["-c","prlimit --pid 1 --fsize=%s:%s; echo 1"]},"ctx":{"runId":"r","idempotencyKey":"k"}}\n' $i $i
	done >requests
	timeout 20 rv-exec --stream --jobs 1 --workdir-base "$PWD/dirs" --allow-env PATH <requests >replies || rv_equal 1 $?
	rv_equal 8 "$(wc -l <replies)"
	rv_equal 3 "$(grep -c '"ok":true' replies)"
	rv_equal 5 "$(grep -c 'no slot is left' replies)"
}

# Filters, statuses, time limits, and what happens to a battery that is interrupted.
load helper
load conform

@test "--list, --only, --skip and --suite choose" {
	rv_equal 'e1' "$(rv-conform --list --only e1 | cut -f 2)"
	rv_equal 'e10 e11 e12 e13' "$(rv-conform --list --only 'e1?' | cut -f 2 | paste -s -d ' ')"
	rv_equal 'e10 e12' "$(rv-conform --list --only 'e1?' --skip e11 --skip '*13' | cut -f 2 | paste -s -d ' ')"
	rv_equal 'confine container executor kernel key ledger' "$(rv-conform --list | cut -f 1 | sort -u | paste -s -d ' ')"
	rv_equal 'key' "$(rv-conform --list --suite key | cut -f 1 | sort -u)"
	rv-conform --list --format jsonl | while IFS= read -r line; do printf '%s' "$line" | rv-key --canonical >/dev/null; done
	rv_equal '' "$(rv-conform --list | cut -f 2 | sort | uniq -d)"
}

@test "nothing selected is exit 5, and so is everything skipped" {
	rv_fails 5 rv-conform --only no-such-check 2>err.txt
	grep -q 'no check is selected' err.txt
	rv_fails 5 rv-conform --list --only no-such-check
	make_adapter none '' 'exit 1'
	rv_fails 5 rv-conform --only e4 --only e11 -- ./none >out.txt 2>err.txt
	grep -q 'every selected check was skipped' err.txt
	grep -q '^0 passed, 0 failed, 2 skipped' out.txt
}

@test "--strict-skips makes a skip a failure" {
	make_adapter none '' 'exit 1'
	rv_fails 1 rv-conform --only e4 --strict-skips --report a.tap -- ./none >out.txt
	grep -q '^0 passed, 1 failed, 0 skipped' out.txt
	grep -q '^not ok 1 - e4' a.tap
}

@test "a usage error is exit 2" {
	rv_fails 2 rv-conform --suite nothing
	rv_fails 2 rv-conform --format xml
	rv_fails 2 rv-conform --jobs 0
	rv_fails 2 rv-conform --timeout 10
	rv_fails 2 rv-conform --previous x
}

@test "an adapter that cannot run, or makes no sense, is exit 5" {
	rv_fails 5 rv-conform --only e1 -- ./nowhere 2>err.txt
	grep -q 'nowhere --capabilities' err.txt
	printf '#!/bin/sh\necho nonsense\n' >nonsense
	printf '#!/bin/sh\necho "{}"\n' >empty
	printf '#!/bin/sh\nexit 7\n' >seven
	chmod +x nonsense empty seven
	for adapter in nonsense empty seven; do
		rv_fails 5 rv-conform --only e1 -- "./$adapter" >out.txt 2>err.txt
		grep -q "^rv-conform: ./$adapter --capabilities: " err.txt
		[ ! -s out.txt ]
	done
}

@test "a capability that is not known is said" {
	make_adapter odd '"teleport"' 'exit 1'
	rv_fails 1 rv-conform --only e1 -- ./odd >out.txt
	grep -q 'does not know: teleport' out.txt
	rv_fails 1 rv-conform --only e1 --format tap --report a.jsonl -- ./odd >out.tap
	grep -q '^# it .* does not know: teleport$' out.tap
	rv_equal teleport "$(member unknown a.jsonl)"
}

@test "a failed write is exit 5" {
	rv_need full
	rv_fails 5 rv-conform --only e1 >/dev/full 2>err.txt
	grep -q '^rv-conform: standard output: ' err.txt
}

@test "an adapter that hangs cannot hang the battery" {
	make_adapter hang '' "trap '' TERM INT HUP; sleep 600 & exec sleep 601"
	started=$SECONDS
	rv_fails 1 rv-conform --only e1 --only e2 --jobs 2 --timeout 3s -- ./hang >out.txt
	[ $((SECONDS - started)) -lt 20 ]
	grep -q '^0 passed, 2 failed' out.txt
	grep -q 'still running at its deadline' out.txt
}

@test "what an adapter leaves running is named and killed" {
	make_adapter leaver '' "nonce=\$(sed 's/.*\"runId\":\"run-\([0-9]*\)\".*/\1/'); setsid sleep 3600.\$nonce </dev/null >/dev/null 2>&1 & until grep -q ^sleep /proc/\$!/cmdline; do :; done; echo '{}'"
	rv_fails 1 rv-conform --only e2 -- ./leaver >out.txt
	grep -Eq '^        left +[0-9]+ \(sleep 3600' out.txt
	pid=$(sed -En 's/^        left +([0-9]+) .*/\1/p' out.txt)
	rv_until sh -c "! kill -0 $pid 2>/dev/null"
}

@test "an adapter that kills the check's own process fails that check alone" {
	make_adapter killer '' 'kill -9 $PPID; echo "{}"'
	rv_fails 1 rv-conform --only e1 --only e2 -- ./killer >out.txt
	grep -q '^0 passed, 2 failed' out.txt
	grep -q 'own process was killed' out.txt
}

@test "an interrupted battery ends by the signal, and leaves nothing" {
	mkdir tmp
	for number in 2 15 1; do
		make_adapter sleeper '' ": >$PWD/started; exec sleep 605.$number"
		rm -f started
		TMPDIR=$PWD/tmp rv_dies "$number" sh -c "rv-conform --only e1 --jobs 2 -- ./sleeper >out.txt 2>err.txt & pid=\$!
			while [ ! -e started ]; do sleep 0.02; done; kill -$number \$pid; wait \$pid; kill -$number \$\$"
		rv_equal '' "$(ls -A tmp)"
		rv_until sh -c "! grep -qs 60[5].$number /proc/[0-9]*/cmdline"
	done
	grep -q 'interrupted' err.txt
}

@test "--adapter answers as rv-exec does" {
	printf '{"config":{"command":"/bin/sh","args":["-c","echo $((6*7))"],"timeoutMs":5000},"request":{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k"}}}' |
		rv-conform --adapter >reply.jsonl
	rv_equal 42 "$(member result reply.jsonl)"
	rv-conform --adapter -- --capabilities | rv-key --canonical >/dev/null
	rv_fails 3 rv-conform --adapter <<<'{"config":1}' 2>err.txt
	rv_fails 3 rv-conform --adapter <<<'no json' 2>err.txt
	rv_fails 2 rv-conform --adapter -- --teleport 2>err.txt
	printf '{"b":1,"a":[]}' | rv-conform --adapter -- --canonical >form.txt
	rv_equal '{"a":[],"b":1}' "$(cat form.txt)"
}

@test "progress is for a terminal's stderr alone" {
	rv_need script
	rv-conform --only e1 >out.txt 2>err.txt
	[ ! -s err.txt ]
	script -qec 'rv-conform --only e1 >out2.txt' /dev/null >tty.txt
	grep -q '0/1 e1' tty.txt
	rv_fails 1 grep -q '0/1' out2.txt
}

@test "a reader that goes away ends the battery quietly, and leaves nothing" {
	mkdir tmp
	make_adapter slow '' 'sleep 1; echo "{}"'
	# its last line comes when the reader has gone
	{ TMPDIR=$PWD/tmp rv-conform --only e1 --only e2 --only e3 --jobs 1 -- ./slow 2>err.txt || echo $? >status; } | head -n 1 >out.txt
	rv_equal '3 checks of slow' "$(cat out.txt)"
	rv_equal 141 "$(cat status)"
	rv_equal '' "$(cat err.txt)"
	rv_equal '' "$(ls -A tmp)"
}

@test "a reader that stopped does not keep a signal from the battery, nor its directory" {
	mkdir tmp
	mkfifo out
	# each of its words fills the pipe further
	make_adapter talker '' "head -c 1300 /dev/zero | tr '\\0' x; exit 1"
	exec 8<>out
	only=()
	for id in $(rv-conform --list --suite executor | cut -f 2 | head -n 60); do only+=(--only "$id"); done
	TMPDIR=$PWD/tmp rv-conform "${only[@]}" --jobs 16 -- ./talker >out 2>err.txt 8>&- &
	pid=$!
	# the pipe is full
	rv_until "$RV_PYTHON" -I -S -c 'import select, sys; pipe = select.poll(); pipe.register(8, select.POLLOUT); sys.exit(len(pipe.poll(0)))'
	# and so is its last page, where its last words would have room
	"$RV_PYTHON" -I -S -c $'import os\nos.set_blocking(8, False)\ntry:\n while os.write(8, b"x"): pass\nexcept BlockingIOError: pass'
	kill "$pid"
	ended=yes
	rv_until sh -c "! kill -0 $pid 2>/dev/null" || ended=no
	exec 8>&-
	wait "$pid" || status=$?
	rv_equal yes "$ended" 'ended while nobody read'
	rv_equal 143 "$status"
	grep -q 'nobody reads it' err.txt
	rv_equal '' "$(ls -A tmp)"
}

@test "what an adapter leaves running that was asked for its capabilities is killed, and nothing of the caller's own" {
	make_adapter leaver '' 'echo "{}"'
	sed -i "s|then echo|then setsid sleep 60.67 3>\&- </dev/null >/dev/null 2>\&1 \& echo|" leaver
	rv_fails 1 sh -c 'sleep 60.78 3>&- </dev/null >/dev/null 2>&1 & echo $! >own; exec rv-conform --only e1 -- ./leaver' >out.txt
	sh -c "! grep -qsa '^sleep.60[.]67' /proc/[0-9]*/cmdline"
	kill "$(cat own)"
}

@test "a pattern of --only that names no check is exit 5, also beside one that does" {
	rv_fails 5 rv-conform --only e1 --only 'enviroment.*' >out.txt 2>err.txt
	grep -q 'only enviroment.[*]: no check is selected' err.txt
	[ ! -s out.txt ]
	rv_fails 5 rv-conform --list --only e1 --only e77
	rv_equal keys.two "$(rv-conform --list --suite key --only e1 --only keys.two | cut -f 2)"
}

@test "a report of an earlier run never stands for this one" {
	echo '<testsuites tests="1" failures="0"/>' >a.xml
	rv_fails 5 rv-conform --only e1 --report a.xml -- ./nowhere
	[ ! -s a.xml ]
	# a place that cannot be written is found out before anything is run
	make_adapter runs '' ': >ran'
	rv_fails 5 rv-conform --only e1 --report /no/such/place/a.tap -- ./runs
	[ ! -e ran ]
}

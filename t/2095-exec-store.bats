# rv-exec --ledger-exec: rows that a program keeps, one answer for each, in order; no ok, no dispatch.
load helper
load exec

setup() {
	mark=store-$BATS_TEST_NUMBER-$$-$RANDOM
	mkdir dirs
	marking_tool
}

# Whatever a store does, none outlives its rv-exec.
teardown() {
	rv_until none_alive "$mark"
}

# in_store MODE [N]: the option's words; its rows are in ./ledger.
in_store() {
	printf "'%s' ledger %s" "$RV_SRC/t/stores/stand-in.py" "$*"
}

# z WORDS OPTION... -- COMMAND...
z() {
	local words=$1

	shift
	RV_MARK=$mark x --new-call --ledger-exec "$words" "$@"
}

# s JOBS WORDS COUNT [OPTION...]: a stream of COUNT requests with the keys k1, ...
s() {
	local jobs=$1 words=$2 count=$3 i

	shift 3
	for ((i = 1; i <= count; i++)); do
		printf '{"id":%d,"tool":"t","args":{"n":%d},"ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' "$i" "$i" "$i"
	done >requests
	RV_MARK=$mark rv-exec --stream --jobs "$jobs" --workdir-base "$PWD/dirs" --ledger-exec "$words" "$@" -- "$PWD/mark" <requests >replies 2>stderr
}

# refused [OPTION...]: `ledger`, nothing ran, and there is no workdir.
refused() {
	fails ledger 122 z "$@" -- "$PWD/mark" || return
	[ ! -s ran ] || rv_die "the tool ran" || return
	no_workdir
}

# codes: of each reply, or ok.
codes() {
	jq -r 'if .ok then "ok" else .error.code end' replies | paste -s -d ' '
}

@test "the rows are a ledger's, but for the lock that a store has not" {
	rv_equal 1 "$(z "$(in_store ok)" -- "$PWD/mark")"
	x --new-call --ledger file -- "$PWD/mark" >out
	names() { jq -c '[paths | map(tostring) | join(".")]' "$1"; }
	names ledger >got
	names file | sed 's/"writer.lock",//' >want
	diff want got
	holds '[r["outcome"] for r in outcomes] == ["ok"] and outcomes[0]["attemptId"] == intents[0]["attemptId"]'
	rv_equal 'row row end' "$(paste -s -d ' ' ledger.seen)"
	rv-ledger-scan ledger
}

@test "the intent is confirmed before the tool runs, the outcome before the answer" {
	tool look <<-TOOL
		#!/bin/sh
		wc -l <"$PWD/ledger"
	TOOL
	rv_equal 1 "$(z "$(in_store ok)" -- "$PWD/look")"
	rv_equal 2 "$(wc -l <ledger)"
}

@test "an intent without its writer's lock is unknown to the scan, and not an orphan that is dead for sure" {
	z "$(in_store ok)" -- /bin/sleep 60 3>&- 2>/dev/null &
	pid=$!
	rv_until test -s ledger
	rv_fails 1 rv-ledger-scan --format orphans ledger >orphans
	rv_equal unknown "$(member state orphans)"
	kill -9 "$(rv_exec_of $pid)"
	wait $pid || true
	rv_until grep -q end ledger.seen # the store saw the end, and ended
	rv_fails 1 rv-ledger-scan --format orphans ledger >orphans
	rv_equal unknown "$(member state orphans)"
}

@test "no ok, no dispatch: what it answered is said" {
	refused "$(in_store refuse 1)"
	grep -q 'answered: no room for 1$' stderr
	refused "sh -c 'read -r row; printf \"\\377\\033[2Joh\\n\"'"
	grep -q 'answered: .*oh' stderr
	rv_fails 1 grep -q "$(printf '\033')" stderr
	refused "sh -c 'read -r row; echo'"
	refused "sh -c 'read -r row; echo okay'"
	refused "sh -c 'read -r row; echo \"ok \"'"
	refused "sh -c 'read -r row; echo OK'"
}

@test "an outcome that is refused is ledger, after a success, too" {
	fails ledger 122 z "$(in_store refuse 2)" -- "$PWD/mark"
	rv_equal 1 "$(wc -l <ran)"
	grep -q "the outcome 'ok' could not be written: .* answered: no room for 2" stderr
	no_workdir
}

@test "a program that cannot be started, ends at once, or is deaf" {
	refused /no/such/program
	refused "$PWD"
	refused "  "
	refused "'"
	refused false
	grep -q 'exited with status 1' stderr
	refused "sh -c 'exec <&-; sleep 600'" --ledger-wait 300ms
	refused "sh -c 'exec >&-; cat >/dev/null'"
	grep -q 'program' stderr
}

@test "it closes its input under a tool that runs: the outcome is ledger" {
	tool until-closed <<-TOOL
		#!/bin/bash
		until grep -q closed "$PWD/ledger.seen"; do sleep 0.01; done
		echo 1
	TOOL
	fails ledger 122 within 10000 z "$(in_store close 1)" --setenv PATH="$PATH" --ledger-wait 500ms -- "$PWD/until-closed"
	grep -q "the outcome 'ok' could not be written: .* closed its input" stderr
}

@test "its death is ledger: between two intents, by a signal, between intent and outcome" {
	rv_fails 1 s 1 "$(in_store die 3)" 3
	rv_equal 'ok ledger ledger' "$(codes)"
	rv_equal k1 "$(cat ran)"
	jq -r .error.message replies | grep -q 'exited with status 3'
	rm ledger ran replies; : >ran
	rv_fails 1 s 1 "$(in_store kill 2)" 2
	rv_equal 'ledger ledger' "$(codes)"
	rv_equal k1 "$(cat ran)"
	jq -r .error.message replies | grep -q "the outcome 'ok' could not be written: .* was killed by SIGKILL"
	no_workdir
}

@test "ok without its newline confirms nothing" {
	refused "$(in_store cut 1)"
}

@test "it says more than it was asked: no row of its is believed any more" {
	# Before the first row, and it is ended for that:
	RV_MARK=$mark rv-exec --stream --workdir-base "$PWD/dirs" --ledger-exec "$(in_store early)" -- "$PWD/mark" \
		< <(rv_until test -s ledger.seen; rv_until ended "$(sed 's/early //' ledger.seen)"; echo '{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k"}}') \
		>replies 2>stderr 3>&- || true
	rv_equal ledger "$(codes)"
	[ ! -s ran ]
	# Too late to be seen before it, and said at the latest at the end:
	z "$(in_store early)" -- "$PWD/mark" >out 2>stderr || [ ! -s out ]
	grep -q 'answered what it was not asked' stderr
	rm -f ledger ran; : >ran
	refused "yes ok"
	grep -q 'answered what it was not asked' stderr
	rm -f ledger ran; : >ran
	refused "$(in_store twice 1)"
	rm -f ledger ran; : >ran
	refused "$(in_store long 1)"
	grep -q 'answer without end' stderr
}

@test "it hangs: the deadline holds, for an intent and for an outcome" {
	within 4000 refused "$(in_store hang 1)" --ledger-wait 300ms
	grep -q 'gave no answer within 300 ms' stderr
	rm -f ledger
	fails ledger 122 within 4000 z "$(in_store hang 2)" --ledger-wait 300ms -- "$PWD/mark"
	rv_equal 1 "$(wc -l <ran)"
}

@test "a late answer is its own row's, and confirms nobody else's" {
	RV_MARK=$mark rv-exec --stream --workdir-base "$PWD/dirs" --ledger-exec "$(in_store late 1)" --ledger-wait 300ms -- "$PWD/mark" \
		< <(for i in 1 2; do
			printf '{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' $i
			[ $i -eq 2 ] || { rv_until test -s replies; : >ledger.go; rv_until test -e ledger.go; }
		done) >replies 2>stderr 3>&- || true
	rv_equal 'ledger ok' "$(codes)"
	rv_equal k2 "$(cat ran)"
	# What was refused for want of an answer may be in the store all the same: an intent whose tool never ran.
	holds '[r["idempotencyKey"] for r in intents] == ["k1", "k2"] and [r["idempotencyKey"] for r in outcomes] == ["k2"]'
}

@test "an answer that comes when its row was refused for want of one, and all is over, is no word too much" {
	tool last-is-late <<-'STORE'
		#!/bin/sh
		read -r row && echo ok && read -r row && ! read -r row && echo ok
	STORE
	fails ledger 122 z "$PWD/last-is-late" --ledger-wait 2s -- "$PWD/mark"
	grep -q 'gave no answer within 2000 ms' stderr
	rv_equal 1 "$(wc -l <stderr)" "$(cat stderr)"
}

@test "while it hangs a row that did not leave is not sent later" {
	# Far more rows than a pipe holds: a store that reads nothing.
	head -c 60000 /dev/zero | tr '\0' x >long
	for i in 1 2 3 4 5 6; do
		printf '{"tool":"t","args":{},"ctx":{"runId":"%s","idempotencyKey":"k%d"}}\n' "$(cat long)" $i
	done >requests
	within 8000 rv_fails 1 env RV_MARK="$mark" rv-exec --stream --jobs 6 --workdir-base "$PWD/dirs" --ledger-wait 400ms \
		--ledger-exec "sh -c 'until [ -e go ]; do sleep 0.01; done; exec \"$RV_SRC/t/stores/stand-in.py\" ledger ok'" \
		-- "$PWD/mark" < <(cat requests; rv_until eval '[ "$(wc -l <replies)" -eq 6 ]'; : >go; sed -n 1p requests) >replies 2>stderr 3>&-
	[ "$(wc -l <replies)" -eq 7 ]
	[ "$(grep -c '"phase":"intent"' ledger)" -le 3 ] || rv_die "$(grep -c . ledger) rows"
	rv-ledger-scan --format summary ledger >summary || true
	rv_equal 0 "$(member corrupt summary)"
}

@test "many rows are in flight at once, and each has its own answer" {
	# A store that answers nobody before eight rows are there: one at a time would wait for ever.  Near the end there
	# may be fewer in flight: a slot whose outcome waits has the next intent already.
	within 20000 s 8 "$(in_store gather 8 96)" 64
	rv_equal 64 "$(jq -r 'select(.ok) | .id' replies | sort -n | uniq | wc -l)"
	rv_equal 64 "$(sort -u ran | wc -l)"
	holds 'len(intents) == len(outcomes) == 64'
	rm -f ledger ran; : >ran
	rv_fails 1 s 8 "$(in_store refuse 5)" 8
	rv_equal 1 "$(jq -r 'select(.ok | not) | .id' replies | wc -l)"
	refused=$(sed -n 5p ledger | member idempotencyKey)
	rv_equal "$refused" "k$(jq -r 'select(.ok | not) | .id' replies)"
	sed -n 5p ledger | grep -q outcome || ! grep -qx "$refused" ran
}

@test "a stalled store holds up no deadline of a tool that runs" {
	(
		rv_until grep -q TERM killed
		: >ledger.go
	) 3>&- &
	tool slow <<-TOOL
		#!/bin/bash
		trap 'echo TERM >>"$PWD/killed"; exit 1' TERM
		while :; do sleep 0.05; done
	TOOL
	: >killed
	printf '{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' 1 2 >requests
	RV_MARK=$mark within 15000 rv-exec --stream --jobs 2 --timeout 600ms --workdir-base "$PWD/dirs" --setenv PATH="$PATH" \
		--ledger-exec "$(in_store late 2)" -- "$PWD/slow" <requests >replies 2>stderr || true
	wait
	# The first was ended at its deadline while the store had the second one's intent and said nothing.
	rv_equal 'timeout ledger' "$(codes)"
	jq -e 'select(.id == null) | .durationMs < 5000' replies >/dev/null
}

@test "--ledger-phases one writes outcomes alone" {
	rv_equal 1 "$(z "$(in_store ok)" --ledger-phases one -- "$PWD/mark")"
	holds 'intents == [] and [r["outcome"] for r in outcomes] == ["ok"]'
	rm ledger
	s 2 "$(in_store ok)" 4 --ledger-phases one
	holds 'intents == [] and len(outcomes) == 4'
}

@test "TERM: outcomes go to the store before it is closed" {
	z "$(in_store ok)" -- /bin/sleep 60 3>&- 2>stderr &
	pid=$!
	rv_until test -s ledger
	rv_until eval '[ -n "$(children "$(rv_exec_of $pid)")" ]'
	kill -TERM "$(rv_exec_of $pid)"
	wait $pid || true
	holds '[r["outcome"] for r in outcomes] == ["error"] and outcomes[0]["attemptId"] == intents[0]["attemptId"]'
	rv_equal end "$(tail -n 1 ledger.seen)"
	no_workdir
}

@test "^C of a terminal, and its hangup, are not for the store" {
	# The whole group in front gets the signal; the store is not in it.
	for signal in INT HUP; do
		rm -f ledger*
		RV_MARK=$mark perl -e 'setpgrp; $SIG{INT} = $SIG{HUP} = "DEFAULT"; exec @ARGV' rv-exec --tool t --new-call --workdir-base "$PWD/dirs" \
			--ledger-exec "$(in_store ok)" -- /bin/sleep 60 3>&- 2>stderr &
		pid=$!
		rv_until test -s ledger
		kill -$signal -- -$pid
		wait $pid || true
		holds '[r["outcome"] for r in outcomes] == ["error"]'
	done
}

@test "rv-exec killed: the store has what was said, sees the end, and ends by itself" {
	z "$(in_store ok)" -- /bin/sleep 60 3>&- 2>/dev/null &
	pid=$!
	rv_until test -s ledger
	kill -9 "$(rv_exec_of $pid)"
	wait $pid || true
	rv_until grep -q end ledger.seen
	holds 'len(intents) == 1 and outcomes == []'
	rm -rf dirs
}

@test "it has rv-exec's environment, directory and standard error, and no other descriptor" {
	cat >look <<-'SH'
		#!/bin/sh
		ls /proc/self/fd >fds
		pwd -P >where
		printf '%s' "$HOST_VARIABLE" >variable
		echo 'said by the store' >&2
		while read -r row; do echo ok; done
	SH
	chmod 755 look
	exec 9<look
	HOST_VARIABLE=here rv_equal 1 "$(HOST_VARIABLE=here z ./look -- "$PWD/mark" 2>stderr)"
	grep -q 'said by the store' stderr
	rv_equal here "$(cat variable)"
	rv_equal "$(pwd -P)" "$(cat where)"
	rv_equal '0 1 2 3' "$(paste -s -d ' ' fds)" # 3 is ls's own
	# The tool has none of it.
	rv_equal 0 "$(z "$(in_store ok)" -- /bin/sh -c 'ls /proc/self/fd | grep -c "[4-9]" || :')"
}

@test "a store that does not end is killed; one that fails at its end is said, and the result stands" {
	within 6000 z "$(in_store stay)" --ledger-wait 300ms -- "$PWD/mark" >out 2>stderr
	rv_equal 1 "$(cat out)"
	grep -q 'did not end and was killed: what it confirmed may not be kept' stderr
	rm ledger
	z "$(in_store fail-last)" -- "$PWD/mark" >out 2>stderr
	rv_equal 1 "$(cat out)"
	grep -q 'exited with status 4: what it confirmed may not be kept' stderr
	s 1 "$(in_store fail-last)" 1
	grep -q 'exited with status 4' stderr
}

@test "a lost worker takes not the store with it where there is no PID namespace" {
	rv_need userns
	unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces' 2>/dev/null || skip "user.max_pid_namespaces cannot be set here"
	RV_MARK=$mark rv_fails 1 unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces && exec "$@"' - \
		rv-exec --json --tool t --new-call --workdir-base "$PWD/dirs" --ledger-exec "$(in_store ok)" -- /bin/sh -c 'kill -9 $PPID; sleep 30' >reply 2>stderr
	holds 'reply["containment"] == "subreaper"' '[r["outcome"] for r in outcomes] == ["error"]'
	rv_equal end "$(tail -n 1 ledger.seen)"
}

@test "what does not go together is usage" {
	for options in '--ledger file' '--refuse-orphan' '--durability power' '--ledger-unsafe-fs'; do
		# shellcheck disable=SC2086 # words
		rv_fails 2 z "$(in_store ok)" $options -- "$PWD/mark" 2>stderr
		grep -q -- '--ledger' stderr
	done
	rv_fails 2 x --ledger-exec cat -- "$PWD/mark" 2>stderr
	grep -q -- '--new-call' stderr
	rv_fails 2 x --ledger-phases one -- "$PWD/mark" 2>stderr
	[ ! -s ran ]
	[ ! -e ledger ]
}

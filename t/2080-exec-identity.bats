# rv-exec: which call this is, and the same again after a crash.
load helper
load exec

key() {
	x --json "$@" -- /bin/true | member idempotencyKey
}

@test "the same run file gives the same key, a recreated one another" {
	rv-key --new-run --run-id r one.run
	first=$(key --run one.run --agent-seq 3 --ordinal 4 --args '{"b":1,"a":2}')
	rv_equal "$first" "$(key --run one.run --agent-seq 3 --ordinal 4 --args ' { "a" : 2, "b" : 1.0 } ')"
	before=$(cat one.run)
	for other in '--agent-seq 4 --ordinal 4' '--agent-seq 3 --ordinal 5'; do
		# shellcheck disable=SC2086 # two options
		[ "$first" != "$(key --run one.run $other --args '{"b":1,"a":2}')" ]
	done
	[ "$first" != "$(key --run one.run --agent-seq 3 --ordinal 4 --args '{"b":2,"a":2}')" ]
	rv_equal "$before" "$(cat one.run)"
	rm one.run
	rv-key --new-run --run-id r one.run
	[ "$first" != "$(key --run one.run --agent-seq 3 --ordinal 4 --args '{"b":1,"a":2}')" ]
}

@test "the key is rv-key's own" {
	rv-key --new-run one.run
	args='{"z":[1e21,"é"],"a":-0}'
	rv_equal "$(rv-key --run one.run --agent-seq 1 --ordinal 2 --tool t --args "$args")" \
		"$(key --run one.run --agent-seq 1 --ordinal 2 --args "$args")"
	rv_equal "$(rv-key --run-id r --genesis '' --agent-seq 0 --ordinal 0 --tool t --args "$args")" \
		"$(key --run-id r --genesis '' --agent-seq 0 --ordinal 0 --args "$args")"
	rv_equal "$(rv-key --derivation 1 --run-id r --agent-seq 0 --ordinal 7 --tool t --args "$args")" \
		"$(key --derivation 1 --run-id r --agent-seq 0 --ordinal 7 --args "$args")"
	rv_equal "$(printf '%s' "$args" >a.json && rv-key --args-hash a.json)" \
		"$(x --json --args "$args" -- /bin/true | member argsHash)"
}

@test "the key depends on nothing around it" {
	rv-key --new-run one.run
	first=$(key --run "$PWD/one.run" --args '{"ä":1e21,"a":[0.1]}')
	mkdir elsewhere
	rv_equal "$first" "$(cd elsewhere && TZ=Asia/Tokyo LC_ALL=de_DE.UTF-8 LC_NUMERIC=de_DE.UTF-8 RULVAR_RUN_ID=x HOME=/ key --run "$PWD/../one.run" --args '{"a":[0.1],"ä":1e21}')"
	rv_equal "$first" "$(umask 077; x --json --timeout 7s --setenv A=b --run one.run --args '{"a":[1e-1],"\u00e4":1000000000000000000000}' -- /bin/echo 1 | member idempotencyKey)"
}

@test "killed between effect and outcome and run again: the same key, both effects with their intent" {
	rv-key --new-run one.run
	tool effect <<-TOOL
		#!/bin/sh
		echo "\$RULVAR_IDEMPOTENCY_KEY" >>"$PWD/effects"
		[ -e "$PWD/second" ] || exec sleep 60
		echo 1
	TOOL
	x --setenv PATH="$PATH" --run one.run --ordinal 1 --ledger ledger -- "$PWD/effect" 3>&- &
	pid=$!
	rv_until test -s effects
	kill -9 "$(rv_exec_of $pid)"
	wait $pid || true
	rv_fails 1 rv-ledger-scan --format orphans ledger >orphans
	: >second
	rv_equal 1 "$(x --run one.run --ordinal 1 --ledger ledger -- "$PWD/effect")"
	rv_equal 1 "$(sort -u effects | wc -l)"
	rv_equal 2 "$(wc -l <effects)"
	# The retry's own outcome resolves its own attempt and nothing else.
	rv_fails 1 rv-ledger-scan --format orphans ledger >again
	rv_equal 1 "$(wc -l <again)"
	rv_equal "$(member attemptId orphans)" "$(member attemptId again)"
	rv_equal "$(head -n 1 effects)" "$(member idempotencyKey again)"
	rv_equal "$(member workdir again)" "$(ls -d "$(pwd -P)"/dirs/*)"
}

@test "--new-call and no identity at all are a fresh call each time" {
	[ "$(key)" != "$(key)" ]
	[ "$(key --new-call)" != "$(key --new-call)" ]
	rv_equal K "$(key --key K)"
	x --json --key K -- /bin/true >one
	x --json --key K -- /bin/true >two
	[ "$(member attemptId one)" != "$(member attemptId two)" ]
	[ "$(member spanId one)" != "$(member spanId two)" ]
}

@test "beside a ledger the call must be named" {
	rv_fails 2 x --ledger ledger -- /bin/true 2>stderr
	grep -q -- --new-call stderr
	[ ! -e ledger ]
}

@test "what names no call, or two, is usage" {
	rv-key --new-run one.run
	for words in '--key K --run one.run' '--key K --ordinal 1' '--run one.run --run-id r' '--run one.run --genesis g' \
		'--run-id r' '--ordinal 1' '--run-id r --ordinal 1' '--derivation 1 --run-id r --genesis g --ordinal 1' \
		'--new-call --key K' '--new-call --run one.run'; do
		# shellcheck disable=SC2086 # several options
		rv_fails 2 x $words -- /bin/true 2>stderr
	done
}

@test "a run file that is none is refused, and nothing ran" {
	rv_fails 5 x --run nowhere --ordinal 1 -- /bin/sh -c ": >'$PWD/ran'" 2>stderr
	for text in '' 'x' '[]' '{}' '{"runId":1}' '{"runId":"r","execKeyDerivation":2}'; do
		printf '%s' "$text" >bad.run
		rv_fails 3 x --run bad.run --ordinal 1 -- /bin/sh -c ": >'$PWD/ran'" 2>stderr
	done
	printf '{"runId":"r","genesis":"g","execKeyDerivation":3}' >bad.run
	fails derivation 3 x --run bad.run --ordinal 1 -- /bin/true
	[ ! -e ran ]
}

@test "a name that no environment can carry is refused" {
	printf '{"runId":"a\\u0000b","genesis":"g","execKeyDerivation":2}' >nul.run
	fails request 3 x --run nul.run --ordinal 1 --ledger ledger -- /bin/true
	[ ! -s ledger ]
	fails request 3 rv-exec --tool $'t\xff' -- /bin/true
	fails request 3 x --key $'\xff' -- /bin/true
}

# Rows of many dispatches in one write and one sync, and a ledger that is moved away under its writers.
load helper
load exec

# s JOBS COUNT [OPTION...] -- COMMAND...: a stream of COUNT requests into ./ledger
s() {
	local jobs=$1 count=$2 i

	shift 2
	mkdir -p dirs
	for ((i = 1; i <= count; i++)); do
		printf '{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' "$i"
	done >requests
	rv-exec --stream --jobs "$jobs" --workdir-base "$PWD/dirs" --ledger ledger "$@" <requests >replies
}

@test "--durability power, 64 in flight, each sync slow: rows share their syncs" {
	# What an undumpable process writes, an ordinary user's strace does not see.
	rv_need strace root
	mkdir dirs
	for ((i = 0; i < 256; i++)); do
		printf '{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' "$i"
	done >requests
	# 64 tools at a time wait at a gate and end together, so that nothing hangs on how busy the machine is.
	tool gated <<-TOOL
		#!/bin/sh
		exec flock -s "$PWD/gate.\$((\${RULVAR_IDEMPOTENCY_KEY#k} / 64))" echo 1
	TOOL
	for gate in 0 1 2 3; do
		eval "exec 2$gate>gate.$gate && flock 2$gate"
	done
	# 10 ms for each sync: while it lasts the other rows gather.  rv-exec alone is traced.
	strace -o trace -e trace=fdatasync -e inject=fdatasync:delay_enter=10000 \
		rv-exec --stream --jobs 64 --workdir-base "$PWD/dirs" --ledger ledger --durability power --setenv PATH="$PATH" -- \
		"$PWD/gated" <requests >replies 20>&- 21>&- 22>&- 23>&- 3>&- &
	rv_until test -e ledger
	for gate in 0 1 2 3; do
		rv_until eval "[ \"\$(grep -c '\"intent\"' ledger)\" -eq $((64 * (gate + 1))) ]"
		flock -u "2$gate"
	done
	wait $!
	rv_equal 512 "$(wc -l <ledger)"
	syncs=$(grep -c '^fdatasync' trace)
	echo "# $syncs syncs for 512 rows" >&3
	[ "$syncs" -ge 2 ]
	# scripts/bench append asks for 20 rows a sync; less here, where a slow build may run on a busy machine.
	[ $((syncs * 16)) -le 512 ] || rv_die "$syncs syncs for 512 rows"
	rv-ledger-scan ledger
}

@test "a ledger renamed away under a stream: the next append goes to the new path, and no row is lost" {
	tool rotate <<-TOOL
		#!/bin/sh
		[ "\$RULVAR_IDEMPOTENCY_KEY" != k5 ] || mv "$PWD/ledger" "$PWD/ledger.1"
		echo 1
	TOOL
	s 1 10 --setenv PATH="$PATH" -- "$PWD/rotate"
	rv_equal '9 11' "$(wc -l <ledger.1) $(wc -l <ledger)"
	rv_equal k5 "$(sed -n 1p ledger | member idempotencyKey)"
	rv_equal outcome "$(sed -n 1p ledger | member phase)"
	rv-ledger-scan ledger.1 ledger
	rv_fails 1 rv-ledger-scan ledger.1 >orphans
	rv_equal k5 "$(member idempotencyKey orphans)"
}

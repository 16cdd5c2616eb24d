#!/bin/bash
# How fast rows get into one ledger, and how many share a sync.
set -euo pipefail
# shellcheck source=t/bench/bounds.bash
. "$(dirname "$0")/bounds.bash"

usage() {
	cat <<'USAGE'
usage: t/bench/append.sh [--rounds N] [BUILD]

Measure, with the programs built in BUILD (default: build): rows a second that one process appends, one row an
append and 64 rows an append (--durability process); and how many rows share a sync, where 64 dispatches of
rv-exec --stream are in flight with --durability power and each fdatasync(2) takes 10 ms more: with a tool
that ends as soon as it can, and with tools that run for 20 ms and for 200 ms.

      --rounds N  rounds (default 5); the best of each counts, of rows that share a sync the worst
  -h, --help      print this and exit

One line a figure, with what it should be.
Exit status: 0 all are reached, 1 one is not, 2 usage, 5 something is missing.
USAGE
}

rounds=5
arguments 'rounds' "$@"
begin 'gcc' rv-exec rv-ledger-scan t/ledger-tool
cd "$work"

one=0 many=0
for ((round = 0; round < rounds; round++)); do
	rm -f one.jsonl many.jsonl
	rate=$("${first[@]}" "$build/t/ledger-tool" flood one.jsonl 100000 1)
	one=$((rate > one ? rate : one))
	rate=$("${first[@]}" "$build/t/ledger-tool" flood many.jsonl 2000 64)
	many=$((rate > many ? rate : many))
done
[ "$(wc -l <one.jsonl) $(wc -l <many.jsonl)" = '100000 128000' ]
bound 'rows a second, one an append' "$one" least 60000
printf '%-44s %d\n' 'rows a second, 64 an append' "$many"

gcc -O2 -shared -fPIC -o slow-sync.so "$source/t/bench/slow-sync.c"
mkdir dirs
for ((i = 0; i < 256; i++)); do
	printf '{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' "$i"
done >requests

# shared TOOL...: rows a sync of the worst round.
shared() {
	local round syncs worst=0

	for ((round = 0; round < rounds; round++)); do
		rm -f power.jsonl syncs
		LD_PRELOAD=$work/slow-sync.so RV_SYNC_MS=10 RV_SYNC_COUNT=$work/syncs "$build/rv-exec" --stream --unordered --jobs 64 \
			--workdir-base "$work/dirs" --durability power --ledger power.jsonl -- "$@" <requests >replies
		[ "$(wc -l <power.jsonl)" -eq 512 ] && "$build/rv-ledger-scan" power.jsonl
		syncs=$(stat -c %s syncs)
		worst=$((syncs > worst ? syncs : worst))
	done
	ratio 512 "$worst"
}
bound 'rows a sync, a tool that ends at once' "$(shared /bin/true)" least 20
bound 'rows a sync, tools of 20 ms' "$(shared /bin/sleep 0.02)" least 20
bound 'rows a sync, tools of 200 ms' "$(shared /bin/sleep 0.2)" least 20
exit "$status"

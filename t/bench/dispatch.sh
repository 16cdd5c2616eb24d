#!/bin/bash
# What a dispatch of rv-exec costs, beside what cannot be spared.
set -euo pipefail

usage() {
	cat <<'USAGE'
usage: t/bench/dispatch.sh [--count N] [BUILD]

In turn, medians: /bin/true by posix_spawn and wait, by one loop and by two at once, each on a processor of its own;
by rv-exec --stream with a ledger, workdirs and both rows, --jobs 1 and 2; by a program on node that does the same.
Then 1 MiB in and 1 MiB out through cat, beside two pipes, and beside rv-key, which parses and hashes as much.

What two jobs win is bounded as it is promised, and beside that by what two bare loops win on this machine.

      --count N  pairs of runs, or rounds times four (default 200)

Exit status: 0 no bound is missed, 1 one is, or something failed, 2 usage, 5 something is missing.
USAGE
}

# shellcheck source=t/bench/bounds.bash
source "$(dirname "${BASH_SOURCE[0]}")/bounds.bash"

count=200
arguments 'count' "$@"
begin 'node awk paste' rv-exec rv-key t/bench/pair t/bench/rounds
cd "$work"

# The workdirs are in memory where that can be had: what a disk takes to make and remove one is a figure of its own.
memory=$(mktemp -d /dev/shm/rv-bench.XXXXXX 2>/dev/null) || memory=$work
trap 'rm -rf "$work" "$memory"' EXIT

# stream JOBS BASE: the command line of a stream of /bin/true.
stream() {
	printf '%s --stream --unordered --jobs %s --workdir-base %s --ledger %s -- /bin/true' "$build/rv-exec" "$1" "$2" "$work/s$1.jsonl"
}

dispatches() {
	local took=() bare=() ratio=() cpu=() won=() loops on_disk peer jobs

	printf '%-44s %s\n' "one rv-exec with a ledger of /bin/true" \
		"$("${first[@]}" "$build/t/bench/pair" "$count" "$build/rv-exec --new-call --ledger one.jsonl --tool t -- /bin/true" /bin/true)"
	"${first[@]}" "$build/t/bench/rounds" -2 "$((count / 4 + 1))" 20 /bin/true "$(stream 1 "$memory")" \
		"$(stream 2 "$memory")" >rounds.txt
	read -r _ _ on_disk _ < <("${first[@]}" "$build/t/bench/rounds" "$((count / 4 + 1))" 20 /bin/true "$(stream 1 "$work")")
	while read -r a b c d e; do
		took+=("$a") bare+=("$b") ratio+=("$c") cpu+=("$d") won+=("$e")
	done <rounds.txt
	loops=${ratio[2]}
	for jobs in 1 2; do
		printf '%-44s %s ms, bare %s ms, of processor time %s\n' "a dispatch of --stream --jobs $jobs" "${took[jobs - 1]}" \
			"${bare[jobs - 1]}" "${cpu[jobs - 1]}"
	done
	bound "a dispatch of --jobs 1, of a bare run" "${ratio[0]}" most 1.3
	printf '%-44s %s\n' "the same, its workdir on this disk" "$on_disk"
	bound "--jobs 2, times as fast as --jobs 1" "${won[1]}" least 1.7
	printf '%-44s %s\n' "two bare loops, times as fast as one" "$loops"
	bound "what --jobs 2 wins, of what two loops win" "$(ratio "${won[1]}" "$loops")" least 0.85
	for jobs in 1 2; do
		peer=$(TMPDIR=$memory "${first[@]}" node "$source/t/bench/dispatch.mjs" 300 "$jobs" "peer$jobs.jsonl" /bin/true)
		bound "--jobs $jobs, times as fast as the peer on node" "$(ratio "${peer%% *}" "${took[jobs - 1]}")" least 3
	done
}

# timed COMMAND...: microseconds.
timed() {
	local start=${EPOCHREALTIME/./}

	"$@" >/dev/null
	echo $((${EPOCHREALTIME/./} - start))
}

# shellcheck disable=SC2317  # called by their names
bytes_stream() {
	"${first[@]}" "$build/rv-exec" --stream --max-output 2MiB --workdir-base "$work" --ledger b.jsonl -- /bin/cat <"bytes.$1" | "${first[@]}" cat
}

# shellcheck disable=SC2317
bytes_pipes() {
	"${first[@]}" cat <"bytes.$1" | "${first[@]}" cat | "${first[@]}" cat
}

# shellcheck disable=SC2317
bytes_keys() {
	"${first[@]}" "$build/rv-key" --stream --threads 1 <"keys.$1"
}

# Each request carries and each reply brings back so many bytes: what they take beyond an empty one, medians of
# seven in turn.  Megabytes are counted in and out, so twice.  Beside it what cannot be spared: the same bytes through
# two pipes, and parsed, made canonical and hashed (twice) by rv-key.
bytes() {
	local requests=200 size i part took=()

	for size in 2 1048576; do
		for ((i = 1; i <= requests; i++)); do
			printf '{"tool":"t","args":"'
			head -c "$size" /dev/zero | tr '\0' x
			printf '","ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' "$i"
		done >"bytes.$size"
		sed 's/"ctx":{"runId":"r","idempotencyKey":"k\([0-9]*\)"}/"runId":"r","agentSeq":0,"ordinal":\1/' "bytes.$size" >"keys.$size"
	done
	for i in 1 2 3 4 5 6 7; do
		for part in stream pipes keys; do
			for size in 2 1048576; do
				timed "bytes_$part" "$size" >>"took.$part.$size"
			done
		done
	done
	for part in stream pipes keys; do
		took+=("$(paste "took.$part.2" "took.$part.1048576" | awk -v n="$requests" '{ print ($2 - $1) / n / 1000 }' | sort -n | sed -n 4p)")
	done
	printf '%-44s %s ms beyond an empty one; two pipes %s ms, JSON and hash %s ms\n' "1 MiB in and 1 MiB out through cat" "${took[@]}"
	bound "the same, MB/s" "$(awk -v ms="${took[0]}" 'BEGIN { print 2097.152 / ms }')" least 500
}

dispatches
bytes
exit "$status"

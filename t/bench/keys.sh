#!/bin/bash
# rv-key --stream beside its floor and beside node, on the same lines.
set -euo pipefail
# shellcheck source=t/bench/bounds.bash
. "$(dirname "$0")/bounds.bash"

usage() {
	cat <<'USAGE'
usage: t/bench/keys.sh [--lines N] [--rounds N] [BUILD]

Measure, with the programs built in BUILD (default: build), the keys of N invocation lines:
t/bench/keys.mjs in node, rv-key --stream, rv-key --stream --threads 2, and the floor, yajl's
events and two SHA-256 of each line.  The rounds are interleaved, the best of each counts.

      --lines N   lines (default 200000)
      --rounds N  rounds (default 5)
  -h, --help      print this and exit

One line a figure: NAME SECONDS, then the ratios and what they should be at least.
Exit status: 0 all are reached, 1 one is not, 2 usage, 5 something is missing.
USAGE
}

lines=200000
rounds=5
arguments 'lines rounds' "$@"
begin 'node' rv-key t/bench/floor-keys
node "$source/t/bench/invocations.mjs" "$lines" >"$work/lines"

declare -A command=(
	[node]="node $source/t/bench/keys.mjs"
	[floor]="$build/t/bench/floor-keys"
	[rv-key]="$build/rv-key --stream"
	[rv-key-2]="$build/rv-key --stream --threads 2"
)

# The keys must be the same before their speed means anything.
${command[node]} <"$work/lines" >"$work/node"
for name in rv-key rv-key-2; do
	${command[$name]} <"$work/lines" | sed 's/"id":[0-9]*,//' | cmp - "$work/node" ||
		{ echo "keys: $name and node do not agree" >&2; exit 1; }
done

for ((round = 0; round < rounds; round++)); do
	for name in node floor rv-key rv-key-2; do
		start=$EPOCHREALTIME
		# shellcheck disable=SC2086  # words
		"${first[@]}" ${command[$name]} <"$work/lines" >/dev/null
		end=$EPOCHREALTIME
		best "$name" $((${end/[.,]/} - ${start/[.,]/}))
	done
done

for name in node floor rv-key rv-key-2; do
	awk -v n="$name" -v t="${best[$name]}" 'BEGIN { printf "%-9s %.3f s\n", n, t / 1e6 }'
done
bound 'rv-key against node' "$(ratio "${best[node]}" "${best[rv-key]}")" least 6
bound 'rv-key against its floor' "$(ratio "${best[floor]}" "${best[rv-key]}")" least 0.5
bound 'two threads against one' "$(ratio "${best[rv-key]}" "${best[rv-key-2]}")" least 1.6
exit "$status"

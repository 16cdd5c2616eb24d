#!/bin/bash
# rv-ledger-scan beside wc, jq, node and simdjson, on the same ledger.
set -euo pipefail

usage() {
	cat <<'USAGE'
usage: t/bench/scan.sh [--rows N] [--rounds N] [BUILD]

Measure, with the programs built in BUILD (default: build), a scan of a ledger of N rows in the page cache:
rv-ledger-scan with one thread and with two, wc -l, and simdjson's DOM of each line where it can be
compiled; jq and node on a sixteenth of the rows, since they are slow and node cannot hold all.  And rows
with escapes, beside yajl's bare events.  The rounds are interleaved, the best of each counts.

      --rows N    rows (default 2400000, 1.2 GB in $TMPDIR)
      --rounds N  rounds (default 5)
  -h, --help      print this and exit

One line a figure, then the ratios and what they should be.
Exit status: 0 all are reached, 1 one is not, 2 usage, 5 something is missing.
USAGE
}

rows=2400000
rounds=5
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		usage
		exit 0
		;;
	--rows | --rounds)
		[[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
		[ "$1" = --rows ] && rows=$2 || rounds=$2
		shift 2
		;;
	-*)
		usage >&2
		exit 2
		;;
	*) break ;;
	esac
done
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-build}" && pwd) || exit 5
for program in node jq python3 make; do
	command -v "$program" >/dev/null || { echo "scan: $program is missing" >&2; exit 5; }
done
make -s -C "$build" rv-ledger-scan t/bench/ledger t/bench/floor-keys >&2
work=$(mktemp -d "${TMPDIR:-/tmp}/rv-bench-scan.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
"$build/t/bench/ledger" "$rows" >whole
"$build/t/bench/ledger" $((rows / 16)) >part
"$build/t/bench/ledger" $((rows / 16)) escaped >escapes

declare -A command=(
	[wc]="wc -l whole"
	[scan]="$build/rv-ledger-scan whole"
	[scan-2]="$build/rv-ledger-scan --threads 2 whole"
	[summary]="$build/rv-ledger-scan --format summary whole"
	[jq]="jq -c . part"
	[node]="node $source/t/bench/lines.mjs part"
	[scan-escaped]="$build/rv-ledger-scan escapes"
	[yajl-escaped]="$build/t/bench/floor-keys bare"
)
names=(wc scan scan-2 summary scan-escaped yajl-escaped)
slow=(node jq)
if g++ -O2 -o simdjson "$source/t/bench/simdjson.cpp" -lsimdjson 2>/dev/null; then
	command[simdjson]="./simdjson whole"
	names+=(simdjson)
else
	echo "scan: no simdjson: it needs the Debian packages g++ and libsimdjson-dev" >&2
fi

# What is slow or wrong must not be taken for fast: a scan finds the orphans that the ledger has.
orphans=$({ "$build/rv-ledger-scan" whole || true; } | wc -l)
[ "$orphans" -eq "$({ "$build/rv-ledger-scan" --threads 2 whole || true; } | wc -l)" ]
[ "$(wc -l <whole)" -eq "$rows" ]

# took NAME: run it, seconds and peak memory (KiB) into its best.
declare -A best peak
took() {
	local result

	# shellcheck disable=SC2086  # words
	result=$(python3 -Ic '
import os, resource, subprocess, sys, time
began = time.monotonic()
with open("escapes") as stdin:
    status = subprocess.call(sys.argv[1:], stdin=stdin, stdout=subprocess.DEVNULL)
print(int((time.monotonic() - began) * 1e6), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status > 1)' ${command[$1]})
	[ -n "${best[$1]:-}" ] && [ "${best[$1]}" -le "${result% *}" ] || best[$1]=${result% *}
	peak[$1]=${result#* }
}

for ((round = 0; round < rounds; round++)); do
	for name in "${names[@]}"; do
		took "$name"
	done
done
for name in "${slow[@]}"; do
	took "$name"
done

for name in "${names[@]}" "${slow[@]}"; do
	case $name in
	node | jq) file=part ;;
	*-escaped) file=escapes ;;
	*) file=whole ;;
	esac
	awk -v n="$name" -v t="${best[$name]}" -v bytes="$(stat -c %s $file)" -v peak="${peak[$name]}" 'BEGIN {
		printf "%-13s %.3f s, %5.0f MB/s, peak %.0f MB\n", n, t / 1e6, bytes / t, peak * 1024 / 1e6 }'
done
status=0
# check WHAT VALUE least|most LIMIT
check() {
	awk -v what="$1" -v value="$2" -v how="$3" -v limit="$4" 'BEGIN {
		printf "%-44s %.2f (at %s %s)\n", what, value, how, limit
		exit how == "least" ? value < limit : value > limit }' || status=1
}
div() {
	awk -v a="$1" -v b="$2" 'BEGIN { print a / b }'
}
check 'one thread, GB a second' "$(div "$(stat -c %s whole)" "$((best[scan] * 1000))")" least 1.2
check 'one thread against wc -l' "$(div "${best[scan]}" "${best[wc]}")" most 6
check 'two threads against one' "$(div "${best[scan]}" "${best[scan-2]}")" least 1.6
check 'rows with escapes against bare yajl' "$(div "${best[yajl-escaped]}" "${best[scan-escaped]}")" least 0.9
check 'peak of one thread, MB' "$(div "$((peak[scan] * 1024))" 1000000)" most 150
exit "$status"

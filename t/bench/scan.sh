#!/bin/bash
# rv-ledger-scan beside wc, jq, node and simdjson, on the same ledger.
set -euo pipefail
# shellcheck source=t/bench/bounds.bash
. "$(dirname "$0")/bounds.bash"

usage() {
	cat <<'USAGE'
usage: t/bench/scan.sh [--rows N] [--rounds N] [BUILD]

Measure, with the programs built in BUILD (default: build), a scan of a ledger of N rows in the page cache:
rv-ledger-scan with one thread and with two, two scans at once (what two threads can win here at most),
wc -l, and simdjson, which parses each line and takes the members that pairing needs, where it can be
compiled; jq and node on a sixteenth of the rows, since they are slow and node cannot hold all.  And rows
with escapes, and with values in values, beside yajl's bare events.  The rounds are interleaved, the best of
each counts.

      --rows N    rows (default 2400000, 1.2 GB in $TMPDIR)
      --rounds N  rounds (default 5)
  -h, --help      print this and exit

One line a figure, then the ratios and what they should be.
Exit status: 0 all are reached, 1 one is not, 2 usage, 5 something is missing.
USAGE
}

rows=2400000
rounds=5
arguments 'rows rounds' "$@"
begin 'node jq python3' rv-ledger-scan t/bench/ledger t/bench/floor-keys
cd "$work"
"$build/t/bench/ledger" "$rows" >whole
"$build/t/bench/ledger" $((rows / 16)) >part
"$build/t/bench/ledger" $((rows / 16)) escaped >rows.escaped
"$build/t/bench/ledger" $((rows / 16)) nested >rows.nested

declare -A command=(
	[wc]="wc -l whole"
	[scan]="$build/rv-ledger-scan whole"
	[scan-2]="$build/rv-ledger-scan --threads 2 whole"
	[summary]="$build/rv-ledger-scan --format summary whole"
	[jq]="jq -c . part"
	[node]="node $source/t/bench/lines.mjs part"
	[scan-escaped]="$build/rv-ledger-scan rows.escaped"
	[yajl-escaped]="$build/t/bench/floor-keys bare"
	[scan-nested]="$build/rv-ledger-scan rows.nested"
	[yajl-nested]="$build/t/bench/floor-keys bare"
)
names=(wc scan scan-2 summary scan-escaped yajl-escaped scan-nested yajl-nested)
slow=(node jq)
if g++ -O2 -o simdjson "$source/t/bench/simdjson.cpp" -lsimdjson 2>/dev/null; then
	command[simdjson]="./simdjson whole"
	names+=(simdjson)
else
	echo "scan: no simdjson: it needs the Debian packages g++ and libsimdjson-dev" >&2
fi

# What is slow or wrong must not be taken for fast: a scan finds the orphans that the ledger has.
"$build/rv-ledger-scan" whole >orphans || [ $? -eq 1 ]
"$build/rv-ledger-scan" --threads 2 whole >orphans-2 || [ $? -eq 1 ]
[ "$(jq -r .attemptId orphans | sort | md5sum)" = "$(awk -F'"attemptId":"' '{ id = substr($2, 1, 36); if (/^{"phase":"intent"/) open[id]; else delete open[id] }
	END { for (id in open) print id }' whole | LC_ALL=C sort | md5sum)" ]
cmp orphans orphans-2
[ "$(wc -l <whole)" -eq "$rows" ]

# The file that it reads.
file_of() {
	case $1 in
	node | jq) echo part ;;
	*-escaped) echo rows.escaped ;;
	*-nested) echo rows.nested ;;
	*) echo whole ;;
	esac
}

# took NAME: run it, microseconds and peak memory (KiB) into its best.
declare -A peak
took() {
	local result

	# shellcheck disable=SC2086  # words
	result=$(python3 -Ic '
import resource, subprocess, sys, time
began = time.monotonic()
with open(sys.argv[1]) as stdin:
    status = subprocess.call(sys.argv[2:], stdin=stdin, stdout=subprocess.DEVNULL)
print(int((time.monotonic() - began) * 1e6), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status > 1)' "$(file_of "$1")" "${first[@]}" ${command[$1]})
	best "$1" "${result% *}"
	peak[$1]=${result#* }
}

# Two of one thread each, side by side.
took_both() {
	local start=$EPOCHREALTIME end one two

	"${first[@]}" "$build/rv-ledger-scan" whole >/dev/null &
	one=$!
	"${first[@]}" "$build/rv-ledger-scan" whole >/dev/null &
	two=$!
	wait "$one" || [ $? -eq 1 ]
	wait "$two" || [ $? -eq 1 ]
	end=$EPOCHREALTIME
	best both $((${end/[.,]/} - ${start/[.,]/}))
}

for ((round = 0; round < rounds; round++)); do
	for name in "${names[@]}"; do
		took "$name"
	done
	took_both
done
for name in "${slow[@]}"; do
	took "$name"
done

for name in "${names[@]}" "${slow[@]}"; do
	awk -v n="$name" -v t="${best[$name]}" -v bytes="$(stat -c %s "$(file_of "$name")")" -v peak="${peak[$name]}" 'BEGIN {
		printf "%-13s %.3f s, %5.0f MB/s, peak %.0f MB\n", n, t / 1e6, bytes / t, peak * 1024 / 1e6 }'
done
bound 'one thread, GB a second' "$(ratio "$(stat -c %s whole)" "${best[scan]}000")" least 1.2
bound 'one thread against wc -l' "$(ratio "${best[scan]}" "${best[wc]}")" most 6
bound 'two threads against one' "$(ratio "${best[scan]}" "${best[scan-2]}")" least 1.6
printf '%-44s %.2f\n' 'two scans at once against one after another' "$(ratio $((2 * best[scan])) "${best[both]}")"
bound 'rows with escapes against bare yajl' "$(ratio "${best[yajl-escaped]}" "${best[scan-escaped]}")" least 0.9
bound 'values in values against bare yajl' "$(ratio "${best[yajl-nested]}" "${best[scan-nested]}")" least 0.9
bound 'peak of one thread, MB' "$(ratio $((peak[scan] * 1024)) 1000000)" most 150
exit "$status"

#!/bin/bash
# What --sandbox kernel adds to a dispatch, beside what bwrap adds.
set -euo pipefail
# shellcheck source=t/bench/bounds.bash
. "$(dirname "$0")/bounds.bash"

usage() {
	cat <<'USAGE'
usage: t/bench/kernel.sh [--rounds N] [BUILD]

Measure, with the programs built in BUILD (default: build): a dispatch of /bin/true by rv-exec --stream --jobs 1
with --sandbox none, kernel and bwrap, and posix_spawn and wait of the same, in turn, ten at a time; medians.

      --rounds N  rounds (default 40)
  -h, --help      print this and exit

One line a figure; what the sandboxes add to none has bounds.
Exit status: 0 all are reached, 1 one is not, 2 usage, 5 something is missing.
USAGE
}

rounds=40
arguments 'rounds' "$@"
begin 'bwrap' all t/bench/rounds
cd "$work"

streams=()
for sandbox in none kernel bwrap; do
	streams+=("$build/rv-exec --stream --jobs 1 --sandbox $sandbox --workdir-base $work -- /bin/true")
done
"${first[@]}" "$build/t/bench/rounds" "$rounds" 10 /bin/true "${streams[@]}" >figures
mapfile -t took < <(cut -d' ' -f1 figures)
printf '%-44s %s ms\n' 'bare posix_spawn and wait' "$(sed -n '1s/^[^ ]* \([^ ]*\).*/\1/p' figures)" \
	'a dispatch, --sandbox none' "${took[0]}" '--sandbox kernel' "${took[1]}" '--sandbox bwrap' "${took[2]}"
kernel=$(awk -v a="${took[1]}" -v b="${took[0]}" 'BEGIN { print a - b }')
bwrap=$(awk -v a="${took[2]}" -v b="${took[0]}" 'BEGIN { print a - b }')
bound 'ms that kernel adds' "$kernel" most 2
bound 'of what bwrap adds' "$(ratio "$kernel" "$bwrap")" most 0.7
exit "$status"

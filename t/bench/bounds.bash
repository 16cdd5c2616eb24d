# What the benches share: their command line and their beginning, a figure beside its bound, and programs that are
# measured on a busy machine.  Each has its own usage.
# shellcheck shell=bash
# shellcheck disable=SC2034  # they are its users'

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# arguments 'NAME...' WORD...: numbers of the options --NAME into variables of these names, and $build.
arguments() {
	local name names=" $1 "

	shift
	while [[ ${1:-} == -* ]]; do
		name=${1#--}
		case $1 in
		-h | --help)
			usage
			exit 0
			;;
		esac
		[[ $names == *" $name "* && ${2:-} =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
		printf -v "$name" '%s' "$2"
		shift 2
	done
	[ $# -le 1 ] || { usage >&2; exit 2; }
	build=$(cd "${1:-build}" && pwd) || exit 5
}

# begin 'PROGRAM...' TARGET...: what must be here, what must be built, and $work, a directory that goes at the end.
begin() {
	local program

	for program in $1 make; do
		command -v "$program" >/dev/null || { echo "${0##*/}: $program is missing" >&2; exit 5; }
	done
	shift
	make -s -C "$build" "$@" >&2
	work=$(mktemp -d "${TMPDIR:-/tmp}/rv-bench.XXXXXX")
	trap 'rm -rf "$work"' EXIT
}

status=0 # of the bench: 1 once a bound is missed

# RV_BENCH_REALTIME: what is measured runs before all else on the machine.
first=()
[ -z "${RV_BENCH_REALTIME:-}" ] || first=(chrt -f 1)

# bound WHAT VALUE least|most LIMIT
bound() {
	awk -v what="$1" -v value="$2" -v how="$3" -v limit="$4" 'BEGIN {
		good = how == "least" ? value + 0 >= limit + 0 : value + 0 <= limit + 0
		printf "%-44s %.*f (at %s %s)%s\n", what, value < 1000 ? 2 : 0, value, how, limit, good ? "" : ": missed"
		exit !good }' || status=1
}

# ratio A B
ratio() {
	awk -v a="$1" -v b="$2" 'BEGIN { print a / b }'
}

# best NAME VALUE: of several rounds the smallest counts, in best[NAME].
declare -A best
best() {
	[ -n "${best[$1]:-}" ] && [ "${best[$1]}" -le "$2" ] || best[$1]=$2
}

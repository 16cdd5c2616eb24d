# What the benches share: a figure beside its bound, and programs that are measured on a busy machine.
# shellcheck shell=bash
# shellcheck disable=SC2034  # they are its users'

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

#!/bin/bash
# What a dispatch in a container takes beside the engine's own client.
set -euo pipefail
# shellcheck source=t/bench/bounds.bash
. "$(dirname "$0")/bounds.bash"
# shellcheck source=t/container.bash
. "$source/t/container.bash"

usage() {
	cat <<'USAGE'
usage: t/bench/container.sh [--rounds N] [BUILD]

Measure, with the programs built in BUILD (default: build): a dispatch of `true` in a container by rv-exec --stream
--jobs 1, and a bare `podman run --rm` of the same with the same flags, in turn, four at a time; medians.

      --rounds N  rounds (default 12)
  -h, --help      print this and exit

One line a figure; the ratio has a bound.
Exit status: 0 it is reached, 1 it is not, 2 usage, 5 something is missing.
USAGE
}

rounds=12
arguments 'rounds' "$@"
begin 'podman runc busybox' all t/bench/rounds
make_image >/dev/null
cd "$work"
mkdir dir

bare="$(command -v podman) --runtime runc run --rm --name bare -i --network none --read-only --memory 256m --cpus 1.0 --pids-limit 128
	--cap-drop ALL --security-opt no-new-privileges --pull never --log-driver none --stop-timeout 0 --workdir /work
	--mount type=bind,source=$work/dir,target=/work -e HOME ${ENGINE_ARGS[1]} ${ENGINE_ARGS[3]} $IMAGE true"
stream="$build/rv-exec --stream --jobs 1 --workdir-base $work --executor container --engine '$ENGINE' ${ENGINE_ARGS[*]} --image $IMAGE -- true"
read -ra figures < <("${first[@]}" "$build/t/bench/rounds" "$rounds" 4 "$bare" "$stream")
[ ${#figures[@]} -eq 4 ] || exit 1
printf '%-44s %s ms\n' 'a bare podman run' "${figures[1]}" 'a dispatch in a container' "${figures[0]}"
bound 'of the bare one' "${figures[2]}" most 1.1
exit "$status"

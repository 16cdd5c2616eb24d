# The suites kernel and container of rv-conform: they hold here, they fail where the host refuses, and each check of
# containers has a mutant (those of the kernel sandbox are in t/6050).
load helper
load exec
load conform
load container

place() {
	PLACE=(--image "$IMAGE" --engine "$ENGINE" "${ENGINE_ARGS[@]}")
}

# What a mutant kept of its containers.
teardown() {
	case $BATS_TEST_DESCRIPTION in "each check of containers"*) podman ps -aq --filter name=rv-mutant- | xargs -r podman rm -f >/dev/null ;; esac
}

@test "the kernel sandbox keeps every promise of its suite" {
	rv_need kernel-sandbox
	rv-conform --suite kernel --format jsonl --timeout 60s >out.jsonl || { grep '"status":"fail"' out.jsonl; false; }
	rv_equal '' "$(ids skip out.jsonl)" 'skipped'
	[ "$(ids pass out.jsonl | wc -l)" -ge 20 ]
}

@test "a host that lets no sandbox be made fails the suite, with the remedy, and skips nothing" {
	rv_need root kernel-sandbox
	unshare --mount --user --map-root-user bash -c 'echo 0 >/proc/sys/user/max_net_namespaces' || skip 'limits of namespaces cannot be set here'
	rv_fails 1 unshare --user --map-root-user --mount bash -c "echo 0 >/proc/sys/user/max_net_namespaces; exec rv-conform --suite kernel --only kernel.said --only kernel.work --format jsonl" >out.jsonl
	rv_equal 'kernel.work kernel.said' "$(ids fail out.jsonl | paste -sd ' ')"
	grep -q max_net_namespaces out.jsonl
}

@test "containers keep every promise of their suite" {
	can_container
	place
	rv-conform --suite container --format jsonl --timeout 120s --jobs 3 "${PLACE[@]}" >out.jsonl || { grep '"status":"fail"' out.jsonl; false; }
	rv_equal '' "$(ids skip out.jsonl)" 'skipped'
	rv_equal "$(rv-conform --list --suite container | cut -f 2)" "$(ids pass out.jsonl)"
}

@test "each check of containers has a mutant that turns it red" {
	can_container
	place
	only=()
	for mutant in $("$RV_PYTHON" -IS "$RV_SRC/t/mutants/mutant.py" --list | member name /dev/stdin | grep ^container-); do
		only+=(--only "$mutant")
	done
	"$RV_PYTHON" -I "$RV_SRC/scripts/mutants" --targets --jobs 3 --bin "$RV_BIN" "${PLACE[@]}" "${only[@]}" >matrix.txt 2>problems.txt || { cat problems.txt; false; }
	[ ! -s problems.txt ]
	rv-conform --list --suite container | cut -f 2 | while read -r id; do
		grep -q "^$id .*!" matrix.txt || rv_die "no mutant turns $id red"
	done
}

@test "without an image containers are asked for in vain, and an engine that fails fails the suite" {
	rv_fails 2 rv-conform --suite container
	rv_fails 2 rv-conform --suite key --engine podman
	rv_fails 5 rv-conform --only 'container.*'
	rv_fails 1 rv-conform --suite container --image x --engine /bin/false --format jsonl >out.jsonl
	rv_equal "$(rv-conform --list --suite container | cut -f 2 | grep -v container.missing)" "$(ids fail out.jsonl)"
}

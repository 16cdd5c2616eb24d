# What the tests of containers share, behind helper.bash and exec.bash: an engine that runs here, and an image that
# holds busybox and nothing else.

# The engine's client, its global flags, and the flags of `run` that this machine needs.
ENGINE='podman --runtime runc'
ENGINE_ARGS=(--engine-arg --ulimit=nofile=1024:1024 --engine-arg --ulimit=nproc=1024:1024)
IMAGE=localhost/rv-tools-test:2

# Does podman run a container for this user, with runc, and limit it?  An ordinary user needs a home and a runtime
# directory, and control groups of version 2.
can_container() {
	local known

	rv_need podman runc busybox
	known=$BATS_RUN_TMPDIR/containers.$(id -u)
	if [ ! -s "$known" ]; then # once for all tests of a run
		if { limits_containers && runs_containers; } >probe.log 2>&1; then echo yes; else tail -n 1 probe.log | grep . || echo 'it says nothing'; fi >probe.known
		mv probe.known "$known"
	fi
	[ "$(cat "$known")" != yes ] || return 0
	[ "${RV_MUST_WORK:-}" != 1 ] || [ "$(id -u)" -ne 0 ] || rv_die "podman runs no container here and RV_MUST_WORK=1: $(cat "$known")" || return
	skip "podman runs no container for $(id -un) here: $(cat "$known")"
}

limits_containers() {
	[ "$(podman info --format '{{.Host.Security.Rootless}} {{.Host.CgroupsVersion}}')" != 'true v1' ] ||
		{ echo 'it limits nothing without root where control groups are of version 1'; return 1; }
}

runs_containers() {
	make_image && $ENGINE run --rm --network none --pull never "${ENGINE_ARGS[1]}" "${ENGINE_ARGS[3]}" "$IMAGE" true
}

# Made once: a tarball of busybox-static, imported.
make_image() {
	local root

	podman image exists "$IMAGE" && return
	root=$(mktemp -d)
	mkdir "$root/bin" "$root/tmp" "$root/work" "$root/proc" "$root/dev" "$root/sys"
	cp "$(command -v busybox)" "$root/bin/busybox"
	for applet in base64 cat cut dd echo env grep head id kill ls mkdir mv printf ps pwd rm sh sleep tail touch tr true wc yes; do
		ln -s busybox "$root/bin/$applet"
	done
	tar --owner=0 --group=0 -C "$root" -cf "$root.tar" . && podman import "$root.tar" "$IMAGE"
	rm -rf "$root" "$root.tar"
}

# c OPTION... -- COMMAND...: rv-exec in a container.
c() {
	x --engine "$ENGINE" "${ENGINE_ARGS[@]}" --image "$IMAGE" "$@"
}

containers() {
	podman ps -a --filter label=rv-exec.attempt --format '{{.Names}}'
}

# has_container ATTEMPT
has_container() {
	containers | grep -qx "rv-exec-$1"
}

no_container() {
	! has_container "$1"
}

# The attempts of the intents of ./ledger.
attempts() {
	[ ! -s ledger ] || rows ledger 'r["phase"] == "intent"' | /usr/bin/python3 -Ic 'import json, sys; [print(json.loads(l)["attemptId"]) for l in sys.stdin]'
}

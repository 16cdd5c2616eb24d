# rv-exec: a tool in a container, by podman; by docker's command line with a recording stand-in.
load helper
load exec
load container

setup() {
	case $BATS_TEST_DESCRIPTION in stand-in* | rootless*) ;; *) can_container ;; esac
}

teardown() {
	[ -z "${innocent:-}" ] || kill "$innocent" 2>/dev/null || true
	[ -z "${service:-}" ] || { kill "$service" && wait "$service"; } 2>/dev/null || true
}

@test "no network, a read-only root, no capability, the workdir at /work, the limits" {
	c --json --new-call --ledger ledger --memory 64m --pids-limit 50 --setenv S=s3cret --allow-env GIVEN -- /bin/sh -c '
		[ "$(pwd)" = /work ] && echo x >here && [ "$(cat here)" = x ] || exit 10
		(touch /x) 2>/dev/null && exit 11
		[ "$(grep -c : /proc/net/dev)" = 1 ] || exit 12
		grep -q "^CapEff:.0000000000000000" /proc/self/status && grep -q "^NoNewPrivs:.1" /proc/self/status || exit 13
		[ "$S" = s3cret ] && [ "$RULVAR_TOOL" = t ] && [ -z "$XDG_RUNTIME_DIR" ] || exit 14
		cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null | grep -qx 67108864 || exit 15
		cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null | grep -qx 50 || exit 16
		exec cat' >reply 2>stderr || rv_die "$(cat stderr)"
	holds 'reply["result"]["tool"] == "t"' 'reply["sandbox"] == reply["containment"] == "container"' 'reply["survivors"] == 0' \
		'[(r["executor"], r["sandbox"], r["containment"]) for r in intents] == [("container",) * 3]' 'outcomes[0]["outcome"] == "ok"'
	no_container "$(attempts)"
	no_workdir
	# nobody gave rv-exec a standard input: the tool has its line and then the end all the same
	rv_equal '"t"' "$(within 20000 c --timeout 15s -- /bin/sh -c 'cat >here; read -r x && exit 9; cut -d: -f2 here | cut -d, -f1' <&-)"
}

@test "125, 126 and 127 of a tool are exit; the engine's own are spawn" {
	for status in 125 126 127; do
		x --json --engine "$ENGINE" "${ENGINE_ARGS[@]}" --image "$IMAGE" --new-call --ledger ledger -- /bin/sh -c "exit $status" >reply 2>stderr || true
		holds 'code == "exit"' "reply['exitCode'] == $status" "outcomes[0]['exitCode'] == $status"
		rm ledger
	done
	x --json --engine "$ENGINE" "${ENGINE_ARGS[@]}" --image "$IMAGE" --new-call --ledger ledger -- /bin/no-such >reply 2>stderr || true
	holds 'code == "spawn"' "$NOTHING_RAN"
	no_container "$(attempts)"
	rm ledger
	x --json --engine "$ENGINE" "${ENGINE_ARGS[@]}" --engine-arg --no-such-flag --image "$IMAGE" --new-call --ledger ledger -- /bin/true >reply 2>stderr || true
	holds 'code == "spawn"' '"no-such-flag" in reply["error"]["message"]' "$NOTHING_RAN"
	no_workdir
}

@test "a missing image is config, before anything is written" {
	fails config 125 x --engine "$ENGINE" --image localhost/no-such-image:1 --new-call --ledger ledger -- /bin/true
	grep -q 'no-such-image' stderr
	[ ! -s ledger ]
	no_workdir
}

@test "stand-in: a bound that is none to an engine is config, and nothing is run" {
	mkdir bin
	tool bin/docker <<-'DOCKER'
		#!/bin/sh
		case $1 in
		image) echo sha256:1 ;;
		run) echo 1; : >"$RECORD/ran" ;;
		rm) for name; do :; done; echo "$name" ;;
		esac
	DOCKER
	export RECORD=$PWD PATH="$PWD/bin:$PATH"
	for none in --network= --memory= --memory=0 --memory=0m --memory=-1 --memory=0.00 --cpus= --cpus=0 --cpus=0.0 --cpus=-1 --cpus=0.001 --cap-drop=; do
		fails config 125 x --launcher-env RECORD --ledger ledger --new-call --image the-image "$none" -- /bin/true || rv_die "$none" || return
		grep -q -e "${none%%=*}" stderr || rv_die "$none: $(cat stderr)" || return
		[ ! -e ran ] && [ ! -s ledger ] || rv_die "run with $none" || return
	done
	for some in --memory=6m --memory=1.5g --memory=0.5g --memory=10000000 --cpus=2 --cpus=0.5 --cpus=.25 --cpus=0.05 --cpus=10 --network=a --cap-drop=CHOWN; do
		rv_equal 1 "$(x --launcher-env RECORD --image the-image "$some" -- /bin/true)" "$some"
	done
}

@test "a tool that is deaf to SIGTERM is killed with its container, and its client" {
	rv_fails 124 within 15000 c --timeout 2s --kill-grace 500ms --new-call --ledger ledger -- /bin/sh -c 'trap "" TERM; sleep 300 & sleep 300; sleep 300' 2>stderr
	no_container "$(attempts)"
	holds 'outcomes[0]["outcome"] == "timeout"'
	no_workdir
}

@test "a removal before the create: killed at any time of the start, nothing is left" {
	for ms in 30 150 400 700; do
		rv_fails 124 c --timeout ${ms}ms --kill-grace 50ms --new-call --ledger ledger -- /bin/sleep 300 2>stderr
	done
	rv_equal 4 "$(attempts | wc -l)"
	for attempt in $(attempts); do
		no_container "$attempt" || rv_die "rv-exec-$attempt is left"
	done
	no_workdir
}

# reap ATTEMPT [ENGINE]: what it says of this one; the engine may have others' containers, which it keeps.
reap() {
	rv-exec --reap --ledger ledger --workdir-base "$PWD/dirs" --engine "${2:-$ENGINE}" >all
	grep -e "rv-exec-$1" -e "\"$PWD/dirs/" all
}

@test "SIGTERM and SIGKILL of rv-exec, and no value in any argv meanwhile" {
	for signal in TERM KILL; do
		rm -f ledger
		S3=s3cret-in-no-argv c --timeout 60s --kill-grace 1s --allow-env S3 --new-call --ledger ledger -- /bin/sh -c 'sleep 300' >out 2>stderr 3>&- &
		pid=$!
		rv_until eval '[ -n "$(attempts)" ] && has_container "$(attempts)"'
		for _ in 1 2 3 4 5 6 7 8; do
			! grep -lz 's3cret-in-no-arg[v]' /proc/[0-9]*/cmdline 2>/dev/null | grep . || rv_die "a value is in an argv"
		done
		kill -$signal "$(rv_exec_of $pid)"
		wait $pid || true
		rv_until no_container "$(attempts)"
		[ $signal = KILL ] || { no_workdir; holds 'outcomes[0]["outcome"] == "error"'; }
	done
	# what is left of the killed one is its orphan and its workdir
	[ "$(ls dirs | wc -l)" = 1 ]
	reap "$(attempts)" >reaped
	rv_equal "$(rows ledger 'r["phase"] == "intent"' | member workdir)" "$(member path reaped)"
	rv_equal removed "$(member action reaped)"
	no_workdir
}

@test "--reap removes what rv-exec and its worker left, and nothing that runs" {
	c --timeout 60s --new-call --ledger ledger -- /bin/sleep 300 >out 2>stderr 3>&- &
	pid=$!
	rv_until eval '[ -n "$(attempts)" ] && has_container "$(attempts)"'
	attempt=$(attempts)
	# running: kept, and no status of its own
	reap "$attempt" >reaped
	rv_equal 2 "$(grep -c '"action":"kept"' reaped)"
	has_container "$attempt"
	exec_pid=$(rv_exec_of $pid)
	workers=$(children "$exec_pid")
	# shellcheck disable=SC2086 # one or more pids
	kill -STOP "$exec_pid" && kill -9 $workers && kill -9 "$exec_pid"
	wait $pid || true
	has_container "$attempt" || rv_die "nothing is left to be reaped"
	reap "$attempt" >reaped
	rv_equal 2 "$(grep -c '"action":"removed"' reaped)"
	no_container "$attempt"
	no_workdir
}

# A runtime that makes the container and then, before the engine has heard of it, kills the engine's client; where
# ./dying is there, rv-exec and its worker before that.
half_runtime() {
	tool half <<-'HALF'
		#!/bin/bash
		case " $* " in *' create '*) ;; *) exec runc "$@" ;; esac
		runc "$@" || exit
		echo "${@: -1}" >"${0%/*}/id"
		name=$(tr '\0' '\n' </proc/$PPID/cmdline | grep -A1 -x -- -n | tail -n 1)
		client=$(pgrep -o -f -- "^[^ ]*podman .*run --name $name ")
		if [ -e "${0%/*}/dying" ]; then
			worker=$(cut -d' ' -f4 "/proc/$client/stat")
			host=$(cut -d' ' -f4 "/proc/$worker/stat")
			kill -STOP "$host" && kill -9 "$worker" "$host"
		fi
		kill -9 "$client"
	HALF
}

held() {
	pgrep -f -- "-n rv-exec-$1 " >/dev/null
}

# Has the runtime of half_runtime nothing of the container that it made last, and the kernel no control group?
runtime_forgot() {
	! runc state "$(cat id)" >/dev/null 2>&1 && [ -z "$(find /sys/fs/cgroup -type d -name "*$(cat id)*")" ]
}

@test "a client that dies between create and start: what held the container is ended, too" {
	half_runtime
	half=(--engine "podman --runtime $PWD/half" "${ENGINE_ARGS[@]}" --image "$IMAGE" --new-call --ledger ledger)
	rv_fails 126 x "${half[@]}" --timeout 20s -- /bin/sleep 300 2>stderr
	! held "$(attempts)" || rv_die "what held the container is left"
	no_container "$(attempts)"
	no_workdir
	runtime_forgot || rv_die "the runtime still has $(cat id)"
	touch dying
	rm ledger
	x "${half[@]}" --timeout 60s -- /bin/sleep 300 >out 2>stderr 3>&- || true
	runc state "$(cat id)" >/dev/null
	reap "$(attempts)" "podman --runtime $PWD/half" >reaped
	rv_equal 2 "$(grep -c '"action":"removed"' reaped)"
	runtime_forgot || rv_die "the runtime still has $(cat id) behind --reap"
	no_container "$(attempts)"
	no_workdir
	rm ledger
	x "${half[@]}" --timeout 60s -- /bin/sleep 300 >out 2>stderr 3>&- || true
	attempt=$(attempts)
	# the engine itself forgets it, and leaves the processes: else there is nothing to see here
	rv_until podman rm -f -v "rv-exec-$attempt" >/dev/null
	no_container "$attempt"
	held "$attempt"
	# somebody whose command line has the name in another place is nobody's helper
	sh -c 'while :; do sleep 1; done' sh "-n" "rv-exec-${attempt}x" "about rv-exec-$attempt" 3>&- &
	innocent=$!
	reap "$attempt" >reaped
	rv_equal "rv-exec-$attempt" "$(grep '"container".*"removed"' reaped | member name)"
	rv_equal 2 "$(grep -c '"action":"removed"' reaped)"
	rv_until eval '! held "$attempt"'
	kill -0 $innocent || rv_die "an innocent one was ended"
	no_workdir
	runc delete --force "$(cat id)" # who forgets it by hand has that to do
}

@test "a client below a script, and a runtime whose path has blanks: what it left in the create is deleted, too" {
	half_runtime
	mkdir 'a dir'
	mv half 'a dir/half'
	tool script <<-'SCRIPT'
		#!/bin/sh
		podman "$@"
		exit $?
	SCRIPT
	rv_fails 126 x --json --engine "$PWD/script --runtime '$PWD/a dir/half'" "${ENGINE_ARGS[@]}" --image "$IMAGE" --new-call --ledger ledger --timeout 20s -- \
		/bin/sleep 300 >reply 2>stderr
	holds 'reply["survivors"] == 0'
	mv 'a dir/id' id
	runtime_forgot || rv_die "the runtime still has $(cat id): $(runc delete --force "$(cat id)" 2>&1)"
	no_container "$(attempts)"
	no_workdir
}

@test "memory: a bomb dies, and the reply says so" {
	fails exit 1 c --memory 32m -- /bin/sh -c 'x=a; while :; do x=$x$x; done'
	grep -q 'memory (--memory 32m)' stderr
}

@test "input, output and the executor's tag in a stream; a command is looked for in the image" {
	printf '{"tool":"t","args":{"n":%d},"executor":"%s","ctx":{"runId":"r","idempotencyKey":"k"}}\n' 1 container 2 subprocess >requests
	rv-exec --stream --workdir-base "$PWD" --ledger ledger --engine "$ENGINE" "${ENGINE_ARGS[@]}" --image "$IMAGE" -- cat <requests >replies
	rv_equal '[["container", 1], ["none", 2]]' "$(/usr/bin/python3 -c 'import json; print(json.dumps([[r["sandbox"], r["result"]["args"]["n"]] for r in map(json.loads, open("replies"))]))')"
	for attempt in $(attempts); do rv_until no_container "$attempt"; done
}

# A real remote engine: podman's own service, behind a socket.
remote_engine() {
	podman --runtime runc system service --time=0 "unix://$PWD/podman.sock" >service.log 2>&1 3>&- &
	service=$!
	export CONTAINER_HOST=unix://$PWD/podman.sock
	rv_until podman --remote version >/dev/null 2>&1
}

@test "a remote engine: result, statuses, a deadline, a missing image, and nothing left" {
	remote_engine
	remote=(--engine 'podman --remote' "${ENGINE_ARGS[@]}" --launcher-env CONTAINER_HOST --new-call)
	SECRET=s3cret x "${remote[@]}" --json --ledger ledger --image "$IMAGE" --allow-env SECRET -- /bin/sh -c \
		'[ "$SECRET" = s3cret ] && [ -z "$CONTAINER_HOST" ] && [ "$(grep -c : /proc/net/dev)" = 1 ] && echo x >here && exec cat' >reply
	holds 'reply["result"]["tool"] == "t"' 'reply["survivors"] == 0' 'intents[0]["containment"] == "container"' 'outcomes[0]["outcome"] == "ok"'
	rv_fails 1 x "${remote[@]}" --image "$IMAGE" -- /bin/sh -c 'exit 125' 2>stderr
	rv_fails 124 within 20000 x "${remote[@]}" --ledger ledger --image "$IMAGE" --timeout 3s --kill-grace 500ms -- /bin/sh -c 'trap "" TERM; sleep 300' 2>stderr
	for attempt in $(attempts); do
		no_container "$attempt" && ! held "$attempt" || rv_die "rv-exec-$attempt is left"
	done
	fails config 125 x "${remote[@]}" --image localhost/no-such-image:1 -- /bin/true
	kill "$service" && wait "$service" || true
	service=
	# the engine is away: refused before anything is written
	rm ledger
	fails config 125 x "${remote[@]}" --ledger ledger --image "$IMAGE" -- /bin/true
	[ ! -s ledger ]
	no_workdir
}

@test "the page's examples of containers, as written" {
	# its image, with a tool of its own
	mkdir -p root/bin root/tmp root/work root/proc root/dev root/sys
	cp "$(command -v busybox)" root/bin/sh
	printf '#!/bin/sh\nread -r line\necho 3\n' >root/bin/sum
	chmod 755 root/bin/sum
	tar -C root -c . | podman import - localhost/tools:1 >/dev/null 2>&1
	# what this machine needs beside the examples' words
	printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n' >containers.conf
	mkdir bin
	tool bin/podman <<-PODMAN
		#!/bin/sh
		CONTAINERS_CONF=$PWD/containers.conf exec $(command -v podman) "\$@"
	PODMAN
	PATH="$PWD/bin:$PATH" SHARED=$PWD/shared
	export SHARED
	mkdir shared
	remote_engine
	awk '/^\.\\" with podman/ { wanted = 1; n++; next } /^\.Ed/ { wanted = 0 } wanted && !/^\./ { gsub(/\\e/, "\\"); print >("example." n) }' "$RV_SRC/man/rv-exec.1"
	rv_equal 3 "$(printf '%s\n' example.* | wc -l)"
	for example in example.*; do
		rv_equal 3 "$(bash -e "$example" 2>stderr)" "$(cat "$example" stderr)"
	done
	podman rmi -f localhost/tools:1 >/dev/null
}

# Podman as an ordinary user: with an image and a home of its own, and one user id where it has no others.
@test "rootless: a tool with its limits, or config where podman would run it without" {
	rv_need podman runc busybox user
	dir=$(rv_user_dir)
	mkdir -m 700 "$dir/home" "$dir/run"
	[ "$(id -u)" -ne 0 ] || chown "$RV_USER" "$dir/home" "$dir/run"
	cp "$RV_SRC/t/container.bash" "$dir"
	as() {
		(cd "$dir" && TMPDIR=$dir HOME=$dir/home XDG_RUNTIME_DIR=$dir/run rv_as_user "$@")
	}
	as bash -c '. ./container.bash && runs_containers' >made 2>&1 || {
		skip "podman runs no container for an ordinary user here: $(tail -n 1 made)"
	}
	set -- as "$dir/bin/rv-exec" --json --tool t --workdir-base "$dir" --engine "$ENGINE" "${ENGINE_ARGS[@]}" --image "$IMAGE" --pids-limit 50 -- \
		/bin/sh -c '[ "$(cat /sys/fs/cgroup/pids.max)" = 50 ] && id -u'
	if [ "$(as podman info --format '{{.Host.CgroupsVersion}}')" = v1 ]; then
		rv_fails 125 "$@" >reply
		holds 'code == "config"' '"systemd.unified_cgroup_hierarchy" in reply["error"]["message"]'
	else
		"$@" >reply
		holds 'reply["result"] == 0'
	fi
	as podman unshare rm -rf "$dir/home" 2>/dev/null || true
	[ ! -e "$dir/run/libpod/tmp/pause.pid" ] || kill "$(cat "$dir/run/libpod/tmp/pause.pid")" # which keeps its namespace
}

@test "stand-in for a slow registry: a pull is before the first call, once, and in no call's time" {
	mkdir bin
	tool bin/docker <<-DOCKER
		#!/bin/sh
		echo "\$1" >>"$PWD/asked"
		case \$1 in
		image) [ -e "$PWD/pulled" ] && echo sha256:1 ;;
		pull) sleep 1.5; : >"$PWD/pulled" ;;
		rm) for name; do :; done; echo "\$name" ;;
		run) while [ "\$1" != the-image ]; do shift; done; shift; exec "\$@" ;;
		esac
	DOCKER
	for i in 1 2; do echo '{"tool":"t","args":{},"executor":"container","ctx":{"runId":"r","idempotencyKey":"k'$i'"}}'; done >requests
	stream() {
		PATH="$PWD/bin:$PATH" rv-exec --stream --workdir-base "$PWD" --image the-image --timeout 1s --kill-grace 100ms "$@" -- /bin/echo 5 <requests >replies
	}
	rv_fails 1 stream
	rv_equal 2 "$(grep -c '"code":"config"' replies)"
	rv_equal image "$(sort -u asked)" 'asked, where no pull was wanted'
	stream --pull missing
	rv_equal 2 "$(grep -c '"result":5' replies)"
	stream --pull missing
	rv_equal 1 "$(grep -c pull asked)"
	stream --pull always
	rv_equal 2 "$(grep -c pull asked)"
	rv_equal 2 "$(grep -c '"result":5' replies)"
}

@test "stand-in for engines that limit nothing here: config, whatever their client is called" {
	mkdir bin
	tool bin/docker <<-'DOCKER'
		#!/bin/sh
		case $1 in
		image) echo sha256:1 ;;
		info) printf '%s' "$INFO" ;;
		run) echo "$*" >"$RECORD/ran"; echo 1 ;;
		rm) for name; do :; done; echo "$name" ;;
		esac
	DOCKER
	export RECORD=$PWD PATH="$PWD/bin:$PATH" INFO
	d() {
		"$@" --launcher-env RECORD --launcher-env INFO --ledger ledger --new-call --image the-image -- /bin/true
	}
	for INFO in '{"MemoryLimit":false,"CpuCfsQuota":true,"PidsLimit":true}' '{"MemoryLimit":true,"CpuCfsQuota":false}' '{"PidsLimit":false}' \
		'{"MemoryLimit":true,"CpuCfsQuota":true,"PidsLimit":true,"CgroupDriver":"none"}' \
		'{"host":{"security":{"rootless":true},"cgroupVersion":"v1"}}'; do
		d fails config 125 x || rv_die "$INFO" || return
		grep -qE -e '--(memory|cpus|pids-limit)' stderr && [ ! -e ran ] && [ ! -s ledger ] || rv_die "$INFO: $(cat stderr)" || return
	done
	for INFO in '{"MemoryLimit":true,"CpuCfsQuota":true,"PidsLimit":true,"CgroupDriver":"systemd"}' '{"host":{"security":{"rootless":true},"cgroupVersion":"v2"}}' ''; do
		rv_equal 1 "$(d x)" "$INFO"
		# a podman maps the caller by itself, also below docker's name
		case $INFO in *rootless*) rv_fails 1 grep -q -- ' --user ' ran ;; *) [ "$(id -u)" -eq 0 ] || grep -q -- " --user $(id -u):" ran ;; esac
	done
}

@test "stand-in: what the credentials program left is told, also where the container is certainly gone" {
	freezer=/sys/fs/cgroup/freezer/rv-test-$$
	[ "$(id -u)" -eq 0 ] && mkdir "$freezer" 2>/dev/null || skip 'no freezer of version 1 here, in which a process outlives SIGKILL'
	mkdir bin
	tool bin/docker <<-'DOCKER'
		#!/bin/sh
		case $1 in
		image) echo sha256:1 ;;
		run) exec sleep 300 ;;
		rm) for name; do :; done; echo "$name" ;;
		esac
	DOCKER
	tool mint <<-MINT
		#!/bin/sh
		sleep 60 </dev/null >/dev/null 2>&1 &
		echo \$! >$freezer/cgroup.procs && echo FROZEN >$freezer/freezer.state && echo '{}'
	MINT
	PATH="$PWD/bin:$PATH" x --json --image the-image --credentials "$PWD/mint" --timeout 300ms --kill-grace 100ms -- /bin/true >reply 2>stderr || true
	echo THAWED >"$freezer/freezer.state"
	rv_until rmdir "$freezer"
	rv_equal '1 timeout' "$(member survivors reply) $(member outcome reply)"
}

@test "stand-in for an engine that is slow to put away: the next call need not wait, and no more run at once than --jobs" {
	mkdir bin running
	tool bin/docker <<-'DOCKER'
		#!/bin/bash
		case $1 in
		image) echo sha256:1 ;;
		ps) ;;
		rm)
			sleep 2
			echo "${!#}"
			echo "rm ${!#}" >>"$RECORD/log"
			;;
		run)
			echo run >>"$RECORD/log"
			: >"$RECORD/running/$$"
			ls "$RECORD/running" | wc -l >>"$RECORD/most"
			sleep 0.2
			rm "$RECORD/running/$$"
			echo 1
			;;
		esac
	DOCKER
	export RECORD=$PWD
	for i in 1 2 3; do echo '{"tool":"t","args":{},"executor":"container","ctx":{"runId":"r","idempotencyKey":"k'$i'"}}'; done >requests
	for jobs in 1 2; do
		rm -f log most
		PATH="$PWD/bin:$PATH" rv-exec --stream --jobs $jobs --workdir-base "$PWD" --launcher-env RECORD --image the-image -- /bin/true <requests >replies
		rv_equal 3 "$(grep -c '"result":1' replies)"
		rv_equal "$jobs" "$(sort -n most | tail -1)" 'containers at once'
		# a call has its turn when the one before is answered, and not when its container is gone
		rv_equal 'run run' "$(head -2 log | tr '\n' ' ' | sed 's/ $//')"
		rv_equal 3 "$(grep -c ^rm log)" 'containers removed'
		rv_equal 3 "$(grep ^rm log | sort -u | wc -l)" 'by their names'
	done
	no_workdir
}

@test "stand-in for docker: its command line, its environment, and no value in either argv" {
	mkdir bin
	tool bin/docker <<-'DOCKER'
		#!/bin/bash
		# Records what docker is asked, and runs what it would run, here.
		printf '%s\n' "$*" >>"$RECORD/asked"
		case $1 in
		image) echo sha256:1 ;;
		rm) echo "${!#}" ;;
		ps) ;;
		run)
			env | sort >"$RECORD/env"
			while [ "$1" != the-image ]; do shift; done
			shift
			exec "$@"
			;;
		esac
	DOCKER
	export RECORD=$PWD
	SECRET=s3cret PATH="$PWD/bin:$PATH" DOCKER_HOST=tcp://x x --json --launcher-env RECORD --allow-env SECRET --setenv A=s3cret2 --image the-image \
		--engine-arg --gpus=all --credentials "/bin/echo '{\"TOKEN\":\"s3cret3\"}'" -- /bin/echo 5 >reply 2>stderr || rv_die "$(cat stderr)"
	holds 'reply["result"] == 5' 'reply["containment"] == "container"'
	rv_fails 1 grep -q s3cret asked
	for flag in '--network none' --read-only '--memory 256m' '--cpus 1.0' '--pids-limit 128' '--cap-drop ALL' '--pull never' \
		'--security-opt no-new-privileges' '-e SECRET' '-e A' '-e TOKEN' '-e RULVAR_IDEMPOTENCY_KEY' '--gpus=all the-image /bin/echo 5' \
		'--name rv-exec-' 'target=/work' '-i'; do
		grep -q -- "^run .*$flag" asked || rv_die "no $flag in: $(cat asked)"
	done
	grep -qx SECRET=s3cret env && grep -qx TOKEN=s3cret3 env && grep -qx DOCKER_HOST=tcp://x env
	rv_equal 'image info rm run' "$(cut -d' ' -f1 asked | sort -u | tr '\n' ' ' | sed 's/ $//')"
	# `until` has room for all that may be asked of a slow engine: until then it is no orphan
	PATH="$PWD/bin:$PATH" x --launcher-env RECORD --image the-image --ledger rows --new-call --timeout 1s --ledger-wait 1s -- /bin/echo 5
	/usr/bin/python3 -c 'import json; r = json.loads(open("rows").readline()); w = r["writer"]["until"] - r["startedAt"]; assert w >= 1000 + 5000 + 2 * 10000 + 22000, w'
	# what the client reads itself cannot be another value for the tool
	PATH="$PWD/bin:$PATH" fails config 125 x --launcher-env RECORD --setenv HOME=/work --image the-image -- /bin/echo 5
	# nor may it have one for itself that those who ask after the container, and remove it, do not have
	rm asked
	for value in DOCKER_HOST=tcp://elsewhere CONTAINER_HOST=x HOME=/work LD_PRELOAD=x XDG_DATA_HOME=/x; do
		PATH="$PWD/bin:$PATH" fails config 125 env -u DOCKER_HOST -u HOME rv-exec --tool t --workdir-base "$PWD/dirs" --launcher-env RECORD --setenv "$value" \
			--image the-image -- /bin/echo 5
		PATH="$PWD/bin:$PATH" fails config 125 env -u DOCKER_HOST -u HOME rv-exec --tool t --workdir-base "$PWD/dirs" --launcher-env RECORD \
			--credentials "/bin/echo '{\"${value%%=*}\":\"${value#*=}\"}'" --image the-image -- /bin/echo 5
	done
	rv_fails 1 grep ^run asked
	no_workdir
}

@test "stand-in for an engine that is asked before a removal: slow, refusing, or without the word" {
	mkdir bin
	tool bin/docker <<-'DOCKER'
		#!/bin/bash
		case $1 in
		image) echo sha256:1 ;;
		ps) [ ! -e "$RECORD/container" ] || echo 1 ;;
		container) eval "$ANSWER" ;;
		rm) rm "$RECORD/container" && echo "${!#}" ;;
		run) : >"$RECORD/container"; exec sleep 300 ;;
		esac
	DOCKER
	export RECORD=$PWD
	ask_of() {
		ANSWER=$2 PATH="$PWD/bin:$PATH" rv_fails 124 x --json --launcher-env RECORD --launcher-env ANSWER --timeout 300ms --kill-grace 100ms \
			--image the-image -- /bin/true >reply 2>stderr
		[ ! -e container ] || rv_die "the container is left where the engine is asked '$2'" || return
		rv_equal "$1" "$(member survivors reply)" "$2"
		[ "$1" != null ] || grep -q 'attempt .* may be left' stderr
	}
	# removed in any case; but what the runtime may have is known only by an answer
	ask_of null 'exec sleep 60'
	ask_of null 'echo the database is locked >&2; exit 125'
	ask_of 0 'echo "executing at <.OCIRuntime>: no such field" >&2; exit 1'
	ask_of 0 'printf "created\nabc\n<no value>\n"'
	no_workdir
}

@test "stand-in: a client that ends before its container: killed first, then told, and never as the tool's own end" {
	mkdir bin
	tool bin/docker <<-'DOCKER'
		#!/bin/bash
		case $1 in
		image) echo sha256:1 ;;
		ps) [ ! -e "$RECORD/container" ] || echo 1 ;;
		container) cat "$RECORD/container" ;;
		rm)
			cat "$RECORD/ledger" >"$RECORD/when"
			rm -f "$RECORD/container" && echo "${!#}"
			;;
		run)
			echo "{\"Running\":$RUNNING,\"OOMKilled\":false,\"StartedAt\":\"2026-01-01T00:00:00Z\"}" >"$RECORD/container"
			[ "$KILLED" = no ] || kill -9 $$
			echo 'error during connect: EOF' >&2
			exit 1
			;;
		esac
	DOCKER
	export RECORD=$PWD
	for how in 'yes true' 'no true' 'yes false'; do
		export KILLED=${how% *} RUNNING=${how#* }
		PATH="$PWD/bin:$PATH" rv_fails 1 x --json --launcher-env RECORD --launcher-env KILLED --launcher-env RUNNING --new-call --ledger ledger \
			--image the-image -- /bin/true >reply 2>stderr
		holds 'code == "exit"' '"client" in reply["error"]["message"]' 'reply["exitCode"] is None and reply["signal"] is None' 'reply["survivors"] == 0' \
			'outcomes[0]["exitCode"] is None and outcomes[0]["signal"] is None'
		rv_fails 1 grep -q outcome when
		rm ledger when
	done
	no_workdir
}

@test "stand-in: where rv-exec died its client is asked to end, and only then killed" {
	mkdir bin
	tool bin/docker <<-'DOCKER'
		#!/bin/bash
		case $1 in
		image) echo sha256:1 ;;
		ps) ;;
		rm) [ -e "$RECORD/ended" ] || : >"$RECORD/too-early"; echo "${!#}"; : >"$RECORD/removed" ;;
		run)
			trap 'sleep 0.3; : >"$RECORD/ended"; exit 1' TERM
			: >"$RECORD/begun"
			while :; do sleep 0.05; done
			;;
		esac
	DOCKER
	export RECORD=$PWD
	PATH="$PWD/bin:$PATH" x --launcher-env RECORD --new-call --ledger ledger --image the-image -- /bin/true >out 2>stderr 3>&- &
	pid=$!
	rv_until [ -e begun ]
	kill -KILL "$(rv_exec_of $pid)"
	wait $pid || true
	rv_until [ -e removed ]
	[ -e ended ] && [ ! -e too-early ]
}

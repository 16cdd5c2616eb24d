# rv-exec: what a tool may use, which limit it ran into, and what it did use.
load helper
load exec

setup() {
	mkdir dirs
	find_groups
}

teardown() {
	[ -z "${made:-}" ] || rmdir "$made"
}

# Where a tree's limits can be had here: options in $groups, the places where groups are made in $places.
# Without such a place (an ordinary user without a delegated directory) the promise is the refusal.
find_groups() {
	local tree place

	groups=() places=() made=
	[ "$(id -u)" -eq 0 ] || return 0
	for tree in memory pids; do
		place=/sys/fs/cgroup/$tree$(sed -n "s/^[0-9]*:$tree://p" /proc/self/cgroup)
		[ -d "$place" ] || place=/sys/fs/cgroup/$tree
		[ -w "$place/cgroup.procs" ] && places+=("$place")
	done
	[ ${#places[@]} -lt 2 ] || return 0
	places=()
	grep -qw memory /sys/fs/cgroup/cgroup.controllers && grep -qw pids /sys/fs/cgroup/cgroup.controllers || return 0
	made=/sys/fs/cgroup/rv-test.$$
	mkdir "$made" && groups=(--cgroup "$made") places=("$made") || made=
} 2>/dev/null

of_tree() {
	x --json "${groups[@]}" "$@" >reply 2>stderr
}

# Limits of the whole tree can be had; else they are refused, before any intent, with what to do about it.
need_tree() {
	[ ${#places[@]} -eq 0 ] || return 0
	fails config 125 x --ledger ledger --new-call --max-memory 64MiB -- /bin/true
	grep -q -e '--cgroup' stderr
	fails config 125 x --ledger ledger --new-call --max-processes 8 -- /bin/true
	grep -q -e '--cgroup' stderr
	[ ! -s ledger ] && no_workdir
	return 1
}

no_group() {
	local left

	left=$(find "${places[@]}" -maxdepth 1 -name 'rv-exec-*')
	[ -z "$left" ] || rv_die "groups left: $left"
}

@test "--max-cpu: each process, hard and soft, and the reply says so" {
	rv_fails 1 x --json --max-cpu 1s --timeout 20s -- /bin/sh -c 'while :; do :; done' >reply 2>stderr
	holds 'code == "exit"' 'reply["signal"] == "SIGKILL"' 'reply["resources"]["limit"] == "cpu"' \
		'"--max-cpu" in reply["error"]["message"]' 'reply["outcome"] == "error"' \
		'800 <= reply["resources"]["userMs"] + reply["resources"]["systemMs"] <= 1500'
	rv_equal '"1 1"' "$(x --max-cpu 300ms -- /bin/sh -c 'echo "\"$(ulimit -St) $(ulimit -Ht)\""')"
	# A SIGKILL of its own is none of the limit's, and neither is a child's end.
	rv_fails 1 x --json --max-cpu 1s -- /bin/sh -c 'kill -9 $$' >reply 2>stderr
	holds 'reply["resources"]["limit"] is None' '"limit" not in reply["error"]["message"]'
	rv_fails 1 x --json --max-cpu 1s -- /bin/sh -c '/bin/sh -c "while :; do :; done"; kill -9 $$' >reply 2>stderr
	holds 'reply["resources"]["limit"] is None' 'reply["resources"]["userMs"] > 700'
	# Time that is waited for is not time that is used.
	rv_equal null "$(x --max-cpu 1s --timeout 20s -- /bin/sleep 1.2)"
}

@test "--max-data: each process, hard and soft" {
	cat >grow <<-'TOOL'
		#!/usr/bin/python3 -I
		import mmap, sys
		mmap.mmap(-1, int(sys.argv[1]) << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
		print(1)
	TOOL
	chmod +x grow
	rv_equal 1 "$(x --max-data 100MiB -- "$PWD/grow" 60)"
	fails exit 1 x --max-data 100MiB -- "$PWD/grow" 110
	rv_equal '"102400 102400"' "$(x --max-data 100MiB -- /bin/sh -c 'echo "\"$(ulimit -Sd) $(ulimit -Hd)\""')"
	# what the caller has less of is not raised
	rv_equal '"90000"' "$(ulimit -d 90000; x --max-data 100MiB -- /bin/sh -c 'echo "\"$(ulimit -Hd)\""')"
}

@test "limits are usage where they are none, and do not reach the credentials program" {
	local option

	for option in '--max-cpu 0s' '--max-cpu 1' '--max-data 0' '--max-memory 0' '--max-processes 0' '--max-processes x'; do
		rv_fails 2 x $option -- /bin/true 2>stderr || rv_die "$option"
	done
	tool mint <<-'TOOL'
		#!/bin/sh
		printf '{"T":"%s"}' "$(ulimit -t)"
	TOOL
	rv_equal '"unlimited"' "$(ulimit -t unlimited; x --max-cpu 5s --credentials "$PWD/mint" -- /bin/sh -c 'echo "\"$T\""')"
}

@test "--max-memory: a tree that takes more is killed, told apart, and leaves no group" {
	need_tree || return 0
	cat >eat <<-'TOOL'
		#!/usr/bin/python3 -I
		import os, sys
		hold = []
		have, go = os.pipe(), os.pipe()
		for _ in range(int(sys.argv[1])):
		    if os.fork() == 0:
		        os.close(go[1])
		        hold.append(bytes([1]) * (30 << 20))
		        os.write(have[1], b"x")
		        os.close(have[1])
		        os.read(go[0], 1)
		        os._exit(0)
		os.close(have[1])
		while os.read(have[0], 1):
		    pass
		os.close(go[1]) # all of them have it at once, or are dead
		failed = [s for s in (os.wait()[1] for _ in range(int(sys.argv[1]))) if s]
		sys.exit(9 if failed else print(1))
	TOOL
	chmod +x eat
	of_tree --max-memory 200MiB -- "$PWD/eat" 3
	holds 'reply["ok"]' 'reply["resources"]["limit"] is None' '60 << 20 <= reply["resources"]["peakMemoryBytes"] <= 200 << 20'
	# No process of it takes more than the limit: the tree does.
	cat >eat-together <<-'TOOL'
		#!/usr/bin/python3 -I
		import os, sys
		r, w = os.pipe()
		for _ in range(6):
		    if os.fork() == 0:
		        os.close(w)
		        hold = bytes([1]) * (30 << 20)
		        os.read(r, 1)
		        os._exit(0)
		os.close(r)
		bad = 0
		import select, time
		end = time.time() + 5
		while not bad and time.time() < end:
		    bad = os.waitpid(-1, os.WNOHANG)[1]
		sys.exit(9 if bad else print(1))
	TOOL
	chmod +x eat-together
	rv_equal 1 "$(x --max-memory 1GiB "${groups[@]}" -- "$PWD/eat-together")" &
	local plain=$!
	rv_fails 1 of_tree --max-memory 100MiB -- "$PWD/eat-together"
	holds 'code == "exit"' 'reply["resources"]["limit"] == "memory"' '"--max-memory" in reply["error"]["message"]' \
		'reply["resources"]["peakMemoryBytes"] <= 100 << 20' 'reply["survivors"] == 0'
	wait "$plain"
	# one that survives the death of a child says so all the same
	of_tree --max-memory 60MiB -- /bin/sh -c "trap : TERM; '$PWD/eat' 4 >/dev/null || echo 2" || true
	holds 'reply["resources"]["limit"] == "memory"'
	no_group
}

@test "--max-processes: a fork bomb is held, told apart, and gone at its deadline" {
	need_tree || return 0
	rv_fails 1 of_tree --max-processes 4 -- /bin/sh -c 'sleep 5 & sleep 5 & sleep 5 & sleep 5 & sleep 5 & wait'
	holds 'code == "exit"' 'reply["resources"]["limit"] == "processes"' '"--max-processes" in reply["error"]["message"]'
	of_tree --max-processes 4 -- /bin/sh -c 'sleep 0.1 & sleep 0.1 & wait'
	holds 'reply["resources"]["limit"] is None'
	tool bomb <<-'TOOL'
		#!/bin/bash
		bomb() { bomb | bomb & }
		bomb
		sleep 60
	TOOL
	mark=bomb-$$-$RANDOM
	within 4000 rv_fails 124 of_tree --max-processes 50 --timeout 1s --kill-grace 100ms --setenv RV_MARK=$mark \
		--setenv PATH="$PATH" -- "$PWD/bomb"
	holds 'code == "timeout"' 'reply["resources"]["limit"] == "processes"' 'reply["survivors"] == 0'
	rv_equal 0 "$(alive $mark)"
	no_group
}

@test "each attempt has its own: what one took another has again" {
	need_tree || return 0
	for n in 1 2 3 4 5 6 7 8; do
		printf '{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' $n
	done >in
	tool grab <<-'TOOL'
		#!/usr/bin/python3 -I
		hold = bytes([1]) * (40 << 20)
		open("file", "wb").write(bytes(20 << 20))
		print(len(hold))
	TOOL
	rv-exec --stream --jobs 4 "${groups[@]}" --workdir-base "$PWD/dirs" --max-memory 100MiB --max-processes 5 \
		-- "$PWD/grab" <in >out
	rv_equal 8 "$(grep -c '"result":41943040,.*"limit":null' out)"
	no_group
}

@test "SIGKILL of rv-exec leaves no group, and a start removes what a killed janitor left" {
	need_tree || return 0
	mark=group-$$-$RANDOM
	x "${groups[@]}" --max-memory 100MiB --max-processes 9 --setenv RV_MARK=$mark -- /bin/sleep 60 &
	local shell=$!
	rv_until running_tool $mark
	rv_fails 1 no_group
	kill -KILL "$(rv_exec_of $shell)"
	wait $shell || :
	rv_until no_group
	none_alive $mark
	# the janitor, too
	x "${groups[@]}" --max-memory 100MiB --max-processes 9 --setenv RV_MARK=$mark -- /bin/sleep 60 &
	shell=$!
	rv_until running_tool $mark
	local main pid
	main=$(rv_exec_of $shell)
	# another's live group is left alone by a start
	x "${groups[@]}" --max-memory 100MiB --max-processes 9 -- /bin/true
	rv_fails 1 no_group
	running_tool $mark
	for pid in $(children "$main"); do
		[ "$(cat "/proc/$pid/comm")" != rv-janitor ] || kill -KILL "$pid"
	done
	kill -KILL "$main"
	wait $shell || :
	rv_until none_alive $mark
	rv_fails 1 no_group
	x "${groups[@]}" --max-memory 100MiB --max-processes 9 -- /bin/true
	no_group
}

@test "groups that a tool makes in its own go with it, however many and deep, and what runs in them" {
	need_tree || return 0
	tool nests <<-'TOOL'
		#!/bin/bash
		while IFS=: read -r _ tree group; do
			case $tree in memory|pids) tree=/$tree ;; '') ;; *) continue ;; esac
			[ -d "/sys/fs/cgroup$tree$group" ] && [ -n "${group#/}" ] || continue
			at=/sys/fs/cgroup$tree$group
			for name in a b a a a; do
				[ "$name" != b ] || { /bin/mkdir "$at/c"; /bin/sleep 60 & echo $! >"$at/c/cgroup.procs"; }
				at=$at/$name
				/bin/mkdir "$at" && made=1
			done
		done </proc/self/cgroup
		echo "${made:-0}"
	TOOL
	x "${groups[@]}" --max-memory 100MiB --max-processes 20 -- "$PWD/nests" >out 2>stderr
	rv_equal 1 "$(cat out)"
	[ ! -s stderr ] || rv_die "$(cat stderr)"
	no_group
}

@test "what cannot be limited is config, with the remedy, before anything runs" {
	fails config 125 x --cgroup /no/such --max-memory 1GiB --ledger ledger --new-call -- /bin/true
	fails config 125 x --cgroup "$PWD" --max-memory 1GiB --ledger ledger --new-call -- /bin/true
	grep -q 'delegated' stderr
	if rv_have root && [ -d /sys/fs/cgroup/unified ] && ! grep -qw memory /sys/fs/cgroup/unified/cgroup.controllers; then
		fails config 125 x --cgroup /sys/fs/cgroup/unified --max-memory 1GiB --ledger ledger --new-call -- /bin/true
		grep -q 'controller memory' stderr
	fi
	echo '{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k"}}' >in
	rv_fails 125 rv-exec --stream --cgroup /no/such --ledger ledger -- /bin/true <in >out 2>stderr
	[ ! -s out ] && [ ! -s ledger ]
	no_workdir
}

@test "resources are those of the whole tree: three burners, one of them an orphan of the tool" {
	cat >burn <<-'TOOL'
		#!/usr/bin/python3 -I
		import os, resource, time
		def burn(ms):
		    while sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) * 1000 < ms:
		        pass
		if os.fork() == 0:      # a child that is waited for
		    burn(300)
		    os._exit(0)
		r, w = os.pipe()
		if os.fork() == 0:      # a grandchild whose parent goes first
		    if os.fork() == 0:
		        burn(300)
		        hold = bytes([1]) * (60 << 20)
		        os.write(w, b"x")
		        time.sleep(60)  # and is killed
		    os._exit(0)
		burn(300)
		os.read(r, 1)
		os.wait()
		os.wait()
		print(1)
	TOOL
	chmod +x burn
	x --json -- "$PWD/burn" >reply
	holds 'reply["ok"]' '880 <= reply["resources"]["userMs"] + reply["resources"]["systemMs"] <= 1700' \
		'reply["resources"]["maxRssBytes"] >= 60 << 20' 'reply["survivors"] == 0'
	x --json -- /bin/true >reply
	holds 'reply["resources"]["userMs"] + reply["resources"]["systemMs"] <= 30' 'reply["resources"]["maxRssBytes"] < 20 << 20' \
		'"limit" not in reply["resources"]'
}

# A directory of cgroup version 2, in $unified, with or without controllers: what needs none of them holds anyway.
need_unified() {
	local place

	rv_need root
	for place in /sys/fs/cgroup/unified /sys/fs/cgroup; do
		[ -e "$place/cgroup.procs" ] && [ -e "$place/cgroup.controllers" ] || continue
		unified=$place/rv-test-unified.$$
		mkdir "$unified" && return 0
	done
	skip 'no cgroup version 2 is mounted that groups can be made in'
}

drop_unified() {
	local left

	left=$(find "$unified" -mindepth 1 -type d -name 'rv-exec-*')
	rmdir "$unified"/run 2>/dev/null || :
	rv_until rmdir "$unified"
	rv_equal '' "$left" 'groups left'
}

@test "--cgroup alone: each call has a group of its own there, which goes with it" {
	local where='while read -r l; do case $l in 0::*) echo "\"$l\"" ;; esac; done </proc/self/cgroup'

	need_unified
	rv_equal 2 "$(for n in 1 2; do x --cgroup "$unified" -- /bin/sh -c "$where"; done | grep -c "/${unified##*/}/rv-exec-")"
	x --cgroup "$unified" -- /bin/sh -c 'sleep 60 & (setsid sleep 60 &); echo 1'
	# killed: the group is removed all the same
	x --cgroup "$unified" --setenv RV_MARK="$PWD" -- /bin/sh -c 'sleep 60 & sleep 60' 2>stderr 3>&- &
	rv_until running_tool "$PWD"
	[ -n "$(find "$unified" -mindepth 1 -type d)" ]
	kill -9 "$(rv_exec_of $!)"
	wait $! || :
	rv_until none_alive "$PWD"
	rv_until eval '[ -z "$(find "$unified" -mindepth 1 -type d)" ]'
	drop_unified
}

@test "--cgroup: a controller that is not there is named, for each limit, and by a stream as well" {
	local limit

	need_unified
	for limit in memory pids; do
		! grep -qw $limit "$unified/cgroup.controllers" || { rmdir "$unified"; skip "$limit is there"; }
		[ $limit = memory ] && set -- --max-memory 64MiB || set -- --max-processes 8
		fails config 125 x --cgroup "$unified" "$@" --ledger ledger --new-call -- /bin/true
		grep -q "controller $limit is not in $unified" stderr
		echo '{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k"}}' >in
		rv_fails 125 rv-exec --stream --cgroup "$unified" "$@" --ledger ledger -- /bin/true <in >out 2>stderr
		grep -q "controller $limit is not in $unified" stderr
		[ ! -s out ] && [ ! -s ledger ]
	done
	drop_unified
}

@test "--cgroup of an ordinary user: what is delegated, from beside it; else refused before anything runs" {
	local dir

	need_unified
	rv_need user
	dir=$(rv_user_dir)
	mkdir "$unified/run"
	chown "$RV_USER" "$unified" "$unified/cgroup.procs" "$unified/cgroup.subtree_control" "$unified/run" "$unified/run/cgroup.procs"
	# from elsewhere the kernel lets it put nobody there
	rv_fails 125 rv_as_user "$dir/bin/rv-exec" --tool t --workdir-base "$dir" --ledger "$dir/ledger" --new-call --cgroup "$unified" -- /bin/true 2>stderr
	grep -q 'no process can be put into the cgroup' stderr
	[ ! -s "$dir/ledger" ]
	rv_equal 1 "$(echo $BASHPID >"$unified/run/cgroup.procs" && rv_as_user "$dir/bin/rv-exec" --tool t --workdir-base "$dir" --cgroup "$unified" -- \
		/bin/sh -c 'sleep 60 & while read -r l; do case $l in 0::*/rv-exec-*) echo 1 ;; esac; done </proc/self/cgroup')"
	drop_unified
}

# rv-exec killed and failed at the system calls of a dispatch, one by one, and killed at random
# instants: what t/faults/sweep holds it to.  scripts/soak does all of them, and a thousand kills.
load helper

# sweep EVERY OPTION|PLAN...
sweep() {
	local every=$1

	shift
	ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" TMPDIR=$PWD "$RV_SRC/t/faults/sweep" --bin "$RV_BIN" \
		--inject "$RV_BIN/t/faults/inject" --every "$every" "$@" >seen || { cat seen; return 1; }
	sed 's/^/# /' seen >&3
	rv_equal '' "$(ls -d rv-sweep.* 2>/dev/null)"
}

setup() {
	# Found by doing it: a container may forbid ptrace, another machine has other registers.
	"$RV_BIN/t/faults/inject" --role host --report report -- /bin/true 2>why && ! grep -q '"calls":0' report && return
	[ "${RV_MUST_WORK:-}" != 1 ] || rv_die "ptrace does not work here and RV_MUST_WORK=1" || return
	skip "ptrace does not work here: $(cat why)"
}

@test "rv-exec killed at every call" {
	sweep 1 host:kill
}

@test "rv-exec killed while its worker makes a call" {
	sweep 3 worker:kill-host launch:kill-host
}

@test "the worker killed, and the tool before its exec" {
	sweep 3 worker:kill launch:kill
}

@test "short writes of rv-exec, each of them" {
	sweep 1 host:short
}

@test "calls of rv-exec that fail" {
	sweep 4 host:EIO host:ENOSPC host:EINTR host:ENOMEM
}

@test "calls of the worker that fail" {
	sweep 5 worker:EIO worker:ENOMEM launch:EIO
}

@test "with credentials to mint" {
	sweep 4 --credentials host:kill host:EIO
}

@test "with outcomes and intents that are synced" {
	sweep 4 --option=--durability --option=power host:kill host:EIO
}

@test "a stream of four, killed and failed at calls of rv-exec, of its workers and before the exec" {
	sweep 60 --stream host:kill worker:kill host:EIO worker:ENOMEM host:ENOMEM host:EMFILE
	sweep 5 --stream host:short
}

@test "a store instead of a ledger: rv-exec, its worker and the store killed and failed at their calls" {
	sweep 40 --store "$RV_BIN/t/faults/store" host:kill worker:kill worker:kill-host host:EIO
	sweep 5 --store "$RV_BIN/t/faults/store" store:kill store:kill-host store:EIO
	sweep 1 --store "$RV_BIN/t/faults/store" host:short store:short
}

@test "a hundred kills at random instants, a tenth of them between intent and outcome" {
	sweep 1 random:100
}

@test "the sweep sees a tool that makes its effect without an intent, and what outlives rv-exec" {
	export TMPDIR=$PWD
	mkdir bin
	cp "$RV_BIN"/rv-ledger-* bin/
	cat >bin/rv-exec <<-TOOL
		#!/bin/bash
		# A broken one: the effect comes first.
		for word; do case \$last in --setenv) export "\$word" ;; esac; last=\$word; done
		RULVAR_IDEMPOTENCY_KEY=early "\$last" >/dev/null
		exec "$RV_BIN/rv-exec" "\$@"
	TOOL
	chmod 755 bin/rv-exec
	rv_fails 1 "$RV_SRC/t/faults/sweep" --bin bin --inject "$RV_BIN/t/faults/inject" host:kill 2>err
	grep -q 'an effect without its intent' err
	cp "$RV_BIN/rv-exec" bin/
	# And a store that keeps nothing of what it confirms.
	cat >liar <<-TOOL
		#!/bin/sh
		while read -r row; do echo ok; done
	TOOL
	chmod 755 liar
	rv_fails 1 "$RV_SRC/t/faults/sweep" --bin bin --inject "$RV_BIN/t/faults/inject" --store "$PWD/liar" host:kill 2>err
	grep -q 'a result without its outcome row\|an effect without its intent' err
	cat >bin/rv-exec <<-TOOL
		#!/bin/bash
		sleep 30 >/dev/null 2>&1 &
		exec "$RV_BIN/rv-exec" "\$@"
	TOOL
	rv_fails 1 "$RV_SRC/t/faults/sweep" --bin bin --inject "$RV_BIN/t/faults/inject" host:kill 2>err
	grep -q 'processes are left' err
}

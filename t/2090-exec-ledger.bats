# rv-exec and its ledger: intent, effect, outcome, in that order, whatever the file's state.
load helper
load exec

setup() {
	mkdir dirs
	tool mark <<-TOOL
		#!/bin/sh
		: >"$PWD/ran"
		echo 1
	TOOL
	chmod 755 mark
}

z() {
	x --new-call --ledger ledger "$@"
}

@test "the rows, byte for byte" {
	x --key K --span-id S --run-id r --ledger ledger -- /bin/echo 1 2>/dev/null || x --key K --span-id S --ledger ledger -- /bin/echo 1
	sed -E 's/"attemptId":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"/A/; s/"startedAt":[0-9]{13}/B/;
		s/"runId":"[^"]+"/R/; s/"workdir":"[^"]+"/W/; s/"durationMs":[0-9]+/D/; s/"containment":"(pid-namespace|subreaper)"/C/;
		s/"host":"[^"]*","bootId":"[0-9a-f-]{36}","pid":[0-9]+,"startTime":[0-9]{13},"lock":[0-9]{16},"until":[0-9]{13}/H/' ledger >plain
	hash=$(printf '{}' | sha256sum | cut -d ' ' -f 1)
	nine='"idempotencyKey":"K",R,"spanId":"S","tool":"t","argsHash":"'$hash'","executor":"subprocess",W,B,A'
	printf '{"phase":"intent",%s,"sandbox":"none",C,"writer":{H}}\n{"phase":"outcome",%s,D,"outcome":"ok","exitCode":0,"signal":null}\n' \
		"$nine" "$nine" >want
	diff want plain
	holds 'intents[0]["attemptId"] == outcomes[0]["attemptId"] and intents[0]["startedAt"] == outcomes[0]["startedAt"]' \
		'intents[0]["workdir"] == outcomes[0]["workdir"]' '2**52 <= intents[0]["writer"]["lock"] < 2**53' \
		'intents[0]["startedAt"] + 30000 < intents[0]["writer"]["until"] < intents[0]["startedAt"] + 120000'
	rv_equal 600 "$(stat -c %a ledger)"
}

@test "the time that passed before the intent does not count against its until" {
	# What an undumpable process does, an ordinary user's strace does not see.
	rv_need strace root
	local soon late

	span() { rows "$1" 'r["phase"] == "intent"' | jq '.writer.until - .startedAt'; }
	x --new-call --ledger soon -- /bin/true
	strace -f -o trace -e trace=mkdir -e inject=mkdir:delay_enter=1000000 rv-exec --tool t --workdir-base "$PWD/dirs" 		--new-call --ledger late -- /bin/true
	grep -q DELAYED trace
	soon=$(span soon) late=$(span late)
	[ $((late - soon)) -ge 1500 ] || rv_die "until: $soon and $late ms after the start"
}

@test "each end has its outcome" {
	z -- /bin/echo 1
	rv_fails 1 z -- /bin/false 2>stderr
	rv_fails 120 z -- /bin/echo x 2>stderr
	rv_fails 121 z --max-output 3 -- /bin/echo 12345 2>stderr
	rv_fails 124 z --timeout 100ms -- /bin/sleep 30 2>stderr
	rv_fails 126 z -- "$PWD" 2>stderr
	rv_fails 127 z -- /no/such 2>stderr
	rv_fails 1 z -- /bin/sh -c 'kill -SEGV $$' 2>stderr
	holds 'len(intents) == 8' '[(r["outcome"], r["exitCode"], r["signal"]) for r in outcomes] == [("ok", 0, None),
		("error", 1, None), ("error", 0, None), ("error", *(outcomes[3]["exitCode"], outcomes[3]["signal"])), ("timeout", None, "SIGTERM"),
		("error", None, None), ("error", None, None), ("error", None, "SIGSEGV")]'
	rv-ledger-scan --format orphans ledger
}

@test "the intent stands before the tool runs, its workdir is there, and the scan says running" {
	tool look <<-TOOL
		#!/bin/sh
		rv-ledger-scan --format orphans "$PWD/ledger" >"$PWD/seen"
		echo "[\$?,\$(wc -l <"$PWD/ledger")]"
		ls -A >"$PWD/in-workdir"
		pwd -P >"$PWD/where"
	TOOL
	rv_equal '[0,1]' "$(z --setenv PATH="$PATH" -- "$PWD/look")"
	rv_equal "running $(cat where)" "$(member state seen) $(member workdir seen)"
	[ ! -s in-workdir ]
	rv-ledger-scan --format orphans ledger >after
	[ ! -s after ]
}

@test "--ledger-phases one writes outcomes alone" {
	z --ledger-phases one -- /bin/echo 1
	rv_fails 1 z --ledger-phases one -- /bin/false 2>stderr
	holds 'intents == []' '[r["outcome"] for r in outcomes] == ["ok", "error"]'
}

@test "--durability power syncs the intent before the tool runs, and the outcome before the answer" {
	# What an undumpable process writes, an ordinary user's strace does not see.
	rv_need strace root
	strace -f -o trace -e trace=fsync,fdatasync,write,execve rv-exec --tool t --workdir-base dirs --new-call --ledger ledger \
		--durability power -- /bin/echo 1 >out
	rv_equal 1 "$(cat out)"
	sed -nE 's/^[0-9]+ +//; s/^fdatasync.*/sync/p; s/^fsync.*/fsync/p; s/^write.*"phase\\":\\"(intent|outcome).*/\1/p;
		s/^execve\("\/bin\/echo".*/tool/p; s/^write\(1, "1.*/answer/p' trace | uniq | paste -s -d ' ' >order
	grep -Eq 'fsync intent sync tool (answer )?outcome sync answer$' order || rv_die "$(cat order)"
}

@test "--durability power syncs the directory also of a ledger that another made, where it really lies" {
	rv_need strace root
	mkdir other
	: >other/ledger
	ln -s other/ledger ledger
	strace -f -y -o trace -e trace=fsync,write rv-exec --tool t --workdir-base dirs --new-call --ledger ledger --durability power -- /bin/true
	rv_equal 'fsync intent' "$(sed -nE "s|.*fsync\\([0-9]+<$PWD/other>.*|fsync|p; s/.*write.*\"phase\\\\\":\\\\\"intent.*/intent/p" trace | xargs)"
}

@test "a torn tail is repaired before the intent, and nothing is glued to it" {
	printf '{"phase":"intent","idempotencyKey":"k","runId":"r","spanId":"s","tool":"t","argsHash":"h","executor":"e","workdir":"w","startedAt":1,"attemptId":"a"}' >whole
	for tail in '{"a":1' '\xf0\x9f' '\0\0\0\0\0' '{"phase":"inte' ']' whole; do
		rm -f ledger
		z -- /bin/true >/dev/null
		# shellcheck disable=SC2059 # the tail is a format
		if [ "$tail" = whole ]; then cat whole >>ledger; else printf "$tail" >>ledger; fi
		rv_equal 1 "$(z -- /bin/echo 1)"
		rv-ledger-scan --format orphans ledger >orphans || [ "$tail" = whole ]
		rv-ledger-repair --check ledger >checked
		if [ "$tail" = whole ]; then
			holds 'len(intents) == 3 and len(outcomes) == 2'
		else
			holds 'len(intents) == 2 and len(outcomes) == 2' 'len([r for r in rows if r["phase"] == "torn"]) == 1'
		fi
	done
}

# A row cannot be written: ledger (122), the tool did not run, there is no workdir and no orphan.
refused() {
	rm -f ran
	fails ledger 122 z "$@" -- "$PWD/mark" || return
	[ ! -e ran ] || rv_die "the tool ran" || return
	no_workdir
}

@test "a ledger that is a directory, a fifo, a device, or nowhere" {
	mkdir ledger
	refused
	rmdir ledger
	mkfifo ledger
	within 5000 refused
	rm ledger
	ln -s /dev/null ledger
	refused
	rm ledger
	ln -s nowhere/at/all ledger
	refused
	rm ledger
	mkdir -p a
	fails ledger 122 x --new-call --ledger a/b/c -- "$PWD/mark"
	[ ! -e ran ]
}

@test "a ledger that may not be written to" {
	rv_need user
	dir=$(rv_user_dir)
	: >"$dir/ledger"
	chmod 444 "$dir/ledger"
	cd "$dir"
	fails ledger 122 rv_as_user bin/rv-exec --tool t --workdir-base "$dir" --new-call --ledger ledger -- /bin/sh -c ": >'$dir/ran'"
	[ ! -e ran ]
	if [ "$(id -u)" -eq 0 ]; then
		rm -f ledger
		chown root "$dir"
		fails ledger 122 rv_as_user bin/rv-exec --tool t --workdir-base /tmp --new-call --ledger ledger -- /bin/sh -c ": >'$dir/ran'"
	fi
}

@test "a full disk: nothing runs, nothing is lost, and it goes on when there is room" {
	rv_need userns
	tool effect <<-TOOL
		#!/bin/sh
		echo "\$RULVAR_IDEMPOTENCY_KEY" >>"$PWD/effects"
		echo 1
	TOOL
	cat >on-full-disk <<-'SCRIPT'
		set -e
		mkdir small
		mount -t tmpfs -o size=64k none small
		run() { rv-exec --tool t --workdir-base dirs --new-call --ledger small/ledger -- "$PWD/effect" >stdout 2>stderr; }
		run
		cp small/ledger before
		# Full, with what is left of the ledger's last page: an intent or an outcome will not fit.
		dd if=/dev/zero of=small/fill bs=1k count=200 2>/dev/null || :
		refused=0
		for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
			had=$(wc -l <effects)
			status=0
			run || status=$?
			[ "$status" = 0 ] && continue
			[ "$status" = 122 ] && [ ! -s stdout ] && [ -z "$(ls -A dirs)" ] || { echo "status $status"; cat stderr; exit 1; }
			if grep -q 'so nothing was run' stderr; then
				[ "$(wc -l <effects)" = "$had" ] || { echo "the tool ran"; exit 1; }
				refused=$((refused + 1))
			else
				grep -q '^rv-exec: ledger: the outcome ' stderr
			fi
			cmp -n "$(stat -c %s before)" before small/ledger
		done
		[ "$refused" -gt 0 ]
		rm small/fill
		run
		rv-ledger-repair small/ledger >repaired
		rv-ledger-scan --format summary small/ledger >summary || [ $? = 1 ]
		cp small/ledger ledger
	SCRIPT
	if [ "$(id -u)" -eq 0 ]; then
		unshare --mount bash on-full-disk
	else
		unshare --user --map-root-user --mount bash on-full-disk
	fi
	rv_equal 0 "$(member corrupt summary)"
	# Each effect has its intent, and the last one its outcome.
	sort effects >made
	rows ledger 'r["phase"] == "intent"' | while read -r row; do member idempotencyKey <<<"$row"; done | sort >intended
	[ -z "$(comm -23 made intended)" ]
	holds 'outcomes[-1]["outcome"] == "ok" and outcomes[-1]["attemptId"] == intents[-1]["attemptId"]'
}

@test "an outcome that cannot be written is ledger, also after a success" {
	rv_need userns
	cat >full-after <<-'SCRIPT'
		set -e
		mkdir small
		mount -t tmpfs -o size=64k none small
		printf '#!/bin/sh\n: >"%s/ran"\ncat /dev/zero >"%s/small/fill" 2>/dev/null\nhead -c 5000 /dev/zero >>"%s/small/ledger"\necho 1\n' "$PWD" "$PWD" "$PWD" >fills
		chmod 755 fills
		status=0
		# The tool takes the room that the outcome needs.
		rv-exec --tool t --workdir-base dirs --new-call --ledger small/ledger --setenv PATH="$PATH" -- "$PWD/fills" >stdout 2>stderr || status=$?
		echo "$status $(wc -c <stdout)" >result
		grep -q '^rv-exec: ledger: .*outcome' stderr
		[ -e ran ]
	SCRIPT
	if [ "$(id -u)" -eq 0 ]; then
		unshare --mount bash full-after
	else
		unshare --user --map-root-user --mount bash full-after
	fi
	rv_equal '122 0' "$(cat result)"
	no_workdir
}

@test "a stopped reader does not stop the writers, not even with a torn tail to repair" {
	z -- /bin/true >/dev/null
	printf '{"torn' >>ledger
	tail -n 1 -f ledger >/dev/null 3>&- &
	reader=$!
	rv_until eval 'ls -l /proc/'$reader'/fd | grep -q /ledger'
	kill -STOP $reader
	rv_until is_stopped $reader
	for i in 1 2 3; do
		rv_equal 1 "$(within 5000 z -- /bin/echo 1)"
	done
	is_stopped $reader
	kill -9 $reader
	holds 'len(intents) == len(outcomes) == 4'
	rv-ledger-repair --check ledger >checked
	rv-ledger-scan --format orphans ledger
}

@test "a reader's flock stops no writer" {
	z -- /bin/true >/dev/null
	exec 9<ledger
	flock --exclusive --nonblock 9
	rv_equal 1 "$(within 5000 z -- /bin/echo 1)"
	exec 9<&-
}

@test "a writer that holds the lock past the deadline: ledger, and nothing ran" {
	z -- /bin/true >/dev/null
	cat >hold.py <<-'PY'
		import fcntl, os, struct, sys
		fd = os.open("ledger", os.O_RDWR)
		fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))  # F_OFD_SETLK
		open("held", "w").close()
		sys.stdin.read()
	PY
	mkfifo go
	/usr/bin/python3 hold.py <go 3>&- &
	exec 9>go
	rv_until test -e held
	within 5000 refused --ledger-wait 300ms
	exec 9>&-
	wait
	rv_equal 1 "$(z -- /bin/echo 1)"
}

@test "a forged outcome fools the scan, and rv(7) says so" {
	tool forge <<-TOOL
		#!/usr/bin/python3
		import json
		intent = json.loads(open("$PWD/ledger", encoding="utf-8").readlines()[-1])
		nine = {k: intent[k] for k in ("idempotencyKey", "runId", "spanId", "tool", "argsHash", "executor", "workdir", "startedAt", "attemptId")}
		row = {"phase": "outcome", **nine, "durationMs": 1, "outcome": "ok", "exitCode": 0, "signal": None}
		open("$PWD/ledger", "a").write(json.dumps(row) + "\n")
		open("$PWD/forged", "w").close()
		import time
		time.sleep(60)
	TOOL
	z -- "$PWD/forge" 3>&- &
	pid=$!
	rv_until test -e forged
	kill -9 "$(rv_exec_of $pid)"
	wait $pid || true
	rv-ledger-scan --format orphans ledger >orphans
	[ ! -s orphans ]
	tr '\n' ' ' <"$RV_SRC/man/rv.7" | sed 's/\.[A-Z][a-z] //g; s/  */ /g' | grep -Eiq 'forged'
}

@test "--refuse-orphan refuses the same key alone, and says what to do" {
	x --key K --ledger ledger -- /bin/sleep 60 3>&- 2>/dev/null &
	pid=$!
	rv_until test -s ledger
	# An attempt that still runs has no outcome either.
	fails ledger 122 x --key K --ledger ledger --refuse-orphan -- "$PWD/mark"
	kill -9 "$(rv_exec_of $pid)"
	wait $pid || true
	fails ledger 122 x --key K --ledger ledger --refuse-orphan -- "$PWD/mark"
	grep -q 'look the key K up' stderr
	grep -q "$(member attemptId ledger)" stderr
	[ ! -e ran ]
	rv_equal 1 "$(wc -l <ledger)"
	rv_equal 1 "$(x --key L --ledger ledger --refuse-orphan -- /bin/echo 1)"
	rv_equal 1 "$(x --key M --ledger fresh --refuse-orphan -- /bin/echo 1)"
	rv_equal 1 "$(x --key K --ledger ledger -- /bin/echo 1)"
	# The retry's outcome is its own: the orphan stands.
	fails ledger 122 x --key K --ledger ledger --refuse-orphan -- "$PWD/mark"
}

# effects N: the tool ran so often, and each time has its two rows.
effects() {
	rv_equal "$1" "$(wc -l <ran)"
	rv_equal "$1" "$(grep -c '"phase":"intent"' ledger)"
	rv_equal "$1" "$(grep -c '"phase":"outcome"' ledger)"
}

@test "--refuse-orphan: of many that call with one key at once, one runs" {
	tool once <<-TOOL
		#!/bin/sh
		echo >>"$PWD/ran"
		sleep 2
		echo 1
	TOOL
	for id in 1 2 3; do
		printf '{"id":%d,"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"K"}}\n' $id
	done >requests
	mkdir -p dirs
	rv_fails 1 rv-exec --stream --jobs 3 --workdir-base "$PWD/dirs" --ledger ledger --refuse-orphan -- "$PWD/once" <requests >replies
	rv_equal 1 "$(grep -c '"ok":true' replies)"
	rv_equal 2 "$(grep -c '"code":"ledger".*look the key K up' replies)"
	effects 1
	for _ in 1 2 3 4 5 6; do
		x --key L --ledger ledger --refuse-orphan -- "$PWD/once" >>answers 2>/dev/null 3>&- &
	done
	wait
	rv_equal 1 "$(wc -l <answers)"
	effects 2
	no_workdir
}

@test "--refuse-orphan fails closed on a corrupt ledger, which a plain append does not touch" {
	z -- /bin/true >/dev/null
	printf 'rubbish\n' >>ledger
	fails ledger 122 x --key K --ledger ledger --refuse-orphan -- "$PWD/mark"
	[ ! -e ran ]
	rv_equal 1 "$(x --key K --ledger ledger -- /bin/echo 1)"
	rv_equal rubbish "$(sed -n 3p ledger)"
}

@test "SIGKILL between intent and outcome: an orphan, by the scan at once, with its workdir" {
	z -- /bin/sh -c ': >file; exec sleep 60' 3>&- 2>/dev/null &
	pid=$!
	rv_until eval '[ -n "$(ls dirs/*/file 2>/dev/null)" ]'
	rv-ledger-scan --format orphans ledger >orphans
	rv_equal running "$(member state orphans)"
	kill -9 "$(rv_exec_of $pid)"
	wait $pid || true
	rv_fails 1 rv-ledger-scan --format orphans ledger >orphans
	rv_equal "orphan $(ls -d "$(pwd -P)"/dirs/*)" "$(member state orphans) $(member workdir orphans)"
	rm -r dirs
}

@test "sixteen at once, small and large, into one ledger" {
	pids=
	head -c 100000 /dev/zero | tr '\0' x >long
	for i in {1..16}; do
		(
			set -e
			for j in {1..4}; do
				rv-exec --tool "t$i" --workdir-base dirs --new-call --span-id "$(head -c $((i * j * 1000)) long)" --ledger ledger -- /bin/echo "$i$j"
			done
		) >>"out$i" 2>>"err$i" 3>&- &
		pids+=" $!"
	done
	for pid in $pids; do wait "$pid"; done
	cat err*
	holds 'len(intents) == len(outcomes) == 64' 'len({r["attemptId"] for r in intents}) == 64' \
		'{r["attemptId"] for r in intents} == {r["attemptId"] for r in outcomes}'
	rv-ledger-scan --format orphans ledger
	no_workdir
}

@test "a ledger that is renamed away under an attempt: the outcome is at the path, and the two files pair" {
	tool rotate <<-TOOL
		#!/bin/sh
		mv "$PWD/ledger" "$PWD/ledger.1"
		rv-ledger-scan --format orphans "$PWD/ledger.1" >"$PWD/seen"
		echo 1
	TOOL
	rv_equal 1 "$(z --setenv PATH="$PATH" -- "$PWD/rotate")"
	rv_equal running "$(member state seen)"
	rv-ledger-scan --format orphans ledger ledger.1
	holds 'intents == [] and len(outcomes) == 1'
}

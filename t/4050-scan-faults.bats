# rv-ledger-scan killed, and failed, at system calls all over a scan: the right answer, or none.  All of them, with
# more faults, are in scripts/soak.
load helper
load exec

faults() { # PLAN...
	/usr/bin/python3 -I "$RV_SRC/t/faults/scan" --bin "$RV_BIN" --inject "$RV_BIN/t/faults/inject" --every 9 "$@"
}

@test "killed" {
	faults host:kill worker:kill:2
}

@test "failed" {
	faults host:EIO host:ENOMEM host:EIO:3 worker:ENOMEM:2
}

@test "writes cut short" {
	faults host:short
}

row() {
	printf '{"phase":"outcome","idempotencyKey":"k","runId":"r","spanId":"s","tool":"t","argsHash":"h","executor":"e","workdir":"/w","startedAt":1,"attemptId":"a","durationMs":1,"outcome":"ok","exitCode":0,"signal":null}\n'
}

# stop_at NAME CALL PATH COMMAND...: in the background, stopped as soon as its first CALL on PATH has been made; what
# it prints is in NAME and NAME.err.
stop_at() {
	strace -o "$1.trace" -P "$3" -e trace="$2" -e inject="$2:signal=SIGSTOP:when=1" \
		sh -c 'echo $$ >"$0.pid" && exec "$@"' "$1" "${@:4}" >"$1" 2>"$1.err" 3>&- &
	printf -v "$1" %d $!
	rv_until grep -qs 'stopped by SIGSTOP' "$1.trace"
}

# go_on NAME: to its end; its status.
go_on() {
	kill -CONT "$(cat "$1.pid")"
	wait "${!1}"
}

teardown() {
	local tracer stopped

	for tracer in $(jobs -p); do
		# both: without its tracer the stopped one would stay as it is
		read -r stopped _ <"/proc/$tracer/task/$tracer/children" || :
		kill -KILL "$stopped" "$tracer" || :
	done 2>gone
}

@test "a repair that was under way when damage was read, and is over at the look for it, is no damage" {
	local here

	rv_need strace
	here=$(pwd -P)
	{ row; printf '{"phase":"inte'; } >l.jsonl
	exec 7<>l.jsonl # no lease: the torn bytes stand beside their row for a moment
	stop_at repair fsync "$here/l.jsonl" rv-ledger-repair --wait 200ms l.jsonl
	# That moment it is.  Both readers have read, and have not yet looked for who is at it.
	rv_equal 2 "$(grep -c '"inte$\|"phase":"torn"' l.jsonl)"
	stop_at summary openat /proc/sys/kernel/random/boot_id rv-ledger-scan --format summary l.jsonl
	stop_at check getdents64 "$here" rv-ledger-repair --check l.jsonl
	go_on repair || rv_die "$(cat repair.err)"
	exec 7>&-
	go_on summary || rv_die "$(cat summary.err)"
	go_on check || rv_die "$(cat check.err)"
	rv_equal 0 "$(member corrupt <summary)"
	rv_equal 1 "$(member tornArtifacts <summary)"
	grep -q '"action":"none"' check
	# They had read damage: each has read again.
	rv_equal 2 "$(grep -c boot_id summary.trace)"
	rv_equal 2 "$(grep -c ' = 0$' check.trace)"
	# what is damage stays so
	echo rubbish >>l.jsonl
	rv_fails 4 rv-ledger-scan l.jsonl
	rv_fails 4 rv-ledger-repair --check l.jsonl
}

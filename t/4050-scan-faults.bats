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

@test "a repair that was under way when damage was read, and is over at the look for it, is no damage" {
	rv_need strace
	export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
	{ row; printf '{"phase":"inte'; } >l.jsonl
	exec 7<>l.jsonl # no lease: the torn bytes stand beside their row for a moment
	# the repair stops in that moment, and the readers between their reading and their look for a repair
	strace -o /dev/null -e trace=pwrite64 -e inject=pwrite64:delay_enter=1200000:when=1 rv-ledger-repair --wait 200ms l.jsonl >repaired &
	repair=$!
	rv_until grep -q '"phase":"torn"' l.jsonl
	strace -o /dev/null -e trace=getdents64 -e inject=getdents64:delay_enter=2500000:when=1 rv-ledger-repair --check l.jsonl >checked 2>err.check &
	check=$!
	strace -o /dev/null -P "$PWD/l.jsonl.repair-lock" -e trace=newfstatat -e inject=newfstatat:delay_enter=2500000:when=1 \
		rv-ledger-scan --format summary l.jsonl >summary 2>err || rv_die "$(cat err)"
	wait $check || rv_die "$(cat err.check)"
	wait $repair
	exec 7>&-
	rv_equal 0 "$(member corrupt <summary)"
	rv_equal 1 "$(member tornArtifacts <summary)"
	grep -q '"action":"none"' checked
	# what is damage stays so
	echo rubbish >>l.jsonl
	rv_fails 4 rv-ledger-scan l.jsonl
	rv_fails 4 rv-ledger-repair --check l.jsonl
}

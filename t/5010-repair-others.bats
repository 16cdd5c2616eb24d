# A repair, and who else has the ledger open.
load helper

good='{"phase":"outcome","idempotencyKey":"k","runId":"r","spanId":"s","tool":"t","argsHash":"h","executor":"e","workdir":"/w","startedAt":1,"durationMs":1,"outcome":"ok","exitCode":0,"signal":null}'

# start NAME VERB LEDGER...: a ledger-tool in the background that lives until stop NAME.
start() {
	local name=$1

	shift
	mkfifo "$name.in"
	"$RV_BIN/t/ledger-tool" "$@" <"$name.in" >"$name.out" 3>&- &
	echo $! >"$name.pid"
	eval "exec {$name}>$name.in"
	rv_until test -s "$name.out"
}

stop() {
	eval "exec {$1}>&-"
	wait "$(cat "$1.pid")"
}

torn_ledger() {
	printf '%s\n{"a":1' "$good" >l.jsonl
}

@test "the append lock is waited for, and not for ever" {
	torn_ledger
	start holder lock l.jsonl
	rv_fails 5 rv-ledger-repair --wait 200ms l.jsonl >out 2>err
	[ ! -s out ]
	grep -q 'lock' err
	printf '%s\n' "$good" >rows
	rv_fails 1 env LEDGER_WAIT_MS=200 "$RV_BIN/t/ledger-tool" append l.jsonl <rows 2>err
	grep -q '^ledger-tool: ledger: ' err
	# shellcheck disable=SC2154 # start() opened it
	rv-ledger-repair --wait 20s l.jsonl >out 3>&- {holder}>&- &
	repair=$!
	stop holder
	wait $repair
	grep -q quarantined out
}

@test "a reader can keep nobody from appending" {
	torn_ledger
	start reader hold-open l.jsonl
	kill -STOP "$(cat reader.pid)"
	flock -s l.jsonl true
	printf '%s\n' "$good" | LEDGER_WAIT_MS=3000 "$RV_BIN/t/ledger-tool" append l.jsonl
	kill -CONT "$(cat reader.pid)"
	stop reader
	rv-ledger-scan l.jsonl
	rv_equal "$good" "$(tail -n 1 l.jsonl)"
	grep -q '"bytesBase64":"eyJhIjox"' l.jsonl
}

@test "while others have it open the row is appended and the torn bytes become blanks" {
	torn_ledger
	start reader hold-open l.jsonl
	rv-ledger-repair --wait 1s l.jsonl >out
	stop reader
	grep -q '"action":"quarantined","line":2,' out
	rv_equal '      ' "$(sed -n 2p l.jsonl)"
	sed -n 3p l.jsonl | grep -q '^{"phase":"torn","bytes":"{\\"a\\":1","bytesBase64":"eyJhIjox",'
	rv_equal 3 "$(wc -l <l.jsonl)"
	rv-ledger-scan l.jsonl
	rv_equal l.jsonl "$(echo l.jsonl*)" 'left behind'
}

@test "the engine's sidecar: fresh is waited for, ten seconds old in either direction is stolen" {
	torn_ledger
	printf 'another-writer' >l.jsonl.repair-lock
	rv_fails 5 rv-ledger-repair --wait 300ms l.jsonl 2>err
	grep -q 'repair-lock: another writer repairs' err
	rv_equal another-writer "$(cat l.jsonl.repair-lock)"
	rv_equal '{"a":1' "$(tail -n 1 l.jsonl)"
	touch -d '11 seconds ago' l.jsonl.repair-lock
	rv-ledger-repair l.jsonl >out
	grep -q quarantined out
	torn_ledger
	printf 'another-writer' >l.jsonl.repair-lock
	touch -d '+1 minute' l.jsonl.repair-lock
	rv-ledger-repair l.jsonl >out
	grep -q quarantined out
	[ ! -e l.jsonl.repair-lock ]
}

@test "a stale sidecar and eight contenders: one repair" {
	torn_ledger
	printf 'another-writer' >l.jsonl.repair-lock
	touch -d '1 hour ago' l.jsonl.repair-lock
	for i in 1 2 3 4 5 6 7 8; do
		rv-ledger-repair l.jsonl >"out.$i" 3>&- &
		echo $! >>pids
	done
	while read -r pid; do wait "$pid"; done <pids
	rv_equal 1 "$(cat out.* | grep -c quarantined)"
	rv_equal 7 "$(cat out.* | grep -c '"action":"none"')"
	rv_equal 1 "$(grep -c '"phase":"torn"' l.jsonl)"
	rv-ledger-scan l.jsonl
}

@test "a scan reads damage again while a repair is under way, and then believes it" {
	printf '%s\nx\n' "$good" >l.jsonl
	printf 'another-writer' >l.jsonl.repair-lock
	rv-ledger-scan l.jsonl >out 2>err 3>&- &
	scan=$!
	rv_until sh -c "ls -l /proc/$scan/fd 2>/dev/null | grep -q l.jsonl"
	printf '%s\n \n' "$good" >l.jsonl
	wait $scan
	[ ! -s err ]
	printf '%s\nx\n' "$good" >l.jsonl
	rv_fails 4 rv-ledger-scan l.jsonl 2>err
}

@test "a limit on the file's size is an error, and no death" {
	torn_ledger
	cp l.jsonl before
	(ulimit -f 0; rv_fails 5 rv-ledger-repair l.jsonl 2>err)
	cmp before l.jsonl
	rv-ledger-repair l.jsonl >out
	grep -q quarantined out
}

@test "a repair that fails halfway is finished by the next append, as one that was killed" {
	rv_need strace
	for call in pwrite64 fsync; do
		for when in 1 2 3 4 5 6; do
			rm -f l.jsonl*
			torn_ledger
			exec 7<>l.jsonl # no lease: the row is appended, and the torn bytes are blanked behind it
			ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -o /dev/null -e trace=$call -e inject=$call:error=EIO:when=$when \
				rv-ledger-repair --wait 100ms l.jsonl >/dev/null 2>&1 || :
			exec 7>&-
			rv-exec --tool t --workdir-base "$PWD" --new-call --ledger l.jsonl -- /bin/true >/dev/null
			rv-ledger-scan --format summary l.jsonl >summary || rv_die "$call $when: $(ls l.jsonl*)"
			grep -q '"tornArtifacts":1,' summary
			rv_equal l.jsonl "$(echo l.jsonl*)"
		done
	done
}

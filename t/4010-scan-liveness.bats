# Who still runs: an attempt's lock, its deadline, its boot, and the ledger it was written to.
load helper

# start_live NAME LEDGER UNTIL: an attempt that lives until stop_live NAME, which writes its outcome.
start_live() {
	mkfifo "$1.in"
	"$RV_BIN/t/ledger-tool" live "$2" "$3" <"$1.in" >"$1.id" 3>&- &
	echo $! >"$1.pid"
	eval "exec {$1}>$1.in"
	rv_until test -s "$1.id"
}

stop_live() {
	eval "exec {$1}>&-"
	wait "$(cat "$1.pid")"
}

kill_live() {
	kill -KILL "$(cat "$1.pid")"
	wait "$(cat "$1.pid")" || true
	eval "exec {$1}>&-"
}

@test "running while its lock is held, and alone no reason to fail" {
	start_live a l.jsonl 600000
	rv-ledger-scan l.jsonl >out
	grep -q "\"attemptId\":\"$(cat a.id)\".*\"state\":\"running\"}$" out
	rv-ledger-scan --format summary l.jsonl | grep -q '"orphans":0,"running":1,'
	stop_live a
	rv-ledger-scan l.jsonl >out
	[ ! -s out ]
}

@test "killed: an orphan at once, beside one that runs" {
	start_live a l.jsonl 600000
	start_live b l.jsonl 600000
	kill_live a
	rv_fails 1 rv-ledger-scan l.jsonl >out
	grep -q "\"attemptId\":\"$(cat a.id)\".*\"state\":\"orphan\"}$" out
	grep -q "\"attemptId\":\"$(cat b.id)\".*\"state\":\"running\"}$" out
	stop_live b
}

@test "past its deadline: an orphan, whoever holds the lock" {
	start_live a l.jsonl 0
	rv_until rv_fails 1 rv-ledger-scan l.jsonl >out
	grep -q '"state":"orphan"}$' out
	stop_live a
}

@test "in a copy, from another boot, with a malformed writer: unknown" {
	start_live a l.jsonl 600000
	sed 's/"bootId":"[^"]*"/"bootId":"00000000-0000-0000-0000-000000000000"/' l.jsonl >boot.jsonl
	sed 's/"writer":{[^}]*}/"writer":7/' l.jsonl >odd.jsonl
	sed 's/"writer":{[^}]*}/"writer":{}/' l.jsonl >empty.jsonl
	sed 's/"startedAt":[0-9]*/"startedAt":1000/' l.jsonl >copy.jsonl # born long after that
	for file in boot odd empty copy; do
		rv_fails 1 rv-ledger-scan $file.jsonl >out
		grep -q '"state":"unknown"}$' out || rv_die "$file: $(cat out)"
	done
	stop_live a
}

@test "without a writer: an orphan" {
	start_live a l.jsonl 600000
	sed 's/,"writer":{[^}]*}//' l.jsonl >l2.jsonl
	rv_fails 1 rv-ledger-scan l2.jsonl >out
	grep -q '"state":"orphan"}$' out
	stop_live a
}

@test "an ordinary user who can only read sees the same" {
	rv_need user
	dir=$(rv_user_dir)
	start_live a l.jsonl 600000
	chmod a+r l.jsonl
	rv_as_user "$dir/bin/rv-ledger-scan" l.jsonl >out
	grep -q '"state":"running"}$' out
	stop_live a
}

@test "a renamed ledger: the attempt lives in the old file, its outcome is in the new one" {
	start_live a l.jsonl 600000
	mv l.jsonl old.jsonl
	rv-ledger-scan old.jsonl >out
	grep -q '"state":"running"}$' out
	stop_live a
	[ -s l.jsonl ]
	rv-ledger-scan old.jsonl l.jsonl >out
	[ ! -s out ]
}

@test "attempts that begin and end under the scan are never called orphans" {
	for _ in 1 2 3 4; do
		while [ ! -e stop ]; do
			"$RV_BIN/t/ledger-tool" live l.jsonl 600000 </dev/null >/dev/null
		done 3>&- &
	done
	rv_until test -s l.jsonl
	for _ in {1..150}; do
		rv-ledger-scan l.jsonl >out || { touch stop; cat out; false; }
	done
	touch stop
	wait
	rv-ledger-scan l.jsonl >out
	[ ! -s out ]
}

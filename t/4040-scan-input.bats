# What rv-ledger-scan makes of files that no writer of ours would leave: each with its right status.
load helper

row() { # PHASE ATTEMPT [MORE]
	printf '{"phase":"%s","idempotencyKey":"k","runId":"r","spanId":"s","tool":"t","argsHash":"h","executor":"e","workdir":"/w","startedAt":1,"attemptId":"%s"%s}\n' "$1" "$2" "${3:-}"
}

outcome() { # ATTEMPT
	row outcome "$1" ',"durationMs":5,"outcome":"ok","exitCode":0,"signal":null'
}

# pairs COUNT: intents and outcomes; of every 500th no outcome.
pairs() {
	awk -v count="$1" -v intent="$(row intent @)" -v outcome="$(outcome @)" 'BEGIN {
		for (i = 1; i <= count; i++) {
			line = intent; sub(/@/, "a-" i, line); print line
			if (i % 500 == 0) continue
			line = outcome; sub(/@/, "a-" i, line); print line
		}
	}'
}

@test "threads: nonsense is refused, and any number gives the same bytes" {
	pairs 3000 >l.jsonl
	for threads in 0 -1 257 1.5 two '' 1x; do
		rv_fails 2 rv-ledger-scan --threads "$threads" l.jsonl
	done
	for format in orphans report keys summary; do
		rv_fails 1 rv-ledger-scan --format $format l.jsonl l.jsonl >one
		for threads in 2 5 256; do
			rv_fails 1 rv-ledger-scan --threads $threads --format $format l.jsonl l.jsonl >several
			cmp one several
		done
	done
}

@test "10,000 files, one of them with an orphan; 10,000 are open at a time, whatever the soft limit" {
	{ pairs 499; row intent alone; } | awk '{ file = sprintf("f.%05d.jsonl", n++); print >file; close(file) }'
	printf 'f.%05d.jsonl\n' {997..9999} | xargs touch
	rv_equal 10000 "$(ls | wc -l)"
	[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 10100 ] || rv_die "the hard limit on descriptors is below 10,100"
	ulimit -Sn 256
	for threads in 1 2; do
		rv_fails 1 rv-ledger-scan --threads $threads f.*.jsonl >out
		rv_equal 1 "$(wc -l <out)"
		grep -q '"at":{"file":"f.00998.jsonl","line":1,"offset":0}' out
	done
	ulimit -Hn 256
	rv_fails 5 rv-ledger-scan f.*.jsonl >out 2>err
	[ ! -s out ]
	grep -q 'f.00[0-9]*.jsonl: Too many open files' err
}

@test "4,096 zeros in the middle, behind a row and before one, and alone" {
	{ row intent a; head -c 4096 /dev/zero; outcome a; } >l.jsonl
	rv_fails 4 rv-ledger-scan l.jsonl >out 2>err
	[ ! -s out ]
	grep -q 'l.jsonl:2: ' err
	head -c 4096 /dev/zero >l.jsonl
	rv-ledger-scan l.jsonl 2>err
	grep -q 'l.jsonl:1: byte 0: a torn tail' err
}

@test "a FIFO is a stream; a directory, and a file without permission, cannot be read" {
	mkfifo fifo
	row intent a >fifo 3>&- &
	rv_fails 1 rv-ledger-scan fifo >out
	wait
	grep -q '"state":"unknown"}$' out
	mkdir dir
	rv_fails 5 rv-ledger-scan --threads 2 dir 2>err
	grep -q 'dir: ' err
	rv_need user
	dir=$(rv_user_dir)
	row intent a >"$dir/l.jsonl"
	chmod 0 "$dir/l.jsonl"
	rv_fails 5 rv_as_user "$dir/bin/rv-ledger-scan" "$dir/l.jsonl" 2>err
	grep -q 'Permission denied' err
}

@test "a socket and a loop of links cannot be read, /dev/null is an empty stream; the repair takes none of them" {
	perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "socket", Listen => 1) or die'
	ln -s loop loop
	mkdir dir
	mkfifo fifo
	row intent a >l.jsonl
	for file in socket loop missing dir; do
		for format in orphans summary; do
			rv_fails 5 rv-ledger-scan --format $format l.jsonl $file >out 2>err
			[ ! -s out ]
			grep -q "^rv-ledger-scan: .*$file" err || rv_die "$(cat err)"
		done
	done
	rv_equal '"rows":0' "$(rv-ledger-scan --format summary /dev/null | grep -o '"rows":0')"
	for file in socket loop missing dir fifo /dev/null; do
		for check in '' --check; do
			# shellcheck disable=SC2086 # a word, or none
			rv_fails 5 rv-ledger-repair $check --wait 200ms $file >out 2>err
			[ ! -s out ]
			grep -q "^rv-ledger-repair: $file: " err || rv_die "$(cat err)"
		done
	done
	rv_equal 'dir fifo l.jsonl loop socket' "$(find . -mindepth 1 -maxdepth 1 ! -name out ! -name err -printf '%f\n' | sort | paste -s -d ' ')"
}

@test "a file that becomes shorter while it is read is exit 5, at whatever read that shows" {
	rv_need strace
	pairs 2500 | grep -v '"a-[0-9]*[05]00"' >l.jsonl # several pieces
	strace -qq -o trace -e trace=pread64 -P "$PWD/l.jsonl" "$RV_BIN/rv-ledger-scan" "$PWD/l.jsonl"
	reads=$(grep -c 'pread64' trace)
	[ "$reads" -ge 4 ]
	for ((n = 1; n < reads; n++)); do # the last one finds the end
		rv_fails 5 strace -qq -o /dev/null -P "$PWD/l.jsonl" -e inject=pread64:retval=0:when=$n "$RV_BIN/rv-ledger-scan" "$PWD/l.jsonl" >out 2>err
		[ ! -s out ]
		grep -q 'l.jsonl: became shorter while it was read' err
	done
	# and truly: cut off behind the first read
	(strace -qq -o cut.trace -P "$PWD/l.jsonl" -e inject=pread64:signal=SIGSTOP:when=1 "$RV_BIN/rv-ledger-scan" "$PWD/l.jsonl" >out 2>err || echo $? >status) 3>&- &
	rv_until grep -q 'stopped by SIGSTOP' cut.trace
	truncate -s 1000 l.jsonl
	for process in /proc/[0-9]*; do
		[ "$(readlink "$process/exe")" != "$(realpath "$RV_BIN/rv-ledger-scan")" ] || ! grep -qF "$PWD/l.jsonl" "$process/cmdline" ||
			kill -CONT "${process##*/}"
	done
	wait
	rv_equal 5 "$(cat status)"
	grep -q 'became shorter' err
}

@test "a line longer than memory is refused, and costs no more than it is long" {
	rv_need own-memory
	{ row intent a; printf '{"x":"'; head -c 100000000 /dev/zero | tr '\0' x; } >l.jsonl
	(ulimit -v 150000; rv_fails 5 rv-ledger-scan l.jsonl) >out 2>err
	[ ! -s out ]
	grep -qi 'memory' err
	rv_fails 1 rv-ledger-scan l.jsonl >out 2>err # a torn tail of 100 MB
	grep -q 'l.jsonl:2: byte [0-9]*: a torn tail' err
}

@test "a long scan shows how far it is on a terminal's standard error, and nowhere else" {
	rv_need script strace
	pairs 100 >l.jsonl
	# The read takes a while, and so the scan.
	slowly="strace -qq -o /dev/null -P $PWD/l.jsonl -e inject=pread64:delay_enter=700000:when=1 $RV_BIN/rv-ledger-scan --format summary $PWD/l.jsonl"
	script -qec "$slowly" /dev/null >typed </dev/null || true
	grep -q $'\r\033\[K0/0 MiB' typed
	$slowly >out 2>err || true
	[ ! -s err ]
	rv_fails 1 grep -q MiB out
}

# What rv-ledger-scan prints, and its exit status.
load helper

row() { # PHASE ATTEMPT STARTED [TOOL] [MORE]
	printf '{"phase":"%s","idempotencyKey":"k-%s","runId":"run-1","spanId":"s","tool":"%s","argsHash":"h","executor":"subprocess","workdir":"/w","startedAt":%s,"attemptId":"%s"%s}\n' \
		"$1" "$2" "${4:-charge}" "$3" "$2" "${5:-}"
}

outcome() { # ATTEMPT STARTED [CLASS]
	row outcome "$1" "$2" charge ",\"durationMs\":5,\"outcome\":\"${3:-ok}\",\"exitCode\":0,\"signal\":null"
}

@test "no orphan: nothing on stdout, exit 0" {
	{ row intent a 1; outcome a 1; } >l.jsonl
	rv-ledger-scan l.jsonl >out 2>err
	[ ! -s out ]
	[ ! -s err ]
}

@test "an orphan is a line with its place and its state, exit 1" {
	{ row intent a 1; outcome a 1; row intent b 2; } >l.jsonl
	rv_fails 1 rv-ledger-scan l.jsonl >out 2>err
	[ ! -s err ]
	offset=$(head -n 2 l.jsonl | wc -c)
	rv_equal "$(row intent b 2 | sed 's/"phase":"intent",//; s/}$//'),\"at\":{\"file\":\"l.jsonl\",\"line\":3,\"offset\":$offset},\"state\":\"orphan\"}" "$(cat out)"
}

@test "a sibling's outcome, of any class, clears nobody else" {
	for class in ok error timeout; do
		{ row intent a 1; row intent b 2; outcome b 2 $class; } >l.jsonl
		rv_fails 1 rv-ledger-scan l.jsonl >out
		rv_equal 1 "$(wc -l <out)"
		grep -q '"attemptId":"a"' out
	done
}

@test "files are one set of rows, in any order" {
	row intent a 1 >one.jsonl
	outcome a 1 >two.jsonl
	row intent b 2 >three.jsonl
	rv-ledger-scan two.jsonl one.jsonl >out
	[ ! -s out ]
	rv_fails 1 rv-ledger-scan three.jsonl two.jsonl one.jsonl >out
	grep -q '"at":{"file":"three.jsonl","line":1,"offset":0}' out
}

@test "standard input is read, and what it says of liveness is unknown" {
	row intent a 1 >l.jsonl
	rv_fails 1 rv-ledger-scan - <l.jsonl >out
	grep -q '"at":{"file":"-","line":1,"offset":0},"state":"unknown"}$' out
	rv_fails 1 rv-ledger-scan <(cat l.jsonl) >out
	grep -q '"state":"unknown"}$' out
}

@test "a file that cannot be read is exit 5, with nothing on stdout" {
	row intent a 1 >l.jsonl
	rv_fails 5 rv-ledger-scan l.jsonl missing.jsonl >out 2>err
	[ ! -s out ]
	grep -q '^rv-ledger-scan: .*missing.jsonl' err
	mkdir dir.jsonl
	rv_fails 5 rv-ledger-scan dir.jsonl l.jsonl >out
	[ ! -s out ]
	rv_fails 2 rv-ledger-scan >out
}

@test "a failed write is exit 5" {
	rv_need full
	row intent a 1 >l.jsonl
	for format in orphans table report summary; do
		rv_fails 5 rv-ledger-scan --format $format l.jsonl >/dev/full 2>err
		grep -q 'standard output' err
	done
}

@test "damage fails closed: nothing on stdout, each line named with its hash" {
	{ row intent a 1; printf 'null\n'; row intent b 2; printf '\377\n{"phase":"x"}\n'; } >l.jsonl
	rv_fails 4 rv-ledger-scan l.jsonl >out 2>err
	[ ! -s out ]
	rv_equal 3 "$(wc -l <err)"
	offset=$(head -n 1 l.jsonl | wc -c)
	sum=$(printf null | sha256sum | cut -d' ' -f1)
	rv_equal "rv-ledger-scan: l.jsonl:2: byte $offset: sha256 $sum: not an object" "$(head -n 1 err)"
	grep -q 'l.jsonl:4: .*: not strict UTF-8$' err
	grep -q 'l.jsonl:5: .*: phase is unknown$' err
}

@test "tolerated damage is data, and exit 1" {
	{ row intent a 1; printf 'null\n'; outcome a 1; } >l.jsonl
	rv_fails 1 rv-ledger-scan --tolerate-corrupt l.jsonl >out 2>err
	[ ! -s out ]
	grep -q 'l.jsonl:2: ' err
	rv_fails 1 rv-ledger-scan --tolerate-corrupt --format summary l.jsonl >out
	rv_equal '{"files":1,"rows":2,"intents":1,"outcomes":1,"attempts":1,"orphans":0,"running":0,"unknown":0,"corrupt":1,"tornArtifacts":0,"tornTails":0}' "$(cat out)"
}

@test "a live tail is named and changes no status" {
	{ row intent a 1; outcome a 1; printf '{"phase":"int'; } >l.jsonl
	rv-ledger-scan l.jsonl >out 2>err
	[ ! -s out ]
	grep -q '^rv-ledger-scan: l.jsonl:3: byte [0-9]*: a torn tail' err
	rv-ledger-scan --format report l.jsonl >out
	grep -q '"tornTail":{"preview":"{\\"phase\\":\\"int"}}$' out
	rv-ledger-scan --format report l.jsonl l.jsonl >out
	grep -q '"tornTails":\[{"file":"l.jsonl","preview":' out
	printf '{"phase":"intent"}' >l.jsonl
	rv_fails 4 rv-ledger-scan l.jsonl
}

@test "several files: damage and quarantined bytes say where" {
	printf 'x\n{"phase":"torn","bytes":"y","recoveredAt":5}\n' >l.jsonl
	: >empty.jsonl
	rv_fails 1 rv-ledger-scan --tolerate-corrupt --format report l.jsonl empty.jsonl >out
	sum=$(printf x | sha256sum | cut -d' ' -f1)
	rv_equal "{\"intents\":[],\"outcomes\":[],\"orphanedIntents\":[],\"corrupt\":[{\"file\":\"l.jsonl\",\"line\":1,\"offset\":0,\"sha256\":\"$sum\",\"preview\":\"x\"}],\"tornArtifacts\":[{\"bytes\":\"y\",\"recoveredAt\":5,\"file\":\"l.jsonl\"}],\"tornTails\":[]}" "$(cat out)"
}

@test "an attempt is an intent, or an outcome that no intent pairs with" {
	{ row intent a 1; outcome a 1; outcome b 2; row intent c 3; } >l.jsonl
	rv_fails 1 rv-ledger-scan --format summary l.jsonl >out
	rv_equal '{"files":1,"rows":4,"intents":2,"outcomes":2,"attempts":3,"orphans":1,"running":0,"unknown":0,"corrupt":0,"tornArtifacts":0,"tornTails":0}' "$(cat out)"
}

@test "filters: OR within a kind, AND between kinds; what they hide is counted" {
	{ row intent a 1000 charge; row intent b 2000 mail; row intent c 3000 mail; } >l.jsonl
	rv_fails 1 rv-ledger-scan --tool mail l.jsonl >out 2>err
	rv_equal 2 "$(wc -l <out)"
	grep -q '^rv-ledger-scan: 1 more outside the filters' err
	rv_fails 1 rv-ledger-scan --tool mail --key k-b --key k-a l.jsonl >out 2>/dev/null
	rv_equal 1 "$(wc -l <out)"
	grep -q '"attemptId":"b"' out
	rv_fails 1 rv-ledger-scan --attempt a --attempt c l.jsonl >out 2>/dev/null
	rv_equal 2 "$(wc -l <out)"
	rv_fails 1 rv-ledger-scan --since 1970-01-01T00:00:02Z --until 2000 l.jsonl >out 2>/dev/null
	rv_equal 1 "$(wc -l <out)"
	grep -q '"attemptId":"b"' out
	rv-ledger-scan --run-id other l.jsonl >out 2>err
	[ ! -s out ]
	grep -q '3 more outside' err
	rv-ledger-scan --state running l.jsonl >out 2>/dev/null
	[ ! -s out ]
	rv_fails 1 rv-ledger-scan --state orphan --min-age 1h l.jsonl >out 2>/dev/null
	rv_equal 3 "$(wc -l <out)"
	now=$(date +%s)000
	row intent d "$now" >young.jsonl
	rv-ledger-scan --min-age 1h young.jsonl >out 2>/dev/null
	[ ! -s out ]
	rv_fails 2 rv-ledger-scan --state dead l.jsonl
	rv_fails 2 rv-ledger-scan --since yesterday l.jsonl
	rv_fails 2 rv-ledger-scan --min-age 5 l.jsonl
}

@test "the table is aligned, and nothing of a ledger reaches the terminal raw" {
	{ row intent a 1000 'ch\u001b[31mrge'; row intent bbbbbb 2000 é; } >l.jsonl
	rv_fails 1 rv-ledger-scan --format table l.jsonl >out 2>err
	rv_equal 3 "$(wc -l <out)"
	rv_fails 1 grep -q $'\033' out
	sed 's/é/e/' out | awk '{ at = index($0, NR == 1 ? "RUN" : "run-1"); if (NR > 1 && at != last) exit 1; last = at }'
	grep -q 'l.jsonl:2$' out
	grep -q 'provider' err
}

@test "a terminal gets the table, a pipe the lines" {
	rv_need script
	row intent a 1000 >l.jsonl
	script -qec "rv-ledger-scan l.jsonl" /dev/null >out </dev/null || true
	grep -q '^STATE' out
}

@test "a line of 16 MiB, and the good lines behind it" {
	{ row intent a 1; row intent big 2 "$(head -c 16777216 /dev/zero | tr '\0' x)"; row intent c 3; outcome c 3; } >l.jsonl
	rv_fails 1 rv-ledger-scan l.jsonl >out
	rv_equal 2 "$(wc -l <out)"
	{ head -c 16777216 /dev/zero | tr '\0' y; echo; row intent c 3; } >l.jsonl
	rv_fails 4 rv-ledger-scan l.jsonl 2>err
	rv_equal 1 "$(wc -l <err)"
	rv_fails 1 rv-ledger-scan --tolerate-corrupt l.jsonl >out 2>err
	rv_equal 1 "$(wc -l <out)"
}

@test "4,096 zeros: at the end a torn tail, in the middle damage" {
	{ row intent a 1; outcome a 1; head -c 4096 /dev/zero; } >l.jsonl
	rv-ledger-scan l.jsonl 2>err
	grep -q 'torn tail' err
	{ head -c 4096 /dev/zero; echo; row intent a 1; } >l.jsonl
	rv_fails 4 rv-ledger-scan l.jsonl
}

@test "the order of members, what is extra, and what is written twice stay as the engine has it" {
	printf '%s\n' '{"phase":"outcome","phase":"intent","10":1,"9":{"b":1e3,"a":"\ud800"},"idempotencyKey":"k","runId":"r","spanId":"s","tool":"t","argsHash":"h","executor":"e","workdir":"/w","startedAt":1.0,"state":"forged","at":"x","phases":","}' >l.jsonl
	rv_fails 1 rv-ledger-scan l.jsonl >out
	rv_equal '{"9":{"b":1000,"a":"\ud800"},"10":1,"idempotencyKey":"k","runId":"r","spanId":"s","tool":"t","argsHash":"h","executor":"e","workdir":"/w","startedAt":1,"phases":",","at":{"file":"l.jsonl","line":1,"offset":0},"state":"orphan"}' "$(cat out)"
}

@test "a ledger on a pipe that ends early is no smaller answer" {
	row intent a 1 >l.jsonl
	rv_fails 5 rv-ledger-scan - <&- 2>err
	[ -s err ]
}

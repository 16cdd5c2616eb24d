# An operator's own files beside a ledger: decisions and approvals; and the view by keys.
load helper

row() { # PHASE ATTEMPT STARTED [KEY] [MORE]
	printf '{"phase":"%s","idempotencyKey":"%s","runId":"run-1","spanId":"s","tool":"charge","argsHash":"h-%s","executor":"subprocess","workdir":"/w","startedAt":%s%s%s}\n' \
		"$1" "${4:-k-$2}" "${4:-$2}" "$3" "${2:+,\"attemptId\":\"$2\"}" "${5:-}"
}

outcome() { # ATTEMPT STARTED KEY CLASS
	row outcome "$1" "$2" "$3" ",\"durationMs\":5,\"outcome\":\"$4\",\"exitCode\":0,\"signal\":null"
}

decision() { # TARGET
	printf '{%s,"who":"ann","why":"seen at the provider","at":"2026-11-30","receipt":"r-1"}\n' "$1"
}

@test "a decided orphan leaves the list and the status; the ledger is not touched" {
	{ row intent a 1; row intent '' 2 legacy; row intent c 3; } >l.jsonl
	cp l.jsonl before
	decision '"attemptId":"a"' >d.jsonl
	rv_fails 1 rv-ledger-scan --decisions d.jsonl l.jsonl >out
	rv_equal 2 "$(wc -l <out)"
	rv_fails 1 grep '"attemptId":"a"' out
	{ decision '"attemptId":"a"'; echo; decision '"idempotencyKey":"legacy","startedAt":2.0'; decision '"attemptId":"c"'; decision '"attemptId":"nobody"'; } >d.jsonl
	rv-ledger-scan --decisions d.jsonl l.jsonl >out
	[ ! -s out ]
	rv-ledger-scan --decisions d.jsonl --format report l.jsonl >out
	grep -q '"orphanedIntents":\[\]' out
	grep -q '"decided":\[{"attemptId":"a",.*{"idempotencyKey":"legacy",.*{"attemptId":"c",' out
	rv_fails 1 grep nobody out
	rv-ledger-scan --decisions d.jsonl --format summary l.jsonl | grep -q '"orphans":0,'
	cmp before l.jsonl
}

@test "a decision for rows without an attemptId decides no other" {
	row intent a 1 k >l.jsonl
	decision '"idempotencyKey":"k","startedAt":1' >d.jsonl
	rv_fails 1 rv-ledger-scan --decisions d.jsonl l.jsonl >out
	rv_equal 1 "$(wc -l <out)"
}

@test "a decided corrupt line no longer refuses the scan, another one does" {
	{ echo null; row intent a 1; } >l.jsonl
	decision "\"sha256\":\"$(printf null | sha256sum | cut -d' ' -f1)\"" >d.jsonl
	rv_fails 1 rv-ledger-scan --decisions d.jsonl l.jsonl >out 2>err
	rv_equal 1 "$(wc -l <out)"
	[ ! -s err ]
	decision '"attemptId":"a"' >>d.jsonl
	rv-ledger-scan --decisions d.jsonl l.jsonl >out
	echo 42 >>l.jsonl
	rv_fails 4 rv-ledger-scan --decisions d.jsonl l.jsonl >out 2>err
	[ ! -s out ]
	rv_equal 1 "$(wc -l <err)"
	grep -q 'l.jsonl:3: ' err
}

@test "anything else in a decisions file is exit 3, and its line is named" {
	row intent a 1 >l.jsonl
	decision '"attemptId":"a"' >good
	for bad in x 42 '[]' '{}' '{"attemptId":"a"}' \
		'{"attemptId":"a","who":"","why":"w","at":"t","receipt":"r"}' \
		'{"attemptId":"a","who":"a","why":"w","at":"t"}' \
		'{"attemptId":"a","who":"a","why":"w","at":7,"receipt":"r"}' \
		'{"attemptId":7,"who":"a","why":"w","at":"t","receipt":"r"}' \
		'{"idempotencyKey":"k","who":"a","why":"w","at":"t","receipt":"r"}' \
		'{"attemptId":"a","sha256":"0000000000000000000000000000000000000000000000000000000000000000","who":"a","why":"w","at":"t","receipt":"r"}' \
		'{"sha256":"abc","who":"a","why":"w","at":"t","receipt":"r"}'; do
		{ cat good; printf '%s\n' "$bad"; } >d.jsonl
		rv_fails 3 rv-ledger-scan --decisions d.jsonl l.jsonl >out 2>err
		[ ! -s out ]
		grep -q '^rv-ledger-scan: d.jsonl:2: ' err || rv_die "$bad: $(cat err)"
	done
	rv_fails 5 rv-ledger-scan --decisions missing l.jsonl
	rv_fails 2 rv-ledger-scan --decisions - - <good
}

@test "approvals: what nothing authorised, and how often each was used" {
	{ row intent a 1; outcome a 1 k-a ok; row intent b 2; outcome c 3 k-c error; } >l.jsonl
	cat >ap.jsonl <<-'JSON'
		{"runId":"run-1","tool":"charge","argsHash":"h-a","by":"ann"}
		{"runId":"run-1","tool":"charge","argsHash":"h-b","decision":"approved"}
		{"runId":"run-1","tool":"charge","argsHash":"h-b","decision":"rejected"}
		{"runId":"run-1","tool":"charge","argsHash":"h-unused","decision":"approved"}
	JSON
	row intent a2 4 a >>l.jsonl
	sed -i 's/h-k-/h-/' l.jsonl
	rv_fails 1 rv-ledger-scan --approvals ap.jsonl l.jsonl >out
	rv_equal 4 "$(wc -l <out)"
	sed -n 1p out | grep -q '^{"kind":"unapproved","idempotencyKey":"k-b",.*"at":{"file":"l.jsonl","line":3,'
	sed -n 2p out | grep -q '^{"kind":"unapproved","idempotencyKey":"k-c",.*"outcome":"error"'
	rv_equal '{"kind":"approval","runId":"run-1","tool":"charge","argsHash":"h-a","by":"ann","attempts":2}' "$(sed -n 3p out)"
	rv_equal '{"kind":"approval","runId":"run-1","tool":"charge","argsHash":"h-unused","decision":"approved","attempts":0}' "$(sed -n 4p out)"
	# An orphan that was approved is not what this is about.
	printf '{"runId":"run-1","tool":"charge","argsHash":"h-b"}\n{"runId":"run-1","tool":"charge","argsHash":"h-c"}\n' >>ap.jsonl
	rv-ledger-scan --approvals ap.jsonl l.jsonl >out
	rv_equal 4 "$(grep -c '"kind":"approval"' out)"
}

@test "an approvals file with anything else is exit 3" {
	row intent a 1 >l.jsonl
	for bad in x '[]' '{"runId":"r","tool":"t"}' '{"runId":"r","tool":"t","argsHash":7}'; do
		printf '%s\n' "$bad" >ap.jsonl
		rv_fails 3 rv-ledger-scan --approvals ap.jsonl l.jsonl >out 2>err
		grep -q 'ap.jsonl:1: ' err
	done
	rv_fails 2 rv-ledger-scan --approvals ap.jsonl --format table l.jsonl
}

@test "keys: each once, by first appearance, with its attempts and how they ended" {
	{
		outcome z 9 k-late ok
		row intent a 10 k
		outcome a 10 k timeout
		row intent b 5 k
		row intent c 20 k
		outcome c 20 k ok
	} >l.jsonl
	rv_fails 1 rv-ledger-scan --format keys l.jsonl >out
	rv_equal '{"idempotencyKey":"k-late","runId":"run-1","tool":"charge","argsHash":"h-k-late","attempts":1,"outcomes":{"ok":1,"error":0,"timeout":0},"orphans":0,"running":0,"firstStartedAt":9,"lastStartedAt":9}' "$(sed -n 1p out)"
	rv_equal '{"idempotencyKey":"k","runId":"run-1","tool":"charge","argsHash":"h-k","attempts":3,"outcomes":{"ok":1,"error":0,"timeout":1},"orphans":1,"running":0,"firstStartedAt":5,"lastStartedAt":20}' "$(sed -n 2p out)"
	rv_equal 2 "$(wc -l <out)"
	rv_fails 1 rv-ledger-scan --format keys --state orphan l.jsonl >out
	rv_equal 1 "$(wc -l <out)"
}

# What rv-ledger-repair, and an append, make of a tail.
load helper

good='{"phase":"outcome","idempotencyKey":"k","runId":"r","spanId":"s","tool":"t","argsHash":"h","executor":"e","workdir":"/w","startedAt":1,"durationMs":1,"outcome":"ok","exitCode":0,"signal":null}'

sha_of() { # FILE
	sha256sum "$1" | cut -d' ' -f1
}

# The quarantine row of a file's bytes, without its time.
quarantine_of() { # FILE
	printf '"bytesBase64":"%s","sha256":"%s","recoveredAt":\n' "$(base64 -w0 "$1")" "$(sha_of "$1")"
}

# Each of the tails of the field notes, in a file of its own.
make_tails() {
	printf '{"a":1' >tail.cut
	printf '\360\237' >tail.emoji
	printf '{"tool":"\360\237' >tail.inside
	head -c 4096 /dev/zero >tail.zeros
	printf '   ' >tail.blank
	head -c 300000 /dev/urandom | tr -d '\n' >tail.noise
}

@test "each kind of tail becomes its quarantine row, byte-true, and the scan is clean" {
	make_tails
	for tail in tail.*; do
		{ printf '%s\n' "$good"; cat "$tail"; } >l.jsonl
		rv-ledger-repair l.jsonl >out
		rv_equal "{\"file\":\"l.jsonl\",\"action\":\"quarantined\",\"line\":2,\"offset\":$((${#good} + 1)),\"bytes\":$(stat -c %s "$tail"),\"sha256\":\"$(sha_of "$tail")\"}" "$(cat out)"
		rv_equal "$good" "$(head -n 1 l.jsonl)"
		rv_equal 2 "$(wc -l <l.jsonl)"
		quarantine_of "$tail" >pattern
		tail -n 1 l.jsonl | grep -qFf pattern
		rv-ledger-scan l.jsonl
		rv-ledger-repair l.jsonl >again
		rv_equal '{"file":"l.jsonl","action":"none","line":null,"offset":null,"bytes":null,"sha256":null}' "$(cat again)"
	done
	rv_equal l.jsonl "$(echo l.jsonl*)" 'left behind'
}

@test "a whole row gets its newline and keeps its meaning" {
	printf '%s' "$good" >l.jsonl
	rv-ledger-repair l.jsonl >out
	grep -q '"action":"terminated","line":1,"offset":0,' out
	rv_equal "$good" "$(cat l.jsonl)"
	rv_equal 1 "$(wc -l <l.jsonl)"
}

@test "JSON of a wrong shape is terminated and named" {
	printf '{"phase":"intent"}' >l.jsonl
	rv-ledger-repair l.jsonl >out 2>err
	grep -q '"action":"terminated"' out
	grep -q '^rv-ledger-repair: l.jsonl:1: byte 0: ' err
	rv_fails 4 rv-ledger-scan l.jsonl
}

@test "an append repairs first: nothing is glued onto torn bytes" {
	make_tails
	printf '%s' "$good" >tail.whole
	for tail in tail.*; do
		{ printf '%s\n' "$good"; cat "$tail"; } >l.jsonl
		printf '%s\n' "$good" | "$RV_BIN/t/ledger-tool" append l.jsonl
		rv_equal 3 "$(wc -l <l.jsonl)"
		rv_equal "$good" "$(tail -n 1 l.jsonl)"
		rv-ledger-scan l.jsonl
	done
}

@test "damage in the middle is named, exit 4, and not one byte changes" {
	{ printf '%s\n' "$good"; head -c 4096 /dev/zero; printf '\n%s\n{"a":1' "$good"; } >l.jsonl
	cp l.jsonl before
	rv_fails 4 rv-ledger-repair l.jsonl >out 2>err
	[ ! -s out ]
	grep -q "^rv-ledger-repair: l.jsonl:2: byte $((${#good} + 1)): sha256 [0-9a-f]*: not JSON$" err
	cmp before l.jsonl
	rv_fails 4 rv-ledger-repair --check l.jsonl >out 2>err
	grep -q 'l.jsonl:2: ' err
}

@test "an append beside damage in the middle still mends its tail and leaves the rest" {
	{ printf 'x\n%s\n{"a":1' "$good"; } >l.jsonl
	printf '%s\n' "$good" | "$RV_BIN/t/ledger-tool" append l.jsonl
	rv_equal x "$(head -n 1 l.jsonl)"
	rv_equal 4 "$(wc -l <l.jsonl)"
	rv_equal "$good" "$(tail -n 1 l.jsonl)"
}

@test "--check writes nothing, says what would be done, and tells it by its status" {
	{ printf '%s\n' "$good"; printf '{"a":1'; } >l.jsonl
	cp l.jsonl before
	rv_fails 1 rv-ledger-repair --check l.jsonl >out
	cmp before l.jsonl
	rv-ledger-repair l.jsonl >after
	cmp out after
	rv-ledger-repair --check l.jsonl >out
	grep -q '"action":"none"' out
}

@test "--check needs no write permission" {
	rv_need user
	dir=$(rv_user_dir)
	mkdir ro
	printf '{"a":1' >ro/l.jsonl
	chmod 555 ro
	chmod 444 ro/l.jsonl
	chmod a+x "$BATS_TEST_TMPDIR"
	rv_fails 1 rv_as_user "$dir/bin/rv-ledger-repair" --check ro/l.jsonl >out
	grep -q '"action":"quarantined","line":1,"offset":0,"bytes":6,' out
	rv_fails 5 rv_as_user "$dir/bin/rv-ledger-repair" ro/l.jsonl 2>err
	rv_equal '{"a":1' "$(cat ro/l.jsonl)"
	chmod 755 ro
}

@test "an ordinary user repairs its own" {
	rv_need user
	dir=$(rv_user_dir)
	printf '%s\n{"a":1' "$good" >"$dir/l.jsonl"
	[ "$(id -u)" -ne 0 ] || chown "$RV_USER" "$dir/l.jsonl"
	rv_as_user "$dir/bin/rv-ledger-repair" "$dir/l.jsonl" >out
	grep -q '"action":"quarantined"' out
	rv-ledger-scan "$dir/l.jsonl"
	rv_equal 2 "$(wc -l <"$dir/l.jsonl")"
}

@test "several files: each has its line, the worst gives the status" {
	printf '%s\n' "$good" >a.jsonl
	printf '%s\n{' "$good" >b.jsonl
	printf 'x\n' >c.jsonl
	rv_fails 5 rv-ledger-repair a.jsonl missing.jsonl b.jsonl >out 2>err
	rv_equal 2 "$(wc -l <out)"
	grep -q 'missing.jsonl' err
	rv_fails 4 rv-ledger-repair a.jsonl c.jsonl b.jsonl >out 2>err
	rv_equal 2 "$(wc -l <out)"
	mkdir d
	rv_fails 5 rv-ledger-repair d 2>err
	rv_fails 2 rv-ledger-repair
	rv_fails 2 rv-ledger-repair --wait 5 a.jsonl
}

@test "a failed write of the answer is exit 5" {
	rv_need full
	printf '%s\n' "$good" >l.jsonl
	rv_fails 5 rv-ledger-repair l.jsonl >/dev/full
}

@test "what it makes is private, and the ledger keeps its mode" {
	printf '{"a":1' >l.jsonl
	chmod 640 l.jsonl
	rv-ledger-repair l.jsonl >out
	rv_equal 640 "$(stat -c %a l.jsonl)"
	umask 0
	printf '%s\n' "$good" | "$RV_BIN/t/ledger-tool" append new.jsonl
	rv_equal 600 "$(stat -c %a new.jsonl)"
}

@test "through a link: the ledger behind it, and the link stays" {
	mkdir real
	printf '%s\n{"a":1' "$good" >real/l.jsonl
	ln -s real/l.jsonl l.jsonl
	rv-ledger-repair l.jsonl >out
	[ -L l.jsonl ]
	rv_equal 2 "$(wc -l <real/l.jsonl)"
	rv_equal l.jsonl "$(ls real)"
	printf '%s\n' "$good" | "$RV_BIN/t/ledger-tool" append l.jsonl
	rv_equal 3 "$(wc -l <real/l.jsonl)"
}

@test "a copy's name that is a link is not followed" {
	printf '{"a":1' >l.jsonl
	printf 'precious' >precious
	ln -s precious "l.jsonl.torn.$(sha_of l.jsonl)"
	rv_fails 5 rv-ledger-repair l.jsonl 2>err
	rv_equal precious "$(cat precious)"
	rv_equal '{"a":1' "$(cat l.jsonl)"
}

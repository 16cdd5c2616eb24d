# Receipts and rv-confine --receipt: what the suite confine was held on may run, and nothing else.
load helper
load conform
load confine

# A whole run of an adapter that is rv-confine alone: one for the file.
setup_file() {
	export RECEIPTS=$BATS_FILE_TMPDIR
	printf '#!/bin/sh\nif [ "$1" = --capabilities ]; then echo '\''{"name":"confine","capabilities":["confine"]}'\''; exit; fi\nexec "%s" --adapter -- "$@"\n' \
		"$RV_BIN/rv-conform" >"$RECEIPTS/alone"
	chmod 755 "$RECEIPTS/alone"
	"$RV_BIN/rv-conform" --jobs 8 --timeout 120s --receipt "$RECEIPTS/r.json" -- "$RECEIPTS/alone" >"$RECEIPTS/out.txt" 2>&1 ||
		{ grep -A4 FAIL "$RECEIPTS/out.txt"; false; }
}

@test "the receipt carries the runtime and the profile that the suite confine was held on, and they are checked" {
	jq -e --arg runtime "$(rv-confine --describe-runtime /bin/sh | jq -r .digest)" --arg profile "$(rv-confine --describe-profile | jq -r .digest)" \
		'.runtimes == [{path: "/bin/sh", digest: $runtime}] and .profiles == [{name: "linux/1", digest: $profile}]
			and .counts.failed == 0 and .counts.passed > 40' "$RECEIPTS/r.json"
	rv-conform --check-receipt "$RECEIPTS/r.json"
	for which in runtime profile; do
		jq --arg which $which '.[$which + "s"][0].digest |= sub("[0-9a-f]{8}$"; "00000000")' "$RECEIPTS/r.json" >other.json
		rv_fails 1 rv-conform --check-receipt other.json >out.txt
		grep -q "^$which .*: differs$" out.txt
	done
}

@test "rv-confine --receipt: that runtime and profile run, proven; any other is a mismatch" {
	script main.sh <<<'echo ran'
	run_sh main.sh --receipt "$RECEIPTS/r.json"
	holds "$GOOD" 'out == b"ran\n"' 'r["identities"]["runtime"]["proven"] is True'
	run_sh main.sh
	holds "$GOOD" 'r["identities"]["runtime"]["proven"] is False'
	cp "$SH" other
	rv_fails 3 confine --runtime "$PWD/other" --entry main.sh --receipt "$RECEIPTS/r.json" >result 2>stderr
	holds 'r["reason"] == "runtime-mismatch" and "receipt" in r["message"] and r["namespace"] is None'
	for profile in linux/1+proc landlock/1; do
		rv_fails 3 confine --runtime "$SH" --entry main.sh --profile $profile --receipt "$RECEIPTS/r.json" >result 2>stderr
		holds 'r["reason"] == "profile-mismatch" and "receipt" in r["message"]'
	done
	root_is_empty
}

@test "a receipt with failures, of something else, or cut short vouches for nothing" {
	script main.sh <<<'echo ran'
	jq '.counts.failed = 1' "$RECEIPTS/r.json" >failed.json
	echo '{"kind":"other"}' >other.json
	head -c 400 "$RECEIPTS/r.json" >cut.json
	for receipt in failed other cut nowhere; do
		! confine --runtime "$SH" --entry main.sh --receipt "$PWD/$receipt.json" >result 2>stderr || rv_die "$receipt" || return
		[ ! -s result ] || rv_die "$receipt: $(cat result)" || return
	done
}

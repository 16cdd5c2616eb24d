# Everybody at one ledger at once.  scripts/soak torture goes on to a hundred thousand rows.
load helper

torture() { # SECONDS
	"$RV_BIN/t/ledger-torture" . "$1" >out
}

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	torture 5 || true
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
}

@test "16 writers, half of them killed, an engine's writer without locks, torn tails, two repairers" {
	cat out
	grep -q '^1\.\.[1-9]' out
	rv_fails 1 grep -q '^not ok' out
	rv-ledger-scan l.jsonl
}

@test "the judge sees a row lost, one that is there twice, a tail quarantined twice, changed, or never torn" {
	cp l.jsonl true.jsonl
	# doctored SAID: of l.jsonl, which is put right again.
	doctored() {
		rv_fails 1 torture 0
		grep -q "^not ok [0-9]* - $1" out || rv_die "$(cat out)"
		cp true.jsonl l.jsonl
	}
	torture 0 # the true one
	id=$(sed -n 20p confirmed)
	grep -vF "\"attemptId\":\"$id\"" true.jsonl >l.jsonl
	doctored 'each confirmed row is there'
	grep -F "\"attemptId\":\"$id\"" true.jsonl >>l.jsonl
	doctored 'no row is there twice'
	torn=$(grep -m 1 '"phase":"torn"' true.jsonl)
	printf '%s\n' "$torn" >>l.jsonl
	doctored 'each torn tail is quarantined, once'
	printf '%s\n' "${torn/\"sha256\":\"?/\"sha256\":\"x}" >>l.jsonl
	doctored 'each quarantine row has the bytes'
	base64=$(printf 'never torn' | base64)
	sha256=$(printf 'never torn' | sha256sum | cut -d ' ' -f 1)
	printf '{"phase":"torn","bytes":"never torn","bytesBase64":"%s","sha256":"%s","recoveredAt":1}\n' "$base64" "$sha256" >>l.jsonl
	doctored 'each quarantine row has the bytes'
	sed -i '20s/$/x/' l.jsonl
	doctored 'no line is damaged'
}

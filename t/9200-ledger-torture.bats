# Everybody at one ledger at once.
load helper

@test "16 writers, half of them killed, an engine's writer without locks, torn tails, two repairers" {
	"$RV_BIN/t/ledger-torture" "$BATS_TEST_TMPDIR" "${RV_TORTURE_SECONDS:-5}" >out
	cat out
	rv_fails 1 grep -q '^not ok' out
	rv-ledger-scan l.jsonl
}

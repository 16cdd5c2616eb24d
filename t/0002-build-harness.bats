# The harness itself: what fails is seen to fail.
load helper

# Inside a test bats has its own parts first in PATH; a bats of its own needs the outer one.
setup() {
	PATH=$(printf %s "$PATH" | tr : '\n' | grep -v '/bats-core$' | paste -s -d :)
}

# drive FILE: run a bats file as 'make check' does; its verdict is in drive.trs.
drive() {
	env -i PATH="$PATH" RV_SRC="$RV_SRC" RV_BIN="$RV_BIN" TMPDIR="$BATS_TEST_TMPDIR" AM_TAP_AWK=awk \
		sh "$RV_SRC/build-aux/tap-driver.sh" --test-name drive --log-file drive.log --trs-file drive.trs \
		--color-tests no --enable-hard-errors yes --expect-failure no -- bats --tap "$1" >drive.out 2>&1
}

# verdict FILE TALLY: this file is tallied so.
verdict() {
	mkdir -p results
	drive "$1"
	mv drive.trs results/
	if [[ $2 == *" 0 failed"* ]]; then
		rv_equal "$2" "$("$RV_SRC/scripts/tally" results)"
		grep -q '^:global-test-result: PASS' results/drive.trs
	else
		rv_fails 1 "$RV_SRC/scripts/tally" results >tally.txt
		rv_equal "$2" "$(cat tally.txt)"
		rv_fails 1 grep -Eq '^:global-test-result: (PASS|SKIP)' results/drive.trs
	fi
}

@test "a test that passes, passes" {
	printf '@test "one" {\n\ttrue\n}\n@test "two" {\n\tskip "why"\n}\n' >a.bats
	verdict a.bats '1 passed, 0 failed, 1 skipped'
}

@test "a test that fails, fails" {
	printf '@test "one" {\n\tfalse\n\ttrue\n}\n@test "two" {\n\ttrue\n}\n' >a.bats
	verdict a.bats '1 passed, 1 failed, 0 skipped'
}

@test "a file that aborts, fails" {
	printf '@test "one" {\n\ttrue\n}\nexit 0\n@test "two" {\n\ttrue\n}\n' >a.bats
	verdict a.bats '0 passed, 1 failed, 0 skipped'
}

@test "a file with a syntax error fails" {
	printf '@test "one" {\n\ttrue\n}\n@test "two" {\n\tif\n}\n' >a.bats
	verdict a.bats '0 passed, 1 failed, 0 skipped'
}

@test "a test that ends its own shell fails" {
	printf '@test "one" {\n\ttrue\n}\n@test "two" {\n\texit 0\n}\n@test "three" {\n\tkill -9 $$\n}\n' >a.bats
	mkdir -p results
	drive a.bats
	mv drive.trs results/
	rv_fails 1 "$RV_SRC/scripts/tally" results
}

@test "a file without tests is no success" {
	: >a.bats
	mkdir -p results
	drive a.bats
	mv drive.trs results/
	rv_fails 1 "$RV_SRC/scripts/tally" results
}

@test "no results are no success" {
	mkdir -p empty
	rv_fails 1 "$RV_SRC/scripts/tally" empty
	rv_fails 1 "$RV_SRC/scripts/tally" nowhere
}

@test "rv_fails wants the very status and no signal" {
	rv_fails 3 sh -c 'exit 3'
	rv_fails 1 rv_fails 3 sh -c 'exit 4'
	rv_fails 1 rv_fails 3 true
	rv_fails 1 rv_fails 137 sh -c 'kill -9 $$'
	rv_fails 1 rv_fails 9 sh -c 'kill -9 $$'
	rv_fails 1 rv_fails 99 sh -c 'exit 99'
	rv_fails 1 rv_fails 0 true
}

@test "rv_dies knows a signal from a status" {
	rv_dies 15 sh -c 'kill -15 $$'
	rv_fails 1 rv_dies 15 sh -c 'exit 143'
	rv_fails 1 rv_dies 15 sh -c 'kill -9 $$'
	rv_fails 1 rv_dies 15 true
	rv_fails 1 rv_dies 15 /nonexistent/program
}

@test "rv_equal compares" {
	rv_equal a a
	rv_fails 1 rv_equal a b
	rv_fails 1 rv_equal a ''
}

@test "a missing facility skips with its reason, and fails where it must work" {
	printf 'load "%s/t/helper"\n@test "one" {\n\trv_need no-such-program-here\n\tfalse\n}\n' "$RV_SRC" >a.bats
	env -u RV_MUST_WORK bats --tap a.bats >a.out
	grep -q '^ok 1 one # skip needs no-such-program-here' a.out
	rv_fails 1 env RV_MUST_WORK=1 bats --tap a.bats >a.out
	RV_MUST_WORK=1 RV_WITHOUT='x no-such-program-here' bats --tap a.bats >a.out
	grep -q '^ok 1 one # skip this run is without no-such-program-here' a.out
}

@test "an ordinary user can be had" {
	rv_need user
	dir=$(rv_user_dir)
	[ "$(rv_as_user id -u)" -ne 0 ]
	rv_as_user sh -c "cd '$dir' && : >made"
	[ -e "$dir/made" ]
}

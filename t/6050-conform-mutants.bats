# Every check can fail: for each there is a broken executor that turns it red.
load helper
load conform

@test "each check has a mutant that turns it red" {
	rv_need python3
	"$RV_PYTHON" -I "$RV_SRC/scripts/mutants" --targets --jobs 8 --bin "$RV_BIN" >matrix.txt 2>problems.txt || { cat problems.txt; false; }
	[ ! -s problems.txt ]
	# those of the suite container need an engine: t/6070
	rv-conform --list | grep -v '^container' | cut -f 2 | while read -r id; do
		grep -q "^$id .*!" matrix.txt || rv_die "no mutant turns $id red"
	done
	rv_fails 1 grep -q 'NONE$' matrix.txt
}

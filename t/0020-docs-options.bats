# Each page says what its program's --help says: the same options with the same arguments, the same
# exit statuses, in both directions.
load helper

facts() {
	awk -f "$RV_SRC/t/docs.awk" "$1" | grep "^$2 " | sort
}

# compare KIND: of every program's page and help.
compare() {
	local program

	[ -n "$(rv_programs)" ]
	for program in $(rv_programs); do
		"$program" --help >help.txt
		facts help.txt "$1" >from-help.txt
		facts "$RV_SRC/man/$program.1" "$1" >from-page.txt
		[ -s from-help.txt ]
		diff -u --label "$program --help" --label "man/$program.1" from-help.txt from-page.txt
	done
}

@test "each program has a page, and each page a program" {
	rv_programs | sort >programs.txt
	for page in "$RV_SRC"/man/*.1; do
		basename "$page" .1
	done | sort >pages.txt
	diff -u programs.txt pages.txt
}

@test "the options of a page are those of --help" {
	compare option
}

@test "the exit statuses of a page are those of --help" {
	compare status
}

@test "--help and --version say so on stdout and exit 0" {
	for program in $(rv_programs); do
		for flag in --help -h; do
			"$program" $flag >out.txt 2>err.txt
			grep -q "^usage: $program " out.txt
			[ ! -s err.txt ]
		done
		for flag in --version -V; do
			"$program" $flag >out.txt 2>err.txt
			grep -Eq "^$program \(rv-tools\) [0-9]+\.[0-9]+" out.txt
			[ ! -s err.txt ]
		done
	done
}

@test "an unknown option is a usage error that names the way out" {
	for program in $(rv_programs); do
		rv_fails 2 "$program" --no-such-option >out.txt 2>err.txt
		[ ! -s out.txt ]
		grep -q "^$program: .*--no-such-option" err.txt
		grep -q "^$program: try '$program --help'" err.txt
	done
}

@test "a failed write of --help is exit 5" {
	rv_need full
	for program in $(rv_programs); do
		rv_fails 5 "$program" --help >/dev/full 2>err.txt
		grep -q "^$program: standard output: " err.txt
	done
}

@test "no line of --help is too wide" {
	for program in $(rv_programs); do
		"$program" --help | awk -v program="$program" 'length > 110 { print program ": " $0; bad = 1 } END { exit bad }'
	done
}

@test "the comparison sees an option, an argument and a status that differ" {
	printf 'usage: x\n\n  -o, --one          a\n      --two FILE     b\n      --three\n%28sc\n\nExit status:\n  0  d\n  126 127  e\n' '' >help
	printf '.Dd x\n.Sh OPTIONS\n.It Fl o , Fl -one\n.It Fl -two Ar FILE\n.It Fl -three\n.Sh EXIT STATUS\n.It 0\n.It 126 , 127\n' >page
	rv_equal "$(facts help option)" "$(facts page option)"
	rv_equal "$(facts help status)" "$(facts page status)"
	rv_equal $'option --three\noption --two FILE\noption -o, --one' "$(facts page option)"
	rv_equal $'status 0\nstatus 126\nstatus 127' "$(facts page status)"
}

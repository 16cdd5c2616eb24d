# Our own programs, held to every check.
load helper
load conform

@test "all suites pass against our own programs (t/2200 has the hostile tools, t/6070 the containers)" {
	local skip=(--skip 'hostile.*' --skip 'container.*')

	rv_need userns
	rv_have kernel-sandbox || skip+=(--skip 'kernel.*') # t/6070 says why, and fails where it must work
	rv-conform --format jsonl "${skip[@]}" >out.jsonl || { grep '"status":"fail"' out.jsonl; false; }
	rv_equal '' "$(ids fail out.jsonl)" 'failed'
	rv_equal '' "$(ids skip out.jsonl)" 'skipped'
	[ "$(ids pass out.jsonl | wc -l)" -eq "$(rv-conform --list "${skip[@]}" | wc -l)" ]
}

@test "nothing is left behind: no process, no directory" {
	mkdir tmp
	TMPDIR=$PWD/tmp rv-conform --only 'tree.*' --only 'e1?' --only 'crash.*' >out.txt
	rv_equal '' "$(ls -A tmp)"
	rv_fails 1 grep -q '^        left' out.txt
}

@test "every clause names a page of ours, and a heading or option of it" {
	rv-conform --list --format jsonl >list.jsonl
	member clause list.jsonl | sort -u >clauses.txt
	[ -s clauses.txt ]
	while IFS= read -r clause; do
		page=$RV_SRC/man/$(printf '%s' "$clause" | sed -E 's/\(([0-9])\).*/.\1/')
		[ -f "$page" ] || rv_die "no page: $clause"
		case $clause in
		*', --'*) grep -q "^\.It Fl .*-${clause##*, --}\b" "$page" || rv_die "no option: $clause" ;;
		*', '*) grep -qE "^\.S[hs] ${clause#*, }\$" "$page" || rv_die "no heading: $clause" ;;
		esac
	done <clauses.txt
}

@test "an ordinary user's adapter passes them, too" {
	rv_need user userns-user
	dir=$(rv_user_dir)
	rv_as_user env TMPDIR="$dir" PATH="$dir/bin:$PATH" "$dir/bin/rv-conform" --suite executor --only 'e*' --only 'tree.*' --only 'workdir.*' >out.txt ||
		{ cat out.txt; false; }
	grep -q ' 0 failed, 0 skipped' out.txt
}

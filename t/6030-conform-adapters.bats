# The example adapters fail exactly the checks that they deserve, and rv-conformance(7) lists them.
load helper
load conform

# deserves ADAPTER-FILE COMMAND...: its failures are those of the list that the page has for it.
deserves() {
	local file=$1

	shift
	rv_fails 1 rv-conform --suite executor --jobs 4 --timeout 60s --format jsonl -- "$@" "$RV_ADAPTERS/$file" >out.jsonl
	ids fail out.jsonl | sort >got.txt
	awk -v file="$file" '
		/^\.\\" red:/ { inside = $3 == file; next }
		/^\.\\" end/ { inside = 0 }
		inside && /^\.It Li / { for (i = 3; i <= NF; i++) if ($i != ",") print $i }' "$RV_SRC/man/rv-conformance.7" | sort >want.txt
	[ -s want.txt ]
	# what the page calls red for an ordinary user alone
	if [ "$file" = spawn.mjs ] && [ "$(id -u)" -eq 0 ]; then sed -i '/^workdir.forbidden$/d' want.txt; fi
	diff -u --label 'the page' --label "$file" want.txt got.txt || { grep '"status":"fail"' out.jsonl | cut -c 1-600; false; }
}

@test "naive.py fails what the page says" {
	rv_need python3
	deserves naive.py "$RV_PYTHON" -I -S
}

@test "spawn.mjs fails what the page says" {
	rv_need node
	deserves spawn.mjs node
}

@test "an executor that runs nothing and says 1 to everything passes no check" {
	make_adapter says-one '"ledger","two-phase","credentials","contain","abort","key","kernel","manifest","approvals"' '
		IFS= read -r line
		of() { rest=${line##*"\"$1\":\""}; [ "$rest" = "$line" ] || echo "${rest%%\"*}"; }
		printf "{\"tool\":\"probe\",\"runId\":\"%s\",\"idempotencyKey\":\"%s\",\"ok\":true,\"result\":1}\n" "$(of runId)" "$(of idempotencyKey)"'
	rv_fails 1 rv-conform --suite executor --jobs 8 --timeout 10s --format jsonl -- ./says-one >out.jsonl
	rv_equal '' "$(ids pass out.jsonl)"
	[ "$(ids fail out.jsonl | wc -l)" -gt 90 ]
}

# Of the hostile tools every sixth, and all of them together: scripts/soak hostile has the rest.
@test "careful.py passes all that it declares" {
	rv_need python3
	mapfile -t skipped < <(rv-conform --list --only 'hostile.*' --skip hostile.together | awk -F '\t' 'NR % 6 != 0 { print "--skip\n" $2 }')
	rv-conform --suite executor "${skipped[@]}" --jobs 4 --timeout 60s --format jsonl -- "$RV_PYTHON" -I -S "$RV_ADAPTERS/careful.py" >out.jsonl ||
		{ grep '"status":"fail"' out.jsonl | cut -c 1-600; false; }
	[ "$(ids pass out.jsonl | wc -l)" -gt 60 ]
	ids pass out.jsonl | grep -q '^hostile.together$'
	[ "$(ids pass out.jsonl | grep -c '^hostile')" -gt 10 ]
}

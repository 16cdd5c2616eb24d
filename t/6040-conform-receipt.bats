# Receipts: of a whole run, never over another, and every difference named.
load helper
load conform

# A package of its own to make receipts of, so that its files may be changed.
setup() {
	mkdir pack
	for program in $(rv_programs); do cp "$RV_BIN/$program" pack/; done
	PATH=$PWD/pack:$PATH
}

# A whole run takes a while: one for the file.
setup_file() {
	export RECEIPTS=$BATS_FILE_TMPDIR
	mkdir "$RECEIPTS/pack"
	for program in "${RV_BIN:?}"/rv-*; do
		[ ! -f "$program" ] || [ ! -x "$program" ] || cp "$program" "$RECEIPTS/pack/"
	done
	mkdir -p "$RECEIPTS/source/lib/room" "$RECEIPTS/source/t"
	echo 'int x;' >"$RECEIPTS/source/lib/room/x.c"
	echo built >"$RECEIPTS/source/lib/room/x.o"
	echo test >"$RECEIPTS/source/t/0000-x.bats"
	echo notes >"$RECEIPTS/source/README.md"
	echo stray >"$RECEIPTS/source/config.log"
	make_stub "$RECEIPTS/stub"
	"$RECEIPTS/pack/rv-conform" --jobs 16 --receipt "$RECEIPTS/one.json" --source "$RECEIPTS/source" -- "$RECEIPTS/stub" >"$RECEIPTS/out.txt" 2>&1 || [ $? -eq 1 ]
}

# An adapter that fails everything at once: a receipt says so, and the run is short.
make_stub() {
	printf '#!/bin/sh\nif [ "$1" = --capabilities ]; then echo '\''{"name":"stub","capabilities":[]}'\''; fi\nexit 0\n' >"$1"
	chmod +x "$1"
}

@test "a receipt is one JSON document that names what was tested" {
	rv-key --canonical "$RECEIPTS/one.json" >/dev/null
	"$RV_PYTHON" -I -S - "$RECEIPTS" <<'PY'
import hashlib, json, os, sys
top = sys.argv[1]
receipt = json.load(open(os.path.join(top, "one.json")))
digest = lambda path: hashlib.sha256(open(path, "rb").read()).hexdigest()
assert receipt["kind"] == "rv-conform-receipt" and receipt["version"] == 1
programs = {f["path"]: f["sha256"] for f in receipt["programs"]["files"]}
assert programs == {name: digest(os.path.join(top, "pack", name)) for name in sorted(os.listdir(os.path.join(top, "pack")))}, programs
source = {f["path"]: f["sha256"] for f in receipt["source"]["files"]}
assert sorted(source) == ["README.md", "lib/room/x.c", "t/0000-x.bats"], source
assert receipt["adapter"]["name"] == "stub"
assert receipt["adapter"]["files"] == [{"path": os.path.join(top, "stub"), "sha256": digest(os.path.join(top, "stub"))}]
counts = receipt["counts"]
assert counts["failed"] == len(receipt["failures"]) > 50 and counts["skipped"] == len(receipt["skips"]) > 30
assert all(skip["reason"] for skip in receipt["skips"])
assert receipt["runtimes"] == [] and receipt["profiles"] == []  # it does nothing of rv-confine
assert receipt["kernel"]["release"] == os.uname().release and receipt["previous"] is None
PY
}

@test "nothing changed: exit 0, and nothing said" {
	"$RECEIPTS/pack/rv-conform" --check-receipt "$RECEIPTS/one.json" >out.txt
	[ ! -s out.txt ]
}

@test "each difference is named" {
	check() {
		rv_fails 1 "$RECEIPTS/pack/rv-conform" --check-receipt "$RECEIPTS/one.json" >out.txt
		rv_equal "$1" "$(cat out.txt)"
	}
	cp -a "$RECEIPTS/source" "$RECEIPTS/stub" .
	echo more >>"$RECEIPTS/source/lib/room/x.c"
	check "$RECEIPTS/source/lib/room/x.c: differs"
	rm "$RECEIPTS/source/lib/room/x.c"
	check "$RECEIPTS/source/lib/room/x.c: is missing"
	cp -a source/lib/room/x.c "$RECEIPTS/source/lib/room/x.c"
	echo new >"$RECEIPTS/source/lib/room/y.c"
	check "$RECEIPTS/source/lib/room/y.c: is not in the receipt"
	rm "$RECEIPTS/source/lib/room/y.c"
	echo '# more' >>"$RECEIPTS/stub"
	check "$RECEIPTS/stub: differs"
	cp -a stub "$RECEIPTS/stub"
	echo more >>"$RECEIPTS/pack/rv-key"
	check "$RECEIPTS/pack/rv-key: differs"
	rm "$RECEIPTS/pack/rv-key"
	check "$RECEIPTS/pack/rv-key: is missing"
	cp "$RV_BIN/rv-key" "$RECEIPTS/pack/"
	sed 's/"release":"[^"]*"/"release":"0.1"/' "$RECEIPTS/one.json" >other.json
	rv_fails 1 "$RECEIPTS/pack/rv-conform" --check-receipt other.json >out.txt
	grep -q '^kernel: .* and the receipt has 0.1$' out.txt
}

@test "receipts are chained by their digests" {
	make_stub "$PWD/stub"
	rv_fails 1 rv-conform --jobs 16 --receipt two.json --previous "$RECEIPTS/one.json" -- ./stub >out.txt
	grep -q "\"previous\":{\"path\":\"$RECEIPTS/one.json\",\"sha256\":\"$(sha256sum "$RECEIPTS/one.json" | cut -d ' ' -f 1)\"}" two.json
	rv-conform --check-receipt two.json
	sed 's/one.json/gone.json/' two.json >three.json
	rv_fails 1 rv-conform --check-receipt three.json >out.txt
	rv_equal "$RECEIPTS/gone.json: is missing" "$(cat out.txt)"
	echo '{}' >none.json
	rv_fails 5 rv-conform --receipt four.json --previous none.json -- ./stub 2>err.txt
	grep -q 'no receipt of rv-conform' err.txt
	[ ! -e four.json ]
}

@test "a receipt is never overwritten" {
	make_stub "$PWD/stub"
	cp "$RECEIPTS/one.json" taken.json
	rv_fails 5 rv-conform --receipt taken.json -- ./stub 2>err.txt
	grep -q 'taken.json: File exists' err.txt
	cmp taken.json "$RECEIPTS/one.json"
	ln -s nowhere dangling.json
	rv_fails 5 rv-conform --receipt dangling.json -- ./stub
	[ ! -e nowhere ]
}

@test "only a whole run has a receipt" {
	for filter in '--only e1' '--skip e1' '--suite key'; do
		# shellcheck disable=SC2086 # two words
		rv_fails 2 rv-conform --receipt no.json $filter
		[ ! -e no.json ]
	done
}

@test "what is no receipt is exit 5" {
	echo '{}' >none.json
	rv_fails 5 rv-conform --check-receipt none.json
	rv_fails 5 rv-conform --check-receipt nowhere.json
	echo 'no json' >none.json
	rv_fails 5 rv-conform --check-receipt none.json
}

@test "an adapter that is found in PATH is the file that is run, and no other of its name" {
	mkdir bin
	make_stub "$PWD/bin/found"
	echo other >found
	PATH=$PWD/bin:$PATH rv_fails 1 rv-conform --jobs 16 --receipt r.json -- found >out.txt
	rv_equal "$PWD/bin/found" "$(jq -r '.adapter.files[].path' r.json)"
	rv_equal container "$(jq -r '.leftOut[].suite' r.json)"
}

@test "what changes while it is tested has no receipt" {
	make_stub "$PWD/stub"
	sed -i 's/^exit 0$/[ "$1" = --capabilities ] || echo "# more" >>"$0"; exit 0/' stub
	rv_fails 5 rv-conform --jobs 16 --receipt r.json -- ./stub >out.txt 2>err.txt
	rv_equal "rv-conform: no receipt, for what was tested changed meanwhile: $PWD/stub: differs" "$(cat err.txt)"
	[ ! -e r.json ]
}

@test "a name that JSON cannot write has no receipt, and is said before anything is run" {
	make_stub "$PWD/"$'st\xffub'
	rv_fails 5 rv-conform --receipt r.json -- "./"$'st\xffub' >out.txt 2>err.txt
	grep -q 'st.xffub is not UTF-8' err.txt
	[ ! -s out.txt ]
	[ ! -e r.json ]
}

@test "a receipt that names nothing, or whose numbers do not fit, is none" {
	for change in 'del(.adapter)' '.adapter.files = []' 'del(.programs)' '.programs.files = []' 'del(.source)' 'del(.kernel)' \
		'.counts.failed = 0' '.failures = []' '.skips |= .[1:]' 'del(.counts)' 'del(.runtimes)' 'del(.previous)' '.version = 2'; do
		jq -c "$change" "$RECEIPTS/one.json" >other.json
		rv_fails 5 "$RECEIPTS/pack/rv-conform" --check-receipt other.json >out.txt 2>err.txt || rv_die "$change" || return
		grep -q 'no receipt of rv-conform' err.txt || rv_die "$change" || return
	done
}

@test "the receipt before it is found from anywhere" {
	make_stub "$PWD/stub"
	cp "$RECEIPTS/one.json" first.json
	rv_fails 1 rv-conform --jobs 16 --receipt second.json --previous first.json -- ./stub >out.txt
	here=$PWD
	cd /
	rv-conform --check-receipt "$here/second.json"
}

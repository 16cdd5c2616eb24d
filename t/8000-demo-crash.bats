# scripts/demo, with the programs of this build.
load helper

@test "the demo goes as it must, and leaves nothing" {
	mkdir tmp
	TMPDIR=$PWD/tmp "$RV_SRC/scripts/demo" >out
	cat out
	[ "$(wc -l <out)" -ge 10 ]
	grep -q '^8\.' out
	rv_equal '' "$(ls tmp)" 'left behind'
}

@test "so it does for an ordinary user" {
	rv_need user
	dir=$(rv_user_dir)
	mkdir "$dir/tmp" "$dir/top"
	cp -R "$RV_SRC/scripts" "$dir/top/"
	[ "$(id -u)" -ne 0 ] || chown -R "$RV_USER" "$dir"
	cd "$dir"
	rv_as_user env RV_BIN="$dir/bin" TMPDIR="$dir/tmp" "$dir/top/scripts/demo"
	rv_equal '' "$(ls "$dir/tmp")" 'left behind'
}

@test "it fails where a step is not as it must be" {
	mkdir bin tmp
	cp "$RV_BIN"/rv-key "$RV_BIN"/rv-exec bin/
	printf '#!/bin/sh\nexit 0\n' >bin/rv-ledger-scan
	printf '#!/bin/sh\nexec "%s/rv-ledger-scan" "$@" | grep -v nothing-like-it\n' "$RV_BIN" >bin/rv-ledger-scan
	chmod +x bin/rv-ledger-scan
	# This scan's status is grep's: an orphan goes unreported.
	RV_BIN=$PWD/bin TMPDIR=$PWD/tmp rv_fails 1 timeout 60 "$RV_SRC/scripts/demo" >out 2>err
	grep -q 'this is not as it must be' err
	rv_equal '' "$(ls tmp)" 'left behind'
}

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
	cp "$RV_BIN"/rv-key "$RV_BIN"/rv-ledger-scan bin/
	# An rv-exec that retries blindly whatever it is told.
	cat >bin/rv-exec <<-SHELL
		#!/bin/bash
		for word; do [ "\$word" = --refuse-orphan ] || words+=("\$word"); done
		exec "$RV_BIN/rv-exec" "\${words[@]}"
	SHELL
	chmod +x bin/rv-exec
	RV_BIN=bin TMPDIR=$PWD/tmp rv_fails 1 timeout 60 "$RV_SRC/scripts/demo" >out 2>err
	grep -q 'this is not as it must be: exit 0 where --refuse-orphan refuses' err
	rv_equal '' "$(ls tmp)" 'left behind'
}

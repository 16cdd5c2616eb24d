# The run file: made once, read ever after.
load helper

# Under strace a leak check cannot run.
rv_traced() {
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -f "$@"
}

call() {
	rv-key --run "$1" --agent-seq 0 --ordinal 0 --tool x --args '{}'
}

@test "a run file has the three members, is private, and nothing is printed" {
	rv_equal '' "$(rv-key --new-run a.run)"
	grep -qE '^\{"runId":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}","genesis":"[0-9a-f]{32}","execKeyDerivation":2\}$' a.run
	[ "$(wc -l <a.run)" -eq 1 ]
	rv_equal 600 "$(stat -c %a a.run)"
	rv-key --new-run --run-id $'my "run"\n' b.run
	rv_equal '{"runId":"my \"run\"\n",' "$(cut -d, -f1 b.run),"
}

@test "a rerun gives the same keys and leaves the file alone" {
	rv-key --new-run --run-id same a.run
	before=$(stat -c '%i %Y %s' a.run; cat a.run)
	first=$(call a.run)
	rv_equal "$first" "$(call a.run)"
	rv_equal "$before" "$(stat -c '%i %Y %s' a.run; cat a.run)"
	genesis=$(sed -E 's/.*"genesis":"([^"]*)".*/\1/' a.run)
	rv_equal "$first" "$(rv-key --run-id same --genesis "$genesis" --agent-seq 0 --ordinal 0 --tool x --args '{}')"
}

@test "a run deleted and made again under its old name gives other keys" {
	rv-key --new-run --run-id same a.run
	first=$(call a.run)
	rm a.run
	rv-key --new-run --run-id same a.run
	[ "$first" != "$(call a.run)" ]
}

@test "an existing file, also a dangling link, is never overwritten" {
	echo precious >a.run
	rv_fails 5 rv-key --new-run a.run
	rv_equal precious "$(cat a.run)"
	ln -s nowhere link.run
	rv_fails 5 rv-key --new-run link.run
	[ ! -e nowhere ]
}

@test "of contenders for one run file exactly one wins, and its file is whole" {
	for _ in 1 2 3 4 5 6 7 8; do
		(rv-key --new-run a.run 2>/dev/null && echo won >>winners || true) &
	done
	wait
	rv_equal won "$(cat winners)"
	call a.run
}

@test "file and directory are synced before the end" {
	rv_need strace
	rv_traced -o trace -e trace=openat,write,fsync,linkat,unlink rv-key --new-run a.run
	# the write, its sync, and only then the name; the directory's sync: in that order
	rv_equal 'open write fsync name dir fsync' "$(sed -n \
		-e 's/.*O_TMPFILE.*/open/p' -e 's/.*write([0-9]*, "{\\"runId.*/write/p' -e 's/.*linkat(.*"a\.run".*/name/p' \
		-e '/O_TMPFILE/!s/.*O_DIRECTORY.*/dir/p' -e 's/.*fsync(.*/fsync/p' trace | xargs)"
}

@test "killed at any of its calls, a run file is whole or not there, and the next try has one" {
	rv_need strace
	local call status

	for call in write fsync linkat; do
		for when in 1 2; do
			rm -f a.run
			status=0
			rv_traced -o /dev/null -e trace="$call" -e inject="$call":signal=KILL:when=$when rv-key --new-run a.run 2>/dev/null || status=$?
			[ "$status" -eq 137 ] || [ "$when" -eq 2 ] || rv_die "not killed at $call"
			[ -e a.run ] || rv-key --new-run a.run
			call a.run
		done
	done
}

@test "a run file that could not be written is not left behind" {
	rv_need strace
	for call in write fsync; do
		rv_fails 5 rv_traced -o /dev/null -e trace="$call" -e inject="$call":error=ENOSPC:when=1 rv-key --new-run a.run
		[ ! -e a.run ]
	done
}

@test "without a derivation a run file is of derivation 1" {
	one=$(rv-key --derivation 1 --run-id r --agent-seq 0 --ordinal 0 --tool x --args '{}')
	for text in '{"runId":"r"}' '{"runId":"r","execKeyDerivation":1,"genesis":"g"}' '{"runId":"r","genesis":"g"}' ' { "runId" : "r" } '; do
		printf '%s' "$text" >a.run
		rv_equal "$one" "$(call a.run)"
	done
}

@test "what is no run file is refused" {
	for text in '' '{' '[]' '{}' '{"runId":1}' '{"runId":"r","execKeyDerivation":2}' '{"runId":"r","execKeyDerivation":3,"genesis":"g"}' \
		'{"runId":"r","execKeyDerivation":2,"genesis":5}' '{"runId":"r"} x'; do
		printf '%s' "$text" >a.run
		rv_fails 3 call a.run >out 2>err
		[ ! -s out ]
		grep -q '^rv-key: run file a.run: ' err
	done
	rv_fails 5 call none.run
	rv_fails 5 rv-key --new-run no/such/dir/a.run
	rv_fails 2 rv-key --run a.run --run-id r --agent-seq 0 --ordinal 0 --tool x --args '{}'
	rv_fails 2 rv-key --run a.run --genesis r --agent-seq 0 --ordinal 0 --tool x --args '{}'
}

# rv-exec: what cannot be run is spawn, with an intent and an outcome that agree that nothing ran.
load helper
load exec

# cannot STATUS WORDS COMMAND...: typed spawn, with these words, rows that agree and no workdir.
cannot() {
	local status=$1 words=$2

	shift 2
	rm -f ledger
	rv_fails "$status" x --new-call --ledger ledger --json -- "$@" >reply 2>stderr || return
	grep -q "^rv-exec: spawn: .*$words" stderr || rv_die "not '$words': $(cut -c 1-500 stderr)" || return
	holds "$NOTHING_RAN" 'code == "spawn"' 'reply["outcome"] == "error"' 'reply["exitCode"] is reply["signal"] is None' || return
	no_workdir
}

@test "not there" {
	cannot 127 'no such file' /no/such/program
	cannot 127 'no such file' "$PWD/nothing"
	cannot 127 'not found in PATH' no-such-program-anywhere
	: >file
	cannot 127 'no such file' "$PWD/file/program"
	ln -s /nonexistent dangling
	cannot 127 'no such file' "$PWD/dangling"
	ln -s loop loop
	cannot 126 '' "$PWD/loop"
}

@test "not executable, a directory, a device, a fifo" {
	printf '#!/bin/sh\necho 1\n' >plain
	cannot 126 'ermission denied' "$PWD/plain"
	cannot 126 '' "$PWD"
	cannot 126 '' /dev/null
	mkfifo fifo
	chmod 755 fifo
	cannot 126 '' "$PWD/fifo"
}

@test "in PATH, and not executable" {
	mkdir bin
	: >bin/only-there
	PATH="$PWD/bin:$PATH" cannot 126 'only-there' only-there
	mkdir bin/a-directory
	PATH="$PWD/bin:$PATH" cannot 126 'a-directory' a-directory
	mkdir later
	printf '#!/bin/sh\necho 7\n' >later/only-there
	chmod 755 later/only-there
	rv_equal 7 "$(PATH="$PWD/bin:$PWD/later:$PATH" x -- only-there)"
}

@test "an interpreter that does not exist" {
	printf '#!/no/such/interpreter\n' >script
	chmod 755 script
	cannot 126 'interpreter' "$PWD/script"
}

@test "no #! at all: no shell is tried" {
	printf 'echo 1\n' >script
	chmod 755 script
	cannot 126 'no shell is tried' "$PWD/script"
	: >empty
	chmod 755 empty
	cannot 126 'no shell is tried' "$PWD/empty"
	PATH="$PWD:$PATH" cannot 126 'no shell is tried' script
}

@test "a file that is open for writing (ETXTBSY)" {
	cp /bin/true busy
	exec 9>>busy
	cannot 126 'ext file busy' "$PWD/busy"
	exec 9>&-
	rv_equal null "$(x -- "$PWD/busy")"
}

@test "an argument of 131,072 bytes (E2BIG), and one byte less" {
	# The same limit stands between a caller and rv-exec, so a variable has to bring it.
	printf '%131060s' '' | tr ' ' v >value
	tool mint <<-TOOL
		#!/bin/sh
		cat >/dev/null
		printf '{"LARGE":"%s%s"}' "\$(cat "$PWD/value")" "\$1"
	TOOL
	rm -f ledger
	rv_fails 126 x --new-call --ledger ledger --credentials "$PWD/mint 123456" -- /bin/true 2>stderr
	grep -q '^rv-exec: spawn: .*rgument' stderr
	holds "$NOTHING_RAN"
	rv_equal null "$(x --credentials "$PWD/mint 12345" -- /bin/true)"
	no_workdir
}

@test "an empty command is config, before any row" {
	fails config 125 x --new-call --ledger ledger -- ''
	[ ! -s ledger ]
	no_workdir
}

@test "a tool that ends with 126 or 127 is no spawn" {
	rv_fails 1 x --json -- /bin/sh -c 'exit 127' >reply 2>stderr
	holds 'code == "exit" and reply["exitCode"] == 127'
	rv_fails 1 x --json -- /bin/sh -c /no/such/thing >reply 2>stderr
	holds 'code == "exit" and reply["exitCode"] == 127'
}

@test "a program that the caller may run and nobody else" {
	cp /bin/true mine
	chmod 100 mine
	rv_equal null "$(x -- "$PWD/mine")"
	chmod 000 mine
	cannot 126 'ermission denied' "$PWD/mine"
}

@test "no descriptors to be had is an ordinary error" {
	# Enough to start with, too few for the pipes of a run: never a hang, never a result.
	mkdir dirs
	for limit in 4 5 6 7 8 9 10 11 12 13 14 15 16; do
		status=0
		(exec 3>&- 4>&- && ulimit -n $limit && exec timeout 10 rv-exec --tool t --workdir-base dirs --new-call --ledger ledger -- \
			/bin/echo 1) >stdout 2>stderr || status=$?
		case $status in
		0) rv_equal 1 "$(cat stdout)" ;;
		5 | 122 | 125 | 126)
			[ ! -s stdout ]
			[ -s stderr ]
			;;
		*) rv_die "status $status with $limit descriptors: $(cat stderr)" ;;
		esac
	done
	rv_equal 0 "$status"
	holds 'len(intents) == len(outcomes) > 0'
	no_workdir
}

@test "no memory to be had is an ordinary error" {
	[ -z "${RV_SANITIZED:-}" ] || skip "a sanitizer needs the address space"
	for limit in 3000 3500 4000 4500 5000 6000 8000 12000; do
		status=0
		(ulimit -v $limit && exec rv-exec --tool t --new-call --ledger ledger --workdir-base "$PWD" -- /bin/echo 1) \
			>stdout 2>stderr || status=$?
		case $status in
		0) rv_equal 1 "$(cat stdout)" ;;
		1 | 5 | 122 | 125 | 126 | 127) [ ! -s stdout ] ;;
		*) rv_die "status $status with $limit KiB: $(cat stderr)" ;;
		esac
	done
	rv_equal 0 "$status"
	holds 'len(intents) == len(outcomes) > 0'
	[ -z "$(ls -d rulvar-exec-* 2>/dev/null)" ]
}

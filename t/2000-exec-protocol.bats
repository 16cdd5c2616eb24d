# rv-exec: what a tool reads, what it may answer, and what becomes of it.
load helper
load exec

setup() {
	tool echo-input <<-'TOOL'
		#!/bin/sh
		cat
	TOOL
}

# answers WANT TEXT [OPTION...]: a tool that prints TEXT (printf %b) gives WANT.
answers() {
	local want=$1

	printf '%b' "$2" >text
	shift 2
	rv_equal "$want" "$(x "$@" -- /bin/cat "$PWD/text")"
}

refused() {
	printf '%b' "$1" >text
	fails protocol 120 x -- /bin/cat "$PWD/text"
	no_workdir
}

@test "one line on stdin, the arguments in canonical form, then end of file" {
	x --key K --args ' { "b" : [1.0, 2e1, "\u0041"], "a":{"z":null,"\u20ac":-0} } ' -- "$PWD/echo-input" >out
	rv_equal '{"tool":"t","args":{"a":{"z":null,"€":0},"b":[1,20,"A"]},"idempotencyKey":"K"}' "$(cat out)"
	rv_equal 1 "$(wc -l <out)"
	x --key K -- "$PWD/echo-input" >out
	rv_equal '{"tool":"t","args":{},"idempotencyKey":"K"}' "$(cat out)"
}

@test "names with quotes and line ends stay one line" {
	mkdir dirs
	tool lines <<-'TOOL'
		#!/bin/sh
		wc -l
	TOOL
	rv_equal 1 "$(rv-exec --workdir-base dirs --tool 'a"b
c' --key $'k\t\\' -- "$PWD/lines")"
	rv_equal 'a"b\nc' "$(rv-exec --workdir-base dirs --tool 'a"b
c' --key K -- "$PWD/echo-input" | member tool | sed ':a;N;s/\n/\\n/')"
	no_workdir
}

@test "arguments from a file and from standard input" {
	printf '{"x":[2,1]}\n' >args.json
	rv_equal '{"x":[2,1]}' "$(x --args-file args.json -- "$PWD/echo-input" | member args)"
	rv_equal '{"x":[2,1]}' "$(x --args-file - -- "$PWD/echo-input" <args.json | member args)"
	rv_equal '7' "$(x --args 7 -- "$PWD/echo-input" | member args)"
}

@test "the result is printed on one line, every token as the tool wrote it" {
	answers '{"b":1.0,"a":[1e2,"\u0041\/"],"b":-0}' ' {"b" : 1.0,\n "a":[ 1e2 ,\t"\\u0041\\/" ] ,"b":-0}\r\n'
	answers '"x y"' '  "x y"\n'
	answers '12345678901234567890123' '12345678901234567890123'
	no_workdir
}

@test "an empty answer is null, with JavaScript's idea of white space" {
	answers null ''
	answers null '\n \t\r\v\f'
	answers null '\xc2\xa0\xef\xbb\xbf\xe2\x80\xa8\xe2\x80\xa9\xe3\x80\x80\xe2\x80\x83'
	answers 1 '\xef\xbb\xbf1\xc2\xa0\v'
}

@test "anything else is protocol" {
	refused 'hello\n'
	refused '{} {}\n'
	refused '1 2'
	refused '{"a":1}\0'
	refused '"\xc0\xaf"'
	refused '"\xed\xa0\x80"'
	refused '"\xff"'
	refused 'NaN'
	refused '{"a":1,}'
	refused "{'a':1}"
	refused '[1\v,2]'
	refused '"abc'
	refused '\xe2\x80\x8b1'
}

@test "no half of an answer is taken for a whole one" {
	tool half <<-'TOOL'
		#!/bin/sh
		printf '[1,2'
		kill -9 $$
	TOOL
	fails exit 1 x -- "$PWD/half"
	grep -q SIGKILL stderr
}

@test "a status of its own is exit, whatever stands on stdout" {
	for status in 1 3 99 120 124 125 127 137 255; do
		tool out <<-TOOL
			#!/bin/sh
			echo '{"ok":true}'
			echo some words >&2
			exit $status
		TOOL
		fails exit 1 x -- "$PWD/out"
		grep -q "status $status: some words$" stderr
	done
	no_workdir
}

@test "a signal of its own is exit with the signal, and no timeout" {
	ulimit -c 0
	for name in KILL TERM SEGV HUP; do
		tool suicide <<-TOOL
			#!/bin/sh
			kill -$name \$\$
		TOOL
		rv_fails 1 x --json -- "$PWD/suicide" >reply 2>stderr
		holds 'code == "exit" and reply["outcome"] == "error" and reply["exitCode"] is None' "reply['signal'] == 'SIG$name'"
	done
}

@test "the reply has every member, in its place" {
	tool busy <<-'TOOL'
		#!/bin/sh
		echo hm >&2
		cat >/dev/null
		echo '{"n" : 1}'
	TOOL
	x --json --key K --span-id S -- "$PWD/busy" >reply
	rv_equal 1 "$(wc -l <reply)"
	sed -E 's/"attemptId":"[0-9a-f-]{36}"/A/; s/"startedAt":[0-9]{13}/B/; s/"durationMs":[0-9]+/C/;
		s/"runId":"[0-9a-f-]{36}"/R/; s/"containment":"(pid-namespace|subreaper)"/D/;
		s/"userMs":[0-9]+,"systemMs":[0-9]+,"maxRssBytes":[1-9][0-9]+/E/; s/"argsHash":"[0-9a-f]{64}"/H/' reply >plain
	rv_equal '{"tool":"t",R,"spanId":"S","idempotencyKey":"K",H,A,B,"ok":true,"result":{"n":1},"outcome":"ok","exitCode":0,"signal":null,C,"stdoutBytes":10,"stderrBytes":3,"survivors":0,D,"sandbox":"none","resources":{E}}' "$(cat plain)"
	[[ $(x --json -- "$PWD/busy" | member spanId) =~ ^[0-9a-f]{16}$ ]]
}

@test "resources are those of the whole tree" {
	tool burn <<-'TOOL'
		#!/bin/sh
		/usr/bin/perl -e '$x = "y" x 50_000_000; $end = (times)[0] + 0.3; 1 while (times)[0] < $end'
		echo 1
	TOOL
	x --json -- "$PWD/burn" >reply
	[ "$(member resources.userMs <reply)" -ge 250 ]
	[ "$(member resources.maxRssBytes <reply)" -ge 50000000 ]
}

@test "the message of exit ends with the last 500 characters of stderr" {
	tool tail <<-'TOOL'
		#!/usr/bin/perl
		binmode STDERR, ":utf8";
		print STDERR "x" x 3000, "B", "\x{1F600}" x 250, "\x{e4}" x 248, "E\n";
		exit 3;
	TOOL
	rv_fails 1 x --json -- "$PWD/tail" >reply 2>stderr
	/usr/bin/python3 -Ic '
import json
message = json.load(open("reply", encoding="utf-8"))["error"]["message"]
tail = "\U0001F600" * 250 + "\u00e4" * 248 + "E\n"
assert len(tail) == 500
assert message.endswith(tail.strip()), message
assert "B" not in message.split(": ", 1)[1], message'
}

@test "a character that the tail cuts is left out, and an invalid byte is U+FFFD" {
	for shift in 0 1 2 3; do
		tool cut <<-TOOL
			#!/usr/bin/perl
			print STDERR "\xf0\x9f\x98\x80" x 3000, "a" x $shift, "\xff", "\xf0\x9f";
			exit 1;
		TOOL
		rv_fails 1 x --json -- "$PWD/cut" >reply 2>stderr
		SHIFT=$shift /usr/bin/python3 -Ic '
import json, os
message = json.load(open("reply", encoding="utf-8"))["error"]["message"]
shift = int(os.environ["SHIFT"])
tail = "\U0001F600" * (500 - shift - 2) + "a" * shift + "\ufffd\ufffd"
assert message.split(": ", 1)[1] == tail, ascii(message)'
	done
}

@test "a NUL does not end the message" {
	rv_fails 1 x --json -- /bin/sh -c 'printf "before\0after" >&2; exit 1' >reply 2>stderr
	[[ $(member error.message <reply) == *before*after ]]
}

@test "a tool's control bytes do not reach a terminal" {
	tool rude <<-'TOOL'
		#!/bin/sh
		printf '\033[2J\007two\nlines\r\302\233x' >&2
		exit 1
	TOOL
	rv_fails 1 x -- "$PWD/rude" 2>stderr
	rv_equal 1 "$(wc -l <stderr)"
	rv_fails 1 grep -q "$(printf '[\001-\011\013-\037]')" stderr
	grep -qF '\x1b[2J\x07two\nlines\x0d\u{9b}x' stderr
}

@test "stderr alone, and a flood of it, is no failure" {
	tool noisy <<-'TOOL'
		#!/bin/sh
		head -c 20000000 /dev/zero >&2
		echo 1
	TOOL
	x --json -- "$PWD/noisy" >reply 2>stderr
	rv_equal '1 20000000' "$(member result <reply) $(member stderrBytes <reply)"
	[ ! -s stderr ]
}

@test "--tool-stderr passes it on, or appends it to a file" {
	tool noisy <<-'TOOL'
		#!/bin/sh
		echo words >&2
		exit 1
	TOOL
	rv_fails 1 x --tool-stderr inherit -- "$PWD/noisy" 2>stderr
	grep -qx words stderr
	rv_fails 1 x --tool-stderr kept -- "$PWD/noisy" 2>stderr
	rv_fails 1 x --tool-stderr kept -- "$PWD/noisy" 2>stderr
	rv_equal $'words\nwords' "$(cat kept)"
	rv_fails 1 grep -qx words stderr
	fails config 125 x --tool-stderr /nonexistent/dir/file -- "$PWD/noisy"
}

@test "a tool that writes before it reads, one that never reads, one that closes its input" {
	head -c 1048576 /dev/zero | tr '\0' a >big
	printf '"%s"' "$(cat big)" >args.json
	tool writer <<-'TOOL'
		#!/bin/sh
		printf '"'
		head -c 1048000 /dev/zero | tr '\0' b
		wc -c | tr '\n' '"'
	TOOL
	x --max-output 2MiB --key K --args-file args.json --timeout 20s -- "$PWD/writer" >out
	rv_equal 1048000 "$(tr -dc b <out | wc -c)"
	rv_equal $((1048578 + 42)) "$(tr -dc 0-9 <out)"
	rv_equal 1 "$(x --args-file args.json --timeout 20s -- /bin/echo 1)"
	tool closer <<-'TOOL'
		#!/bin/sh
		exec <&-
		/usr/bin/perl -e 'select undef, undef, undef, 0.1; print 2'
	TOOL
	rv_equal 2 "$(x --args-file args.json --timeout 20s -- "$PWD/closer")"
}

@test "64 MiB of arguments" {
	/usr/bin/python3 -Ic 'print("[\"" + "a" * (64 << 20) + "\"]")' >args.json
	tool size <<-'TOOL'
		#!/bin/sh
		wc -c
	TOOL
	rv_equal $(((64 << 20) + 4 + 42)) "$(x --key 'K' --args-file args.json --timeout 60s -- "$PWD/size")"
}

@test "arguments and results a million deep" {
	/usr/bin/python3 -Ic 'print("[" * 1000000 + "]" * 1000000)' >args.json
	tool inner <<-'TOOL'
		#!/usr/bin/python3
		import sys
		line = sys.stdin.read()
		print(line[line.index("["):line.rindex("]") + 1])
	TOOL
	x --max-output 16MiB --timeout 60s --args-file args.json -- "$PWD/inner" >out
	cmp args.json out
}

@test "input that is refused runs nothing and is status 3" {
	tool mark <<-TOOL
		#!/bin/sh
		: >"$PWD/ran"
	TOOL
	printf '"\xff"' >latin
	for args in '' ' ' 'hello' '{} {}' '{"a":1' '[1,]' '"\x41"'; do
		fails request 3 x --args "$args" -- "$PWD/mark"
	done
	fails request 3 x --args-file latin -- "$PWD/mark"
	fails request 3 x --args-file /dev/null -- "$PWD/mark"
	fails number 3 x --args '[1e999]' -- "$PWD/mark"
	fails number 3 x --strict --args '[9007199254740993]' -- "$PWD/mark"
	fails request 3 x --strict --args '{"a":1,"a":1}' -- "$PWD/mark"
	fails request 3 x --strict --args '"\ud800"' -- "$PWD/mark"
	[ ! -e ran ]
	no_workdir
	x --args '{"a":1,"a":[9007199254740993,"\ud800"]}' -- "$PWD/mark"
	[ -e ran ]
}

@test "input that cannot be read is status 5" {
	rv_fails 5 x --args-file nowhere -- /bin/true 2>stderr
	grep -q 'nowhere: ' stderr
	rv_fails 5 x --args-file . -- /bin/true 2>stderr
	rv_fails 5 x --args-file - -- /bin/true 2>stderr <&-
}

@test "with --json a refusal is one line, too" {
	rv_fails 3 x --json --args nonsense -- /bin/true >reply 2>stderr
	rv_equal 'false request' "$(member ok <reply) $(member error.code <reply)"
	rv_equal absent "$(member outcome <reply)"
}

@test "what is wrong with a command line is status 2" {
	rv_fails 2 rv-exec 2>stderr
	rv_fails 2 rv-exec --tool t 2>stderr
	rv_fails 2 rv-exec -- /bin/true 2>stderr
	rv_fails 2 rv-exec --tool '' -- /bin/true 2>stderr
	rv_fails 2 x --timeout 5 -- /bin/true 2>stderr
	rv_fails 2 x --timeout 0s -- /bin/true 2>stderr
	rv_fails 2 x --max-output 1kb -- /bin/true 2>stderr
	rv_fails 2 x --args 1 --args-file f -- /bin/true 2>stderr
	rv_fails 2 x --key '' -- /bin/true 2>stderr
	rv_fails 2 x --no-such-option -- /bin/true 2>stderr
	rv_fails 2 x --refuse-orphan -- /bin/true 2>stderr
	rv_fails 2 x --agent-seq -1 --run-id r --genesis g -- /bin/true 2>stderr
	grep -q -- --help stderr
}

@test "options behind the command are the command's" {
	tool words <<-'TOOL'
		#!/bin/sh
		printf '"%s"' "$*"
	TOOL
	rv_equal '"--help -V --json"' "$(x "$PWD/words" --help -V --json)"
	rv_equal '"-- a"' "$(x -- "$PWD/words" -- a)"
}

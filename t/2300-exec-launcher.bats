# rv-exec: a tool in a launcher's sandbox, its environment, and whose failure it was.
load helper
load exec

can_bwrap() {
	rv_need bwrap
	bwrap --unshare-all --ro-bind / / true 2>/dev/null || {
		[ "${RV_MUST_WORK:-}" != 1 ] || rv_die "bubblewrap cannot make namespaces here and RV_MUST_WORK=1"
		skip "bubblewrap cannot make namespaces here"
	}
}

# j OPTION... -- COMMAND...: the reply in ./reply, the status ignored.
j() {
	x --json "$@" >reply 2>stderr || true
}

@test "bwrap: no network, a read-only system, a /tmp of its own, the workdir writable at its path" {
	can_bwrap
	: >"/tmp/rv-seen-$$"
	x --sandbox bwrap --json --setenv SEEN="rv-seen-$$" -- /bin/sh -c '
		PATH=/usr/bin:/bin
		echo x >here && [ "$(cat here)" = x ] || exit 10
		[ "$(stat -c %a .)" = 700 ] || exit 11
		[ ! -e "/tmp/$SEEN" ] && : >/tmp/mine || exit 12
		(: >/usr/x) 2>/dev/null && exit 13
		[ -e /etc/passwd ] && exit 14
		[ -e /home ] || [ -e /root ] && exit 15
		[ "$(ls /sys/class/net 2>/dev/null | wc -l)" = 0 ] || exit 16
		[ "$(grep -c : /proc/net/dev)" = 1 ] || exit 17
		grep -q "^NoNewPrivs:.1" /proc/self/status && grep -q "^CapEff:.0000000000000000" /proc/self/status || exit 18
		[ "$(umask)" = 0022 ] && [ -d "$PWD" ] && echo "\"$PWD\""' >reply 2>stderr || rv_die "$(cat stderr)"
	rm "/tmp/rv-seen-$$"
	holds "reply['result'].startswith('$PWD/dirs/rulvar-exec-t-')"
}

@test "bwrap: the tool's words" {
	can_bwrap
	j --sandbox bwrap --new-call --ledger ledger -- /bin/echo '{"a" : 1}'
	holds 'reply["result"] == {"a": 1}' 'reply["sandbox"] == "bwrap"' 'reply["containment"] == "subreaper"' 'reply["survivors"] == 0' \
		'reply["stdoutBytes"] == 10' 'reply["stderrBytes"] == 0' \
		'[(r["executor"], r["sandbox"], r["containment"]) for r in intents] == [("subprocess", "bwrap", "subreaper")]' 'outcomes[0]["outcome"] == "ok"'
	no_workdir
}

@test "bwrap: what the preset hides is config until --ro shows it, and nothing ran" {
	can_bwrap
	mkdir opt
	tool opt/sum <<-'TOOL'
		#!/bin/sh
		cat "${0%/*}/two"
		(: >"${0%/*}/written") 2>/dev/null && echo x
		exit 0
	TOOL
	echo 2 >opt/two
	fails config 125 x --sandbox bwrap --new-call --ledger ledger -- "$PWD/opt/sum"
	grep -q -- "--ro $PWD/opt/sum" stderr
	[ ! -s ledger ]
	rv_equal 2 "$(x --sandbox bwrap --ro "$PWD/opt" -- "$PWD/opt/sum" 2>stderr)"
	[ ! -e opt/written ]
	rv_fails 120 x --sandbox bwrap --rw "$PWD/opt" -- "$PWD/opt/sum" 2>stderr
	[ -e opt/written ]
	fails config 125 x --sandbox bwrap --ro /no/such -- /bin/echo 1
	no_workdir
}

@test "two environments: the launcher's has no value of the tool's, and no argv has" {
	tool launcher <<-'LAUNCHER'
		#!/bin/bash
		env >"$OUT/of-launcher"
		tr '\0' '\n' </proc/$$/cmdline >"$OUT/of-argv"
		echo "noise of the launcher"
		echo "noise on stderr" >&2
		"$@"
		echo "more noise, and a status of its own"
		exit 0
	LAUNCHER
	tool watch <<-'TOOL'
		#!/bin/bash
		echo "\"$SECRET $TOKEN $ALLOWED ${HOME-none} ${OUT-none}\""
		tr '\0' '\n' </proc/$$/environ >"$PWD/../../tool"
		grep -lz "s3cret" /proc/[0-9]*/cmdline >"$PWD/../../cmdlines" 2>/dev/null
		exit 0
	TOOL
	tool mint <<-'MINT'
		#!/bin/sh
		echo '{"TOKEN":"s3cret-token"}'
	MINT
	OUT=$PWD ALLOWED=yes HOME=/x x --json --setenv SECRET=s3cret --allow-env ALLOWED --launcher-env OUT --credentials "$PWD/mint" \
		--sandbox-argv "$PWD/launcher" -- "$PWD/watch" >reply 2>stderr || rv_die "$(cat stderr reply)"
	holds 'reply["result"] == "s3cret s3cret-token yes none none"' 'reply["stderrBytes"] == 0' 'reply["sandbox"] == "argv:launcher"'
	rv_fails 1 grep -q 's3cret\|ALLOWED\|RULVAR' of-launcher of-argv
	grep -qx 'HOME=/x' of-launcher
	rv_equal '' "$(grep -v '^SECRET=\|^TOKEN=\|^ALLOWED=\|^RULVAR_\|^_=\|^SHLVL=\|^PWD=' tool)"
	# rv-exec's own argv holds what --setenv was given on it: of others, none.
	while read -r file; do
		[ "$(cat "${file%cmdline}comm" 2>/dev/null)" = rv-exec ] || [ ! -e "$file" ] || grep -qz -- --setenv "$file" || rv_die "$file has it"
	done <cmdlines
}

@test "any size and any bytes of environment and input" {
	can_bwrap
	tool echo <<-'TOOL'
		#!/usr/bin/python3
		import json, os, sys
		line = json.loads(sys.stdin.readline())
		print(json.dumps([len(os.environ["BIG"]), os.environ["LINES2"], len(line["args"]["x"]), sys.stdin.read()]))
	TOOL
	/usr/bin/python3 -c 'import json; print(json.dumps({"x": "y" * 300000}))' >args
	BIG=$(head -c 100000 /dev/zero | tr '\0' b) x --sandbox bwrap --ro "$PWD/echo" --allow-env BIG --setenv 'LINES2=a
b=c' --args-file args -- "$PWD/echo" >out
	rv_equal '[100000,"a\nb=c",300000,""]' "$(cat out)"
}

@test "a launcher's own failure is spawn, told apart from every failure of a tool" {
	tool refuser <<-'LAUNCHER'
		#!/bin/sh
		echo '"a result"'
		echo "no namespaces for you" >&2
		exit 3
	LAUNCHER
	j --new-call --ledger ledger --sandbox-argv "$PWD/refuser" -- /bin/echo 1
	holds 'code == "spawn"' '"no namespaces for you" in reply["error"]["message"]' 'reply["exitCode"] is None' "$NOTHING_RAN"
	rm ledger
	# one that says so itself, with 0
	tool liar <<-'LAUNCHER'
		#!/bin/sh
		echo '"a result"'
	LAUNCHER
	j --new-call --ledger ledger --sandbox-argv "$PWD/liar" -- /bin/echo 1
	holds 'code == "spawn"' "$NOTHING_RAN"
	rm ledger
	# the same status, and words, from the tool
	j --new-call --ledger ledger --sandbox-argv 'env' -- "$PWD/refuser"
	holds 'code == "exit"' 'reply["exitCode"] == 3' 'outcomes[0]["exitCode"] == 3'
	no_workdir
}

@test "a tool can neither take away nor forge what is said of it, however late rv-exec reads" {
	# rv-exec stands still while the tool starts
	tool slow <<-'LAUNCHER'
		#!/bin/bash
		host=$(cut -d' ' -f4 /proc/$PPID/stat)
		kill -STOP "$host"
		echo "$host" >"${0%/*}/host"
		exec "$@"
	LAUNCHER
	tool thief <<-'TOOL'
		#!/usr/bin/python3 -I
		import fcntl, os, sys
		for fd in 1, 2:
		    mine = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK)
		    try:
		        said = os.read(mine, 65536)
		    except BlockingIOError:
		        continue
		    nonce = said.split()[0] if said.split() else b"none"
		    os.write(1, nonce + b" started\n" + nonce + b" failed exec 2\n")
		    sys.exit(0)
		print('"nothing to be had"')
	TOOL
	j --new-call --ledger ledger --sandbox-argv "$PWD/slow" -- "$PWD/thief" 3>&- &
	rv_until test -s host
	sleep 0.3 # in which a tool that is not held back has done its worst
	kill -CONT "$(cat host)"
	wait $!
	holds 'reply.get("result") == "nothing to be had"' 'outcomes[0]["outcome"] == "ok"'
	rm ledger
	# and one that kills who would say how it ended has run all the same
	j --new-call --ledger ledger --sandbox-argv env -- /bin/sh -c 'kill -9 $PPID; exit 0'
	holds 'code in ("exit", "protocol")' 'reply["exitCode"] is not None or reply["signal"] is not None' 'outcomes[0]["outcome"] == "error"'
}

@test "a launcher that is missing, or eats the input" {
	fails config 125 x --new-call --ledger ledger --sandbox-argv /no/such/launcher -- /bin/echo 1
	fails config 125 x --new-call --ledger ledger --sandbox-argv '' -- /bin/echo 1
	fails config 125 x --new-call --ledger ledger --sandbox-argv "'open" -- /bin/echo 1
	[ ! -s ledger ]
	fails config 125 env PATH=/nonexistent "$RV_BIN/rv-exec" --tool t --sandbox bwrap -- /bin/echo 1
	grep -q bubblewrap stderr
	j --new-call --ledger ledger --sandbox-argv '/bin/sh -c "cat >/dev/null; exec \"\$@\"" -' -- /bin/echo 1
	holds 'code == "spawn"' "$NOTHING_RAN"
	rv_fails 2 x --sandbox bwrap --sandbox-argv true -- /bin/echo 1 2>stderr
	rv_fails 2 x --ro /opt -- /bin/echo 1 2>stderr
}

@test "a tool that cannot be run inside is spawn as outside, and its own 126 and 127 are exit" {
	can_bwrap
	fails spawn 127 x --sandbox bwrap -- /bin/no-such-tool
	printf 'no shebang\n' >plain
	chmod 755 plain
	fails spawn 126 x --sandbox bwrap --ro "$PWD/plain" -- "$PWD/plain"
	fails exit 1 x --sandbox bwrap -- /bin/sh -c 'exit 127'
	fails exit 1 x --sandbox bwrap -- /bin/sh -c 'exit 1'
	j --sandbox bwrap -- /bin/sh -c 'kill -9 $$'
	holds 'code == "exit"' 'reply["signal"] == "SIGKILL"' 'reply["exitCode"] is None'
	no_workdir
}

@test "the cap is exact behind a launcher's noise, and its deadline holds" {
	tool noisy <<-'LAUNCHER'
		#!/bin/sh
		head -c 10000 /dev/zero
		exec "$@"
	LAUNCHER
	rv_equal 1000 "$(x --max-output 1000 --sandbox-argv "$PWD/noisy" -- /bin/sh -c 'printf %0998d 1 | sed "s/.*/\"&\"/" | tr -d "\n"' | tr -d '\n' | wc -c)"
	fails output-cap 121 x --max-output 1000 --sandbox-argv "$PWD/noisy" -- /bin/sh -c 'printf %0999d 1 | sed "s/.*/\"&\"/" | tr -d "\n"'
	fails output-cap 121 within 5000 x --max-output 1000 --sandbox-argv "$PWD/noisy" -- /bin/sh -c 'exec yes'
	fails timeout 124 within 5000 x --timeout 300ms --kill-grace 200ms --sandbox-argv "$PWD/noisy" -- /bin/sh -c 'trap "" TERM; while :; do sleep 1; done'
	fails timeout 124 within 5000 x --timeout 300ms --kill-grace 200ms --sandbox-argv '/bin/sh -c "exec sleep 60"' -- /bin/echo 1
	no_workdir
}

@test "nothing of a sandbox outlives its dispatch, nor rv-exec" {
	can_bwrap
	mark=launcher-$$-$RANDOM
	x --json --sandbox bwrap --setenv RV_MARK="$mark" -- /bin/sh -c 'PATH=/usr/bin; setsid sleep 300 & (sleep 300 >&- 2>&- &) ; echo 1' >reply
	holds 'reply["result"] == 1' 'reply["survivors"] == 0'
	none_alive "$mark"
	x --sandbox bwrap --setenv RV_MARK="$mark" -- /bin/sh -c 'PATH=/usr/bin; setsid sleep 300 & sleep 300' >out 2>stderr 3>&- &
	pid=$!
	rv_until running_tool "$mark"
	kill -9 "$(rv_exec_of $pid)"
	wait $pid || true
	rv_until none_alive "$mark"
}

@test "firejail, which is setuid" {
	rv_need firejail
	firejail --quiet --noprofile true 2>/dev/null || skip "firejail does not run here"
	j --new-call --ledger ledger --sandbox-argv 'firejail --noprofile --net=none' --setenv S=s3cret -- \
		/bin/sh -c 'grep -q "NoNewPrivs:.1" /proc/self/status || exit 9; echo "\"$S $(grep -c : /proc/net/dev)\""'
	holds 'reply.get("result") == "s3cret 1"' 'reply["containment"] == "subreaper"' 'reply["sandbox"] == "argv:firejail"' 'intents[0]["sandbox"] == "argv:firejail"'
	j --sandbox-argv 'firejail --quiet --no-such-option' -- /bin/echo 1
	holds 'code == "spawn"'
	no_workdir
}

@test "--require-containment refuses what runs outside, before anything is written" {
	fails config 125 x --require-containment --new-call --ledger ledger --sandbox-argv env -- /bin/echo 1
	[ ! -s ledger ]
}

@test "--executor TAG: registered, named, and refused where it is not" {
	requests() {
		printf '{"id":"%s","tool":"t","args":{"a":1},%s"ctx":{"runId":"r","idempotencyKey":"k"}}\n' "$@"
	}
	{
		requests 1 '"executor":"offline",'
		requests 2 ''
		requests 3 '"executor":"microvm",'
		requests 4 '"executor":"inprocess",'
		requests 5 '"executor":"subprocess",'
	} >requests
	rv_fails 1 rv-exec --stream --workdir-base "$PWD" --ledger ledger --executor offline="env OFFLINE=1" -- /bin/sh -c 'cat >/dev/null; echo 1' \
		<requests >replies
	/usr/bin/python3 -c '
import json
r = {v["id"]: v for v in map(json.loads, open("replies"))}
assert r["1"]["ok"] and r["1"]["sandbox"] == "argv:env", r["1"]
assert r["2"]["ok"] and r["2"]["sandbox"] == "none" and r["5"]["ok"]
assert r["3"]["error"]["code"] == r["4"]["error"]["code"] == "config"
rows = [json.loads(l) for l in open("ledger")]
assert [v["executor"] for v in rows if v["phase"] == "intent"] == ["offline", "subprocess", "subprocess"]
# the executor is in no key and in no hash
assert len({(v["idempotencyKey"], v["argsHash"]) for v in rows}) == 1'
	# one shot: the tag of a call that names none
	rv_equal 1 "$(x --executor offline='env A=1' --executor offline -- /bin/echo 1)"
	fails config 125 x --executor offline -- /bin/echo 1
	fails config 125 x --executor inprocess -- /bin/echo 1
	fails config 125 x --executor inprocess=env -- /bin/echo 1
	fails config 125 x --executor subprocess=env -- /bin/echo 1
	fails config 125 x --executor a=env --executor a=env -- /bin/echo 1
	# the key derived from coordinates does not know it, either
	for executor in subprocess offline; do
		x --json --run-id r --genesis g --agent-seq 1 --ordinal 2 --executor offline=env --executor $executor -- /bin/echo 1 | member idempotencyKey
	done >keys
	rv_equal 1 "$(sort -u keys | wc -l)"
}

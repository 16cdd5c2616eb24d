# What goes wrong in programs that run others, all of it at once through rv-exec --stream --jobs 8: the tree of
# processes, its pipes, its deadline, its start, its workdir.
load helper
load exec

# name, what is due (ok RESULT, or a code, its exitCode and signal), time limit, a script for sh
TABLE=$(cat <<'TABLE'
background	ok 1	20s	sleep 30 & echo 1
background-deaf	ok 1	20s	sh -c 'trap "" TERM HUP; sleep 30' & echo 1
setsid	ok 1	20s	setsid sleep 72 & echo 1
double-fork	ok 1	20s	(setsid sh -c '(sleep 72 &)' &); echo 1
stopped	ok 1	20s	sh -c 'kill -STOP $$; sleep 72' & echo 1
whole-tree	timeout null "SIGTERM"	1s	yes >/dev/null
setsid-waits	timeout null "SIGTERM"	1s	setsid sleep 72 & wait
stops-itself	timeout null "SIGTERM"	1s	kill -STOP $$
deaf	timeout null "SIGKILL"	1s	trap "" TERM; sleep 72; sleep 72
single-bytes	timeout null "SIGTERM"	1s	while :; do printf ' '; done
writes-first	ok 1	20s	head -c 1000000 /dev/zero | tr '\0' ' '; wc -c >n; read n <n; [ "$n" -gt 1048576 ] && echo 1
never-reads	ok 1	20s	echo 1
closes-stdin	ok 1	20s	exec <&-; echo 1
only-stderr	ok null	20s	head -c 3000000 /dev/zero | tr '\0' x >&2
flood	output-cap null "SIGKILL"	20s	exec yes
exit-124	exit 124 null	20s	exit 124
exit-137	exit 137 null	20s	exit 137
kills-itself	exit null "SIGKILL"	20s	kill -9 $$
dispositions	ok "0000000000000000 0000000000000000"	20s	while read -r k v; do case $k in SigBlk:) b=$v ;; SigIgn:) i=$v ;; esac; done </proc/self/status; echo "\"$b $i\""
descriptors	ok "0 1 2 3"	20s	set -- $(ls /proc/self/fd); echo "\"$*\""
mode-0	ok 1	20s	mkdir -p a/b/c; : >a/b/f; chmod 0 a/b/c a/b a .; echo 1
links	ok 1	20s	ln -s "$HOME_OF_TEST" l; ln -s / r; ln "$HOME_OF_TEST/precious" h; mkdir d; ln -s "$HOME_OF_TEST" d/l; echo 1
deep	ok 1	20s	exec /usr/bin/perl -e 'for (1..5000) { mkdir "d" or die; chdir "d" or die } print 1'
a-directory	spawn null null	20s	!/tmp
not-executable	spawn null null	20s	!./mode
no-interpreter	spawn null null	20s	!./interpreter
no-magic	spawn null null	20s	!./plain
busy	spawn null null	20s	!./busy
not-there	spawn null null	20s	!/no/such/program
too-long	spawn null null	20s	!/bin/true
TABLE
)

# The manifest, and a request of each; a script with `!` is a program itself.
prepare() {
	TABLE=$TABLE /usr/bin/python3 -Ic '
import json, os
manifest, requests = {}, []
for line in os.environ["TABLE"].splitlines():
    name, due, limit, text = line.split("\t")
    program = text.startswith("!")
    manifest[name] = {"command": text[1:].replace("./", os.getcwd() + "/") if program else "/bin/sh", "timeout": limit,
                      "args": (["x" * 131072] if name == "too-long" else []) if program else ["-c", text]}
    args = "y" * 1048576 if name in ("writes-first", "never-reads", "closes-stdin") else {}
    requests.append({"id": name, "tool": name, "args": args, "ctx": {"runId": "r", "idempotencyKey": "k-" + name}})
json.dump(manifest, open("m", "w"))
open("in", "w").write("".join(json.dumps(r) + "\n" for r in requests))'
}

stream() {
	# a background job starts with some signals ignored, as whoever runs the tests may have
	env --default-signal=INT,QUIT,HUP,TERM rv-exec --stream --jobs 8 --kill-grace 300ms --workdir-base "$PWD/dirs" --manifest m --ledger ledger --setenv RV_MARK="$PWD" \
		--setenv HOME_OF_TEST="$PWD/home" "$@"
}

# Each reply and each row against the table.
check() {
	TABLE=$TABLE /usr/bin/python3 -Ic '
import json, os, sys
table = [line.split("\t") for line in os.environ["TABLE"].splitlines()]
replies = [json.loads(line) for line in open("out")]
rows = [json.loads(line) for line in open("ledger")]
bad = []
if [r["id"] for r in replies] != [t[0] for t in table]:
    bad.append("replies: " + str([r.get("id") for r in replies]))
for (name, due, limit, text), r in zip(table, replies):
    got = "ok " + json.dumps(r["result"]) if r["ok"] else " ".join([r["error"]["code"], json.dumps(r["exitCode"]), json.dumps(r["signal"])])
    mine = [w for w in rows if w["idempotencyKey"] == "k-" + name]
    outcome = "ok" if r["ok"] else "timeout" if r["error"]["code"] == "timeout" else "error"
    if got != due:
        bad.append(f"{name}: {got}, due {due}: {str(r)[:600]}")
    left, took = r["survivors"], r["durationMs"]
    if left != 0 and r["containment"] == "pid-namespace":
        bad.append(f"{name}: survivors {left}")
    if took > int(limit[:-1]) * 1000 + 300 + 1000:
        bad.append(f"{name}: {took} ms")
    if [w["phase"] for w in mine] != ["intent", "outcome"] or mine[0]["attemptId"] != mine[1]["attemptId"] or \
       (mine[1]["outcome"], mine[1]["exitCode"], mine[1]["signal"]) != (outcome, r["exitCode"], r["signal"]):
        bad.append(f"{name}: rows {mine}")
if len({json.dumps([r["error"]["code"], r["exitCode"], r["signal"]]) for r in replies
        if r["id"] in ("exit-124", "exit-137", "kills-itself", "flood", "whole-tree")}) != 5:
    bad.append("five ends that are not five")
sys.exit("\n".join(bad) or 0)'
}

@test "thirty scenarios at once, under a caller that ignores, blocks and leaves open what it can" {
	local status=0

	mkdir dirs home
	: >home/precious
	: >mode
	printf '#!/no/such/interpreter\n' >interpreter
	echo 'echo 1' >plain
	cp /bin/true busy
	chmod 755 interpreter plain busy
	prepare
	exec 9>>busy
	/usr/bin/python3 -Ic '
import os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR2])
null = os.open("/dev/null", os.O_RDWR)
for fd in (7, 500):
    os.dup2(null, fd, inheritable=True)
os.execvp(sys.argv[1], sys.argv[1:])' rv-exec --stream --jobs 8 --kill-grace 300ms --workdir-base "$PWD/dirs" --manifest m --ledger ledger \
		--setenv RV_MARK="$PWD" --setenv HOME_OF_TEST="$PWD/home" <in >out 2>stderr || status=$?
	exec 9>&-
	rv_equal 1 "$status" "$(cat stderr)"
	check || { head -c 1500 out; cat stderr; return 1; }
	rv-ledger-scan ledger
	rv_until none_alive "$PWD"
	rv_until no_workdir 2>/dev/null
	rv_equal 'precious 1' "$(ls home) $(stat -c %h home/precious)"
}

# Eight tools that have said that they run.
begin_eight() {
	local n

	rm -rf ledger up
	mkdir -p dirs up
	printf '{"t":{"command":"/bin/sh","args":["-c","trap \\"\\" TERM HUP INT; : >%s/up/$RULVAR_IDEMPOTENCY_KEY; sleep 72 & setsid sleep 72 & wait; sleep 72"]}}' "$PWD" >m
	for n in 1 2 3 4 5 6 7 8 9 10; do
		printf '{"id":%d,"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' $n $n
	done >in
	stream <in >out 2>stderr &
	rv_until eval '[ "$(ls up | wc -l)" -eq 8 ]'
}

@test "TERM, INT and HUP, once and twice, with eight in flight: all is written down, nothing is left" {
	local signal times host status

	for signal in TERM INT HUP; do
		for times in 1 2; do
			begin_eight
			host=$(rv_exec_of $!)
			kill -$signal "$host"
			[ $times = 1 ] || kill -$signal "$host"
			status=0
			wait $! || status=$?
			rv_equal $((128 + $(kill -l $signal))) "$status" "$signal $times"
			rv_equal '8 8 0' "$(count ledger 'r["phase"] == "intent"') $(count ledger 'r["phase"] == "outcome" and r["outcome"] == "error"') $(rv-ledger-scan ledger | wc -l)"
			rv_equal 10 "$(grep -c '"code":"aborted"' out)"
			none_alive "$PWD"
			no_workdir
		done
	done
}

@test "SIGKILL of rv-exec with eight in flight takes all along, deaf and detached ones too" {
	begin_eight
	kill -KILL "$(rv_exec_of $!)"
	wait $! || :
	rv_until none_alive "$PWD"
	rv_equal 8 "$(rv-ledger-scan ledger | grep -c '"state":"orphan"')"
}

# What stands for a launcher, and what is due of a tool behind it that prints its environment or ends with 3.
LAUNCHERS=$(cat <<'LAUNCHERS'
needs-home	ok "none none s3cret"	[ "$HOME $XDG_RUNTIME_DIR" = "/launcher /run/launcher" ] || { echo "no home" >&2; exit 9; }; [ -z "$SECRET" ] || exit 8; exec "$@"
noisy	ok "none none s3cret"	echo '"a result"'; echo noise >&2; "$@"; echo '"another"'; exit 0
refuses	spawn null null	echo '"a result"'; echo "no namespaces for you" >&2; exit 3
lies	spawn null null	echo '"a result"'; exit 0
dies	spawn null null	kill -9 $$
eats	spawn null null	cat >/dev/null; exec "$@"
hangs	timeout null "SIGTERM"	exec sleep 72
leaves	ok "none none s3cret"	setsid sleep 72 & exec "$@"
LAUNCHERS
)

@test "launchers by eight: two environments, and whose failure it was" {
	local name due script executors=()

	mkdir dirs
	while IFS=$'\t' read -r name due script; do
		printf '#!/bin/sh\n%s\n' "$script" >"$name"
		chmod 755 "$name"
		executors+=(--executor "$name=$PWD/$name")
	done <<<"$LAUNCHERS"
	LAUNCHERS=$LAUNCHERS /usr/bin/python3 -Ic '
import json, os
script = {"environment": "echo \"\\\"${HOME-none} ${XDG_RUNTIME_DIR-none} $SECRET\\\"\"",
          "three": "echo \"no namespaces for you\" >&2; exit 3"}
json.dump({name: {"command": "/bin/sh", "args": ["-c", text], "timeout": "2s"} for name, text in script.items()}, open("m", "w"))
with open("in", "w") as file:
    for n in range(3):
        for line in os.environ["LAUNCHERS"].splitlines():
            for tool in script:
                name = line.split("\t")[0]
                for executor in name, "subprocess":
                    file.write(json.dumps({"id": [name, executor, tool], "tool": tool, "args": {"n": n}, "executor": executor,
                                           "ctx": {"runId": "r", "idempotencyKey": f"k{n}-{name}-{executor}-{tool}"}}) + "\n")'
	rv_fails 1 env HOME=/launcher XDG_RUNTIME_DIR=/run/launcher rv-exec --stream --jobs 8 --kill-grace 300ms --workdir-base "$PWD/dirs" --manifest m \
		--ledger ledger --setenv SECRET=s3cret --setenv RV_MARK="$PWD" "${executors[@]}" <in >out 2>stderr
	LAUNCHERS=$LAUNCHERS /usr/bin/python3 -Ic '
import json, os, sys
due = {line.split("\t")[0]: line.split("\t")[1] for line in os.environ["LAUNCHERS"].splitlines()}
rows = [json.loads(line) for line in open("ledger")]
bad, count = [], 0
for r in map(json.loads, open("out")):
    name, executor, tool = r["id"]
    want = due[name] if executor == name else "ok \"none none s3cret\""
    if want[:3] == "ok " and tool == "three":
        want = "exit 3 null"
    got = "ok " + json.dumps(r["result"]) if r["ok"] else " ".join([r["error"]["code"], json.dumps(r["exitCode"]), json.dumps(r["signal"])])
    mine = [w for w in rows if w["idempotencyKey"] == r["idempotencyKey"]]
    ends = [(w["outcome"], w["exitCode"], w["signal"]) for w in mine if w["phase"] == "outcome"]
    outcome = "ok" if r["ok"] else "timeout" if r["error"]["code"] == "timeout" else "error"
    if got != want or ends != [(outcome, r["exitCode"], r["signal"])] or [w["executor"] for w in mine if w["phase"] == "intent"] != [executor]:
        bad.append(f"{r[chr(105) + chr(100)]}: {got}, due {want}; rows {mine}: {str(r)[:400]}")
    if "no namespaces for you" in str(r) and (name if executor == name else "") != "refuses" and tool != "three":
        bad.append(f"the words of another: {r}")
    count += 1
if count != 3 * 2 * 2 * len(due):
    bad.append(f"{count} replies")
sys.exit("\n".join(bad[:6]) or 0)' || { cat stderr; return 1; }
	rv-ledger-scan ledger
	rv_until none_alive "$PWD"
	no_workdir
}

@test "what was asked for and is not there is refused, and the plain calls beside it are not hit" {
	local missing

	mkdir dirs
	tool going <<-'LAUNCHER'
		#!/bin/sh
		exec "$@"
	LAUNCHER
	tool t <<-TOOL
		#!/bin/sh
		echo "\$RULVAR_IDEMPOTENCY_KEY" >>"$PWD/ran"
		rm -f "$PWD/going"
		echo 1
	TOOL
	/usr/bin/python3 -Ic '
import json
for n in range(8):
    for executor in "offline", "subprocess":
        print(json.dumps({"id": executor, "tool": "t", "args": {}, "executor": executor, "ctx": {"runId": "r", "idempotencyKey": f"k{n}{executor}"}}))' >in
	# the launcher goes while the stream runs: one call of a job after the other, so that the first finds it
	rv_fails 1 rv-exec --stream --workdir-base "$PWD/dirs" --ledger ledger --executor offline="$PWD/going" -- "$PWD/t" <in >out 2>stderr
	rv_equal '1 8' "$(grep -c '"id":"offline".*"ok":true' out) $(grep -c '"id":"subprocess".*"ok":true' out)"
	rv_equal 7 "$(grep '"id":"offline"' out | grep -c '"code":"\(spawn\|config\)"')"
	rv_equal 9 "$(wc -l <ran)"
	rv-ledger-scan ledger
	# and one that never was there refuses the whole stream, before any call
	rm ran ledger
	for missing in /no/such/launcher launcher-of-no-path "$PWD/in"; do
		rv_fails 125 rv-exec --stream --jobs 8 --workdir-base "$PWD/dirs" --ledger ledger --executor offline="$missing" -- "$PWD/t" <in >out 2>stderr
		grep -q "^rv-exec: .*$missing" stderr
		[ ! -s out ] && [ ! -s ledger ] && [ ! -e ran ]
	done
	no_workdir
}

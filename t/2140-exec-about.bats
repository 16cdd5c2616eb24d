# rv-exec --describe, --probe, --keep-workdir: what it is, what the host lets it do, what it leaves for a look.
load helper
load exec

setup() {
	mkdir dirs
}

@test "--describe: one line of exactly the promised members, and nothing is made" {
	rv-exec --describe >reply
	rv_equal 1 "$(wc -l <reply)"
	holds 'list(reply) == ["kind","name","ledger","phases","durability","allowEnv","credentials","bounds","isolation","containment","tools"]' \
		'list(reply["bounds"]) == ["timeoutMs","killGraceMs","maxOutputBytes"]' \
		'list(reply["isolation"]) == ["flavor","sandbox","network","readOnlyRoot"]' \
		'reply["kind"] == "tool-executor" and reply["name"] == "subprocess"' \
		'reply["ledger"] is None and reply["phases"] is None and reply["tools"] is None' \
		'reply["bounds"] == {"timeoutMs":30000,"killGraceMs":2000,"maxOutputBytes":1048576}' \
		'reply["isolation"] == {"flavor":"process","sandbox":"none","network":"host","readOnlyRoot":False}'
	rv_equal "$(x --json -- /bin/true | member containment)" "$(member containment <reply)"
	printf '{"pay":{"command":"/bin/pay","args":["-x"],"timeout":"5s","needsApproval":true,"risk":"execute"},"b":{"command":"b"}}' >m
	TOKEN=secret rv-exec --describe --manifest m --ledger ledger --durability power --ledger-phases one --allow-env TOKEN --allow-env B \
		--setenv S=secret --credentials '/bin/echo secret' --timeout 1m --kill-grace 3s --max-output 2KiB >reply
	holds 'reply["tools"] == [{"name":"pay","command":"/bin/pay","args":["-x"],"executor":None,"timeoutMs":5000,"needsApproval":True,"risk":"execute"},{"name":"b","command":"b","args":[],"executor":None,"timeoutMs":60000,"needsApproval":False,"risk":None}]' \
		'(reply["ledger"], reply["phases"], reply["durability"]) == ("ledger", "one", "power")' \
		'reply["allowEnv"] == ["TOKEN","B"] and reply["credentials"] is True' \
		'reply["bounds"] == {"timeoutMs":60000,"killGraceMs":3000,"maxOutputBytes":2048}'
	rv_fails 1 grep -q secret reply
	[ ! -e ledger ]
}

@test "--describe refuses what a call would refuse" {
	echo '{"a":1}' >m
	rv_fails 125 rv-exec --describe --manifest m >stdout 2>stderr
	rv_fails 125 rv-exec --describe --credentials no-such-program-here >stdout 2>stderr
	[ ! -s stdout ]
	rv_fails 2 rv-exec --describe --probe 2>stderr
	rv_fails 5 rv-exec --describe >/dev/full 2>stderr
}

@test "--probe: a line for each facility, and its status is that of the default" {
	local status=0

	rv-exec --probe >found || status=$?
	/usr/bin/python3 -Ic '
import json, sys
lines = [json.loads(l) for l in open("found")]
for l in lines:
    assert list(l) == ["name","ok","why","remedy"], l
    assert l["ok"] is (l["remedy"] == ""), l
    assert l["ok"] or l["why"], l
names = [l["name"] for l in lines]
assert len(set(names)) == len(names)
assert {"user-namespace","pid-namespace","procfs","cgroup-v1","cgroup-v2","landlock","seccomp","sandbox-kernel","bwrap","firejail","podman","docker","default"} <= set(names), names
default = next(l for l in lines if l["name"] == "default")
assert int(sys.argv[1]) == (0 if default["ok"] else 1)
assert default["ok"] is (sys.argv[2] == "yes")' "$status" "$(contained && echo yes || echo no)"
	# It is found by doing: a program that is there and fails is not ok.
	mkdir bin
	printf '#!/bin/sh\nexit 3\n' >bin/bwrap
	chmod +x bin/bwrap
	PATH=$PWD/bin "$RV_BIN/rv-exec" --probe | grep '^{"name":"bwrap","ok":false,"why":"exited with status 3"'
	# SIGCHLD that is ignored when we are started takes how a child ended
	env --ignore-signal=CHLD "PATH=$PWD/bin" "$RV_BIN/rv-exec" --probe | grep '^{"name":"bwrap","ok":false,"why":"exited with status 3"'
	printf '#!/bin/sh\nexit 0\n' >bin/docker
	chmod +x bin/docker
	PATH=$PWD/bin "$RV_BIN/rv-exec" --probe | grep '^{"name":"docker","ok":true,'
}

@test "--probe where namespaces are forbidden: exit 1, with the remedy" {
	rv_need userns
	rv_fails 1 unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && echo 0 >/proc/sys/user/max_pid_namespaces &&
		PATH=/no/such exec '"$RV_BIN"'/rv-exec --probe' >found 2>stderr
	grep '^{"name":"default","ok":false,"why":"subreaper: .*","remedy":"user.max_user_namespaces' found
	grep '^{"name":"pid-namespace","ok":false' found
	grep '^{"name":"seccomp","ok":true' found
}

@test "--keep-workdir on-error: a failed tool's directory stays and is named; the rows are as ever" {
	local kept code

	tool leave <<-'TOOL'
		#!/bin/sh
		echo trace >trace
		exit "$1"
	TOOL
	x --json --keep-workdir on-error -- "$PWD/leave" 0 >reply
	holds '"keptWorkdir" not in reply'
	no_workdir
	rv_fails 1 x --json --ledger ledger --new-call --keep-workdir on-error -- "$PWD/leave" 3 >reply 2>stderr
	kept=$(member keptWorkdir <reply)
	rv_equal trace "$(cat "$kept/trace")"
	grep -qxF "rv-exec: the workdir is kept: $kept" stderr
	rv_equal "dirs/${kept##*/}" "$(ls -d dirs/*)"
	holds 'intents[0]["workdir"] == reply["keptWorkdir"]' 'outcomes[0]["outcome"] == "error" and outcomes[0]["exitCode"] == 3'
	rv-ledger-scan ledger
	rm -r "$kept"
	rv_fails 124 x --json --keep-workdir on-error --timeout 200ms --kill-grace 0ms -- /bin/sh -c 'echo 1 >file; sleep 60' >reply 2>stderr
	rv_equal 1 "$(cat "$(member keptWorkdir <reply)/file")"
	rm -r dirs/*
	# never is the default, and nothing is kept of a tool that never ran
	rv_fails 1 x --json -- "$PWD/leave" 3 >reply 2>stderr
	rv_fails 1 x --json --keep-workdir never -- "$PWD/leave" 3 >reply 2>stderr
	holds '"keptWorkdir" not in reply'
	rv_fails 127 x --json --keep-workdir on-error -- /no/such >reply 2>stderr
	no_workdir
	for code in 0 3 0 4; do
		printf '{"id":%d,"tool":"t","args":{},"spec":{"command":"%s","args":["%d"]},"ctx":{"runId":"r","idempotencyKey":"k"}}\n' \
			$code "$PWD/leave" $code
	done >in
	rv_fails 1 rv-exec --stream --jobs 2 --workdir-base "$PWD/dirs" --keep-workdir on-error <in >out 2>stderr
	rv_equal 2 "$(grep -c keptWorkdir out)"
	rv_equal 2 "$(grep -c '^rv-exec: the workdir is kept: ' stderr)"
	rv_equal 2 "$(cat dirs/*/trace | wc -l)"
}

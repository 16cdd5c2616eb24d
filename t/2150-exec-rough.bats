# rv-exec --stream --jobs 4 under bad input and in bad circumstances: each line has its answer, the rest goes on.
load helper
load exec

setup() {
	mkdir dirs
	printf '{"id":{"command":"/bin/cat"},"true":{"command":"/bin/true"},"own":{"command":"%s/own"}}' "$PWD" >m
}

s() {
	rv-exec --stream --jobs 4 --workdir-base "$PWD/dirs" --manifest m --ledger ledger "$@"
}

# request TOOL N [MEMBER...]
request() {
	printf '{"id":%d,"tool":"%s","args":{},%s"ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' "$2" "$1" "${3:+$3,}" "$2"
}

# ask TOOL N: of the stream between descriptors 7 and 8.
ask() {
	local line

	request "$1" "$2" >&7
	read -r -t 20 line <&8
	printf '%s\n' "$line"
}

# codes FILE: "id:code" of each reply, "ok" where there is no error.
codes() {
	/usr/bin/python3 -Ic '
import json, sys
out = []
for line in open(sys.argv[1]):
    r = json.loads(line)
    out.append(str(r.get("id")) + ":" + r.get("error", {}).get("code", "ok"))
print(*out)' "$1"
}

@test "a line of 64 MiB is a line: refused where it is no request, run where it is one" {
	rv_need own-memory
	{
		request true 1
		head -c $((64 << 20)) /dev/zero | tr '\0' x
		echo
		printf '{"id":3,"tool":"true","args":"'
		head -c $((64 << 20)) /dev/zero | tr '\0' y
		printf '","ctx":{"runId":"r","idempotencyKey":"k3"}}\n'
		request true 4
	} | rv_fails 3 s >out
	rv_equal '1:ok None:request 3:ok 4:ok' "$(codes out)"
	rv_equal 3 "$(count ledger 'r["phase"] == "outcome" and r["outcome"] == "ok"')"
}

@test "unknown members pass, wrong types are refused one by one" {
	{
		request true 1 '"more":{"a":[1,{}]},"spec_":7'
		request true 2 '"executor":["subprocess"]'
		echo '{"id":3,"tool":["true"],"args":{},"ctx":{"runId":"r","idempotencyKey":"k"}}'
		echo '{"id":4,"tool":"true","args":{},"ctx":[]}'
		echo '{"id":5,"tool":"true","args":{},"ctx":{"runId":1,"idempotencyKey":"k"}}'
		echo '{"id":6,"tool":"true","args":{},"ctx":{"runId":"r","idempotencyKey":true}}'
		echo '[]'
		echo
		printf '{"id":9,"tool":"true","args":{},"ctx":{"runId":"r\xff","idempotencyKey":"k"}}\n'
		request true 10
	} | rv_fails 3 s >out
	rv_equal '1:ok 2:request 3:request 4:request 5:request 6:request None:request None:request None:request 10:ok' "$(codes out)"
	rv_equal 2 "$(count ledger 'r["phase"] == "intent"')"
}

@test "a tool replaced, removed and put back while the stream runs; a workdir base that vanishes" {
	printf '#!/bin/sh\necho 1\n' >own
	chmod +x own
	mkfifo in out
	s <in >out 2>stderr &
	exec 7>in 8<out
	rv_equal 1 "$(ask own 1 | member result)"
	printf '#!/bin/sh\necho 2\n' >new
	chmod +x new
	mv new own
	rv_equal 2 "$(ask own 2 | member result)"
	mv own away
	rv_equal spawn "$(ask own 3 | member error.code)"
	mv away own
	rv_equal 2 "$(ask own 4 | member result)"
	exec 9>>own
	ask own 40 >reply
	exec 9>&-
	rv_equal spawn "$(member error.code <reply)"
	grep -q 'ext file busy' reply
	rv_equal 2 "$(ask own 41 | member result)"
	mv dirs gone
	ask own 5 >reply
	rv_equal 'config absent' "$(member error.code <reply) $(member attemptId <reply)"
	mv gone dirs
	rv_equal 2 "$(ask own 6 | member result)"
	exec 7>&-
	rv_fails 1 wait $!
	rv_equal '7 7' "$(count ledger 'r["phase"] == "intent"') $(count ledger 'r["phase"] == "outcome"')"
	no_workdir
}

@test "too few descriptors: every line is answered, and every intent has its outcome" {
	local limit n

	for n in 1 2 3 4 5 6 7 8; do request true $n; done >in
	for limit in 24 28 32 36 40; do
		rm -f ledger
		(ulimit -n $limit && s <in >out 2>stderr) || :
		[ "$(wc -l <out)" -eq 8 ] || [ ! -s out ] || rv_die "$limit: $(wc -l <out) answers"
		[ ! -s ledger ] || rv_equal "$(count ledger 'r["phase"] == "intent"')" "$(count ledger 'r["phase"] == "outcome"')" "$limit"
		no_workdir
	done
	(ulimit -n 64 && s <in >out)
	rv_equal 8 "$(grep -c '"ok":true' out)"
}

@test "a reader that goes away ends it, and one that stops reading holds it without loss" {
	local n

	for ((n = 1; n <= 200; n++)); do request true $n; done >in
	s <in 2>stderr | head -n 3 >out
	rv_equal 3 "$(wc -l <out)"
	rv_equal "$(count ledger 'r["phase"] == "intent"')" "$(count ledger 'r["phase"] == "outcome"')"
	no_workdir
	rm ledger
	# Replies of four thousand bytes: many times what the pipe holds.
	sed "s/\"runId\":\"r\"/\"runId\":\"$(printf '%4000s' '' | tr ' ' r)\"/" in >long
	s <long | { read -r line; rv_until eval '[ "$(wc -l <ledger)" -gt 150 ]'; printf '%s\n' "$line"; cat; } >out
	rv_equal 200 "$(grep -c '"ok":true' out)"
}

@test "a line beyond all memory ends it, and what came before has its answer" {
	rv_need own-memory
	{
		request true 1
		head -c $((300 << 20)) /dev/zero | tr '\0' x 2>/dev/null
	} | (ulimit -v 150000 && rv_fails 5 s >out 2>stderr)
	rv_equal 1:ok "$(codes out)"
	grep -q 'standard input: Cannot allocate memory' stderr
	rv_equal '1 1' "$(count ledger 'r["phase"] == "intent"') $(count ledger 'r["phase"] == "outcome"')"
	no_workdir
}

@test "a full disk under the workdirs: refused before any row, and it works again when there is room" {
	rv_need userns
	export -f s request ask codes member
	unshare --user --map-root-user --mount bash -euc '
		mount -t tmpfs -o size=256k,nr_inodes=12 none dirs
		mkfifo in out
		s <in >out 2>stderr &
		exec 7>in 8<out
		ask true 1 >>replies
		n=0
		while : 2>/dev/null >"dirs/f$n"; do n=$((n + 1)); done
		ask true 2 >>replies
		rm dirs/f*
		ask true 3 >>replies
		head -c 1000000 /dev/zero >dirs/f 2>/dev/null || :
		ask true 4 >>replies
		exec 7>&-
		wait $! || status=$?
		[ "$status" -eq 1 ]
		rm dirs/f
		[ -z "$(ls -A dirs)" ]'
	rv_equal '1:ok 2:config 3:ok 4:ok' "$(codes replies)"
	grep -q '"id":2,.*No space left on device' replies
	rv_equal '3 3' "$(count ledger 'r["phase"] == "intent"') $(count ledger 'r["phase"] == "outcome"')"
}

@test "a child that not even SIGKILL ends: the answer comes and says so, and the stream goes on" {
	local freezer=/sys/fs/cgroup/freezer/rv-test.$$ status=0

	rv_need root
	mkdir "$freezer" 2>/dev/null || skip "needs the freezer of cgroup v1"
	printf '{"frozen":{"command":"/bin/sh","args":["-c","sleep 72 & echo $! >%s/cgroup.procs; echo FROZEN >%s/freezer.state; /bin/mount -t tmpfs none /proc; echo 1"]},"true":{"command":"/bin/true"}}' \
		"$freezer" "$freezer" >m # and it hides who is there
	{
		request frozen 1
		for n in 2 3 4 5 6 7 8; do request true $n; done
	} >in
	s <in >out 2>stderr &
	rv_until eval '[ "$(wc -l <out)" -eq 8 ]'
	echo THAWED >"$freezer/freezer.state"
	wait $! || status=$?
	rv_until rmdir "$freezer" 2>/dev/null
	rv_equal 1 "$status"
	rv_equal '1:ok 2:ok 3:ok 4:ok 5:ok 6:ok 7:ok 8:ok' "$(codes out)"
	rv_equal 1 "$(sed -n 1p out | member survivors)"
	rv_equal 7 "$(grep -c '"survivors":0' out)"
	rv_equal '8 8' "$(count ledger 'r["phase"] == "intent"') $(count ledger 'r["phase"] == "outcome"')"
}

@test "arguments and results beyond any pipe's room arrive whole, also at a slow reader" {
	/usr/bin/python3 -Ic '
import json
for n in range(6):
    print(json.dumps({"id": n, "tool": "id", "args": {"b": ["\u00e9\n\u2028\U0001f600" * (n * 25000), n], "a": "x" * (n * 60000)},
                      "ctx": {"runId": "r", "idempotencyKey": f"k{n}"}}))' >in
	s --max-output 4MiB <in | /usr/bin/python3 -Ic '
import json, os, sys
text = bytearray()
while part := os.read(0, 3001):
    text += part
want = [json.loads(line) for line in open("in")]
got = [json.loads(line) for line in text.splitlines()]
for w, g in zip(want, got, strict=True):
    result = {"tool": "id", "args": w["args"], "idempotencyKey": w["ctx"]["idempotencyKey"]}
    if not g["ok"] or g["id"] != w["id"] or g["result"] != result:
        sys.exit("reply %d is not what was sent" % w["id"])'
	rv_equal '6 6' "$(count ledger 'r["phase"] == "intent"') $(count ledger 'r.get("outcome") == "ok"')"
}

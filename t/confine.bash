# What the tests of rv-confine share, behind helper.bash.

# A runtime that is always there, and small: hashing it costs nothing.
SH=/bin/sh

# file PATH: from standard input, its directories made.
file() {
	mkdir -p "$(dirname "$1")"
	cat >"$1"
}

# script NAME: a program for $SH in ./prog, from standard input.
script() {
	file "prog/$1"
}

# confine OPTION... [-- ARG...]: one run of ./prog on ./in, unpinned, in a root of this test's own.
confine() {
	mkdir -p prog in root
	chmod 700 root
	rv-confine --root "$PWD/root" --program prog --input in --unpinned "$@"
}

# run_sh NAME OPTION...: the same with $SH and prog/NAME; the result is in ./result, the status in $status.
run_sh() {
	local name=$1

	shift
	status=0
	confine --runtime "$SH" --entry "$name" "$@" >result 2>stderr || status=$?
}

# pins_for RUNTIME PROFILE [--runtime-tree DIR]...: of ./prog and ./in, into ./pins.
pins_for() {
	local runtime=$1 profile=$2

	shift 2
	printf '{"runtime":%s,"profile":%s,"program":%s,"input":%s}\n' \
		"$(rv-confine --describe-runtime "$runtime" "$@" | jq .digest)" \
		"$(rv-confine --describe-profile --profile "$profile" | jq .digest)" \
		"$(rv-confine --snapshot prog | jq .digest)" "$(rv-confine --snapshot in | jq .digest)" >pins
}

# request [JQ-FILTER]: the line of a stream for ./prog/main.sh on ./in with right pins (./pins), changed by the filter.
request() {
	jq -c --arg sh "$SH" --arg prog "$PWD/prog" --arg in "$PWD/in" '{
		runtime: {path: $sh, digest: .runtime}, profile: {digest: .profile},
		program: {dir: $prog, digest: .program, entry: "main.sh", args: []},
		input: {dir: $in, digest: .input},
		timeoutMs: 30000, maxOutputBytes: 65536, cpuSeconds: 10, maxDescriptors: 32
	} | '"${1:-.}" pins
}

# holds EXPRESSION...: Python expressions over r (the result in ./result), p (its process), out and err (bytes),
# results (all lines).
holds() {
	/usr/bin/python3 -Ic '
import base64, json, sys
results = [json.loads(l) for l in open("result", encoding="utf-8") if l.strip()]
r = results[0] if results else {}
p = r.get("process") or {}
out, err = (base64.b64decode(p.get(n, "")) for n in ("stdoutBase64", "stderrBase64"))
for expression in sys.argv[1:]:
    if not eval(expression):
        text = json.dumps(r)
        sys.exit(f"does not hold: {expression}\n  out: {out[:2000]}\n  err: {err[:2000]}\n  result: {text[:6000]}")' "$@" || { cat stderr >&2; return 1; }
}

# What holds of a run that went well.
GOOD='r["status"] == "observed" and r["attributable"] and r["problems"] == [] and r["namespace"] == {"state": "removed", "durable": True}'

# Nothing is in the root.
root_is_empty() {
	rv_equal '' "$(ls -A root)" 'left in the root'
}

# invalid COMMAND...: refused as an invalid request, with nothing on standard output.
invalid() {
	rv_fails 2 "$@" >stdout 2>stderr || { cat stderr >&2; return 1; }
	[ ! -s stdout ] || rv_die "printed: $(head -c 300 stdout)" || return
	grep -q '^rv-confine: invalid confined run request: ' stderr || rv_die "stderr: $(cat stderr)"
}

# on_event NAME: make ./hook from standard input, a shell script that runs at that event, its line in $line and the
# members namespace and pid in variables.  What it does with other events is nothing.
on_event() {
	{
		printf '#!/bin/bash\nread -r line\ncase $line in\n*"\\"event\\":\\"%s\\""*) ;;\n*) exit 0 ;;\nesac\n' "$1"
		printf 'namespace=$(jq -r .namespace <<<"$line")\npid=$(jq -r .pid <<<"$line")\n'
		cat
	} >hook
	chmod 755 hook
}

# What the tests of rv-exec share, behind helper.bash.

# tool NAME: a program from standard input, in the test's directory.
tool() {
	cat >"$1"
	chmod 755 "$1"
}

# A tool "mark" that writes its key to ./ran, which shows whether it was started.
marking_tool() {
	tool mark <<-TOOL
		#!/bin/sh
		echo "\$RULVAR_IDEMPOTENCY_KEY" >>"$PWD/ran"
		echo 1
	TOOL
	: >ran
}

# x OPTION... -- COMMAND...: rv-exec with a name and with workdirs of this test's own.
x() {
	mkdir -p dirs
	rv-exec --tool t --workdir-base "$PWD/dirs" "$@"
}

# member PATH [FILE]: the value at a.b.c of the one JSON line in FILE (standard input), as JSON;
# a string without its quotes; "absent" where there is none.
member() {
	/usr/bin/python3 -Ic '
import json, sys
value = json.load(open(sys.argv[2] if len(sys.argv) > 2 else 0, encoding="utf-8", errors="surrogateescape"))
for name in sys.argv[1].split("."):
    value = value[name] if isinstance(value, dict) and name in value else ...
print("absent" if value is ... else value if isinstance(value, str) else json.dumps(value, separators=(",", ":")))' "$@"
}

# rows FILE FILTER: the ledger rows for which the Python expression holds (r is the row), one a line,
# keys sorted; it fails where a line is no JSON.
rows() {
	/usr/bin/python3 -Ic '
import json, sys
for line in filter(str.strip, open(sys.argv[1], encoding="utf-8")):
    r = json.loads(line)
    if eval(sys.argv[2]):
        print(json.dumps(r, sort_keys=True, separators=(",", ":")))' "$@"
}

# count FILE FILTER
count() {
	rows "$@" | wc -l
}

# holds EXPRESSION...: Python expressions over reply (./reply, if it is there), code (of its error,
# or None), intents and outcomes (the rows of ./ledger).
holds() {
	/usr/bin/python3 -Ic '
import json, os, sys
def lines(name):
    return [json.loads(l) for l in open(name, encoding="utf-8") if l.strip()] if os.path.exists(name) else []
reply = (lines("reply") or [{}])[0]
code = reply.get("error", {}).get("code")
rows = lines("ledger")
intents = [r for r in rows if r["phase"] == "intent"]
outcomes = [r for r in rows if r["phase"] == "outcome"]
for expression in sys.argv[1:]:
    if not eval(expression):
        sys.exit(f"does not hold: {expression}\n  reply: {reply}\n  rows: {rows}")' "$@"
}

# What holds of rows where nothing ran, and where something did.
NOTHING_RAN='len(intents) == 1 and [(r["outcome"], r["exitCode"], r["signal"]) for r in outcomes] == [("error", None, None)]'

# fails CODE-NAME STATUS COMMAND...: rv-exec ends so, says so, and prints no result.
fails() {
	local code=$1 status=$2

	shift 2
	rv_fails "$status" "$@" >stdout 2>stderr || { cat stderr >&2; return 1; }
	[ ! -s stdout ] || rv_die "a result was printed: $(head -c 200 stdout)" || return
	grep -q "^rv-exec: $code: " stderr || rv_die "no '$code' in: $(head -c 2000 stderr)"
}

now_ms() {
	local now=${EPOCHREALTIME/[.,]/}

	printf '%s\n' "${now%???}"
}

# within MS COMMAND...: it ends within so many milliseconds (up to four times as many on a loaded
# machine; a hang takes ten times as long), with the status that it has.
within() {
	local limit=$1 start status=0 took load

	shift
	start=$(now_ms)
	"$@" || status=$?
	took=$(($(now_ms) - start))
	read -r load _ </proc/loadavg
	load=$((1 + ${load%.*} / $(nproc)))
	[ "$took" -le $((limit * (load < 4 ? load : 4))) ] || rv_die "took $took ms, allowed $limit: $*" || return 77
	return "$status"
}

# alive MARK: how many processes have RV_MARK=MARK in their environment.
alive() {
	grep -lzx "RV_MARK=$1" /proc/[0-9]*/environ 2>/dev/null | wc -l
}

none_alive() {
	[ "$(alive "$1")" -eq 0 ]
}

# no_workdir: nothing is left of any.
no_workdir() {
	rv_equal '' "$(ls -A dirs)" 'workdirs left behind'
}

# Does rv-exec contain a tool in a PID namespace here?
contained() {
	[ "$(x --json -- /bin/true | member containment)" = pid-namespace ]
}

is_stopped() {
	[[ $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) == T* ]]
}

# ended PID: it is gone, or a zombie that waits for this shell.
ended() {
	[ ! -e "/proc/$1" ] || [[ $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) == [ZX]* ]] || [ ! -e "/proc/$1" ]
}

# The children of a process, by /proc.
children() {
	cat "/proc/$1/task/$1/children"
}

running_tool() {
	[ "$(alive "$1")" -gt 0 ]
}

# rv_exec_of PID: the rv-exec that a background function of this shell runs.
rv_exec_of() {
	local pid

	for pid in "$1" $(children "$1"); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != rv-exec ] || { echo "$pid"; return; }
	done
	rv_die "no rv-exec under $1"
}

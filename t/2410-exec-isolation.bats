# rv-exec: the four ways to run a tool, side by side: what each prevents, as the page has it, and that a tool and its
# rows are the same in all.
load helper
load exec
load container

@test "the page's table is what the probes find now" {
	rv_need bwrap kernel-sandbox
	"$RV_SRC/t/isolation" --bin "$RV_BIN" --page "$RV_SRC/man/rv-exec.1" >table 2>not-asked || rv_die "$(cat not-asked)"
	sed 's/^/# /' not-asked >&3
	[ "$(id -u)" -ne 0 ] || ! can_container || rv_fails 1 grep . not-asked
	sed -n '/^\.\\" t\/isolation begins/,/^\.\\" t\/isolation ends/p' "$RV_SRC/man/rv-exec.1" | sed '1d;$d' >page
	diff -u page table
	rv_equal 18 "$(grep -c '^\.It [^E]' table)"
	rv_fails 1 grep '?' table
}

# The same calls, one line each: a shell, Python and static C, with arguments, credentials, failures and much output.
requests() {
	local n=0 call

	cp "$RV_BIN/t/probes/probe" tools/
	while read -r call; do
		n=$((n + 1))
		printf '{"tool":"t","args":{"n":[%d,"\\u00e9"]},"spec":%s,"ctx":{"runId":"r","spanId":"s","idempotencyKey":"k%d"}}\n' "$n" "$call" "$n"
	done <<-CALLS
		{"command":"/bin/sh","args":["-c","exec cat"]}
		{"command":"/bin/sh","args":["-c","printf '[\"%s\",\"%s\",\"%s\"]' \"\$TOKEN\" \"\$RULVAR_IDEMPOTENCY_KEY\" \"\$1\"","sh","a b"]}
		{"command":"/bin/sh","args":["-c","echo why it failed >&2; exit 7"]}
		{"command":"/bin/sh","args":["-c","exit 126"]}
		{"command":"/bin/sh","args":["-c","echo 1 2"]}
		{"command":"/usr/bin/python3","args":["-ISc","import json,sys; print(json.dumps([json.load(sys.stdin)['args']['n'], 'x' * 900000]))"]}
		{"command":"/usr/bin/python3","args":["-ISc","while True: print('x' * 65536)"]}
		{"command":"$PWD/tools/probe","args":["start.fork"]}
		{"command":"$PWD/tools/probe","args":["--no-such"]}
	CALLS
}

# What differs with the way: who it was, how long it took; and of what was killed in mid-flood, how much had come and
# whose signal it was.
SAME='
import json, sys
DIFFER = "attemptId startedAt durationMs executor sandbox containment writer workdir resources survivors network flavor".split()
def same(row):
    differ = DIFFER + (["stdoutBytes", "exitCode", "signal"] if row["idempotencyKey"] == "k7" else [])
    return json.dumps({name: value for name, value in row.items() if name not in differ}, sort_keys=True)
for line in open(sys.argv[1], encoding="utf-8"):
    row = json.loads(line)
    print(same(row))
    print(sorted(set(row) - {"network", "flavor"}))'

# in_way NAME OPTION...: what came of the calls, without what has to differ, in NAME.replies and NAME.rows.
in_way() {
	local way=$1

	shift
	rv_fails 1 rv-exec --stream --workdir-base "$PWD" --ledger "$way.jsonl" --timeout 60s --kill-grace 200ms \
		--credentials "/bin/echo '{\"TOKEN\":\"t0p s3cret\"}'" "$@" <requests >"$way.out"
	rv_equal 9 "$(wc -l <"$way.out")"
	/usr/bin/python3 -Ic "$SAME" "$way.out" >"$way.replies"
	/usr/bin/python3 -Ic "$SAME" "$way.jsonl" >"$way.rows"
}

same_as_none() {
	local what

	for what in replies rows; do
		cmp -s "none.$what" "$1.$what" || rv_die "$(diff "none.$what" "$1.$what" | cut -c 1-600)" || return
	done
	rv_equal "$2" "$(rows "$1.jsonl" 'r["phase"] == "intent"' | member_each executor sandbox | sort -u)"
}

# member_each NAME NAME: the two of each line.
member_each() {
	/usr/bin/python3 -Ic 'import json, sys; [print(*(json.loads(line)[name] for name in sys.argv[1:])) for line in sys.stdin]' "$@"
}

@test "none, kernel and bwrap: the same tools have the same results and the same rows" {
	rv_need bwrap kernel-sandbox
	mkdir tools
	requests >requests
	in_way none
	rv_equal 'None None exit exit protocol None output-cap protocol exit' \
		"$(/usr/bin/python3 -Ic 'import json, sys; print(*(json.loads(line).get("error", {}).get("code") for line in sys.stdin))' <none.out)"
	in_way kernel --sandbox kernel --ro "$PWD/tools"
	same_as_none kernel 'subprocess kernel'
	in_way bwrap --sandbox bwrap --ro "$PWD/tools"
	same_as_none bwrap 'subprocess bwrap'
}

@test "a container: the same tools have the same results and the same rows" {
	can_container
	mkdir tools
	requests >requests
	in_way none
	shown=()
	for dir in /usr /lib /lib64 "$PWD/tools"; do
		shown+=(--engine-arg "--mount=type=bind,source=$(readlink -f "$dir"),target=$dir,ro")
	done
	in_way container --executor container --engine "$ENGINE" "${ENGINE_ARGS[@]}" "${shown[@]}" --image "$IMAGE"
	same_as_none container 'container container'
}

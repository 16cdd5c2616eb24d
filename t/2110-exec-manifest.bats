# rv-exec --manifest: what may run is the trusted side's word, and a request's never.
load helper
load exec

setup() {
	mkdir dirs
	tool echo-argv <<-'TOOL'
		#!/usr/bin/python3 -I
		import json, sys
		print(json.dumps(sys.argv[1:]))
	TOOL
}

# manifest TEXT: ./m, with @ for this directory.
manifest() {
	printf '%s' "${1//@/$PWD}" >m
}

# request TOOL [MEMBER...]
request() {
	printf '{"tool":"%s",%s"args":{},"ctx":{"runId":"r","idempotencyKey":"k"}}\n' "$1" "${2:+$2,}"
}

s() {
	rv-exec --stream --jobs 4 --workdir-base "$PWD/dirs" --manifest m --ledger ledger "$@"
}

one() {
	rv-exec --workdir-base "$PWD/dirs" --manifest m --ledger ledger --new-call "$@"
}

# refused CODE: every reply of ./out is refused so, and nothing ran.
refused() {
	local line

	[ -s out ] || rv_die 'no reply'
	while read -r line; do
		rv_equal "$1 absent" "$(member error.code <<<"$line") $(member attemptId <<<"$line")" "$line"
	done <out
	[ ! -s ledger ] || rv_die 'a row was written'
	no_workdir
}

@test "a tool runs by the manifest's command, in both forms" {
	manifest '{"a":{"command":"@/echo-argv","args":["one","","two words"]},"b":{"command":"/bin/false"}}'
	rv_equal '["one","","two words"]' "$(one --tool a)"
	request a | s >out
	rv_equal '["one","","two words"]' "$(member result <out)"
	rv_fails 1 one --tool b 2>stderr
	rv_equal 3 "$(count ledger 'r["phase"] == "intent"')"
}

@test "a tool that is not in it is config, before any intent" {
	manifest '{"a":{"command":"@/echo-argv"}}'
	fails config 125 one --tool A
	fails config 125 one --tool 'a '
	{ request b && request A; } | rv_fails 1 s >out
	refused config
}

@test "a request's spec is refused" {
	manifest '{"a":{"command":"@/echo-argv"}}'
	{
		request a '"spec":{"command":"/bin/echo","args":["1"]}'
		request a '"spec":{"args":["more"]}'
		request a '"spec":{}'
		request a '"spec":null'
	} | rv_fails 1 s >out
	refused config
	rv_equal 4 "$(wc -l <out)"
}

@test "there is no COMMAND beside it" {
	manifest '{"a":{"command":"@/echo-argv"}}'
	rv_fails 2 one --tool a -- /bin/true 2>stderr
	rv_fails 2 s -- /bin/true </dev/null 2>stderr
	rv_fails 2 one 2>stderr
}

@test "it is checked whole: one bad entry is config for every call" {
	local entry

	request a >in
	while IFS= read -r entry; do
		manifest "$entry"
		rv_fails 125 one --tool a >stdout 2>stderr || rv_die "accepted: $entry"
		[ ! -s stdout ] && [ ! -s ledger ] || rv_die "something was printed, or a row written: $entry"
	done <<-'BAD'
		{"a":{"command":"@/echo-argv"},"a":{"command":"@/echo-argv"}}
		{"a":{"command":"@/echo-argv"},"\u0061":{"command":"@/echo-argv"}}
		{"a":{"command":"@/echo-argv","command":"/bin/true"}}
		{"a":{"command":"@/echo-argv","timeout":"1s","\u0074imeout":"2s"}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"@/echo-argv","needsAproval":true}}
		{"a":{"command":"@/echo-argv"},"b":{}}
		{"a":{"command":"@/echo-argv"},"b":null}
		{"a":{"command":"@/echo-argv"},"b":["/bin/true"]}
		{"a":{"command":"@/echo-argv"},"":{"command":"/bin/true"}}
		{"a":{"command":"@/echo-argv"},"b\u0000":{"command":"/bin/true"}}
		{"a":{"command":"@/echo-argv"},"b":{"command":""}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true\u0000"}}
		{"a":{"command":"@/echo-argv"},"b":{"command":["/bin/true"]}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","args":"x"}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","args":["x",1]}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","args":["x\u0000"]}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","timeout":30}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","timeout":"30"}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","timeout":"0s"}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","timeout":"-1s"}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","timeout":""}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","executor":""}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","executor":"inprocess"}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","executor":"no-such-tag"}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","needsApproval":"yes"}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","needsApproval":null}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"/bin/true","risk":3}}
		{"a":{"command":"@/echo-argv"},"b":{"command":"\ud800"}}
		{"a":{"command":"@/echo-argv"}} {}
		[]
		{"a":{"command":"@/echo-argv"}
	BAD
	rv_fails 125 s <in >out 2>>stderr
	[ ! -s out ] && [ ! -s ledger ]
	: >m
	rv_fails 125 one --tool a 2>stderr
	rv_fails 5 rv-exec --manifest no-such --tool a 2>stderr
	# Behind all these refusals a good one is still accepted.
	manifest ' { "a" : {"command":"@/echo-argv"}, "b":{"command":"x","args":[],"executor":"subprocess","timeout":"1h","needsApproval":false,"risk":"execute"} } '
	rv_equal '[]' "$(one --tool a)"
}

@test "a tool's own timeout stands for --timeout, also in until" {
	manifest '{"slow":{"command":"/bin/sleep","args":["60"],"timeout":"200ms"},"long":{"command":"/bin/sh","args":["-c","sleep 0.5; echo 1"],"timeout":"20s"}}'
	within 2000 rv_fails 124 one --timeout 60s --kill-grace 100ms --tool slow 2>stderr
	grep -q 'no result within 200 ms' stderr
	rv_equal 1 "$(one --timeout 100ms --tool long)"
	request slow | s --kill-grace 100ms >out || true
	rv_equal timeout "$(member error.code <out)"
	rv_equal 3 "$(count ledger 'r["phase"] == "intent" and r["writer"]["until"] - r["startedAt"] < 50000')"
}

@test "the executor is the manifest's; a request that names another is config" {
	manifest '{"a":{"command":"@/echo-argv","executor":"subprocess"},"b":{"command":"@/echo-argv"}}'
	{ request a '"executor":"subprocess"' && request b '"executor":"subprocess"' && request a; } | s >out
	rv_equal 3 "$(grep -c '"ok":true' out)"
	rm ledger
	{ request a '"executor":"container"' && request a '"executor":"inprocess"' && request b '"executor":"inprocess"' &&
		request b '"executor":"nothing"'; } | rv_fails 1 s >out
	refused config
	request a '"executor":7' | rv_fails 3 s >out
	refused request
}

@test "it is read once: replaced while the stream runs, it says what it said" {
	manifest '{"a":{"command":"@/echo-argv","args":["old"]}}'
	mkfifo in out
	s <in >out &
	exec 7>in 8<out
	request a >&7
	read -r -t 20 line <&8
	rv_equal '["old"]' "$(member result <<<"$line")"
	manifest '{"a":{"command":"@/echo-argv","args":["new"]},"b":{"command":"@/echo-argv"}}'
	mv m m2 && mv m2 m
	{ request a && request b; } >&7
	read -r -t 20 line <&8
	rv_equal '["old"]' "$(member result <<<"$line")"
	read -r -t 20 line <&8
	rv_equal config "$(member error.code <<<"$line")"
	exec 7>&-
	rv_fails 1 wait $!
}

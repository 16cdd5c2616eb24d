# rv-key --stream: an answer a line, in order, and a refusal stops nobody.
load helper

# line MEMBERS: an invocation with those members more.
line() {
	printf '{%s"runId":"r","agentSeq":1,"ordinal":2,"tool":"x","args":{}}\n' "${1:+$1,}"
}

# refused CODE: of the one line on stdin.
refused() {
	rv_fails 3 rv-key --stream >answer
	grep -q "\"ok\":false,\"error\":{\"code\":\"$1\",\"message\":\"[^\"].*\"},\"line\":1}\$" answer ||
		rv_die "not $1: $(cat answer)"
}

key_of() {
	sed -E 's/.*"idempotencyKey":"([0-9a-f]{64})".*/\1/'
}

@test "which derivation a line is of" {
	one=$(rv-key --derivation 1 --run-id r --agent-seq 1 --ordinal 2 --tool x --args '{}')
	two=$(rv-key --genesis g --run-id r --agent-seq 1 --ordinal 2 --tool x --args '{}')
	rv_equal "$one" "$(line | rv-key --stream | key_of)"
	rv_equal "$one" "$(line '"execKeyDerivation":1' | rv-key --stream | key_of)"
	rv_equal "$two" "$(line '"execKeyDerivation":2,"genesis":"g"' | rv-key --stream | key_of)"
	line '"genesis":"g"' | refused derivation
	line '"genesis":"g","execKeyDerivation":1' | refused derivation
	line '"execKeyDerivation":2' | refused derivation
	line '"execKeyDerivation":3,"genesis":"g"' | refused derivation
	line '"execKeyDerivation":"2","genesis":"g"' | refused derivation
	line '"execKeyDerivation":null' | refused derivation
}

@test "recorded runs: absent is 1, a genesis beside 1 is ignored" {
	one=$(rv-key --derivation 1 --run-id r --agent-seq 1 --ordinal 2 --tool x --args '{}')
	two=$(rv-key --genesis g --run-id r --agent-seq 1 --ordinal 2 --tool x --args '{}')
	rv_equal "$one" "$(line '"genesis":"g"' | rv-key --stream --recorded | key_of)"
	rv_equal "$one" "$(line '"genesis":7,"execKeyDerivation":1' | rv-key --stream --recorded | key_of)"
	rv_equal "$two" "$(line '"genesis":"g","execKeyDerivation":2' | rv-key --stream --recorded | key_of)"
	line '"execKeyDerivation":2' | rv_fails 3 rv-key --stream --recorded
	line '"execKeyDerivation":4' | rv_fails 3 rv-key --stream --recorded
}

@test "the whole answer, byte for byte" {
	want='{"id":"a","idempotencyKey":"'$(rv-key --derivation 1 --run-id r --agent-seq 1 --ordinal 2 --tool x --args '{}')
	want+='","argsHash":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","derivation":1}'
	rv_equal "$want" "$(line '"id":"a"' | rv-key --stream)"
}

@test "an id is any value, given back as it was written" {
	for id in 1 -0.0 12345678901234567890123 null '"\u0041\/\"\\"' '{"b":1,"a":2,"a":3}' '[1.50,"x y"]' '""' '"é\ud800"' false; do
		rv_equal "{\"id\":$id," "$(line "\"id\":$id" | rv-key --stream | sed 's/"idempotencyKey".*//')"
	done
	rv_equal '{"id":{"a":[1,2]},' "$(line '"id" : { "a" : [ 1, 2 ] }' | rv-key --stream | sed 's/"idempotencyKey".*//')"
	rv_equal '{"id":2,"ok"' "$(line '"id":1,"id":2,"agentSeq":-1,"x":0,"genesis":"g"' | rv-key --stream | cut -c1-12)"
}

@test "the last of duplicate members counts, --strict refuses them" {
	rv_equal "$(line | rv-key --stream)" "$(line '"tool":"y","agentSeq":7' | rv-key --stream)"
	line '"tool":"y"' | rv_fails 3 rv-key --stream --strict
}

@test "numbers are what JSON.parse sees" {
	want=$(rv-key --derivation 1 --run-id r --agent-seq 1000 --ordinal 0 --tool x --args '{}')
	for pair in '1e3 0' '1000.0 -0' '10000E-1 0.0'; do
		# shellcheck disable=SC2086 # a pair is two words
		set -- $pair
		rv_equal "$want" "$(printf '{"runId":"r","agentSeq":%s,"ordinal":%s,"tool":"x","args":{}}' "$1" "$2" | rv-key --stream | key_of)"
	done
	for bad in -1 0.5 9007199254740992 1e400 '"1"' null '[]' true; do
		printf '{"runId":"r","agentSeq":%s,"ordinal":0,"tool":"x","args":{}}' "$bad" | refused request
	done
}

@test "missing and mistyped members, lines that are no objects" {
	for member in runId agentSeq ordinal tool args; do
		line | sed "s/\"$member\":/\"other\":/" | refused request
	done
	printf '{"runId":1,"agentSeq":1,"ordinal":2,"tool":"x","args":{}}' | refused request
	printf '{"runId":"r","agentSeq":1,"ordinal":2,"tool":null,"args":{}}' | refused request
	line '"execKeyDerivation":2,"genesis":null' | refused request
	for text in '[]' '1' '"x"' 'null' '{' 'x' '{}{}' $'{}\f' $'"\xff"'; do
		printf '%s\n' "$text" | refused request
	done
	printf '{"runId":"r","agentSeq":1,"ordinal":2,"tool":"x","args":[1e400]}' | refused number
	line '"genesis":"\ud800","execKeyDerivation":2' | rv-key --stream
}

@test "a bad line is named by its number, the rest goes on" {
	{ line; echo; line '"id":3'; echo '{'; printf 'x\0y\n'; line; printf '[]'; } >in
	rv_fails 3 rv-key --stream <in >out
	rv_equal '2 4 5 7' "$(sed -n 's/.*"line":\([0-9]*\)}$/\1/p' out | xargs)"
	[ "$(wc -l <out)" -eq 7 ]
	[ "$(grep -c idempotencyKey out)" -eq 3 ]
}

@test "messages hold no byte of the input" {
	printf '{"a":\x1b]0;pwned\x07}\n' | rv_fails 3 rv-key --stream >out
	rv_fails 1 grep -q pwned out
	rv_fails 1 grep -q "$(printf '\x1b')" out
}

@test "CRLF, a missing last newline, no input at all" {
	want=$(line | rv-key --stream)
	rv_equal "$want" "$(line | sed 's/$/\r/' | rv-key --stream)"
	rv_equal "$want" "$(line | tr -d '\n' | rv-key --stream)"
	rv-key --stream </dev/null >out
	[ ! -s out ]
}

@test "threads give the same answers in the same order" {
	for ((i = 0; i < 20000; i++)); do
		echo "{\"id\":$i,\"runId\":\"r\",\"agentSeq\":$i,\"ordinal\":2,\"tool\":\"x\",\"args\":{\"n\":$i}}"
	done >in
	sed -i '777s/.*/{/; 15000s/$/]/' in
	rv_fails 3 rv-key --stream <in >one
	for threads in 2 3 16; do
		rv_fails 3 rv-key --stream --threads "$threads" <in >many
		cmp one many
		rv_fails 3 rv-key --stream --threads "$threads" < <(cat in) >many
		cmp one many
	done
	rv_equal '777 15000' "$(sed -n 's/.*"line":\([0-9]*\)}$/\1/p' one | xargs)"
}

@test "a coprocess: each line is answered before the next one is written" {
	for threads in 1 2; do
		coproc KEY { rv-key --stream --threads "$threads"; }
		for id in 1 2 3; do
			line "\"id\":$id" >&"${KEY[1]}"
			IFS= read -r -t 20 answer <&"${KEY[0]}"
			rv_equal "{\"id\":$id," "${answer%%\"idem*}"
		done
		pid=$KEY_PID
		eval "exec ${KEY[1]}>&-"
		wait "$pid"
	done
}

@test "a line of 16 MiB, and one 1,000,000 deep, with lines behind them" {
	{
		printf '{"runId":"r","agentSeq":1,"ordinal":2,"tool":"x","args":"'
		head -c 16777216 /dev/zero | tr '\0' a
		printf '\\n"}\n'
		printf '{"runId":"r","agentSeq":1,"ordinal":2,"tool":"x","args":'
		perl -e 'print "[" x 1000000, "]" x 1000000'
		printf '}\n'
		line
	} >in
	for threads in 1 2; do
		rv-key --stream --threads "$threads" <in >out
		[ "$(grep -c idempotencyKey out)" -eq 3 ]
		rv_equal "$(line | rv-key --stream)" "$(tail -n 1 out)"
		rv_equal "$({ printf '"'; head -c 16777216 /dev/zero | tr '\0' a; printf '\\n"'; } | sha256sum | cut -d' ' -f1)" \
			"$(head -n 1 out | sed -E 's/.*"argsHash":"([0-9a-f]*)".*/\1/')"
		rv_equal "$(perl -e 'print "[" x 1000000, "]" x 1000000' | sha256sum | cut -d' ' -f1)" \
			"$(sed -n 2p out | sed -E 's/.*"argsHash":"([0-9a-f]*)".*/\1/')"
	done
}

@test "memory stays bounded on a long stream" {
	rv_need own-memory
	rv_need perl
	perl -e 'print qq({"runId":"r","agentSeq":1,"ordinal":2,"tool":"x","args":{"n":[1,2,3]}}\n) x 300000' >in
	(ulimit -v 65536 && rv-key --stream <in) | tail -n 1 >last
	[ -s last ]
	rv_equal "$(head -n 1 in | rv-key --stream)" "$(cat last)"
}

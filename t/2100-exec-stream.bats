# rv-exec --stream: many requests, one loop.
load helper
load exec

# requests N: N of them, of a tool t, with the keys k1 to kN.
requests() {
	local i

	for ((i = 1; i <= $1; i++)); do
		printf '{"id":%d,"tool":"t","args":{"n":%d},"ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' "$i" "$i" "$i"
	done
}

s() {
	mkdir -p dirs
	rv-exec --stream --workdir-base "$PWD/dirs" "$@"
}

# values PATH: of each reply line of stdin
values() {
	local line

	while read -r line; do printf '%s\n' "$line" | member "$1"; done
}

summary() {
	rv-ledger-scan --format summary "$1" | member "$2"
}

no_workdir() {
	rv_equal '' "$(ls -A dirs)" "workdirs left"
}

@test "each request has its reply, in order, and its two rows" {
	tool slow-first <<-'TOOL'
		#!/bin/sh
		read -r line
		case $line in *'"n":1}'*) until [ -e "$GO" ]; do :; done ;; esac
		case $line in *'"n":4}'*) : >"$GO" ;; esac
		printf '%s' "$line"
	TOOL
	requests 5 | s --jobs 4 --ledger l --setenv "GO=$PWD/go" -- "$PWD/slow-first" >out
	rv_equal $'1\n2\n3\n4\n5' "$(values id <out)"
	rv_equal $'k1\nk2\nk3\nk4\nk5' "$(values result.idempotencyKey <out)"
	rv_equal 5 "$(summary l intents)"
	rv_equal 5 "$(summary l outcomes)"
	rv_equal 0 "$(summary l orphans)"
	no_workdir
}

@test "unordered replies come as their tools end" {
	local line

	tool first-waits <<-'TOOL'
		#!/bin/sh
		read -r line
		case $line in *'"n":1}'*) until [ -e "$GO" ]; do :; done ;; esac
		echo 1
	TOOL
	requests 3 >in
	mkfifo pipe
	s --jobs 3 --unordered --setenv "GO=$PWD/go" -- "$PWD/first-waits" <in >pipe &
	exec 8<pipe
	read -r -t 20 line <&8
	printf '%s\n' "$line" >out
	read -r -t 20 line <&8
	printf '%s\n' "$line" >>out
	: >go
	cat <&8 >>out
	wait $!
	rv_equal $'2\n3' "$(head -n 2 out | values id | sort)"
	rv_equal 1 "$(tail -n 1 out | member id)"
}

@test "a bad line is answered with its number, the rest goes on, exit 3" {
	{
		requests 1
		echo 'no json'
		echo '{"id":"b","tool":"t","args":{},"ctx":{}}'
		echo '{"id":"c","tool":"t","args":{},"executor":"inprocess","ctx":{"runId":"r","idempotencyKey":"k"}}'
		echo '{"id":"d","tool":"t","args":1e999,"ctx":{"runId":"r","idempotencyKey":"k"}}'
		echo ''
		printf '{"id":"e","tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k"}}'
	} >in
	rv_fails 3 s --ledger l -- /bin/cat <in >out
	rv_equal $'1\nabsent\nb\nc\nd\nabsent\ne' "$(values id <out)"
	rv_equal $'absent\nrequest\nrequest\nconfig\nnumber\nrequest\nabsent' "$(values error.code <out)"
	rv_equal $'absent\n2\n3\n4\n5\n6\nabsent' "$(values line <out)"
	rv_equal 2 "$(summary l intents)" 'what is refused has no row'
}

@test "a call that was read and may not run is told as any other, its key too" {
	local want

	echo '{"id":7,"tool":"t","args":{},"executor":"no-such","ctx":{"runId":"r","spanId":"","idempotencyKey":"k"}}' >in
	rv_fails 1 s -- /bin/true <in >out
	want='[7,"t","r","","k","44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",false,"config",1]'
	members() { jq -c '[.id, .tool, .runId, .spanId, .idempotencyKey, .argsHash, .ok, .error.code, .line]' out; }
	rv_equal "$want" "$(members)"
	echo '{"id":7,"tool":"t","args":{},"ctx":{"runId":"r","spanId":"","idempotencyKey":"k"}}' >in
	rv_fails 1 s <in >out
	rv_equal "$want" "$(members)"
	rv_fails 125 x --json --key k --span-id '' --executor subprocess --manifest <(echo '{}') >out 2>stderr
	rv_equal '["t","k",false,"config"]' "$(jq -c '[.tool, .idempotencyKey, .ok, .error.code]' out)"
	# what is wrong itself may have been read in part
	echo '{"id":7,"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k","agentSeq":0,"ordinal":0}}' >in
	rv_fails 3 s -- /bin/true <in >out
	rv_equal '[7,null,null,null,null,null,false,"request",1]' "$(members)"
	# what waits when the caller ends it all
	tool waits <<-TOOL
		#!/bin/sh
		: >"$PWD/begun"
		exec /bin/sleep 60
	TOOL
	requests 3 >in
	s --kill-grace 1s -- "$PWD/waits" < <(cat in; rv_until test -e ended) >out 2>stderr 3>&- &
	rv_until test -e begun
	kill -TERM "$(rv_exec_of $!)"
	wait $! || true
	: >ended
	rv_equal $'k1 aborted\nk2 aborted\nk3 aborted' "$(jq -r '.idempotencyKey + " " + .error.code' out)"
}

@test "a reply that is not ok makes exit 1" {
	requests 2 >in
	rv_fails 1 s -- /bin/false <in >out
	rv_equal $'exit\nexit' "$(values error.code <out)"
}

@test "the request's own command wins, and its arguments follow" {
	echo '{"tool":"t","args":{},"spec":{"command":"/bin/echo","args":["1"]},"ctx":{"runId":"r","idempotencyKey":"k"}}' >in
	rv_equal 1 "$(s -- /bin/false <in | member result)"
	echo '{"tool":"t","args":{},"spec":{"args":["2"]},"ctx":{"runId":"r","idempotencyKey":"k"}}' >in
	rv_equal 2 "$(s -- /bin/echo <in | member result)"
	echo '{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k"}}' >in
	rv_fails 1 s <in >out
	rv_equal config "$(member error.code out)"
}

@test "coordinates give the key that rv-key gives; another key beside them is refused" {
	local key

	key=$(rv-key --run-id r --genesis g --agent-seq 3 --ordinal 4 --tool t --args '{"a":1}')
	echo '{"tool":"t","args":{"a":1},"ctx":{"runId":"r","genesis":"g","execKeyDerivation":2,"agentSeq":3,"ordinal":4}}' >in
	rv_equal "$key" "$(s -- /bin/cat <in | member idempotencyKey)"
	sed "s/\"ordinal\":4/&,\"idempotencyKey\":\"$key\"/" in >agreed
	rv_equal true "$(s -- /bin/cat <agreed | member ok)"
	sed 's/"ordinal":4/&,"idempotencyKey":"other"/' in >differs
	rv_fails 3 s -- /bin/cat <differs >out
	rv_equal request "$(member error.code out)"
}

@test "it works as a co-process: a reply comes before the next request" {
	local line i

	mkfifo in out
	s -- /bin/cat <in >out &
	exec 7>in 8<out
	for i in 1 2 3; do
		requests "$i" | tail -n 1 >&7
		read -r -t 20 line <&8
		rv_equal "$i" "$(printf '%s\n' "$line" | member id)"
	done
	exec 7>&-
	wait $!
}

@test "TERM: what runs is aborted and written down, what waits is answered without rows" {
	tool sleeper <<-'TOOL'
		#!/bin/sh
		echo $$ >>"$STARTED"
		exec sleep 60
	TOOL
	mkfifo in
	mkdir dirs
	rv-exec --stream --workdir-base "$PWD/dirs" --jobs 2 --ledger l --setenv "STARTED=$PWD/started" \
		-- "$PWD/sleeper" <in >out &
	local pid=$!

	exec 7>in
	requests 6 >&7
	: >>started
	rv_until eval '[ "$(wc -l <started 2>/dev/null)" = 2 ]'
	kill -TERM "$pid"
	local status=0
	wait "$pid" || status=$?
	exec 7>&-
	rv_equal 143 "$status"
	rv_equal 6 "$(wc -l <out)"
	rv_equal aborted "$(values error.code <out | sort -u)"
	rv_equal 2 "$(summary l intents)"
	rv_equal 2 "$(summary l outcomes)"
	no_workdir
}

@test "a reader that goes away: everything is written down, death by SIGPIPE" {
	tool sleeper <<-'TOOL'
		#!/bin/sh
		read -r line
		case $line in *'"n":1}'*) head -c 300000 /dev/zero | tr '\0' 1; exit ;; esac
		exec sleep 60
	TOOL
	requests 3 >in
	mkdir -p dirs
	mkfifo pipe
	rv_dies 13 rv-exec --stream --jobs 3 --workdir-base "$PWD/dirs" --ledger l -- "$PWD/sleeper" <in >pipe &
	local pid=$!
	head -c 10 pipe >/dev/null
	wait "$pid"
	rv_equal 3 "$(summary l outcomes)"
	rv_equal 0 "$(summary l orphans)"
	no_workdir
}

@test "SIGKILL with all jobs busy: exactly these are orphans, nothing survives, a rerun has the same keys" {
	tool sleeper <<-'TOOL'
		#!/bin/sh
		: >"$PWD_OF_TEST/started.$RULVAR_IDEMPOTENCY_KEY"
		exec sleep 4321
	TOOL
	requests 8 >in
	mkdir dirs
	rv-exec --stream --workdir-base "$PWD/dirs" --jobs 4 --ledger l --setenv "PWD_OF_TEST=$PWD" \
		-- "$PWD/sleeper" <in >out &
	local pid=$!
	rv_until eval '[ "$(ls started.* 2>/dev/null | wc -l)" = 4 ]'
	kill -KILL "$pid"
	wait "$pid" || :
	rv_until eval '! pgrep -f "^sleep 4321" >/dev/null'
	rv_until eval '[ "$(rv-ledger-scan --format summary l | member running)" = 0 ]'
	rv_equal 4 "$(summary l orphans)"
	rv-ledger-scan l >orphans || :
	rv_equal $'k1\nk2\nk3\nk4' "$(values idempotencyKey <orphans | sort)"
	s --jobs 4 --ledger l -- /bin/cat <in >again
	rv_equal "$(values id <in)" "$(values id <again)"
	rv_equal $'k1\nk2\nk3\nk4\nk5\nk6\nk7\nk8' "$(values idempotencyKey <again)"
}

@test "TERM twice: no further grace, and all is written down" {
	tool deaf <<-'TOOL'
		#!/bin/sh
		trap '' TERM
		echo $$ >>"$STARTED"
		while :; do sleep 0.1; done
	TOOL
	mkfifo in
	mkdir dirs
	rv-exec --stream --workdir-base "$PWD/dirs" --jobs 3 --unordered --kill-grace 60s --ledger l --setenv "STARTED=$PWD/started" \
		-- "$PWD/deaf" <in >out &
	local pid=$! status=0 start

	exec 7>in # and it never ends
	requests 9 >&7
	: >>started
	rv_until eval '[ "$(wc -l <started)" = 3 ]'
	start=$(now_ms)
	kill -TERM "$pid"
	rv_until eval '[ "$(wc -l <out)" -ge 6 ]' # those that wait are answered: the first has been seen
	kill -HUP "$pid"
	wait "$pid" || status=$?
	[ $(($(now_ms) - start)) -lt 20000 ]
	exec 7>&-
	rv_equal 143 "$status" 'it dies of the first'
	rv_equal 9 "$(wc -l <out)"
	rv_equal aborted "$(values error.code <out | sort -u)"
	rv_equal 3 "$(summary l outcomes)"
	rv_equal 0 "$(summary l orphans)"
	no_workdir
}

@test "a reader that stops: what runs is ended and written down, and TERM is not held up" {
	tool fat <<-'TOOL'
		#!/bin/sh
		head -c 300000 /dev/zero | tr '\0' 1
	TOOL
	requests 200 >in # which are all read at once
	mkdir dirs
	mkfifo pipe
	rv-exec --stream --workdir-base "$PWD/dirs" --jobs 2 --ledger l -- "$PWD/fat" <in >pipe &
	local pid=$! status=0

	exec 8<pipe
	head -c 10 <&8 >/dev/null
	# It stops beginning new ones once what waits for its reader is some megabytes.
	rv_until eval '[ "$(summary l outcomes)" -ge 8 ]'
	rv_until eval 'before=$(summary l outcomes); sleep 1; [ "$(summary l outcomes)" -eq "$before" ]'
	kill -TERM "$pid"
	within 6000 wait "$pid" || status=$?
	exec 8<&-
	rv_equal 143 "$status"
	rv_equal 0 "$(summary l orphans)"
	rv_equal "$(summary l intents)" "$(summary l outcomes)"
	[ "$(summary l intents)" -lt 40 ]
	no_workdir
}

@test "64 MiB of a line, then an ordinary one" {
	{
		printf '{"id":1,"tool":"t","args":"'
		head -c 67108864 /dev/zero | tr '\0' x
		printf '","ctx":{"runId":"r","idempotencyKey":"a"}}\n'
		requests 1
	} >in
	s -- /bin/true <in >out
	rv_equal $'true\ntrue' "$(values ok <out)"
}

@test "a full disk under the replies is exit 5, and every outcome is written" {
	rv_need full
	requests 3 >in
	rv_fails 5 s --ledger l -- /bin/cat <in >/dev/full
	rv_equal 0 "$(summary l orphans)"
	no_workdir
}

@test "options of one call are refused beside --stream" {
	rv_fails 2 rv-exec --stream --tool t -- /bin/true </dev/null
	rv_fails 2 rv-exec --stream --key k -- /bin/true </dev/null
	rv_fails 2 rv-exec --jobs 2 --tool t -- /bin/true </dev/null
	rv_equal '' "$(rv-exec --stream -- /bin/true </dev/null)"
}

@test "a slot whose workdir is slow to go takes the next request when it has gone, and not at the end of the input" {
	# What an undumpable process does, an ordinary user's strace does not see.
	rv_need strace root
	tool leaves <<-TOOL
		#!/bin/sh
		: >left
		echo 1
	TOOL
	mkfifo in
	mkdir -p dirs
	strace -f -o trace -e trace=unlinkat -e inject=unlinkat:delay_enter=1500000 \
		rv-exec --stream --workdir-base "$PWD/dirs" -- "$PWD/leaves" <in >replies 2>said 3>&- &
	exec 9>in
	requests 2 >&9
	rv_until eval '[ "$(wc -l <replies)" -eq 2 ]'
	exec 9>&-
	wait $!
	grep -q 'still being removed' said
	grep -q 'DELAYED' trace
	no_workdir
}

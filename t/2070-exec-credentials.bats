# rv-exec: credentials are minted afresh, arrive, and are nowhere else.
load helper
load exec

setup() {
	mark=mint-$BATS_TEST_NUMBER-$$-$RANDOM
	tool show <<-'TOOL'
		#!/bin/sh
		printf '"%s"' "$TOKEN"
	TOOL
	tool mark <<-TOOL
		#!/bin/sh
		: >"$PWD/ran"
		echo 1
	TOOL
}

# mints SCRIPT: the minting program.
mints() {
	printf '#!/bin/bash\n%s\n' "$1" >mint
	chmod 755 mint
}

# refused [OPTION...]: config, an outcome row "error" without a status, and the tool did not run.
refused() {
	rm -f ledger
	rv_fails 125 within 8000 x --json --new-call --ledger ledger --credentials "$PWD/mint" "$@" -- "$PWD/mark" >reply 2>stderr || return
	holds "$NOTHING_RAN" 'code == "config" and reply["outcome"] == "error" and reply["exitCode"] is reply["signal"] is None' || return
	[ ! -e ran ] || rv_die "the tool ran" || return
	if grep -q geheim reply stderr ledger; then
		rv_die "a value is shown" || return
	fi
	no_workdir
}

@test "one that kills the worker it runs under is config, and what it may have left is not told as nothing" {
	mints 'kill -9 $PPID; exec sleep 30'
	refused
	holds 'reply["survivors"] is None'
	mints 'echo {}'
	x --json --credentials "$PWD/mint" -- "$PWD/mark" >reply
	holds 'reply["survivors"] == 0'
}

@test "they arrive, minted for each call, in rv-exec's own environment and directory" {
	mints 'cat >"$OUT/request"; pwd >"$OUT/where"; echo x >>"$OUT/minted"; printf "{\"TOKEN\":\"%s\"}" "$HOST_VARIABLE"'
	export HOST_VARIABLE=geheim OUT=$PWD
	for i in 1 2; do
		rv_equal '"geheim"' "$(x --key K --span-id S --agent-type clerk --args '{"b":1,"a":2}' --credentials "$PWD/mint" -- "$PWD/show")"
	done
	rv_equal 2 "$(wc -l <minted)"
	rv_equal "$PWD" "$(cat where)"
	rv_equal 't K S clerk {"a":2,"b":1} subprocess' \
		"$(member tool <request) $(member ctx.idempotencyKey <request) $(member ctx.spanId <request) $(member ctx.agentType <request) $(member args <request) $(member executor <request)"
	rv_equal 1 "$(wc -l <request)"
}

@test "words with quotes, and no shell" {
	mints 'printf "{\"TOKEN\":\"%s\"}" "$2"'
	rv_equal '"a $HOME *"' "$(x --credentials "'$PWD/mint' one 'a \$HOME *'" -- "$PWD/show")"
	fails config 125 x --credentials "'$PWD/mint" -- "$PWD/mark"
	fails config 125 x --credentials '  ' -- "$PWD/mark"
	fails config 125 x --credentials /no/such/program -- "$PWD/mark" || {
		grep -q '^rv-exec: config' stderr
	}
	[ ! -e ran ]
}

@test "a program that hangs, is deaf, or stops itself" {
	mints 'sleep 60'
	refused --credentials-timeout 300ms --setenv RV_MARK="$mark"
	mints 'trap "" TERM; sleep 60; sleep 60'
	refused --credentials-timeout 300ms
	mints 'kill -STOP $$'
	refused --credentials-timeout 300ms
}

@test "a program that leaves a daemon behind is answered at once, and the daemon is gone" {
	export RV_MARK=$mark
	mints 'setsid sleep 60 & (sleep 60 &) ; echo "{\"TOKEN\":\"t\"}"'
	rv_equal '"t"' "$(within 4000 x --credentials "$PWD/mint" -- "$PWD/show")"
	unset RV_MARK
	none_alive "$mark"
}

@test "rubbish of every kind" {
	for output in '' 'geheim' '{"TOKEN":"geheim"' '["geheim"]' '"geheim"' 'null' '{"TOKEN":1}' '{"TOKEN":{"a":"geheim"}}' \
		'{"TOKEN":"geheim"} {}' '{"":"geheim"}' '{"A=B":"geheim"}' '{"TOKEN":"geheim\u0000"}' '{"A\u0000":"geheim"}'; do
		printf '%s' "$output" >output
		mints "cat '$PWD/output'"
		refused
	done
	printf '{"TOKEN":"geheim\xff"}' >output
	refused
	mints 'yes geheim'
	refused
}

@test "one that prints a value and fails" {
	mints 'echo "{\"TOKEN\":\"geheim\"}"; exit 3'
	refused
	mints 'echo "{\"TOKEN\":\"geheim\"}"; kill -9 $$'
	refused
	mints ''
	printf '#!/no/such/interpreter\n' >mint
	refused
}

@test "a value that the tool repeats in its failure is the tool's own doing, but a failed exec names none" {
	mints 'echo "{\"TOKEN\":\"geheim\"}"'
	rm -f ledger
	rv_fails 127 x --json --new-call --ledger ledger --credentials "$PWD/mint" -- /no/such/program >reply 2>stderr
	rv_fails 1 grep -q geheim reply stderr ledger
	rv_equal spawn "$(member error.code <reply)"
}

# What an ordinary user sees of that same user's rv-exec.
@test "values are in the tool's environment and nowhere else" {
	rv_need user
	dir=$(rv_user_dir)
	cp /bin/cat show "$dir/"
	cat >"$dir/mint" <<-'TOOL'
		#!/bin/sh
		echo '{"TOKEN":"geheim"}'
	TOOL
	cat >"$dir/held" <<-'TOOL'
		#!/bin/sh
		printf '"%s %s"' "$TOKEN" "$PASSED"
		echo ready >"$READY"
		read -r _ <"$GO"
	TOOL
	cat >"$dir/look" <<-'TOOL'
		#!/bin/bash
		mkfifo go ready
		PASSED=geheim ./bin/rv-exec --json --tool t --workdir-base . --new-call --ledger ledger --credentials "$PWD/mint" \
			--allow-env PASSED --setenv READY="$PWD/ready" --setenv GO="$PWD/go" -- "$PWD/held" >reply 2>stderr &
		program=$!
		read -r _ <ready
		workers=$(cat "/proc/$program/task/$program/children")
		for pid in $program $workers; do
			for file in environ mem maps fd; do
				{ cat "/proc/$pid/$file" || ls "/proc/$pid/$file"/; } >/dev/null 2>&1 && echo "readable: $pid $file"
			done
		done
		grep -lsa geheim /proc/[0-9]*/cmdline
		grep -sa geheim ledger stderr
		echo "workers: $(echo $workers | wc -w)"
		echo go >go
		wait $program
	TOOL
	chmod 755 "$dir"/{mint,held,look,show}
	[ "$(id -u)" -ne 0 ] || chown -R "$RV_USER" "$dir"
	cd "$dir"
	rv_equal 'workers: 2' "$(rv_as_user ./look)"
	rv_equal 'geheim geheim' "$(member result <reply)"
	rv_fails 1 grep -q geheim ledger stderr
}

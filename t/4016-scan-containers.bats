# Writers in containers of their own, with one ledger mounted into each: alive is running, killed is an orphan.
load helper
load exec
load container

setup() {
	can_container
	rv_need jq
	mkdir shared
	names=()
}

teardown() {
	touch shared/stop.a shared/stop.b 2>/dev/null || true
	[ ${#names[@]} -eq 0 ] || $ENGINE rm -f "${names[@]}" >/dev/null 2>&1 || true
}

# box NAME COMMAND...: in a container that has this build's programs, and ./shared as /shared.
box() {
	local name=rv-ledger-$$-$BATS_TEST_NUMBER-$1 flags=()

	shift
	for flag in "${ENGINE_ARGS[@]}"; do
		[ "$flag" = --engine-arg ] || flags+=("$flag")
	done
	$ENGINE run --rm --name "$name" --network none --pull never "${flags[@]}" -v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro \
		-v "$RV_BIN:/rv:ro" -v "$PWD/shared:/shared" "$IMAGE" "$@"
}

# start KEY: an attempt that ends when shared/stop.KEY is there.
start() {
	names+=("rv-ledger-$$-$BATS_TEST_NUMBER-$1")
	box "$1" /rv/rv-exec --tool t --key "$1" --ledger /shared/l.jsonl --workdir-base /tmp -- \
		/bin/sh -c "until [ -e /shared/stop.$1 ]; do sleep 0.1; done; echo 1" >"out.$1" 2>"err.$1" 3>&- &
	echo $! >"pid.$1"
	rv_until grep -qs "\"idempotencyKey\":\"$1\"" shared/l.jsonl || rv_die "$(cat "err.$1")"
}

# seen WANT SCAN...: what this scan says.
seen() {
	local want=$1

	shift
	"$@" >orphans || [ $? -eq 1 ] || return
	rv_equal "$want" "$(jq -r '.idempotencyKey + " " + .state' orphans | sort | paste -s -d ' ')" "$*"
}

@test "in two containers, each of them pid 1: alive is running, killed is an orphan" {
	start a
	start b
	rv_equal '1 1' "$(jq -r 'select(.phase == "intent") | .writer.pid' shared/l.jsonl | paste -s -d ' ')"
	rv_equal 2 "$(jq -r 'select(.phase == "intent") | .writer.host' shared/l.jsonl | sort -u | wc -l)"
	seen 'a running b running' rv-ledger-scan shared/l.jsonl
	$ENGINE kill --signal KILL "${names[0]}" >/dev/null
	wait "$(cat pid.a)" || true
	seen 'a orphan b running' rv-ledger-scan shared/l.jsonl
	seen 'a orphan b running' box scan /rv/rv-ledger-scan /shared/l.jsonl # from one more, pid 1 as well
	touch shared/stop.b
	wait "$(cat pid.b)"
	rv_equal 1 "$(cat out.b)"
	seen 'a orphan' rv-ledger-scan shared/l.jsonl
}

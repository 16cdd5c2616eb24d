# rv-exec --approvals: a tool that needs an approval runs by one of its run, tool and arguments.
load helper
load exec

EMPTY=44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a # the argsHash of {}

setup() {
	mkdir dirs
	printf '{"pay":{"command":"/bin/true","needsApproval":true},"look":{"command":"/bin/true"}}' >m
}

# approval RUN TOOL [HASH [DECISION]]
approval() {
	printf '{"runId":"%s","tool":"%s","argsHash":"%s"%s}\n' "$1" "$2" "${3:-$EMPTY}" "${4:+,\"decision\":\"$4\"}"
}

one() {
	rv-exec --workdir-base "$PWD/dirs" --manifest m --ledger ledger --key "k$RANDOM" "$@"
}

# of_run RUN: as `one`, in that run: an approval is of a run.
of_run() {
	local run=$1

	shift
	rv-exec --workdir-base "$PWD/dirs" --manifest m --ledger ledger --run-id "$run" --genesis g --ordinal 1 "$@"
}

request() {
	printf '{"id":"%s","tool":"%s","args":{},"ctx":{"runId":"%s","idempotencyKey":"k-%s"}}\n' "$3" "$1" "$2" "$3"
}

nothing_ran() {
	[ ! -s ledger ] || rv_die 'a row was written'
	no_workdir
}

@test "without the option, and without the row: config before the intent" {
	fails config 125 of_run r --tool pay
	nothing_ran
	{
		approval other pay
		approval r look
		approval r pay "${EMPTY/4/5}"
	} >a
	fails config 125 of_run r --approvals a --tool pay
	grep -q "argsHash $EMPTY" stderr
	nothing_ran
	rv_equal null "$(of_run r --approvals a --tool look)"
	approval r pay >>a
	rv_equal null "$(of_run r --approvals a --tool pay)"
	rv_equal 2 "$(count ledger 'r["phase"] == "outcome"')"
	# other arguments are another call
	fails config 125 of_run r --approvals a --tool pay --args '{"n":1}'
}

@test "the last row of a call counts, and only \"approved\" authorises" {
	approval r pay >a
	approval r pay '' denied >>a
	fails config 125 of_run r --approvals a --tool pay
	approval r pay '' approved >>a
	rv_equal null "$(of_run r --approvals a --tool pay)"
	approval r pay '' Approved >>a
	fails config 125 of_run r --approvals a --tool pay
}

@test "a bad file is exit 3, and nothing runs" {
	local bad

	for bad in 'no json' '[]' '{"runId":"r","tool":"pay"}' '{"runId":"r","tool":"pay","argsHash":7}' $'\xff' '{"runId":"r","tool":"pa'; do
		{ approval r pay; printf '%s' "$bad"; } >a
		rv_fails 3 of_run r --approvals a --tool pay >stdout 2>stderr || rv_die "$bad"
		rv_fails 3 rv-ledger-scan --approvals a /dev/null >stdout 2>stderr
	done
	rv_fails 5 of_run r --approvals no-such --tool pay 2>stderr
	rv_fails 3 of_run r --approvals /dev/null --tool pay 2>stderr
	rv_fails 2 rv-exec --approvals a --tool pay -- /bin/true 2>stderr
	nothing_ran
}

# ask TOOL RUN ID: one request to the stream of start_stream, and its reply's code or "ok".
ask() {
	local line

	request "$@" >&7
	read -r -t 20 line <&8
	case $line in
	*'"ok":true'*) echo ok ;;
	*) member error.code <<<"$line" ;;
	esac
}

start_stream() {
	mkfifo in out
	rv-exec --stream --jobs 4 --workdir-base "$PWD/dirs" --manifest m --approvals a --ledger ledger <in >out 2>stream.err &
	exec 7>in 8<out
}

@test "while a stream runs: appended, withdrawn, replaced, torn, gone and back" {
	approval r1 pay >a
	touch -d '1 hour ago' a
	start_stream
	rv_equal ok "$(ask pay r1 1)"
	rv_equal config "$(ask pay r2 2)"
	approval r2 pay >>a
	rv_equal ok "$(ask pay r2 3)"
	approval r2 pay '' withdrawn >>a
	rv_equal config "$(ask pay r2 4)"
	# the same size, in place, within one tick of the clock
	approval r3 pay >a
	rv_equal ok "$(ask pay r3 5)"
	approval r4 pay >a
	rv_equal 'config ok' "$(ask pay r3 6) $(ask pay r4 7)"
	# another file under the name
	approval r5 pay >b && mv b a
	rv_equal 'config ok' "$(ask pay r4 8) $(ask pay r5 9)"
	# a last line that is being written: nothing counts, until it is whole
	printf '{"runId":"r6","tool":"pay",' >>a
	rv_equal 'request request ok' "$(ask pay r5 10) $(ask pay r6 11) $(ask look r5 12)"
	printf '"argsHash":"%s"}\n' "$EMPTY" >>a
	rv_equal 'ok ok' "$(ask pay r6 13) $(ask pay r5 14)"
	rm a
	rv_equal 'config ok' "$(ask pay r5 15) $(ask look r5 16)"
	approval r5 pay >a
	rv_equal ok "$(ask pay r5 17)"
	exec 7>&-
	rv_fails 3 wait $!
	rv_equal 10 "$(count ledger 'r["phase"] == "intent"')"
	rv_equal 10 "$(count ledger 'r["outcome"] == "ok" if r["phase"] == "outcome" else False')"
	no_workdir
}

@test "rv-ledger-scan agrees about what was authorised" {
	approval r1 pay >a
	approval r2 pay '' denied >>a
	approval r1 look >>a
	start_stream
	for n in 1 2 3; do rv_equal ok "$(ask pay r1 $n)"; done
	rv_equal config "$(ask pay r2 4)"
	rv_equal ok "$(ask look r1 5)"
	exec 7>&-
	rv_fails 1 wait $!
	rv-ledger-scan --approvals a ledger >found
	rv_equal $'3\n1' "$(while read -r line; do member attempts <<<"$line"; done <found)"
	# What ran by no approval at all is what the scan calls unapproved.
	one --approvals a --tool look >out
	rv_fails 1 rv-ledger-scan --approvals a ledger >found
	rv_equal 1 "$(grep -c '"kind":"unapproved"' found)"
}

@test "an approval is of a run's id and tool as JSON has them" {
	printf '{"p\\u0061y \\ud83d\\ude00":{"command":"/bin/true","needsApproval":true}}' >m
	printf '{"runId":"r\\u002f\\"","tool":"pay 😀","argsHash":"%s"}\n' "$EMPTY" >a
	rv_equal null "$(of_run 'r/"' --approvals a --tool 'pay 😀')"
	fails config 125 of_run 'r/' --approvals a --tool 'pay 😀'
}

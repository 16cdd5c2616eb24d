# rv-key where the system fails: said, exit 5, and never a crash or a smaller answer.
load helper

invocation='{"runId":"r","agentSeq":1,"ordinal":2,"tool":"x","args":{}}'

@test "a full disk under stdout is exit 5 in every form" {
	rv_need full
	rv_fails 5 rv-key --run-id r --genesis g --agent-seq 1 --ordinal 2 --tool x --args 1 >/dev/full 2>err
	grep -q '^rv-key: standard output: ' err
	echo 1 | rv_fails 5 rv-key --canonical >/dev/full
	echo 1 | rv_fails 5 rv-key --args-hash >/dev/full
	rv_fails 5 rv-key --help >/dev/full
	rv_fails 5 rv-key --stream <<<"$invocation" >/dev/full
	rv_fails 5 rv-key --stream --threads 4 <<<"$invocation" >/dev/full
}

@test "a full disk ends a stream whose writer goes on waiting" {
	rv_need full
	for threads in 1 3; do
		mkfifo "pipe$threads"
		rv-key --stream --threads "$threads" <"pipe$threads" >/dev/full 2>/dev/null &
		pid=$!
		exec 5>"pipe$threads"
		echo "$invocation" >&5
		status=0
		# with the pipe still open: a reader in the middle of its wait must not keep the rest
		wait "$pid" || status=$?
		exec 5>&-
		rv_equal 5 "$status"
	done
}

@test "closed descriptors: no answer goes astray" {
	rv_fails 5 rv-key --stream <&-
	rv_fails 5 rv-key --canonical <&-
	rv_fails 5 rv-key --stream <<<"$invocation" >&-
	echo 1 >in
	rv_fails 5 rv-key --canonical in >&-
	rv-key --canonical in 2>&-
	rv_fails 3 rv-key --stream <<<'{' 2>&-
}

@test "a closed pipe ends it quietly" {
	rv_need perl
	perl -e "print qq($invocation\n) x 200000" >in
	for threads in 1 2; do
		{ rv_dies 13 rv-key --stream --threads "$threads" <in 2>err || echo wrong >wrong; } | head -n 1 >first
		[ ! -e wrong ]
		[ ! -s err ]
		[ "$(wc -l <first)" -eq 1 ]
	done
}

@test "a read that fails is exit 5, what came before is answered" {
	rv_need strace
	printf '%s\n%s\n' "$invocation" "$invocation" >in
	rv_fails 5 rv-key --stream <.
	rv_fails 5 rv-key --stream --threads 2 <.
	# which read of the process it is that fails is the loader's affair: each in turn
	seen=
	for n in 1 2 3 4 5 6; do
		status=0
		strace -o /dev/null -P "$PWD/in" -e trace=read -e inject=read:error=EIO:when=$n rv-key --stream <in >out 2>err || status=$?
		case $status in
		0 | 127) ;; # none of ours
		5) seen+=$(wc -l <out),$(grep -c 'standard input: read: ' err)' ' ;;
		*) rv_die "status $status" ;;
		esac
	done
	# first ours, with nothing answered; then the one behind both lines
	rv_equal '0,1 2,1 ' "$seen"
}

@test "interrupted and short calls change nothing" {
	rv_need strace
	for _ in 1 2 3 4 5; do echo "$invocation"; done >in
	rv-key --stream <in >want
	strace -o /dev/null -P "$PWD/in" -e trace=read -e inject=read:error=EINTR:when=4+2 rv-key --stream <in >got
	cmp want got
	strace -o /dev/null -P "$PWD/got" -e trace=write -e inject=write:error=EINTR:when=1+2 rv-key --stream <in >got
	cmp want got
}

@test "too little memory is said, at every limit" {
	rv_need own-memory
	rv_need perl
	{
		perl -e 'print "{\"runId\":\"r\",\"agentSeq\":1,\"ordinal\":2,\"tool\":\"x\",\"args\":", "[" x 300000, "\"", "\\n" x 300000, "\"", "]" x 300000, "}\n"'
		echo "$invocation"
	} >in
	rv-key --stream <in >want
	[ "$(wc -l <want)" -eq 2 ]
	refusals=0
	for ((limit = 10000; limit < 120000; limit += 2500)); do
		status=0
		(ulimit -v "$limit" && exec rv-key --stream <in >got 2>err) || status=$?
		case $status in
		0) cmp want got ;;
		5)
			grep -q '^rv-key: .*out of memory' err
			refusals=$((refusals + 1))
			;;
		127) ;; # not even the loader had room
		*) rv_die "status $status at a limit of $limit KiB: $(cat err)" ;;
		esac
	done
	[ "$refusals" -gt 3 ]
	rv_equal 0 "$status"
}

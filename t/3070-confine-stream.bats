# rv-confine --stream: many requests, in order or not; verification by identity, withdrawn results.
load helper
load confine

setup() {
	script main.sh <<<'while read -r l; do echo "$l"; done <data'
	mkdir -p in root
	chmod 700 root
	echo data >in/data
	pins_for "$SH" linux/1
}

stream() {
	rv-confine --stream --root "$PWD/root" "$@" >result 2>stderr
}

@test "one answer a line, in order, whatever the jobs; a bad line is answered and the rest goes on" {
	for i in 1 2 3 4 5 6 7 8; do
		case $i in
		3) echo '{' ;;
		6) request "del(.input) | .id = $i" ;;
		*) request ".id = $i" ;;
		esac
	done >requests
	for jobs in 1 4; do
		rv_fails 2 stream --jobs $jobs <requests
		holds 'len(results) == 8' '[q.get("id") for q in results] == [1, 2, None, 4, 5, 6, 7, 8]' \
			'[q["line"] for q in results if "line" in q] == [3, 6]' \
			'[q["attributable"] for q in results if "status" in q] == [True] * 6'
	done
	rv_fails 2 stream --jobs 4 --unordered <requests
	holds 'sorted(str(q.get("id")) for q in results) == sorted(map(str, [1, 2, None, 4, 5, 6, 7, 8]))'
	root_is_empty
}

@test "the exit status is the worst line's; nothing at all is 0" {
	stream </dev/null
	rv_equal '' "$(cat result)"
	{ request; request ".profile.digest = .runtime.digest"; } >requests
	rv_fails 3 stream <requests
	holds '[q["status"] for q in results] == ["observed", "not-started"]'
	printf '%s' "$(request)" | stream # the last line may lack its newline
	holds "$GOOD"
}

@test "more jobs than slots is usage; as many is fine, and each has its own" {
	rv_fails 2 rv-confine --stream --root "$PWD/root" --jobs 3 --max-retained 2 </dev/null
	for i in 1 2 3 4 5 6; do request ".id = $i"; done >requests
	stream --jobs 2 --max-retained 2 <requests
	holds 'all(q["attributable"] for q in results) and len(results) == 6'
}

@test "a cancellation stops what runs, answers what was read, and leaves nothing" {
	script main.sh <<<'while :; do :; done'
	pins_for "$SH" linux/1
	on_event admitted <<<'kill -TERM $PPID'
	for i in 1 2 3; do request ".id = $i"; done >requests
	status=0
	stream --on-event "$PWD/hook" <requests || status=$?
	holds 'results[0]["process"]["stopped"] == "cancelled" and results[0]["attributable"]' \
		'[q["reason"] for q in results[1:]] == ["aborted", "aborted"]'
	rv_equal 3 "$status"
	root_is_empty
}

@test "--verify identity: hashed once, looked at around each run" {
	cp "$SH" rt
	pins_for "$PWD/rt" linux/1
	for i in 1 2 3; do request ".id = $i | .runtime.path = \"$PWD/rt\""; done >requests
	stream --verify identity <requests
	holds 'all(q["attributable"] and q["identities"]["runtime"]["verified"] == "identity" for q in results) and len(results) == 3'
	rv_need strace
	# Hashing reads by 32 KiB.
	strace -f -e trace=read -o trace rv-confine --stream --verify identity --root "$PWD/root" <requests >result 2>stderr
	identity=$(grep -c ', 32768)' trace)
	strace -f -e trace=read -o trace rv-confine --stream --root "$PWD/root" <requests >result 2>stderr
	[ $((2 * identity)) -lt "$(grep -c ', 32768)' trace)" ]
}

@test "--verify identity: a runtime that changes during the stream is seen; its earlier runs are withdrawn, exit 4" {
	cp "$SH" rt
	pins_for "$PWD/rt" linux/1
	for i in 1 2; do request ".id = \"run-$i\" | .runtime.path = \"$PWD/rt\""; done >requests
	cat >hook <<EOT
#!/bin/bash
read -r line
case \$line in *'"collected"'*) ;; *) exit 0 ;; esac
[ -e $PWD/first ] || { : >$PWD/first; exit 0; }
printf x >>$PWD/rt
EOT
	chmod 755 hook
	rv_fails 4 stream --verify identity --on-event "$PWD/hook" <requests
	holds 'results[0]["attributable"] and not results[1]["attributable"]' \
		'results[-1] == {"withdrawn": ["run-1"], "reason": "runtime changed"}'
}

@test "a reader that goes away ends it, and nothing is left" {
	for i in 1 2 3 4 5 6 7 8; do request ".id = $i"; done >requests
	{ rv-confine --stream --root "$PWD/root" <requests 2>stderr || :; } | head -n 1 >/dev/null
	root_is_empty
}

@test "--verify identity: a stream that comes to a bad end takes back what a changed runtime did, too" {
	cp "$SH" rt
	pins_for "$PWD/rt" linux/1
	request ".id = \"run-1\" | .runtime.path = \"$PWD/rt\"" >requests
	# One line, its answer; the runtime gets another byte; then reading fails, since the connection is reset.
	cat >drive.py <<'EOT'
import mmap, os, socket, struct, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
there = socket.create_connection(listener.getsockname())
here, _ = listener.accept()
stream = subprocess.Popen(["rv-confine", "--stream", "--verify", "identity", "--root", sys.argv[1]], stdin=here, stdout=subprocess.PIPE)
here.close()
there.sendall(open("requests", "rb").read())
sys.stdout.buffer.write(stream.stdout.readline())
file = os.open("rt", os.O_RDWR)
with mmap.mmap(file, 0) as image:
    image[-1] ^= 1
there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
there.close()
sys.stdout.buffer.write(stream.stdout.read())
sys.stdout.flush()
sys.exit(stream.wait())
EOT
	status=0
	/usr/bin/python3 -I drive.py "$PWD/root" >result 2>stderr || status=$?
	rv_equal 5 "$status"
	grep -q 'standard input' stderr
	holds 'results[0]["attributable"]' 'results[1:] == [{"withdrawn": ["run-1"], "reason": "runtime changed"}]'
}

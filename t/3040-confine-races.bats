# rv-confine: faults at known instants, by --on-event.
load helper
load confine

setup() {
	mkdir -p prog in root
	chmod 700 root
	script main.sh <<<'echo ran'
}

@test "the events, in their order, each a line with its members" {
	printf '#!/bin/sh\ncat >>%s/events\n' "$PWD" >log
	chmod 755 log
	run_sh main.sh --on-event "$PWD/log"
	holds "$GOOD"
	rv_equal $'counted\nmaterialised\nlaunched\nadmitted\ncollected' "$(jq -r .event events)"
	jq -se 'map(select(.event == "launched")) | length == 1 and (.[0].profile | fromjson | type == "object") and .[0].pid > 1' events
	rv_equal "$(jq -r .identities.profile.instantiated result)" \
		"sha256:$(jq -j 'select(.event == "launched") | .profile' events | sha256sum | cut -c-64)"
}

@test "an event's program that fails, is missing or hangs changes no result; it is ended within the run's deadline" {
	run_sh main.sh --on-event false
	holds "$GOOD"
	run_sh main.sh --on-event /nowhere
	holds "$GOOD"
	grep -q 'cannot be run' stderr
	on_event admitted <<<'exec sleep 60'
	run_sh main.sh --timeout 1s --on-event "$PWD/hook"
	holds 'r["status"] == "observed"' 'p["durationMs"] < 8000'
	grep -q 'took too long' stderr
}

@test "cancelled between materialising and the launch: aborted, and the slot is removed" {
	on_event materialised <<<'kill -TERM $PPID'
	run_sh main.sh --on-event "$PWD/hook"
	rv_equal 3 "$status"
	holds 'r["reason"] == "aborted" and r["namespace"] == {"state": "removed", "durable": True}'
	root_is_empty
}

@test "cancelled while it runs: a fact, and attributable" {
	script main.sh <<<'echo begun; while :; do :; done'
	on_event admitted <<<'kill -INT $PPID'
	status=0 # whoever started the tests may ignore it: a shell's background job
	env --default-signal=INT rv-confine --root "$PWD/root" --runtime "$SH" --program prog --input in --entry main.sh --unpinned \
		--on-event "$PWD/hook" >result 2>stderr || status=$?
	rv_equal 0 "$status"
	holds "$GOOD" 'p["stopped"] == "cancelled"'
}

@test "the runtime is replaced between its check and the launch: another file at its path is not executed" {
	cp "$SH" rt
	printf '#!/bin/sh\n' >other
	cp /bin/cat other
	on_event materialised <<<"cp $PWD/other $PWD/rt.new && chmod 755 $PWD/rt.new && mv $PWD/rt.new $PWD/rt"
	status=0
	confine --runtime "$PWD/rt" --entry main.sh --on-event "$PWD/hook" >result 2>stderr || status=$?
	rv_equal 1 "$status"
	holds 'r["status"] == "observed" and not r["attributable"]' 'p["admission"] == "refused"' 'out == b""' \
		'any(t.startswith("runtime changed") for t in r["problems"])' 'p["exit"]["code"] == 125'
}

@test "the runtime is replaced, or a hard link is added, while the program runs: what ran is not credited" {
	script main.sh <<<'echo ran; while read -r l; do echo "$l"; done'
	cp "$SH" rt
	on_event admitted <<<"cp /bin/cat $PWD/rt.new && mv $PWD/rt.new $PWD/rt"
	status=0
	confine --runtime "$PWD/rt" --entry main.sh --on-event "$PWD/hook" >result 2>stderr || status=$?
	rv_equal 1 "$status"
	holds 'p["admission"] == "admitted"' 'out == b"ran\n"' 'len(r["problems"]) == 1 and r["problems"][0].startswith("runtime changed")' \
		'r["namespace"]["state"] == "removed"'
	on_event admitted <<<"ln \$namespace/program/main.sh $PWD/hard"
	run_sh main.sh --on-event "$PWD/hook"
	rv_equal 1 "$status"
	holds 'r["problems"][0].startswith("namespace changed") and "another link" in r["problems"][0]' 'r["namespace"]["state"] == "quarantined"'
}

@test "a file of the closure is removed before the launch, and after it" {
	rv_need gcc
	mkdir lib
	echo 'int one(void){return 1;}' | gcc -x c -shared -fPIC -o lib/libone.so -Wl,-soname,libone.so -
	echo 'int main(void){return 0;}' | gcc -x c -o rt - -Wl,--no-as-needed -Llib -lone "-Wl,-rpath,$PWD/lib"
	for event in materialised collected; do
		cp lib/libone.so kept
		on_event $event <<<"rm $PWD/lib/libone.so"
		status=0
		confine --runtime "$PWD/rt" --entry main.sh --on-event "$PWD/hook" >result 2>stderr || status=$?
		rv_equal 1 "$status" "$event"
		holds 'not r["attributable"]' 'any(t.startswith("runtime changed") for t in r["problems"])'
		[ $event = collected ] || holds 'p["admission"] == "refused"'
		mv kept lib/libone.so
	done
}

@test "the program is killed from outside: its signal is the result, and nothing else changes" {
	script main.sh <<<'echo begun; while :; do :; done'
	on_event admitted <<<'kill -USR1 $(cat /proc/$pid/task/$pid/children)'
	[ "$(id -u)" -eq 0 ] || skip "an ordinary user may be refused"
	run_sh main.sh --on-event "$PWD/hook"
	holds "$GOOD" 'p["exit"] == {"code": None, "signal": "SIGUSR1"}' 'p["stopped"] is None'
}

@test "init is killed from outside: all of it is gone, and its exit is SIGKILL" {
	script main.sh <<<'echo begun; while :; do :; done'
	on_event admitted <<<'kill -KILL $pid'
	run_sh main.sh --on-event "$PWD/hook"
	holds 'r["status"] == "observed" and p["exit"] == {"code": None, "signal": "SIGKILL"} and not p["killSent"]'
}

@test "SIGKILL of the host takes the sandbox along; the slot stays, counts, and is never reclaimed" {
	script main.sh <<<'while :; do :; done'
	on_event admitted <<<"cat /proc/\$pid/task/\$pid/children >$PWD/child; echo \$pid >$PWD/init; kill -KILL \$PPID"
	confine --runtime "$SH" --entry main.sh --on-event "$PWD/hook" >result 2>stderr || true
	gone() { [ ! -d "/proc/$(cat init)" ] && [ ! -d "/proc/$(tr -d ' ' <child)" ]; }
	rv_until gone
	rv_equal slot-0 "$(ls root)"
	rv_fails 3 confine --runtime "$SH" --entry main.sh --max-retained 1 >result 2>stderr
	holds 'r["reason"] == "retained-limit"'
	run_sh main.sh --timeout 100ms --max-retained 2
	holds "$GOOD"
	rv_equal slot-0 "$(ls root)"
}

@test "a deadline holds before the admission too" {
	on_event launched <<<'kill -STOP $pid; sleep 0.5; true'
	run_sh main.sh --timeout 300ms --on-event "$PWD/hook"
	holds 'r["status"] == "observed" and p["stopped"] == "timeout" and p["killSent"]'
}

# hog: ./rt takes 100 MiB and spins; given "mprotect" it makes each piece read-only, which no rlimit counts then.
hog() {
	rv_need gcc
	gcc -x c -O0 -static -o rt - <<'EOT'
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
	for (int i = 0; i < 100; i++) {
		char *piece = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (piece == MAP_FAILED) return 9;
		memset(piece, 1, 1 << 20);
		if (argc > 2) mprotect(piece, 1 << 20, PROT_READ);
	}
	write(1, argv[1], 1);
	for (;;);
}
EOT
}

# bounded MEMORY OPTION...: one run of it.
bounded() {
	status=0
	confine --runtime "$PWD/rt" --entry main.sh --max-memory "$@" >result 2>stderr || status=$?
}

# groups: where this user has cgroups of version 1 for memory, their directory.
groups() {
	local place

	place=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
	[ -d "$place" ] || place=/sys/fs/cgroup/memory
	[ "$(id -u)" -eq 0 ] && [ -w "$place/cgroup.procs" ] && echo "$place"
}

@test "more memory than may be is stopped, also what no rlimit counts; less is not; a cgroup does it where one can be had" {
	hog
	place=$(groups) && by=cgroup || by=watch
	for trick in '' mprotect; do
		bounded 32MiB --max-data 64MiB --timeout 20s -- $trick
		[ -n "$trick" ] || [ $by = watch ] || holds 'p["exit"] == {"code": None, "signal": "SIGKILL"} and not p["killSent"]'
		holds "$GOOD" "p['memoryBy'] == '$by'" 'p["stopped"] == "memory-limit"' 'r["identities"]["bounds"]["maxMemoryBytes"] == 32 << 20'
	done
	bounded 512MiB --timeout 1s
	holds "$GOOD" 'p["stopped"] == "timeout"' "p['memoryBy'] == '$by'"
	[ $by = watch ] || rv_until sh -c "! ls -d '$place'/rv-exec-*" || rv_die "left: $(ls -d "$place"/rv-exec-*)"
	# Another bound for each line of a stream.
	pins_for "$PWD/rt" linux/1
	for bounds in 33554432,20000 536870912,1000; do
		request ".runtime.path = \"$PWD/rt\" | .maxMemoryBytes = ${bounds%,*} | .timeoutMs = ${bounds#*,}"
	done >lines
	rv-confine --stream --root "$PWD/root" --jobs 2 <lines >result
	holds '[q["process"]["stopped"] for q in results] == ["memory-limit", "timeout"]'
}

@test "no cgroup where one is asked for by name runs nothing; without cgroups it is a watch, and the result says so" {
	hog
	bounded 32MiB --cgroup "$PWD/nowhere"
	rv_equal 5 "$status"
	grep -q -e '--cgroup' stderr
	bounded 32MiB --cgroup "$PWD"
	rv_equal 5 "$status"
	root_is_empty
	rv-confine --probe | jq -es 'map(select(.name == "memory-limit"))[0].ok' >/dev/null
	[ -n "$(groups)" ] || skip "there are none here, and the test before this one was of the watch"
	status=0
	unshare --mount sh -c 'umount -l /sys/fs/cgroup/memory && exec "$@"' - rv-confine --root "$PWD/root" --program prog --input in --unpinned \
		--runtime "$PWD/rt" --entry main.sh --max-memory 32MiB >result 2>stderr
	holds "$GOOD" 'p["memoryBy"] == "watch" and p["stopped"] == "memory-limit" and p["killSent"]'
}

@test "a snapshot swapped strictly between the last check and the launch: what ran is not credited, and is kept" {
	rv_need strace
	# The canary is the last that the check looks at; the launch that follows it is held back until the swap is done.
	swap() {
		rv_until grep -q 'openat([0-9]*, "canary", O_RDONLY' trace
		chmod u+w root/slot-0/program/main.sh
		echo 'echo swapped' >root/slot-0/program/main.sh
		touch swapped
	}
	swap &
	status=0
	strace -f -o trace -e trace=openat,clone3 -e inject=clone3:delay_enter=3000000:when=2+ rv-confine --root "$PWD/root" --program prog --input in \
		--unpinned --runtime "$SH" --entry main.sh >result 2>stderr || status=$?
	wait
	[ -e swapped ]
	rv_equal 1 "$status"
	holds 'out == b"swapped\n"' 'r["status"] == "observed" and r["attributable"] is False' \
		'r["problems"][0].startswith("namespace changed")' 'r["namespace"]["state"] == "quarantined"'
}

@test "nohup: a signal that was ignored at the start stays so; the others cancel" {
	script main.sh <<<'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; echo done'
	on_event admitted <<<"kill -HUP \$PPID && : >$PWD/sent"
	status=0
	env --ignore-signal=HUP rv-confine --root "$PWD/root" --runtime "$SH" --program prog --input in --entry main.sh --unpinned \
		--on-event "$PWD/hook" >result 2>stderr || status=$?
	[ -e sent ]
	rv_equal 0 "$status"
	holds "$GOOD" 'p["stopped"] is None and out == b"done\n"'
}

@test "a reader that stopped does not keep a signal from ending it" {
	script main.sh <<<'i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789012345678901234567890123; i=$((i + 1)); done'
	on_event collected <<<": >$PWD/over"
	mkfifo reader
	exec 5<>reader
	env --default-signal=TERM rv-confine --root "$PWD/root" --runtime "$SH" --program prog --input in --entry main.sh --unpinned \
		--on-event "$PWD/hook" >reader 2>stderr 5<&- 3>&- &
	rv_until test -e over
	sleep 0.3
	kill -0 $! # it waits for room
	kill -TERM $!
	status=0
	timeout 20 tail --pid=$! -f /dev/null
	wait $! || status=$?
	exec 5<&-
	rv_equal 5 "$status"
	grep -q 'nobody reads it' stderr
	root_is_empty
}

@test "what stands at the end of a run that was stopped at its deadline has its time, too" {
	script main.sh <<<'while :; do :; done'
	on_event collected <<<"sleep 0.3; echo \$namespace >$PWD/told"
	run_sh main.sh --timeout 200ms --on-event "$PWD/hook"
	holds "$GOOD" 'p["stopped"] == "timeout"'
	[ ! -s stderr ] || rv_die "$(cat stderr)"
	rv_equal "$PWD/root/slot-0" "$(cat told)"
}

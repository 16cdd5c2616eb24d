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
	run_sh main.sh --on-event "$PWD/hook"
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

@test "more memory than may be is stopped; less is not" {
	rv_need gcc
	printf '%s\n' '#include <stdlib.h>' '#include <string.h>' '#include <unistd.h>' \
		'int main(void){char*p=malloc(100<<20);memset(p,1,100<<20);write(1,p,1);for(;;);}' | gcc -x c -O0 -static -o rt -
	status=0
	confine --runtime "$PWD/rt" --entry main.sh --max-memory 32MiB --timeout 20s >result 2>stderr || status=$?
	holds "$GOOD" 'p["stopped"] == "memory-limit"' 'r["identities"]["bounds"]["maxMemoryBytes"] == 32 << 20'
	confine --runtime "$PWD/rt" --entry main.sh --max-memory 512MiB --timeout 1s >result 2>stderr
	holds "$GOOD" 'p["stopped"] == "timeout"'
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
	strace -f -o trace -e trace=openat,clone3 -e inject=clone3:delay_enter=3000000 rv-confine --root "$PWD/root" --program prog --input in \
		--unpinned --runtime "$SH" --entry main.sh >result 2>stderr || status=$?
	wait
	[ -e swapped ]
	rv_equal 1 "$status"
	holds 'out == b"swapped\n"' 'r["status"] == "observed" and r["attributable"] is False' \
		'r["problems"][0].startswith("namespace changed")' 'r["namespace"]["state"] == "quarantined"'
}

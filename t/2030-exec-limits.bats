# rv-exec: time and output are bounded, and each end is told apart.
load helper
load exec

@test "a tool past its deadline is timeout, and dead" {
	mark=limits-$$-$RANDOM
	within 1500 fails timeout 124 x --timeout 300ms --setenv RV_MARK=$mark -- /bin/sleep 60
	rv_equal 0 "$(alive $mark)"
	no_workdir
	rv_fails 124 x --json --timeout 100ms -- /bin/sleep 60 >reply 2>stderr
	rv_equal 'timeout timeout null SIGTERM' \
		"$(member error.code <reply) $(member outcome <reply) $(member exitCode <reply) $(member signal <reply)"
}

@test "TERM, the grace, then KILL" {
	tool polite <<-'TOOL'
		#!/bin/sh
		trap 'echo 1; exit 0' TERM
		while :; do sleep 0.05; done
	TOOL
	rv_fails 124 x --json --timeout 300ms --kill-grace 5s --setenv PATH="$PATH" -- "$PWD/polite" >reply 2>stderr
	rv_equal 'timeout 0 null' "$(member error.code <reply) $(member exitCode <reply) $(member signal <reply)"
	[ "$(member durationMs <reply)" -lt 3000 ]
	tool deaf <<-'TOOL'
		#!/bin/sh
		trap '' TERM
		while :; do sleep 1; done
	TOOL
	start=$(now_ms)
	rv_fails 124 x --json --timeout 300ms --kill-grace 400ms --setenv PATH="$PATH" -- "$PWD/deaf" >reply 2>stderr
	took=$(($(now_ms) - start))
	[ "$took" -ge 700 ] && [ "$took" -le 1800 ] || rv_die "took $took ms"
	rv_equal SIGKILL "$(member signal <reply)"
	within 1300 fails timeout 124 x --timeout 200ms --kill-grace 0ms --setenv PATH="$PATH" -- "$PWD/deaf"
}

@test "the whole tree gets the TERM, stopped ones too" {
	tool family <<-'TOOL'
		#!/usr/bin/perl
		$| = 1;
		my $child = fork // die;
		if (!$child) {
			$SIG{TERM} = sub { open my $f, ">", $ENV{SEEN}; exit };
			kill STOP => $$;
			sleep 60;
			exit;
		}
		sleep 60;
	TOOL
	rv_fails 124 x --timeout 500ms --kill-grace 3s --setenv SEEN="$PWD/seen" -- "$PWD/family" 2>stderr
	# The tool itself ends at once by TERM, and with it the dispatch: its child may or may not get
	# so far, but it is not left, stopped or not.
	no_workdir
}

@test "exit 124, exit 137, kill -9 of itself, a flood and a timeout are five different results" {
	results=
	for end in 'exit 124' 'exit 137' 'kill -9 $$' 'while :; do echo yyyyyyyyyyyyyyyyyyyyyy; done' 'while :; do :; done'; do
		x --json --timeout 1s --kill-grace 100ms --max-output 64KiB -- /bin/sh -c "$end" >reply 2>stderr || results+=$?:
		results+="$(member error.code <reply):$(member outcome <reply):$(member exitCode <reply) "
	done
	rv_equal '1:exit:error:124 1:exit:error:137 1:exit:error:null 121:output-cap:error:null 124:timeout:timeout:null ' "$results"
}

@test "exactly the cap is fine, one byte more is not" {
	tool out <<-'TOOL'
		#!/usr/bin/perl
		$| = 1;
		print '"', "a" x ($ARGV[0] - 2), '"';
	TOOL
	for size in 10 4096 65536 1048576; do
		rv_equal "$size" "$(x --max-output $size -- "$PWD/out" $size | tr -d '\n' | wc -c)"
		fails output-cap 121 x --max-output $size -- "$PWD/out" $((size + 1))
	done
	rv_equal 1048576 "$(x -- "$PWD/out" 1048576 | tr -d '\n' | wc -c)"
	fails output-cap 121 x -- "$PWD/out" 1048577
	rv_equal null "$(x --max-output 0 -- /bin/true)"
	fails output-cap 121 x --max-output 0 -- /bin/echo
	no_workdir
}

@test "a flood ends the tool and all that it started, at once" {
	mark=flood-$$-$RANDOM
	tool flood <<-'TOOL'
		#!/bin/sh
		trap '' TERM PIPE
		yes &
		yes &
		sleep 60 &
		yes
	TOOL
	within 2000 fails output-cap 121 x --kill-grace 30s --setenv RV_MARK=$mark --setenv PATH="$PATH" -- "$PWD/flood"
	rv_equal 0 "$(alive $mark)"
}

@test "single bytes at full speed do not keep the deadline waiting" {
	tool drip <<-'TOOL'
		#!/usr/bin/perl
		$SIG{TERM} = "IGNORE";
		while (1) { syswrite STDOUT, " "; syswrite STDERR, "x" }
	TOOL
	within 2500 fails timeout 124 x --timeout 500ms --kill-grace 300ms --max-output 1GiB -- "$PWD/drip"
	rv_fails 124 within 2500 x --timeout 500ms --kill-grace 300ms --max-output 1GiB --tool-stderr inherit -- "$PWD/drip" \
		>stdout 2>/dev/null
	[ ! -s stdout ]
}

@test "a flood that begins with the deadline's TERM is still a timeout, and bounded" {
	tool spite <<-'TOOL'
		#!/usr/bin/perl
		$SIG{TERM} = sub { while (1) { syswrite STDOUT, "x" x 65536 } };
		sleep 60 while 1;
	TOOL
	rv_fails 124 within 4000 x --json --timeout 300ms --kill-grace 2s --max-output 64KiB -- "$PWD/spite" >reply 2>stderr
	rv_equal 'timeout timeout' "$(member error.code <reply) $(member outcome <reply)"
}

@test "memory stays constant whatever a tool writes" {
	rv_need own-memory
	tool flood <<-'TOOL'
		#!/bin/sh
		head -c 300000000 /dev/zero >&2
		echo 1
	TOOL
	rv_need root || true
	/usr/bin/perl -e '
		system { $ARGV[0] } @ARGV;
		open my $status, "<", "/proc/self/status";
		exit $? >> 8' rv-exec --tool t --workdir-base "$PWD" -- "$PWD/flood" >out
	rv_equal 1 "$(cat out)"
	(ulimit -v 60000 && rv-exec --tool t --workdir-base "$PWD" -- "$PWD/flood") >out
	rv_equal 1 "$(cat out)"
}

@test "a deadline holds while rv-exec is stopped, and it answers timeout when it goes on" {
	mark=stop-$$-$RANDOM
	# TSTP stops nobody in an orphaned process group: the shell's job control makes one that is not.
	set -m
	for signal in STOP TSTP; do
		x --json --timeout 2500ms --kill-grace 100ms --setenv RV_MARK=$mark -- /bin/sleep 60 >reply 2>stderr 3>&- &
		pid=$!
		rv_until running_tool $mark
		program=$(rv_exec_of $pid)
		kill -$signal "$program"
		rv_until is_stopped "$program"
		rv_until none_alive $mark
		is_stopped "$program"
		kill -CONT "$program"
		status=0
		wait $pid || status=$?
		rv_equal 124 $status
		rv_equal timeout "$(member error.code <reply)"
	done
	set +m
	no_workdir
}

@test "a tool that ended well while rv-exec was stopped over its deadline is no timeout" {
	mkfifo go
	exec 9<>go
	tool short <<-TOOL
		#!/bin/sh
		read -r _ <"$PWD/go"
		echo 7
		: >"$PWD/ended"
	TOOL
	mark=well-$$-$RANDOM
	x --json --timeout 2500ms --kill-grace 100ms --setenv RV_MARK=$mark -- "$PWD/short" >reply 2>stderr 3>&- &
	pid=$!
	rv_until running_tool $mark
	program=$(rv_exec_of $pid)
	kill -STOP "$program"
	rv_until is_stopped "$program"
	echo >&9
	rv_until test -e ended
	rv_until none_alive $mark
	past=$(($(now_ms) + 4000))
	rv_until eval '[ "$(now_ms)" -gt '$past' ]'
	kill -CONT "$program"
	wait $pid
	exec 9>&-
	holds 'reply["result"] == 7 and reply["outcome"] == "ok" and reply["survivors"] == 0'
}

# rv-exec: aborted by a signal it writes the outcome first, and then dies of that signal.
load helper
load exec

setup() {
	mark=signals-$BATS_TEST_NUMBER-$$-$RANDOM
	mkdir dirs
	cat >signals.pl <<-'PERL'
		# signals.pl TIMES SIGNAL READY COMMAND...: run it, and when READY is there send it the
		# signal, so many times; print the signal that it died of.
		my ($times, $signal, $ready) = splice @ARGV, 0, 3;
		my $pid = fork // die;
		# whoever started the tests may ignore some (nohup, a shell's background job)
		if (!$pid) { if (!$ENV{KEEP_IGNORED}) { $SIG{$_} = 'DEFAULT' for qw(INT HUP TERM) } exec { $ARGV[0] } @ARGV or die }
		my $end = time + 20;
		until (-e $ready) { select undef, undef, undef, 0.01; time < $end or die "not ready" }
		for (1..$times) { kill $signal, $pid; select undef, undef, undef, 0.05 if $_ < $times }
		waitpid $pid, 0;
		print $? & 127 ? "signal " . ($? & 127) : "status " . ($? >> 8), "\n";
	PERL
	tool waits <<-TOOL
		#!/bin/bash
		sleep 60 &
		: >"$PWD/ready"
		wait
	TOOL
	tool deaf <<-TOOL
		#!/bin/bash
		trap '' TERM
		: >"$PWD/ready"
		sleep 60
		sleep 60
	TOOL
}

# signalled TIMES SIGNAL OPTION... -- COMMAND
signalled() {
	local times=$1 signal=$2

	shift 2
	rm -f ready
	/usr/bin/perl signals.pl "$times" "$signal" "$PWD/ready" rv-exec --tool t --workdir-base "$PWD/dirs" --setenv RV_MARK="$mark" \
		--setenv PATH="$PATH" --new-call --ledger "$PWD/ledger" --json "$@" 2>stderr
}

@test "TERM, INT and HUP: the outcome is written, nothing is left, and it dies of the signal" {
	for signal in TERM:15 INT:2 HUP:1; do
		rm -f ledger
		rv_equal "signal ${signal#*:}" "$(within 5000 signalled 1 "${signal%:*}" -- "$PWD/waits" | tee all | tail -n 1)"
		head -n 1 all >reply
		holds 'code == "aborted" and reply["outcome"] == "error"' '[r["outcome"] for r in outcomes] == ["error"]'
		none_alive "$mark"
		no_workdir
	done
}

@test "once: the tool has its grace, and what it answers is aborted all the same" {
	tool polite <<-TOOL
		#!/bin/bash
		trap ': >"$PWD/told"; echo 1; exit 0' TERM
		: >"$PWD/ready"
		while :; do sleep 0.02; done
	TOOL
	rv_equal 'signal 15' "$(signalled 1 TERM --kill-grace 20s -- "$PWD/polite" | tee all | tail -n 1)"
	[ -e told ]
	rv_equal aborted "$(head -n 1 all | member error.code)"
}

@test "twice: the grace is cut short" {
	rv_equal 'signal 15' "$(within 8000 signalled 2 TERM --kill-grace 60s -- "$PWD/deaf" | tee all | tail -n 1)"
	rv_equal 'aborted SIGKILL' "$(head -n 1 all | member error.code) $(head -n 1 all | member signal)"
	none_alive "$mark"
	no_workdir
}

@test "nohup: what was ignored at the start stays so" {
	tool short <<-TOOL
		#!/bin/bash
		: >"$PWD/ready"
		read -r _ <"$PWD/go"
		echo 7
	TOOL
	mkfifo go
	(rv_until test -e ready && sleep 0.1 && echo >go) 3>&- &
	rv_equal 'status 0' "$(trap '' HUP; KEEP_IGNORED=1 signalled 1 HUP -- "$PWD/short" | tee all | tail -n 1)"
	wait
	rv_equal 7 "$(head -n 1 all | member result)"
}

@test "while credentials are minted: no tool is run" {
	tool mint <<-TOOL
		#!/bin/bash
		: >"$PWD/ready"
		sleep 60
	TOOL
	rv_equal 'signal 15' "$(within 5000 signalled 1 TERM --credentials "$PWD/mint" -- /bin/sh -c ": >'$PWD/ran'" | tail -n 1)"
	[ ! -e ran ]
	holds "$NOTHING_RAN"
	no_workdir
}

@test "while its input is still read a signal simply ends it" {
	mkfifo input
	# Opened for writing once it is there to read.
	(exec 9>input && : >ready && rv_until test -e done) 3>&- &
	rv_equal 'signal 15' "$(within 5000 signalled 1 TERM --args-file input -- /bin/true)"
	: >done
	wait
	[ ! -s ledger ]
	no_workdir
}

@test "TERM at any instant leaves no orphan and no workdir" {
	cat >instant.pl <<-'PERL'
		my ($delay, @command) = @ARGV;
		my $pid = fork // die;
		if (!$pid) { open STDOUT, ">", "/dev/null"; open STDERR, ">", "/dev/null"; exec { $command[0] } @command or die }
		select undef, undef, undef, $delay;
		kill TERM => $pid;
		waitpid $pid, 0;
		exit(($? & 127) == 15 || $? == 0 ? 0 : 1);
	PERL
	for i in {1..60}; do
		perl instant.pl "0.0$(printf '%03d' $((RANDOM % 400)))" rv-exec --tool t --workdir-base "$PWD/dirs" --new-call \
			--ledger "$PWD/ledger" -- /bin/sh -c 'echo 1'
	done
	holds 'len(intents) == len(outcomes) > 0'
	rv-ledger-scan --format orphans ledger
	rv_until no_workdir 2>/dev/null
}

@test "a reader that went away ends it quietly, and the outcome is written" {
	cat >pipe.pl <<-'PERL'
		pipe my $r, my $w or die;
		my $pid = fork // die;
		if (!$pid) { close $r; open STDOUT, ">&", $w or die; close $w; exec { $ARGV[0] } @ARGV or die }
		close $r;
		waitpid $pid, 0;
		print $? & 127;
	PERL
	rv_equal 13 "$(perl pipe.pl rv-exec --tool t --workdir-base "$PWD/dirs" --new-call --ledger ledger -- /bin/echo 1 2>stderr)"
	[ ! -s stderr ]
	holds '[r["outcome"] for r in outcomes] == ["ok"]'
}

@test "/dev/full as stdout is status 5, and the outcome is written" {
	rv_need full
	rv_fails 5 rv-exec --tool t --workdir-base dirs --new-call --ledger ledger -- /bin/echo 1 >/dev/full 2>stderr
	grep -q 'standard output' stderr
	rv_fails 5 rv-exec --tool t --workdir-base dirs --new-call --ledger ledger --json -- /bin/false >/dev/full 2>stderr
	holds '[r["outcome"] for r in outcomes] == ["ok", "error"]'
	no_workdir
}

@test "stderr that cannot be written to changes no result" {
	rv_need full
	rv_equal 1 "$(rv-exec --tool t --workdir-base dirs -- /bin/echo 1 2>/dev/full)"
	rv_fails 1 rv-exec --tool t --workdir-base dirs -- /bin/false 2>/dev/full
}

@test "a reader that stopped does not keep a signal from ending it, and the outcome is written" {
	tool large <<-TOOL
		#!/bin/bash
		printf '"%0200000d"' 1
		: >"$PWD/ready"
	TOOL
	cat >stopped.pl <<-'PERL'
		pipe my $r, my $w or die;
		my $pid = fork // die;
		if (!$pid) { close $r; $SIG{TERM} = 'DEFAULT'; open STDOUT, ">&", $w or die; close $w; exec { $ARGV[0] } @ARGV or die }
		close $w;
		my $end = time + 20;
		until (-s "ledger" && `wc -l <ledger` == 2) { select undef, undef, undef, 0.05; time < $end or die "no outcome" }
		select undef, undef, undef, 0.3;
		kill 0, $pid and waitpid($pid, 1) == 0 or die "it does not wait";
		kill TERM => $pid;
		$SIG{ALRM} = sub { kill KILL => $pid };
		alarm 15;
		waitpid $pid, 0;
		print $? & 127 ? "signal " . ($? & 127) : "status " . ($? >> 8);
	PERL
	rv_equal 'status 5' "$(perl stopped.pl rv-exec --tool t --workdir-base "$PWD/dirs" --new-call --ledger ledger -- "$PWD/large" 2>stderr)"
	grep -q 'nobody reads it' stderr
	holds '[r["outcome"] for r in outcomes] == ["ok"]'
}

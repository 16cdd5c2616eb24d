# rv-exec: a tool's environment is replaced, and what is secret is nowhere else.
load helper
load exec

setup() {
	tool show <<-'TOOL'
		#!/usr/bin/python3
		import json
		print(json.dumps(dict(p.split("=", 1) for p in open("/proc/self/environ", "rb").read().decode("latin-1").split("\0") if p)))
	TOOL
}

@test "exactly three variables, and no secret of the host's" {
	export HOST_SECRET=geheim
	x --run-id r --genesis g --ordinal 0 -- "$PWD/show" >out
	rv_equal 't r 3' "$(member RULVAR_TOOL <out) $(member RULVAR_RUN_ID <out) $(tr -dc : <out | wc -c)"
	[[ $(member RULVAR_IDEMPOTENCY_KEY <out) =~ ^[0-9a-f]{64}$ ]]
	rv_fails 1 grep -q geheim out
}

@test "--allow-env passes what is there and leaves out what is not" {
	export PASSED='a=b "c"' EMPTY=
	unset ABSENT
	x --allow-env PASSED --allow-env EMPTY --allow-env ABSENT -- "$PWD/show" >out
	rv_equal 'a=b "c"' "$(member PASSED <out)"
	rv_equal '' "$(member EMPTY <out)"
	rv_equal absent "$(member ABSENT <out)"
	rv_equal absent "$(member HOME <out)"
	rv_equal absent "$(member PATH <out)"
}

@test "later wins over earlier, and the first three over all" {
	export A=host RULVAR_TOOL=liar
	tool mint <<-'TOOL'
		#!/bin/sh
		echo '{"C":"minted","B":"minted","RULVAR_RUN_ID":"liar"}'
	TOOL
	x --key K --run-id r 2>/dev/null -- "$PWD/show" || true
	x --key K --allow-env A --allow-env RULVAR_TOOL --setenv A=one --setenv B=two --setenv A=three \
		--setenv RULVAR_IDEMPOTENCY_KEY=liar --credentials "$PWD/mint" -- "$PWD/show" >out
	rv_equal 'three minted minted t K' \
		"$(member A <out) $(member B <out) $(member C <out) $(member RULVAR_TOOL <out) $(member RULVAR_IDEMPOTENCY_KEY <out)"
	rv_fails 1 grep -q liar out
	rv_equal 6 "$(/usr/bin/python3 -Ic 'import json; print(len(json.load(open("out"))))')"
}

@test "a variable is there once" {
	tool twice <<-'TOOL'
		#!/usr/bin/python3
		print(sum(part.startswith(b"A=") for part in open("/proc/self/environ", "rb").read().split(b"\0")))
	TOOL
	rv_equal 1 "$(A=x x --allow-env A --allow-env A --setenv A=1 --setenv A=2 -- "$PWD/twice")"
}

@test "what is no variable is config, and its value is not repeated" {
	fails config 125 x --setenv geheim -- "$PWD/show"
	rv_fails 1 grep -q geheim stderr
	fails config 125 x --setenv =geheim -- "$PWD/show"
	rv_fails 1 grep -q geheim stderr
	fails config 125 x --allow-env A=B -- "$PWD/show"
	fails config 125 x --allow-env '' -- "$PWD/show"
	no_workdir
}

@test "a bare name is looked up in rv-exec's own PATH, which the tool does not get" {
	mkdir bin
	cp show bin/rv-test-show
	rv_equal absent "$(PATH="$PWD/bin:$PATH" x -- rv-test-show | member PATH)"
	fails spawn 127 env PATH="$(dirname "$(command -v rv-exec)")" rv-exec --tool t --workdir-base "$PWD" -- rv-test-show
	cd bin
	rv_equal t "$(x -- ./rv-test-show | member RULVAR_TOOL)"
	rv_equal t "$(PATH="$PATH:" x -- rv-test-show | member RULVAR_TOOL)"
}

@test "masks, dispositions, umask, session and privileges are the defaults" {
	tool state <<-'TOOL'
		#!/bin/sh
		mask=$(umask)
		while read -r name value; do
			case $name in
			SigBlk: | SigIgn: | NoNewPrivs:) printf '"%s %s",' "$name" "$value" >>out ;;
			esac
		done <"/proc/$$/status"
		read -r stat <"/proc/$$/stat"
		set -- ${stat##*) }
		[ "$3" = $$ ] && [ "$4" = $$ ] && [ "$5" = 0 ] && leads=true
		printf '[%s"%s",%s]' "$(cat out)" "$mask" "${leads:-false}"
	TOOL
	cat >hostile.pl <<-'PERL'
		use POSIX;
		$SIG{$_} = "IGNORE" for qw(PIPE INT QUIT CHLD USR1 TSTP ALRM);
		# rt_sigaction(2), for the two that no library lets one have
		my $ignore = pack "Q4", 1, 0, 0, 0;
		if ((POSIX::uname())[4] eq "x86_64") { syscall 13, 0 + $_, $ignore, 0, 8 for @{[32, 33]} }
		my $all = POSIX::SigSet->new;
		$all->fillset;
		POSIX::sigprocmask(POSIX::SIG_BLOCK, $all);
		umask 0777;
		exec @ARGV or die;
	PERL
	mkdir dirs
	perl hostile.pl rv-exec --tool t --workdir-base "$PWD/dirs" -- "$PWD/state" >out
	rv_equal '["SigBlk: 0000000000000000","SigIgn: 0000000000000000","NoNewPrivs: 1","0022",true]' "$(cat out)"
	no_workdir
}

@test "a caller that ignores SIGPIPE and blocks SIGTERM does not keep a tool alive" {
	cat >hostile.pl <<-'PERL'
		use POSIX;
		$SIG{PIPE} = "IGNORE";
		POSIX::sigprocmask(POSIX::SIG_BLOCK, POSIX::SigSet->new(POSIX::SIGTERM));
		exec @ARGV or die;
	PERL
	tool pipe <<-'TOOL'
		#!/bin/bash
		yes | head -n 1 >/dev/null
		echo "[${PIPESTATUS[0]}]"
	TOOL
	mkdir dirs
	rv_equal '[141]' "$(perl hostile.pl rv-exec --tool t --workdir-base "$PWD/dirs" -- "$PWD/pipe")"
	within 1500 fails timeout 124 perl hostile.pl rv-exec --tool t --timeout 200ms --kill-grace 5s --workdir-base "$PWD/dirs" -- /bin/sleep 60
}

@test "descriptors 3, 7 and 500 of the caller do not reach the tool" {
	tool fds <<-'TOOL'
		#!/usr/bin/perl
		opendir my $dir, "/proc/self/fd" or die;
		my @open = grep { /^\d+$/ && $_ != fileno($dir) } readdir $dir;
		@open = grep { readlink("/proc/self/fd/$_") !~ m{^\Q$0\E$|/fds$} } @open;
		print "[", join(",", sort { $a <=> $b } @open), "]";
	TOOL
	(
		exec 3</dev/null 7>seven 500>>five
		x -- "$PWD/fds" >out
		x --tool-stderr inherit -- "$PWD/fds" >>out
		# A set-up pipe that such a sweep closed would make a failed exec look like success.
		fails spawn 127 x -- /no/such/tool
	)
	rv_equal $'[0,1,2]\n[0,1,2]' "$(cat out)"
}

@test "0, 1 and 2 closed in the caller exist for the tool" {
	tool fds <<-'TOOL'
		#!/usr/bin/perl
		print "[", join(",", grep { -e "/proc/self/fd/$_" } 0..2), "]";
	TOOL
	x -- "$PWD/fds" >out <&- 2>&-
	rv_equal '[0,1,2]' "$(cat out)"
	x --tool-stderr inherit -- "$PWD/fds" >out 2>&-
	rv_equal '[0,1,2]' "$(cat out)"
	rv_fails 5 x -- "$PWD/fds" <&- >&- 2>stderr
	rv_fails 5 x -- "$PWD/fds" <&- >&- 2>&-
	no_workdir
}

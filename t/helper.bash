# What every test loads: where things are, and the few verbs that tests share.
# A test asserts outcomes; nothing sleeps to synchronise (see rv_until).

RV_SRC=${RV_SRC:-$(cd "$BATS_TEST_DIRNAME/.." && pwd)}
RV_BIN=${RV_BIN:-$RV_SRC/build}
RV_USER=${RV_USER:-nobody}
export RV_SRC RV_BIN RV_USER LC_ALL=C TZ=UTC SHELL=/bin/sh
export PATH="$RV_BIN:$PATH"
unset NO_COLOR RULVAR_TOOL RULVAR_RUN_ID RULVAR_IDEMPOTENCY_KEY
umask 022
[ -z "${BATS_TEST_TMPDIR:-}" ] || cd "$BATS_TEST_TMPDIR" || exit 1

# Say why and fail.
rv_die() {
	printf '%s\n' "$*" >&2
	return 1
}

# rv_fails CODE COMMAND...: it exits with exactly CODE.  A death by a signal and a sanitizer's
# exit (99) are never an expected failure, whatever CODE says.
rv_fails() {
	local want=$1 got=0

	shift
	case $want in
	0 | 99) rv_die "rv_fails: $want is not a failure to expect" || return ;;
	*) [ "$want" -lt 128 ] || rv_die "rv_fails: $want looks like a signal: use rv_dies" || return ;;
	esac
	"$@" || got=$?
	[ "$got" -lt 128 ] || rv_die "died by a signal (status $got): $*" || return
	[ "$got" -eq "$want" ] || rv_die "exit $got where $want was expected: $*"
}

# rv_dies SIGNAL-NUMBER COMMAND...: the kernel says that this signal ended it; an exit of 128+N,
# which a shell cannot tell from it, does not count.
rv_dies() {
	local want=$1

	shift
	perl -e '
		my $want = shift;
		$SIG{$_} = "DEFAULT" for qw(INT HUP TERM PIPE QUIT); # a background job starts with some ignored
		system { $ARGV[0] } @ARGV;
		my $got = $? & 127;
		exit 0 if $? != -1 && $got == $want;
		print STDERR $? == -1 ? "cannot run: $!\n" : "status $?, not signal $want: @ARGV\n";
		exit 1' "$want" "$@"
}

# rv_equal WANT GOT [WHAT]
rv_equal() {
	[ "$1" = "$2" ] || rv_die "$(printf '%s\n  want: %q\n  got:  %q' "${3:-not equal}" "$1" "$2")"
}

# rv_until COMMAND...: poll until it succeeds, at most 20 seconds.
rv_until() {
	local end=$((SECONDS + 20))

	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || rv_die "never came true: $*" || return
		sleep 0.02
	done
}

# Behind the last test of a file: what a test began has ended, and can be removed.  What is still there is named; and bats,
# which removes all, would fail without a word where something still writes.
teardown_file() {
	rv_file_ends
}

rv_file_ends() {
	cd "$BATS_TEST_DIRNAME" || return # the shell of the file itself may stand there, too
	rv_until rv_file_is_over || { rv_of_file | xargs -r ps -o pid,user,args -p; return 1; }
	rv_until rm -rf "$BATS_RUN_TMPDIR/test"
}

rv_file_is_over() {
	[ -z "$(rv_of_file)" ]
}

# The processes that stand in this run's directories, or were given one of them.
rv_of_file() {
	local pid

	{
		find /proc -maxdepth 2 -path '/proc/[0-9]*/cwd' -lname "$BATS_RUN_TMPDIR/*" 2>/dev/null
		grep -lsF "BATS_TEST_TMPDIR=$BATS_RUN_TMPDIR/" /proc/[0-9]*/environ
	} | cut -d/ -f3 | sort -un | while read -r pid; do
		# what podman keeps to hold an ordinary user's namespace: it does nothing more, and any podman makes it
		cmp -s "/proc/$pid/cmdline" <(printf 'podman\0') || echo "$pid"
	done
}

# Is the facility here?  Found by using it, not by its version.
rv_have() {
	case $1 in
	root) [ "$(id -u)" -eq 0 ] ;;
	user) [ "$(id -u)" -ne 0 ] || setpriv --reuid="$RV_USER" --clear-groups --regid="$(id -g "$RV_USER")" true ;;
	userns) unshare --user --map-root-user --pid --fork true ;;
	userns-user) rv_as_user unshare --user --map-root-user --pid --fork true ;;
	strace) strace -f -o /dev/null true ;;
	own-memory) [ -z "${RV_SANITIZED:-}" ] ;; # a limit on memory means the program's, not a sanitizer's
	kernel-sandbox) rv-exec --tool t --workdir-base /tmp --sandbox kernel -- /bin/true ;;
	proc-environ) [ -r /proc/self/environ ] ;;
	full) [ -c /dev/full ] ;;
	psycopg2) ls /usr/lib/postgresql/*/bin/initdb && /usr/bin/python3 -Ic 'import psycopg2' ;;
	*) command -v "$1" ;;
	esac >/dev/null 2>&1
}

# rv_need FACILITY...: skip with the reason where one is missing.  RV_MUST_WORK=1 makes that a
# failure, but for what RV_WITHOUT names: the facilities this run is meant to be without (the
# ordinary user's run is without root).
rv_need() {
	local facility

	for facility; do
		if rv_have "$facility"; then
			# A traced program cannot look for its leaks.
			[ "$facility" != strace ] || export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
			continue
		fi
		case " ${RV_WITHOUT:-} " in
		*" $facility "*) skip "this run is without $facility" ;;
		esac
		[ "${RV_MUST_WORK:-}" != 1 ] || rv_die "$facility is missing and RV_MUST_WORK=1" || return
		skip "needs $facility"
	done
}

# rv_as_user COMMAND...: as an ordinary user; where the tests already run as one, as that.
# Its files belong in rv_user_dir, its programs are the copies in rv_user_dir/bin, for the
# build tree may lie where that user cannot go.
rv_as_user() {
	if [ "$(id -u)" -ne 0 ]; then
		"$@"
	else
		setpriv --reuid="$RV_USER" --regid="$(id -g "$RV_USER")" --clear-groups --inh-caps=-all -- "$@"
	fi
}

# Make (once a test) and print a directory of that user, with the programs in its bin/.
rv_user_dir() {
	local dir=$BATS_TEST_TMPDIR/user program

	if [ ! -d "$dir" ]; then
		chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$BATS_TEST_TMPDIR"
		mkdir -p "$dir/bin"
		for program in "$RV_BIN"/rv-*; do
			[ ! -f "$program" ] || [ ! -x "$program" ] || cp "$program" "$dir/bin/"
		done
		cp -R "$RV_BIN/libexec" "$dir/bin/"
		[ "$(id -u)" -ne 0 ] || chown -R "$RV_USER" "$dir"
	fi
	printf '%s\n' "$dir"
}

# The programs that this build made, one a line.
rv_programs() {
	local program

	for program in "$RV_BIN"/rv-*; do
		[ ! -f "$program" ] || [ ! -x "$program" ] || printf '%s\n' "${program##*/}"
	done
}

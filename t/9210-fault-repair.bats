# rv-ledger-repair killed, and failed, at every system call from where it begins to write, and at some of
# those before (RV_FAULTS=all: at every one), while an engine's writer appends.  After each: the torn bytes are in some file, a clean repair and a scan are content, no confirmed row is lost.
load helper

good='{"phase":"outcome","idempotencyKey":"k","runId":"r","spanId":"s","tool":"t","argsHash":"h","executor":"e","workdir":"/w","startedAt":1,"attemptId":"good","durationMs":1,"outcome":"ok","exitCode":0,"signal":null}'
fragment='{"phase":"intent","idempotencyKey":"torn-\\x'

setup() {
	rv_need strace
	# In memory: some two thousand repairs, each with a dozen syncs.
	work=$(mktemp -d /dev/shm/rv-fault-XXXXXX)
	cd "$work" || return
	copy=l.jsonl.torn.$(printf '%s' "$fragment" | sha256sum | cut -d' ' -f1)
	base64=$(printf '%s' "$fragment" | base64 -w0)
	sign=$copy fragments=1 rows=good
}

teardown() {
	[ -z "${work:-}" ] || rm -rf "$work"
}

# The system calls of one repair from the ledger's open on, as "NAME:INDEX" for strace.
calls_of() { # COMMAND...
	fresh
	strace -qq -o trace "$@" >/dev/null
	awk -F'(' -v all="${RV_FAULTS:-}" '
		{ n[$1]++ }
		/"l\.jsonl", O_/ { on = 1 }
		/O_TMPFILE|O_EXCL/ { writing = 1 }
		on && $1 !~ /^(exit_group|brk|mmap|munmap)$/ && (writing || all || ++early % 6 == 0) { print $1 ":" n[$1] }' trace
}

fresh() {
	local left=(l.jsonl* stop)

	[ ! -e "${left[0]}" ] || rm -f "${left[@]}"
	printf '%s\n%s' "$good" "$fragment" >l.jsonl
	if [ "$fragments" -eq 2 ]; then # another was torn before with the same bytes; its repair died before its first write
		printf '%s\n' "${good/good/glued}" >>l.jsonl
		printf '%s' "$fragment" | tee "$copy" >>l.jsonl
	fi
	[ -z "${reader:-}" ] || exec 9<l.jsonl # inherited by all: no lease is to be had
}

# Two thousand times a few files are read: by the shell itself, which needs no process for it.
content() { # NAME FILE
	printf -v "$1" ''
	[ ! -e "$2" ] || IFS= read -r -d '' "$1" <"$2" || :
}

# Are the torn bytes anywhere: in the ledger, in a copy, or in a quarantine row?
have_bytes() {
	local ledger kept

	content ledger l.jsonl
	content kept "$copy"
	[[ $ledger == *"$fragment"* || $kept == *"$fragment"* || $ledger == *"\"bytesBase64\":\"$base64\""* ]]
}

# is_there TIMES TEXT WHAT: in the ledger.
is_there() {
	local rest=$ledger times=0

	while [ "${rest#*"$2"}" != "$rest" ]; do
		rest=${rest#*"$2"}
		times=$((times + 1))
	done
	[ "$times" -eq "$1" ] || rv_die "$3: $times times"
}

# One fault: the repair under strace, an engine's writer beside it from when the sign appears.  short:N is the
# N-th write done by half.
fault() { # INJECTION COMMAND...
	local injection=$1 engine status=0 ledger id run

	shift
	run=(strace -qq -o /dev/null -e "inject=$injection")
	[[ $injection != short:* ]] ||
		run=("$RV_BIN/t/faults/inject" --at "${injection#short:}" --action short --report report --)
	fresh
	"$RV_BIN/t/ledger-tool" engine-at l.jsonl "$sign" stop 1 >ids 2>engine.err 3>&- &
	engine=$!
	# In a subshell, which says of a death what the shell has to say.
	("${run[@]}" "$@" || exit) >out 2>err || status=$?
	[[ $injection != short:* ]] || status=$(sed 's/.*"status":\([0-9]*\).*/\1/' report)
	have_bytes || rv_die "$injection: the torn bytes are gone" || return
	: >stop
	wait $engine || rv_die "$injection: the engine's writer failed: $(cat engine.err)" || return
	[ "$status" -ne 0 ] || rv-ledger-scan l.jsonl || rv_die "$injection: it said that all is well" || return
	rv-ledger-repair l.jsonl >again 2>&1 || rv_die "$injection: not repaired: $(cat again)" || return
	rv-ledger-scan l.jsonl || rv_die "$injection: the scan is not content" || return
	content ledger l.jsonl
	is_there "$fragments" "\"bytesBase64\":\"$base64\"" "$injection: quarantined" || return
	for id in $rows $(<ids); do
		is_there 1 "\"attemptId\":\"$id\"" "$injection: confirmed row $id" || return
	done
	rv_equal l.jsonl "$(echo l.jsonl*)" "$injection: left behind"
}

# Every call of a repair by this command, with each fault that can befall such a call.
fault_all() { # COMMAND...
	local call name errors error count=0 at

	# The shell would call bats before each of some ten thousand commands; what fails says so by itself.
	trap - DEBUG
	calls_of "$@" >calls
	[ "$(wc -l <calls)" -gt 30 ]
	while read -r call; do
		name=${call%:*}
		case $name in
		write | pwrite64) errors='error=ENOSPC error=EINTR retval=0' ;;
		fallocate) errors='error=ENOSPC error=EINTR' ;;
		fsync | linkat | fcntl | pread64 | unlink | rename | utimensat) errors='error=EIO' ;;
		openat) errors='error=EMFILE' ;;
		*) errors= ;;
		esac
		if [ -n "${kills:-}" ]; then
			# A kill at a call that changes nothing leaves what a kill at the next that does leaves.
			[[ -n $errors && $name != pread64 && $name != fcntl ]] || continue
			errors=
		fi
		for error in signal=SIGKILL $errors; do
			fault "$name:$error:when=${call#*:}" "$@"
			count=$((count + 1))
		done
	done <calls
	for ((at = 1; ${kills:-0} == 0; at++)); do
		fault "short:$at" "$(command -v "$1")" "${@:2}"
		grep -q '"fired":true' report || break
	done
	[ -n "${kills:-}" ] || [ "$at" -gt 4 ] # the sidecar, the copy, the row, the answer
	echo "# $((count + at)) faults" >&3
}

@test "in place, with the lease" {
	fault_all rv-ledger-repair --wait 2s l.jsonl
}

@test "by an append, while somebody has it open" {
	reader=yes
	fault_all rv-ledger-repair --wait 40ms l.jsonl
}

@test "two lines that were torn with the same bytes" {
	# Killed only: the calls are those of above, and what fails by them is.
	sign=l.jsonl.repair-lock fragments=2 rows='good glued' kills=1
	fault_all rv-ledger-repair --wait 2s l.jsonl
}

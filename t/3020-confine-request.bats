# rv-confine: requests, pins, and the order of decision: the first hit wins, and nothing is touched before it is due.
load helper
load confine

setup() {
	script main.sh <<<'echo out; echo err >&2; exit 3'
	mkdir -p in root
	chmod 700 root
}

pinned() {
	rv-confine --root "$PWD/root" --runtime "$SH" --program prog --entry main.sh --input in --pins pins "$@" >result 2>stderr
}

@test "a pinned run is observed and attributable, with every member that the seed names" {
	echo data >in/d.txt
	pins_for "$SH" linux/1
	pinned
	holds "$GOOD" 'out == b"out\n" and err == b"err\n"' 'p["exit"] == {"code": 3, "signal": None}' \
		'list(r) == ["status", "attributable", "problems", "identities", "process", "namespace"]' \
		'list(r["identities"]) == ["program", "input", "runtime", "profile", "bounds", "pinned"]' \
		'r["identities"]["pinned"] is True' 'r["identities"]["runtime"]["verified"] == "digest"' \
		'r["identities"]["runtime"]["proven"] is False' 'r["identities"]["runtime"]["path"] == "/bin/sh"' \
		'set(r["identities"]["profile"]) == {"name", "digest", "instantiated", "landlockAbi"}' \
		'r["identities"]["program"]["entry"] == "main.sh" and r["identities"]["program"]["args"] == []' \
		'list(p) == ["pid", "admission", "limits", "exit", "pipesClosed", "stopped", "killSent", "stdoutBase64", "stderrBase64", "outputBytes", "durationMs"]' \
		'p["admission"] == "admitted" and p["pipesClosed"] and p["stopped"] is None and not p["killSent"]' \
		'p["outputBytes"] == 8 and p["pid"] > 1'
	for name in runtime profile program input; do
		rv_equal "$(jq -r ".$name" pins)" "$(jq -r ".identities.$name.digest" result)" "$name"
	done
	root_is_empty
}

@test "twice the same are the same identities, and what was applied has the same digest" {
	pins_for "$SH" linux/1
	pinned
	jq -c .identities result >one
	pinned
	rv_equal "$(cat one)" "$(jq -c .identities result)"
	run_sh main.sh
	rv_equal "$(jq -c 'del(.pinned)' one)" "$(jq -c '.identities | del(.pinned)' result)"
	holds "$GOOD" 'r["identities"]["pinned"] is False'
}

@test "raw output goes to files too" {
	run_sh main.sh --stdout o --stderr e
	rv_equal out "$(cat o)"
	rv_equal err "$(cat e)"
	holds 'out == b"out\n"'
	rv_fails 5 confine --runtime "$SH" --entry main.sh --stdout /dev/full
}

@test "without --root a private one is made and removed" {
	mkdir tmp
	TMPDIR=$PWD/tmp rv-confine --runtime "$SH" --program prog --entry main.sh --unpinned >result 2>stderr
	holds "$GOOD"
	rv_equal '' "$(ls -A tmp)"
}

@test "each invalid request from options is exit 2 before anything is touched" {
	base=(rv-confine --root "$PWD/root" --program prog --input in --unpinned)
	invalid "${base[@]}" --runtime "$SH" --entry nowhere.sh
	invalid "${base[@]}" --runtime /bin/../bin/sh --entry main.sh
	invalid "${base[@]}" --runtime "$SH" --entry main.sh --timeout 2h
	invalid "${base[@]}" --runtime "$SH" --entry main.sh --timeout 0ms
	invalid "${base[@]}" --runtime "$SH" --entry main.sh --max-output 0
	invalid "${base[@]}" --runtime "$SH" --entry main.sh --max-output 65MiB
	invalid "${base[@]}" --runtime "$SH" --entry main.sh --max-data 1KiB
	invalid "${base[@]}" --runtime "$SH" --entry main.sh --max-memory 1KiB
	invalid "${base[@]}" --runtime "$SH" --entry main.sh --max-memory 0
	invalid "${base[@]}" --runtime "$SH" --entry main.sh --runtime-tree "$PWD/root"
	invalid "${base[@]}" --runtime "$SH" --entry main.sh --runtime-tree "$PWD"
	invalid "${base[@]}" --runtime "$SH" --entry main.sh -- $'\377'
	invalid "${base[@]}" --runtime "$SH" --entry main.sh -- $(seq 300)
	ln -s "$(command -v node || echo /bin/sh)" node
	invalid "${base[@]}" --runtime "$PWD/node" --entry main.sh
	ln -s main.sh prog/link
	invalid "${base[@]}" --runtime "$SH" --entry main.sh
	rm prog/link
	pins_for "$SH" linux/1
	for name in program input; do
		jq -c ".$name = \"sha256:$(printf '0%.0s' {1..64})\"" pins >bad
		invalid rv-confine --root "$PWD/root" --runtime "$SH" --program prog --entry main.sh --input in --pins bad
		grep -q "$name.digest" stderr
	done
	for change in 'del(.input)' '.more = 1' '.runtime = "sha256:0"' '.runtime |= ascii_upcase' '.input = null'; do
		jq -c "$change" pins >bad
		invalid rv-confine --root "$PWD/root" --runtime "$SH" --program prog --entry main.sh --input in --pins bad
	done
	sed 's/}$/,"input":"x"}/' pins >bad
	invalid rv-confine --root "$PWD/root" --runtime "$SH" --program prog --entry main.sh --input in --pins bad
	for usage in '--max-descriptors 15' '--max-descriptors 901' '--cpu-seconds 0' '--cpu-seconds 3601' '--timeout 10' \
		'--profile linux/2' '--max-retained 0' '--max-retained 65' '--jobs 2' '--verify identity' '--pins pins'; do
		# shellcheck disable=SC2086
		rv_fails 2 "${base[@]}" --runtime "$SH" --entry main.sh $usage >out 2>err || rv_die "$usage"
		[ ! -s out ]
	done
	root_is_empty
}

@test "a root's name is checked by its text; the root itself by every run" {
	for bad in root "$PWD/root/" "$PWD//root" "$PWD/./root" "$PWD/ro ot" "$PWD/a:b" ''; do
		rv_fails 2 rv-confine --root "$bad" --runtime "$SH" --program prog --entry main.sh --unpinned >out 2>err || rv_die "$bad"
	done
	for mode in 755 770 701; do
		chmod $mode root
		rv_fails 3 rv-confine --root "$PWD/root" --runtime "$SH" --program prog --entry main.sh --unpinned >result 2>stderr
		holds 'r["status"] == "not-started" and r["reason"] == "setup-failed" and r["namespace"] is None'
	done
	chmod 700 root
	ln -s root alias
	rv_fails 3 rv-confine --root "$PWD/alias" --runtime "$SH" --program prog --entry main.sh --unpinned >result 2>stderr
	holds 'r["reason"] == "setup-failed" and r["namespace"] is None'
	rv_fails 3 rv-confine --root "$PWD/nowhere" --runtime "$SH" --program prog --entry main.sh --unpinned >result 2>stderr
	holds 'r["reason"] == "setup-failed" and r["namespace"] is None'
	[ "$(id -u)" -ne 0 ] || {
		mkdir -m 700 other
		chown "$RV_USER" other
		rv_fails 3 rv-confine --root "$PWD/other" --runtime "$SH" --program prog --entry main.sh --unpinned >result 2>stderr
		holds 'r["reason"] == "setup-failed"'
	}
	root_is_empty
}

# stream_refuses FILTER...: each changed request is answered as invalid, exit 2, and the root stays as it is.
stream_refuses() {
	local filter

	for filter; do
		request "$filter" >line
		rv_fails 2 rv-confine --stream --root "$PWD/root" <line >result 2>stderr || rv_die "not refused: $filter: $(cat result)" || return
		holds 'r["line"] == 1 and r["ok"] is False and r["error"]["code"] == "request"' \
			'r["error"]["message"].startswith("invalid confined run request: ")' || rv_die "$filter" || return
	done
	root_is_empty
}

@test "a request of a stream: every member is known, present and of its type" {
	pins_for "$SH" linux/1
	request | rv-confine --stream --root "$PWD/root" >result 2>stderr
	holds "$GOOD"
	for name in runtime profile program input timeoutMs maxOutputBytes cpuSeconds maxDescriptors; do
		stream_refuses "del(.$name)" ".$name = null" ".$name = []"
	done
	stream_refuses '.more = 1' '.runtime.more = 1' '.profile.more = 1' '.program.more = 1' '.input.more = 1' 'del(.runtime.path)' \
		'del(.runtime.digest)' 'del(.profile.digest)' 'del(.program.entry)' 'del(.program.args)' 'del(.program.digest)' \
		'del(.program.dir)' '.program.files = []' '.program.archive = "x"' '.input.entry = "x"' '.timeoutMs = 0' \
		'.timeoutMs = 3600001' '.timeoutMs = 1.5' '.timeoutMs = "1"' '.maxOutputBytes = 0' '.maxOutputBytes = 67108865' \
		'.cpuSeconds = 3601' '.maxDescriptors = 15' '.maxDescriptors = 901' '.maxDataBytes = 1' '.maxMemoryBytes = 0' \
		'.profile.name = "linux/9"' '.profile.name = 1' '.program.args = [1]' '.program.args = ["a\u0000b"]' \
		'.program.entry = "main.sh\u0000"' '.runtime.path = "sh"' '.runtime.path = "/bin//sh"' '.runtime.trees = "x"' \
		'.runtime.trees = ["/"]' '.runtime.digest = "sha256:x"' '.program.digest |= ascii_upcase' \
		'.program.digest = .input.digest' '.program.dir = 1' '.id = {}' '.id = []'
	printf '{' >line
	rv_fails 2 rv-confine --stream --root "$PWD/root" <line >result 2>stderr
	request | sed 's/}$/,"timeoutMs":1,"id":"dup"}/' >line
	rv_fails 2 rv-confine --stream --root "$PWD/root" <line >result 2>stderr
	holds 'r["id"] == "dup"'
	root_is_empty
}

@test "files in the request itself, with the same rules as any snapshot" {
	pins_for "$SH" linux/1
	inline='del(.program.dir) | .program.files = [{path: "main.sh", contentBase64: "'$(base64 -w0 prog/main.sh)'"}]'
	request "$inline" | rv-confine --stream --root "$PWD/root" >result 2>stderr
	holds "$GOOD" 'out == b"out\n"'
	stream_refuses "$inline | .program.files += .program.files" "$inline | .program.files[0].path = \"../main.sh\"" \
		"$inline | .program.files[0].path = \"/main.sh\"" "$inline | .program.files[0].contentBase64 += \"!\"" \
		"$inline | .program.files[0].contentBase64 = \"YQ\"" "$inline | .program.files[0].mode = 1" \
		"$inline | .program.files[0].contentBase64 = \"\""
}

# not_started_with REASON COMMAND...: exit 3, and that reason.
not_started_with() {
	local reason=$1

	shift
	rv_fails 3 "$@" >result 2>stderr || { cat stderr >&2; return 1; }
	holds 'list(r) == ["status", "reason", "message", "namespace"]' 'r["status"] == "not-started"' "r[\"reason\"] == \"$reason\""
}

# The same, and no slot was made.
not_started() {
	not_started_with "$@" || return
	holds 'r["namespace"] is None'
}

@test "the order of decision: invalid, profile, runtime, root, count; a later fault never shows before an earlier one" {
	pins_for "$SH" linux/1
	zero=sha256:$(printf '0%.0s' {1..64})
	chmod 755 root # a root that will be refused
	jq -c ".profile = \"$zero\" | .runtime = \"$zero\" | .input = \"$zero\"" pins >all
	jq -c ".profile = \"$zero\" | .runtime = \"$zero\"" pins >both
	jq -c ".runtime = \"$zero\"" pins >runtime
	one=(rv-confine --root "$PWD/root" --runtime "$SH" --program prog --entry main.sh --input in)
	invalid "${one[@]}" --pins all
	not_started profile-mismatch "${one[@]}" --pins both
	not_started runtime-mismatch "${one[@]}" --pins runtime
	not_started setup-failed "${one[@]}" --pins pins
	chmod 700 root
	mkdir root/foreign
	not_started retained-limit "${one[@]}" --pins pins --max-retained 1
	grep -q 'never reclaimed' result
	rmdir root/foreign
	"${one[@]}" --pins pins >result 2>stderr
	holds "$GOOD"
	# A runtime that cannot be described is no match for any pin.
	cp "$SH" gone
	pins_for "$PWD/gone" linux/1
	rm gone
	not_started runtime-mismatch rv-confine --root "$PWD/root" --runtime "$PWD/gone" --program prog --entry main.sh --input in --pins pins
	grep -q 'cannot be verified' result
	root_is_empty
}

@test "the order of decision goes on: host before profile, snapshot-mismatch before aborted, setup-failed for the spawn alone" {
	rv_need strace
	pins_for "$SH" linux/1
	jq -c ".profile = \"sha256:$(printf '0%.0s' {1..64})\"" pins >other
	one=(rv-confine --root "$PWD/root" --runtime "$SH" --program prog --entry main.sh --input in)
	not_started unsupported-host strace -f -o /dev/null -e trace=landlock_restrict_self -e inject=landlock_restrict_self:error=EPERM \
		"${one[@]}" --pins other
	# The runtime is read meanwhile, and decides nothing: one that is not there is no reason yet.
	not_started unsupported-host strace -f -o /dev/null -e trace=landlock_restrict_self -e inject=landlock_restrict_self:error=EPERM \
		rv-confine --root "$PWD/root" --runtime "$PWD/nowhere" --program prog --entry main.sh --input in --unpinned
	not_started profile-mismatch rv-confine --root "$PWD/root" --runtime "$PWD/nowhere" --program prog --entry main.sh --input in --pins other
	root_is_empty
	# The rehearsal is a clone, the run a clone3; and so is the thread of the rehearsal, which does without.
	not_started_with setup-failed strace -f -o /dev/null -e trace=clone3 -e inject=clone3:error=EAGAIN "${one[@]}" --pins pins
	holds 'r["namespace"] == {"state": "removed", "durable": True}'
	root_is_empty
	on_event materialised <<<'touch $namespace/more; kill -TERM $PPID'
	not_started_with snapshot-mismatch "${one[@]}" --pins pins --on-event "$PWD/hook"
	holds 'r["namespace"]["state"] == "quarantined"'
	rm -r root/slot-0
	# All slots, but one that is none of this program's, are taken behind the count: before any snapshot is looked at.
	on_event counted <<<"mkdir -m 700 $PWD/root/slot-0; kill -TERM \$PPID"
	not_started retained-limit "${one[@]}" --pins pins --max-retained 1 --on-event "$PWD/hook"
}

@test "cancelled before anything was done is aborted, before every other reason" {
	pins_for "$SH" linux/1
	chmod 755 root
	# Signals that wait already when the program begins: blocked across the exec by its parent.
	code=0
	perl -e 'use POSIX; my $set = POSIX::SigSet->new(SIGTERM); sigprocmask(SIG_BLOCK, $set); kill "TERM", $$; exec @ARGV' \
		rv-confine --root "$PWD/root" --runtime "$SH" --program prog --entry main.sh --input in --pins pins >result 2>stderr || code=$?
	rv_equal 3 "$code"
	holds 'r["reason"] == "aborted" and r["namespace"] is None'
}

@test "an unwritable standard output is exit 5" {
	rv_need full
	rv_fails 5 confine --runtime "$SH" --entry main.sh >/dev/full 2>stderr
	root_is_empty
}

# rv-confine: the thirteen invariants of the confined executor, by name, and what a run has inside.
load helper
load confine

setup() {
	mkdir -p prog in root
	chmod 700 root
}

@test "invariant 1, validate first: an invalid request touches nothing, and contents are copied before anything runs" {
	script main.sh <<<'cat() { while read -r l; do echo "$l"; done; }; cat <data'
	echo first >in/data
	# The source changes after it was read: the run sees what was digested.
	on_event counted <<<"echo second >$PWD/in/data"
	run_sh main.sh --on-event "$PWD/hook"
	holds "$GOOD" 'out == b"first\n"'
	invalid confine --runtime "$SH" --entry nowhere --on-event "touch $PWD/touched"
	[ ! -e touched ]
	root_is_empty
}

@test "invariant 2, no fallback: an aliased or shared root, a mismatch of profile or runtime creates nothing" {
	script main.sh <<<':'
	chmod 750 root
	rv_fails 3 rv-confine --root "$PWD/root" --runtime "$SH" --program prog --entry main.sh --unpinned >result 2>stderr
	holds 'r["reason"] == "setup-failed" and r["namespace"] is None'
	root_is_empty
	chmod 700 root
	ln -s root alias
	rv_fails 3 rv-confine --root "$PWD/alias" --runtime "$SH" --program prog --entry main.sh --unpinned >result 2>stderr
	holds 'r["reason"] == "setup-failed" and r["namespace"] is None'
	root_is_empty
	pins_for "$SH" linux/1
	for pin in profile runtime; do
		jq -c ".$pin = \"sha256:$(printf '0%.0s' {1..64})\"" pins >other
		rv_fails 3 rv-confine --root "$PWD/root" --runtime "$SH" --program prog --input in --entry main.sh --pins other >result 2>stderr
		holds "r['reason'] == '$pin-mismatch' and r['namespace'] is None"
		root_is_empty
	done
}

@test "invariant 3, capacity: foreign and leftover entries count, slots are claimed exclusively" {
	script main.sh <<<':'
	touch root/foreign
	rv_fails 3 confine --runtime "$SH" --entry main.sh --max-retained 1 >result 2>stderr
	holds 'r["reason"] == "retained-limit" and r["namespace"] is None'
	run_sh main.sh --max-retained 2
	holds "$GOOD"
	rm root/foreign
	# A slot that is claimed after the count refuses the run.
	on_event counted <<<"mkdir -m 700 $PWD/root/slot-0"
	rv_fails 3 confine --runtime "$SH" --entry main.sh --max-retained 1 --on-event "$PWD/hook" >result 2>stderr
	holds 'r["reason"] == "retained-limit"' '"every slot is taken" in r["message"]'
	rv_equal slot-0 "$(ls root)" 'and it is left as it is'
}

@test "invariant 3: two controllers that both counted an empty root cannot both run with one slot" {
	script main.sh <<<'echo ran'
	mkfifo gate
	on_event counted <<<"exec 3<>$PWD/turn; echo x >&3; read -r l <$PWD/gate"
	mkfifo turn
	for i in 1 2; do
		rv-confine --root "$PWD/root" --runtime "$SH" --program prog --input in --unpinned --entry main.sh --max-retained 1 \
			--on-event "$PWD/hook" >"result.$i" 2>"stderr.$i" &
	done
	exec 4<>turn
	read -r l <&4
	read -r l <&4
	exec 5<>gate
	printf 'x\nx\n' >&5
	wait
	exec 4>&- 5>&-
	rv_equal $'not-started\nobserved' "$(jq -r .status result.1 result.2 | sort)"
}

@test "invariant 4, pre-launch integrity: every change between the check and the launch is a snapshot-mismatch, quarantined" {
	script main.sh <<<'echo ran'
	script lib/a.sh <<<':'
	n=0
	while read -r change; do
		on_event materialised <<<"cd \$namespace && $change"
		run_sh main.sh --on-event "$PWD/hook"
		rv_equal 3 "$status" "$change"
		holds 'r["reason"] == "snapshot-mismatch"' 'r["namespace"]["state"] == "quarantined"' \
			"r[\"namespace\"][\"path\"] == \"$PWD/root/slot-0\"" || rv_die "$change" || return
		[ -d root/slot-0 ] || rv_die "not kept: $change" || return
		chmod -R u+w root
		rm -rf root/slot-0
		n=$((n + 1))
	done <<'CHANGES'
chmod u+w program/main.sh; echo x >>program/main.sh
chmod u+w program/main.sh; echo 'echo bad' >program/main.sh
cp program/main.sh x; rm -f program/main.sh; mv x program/main.sh
ln program/main.sh program/other
ln program/main.sh ../hard; true
touch program/more
touch input/more
touch more
rm -f program/lib/a.sh
rm -f program/lib/a.sh; ln -s ../main.sh program/lib/a.sh
mv program/lib program/x; mkdir -m 700 program/lib; mv program/x/a.sh program/lib; rmdir program/x
mv program/lib ../lib; ln -s ../../lib program/lib
chmod 755 program
chmod 710 program/lib
rm -f canary
mkdir home/x
CHANGES
	rv_equal 16 "$n"
}

@test "invariant 4: a change of a file's mode alone is not detected, as the page says" {
	script main.sh <<<'echo ran'
	on_event materialised <<<'chmod 444 $namespace/program/main.sh'
	run_sh main.sh --on-event "$PWD/hook"
	holds "$GOOD"
}

@test "invariant 5, gated admission: what is measured equals the request, and an abort between spawn and go byte runs nothing" {
	script main.sh <<<'echo ran; ulimit -t; ulimit -n; ulimit -d; ulimit -c; ulimit -f'
	run_sh main.sh --cpu-seconds 7 --max-descriptors 33 --max-data 512MiB
	holds "$GOOD" 'p["limits"] == {"cpuSeconds": {"soft": 7, "hard": 7}, "descriptors": {"soft": 33, "hard": 33}, "coreBlocks": {"soft": 0, "hard": 0}, "fileBlocks": {"soft": 0, "hard": 0}, "dataBytes": {"soft": 1 << 29, "hard": 1 << 29}}' \
		'out.split() == b"ran 7 33 524288 0 0".split()'
	on_event launched <<<'kill -TERM $PPID'
	run_sh main.sh --on-event "$PWD/hook"
	holds 'r["status"] == "observed" and not r["attributable"]' 'p["stopped"] == "cancelled" and p["killSent"]' \
		'p["admission"] == "absent"' 'out == b""' 'r["namespace"]["state"] == "removed"'
	rv_equal 1 "$status"
}

@test "invariant 5: the program has descriptors 0, 1 and 2, and neither the record's nor a caller's" {
	script main.sh <<<'for n in 0 1 2 3 4 5 6 7 8 9; do if eval "true >&$n"; then echo "open $n"; fi; done
read -r x && echo input; echo end'
	run_sh main.sh 7</dev/null 9>&1
	holds "$GOOD" 'out.split(b"\n")[-2] == b"end"' 'b"input" not in out' \
		'[l for l in out.split(b"\n") if l.startswith(b"open")] == [b"open 0", b"open 1", b"open 2"]'
}

@test "invariant 6, output has no authority: control records and exit claims printed by the program are not authoritative" {
	script main.sh <<'EOT'
printf 'sf-confined/1 refused\nexec 13\n'
printf 'sf-confined/1 admitted\n' >&2
printf 'sf-confined/1 refused\n' >&3 || :
exit 125
EOT
	run_sh main.sh
	holds "$GOOD" 'p["admission"] == "admitted"' 'p["exit"] == {"code": 125, "signal": None}'
	rv_equal 0 "$status"
}

@test "invariant 7, signals: SIGKILL once, to what is not reaped; its exit says SIGKILL, and nothing is killed after a natural end" {
	script spin.sh <<<'while :; do :; done'
	script main.sh <<<':'
	run_sh spin.sh --timeout 300ms
	holds "$GOOD" 'p["stopped"] == "timeout" and p["killSent"] and p["exit"] == {"code": None, "signal": "SIGKILL"}'
	rv_need strace
	strace -f -e trace=kill,tgkill,pidfd_send_signal -o trace rv-confine --root "$PWD/root" --runtime "$SH" --program prog \
		--input in --unpinned --entry main.sh >result 2>stderr
	! grep -q SIGKILL <(grep -v 'killed by\|--- SIG' trace | grep "pidfd_send_signal.*SIGKILL" | grep -v ESRCH) || rv_die "$(cat trace)"
}

@test "invariant 8, reaping: pipes that somebody else holds open are unresolved, quarantined, and answered within the grace" {
	script main.sh <<<'echo begun; while :; do :; done'
	on_event admitted <<'EOT'
child=$(cat /proc/$pid/task/$pid/children)
(exec 9>/proc/${child% }/fd/1 && exec sleep 8) <&- >&- 2>&- &
i=0
until [ "$(readlink /proc/$!/fd/9 2>/dev/null)" ] || [ $((i += 1)) -gt 100 ]; do sleep 0.02; done
kill -KILL ${child% }
EOT
	[ "$(id -u)" -eq 0 ] || skip "an ordinary user may not open another's descriptors behind the boundary"
	run_sh main.sh --on-event "$PWD/hook"
	rv_equal 4 "$status"
	holds 'r["status"] == "unresolved" and "attributable" not in r' 'p["exit"]["signal"] == "SIGKILL" and not p["pipesClosed"]' \
		'r["namespace"]["state"] == "quarantined"' 'p["durationMs"] < 7000' 'any("pipes" in t for t in r["problems"])'
	[ -d root/slot-0/program ]
}

@test "invariant 9, attribution: a failing program is an admitted, attributable failure; a change after the run is not" {
	script bad.sh <<<'if then'
	run_sh bad.sh
	holds "$GOOD" 'p["exit"]["code"] == 2'
	script main.sh <<<'echo ran'
	on_event collected <<<'touch $namespace/input/more'
	run_sh main.sh --on-event "$PWD/hook"
	rv_equal 1 "$status"
	holds 'r["status"] == "observed" and not r["attributable"]' 'r["problems"][0].startswith("namespace changed")' \
		'r["namespace"]["state"] == "quarantined"' 'out == b"ran\n"'
	rm -rf root/slot-0
	# The runtime alone: its bytes are others after the run, the slot is still removed.
	cp "$SH" rt
	on_event collected <<<"printf x >>$PWD/rt"
	status=0
	confine --runtime "$PWD/rt" --entry main.sh --on-event "$PWD/hook" >result 2>stderr || status=$?
	rv_equal 1 "$status"
	holds 'r["problems"] == ["runtime changed during the run"]' 'r["namespace"]["state"] == "removed"'
	root_is_empty
}

@test "invariant 10, output bounds: exactly the limit is kept over both streams, everything is counted, the first stop stays" {
	script exact.sh <<<'printf 12345; printf 12345 >&2'
	run_sh exact.sh --max-output 10
	holds "$GOOD" 'p["stopped"] is None and p["outputBytes"] == 10 and len(out) + len(err) == 10'
	run_sh exact.sh --max-output 9
	holds 'r["status"] == "observed" and p["outputBytes"] == 10 and len(out) + len(err) == 9'
	script flood.sh <<<'while :; do echo 0123456789; done'
	run_sh flood.sh --max-output 1000
	holds "$GOOD" 'p["stopped"] == "output-limit" and p["outputBytes"] > 1000 and len(out) == 1000'
}

@test "invariant 11, isolation inputs: exactly five variables, the input as the working directory, end of file on stdin" {
	script main.sh <<<'set; pwd; read -r x || echo "eof"'
	run_sh main.sh <<<'from the caller'
	holds "$GOOD" 'out.endswith(b"/input\neof\n")' \
		'{l.split(b"=")[0] for l in out.split(b"\n") if b"=" in l} - {b"IFS", b"OPTIND", b"PPID", b"PS1", b"PS2", b"PS4", b"PWD", b"PATH", b"_"} == {b"LC_ALL", b"TZ", b"HOME", b"TMPDIR", b"OPENSSL_CONF"}' \
		'b"LC_ALL=" in out and b"HOME=" in out'
}

@test "invariant 12, cleanup: only what was made is removed, and a surprise stops it" {
	script main.sh <<<'echo ran'
	run_sh main.sh
	holds "$GOOD"
	root_is_empty
	echo precious >file
	on_event collected <<<"ln -s $PWD/file \$namespace/home/link"
	run_sh main.sh --on-event "$PWD/hook"
	holds 'r["namespace"]["state"] == "quarantined"'
	rv_equal precious "$(cat file)"
	[ -f root/slot-0/program/main.sh ] || rv_die "something was removed"
}

@test "invariant 13, a settled result: one line, whole, that does not change with what is left behind" {
	script main.sh <<<'echo ran'
	run_sh main.sh
	rv_equal 1 "$(wc -l <result)"
	jq -e . result >/dev/null
}

@test "what a caller may hand on in its own process changes nothing: SIGCHLD ignored, a umask that takes all" {
	script main.sh <<<'echo ran; exit 3'
	chmod 700 root
	on_event collected <<<"echo \$namespace >$PWD/events"
	run() { env --ignore-signal=CHLD rv-confine --root "$PWD/root" --runtime "$SH" --program prog --input in --unpinned --entry main.sh "$@"; }
	: >result
	: >stderr
	(umask 0777 && run --on-event "$PWD/hook" >result 2>stderr)
	holds "$GOOD" 'out == b"ran\n" and p["exit"]["code"] == 3'
	[ ! -s stderr ] || rv_die "$(cat stderr)"
	root_is_empty
	rv-confine --probe >probed || true
	env --ignore-signal=CHLD rv-confine --probe >ignored || true
	rv_equal "$(cat probed)" "$(cat ignored)"
}

@test "a file of the output that cannot be written takes no result along" {
	script main.sh <<<'echo ran'
	run_sh main.sh --stdout "$PWD/nowhere/out"
	rv_equal 5 "$status"
	grep -q nowhere/out stderr
	holds "$GOOD" 'out == b"ran\n"'
}

# Hostile tools, and ordinary ones before, beside and behind each of them: the checks hostile.* of rv-conform.
load helper
load conform

@test "a hundred hostile tools, each in a stream of its own, and all in one" {
	rv_need userns
	mkdir tmp
	TMPDIR=$PWD/tmp rv-conform --only 'hostile.*' --strict-skips --format jsonl >out.jsonl || { grep '"status":"fail"' out.jsonl; false; }
	[ "$(ids pass out.jsonl | wc -l)" -eq "$(rv-conform --list --only 'hostile.*' | wc -l)" ]
	[ "$(ids pass out.jsonl | wc -l)" -ge 100 ]
	rv_equal '' "$(ls -A tmp)"
}

# All of them: scripts/soak hostile.
@test "where PID namespaces are forbidden: all in one stream, a few alone, and what is not let loose is named" {
	rv_need userns
	unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces' 2>/dev/null || {
		[ "${RV_MUST_WORK:-}" != 1 ] || rv_die "user.max_pid_namespaces cannot be set and RV_MUST_WORK=1" || return
		skip "user.max_pid_namespaces cannot be set here"
	}
	mapfile -t some < <(rv-conform --list --only 'hostile.*' | awk -F '\t' 'NR <= 2 || NR % 8 == 0 { print "--only\n" $2 }')
	unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces && exec "$@"' sh \
		"$RV_BIN/rv-conform" "${some[@]}" --only 'hostile.kill-*' --format jsonl >out.jsonl || { grep '"status":"fail"' out.jsonl; false; }
	[ "$(ids pass out.jsonl | wc -l)" -ge 12 ]
	ids pass out.jsonl | grep -q '^hostile.together$'
	rv_equal 'hostile.containment hostile.kill-all hostile.kill-fast hostile.kill-shell' "$(ids skip out.jsonl | grep -e kill -e containment | sort | paste -s -d ' ')"
	[ "$(grep -c '"status":"skip".*subreaper' out.jsonl)" -eq "$(ids skip out.jsonl | wc -l)" ]
}

@test "a stream of 1,500 grows by nothing, and a killed one leaves what was in flight and no more" {
	rv_need python3
	TMPDIR=$PWD "$RV_SRC/t/hostile/long" --bin "$RV_BIN" --jobs 4 stream:1500
	TMPDIR=$PWD "$RV_SRC/t/hostile/long" --bin "$RV_BIN" --jobs 8 kill:6
	rv_equal '' "$(ls -d rv-long.* 2>/dev/null)"
}

# rv-confine on hosts that forbid things: no fallback, and a reason with its remedy.
load helper
load confine

setup() {
	script main.sh <<<'echo ran'
	mkdir -p in root
	chmod 700 root
}

# unsupported PROFILE COMMAND...: not started, unsupported-host, a remedy, nothing created.
unsupported() {
	local profile=$1

	shift
	rv_fails 3 "$@" rv-confine --root "$PWD/root" --profile "$profile" --runtime "$SH" --program prog --input in --unpinned \
		--entry main.sh >result 2>stderr || { cat result stderr >&2; return 1; }
	holds 'r["status"] == "not-started" and r["reason"] == "unsupported-host" and r["namespace"] is None' \
		'"remedy" in r["message"]' || return
	root_is_empty
}

@test "--probe finds out by doing: a line a facility, and what this host can" {
	rv-confine --probe >result
	holds '{q["name"] for q in results} >= {"linux/1", "linux/1+proc", "landlock/1", "landlock", "user-namespace"}' \
		'all(set(q) == {"name", "ok", "why", "remedy"} for q in results)' 'all(q["ok"] for q in results if q["name"] == "linux/1")'
}

@test "user namespaces forbidden (max_user_namespaces 0): linux/1 is unsupported, landlock/1 runs" {
	rv_need userns
	mkdir bin # the launcher must belong to the caller also in the namespace of this test
	cp "$RV_BIN/rv-confine" bin/
	PATH=$PWD/bin:$PATH
	forbid=(unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' -)
	"${forbid[@]}" true || skip "the limit cannot be set in here"
	unsupported linux/1 "${forbid[@]}"
	unsupported linux/1+proc "${forbid[@]}"
	rv_fails 5 "${forbid[@]}" rv-confine --probe >result
	holds '[q for q in results if q["name"] == "user-namespace"][0]["remedy"] != ""'
	"${forbid[@]}" rv-confine --root "$PWD/root" --profile landlock/1 --runtime "$SH" --program prog --input in --unpinned \
		--entry main.sh >result 2>stderr
	holds "$GOOD" 'out == b"ran\n"' 'r["identities"]["profile"]["name"] == "landlock/1"'
}

# with_error CALL ERRNO COMMAND...: every such system call of the program and its children fails so.
with_error() {
	strace -f -o /dev/null -e trace="$1" -e inject="$1:error=$2" "${@:3}"
}

@test "mounts forbidden, and namespaces by the container's filter: unsupported-host" {
	rv_need strace
	unsupported linux/1 with_error move_mount EPERM
	unsupported linux/1 with_error pivot_root EPERM
	unsupported linux/1 with_error open_tree ENOSYS
	unsupported linux/1 with_error clone3,clone EPERM
}

@test "Landlock off: no profile can be had" {
	rv_need strace
	for profile in linux/1 landlock/1; do
		unsupported $profile with_error landlock_create_ruleset EOPNOTSUPP
	done
	unsupported linux/1 with_error landlock_restrict_self EPERM
}

@test "seccomp off: no profile can be had" {
	rv_need strace
	unsupported linux/1 with_error seccomp,prctl EINVAL
}

@test "clone3 answered ENOSYS, as Docker's filter does: clone is used, and it runs" {
	rv_need strace
	with_error clone3 ENOSYS rv-confine --root "$PWD/root" --runtime "$SH" --program prog --input in --unpinned --entry main.sh \
		>result 2>stderr
	holds "$GOOD" 'out == b"ran\n"'
}

@test "as an ordinary user with a root of its own" {
	rv_need user
	dir=$(rv_user_dir)
	mkdir "$dir/root" "$dir/in"
	cp -r prog "$dir/"
	chmod 700 "$dir/root"
	[ "$(id -u)" -ne 0 ] || chown -R "$RV_USER" "$dir"
	cd "$dir"
	for profile in linux/1 linux/1+proc landlock/1; do
		rv_as_user "$dir/bin/rv-confine" --root "$dir/root" --profile $profile --runtime "$SH" --program prog --input in --unpinned \
			--entry main.sh >"$BATS_TEST_TMPDIR/result" 2>"$BATS_TEST_TMPDIR/stderr"
		(cd "$BATS_TEST_TMPDIR" && holds "$GOOD" 'out == b"ran\n"')
	done
	rv_equal '' "$(ls -A root)"
}

@test "whatever the caller has open, and in a stream beside others: the host is tried without it" {
	script main.sh <<<'echo ran'
	for profile in linux/1 landlock/1; do
		[ $profile = landlock/1 ] || rv_need userns
		status=0
		bash -c 'for i in {3..120}; do eval "exec $i</dev/null"; done; exec "$@"' - \
			rv-confine --root "$PWD/root" --program prog --input in --unpinned --runtime "$SH" --entry main.sh --profile $profile >result 2>stderr || status=$?
		holds "$GOOD" 'out == b"ran\n"' || rv_die "$profile"
	done
}

@test "limits of the caller's own that are too low: unsupported-host, which ones, and nothing is written" {
	script main.sh <<<'echo ran'
	status=0
	(ulimit -n 1000 && exec rv-confine --root "$PWD/root" --program prog --input in --unpinned --runtime "$SH" --entry main.sh --profile landlock/1) >result 2>stderr || status=$?
	rv_equal 3 "$status"
	holds 'r["reason"] == "unsupported-host" and r["namespace"] is None' '"ulimit -Hn" in r["message"] and "1000" in r["message"]'
	root_is_empty
	(ulimit -n 1001 && exec rv-confine --root "$PWD/root" --program prog --input in --unpinned --runtime "$SH" --entry main.sh --profile landlock/1) >result 2>stderr
	holds "$GOOD"
	status=0
	(ulimit -t 20 && exec rv-confine --root "$PWD/root" --program prog --input in --unpinned --runtime "$SH" --entry main.sh --profile landlock/1) >result 2>stderr || status=$?
	rv_equal 3 "$status"
	holds 'r["reason"] == "unsupported-host" and r["namespace"] is None' '"ulimit -H" in r["message"]'
	root_is_empty
}

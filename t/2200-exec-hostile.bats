# Hostile tools, and ordinary ones beside and behind each of them: what t/hostile/run holds the stream to.
load helper

hostile() {
	TMPDIR=$PWD "$RV_SRC/t/hostile/run" --bin "$RV_BIN" --trick "$RV_BIN/t/hostile/trick" "$@" >seen 2>&1 || { cat seen; return 1; }
	rv_equal '' "$(ls -d rv-hostile.* 2>/dev/null)"
}

@test "a hundred hostile tools in one stream" {
	rv_need python3 userns
	hostile
	[ "$("$RV_SRC/t/hostile/run" --list | wc -l)" -ge 100 ]
}

# All of them: scripts/soak hostile.
@test "where PID namespaces are forbidden: a third of those that need none" {
	rv_need python3 userns
	unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces' 2>/dev/null || {
		[ "${RV_MUST_WORK:-}" != 1 ] || rv_die "user.max_pid_namespaces cannot be set and RV_MUST_WORK=1" || return
		skip "user.max_pid_namespaces cannot be set here"
	}
	hostile --subreaper --every 3
}

@test "a stream of 1,500 grows by nothing, and a killed one leaves what was in flight and no more" {
	rv_need python3
	TMPDIR=$PWD "$RV_SRC/t/hostile/long" --bin "$RV_BIN" --jobs 4 stream:1500
	TMPDIR=$PWD "$RV_SRC/t/hostile/long" --bin "$RV_BIN" --jobs 8 kill:6
	rv_equal '' "$(ls -d rv-long.* 2>/dev/null)"
}

@test "the battery sees what is left, what is late and what is wrong" {
	rv_need python3 userns
	mkdir bin
	cp "$RV_BIN/rv-ledger-scan" bin/
	broken() { # broken EXPECTED PYTHON: an rv-exec whose replies and surroundings are changed
		printf '%s\n' "#!/usr/bin/python3 -I
import json, os, subprocess, sys, time
p = subprocess.Popen(['$RV_BIN/rv-exec', *sys.argv[1:]], stdout=subprocess.PIPE)
dirs = sys.argv[sys.argv.index('--workdir-base') + 1]
env = dict(w.split('=', 1) for w in [sys.argv[sys.argv.index('--setenv') + 1]])
for line in p.stdout:
    r = json.loads(line)
    $2
    print(json.dumps(r), flush=True)
sys.exit(p.wait())" >bin/rv-exec
		chmod 755 bin/rv-exec
		rv_fails 1 "$RV_SRC/t/hostile/run" --bin bin --trick "$RV_BIN/t/hostile/trick" --only background --only exit-124 >seen 2>&1
		grep -q "$1" seen || { cat seen; return 1; }
		rm -rf rv-hostile.*
	}
	export TMPDIR=$PWD
	broken "where 'exit' is due" 'r.get("error", {}).update(code="timeout")'
	broken 'workdirs left' 'os.makedirs(dirs + "/left", exist_ok=True)'
	broken 'survivors' 'r.update(survivors=1)'
	broken 'still running' 'r["id"] == "background" and subprocess.Popen(["sleep", "5"], env=env, stdout=2)'
	broken 'an ordinary tool' 'r["id"].startswith("after-") and r.update(result=0)'
	broken 'answered after' 'r.update(startedAt=r["startedAt"] - 9000)'
	broken 'went away' 'r["id"] == "exit-124" and (p.stdin, sys.exit(p.terminate()))'
}

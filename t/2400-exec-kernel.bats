# rv-exec --sandbox kernel: what a tool cannot reach, each with a control that can without it; and what it can.
load helper
load exec

setup_file() {
	rv-exec --tool t --workdir-base "$BATS_FILE_TMPDIR" --sandbox kernel -- /bin/true >/dev/null 2>"$BATS_FILE_TMPDIR/why" || touch "$BATS_FILE_TMPDIR/without"
}

setup() {
	[ ! -e "$BATS_FILE_TMPDIR/without" ] || {
		[ "${RV_MUST_WORK:-}" != 1 ] || rv_die "no kernel sandbox here and RV_MUST_WORK=1: $(cat "$BATS_FILE_TMPDIR/why")"
		skip "this host lets no kernel sandbox be made: $(cat "$BATS_FILE_TMPDIR/why")"
	}
	mkdir -p dirs tools out cwd
	echo secret >secret
	ln -s "$PWD/secret" alias
	echo victim >out/victim
}

teardown() {
	[ -z "${server:-}" ] || kill "$server" "$witness" 2>/dev/null || true
	[ -z "${elsewhere:-}" ] || rm -rf "$elsewhere"
}

k() {
	x --sandbox kernel --ro "$PWD/tools" "$@"
}

# What is outside: processes, sockets, files, as the probes' keys.
outside() {
	sqlite3 secret.db 'create table t(x); insert into t values (1)'
	/usr/bin/python3 -I "$RV_SRC/t/probes/serve.py" "$PWD/unix" "rv-$BATS_TEST_NUMBER-$$" >port 3>&- &
	server=$!
	sleep 300 3>&- &
	witness=$!
	rv_until test -s port
	keys="secret=$PWD/secret alias=$PWD/alias dir=$PWD/out pid=$witness port=$(cat port) unix=$PWD/unix abstract=rv-$BATS_TEST_NUMBER-$$ snapshot=/bin/true"
}

# compare LEAST [NAME-PATTERN]: of the probes that `control` shows allowed, all but those of the pattern are refused
# inside, and they are at least so many.  Names what has no control here.
compare() {
	local least=$1 pattern=${2:-^$}

	grep -E '^[a-z]' control | sort >control.sorted
	grep -E '^[a-z]' inside | sort >inside.sorted
	rv_equal "$(cut -d' ' -f1 control.sorted)" "$(cut -d' ' -f1 inside.sorted)" 'probes that ran'
	echo "# no control here: $(awk '$2 != "allowed" { printf "%s ", $1 }' control.sorted)" >&3
	join control.sorted inside.sorted | awk '$2 == "allowed"' >counted
	grep -vE "$pattern" counted | awk '$3 == "allowed"' >open || true
	[ ! -s open ] || rv_die "allowed inside: $(cat open)" || return
	[ "$(awk '$3 != "allowed"' counted | wc -l)" -ge "$least" ] || rv_die "only $(awk '$3 != "allowed"' counted | wc -l) refusals counted"
}

# Its own processes, memory, IPC namespace and Unix sockets are a tool's to use; no limit was asked for.
OWN='^(start\.(fork|vfork|exec|posix|shell|detached)|memory\.|map\.|ipc\.(shm|sem|msg|mqueue) |limit\.(cpu|nofile|fsize|data) |signal\.all |socket\.(unix|pair)|kernel\.inotify )'

@test "C: what is refused to a tool, each with a control" {
	outside
	cp "$RV_BIN/t/probes/probe" tools/
	# shellcheck disable=SC2086 # words
	(cd cwd && RV_PROBE_SECRET=1 ../tools/probe $keys >../control 7</dev/null)
	echo victim >out/victim # the controls changed it
	k --tool-stderr inherit -- /bin/sh -c "exec '$PWD/tools/probe' $keys >&2" 2>inside
	rv_equal victim "$(cat out/victim)"
	if [ "$(id -u)" -eq 0 ]; then compare 130 "$OWN"; else compare 75 "$OWN"; fi
	kill -0 "$witness"
}

@test "a setuid program gives no privilege" {
	rv_need root user
	dir=$(rv_user_dir)
	# a file system that honours the bit: the control says so
	cp "$RV_BIN/t/probes/probe" "$dir/probe"
	cp "$RV_BIN/t/probes/probe" "$dir/setuid"
	chown root "$dir/setuid" && chmod 4755 "$dir/setuid"
	rv_equal 'start.setuid allowed' "$(cd / && rv_as_user "$dir/probe" "suid=$dir/setuid" start.setuid)"
	mkdir -m 777 "$dir/w"
	(cd / && rv_as_user "$dir/bin/rv-exec" --tool t --workdir-base "$dir/w" --sandbox kernel --ro "$dir/probe" --ro "$dir/setuid" --tool-stderr inherit -- \
		/bin/sh -c "exec '$dir/probe' 'suid=$dir/setuid' start.setuid >&2") 2>inside
	rv_equal 'start.setuid denied EPERM' "$(grep ^start inside)"
}

@test "Python: what is refused to a tool, each with a control" {
	outside
	cp "$RV_SRC/t/probes/probe.py" tools/
	# shellcheck disable=SC2086
	(cd cwd && /usr/bin/python3 -I ../tools/probe.py $keys database=$PWD/secret.db >../control)
	k --tool-stderr inherit -- /bin/sh -c "exec /usr/bin/python3 -I '$PWD/tools/probe.py' $keys database=$PWD/secret.db >&2" 2>inside
	compare 25
}

@test "JavaScript: what is refused to a tool, each with a control" {
	rv_need node
	node=$(readlink -f "$(command -v node)")
	outside
	cp "$RV_SRC/t/probes/probe.mjs" tools/
	# shellcheck disable=SC2086
	(cd cwd && "$node" ../tools/probe.mjs $keys >../control)
	k --ro "$node" --tool-stderr inherit -- /bin/sh -c "exec '$node' '$PWD/tools/probe.mjs' $keys >&2" 2>inside
	compare 25
}

@test "a shell: the ledger, the workdirs of others, the caller's own environment" {
	mkdir -p dirs/other
	export RV_CALLER_SECRET=1
	k --ledger "$PWD/ledger" --new-call --json -- /bin/sh -c "
		for f in '$PWD/ledger' '$PWD/dirs/other' '$PWD/secret' /root /home /sys /run /var /proc/1 /proc/\$PPID /etc/hostname; do
			[ ! -e \"\$f\" ] || echo \"\$f\" >&2
		done
		env | grep -c CALLER >&2
		echo x >>'$PWD/ledger' # in a /tmp of its own, or nowhere
		exit 7
		" >reply 2>stderr || true
	holds 'code == "exit"' 'reply["exitCode"] == 7' 'reply["sandbox"] == "kernel"'
	rv_equal kernel "$(rows ledger 'r["phase"] == "intent"' | member sandbox)"
	rv_equal 2 "$(wc -l <ledger)"
	# its stderr: a count of nothing, and not one path of the list
	rv_equal 'the tool exited with status 7: 0' "$(member error.message reply | grep -v 'cannot create')"
	rv_equal '"intent" "outcome"' "$(sed 's/^{"phase":\("[a-z]*"\).*/\1/' ledger | paste -sd' ')"
}

@test "what a tool has: its workdir and /tmp, empty and private each time; the shown paths; its own processes" {
	mkdir -p shown/deep data
	echo 1 >shown/deep/file
	for _ in 1 2; do
		k --ro "$PWD/shown" --rw "$PWD/data" -- /bin/sh -c "
			set -e
			[ -z \"\$(ls -A .)\" ]; echo 1 >here; [ ! -e /tmp/mine ]; echo 1 >/tmp/mine; mkdir -p d/e; mv here d/e/there
			[ -w . ]; [ \"\$(cat '$PWD/shown/deep/file')\" = 1 ]; echo 1 >>'$PWD/data/log'
			if echo 2 >'$PWD/shown/deep/file'; then exit 9; fi
			echo 1 >/dev/null; [ \"\$(head -c2 /dev/zero | od -An -tx1 | tr -d ' ')\" = 0000 ]
			[ -r /proc/self/status ]; sleep 0.01 & wait
			[ \"\$(wc -l </etc/passwd)\" = 1 ]; [ \"\$(id -u)\" = $(id -u) ]
			cp /bin/true ./own; ./own
			echo 1" >out.json 2>stderr || { cat stderr >&2; return 1; }
		rv_equal 1 "$(cat out.json)"
	done
	rv_equal 2 "$(wc -l <data/log)"
	rv_equal 1 "$(cat shown/deep/file)"
	[ ! -e /tmp/mine ]
	no_workdir
}

@test "Python and node work inside" {
	rv_equal '[4,"x"]' "$(k -- /usr/bin/python3 -Ic 'import json,multiprocessing,tempfile,threading,subprocess; tempfile.TemporaryFile(); subprocess.run(["/bin/true"],check=True); print(json.dumps([multiprocessing.get_context("fork").Pool(2).apply(pow,(2,2)), "x"]))')"
	rv_need node
	node=$(readlink -f "$(command -v node)")
	rv_equal 6 "$(k --ro "$node" -- "$node" -e 'new (require("worker_threads").Worker)("require(\"worker_threads\").parentPort.postMessage(6)", {eval: true}).on("message", (m) => { require("child_process").execFileSync("/bin/true"); console.log(m) })')"
}

@test "--net opens the network, and what names are looked up with" {
	outside
	rv_equal 1 "$(k --net -- /usr/bin/python3 -Ic "import socket; socket.create_connection(('127.0.0.1', $(cat port)), 5); print(1)")"
	# The host's abstract sockets belong to its network, and Landlock keeps them out.
	printf '%s\n' 'import socket, sys' 's = socket.socket(socket.AF_UNIX)' 's.connect("\0" + sys.argv[1])' 'print(1)' >tools/abstract.py
	rv_equal 1 "$(x -- /usr/bin/python3 -I "$PWD/tools/abstract.py" "rv-$BATS_TEST_NUMBER-$$")"
	rv_fails 1 k --net -- /usr/bin/python3 -I "$PWD/tools/abstract.py" "rv-$BATS_TEST_NUMBER-$$" 2>stderr
	grep -q 'not permitted' stderr || rv_die "$(cat stderr)"
	k -- /bin/sh -c '[ ! -e /etc/hosts ] && echo 1' >out.json
	[ ! -e /etc/hosts ] || k --net -- /bin/sh -c '[ -e /etc/hosts ] && echo 1' >out.json
	for family in AF_PACKET AF_VSOCK AF_ALG; do
		rv_fails 1 k --net -- /usr/bin/python3 -Ic "import socket; socket.socket(socket.$family)" 2>stderr
		grep -q 'not supported by protocol\|not permitted' stderr || rv_die "$(cat stderr)"
	done
}

@test "--net shows no key of the host's, to root's tool either" {
	rv_need root
	[ -d /etc/ssl ] || skip 'there is no /etc/ssl'
	mkdir -p ssl/private
	echo key >ssl/private/key
	echo conf >ssl/openssl.cnf
	unshare --mount bash -c "mount --bind '$PWD/ssl' /etc/ssl && [ -e /etc/ssl/private/key ] && exec rv-exec --tool t --workdir-base '$PWD/dirs' --sandbox kernel --net -- \
		/bin/sh -c '[ \"\$(cat /etc/ssl/openssl.cnf)\" = conf ] && [ -d /etc/ssl/private ] && ls -A /etc/ssl/private | wc -l'" >out.json
	rv_equal 0 "$(cat out.json)"
}

@test "--rw shows no ledger, manifest or approvals to be forged: config" {
	mkdir -p data/more free links
	echo '{"t":{"command":"/bin/true"}}' >data/manifest
	cp data/manifest manifest
	: >data/approvals
	: >approvals
	ln -s "$PWD/data/linked" links/out && ln -s "$PWD/free/ledger" data/more/in
	manifest="--manifest $PWD/manifest --approvals $PWD/approvals"
	for held in "--ledger $PWD/data/ledger" '--ledger data/more/../ledger' "--ledger $PWD/data/more/in" "--ledger $PWD/links/out" "--manifest $PWD/data/manifest" \
		"--manifest $PWD/manifest --approvals $PWD/data/approvals"; do
		case $held in *manifest*) set -- ;; *) set -- -- /bin/true ;; esac
		: >data/linked
		# shellcheck disable=SC2086
		fails config 125 x --new-call --sandbox kernel --rw "$PWD/data" $held "$@" || rv_die "$held" || return
		grep -q -e "--rw $PWD/data: ${held##* --}" stderr || grep -q -e "--rw $PWD/data: --" stderr || rv_die "$(cat stderr)" || return
		[ ! -e data/ledger ] && [ ! -s data/linked ] && [ ! -e free/ledger ]
	done
	ln -s data other
	fails config 125 x --new-call --sandbox kernel --rw "$PWD/other" --ledger "$PWD/data/ledger" -- /bin/true
	# beside it, or shown to be read, is no harm
	# shellcheck disable=SC2086
	rv_equal null "$(x --new-call --sandbox kernel --rw "$PWD/data" --ledger "$PWD/data-ledger" $manifest)"
	rv_equal null "$(x --new-call --sandbox kernel --ro "$PWD/data" --ledger "$PWD/data/ledger" -- /bin/true)"
	rv_equal 2 "$(wc -l <data/ledger)"
}

@test "what cannot be enforced is refused before anything is written" {
	ln -s / all
	ln -s /proc/1/root all-by-proc
	for bad in "--ro $PWD/absent" "--ro $PWD/all" "--rw $PWD/all/proc" "--ro $PWD/all-by-proc" "--rw $PWD/absent" '--ro /' '--rw /proc/sys' '--ro /dev/shm' '--workdir-base /' '--workdir-base /usr'; do
		# shellcheck disable=SC2086
		fails config 125 x --ledger "$PWD/ledger" --new-call --sandbox kernel $bad -- /bin/true || rv_die "$bad" || return
		[ ! -s ledger ] || rv_die "a row of $bad" || return
	done
	fails config 125 x --ledger "$PWD/ledger" --new-call --sandbox kernel -- "$PWD/tools" || return
	grep -q -- '--ro' stderr
	for alone in --net '--ro /usr' '--rw /tmp'; do
		# shellcheck disable=SC2086
		rv_fails 2 x $alone -- /bin/true 2>stderr
	done
}

@test "a host that forbids it refuses, with the remedy, and never runs the tool without" {
	rv_need root
	unshare --mount --user --map-root-user bash -c 'echo 0 >/proc/sys/user/max_net_namespaces' || skip 'limits of namespaces cannot be set here'
	rv_fails 125 unshare --user --map-root-user --mount bash -c "echo 0 >/proc/sys/user/max_net_namespaces; exec rv-exec --tool t --workdir-base '$PWD/dirs' --ledger '$PWD/ledger' --new-call --sandbox kernel -- /usr/bin/touch '$PWD/data'" 2>stderr
	grep -q 'max_net_namespaces' stderr || rv_die "$(cat stderr)"
	[ ! -s ledger ] && [ ! -e data ]
}

@test "a stream: many dispatches in one slot, and each finds nothing of the one before" {
	for i in {1..20}; do
		echo '{"tool":"t","args":{},"spec":{"command":"/bin/sh","args":["-c","[ -z \"$(ls -A . )\" ] && [ ! -e /tmp/left ] && [ -z \"$(cat /proc/sysvipc/shm | tail -n +2)\" ] && echo 1 >left && echo 1 >/tmp/left && echo 1"]},"ctx":{"runId":"r","idempotencyKey":"k'"$i"'"}}'
	done | rv-exec --stream --jobs 2 --workdir-base "$PWD/dirs" --sandbox kernel >replies
	rv_equal 20 "$(grep -c '"ok":true' replies)"
	no_workdir
}

@test "a workdir base that is not below /tmp: the workdir at its own path, and nothing hidden of what was shown below it" {
	elsewhere=$(mktemp -d /var/tmp/rv-kernel-XXXXXX)
	mkdir "$elsewhere/a" "$elsewhere/a/base" "$elsewhere/a/base/tools" "$elsewhere/a/base/more"
	echo data >"$elsewhere/a/base/tools/data"
	echo secret >"$elsewhere/a/secret"
	echo secret >"$elsewhere/a/base/secret"
	cat >"$elsewhere/a/base/tools/tool" <<-'EOF'
		#!/bin/sh
		base=${PWD%/*}
		[ -z "$(ls -A .)" ] && echo 1 >left && rm left || exit 11
		[ "$(cat "$base/tools/data")" = data ] && ! echo 1 2>/dev/null >"$base/tools/x" || exit 12
		echo 1 >"$base/more/written" || exit 13
		[ ! -e "$base/secret" ] && [ ! -e "$base/../secret" ] && ! echo 1 2>/dev/null >"$base/x" || exit 14
		[ "$(ls "$base" | wc -l)" = 3 ] || exit 15
		printf '"%s"' "$PWD"
	EOF
	chmod 755 "$elsewhere/a/base/tools/tool"
	for i in 1 2 3; do
		echo '{"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k'$i'"}}'
	done | rv-exec --stream --workdir-base "$elsewhere/a/base" --sandbox kernel --ro "$elsewhere/a/base/tools" --rw "$elsewhere/a/base/more" -- \
		"$elsewhere/a/base/tools/tool" >replies || rv_die "$(cat replies)"
	rv_equal 3 "$(grep -c "\"result\":\"$elsewhere/a/base/rulvar-exec-t-......\"" replies)"
	[ -e "$elsewhere/a/base/more/written" ]
	rv_equal 'more secret tools' "$(cd "$elsewhere/a/base" && echo *)" 'no workdir is left'
	# below or at what is shown: there it is seen already
	for shown in "$elsewhere/a" "$elsewhere/a/base"; do
		rv_equal '"data"' "$(rv-exec --tool t --workdir-base "$elsewhere/a/base" --sandbox kernel --ro "$shown" -- \
			/bin/sh -c 'echo 1 >own && ! echo 1 2>/dev/null >../x && printf "\"%s\"" "$(cat ../tools/data)"')"
	done
	rm -rf "$elsewhere"
	# behind a link of the sandbox's own: /dev/shm is its /tmp
	[ -w /dev/shm ] || return 0
	elsewhere=$(mktemp -d /dev/shm/rv-kernel-XXXXXX)
	rv_equal 1 "$(rv-exec --tool t --workdir-base "$elsewhere" --sandbox kernel -- /bin/sh -c 'echo 1 >own && cat "$PWD/own"')"
}

@test "the limits of its worker, which is of its own user, are no tool's to set; its own and its children's are" {
	k --allow-env PATH --tool-stderr inherit -- /bin/bash -c '
		[ $PPID = 1 ] || exit 9
		! prlimit --pid 1 --nofile=3:3 || exit 8
		prlimit --pid 1 --nofile >&2 || exit 7
		sleep 5 & prlimit --pid $! --nofile=5:5 || exit 6
		prlimit --pid $$ --nofile=9:9 && ulimit -n 8 && echo 1' >result 2>stderr || rv_die "$(cat result stderr)"
	rv_equal 1 "$(cat result)"
	grep -q 'Operation not permitted' stderr
}

@test "no set-user-ID file can be made, by whatever call: in what --rw shows it would stay" {
	cat >tools/power.py <<'EOT'
import ctypes, os, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(*words):
    result = libc.syscall(*(ctypes.c_long(w) if isinstance(w, int) else w for w in words))
    return result if result >= 0 else -ctypes.get_errno()
at, make = -100, os.O_CREAT | os.O_WRONLY
os.chdir(sys.argv[1])
open("f", "w").close()
fd = os.open("f", os.O_RDONLY)
how = (ctypes.c_uint64 * 3)(make, 0o4755, 0)
for name, got in [
    ("chmod", call(90, b"f", 0o4755)), ("fchmod", call(91, fd, 0o4755)), ("fchmodat", call(268, at, b"f", 0o4755)),
    ("fchmodat2", call(452, at, b"f", 0o4755, 0)), ("creat", call(85, b"a", 0o4755)), ("open", call(2, b"b", make, 0o4755)),
    ("openat", call(257, at, b"c", make, 0o4755)), ("openat+", call(257, at, b"g", make | 1 << 32, 0o4755 | 1 << 32)),
    ("tmpfile", call(257, at, b".", 0o20200000 | os.O_WRONLY, 0o4755)), ("openat2", call(437, at, b"d", ctypes.byref(how), 24)),
    ("mknod", call(133, b"e", stat.S_IFREG | 0o4755, 0)), ("mknodat", call(259, at, b"h", stat.S_IFREG | 0o4755, 0)),
    ("set", sum(os.stat(n).st_mode & stat.S_ISUID != 0 for n in os.listdir("."))),
    ("ordinary", call(90, b"f", 0o2755)), ("without", call(257, at, b"f", os.O_RDONLY, 0o4755) > 0),
]:
    print(name, int(got), file=sys.stderr)
print(1)
EOT
	tests='chmod fchmod fchmodat fchmodat2 creat open openat openat+ tmpfile mknod mknodat'
	[ "$(uname -m)" = x86_64 ] || skip "the numbers are of another machine"
	mkdir -p shown
	/usr/bin/python3 -I tools/power.py "$PWD/shown" 2>control
	for name in chmod fchmod fchmodat; do grep -qx "$name 0" control || rv_die "no control: $(cat control)" || return; done
	grep -qx 'set 0' control && rv_die "no control: $(cat control)"
	rm -rf shown
	mkdir shown
	k --rw "$PWD/shown" --tool-stderr inherit -- /usr/bin/python3 -I "$PWD/tools/power.py" "$PWD/shown" >result 2>stderr
	for name in $tests; do grep -qx -e "$name -1" stderr || rv_die "$name: $(cat stderr)" || return; done
	grep -qx 'openat2 -38' stderr && grep -qx 'set 0' stderr && grep -qx 'ordinary 0' stderr && grep -qx 'without 1' stderr
}

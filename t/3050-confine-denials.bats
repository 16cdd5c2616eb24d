# rv-confine: what the boundary denies.  Each probe is run without it first, and counts only where it succeeds there.
load helper
load confine

PROBE=$RV_BIN/t/probes/probe

setup() {
	mkdir -p prog in root outside shelf
	chmod 700 root
	echo secret >shelf/secret
	ln -s "$PWD/shelf" way
	cp "$PROBE" prog/elf
	echo >prog/entry
	chmod 755 prog/elf
	# Something that listens in every way, until the test ends.
	/usr/bin/python3 -Ic '
import os, socket, sys, time
t = socket.socket(); t.bind(("127.0.0.1", 0)); t.listen(64); port = t.getsockname()[1]
keep = [t]
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", port)); keep.append(u)
try:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(socket.AF_INET6, kind); s.bind(("::1", port)); keep.append(s)
        if kind == socket.SOCK_STREAM: s.listen(64)
except OSError:
    pass
for name in ("unix", "\0rv-probe-%d" % port):
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen(64); keep.append(s)
open("port.new", "w").write(str(port)); os.rename("port.new", "port")
time.sleep(120)' 3>&- &
	server=$!
	sleep 120 3>&- &
	victim=$!
	rv_until test -e port
	keys=("secret=$PWD/shelf/secret" "alias=$PWD/way/secret" "dir=$PWD/outside" "pid=$victim" "port=$(cat port)" "unix=$PWD/unix"
		"abstract=rv-probe-$(cat port)")
}

teardown() {
	kill "$server" "$victim" 2>/dev/null || :
}

# inside PROFILE SNAPSHOT KEY=VALUE... -- NAME...: "NAME VERDICT" of each into ./inside.  A probe that ends the program is
# killed, and the rest goes on behind it.
inside() {
	local profile=$1 names keys=("${@:2}") i
	mapfile -t names

	: >inside
	while [ ${#names[@]} -gt 0 ]; do
		confine --runtime "$PROBE" --entry entry --profile "$profile" --timeout 60s --max-descriptors 128 \
			-- "${keys[@]}" "${names[@]}" >result 2>stderr || { cat stderr result >&2; return 1; }
		holds "$GOOD" || return
		jq -r .process.stdoutBase64 result | base64 -d >part
		cat part >>inside
		i=$(wc -l <part)
		[ "$i" -lt ${#names[@]} ] || break
		printf '%s killed %s\n' "${names[i]}" "$(jq -c .process.exit result)" >>inside
		names=("${names[@]:i+1}")
	done
}

# denied PROFILE AT SNAPSHOT LEAST: everything that succeeds without is denied with.
denied() {
	local at=$2

	"$PROBE" "${keys[@]}" "at=$PWD/outside" "snapshot=$PWD/prog/elf" >control 2>/dev/null || return
	awk '$2 == "allowed" { print $1 }' control | sort >wanted
	"$PROBE" --list >order
	grep -xF -f wanted order | grep -vxF -f <(printf '%s\n' "${@:5}") >names
	[ "$(wc -l <names)" -ge "$4" ] || rv_die "only $(wc -l <names) probes succeed without the boundary" || return
	inside "$1" "${keys[@]}" "at=$at" "snapshot=$3" <names || return
	rv_equal "$(wc -l <names)" "$(wc -l <inside)" 'probes answered' || return
	grep -v ' denied \| killed ' inside >open || :
	rv_equal '' "$(cat open)" "not denied by $1 at $at"
}

# ioctl is ENOTTY for all but five requests: on what is no terminal that looks like none at all.
TERMINALS='terminal.tiocsti terminal.tiocsti-high terminal.tioclinux'

@test "linux/1: everything that succeeds without it is denied" {
	denied linux/1 /home /program/elf 100 $TERMINALS
}

@test "linux/1+proc: the same" {
	denied linux/1+proc /tmp /program/elf 100 $TERMINALS
}

@test "landlock/1: the same, but for what a Landlock profile cannot hide" {
	denied landlock/1 "$PWD/outside" "$PWD/root/slot-0/program/elf" 80 $TERMINALS read.o-path read.access read.stat read.statx \
		read.chdir map.exec map.mprotect-exec process.getsid privilege.bounding
}

# language SCRIPT COMMAND... -- OPTION...: what the script t/probes/SCRIPT tries, at least 25 attempts that COMMAND, outside and
# as this user, succeeds with, is denied by linux/1, each by its name.
language() {
	local script=$1 command=()

	shift
	while [ "$1" != -- ]; do
		command+=("$1")
		shift
	done
	shift
	echo victim >outside/victim
	/usr/bin/python3 -Ic 'import sqlite3; db = sqlite3.connect("outside.db"); db.execute("create table t(x)"); db.execute("insert into t values (1)"); db.commit()'
	keys+=("database=$PWD/outside.db")
	cp "$RV_SRC/t/probes/$script" "prog/$script"
	mkdir cwd
	(cd cwd && "${command[@]}" "../prog/$script" "${keys[@]}" >../control) || return
	awk '$2 == "allowed" { print $1 }' control | sort >wanted
	[ "$(wc -l <wanted)" -ge 25 ] || rv_die "too few succeed without the boundary: $(grep -v allowed control)" || return
	confine --runtime "${command[0]}" --entry "$script" --timeout 60s "$@" -- "${keys[@]}" >result 2>stderr ||
		{ cat stderr result >&2; return 1; }
	holds "$GOOD" 'p["exit"]["code"] == 0' || return
	jq -r .process.stdoutBase64 result | base64 -d >inside
	rv_equal "$(cat wanted)" "$(awk '$2 == "denied" { print $1 }' inside | sort | grep -xF -f wanted)" "denied inside, of what was allowed outside"
}

@test "JavaScript: at least 25 attempts that succeed without the boundary, and none behind it" {
	rv_need node
	language probe.mjs "$(readlink -f "$(command -v node)")" --
}

@test "Python: at least 25 attempts that succeed without the boundary, and none behind it" {
	language probe.py /usr/bin/python3 -I -S -B -- \
		--runtime-tree "$(/usr/bin/python3 -c 'import sys; print("/usr/lib/python%d.%d" % sys.version_info[:2])')"
}

@test "writes are refused everywhere inside: the snapshots, home, tmp, the root, the runtime's own directories" {
	"$PROBE" "${keys[@]}" "at=$PWD/outside" | awk '$2 == "allowed" { print $1 }' >wanted
	grep -E '^(write|create|change)[.]' wanted >names || :
	[ "$(wc -l <names)" -ge 5 ]
	for at in /program /input /home /tmp / /dev/shm; do
		inside linux/1 "${keys[@]}" "at=$at" <names
		rv_fails 1 grep ' allowed' inside
	done
}

@test "what a program needs is there: the battery's own control inside" {
	cat >prog/main.sh <<<'[ -r /input/x ] && read -r l </input/x && echo "$l"; cd /program && [ -r entry ]; echo $?'
	echo data >in/x
	confine --runtime "$SH" --entry main.sh >result 2>stderr
	holds "$GOOD" 'out == b"data\n0\n"'
}

@test "rv-confine-profile(7) has every probe in its table, with the answers that they get" {
	awk '/^\.Ss What is denied/ { on = 1 } /^\.Ss Order/ { on = 0 }
		on && /^\.It / && / Ta Li [a-z]+\.\*$/ { n = split($0, cell, " Ta "); print $NF "\t" cell[3] }' "$RV_SRC/man/rv-confine-profile.7" >table
	"$PROBE" --list | sed 's/[.].*/.*/' | sort -u >families
	rv_equal "$(cat families)" "$(cut -f 1 table | sort)" 'the families of probes, and the table'
	"$PROBE" --list | grep -v '^terminal[.]' >names
	inside linux/1 "${keys[@]}" "at=/home" "snapshot=/program/elf" <names
	while read -r name verdict errno; do
		[ "$verdict" = denied ] || continue
		grep -q "^${name%%.*}\\.\*	.*\<$errno\>" table || rv_die "$name is $errno, and the page has $(grep "^${name%%.*}\\." table)" || return
	done <inside
}

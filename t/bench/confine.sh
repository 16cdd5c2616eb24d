#!/bin/bash
# confine.sh BIN COUNT: what a run of rv-confine costs beside bwrap with comparable binds and beside bare node, with the
# bounds that are kept.  Exit 1 where one is missed, 5 where a peer is missing.
set -euo pipefail

bin=$1
count=$2
for peer in bwrap node gcc; do
	command -v "$peer" >/dev/null || { echo "bench: $peer is missing" >&2; exit 5; }
done
bwrap=$(command -v bwrap)
node=$(readlink -f "$(command -v node)")
missed=0

# The slots are on memory where that can be had: what a disk's fsync takes is a figure of its own.
memory=$(mktemp -d /dev/shm/rv-bench.XXXXXX 2>/dev/null) || memory=$(mktemp -d "$PWD/slots.XXXXXX")
trap 'rm -rf "$memory"' EXIT
mkdir -m 700 "$memory/root" disk
cd -P .
mkdir one many input
echo 'int main(void) { return 0; }' | gcc -O1 -x c -static -s -o true-static -
# As a package ships it: the launcher's bytes are hashed before every run.
strip -o rv-confine "$bin/rv-confine"
chmod 755 rv-confine
echo x >one/entry
for ((i = 0; i < 400; i++)); do echo "$i" >"many/file$i"; done
echo 0 >one/main.mjs

# bound RATIO MOST: say whether it is kept.
bound() {
	if awk -v got="$1" -v most="$2" 'BEGIN { exit !(got <= most) }'; then
		printf '  at most %s: kept\n' "$2"
	else
		printf '  at most %s: MISSED\n' "$2"
		missed=1
	fi
}

# pair MOST WHAT 'COMMAND A' 'COMMAND B'; MOST -: as it is.
pair() {
	local line

	line=$("$bin/t/bench/pair" "$count" "$3" "$4")
	printf '%-52s %s\n' "$2" "$line"
	[ "$1" = - ] || bound "$(awk '{ sub(",", "", $6); print $6 }' <<<"$line")" "$1"
}

# once ROOT PROGRAM ENTRY RUNTIME
once() {
	printf '%s --root %s --program %s --entry %s --runtime %s --unpinned' "$PWD/rv-confine" "$1" "$2" "$3" "$4"
}

# stream VERIFY
stream() {
	printf '%s --stream --root %s --verify %s' "$PWD/rv-confine" "$memory/root" "$1"
}

# sandboxed RUNTIME-BINDS COMMAND: bwrap as it is comparable: all namespaces, runtime and snapshots read-only.
sandboxed() {
	printf '%s --unshare-all --die-with-parent --new-session --clearenv %s --ro-bind one /program --ro-bind input /input --dir /home --dir /tmp --remount-ro / --chdir /input %s' "$bwrap" "$1" "$2"
}

# request RUNTIME ENTRY: a line of a stream.
request() {
	local digests

	digests="$(./rv-confine --describe-runtime "$1" | sed 's/^{"digest":"\([^"]*\)".*/\1/') $(./rv-confine --describe-profile | sed 's/.*"digest":"\([^"]*\)".*/\1/')"
	# shellcheck disable=SC2086  # two words
	printf '{"runtime":{"path":"%s","digest":"%s"},"profile":{"digest":"%s"},' "$1" $digests
	printf '"program":{"dir":"%s/one","digest":"%s","entry":"%s","args":[]},' "$PWD" "$(snapshot one)" "$2"
	printf '"input":{"dir":"%s/input","digest":"%s"},"timeoutMs":30000,"maxOutputBytes":65536,"cpuSeconds":10,"maxDescriptors":64}\n' "$PWD" "$(snapshot input)"
}

snapshot() {
	./rv-confine --snapshot "$1" | sed 's/^{"digest":"\([^"]*\)".*/\1/'
}

# rounds MOST WHAT LINE 'PEER' 'STREAM'
rounds() {
	local figures

	read -ra figures < <("$bin/t/bench/rounds" -l "$3" "$((count / 10 + 5))" 10 "$4" "$5")
	printf '%-52s %s ms, %s ms, ratio %s, of processor time %s\n' "$2" "${figures[@]}"
	[ "$1" = - ] || bound "${figures[2]}" "$1"
}

static=$PWD/true-static
floor=$bin/t/bench/floor-confine
request "$static" entry >static.line
request "$node" main.mjs >node.line
peer=$(sandboxed "--ro-bind $static $static" "$static")
pair 0.9 "a static program, bwrap --unshare-all" "$(once "$memory/root" one entry "$static")" "$peer"
pair - "the same with the slots on disk" "$(once "$PWD/disk" one entry "$static")" "$peer"
rounds 0.45 "a run of --stream --verify identity, bwrap" static.line "$peer" "$(stream identity)"
rounds - "a run of --stream --verify digest, bwrap" static.line "$peer" "$(stream digest)"
# What no run behind this boundary can go below: namespaces, mounts, rules, filter, exec, and nothing else.
pair - "the floor of a static program, bwrap" "$floor $static $PWD/one" "$peer"
rounds - "the floor of a stream, bwrap" static.line "$peer" "$floor -l $static $PWD/one"
pair 2 "400 files, one file" "$(once "$memory/root" many file0 "$static")" "$(once "$memory/root" one entry "$static")"
count=$((count / 4 + 1))
pair - "node, bare node" "$(once "$memory/root" one main.mjs "$node")" "$node one/main.mjs"
rounds - "node by --stream --verify identity, bare node" node.line "$node one/main.mjs" "$(stream identity)"
exit "$missed"

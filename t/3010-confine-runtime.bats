# rv-confine --describe-runtime: the closure of an ELF runtime, found without running anything of it.
load helper
load confine

identity() {
	rv-confine --describe-runtime "$@" >result 2>stderr
}

# unavailable WHAT OPTION...: exit 5, the error as data.
unavailable() {
	local what=$1

	shift
	rv_fails 5 rv-confine --describe-runtime "$@" >result 2>stderr || return
	holds 'r["ok"] is False and r["error"]["code"] == "runtime-unavailable"' || return
	grep -q -- "$what" stderr || rv_die "no \"$what\" in: $(cat stderr)"
}

# What the dynamic linker itself would load, as canonical paths: an independent derivation.
listed() {
	local interp

	interp=$(readelf -l "$1" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
	{
		readlink -f "$1" "$interp"
		env -i "$interp" --inhibit-cache --list "$1" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | xargs -r readlink -f
	} | sort -u
}

@test "the closure is what ld.so --inhibit-cache --list says, for everything dynamic in sight" {
	rv_need readelf
	count=0
	for program in /bin/sh /bin/ls /usr/bin/python3 /usr/bin/node /usr/bin/perl /usr/bin/jq /usr/bin/gcc /usr/bin/git /usr/bin/bash \
		/usr/bin/tar /usr/bin/ssh /usr/bin/curl /usr/bin/mandoc /usr/bin/strace; do
		[ -x "$program" ] && readelf -l "$program" 2>/dev/null | grep -q interpreter || continue
		identity "$program"
		rv_equal "$(listed "$program")" "$(jq -r '.files[].path' result)" "$program"
		count=$((count + 1))
	done
	[ "$count" -ge 6 ]
}

@test "nothing of the runtime is executed, and no cache is asked" {
	rv_need strace
	strace -f -e trace=execve,execveat,openat -o trace rv-confine --describe-runtime /usr/bin/python3 >/dev/null
	rv_equal 1 "$(grep -c 'execve' trace)" 'one exec: its own'
	# Its own start may read the cache; behind that nothing does.
	sed '1,/python3/d' trace >after
	rv_fails 1 grep ld.so.cache after
}

@test "sizes, digests and aliases are those of the files; the digest is that of the rest in canonical form" {
	identity /bin/sh
	while read -r path size sha; do
		rv_equal "$size $sha" "$(stat -c %s "$path") $(sha256sum <"$path" | cut -c-64)" "$path"
	done < <(jq -r '.files[] | "\(.path) \(.size) \(.sha256)"' result)
	while read -r path target; do
		rv_equal "$target" "$(readlink "$path")" "$path"
	done < <(jq -r '.aliases[] | "\(.path) \(.target)"' result)
	holds 'list(r) == ["digest", "path", "files", "aliases", "trees", "launcher", "kernel", "os"]' 'r["path"] == "/bin/sh"' \
		'r["trees"] == []' 'set(r["kernel"]) == {"release", "machine"}' 'set(r["os"]) == {"id", "versionId"}'
	rv_equal "$(uname -r) $(uname -m)" "$(jq -r '"\(.kernel.release) \(.kernel.machine)"' result)"
	rv_equal "$(sha256sum <"$RV_BIN/rv-confine" | cut -c-64)" "$(jq -r .launcher.sha256 result)"
	jq -c 'del(.digest)' result | rv-key --canonical >canonical
	rv_equal "sha256:$(sha256sum <canonical | cut -c-64)" "$(jq -r .digest result)"
}

# library NAME [GCC-OPTION...] and program NAME ...: built here, so that every rule of the search can be tried.
library() {
	local name=$1

	shift
	printf 'int %s(void){return 1;}\n' "$(tr -dc a-z <<<"$(basename "$name")")" >"src-$$.c"
	mkdir -p "$(dirname "$name")"
	gcc -shared -fPIC -o "$name" "src-$$.c" -Wl,-soname,"$(basename "$name")" -Wl,--no-as-needed "$@"
}

program() {
	local name=$1

	shift
	echo 'int main(void){return 0;}' >main.c
	gcc -o "$name" main.c -Wl,--no-as-needed "$@"
}

# agree PROGRAM: with the dynamic linker; leaves the names in ./names.
agree() {
	identity "$PWD/$1" || { cat stderr >&2; return 1; }
	jq -r '.files[].path' result >names
	rv_equal "$(listed "$PWD/$1")" "$(cat names)" "$1"
}

@test "RPATH, RUNPATH, \$ORIGIN, transitive needs, directories that hide one another" {
	rv_need gcc
	rv_need readelf
	library a/libone.so
	library b/libone.so -DB
	library a/libtwo.so -La -lone "-Wl,-rpath,\$ORIGIN"
	program p1 -La -ltwo "-Wl,--enable-new-dtags,-rpath,\$ORIGIN/a"
	agree p1
	grep -q "$PWD/a/libone.so" names
	# A RUNPATH is not inherited, a RPATH is.
	library c/libthree.so -La -lone
	program p2 -Lc -lthree -La "-Wl,--disable-new-dtags,-rpath,\${ORIGIN}/c:$PWD/a" -Wl,-rpath-link,a
	agree p2
	program p3 -Lc -lthree "-Wl,--enable-new-dtags,-rpath,$PWD/c:$PWD/a" -Wl,-rpath-link,a
	unavailable 'needs libone.so, which is nowhere' "$PWD/p3"
	# The first directory wins, and a file of another kind in it does not.
	program p4 -Lb -lone "-Wl,-rpath,$PWD/b:$PWD/a"
	agree p4
	grep -q "$PWD/b/libone.so" names
	echo 'no library' >b/libone.so
	identity "$PWD/p4" || true
	grep -q "$PWD/a/libone.so" result
	# Links are aliases.
	mkdir d
	ln -s ../a/libone.so d/libone.so
	program p5 -Ld -lone "-Wl,-rpath,$PWD/d"
	agree p5
	jq -e --arg p "$PWD/d/libone.so" '.aliases[] | select(.path == $p and .target == "../a/libone.so")' result
}

@test "glibc-hwcaps folders count, for the levels that this processor has" {
	rv_need gcc
	rv_need readelf
	library h/libone.so
	for level in v2 v3 v4; do
		library "h/glibc-hwcaps/x86-64-$level/libone.so"
	done
	program p -Lh -lone "-Wl,-rpath,$PWD/h"
	agree p
}

@test "what cannot be told without guessing is refused: relative and tokened directories, a missing library" {
	rv_need gcc
	library a/libone.so
	program p1 -La -lone -Wl,-rpath,a
	unavailable 'relative directory' "$PWD/p1"
	program p2 -La -lone "-Wl,-rpath,$PWD/a/\$LIB"
	unavailable 'other than $ORIGIN' "$PWD/p2"
	program p3 -La -lone "-Wl,-rpath,$PWD/a"
	identity "$PWD/p3"
	rm a/libone.so
	unavailable 'libone.so' "$PWD/p3"
}

@test "static programs, glibc and musl, are one file; musl's dynamic ones are two" {
	rv_need gcc
	program s -static
	identity "$PWD/s"
	holds 'len(r["files"]) == 1'
	rv_need musl-gcc
	echo 'int main(void){return 0;}' >main.c
	musl-gcc -static -o ms main.c
	identity "$PWD/ms"
	holds 'len(r["files"]) == 1'
	musl-gcc -o md main.c
	identity "$PWD/md"
	holds 'len(r["files"]) == 2' 'any("musl" in f["path"] for f in r["files"])'
}

@test "what is no ELF program of this host is unavailable" {
	printf '#!/bin/sh\n' >script
	chmod 755 script
	unavailable 'ELF' "$PWD/script"
	unavailable 'nowhere' "$PWD/nowhere"
	mkdir dir
	unavailable 'not a file' "$PWD/dir"
	cp /bin/sh plain
	chmod 644 plain
	unavailable 'ermission' "$PWD/plain"
	head -c 100 /bin/sh >short
	chmod 755 short
	unavailable 'ELF' "$PWD/short"
	# Another machine's (e_machine), and the 32-bit class.
	cp /bin/sh arm
	printf '\267' | dd of=arm bs=1 seek=18 conv=notrunc status=none
	unavailable 'ELF' "$PWD/arm"
	cp /bin/sh class32
	printf '\1' | dd of=class32 bs=1 seek=4 conv=notrunc status=none
	unavailable 'ELF' "$PWD/class32"
}

@test "a runtime that binfmt_misc gives to another program is unavailable, and is not once that entry is off" {
	rv_need userns
	mkdir bin # the launcher must belong to the caller also in the namespace of this test
	cp "$RV_BIN/rv-confine" bin/
	cp /bin/sh runtime.rvtest
	printf rvtest | dd of=runtime.rvtest bs=1 seek=9 conv=notrunc status=none # padding, that makes its head its own
	# The tables are the user namespace's own, since Linux 6.7.
	cat >inside <<'EOT'
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc || exit 9
cd /proc/sys/fs/binfmt_misc
printf ':rv-test:E::rvtest::/bin/true:' >register || exit 9
echo 0 >rv-test
"$1/bin/rv-confine" --describe-runtime "$1/runtime.rvtest" >"$1/off" 2>&1
echo 1 >rv-test
"$1/bin/rv-confine" --describe-runtime "$1/runtime.rvtest" >"$1/extension" 2>&1
echo -1 >rv-test
printf ':rv-magic:M:9:rvtexx:\\xff\\xff\\xff\\xff\\x00\\x00:/bin/true:' >register || exit 9
"$1/bin/rv-confine" --describe-runtime "$1/runtime.rvtest" >"$1/magic" 2>&1
echo -1 >rv-magic
printf ':rv-other:M:9:rvtexx::/bin/true:' >register || exit 9
"$1/bin/rv-confine" --describe-runtime "$1/runtime.rvtest" >"$1/other" 2>&1
EOT
	status=0
	unshare --user --map-root-user --mount sh inside "$PWD" || status=$?
	[ "$status" -ne 9 ] || skip "no binfmt_misc for a user namespace: Linux before 6.7"
	for file in off other; do
		jq -e '.digest' $file >/dev/null || rv_die "$file: $(cat $file)" || return
	done
	for file in extension magic; do
		grep -q '"runtime-unavailable".*binfmt_misc' $file || rv_die "$file: $(cat $file)" || return
	done
}

@test "damaged ELF files are refused, and end in no crash: bytes of the headers turned, files cut" {
	rv_need gcc
	program p
	size=$(stat -c %s p)
	for at in 32 33 40 54 55 56 57 64 72 80 96 104; do
		cp p broken
		printf '\377' | dd of=broken bs=1 seek="$at" conv=notrunc status=none
		code=0
		rv-confine --describe-runtime "$PWD/broken" >out 2>err || code=$?
		[ "$code" -eq 0 ] || [ "$code" -eq 5 ] || rv_die "byte $at: exit $code: $(cat err)"
	done
	for keep in 0 1 63 64 65 120 200 1000 $((size / 2)); do
		head -c "$keep" p >broken
		chmod 755 broken
		rv_fails 5 rv-confine --describe-runtime "$PWD/broken" >out 2>err
	done
}

@test "a changed library, alias or launcher changes the digest; the same does not" {
	rv_need gcc
	library a/libone.so.1
	ln -s libone.so.1 a/libone.so
	program p -La -lone "-Wl,-rpath,$PWD/a"
	identity "$PWD/p"
	one=$(jq -r .digest result)
	identity "$PWD/p"
	rv_equal "$one" "$(jq -r .digest result)"
	touch a/libone.so.1 p
	identity "$PWD/p"
	rv_equal "$one" "$(jq -r .digest result)" 'times are no part of it'
	printf 'x' >>a/libone.so.1
	identity "$PWD/p"
	[ "$one" != "$(jq -r .digest result)" ]
	mkdir bin
	cp "$RV_BIN/rv-confine" bin/
	identity /bin/sh
	two=$(jq -r .digest result)
	bin/rv-confine --describe-runtime /bin/sh >result
	[ "$two" != "$(jq -r .digest result)" ]
}

@test "the launcher must be a file that others cannot write" {
	mkdir bin
	cp "$RV_BIN/rv-confine" bin/
	chmod g+w bin/rv-confine
	rv_fails 5 bin/rv-confine --describe-runtime /bin/sh >result 2>stderr
	holds 'r["error"]["code"] == "unsupported-host"'
	grep -q 'chmod go-w' stderr
	chmod g-w bin/rv-confine
	bin/rv-confine --describe-runtime /bin/sh >/dev/null
}

# tree_digest DIR: as rv-confine-profile(7) has it, by another program.
tree_digest() {
	/usr/bin/python3 -Ic '
import hashlib, os, sys
top = sys.argv[1]
paths = [top] + [os.path.join(d, n) for d, ds, fs in os.walk(top) for n in ds + fs]
text = b"sf-confined-tree/1\n"
for path in sorted(paths, key=os.fsencode):
    st, name = os.lstat(path), os.fsencode(path[len(top):])
    mode = b"%04o" % (st.st_mode & 0o7777)
    if os.path.islink(path):
        text += b"l\t" + os.fsencode(os.readlink(path)) + b"\t" + name + b"\n"
    elif os.path.isdir(path):
        text += b"d\t" + mode + b"\t" + name + b"\n"
    else:
        data = open(path, "rb").read()
        text += b"f\t" + mode + b"\t%d\t" % len(data) + hashlib.sha256(data).hexdigest().encode() + b"\t" + name + b"\n"
print("sha256:" + hashlib.sha256(text).hexdigest())' "$1"
}

@test "a tree's digest covers path, size, mode and content, links by their text" {
	mkdir -p tree/d
	echo one >tree/d/a
	echo two >tree/b
	ln -s d/a tree/link
	identity /bin/sh --runtime-tree "$PWD/tree"
	one=$(jq -r '.trees[0].digest' result)
	rv_equal "$(tree_digest "$PWD/tree")" "$one"
	rv_equal "$PWD/tree" "$(jq -r '.trees[0].path' result)"
	for change in 'chmod 600 tree/b' 'echo x >>tree/b' 'mv tree/b tree/c' 'ln -sfn b tree/link' 'mkdir tree/e' 'chmod 700 tree/d'; do
		eval "$change"
		identity /bin/sh --runtime-tree "$PWD/tree"
		[ "$one" != "$(jq -r '.trees[0].digest' result)" ] || rv_die "not seen: $change"
		one=$(jq -r '.trees[0].digest' result)
		rv_equal "$(tree_digest "$PWD/tree")" "$one"
	done
}

@test "the libraries of a tree's modules are in the closure" {
	rv_need gcc
	library a/libneeded.so
	mkdir tree
	library tree/module.so -La -lneeded "-Wl,-rpath,$PWD/a"
	identity /bin/sh --runtime-tree "$PWD/tree"
	jq -e --arg p "$PWD/a/libneeded.so" '.files[] | select(.path == $p)' result
	rm a/libneeded.so
	identity /bin/sh --runtime-tree "$PWD/tree" # nobody can load that module, and nothing else is missing
	holds 'not any(f["path"].endswith("libneeded.so") for f in r["files"])'
}

@test "a tree that is /, or lies where secrets do, is invalid; also by a link" {
	for dir in / /etc /etc/ssl /proc /proc/self /sys /dev /run; do
		[ -d "$dir" ] || continue
		rv_fails 2 rv-confine --describe-runtime /bin/sh --runtime-tree "$dir" >out 2>err || rv_die "$dir"
		[ ! -s out ]
	done
	for dir in /root /home; do
		rv_fails 2 rv-confine --describe-runtime /bin/sh --runtime-tree "$dir" >out 2>err
		grep -q allow-home-tree err
	done
	ln -s /etc link
	rv_fails 2 rv-confine --describe-runtime /bin/sh --runtime-tree "$PWD/link" >out 2>err
	mkdir -p tree/in
	rv_fails 2 rv-confine --describe-runtime /bin/sh --runtime-tree "$PWD/tree" --runtime-tree "$PWD/tree/in" >out 2>err
	grep -q 'lies in another' err
	mkfifo tree/fifo
	unavailable 'neither a file' /bin/sh --runtime-tree "$PWD/tree"
}

@test "a link that leads to where the snapshots go inside: invalid, since the snapshot would stand for the runtime" {
	rv_need bwrap
	mkdir -p root prog/tree away/tree in
	chmod 700 root
	echo forged >prog/tree/x
	echo genuine >away/tree/x
	cp "$SH" away/sh
	ln -s /program/tree tree
	ln -s /program/sh sh
	echo 'read -r l </program/tree/x; echo "$l"' >prog/main.sh
	placed() {
		bwrap --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/bin /bin --proc /proc --dev /dev \
			--bind "$RV_BIN" "$RV_BIN" --bind "$PWD" "$PWD" --bind "$PWD/away" "$1" \
			rv-confine --root "$PWD/root" --program prog --input in --unpinned --entry main.sh --profile landlock/1 "${@:2}" >result 2>stderr
	}
	placed /elsewhere --runtime "$SH" || rv_die "$(cat stderr)"
	for bad in "--runtime $SH --runtime-tree $PWD/tree" "--runtime $PWD/sh"; do
		# shellcheck disable=SC2086
		rv_fails 2 placed /program $bad || rv_die "$bad: $(cat stderr)" || return
		grep -q 'where the snapshots go: /program/' stderr || rv_die "$(cat stderr)" || return
	done
	[ -z "$(ls -A root)" ]
}

@test "a profile is written in canonical form as it stands, and its digest is over that" {
	for profile in linux/1 linux/1+proc landlock/1; do
		rv-confine --describe-profile --profile $profile >result
		sed 's/^{"name":"[^"]*","digest":"[^"]*","profile"://; s/}$//' result | tr -d '\n' >text
		rv-key --canonical text | cmp - text
		rv_equal "$(jq -r .digest result)" "sha256:$(sha256sum <text | cut -d' ' -f1)"
	done
}

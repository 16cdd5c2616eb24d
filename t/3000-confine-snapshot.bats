# rv-confine --snapshot: what a snapshot holds, what it refuses, and its digest.
load helper
load confine

# refused WHAT DIR|ARCHIVE: exit 2, nothing printed, and the reason is WHAT.
refused() {
	rv_fails 2 rv-confine --snapshot "$2" >out 2>err || { cat err >&2; return 1; }
	[ ! -s out ] || rv_die "printed: $(cat out)" || return
	grep -q -- "$1" err || rv_die "no \"$1\" in: $(cat err)"
}

digest() {
	rv-confine --snapshot "$1" | jq -r .digest
}

@test "the vectors: each digest, as a directory and as archives" {
	while read -r line; do
		rm -rf dir t.tar
		mkdir dir
		jq -r '.files[] | "\(.path) \(.contentBase64)"' <<<"$line" >files
		while read -r path content; do
			mkdir -p "dir/$(dirname "$path")"
			base64 -d <<<"$content" >"dir/$path"
		done <files
		rv_equal "$(jq -r .digest <<<"$line")" "$(digest dir)" "$(jq -r .name <<<"$line")"
		tar -C dir -cf t.tar .
		rv_equal "$(jq -r .digest <<<"$line")" "$(digest t.tar)" "$(jq -r .name <<<"$line") in a tar"
	done <"$RV_SRC/t/vectors/snapshots.jsonl"
}

@test "the digest is what the protocol says, computed by another program" {
	mkdir -p dir/lib
	printf 'one' >dir/lib/b.js
	: >dir/a.js
	printf 'sf-confined-snapshot/1\na.js\t0\t%s\nlib/b.js\t3\t%s\n' "$(sha256sum <dir/a.js | cut -c-64)" \
		"$(sha256sum <dir/lib/b.js | cut -c-64)" >text
	rv_equal "sha256:$(sha256sum <text | cut -c-64)" "$(digest dir)"
	rv-confine --snapshot dir >result
	holds 'list(r) == ["digest", "files"]' 'r["files"][1]["path"] == "lib/b.js" and r["files"][1]["size"] == 3' \
		'all(len(f["sha256"]) == 64 for f in r["files"])'
}

@test "the same bytes are the same snapshot in every kind of archive; modes, order and empty directories are nothing" {
	mkdir -p dir/sub/empty
	echo x >dir/sub/x.js
	echo y >dir/y
	want=$(digest dir)
	chmod 755 dir/y
	rv_equal "$want" "$(digest dir)" modes
	tar -C dir -cf a.tar sub y
	tar -C dir -cf b.tar ./y ./sub/x.js
	tar -C dir -czf c.tgz .
	tar -C dir -cJf d.txz .
	tar -C dir -cjf e.tbz2 . 2>/dev/null || cp c.tgz e.tbz2
	/usr/bin/python3 -Ic '
import os, zipfile
with zipfile.ZipFile("f.zip", "w", zipfile.ZIP_DEFLATED) as z:
    z.write("dir/y", "y"); z.write("dir/sub/x.js", "sub/x.js")'
	(cd dir && find . | /usr/bin/python3 -Ic '
import sys, os
def pad(b): return b + b"\0" * (-len(b) % 4)
out = b""
def entry(name, mode, data):
    n = name.encode() + b"\0"
    h = b"070701" + b"".join(b"%08x" % v for v in (1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(n), 0))
    return pad(h + n) + pad(data)
for name in sys.stdin.read().split("\n"):
    if not name: continue
    out += entry(name, 0o40755, b"") if os.path.isdir(name) else entry(name, 0o100644, open(name, "rb").read())
out += entry("TRAILER!!!", 0, b"")
open("../g.cpio", "wb").write(out)')
	for archive in a.tar b.tar c.tgz d.txz e.tbz2 f.zip g.cpio; do
		rv_equal "$want" "$(digest "$archive")" "$archive"
	done
}

@test "links and devices are refused and never followed" {
	mkdir dir
	echo secret >secret
	ln -s ../secret dir/a
	refused 'a link' dir
	rm dir/a
	mkfifo dir/p
	refused 'neither a file nor a directory' dir
	rm dir/p
	/usr/bin/python3 -Ic 'import socket; socket.socket(socket.AF_UNIX).bind("dir/s")'
	refused 'neither a file nor a directory' dir
	rm dir/s
	ln -s dir link
	refused 'is a link' link
	echo x >dir/x
	ln dir/x dir/y
	digest dir # two names of one file are two files
	tar -C dir -cf hard.tar .
	refused 'a link' hard.tar
	rm dir/y
	ln -s x dir/z
	tar -C dir -cf soft.tar .
	refused 'a link' soft.tar
	rm dir/z
	mkfifo dir/p
	tar -C dir -cf fifo.tar .
	refused 'neither a file nor a directory' fifo.tar
}

# tarball FILE: of members NAME=CONTENT.
tarball() {
	/usr/bin/python3 -Ic '
import io, sys, tarfile
with tarfile.open(sys.argv[1], "w", format=tarfile.PAX_FORMAT) as t:
    for arg in sys.argv[2:]:
        name, _, content = arg.partition("=")
        info = tarfile.TarInfo(name.rstrip("/"))
        if name.endswith("/"):
            info.type = tarfile.DIRTYPE
        info.size = len(content)
        t.addfile(info, io.BytesIO(content.encode()))' "$@"
}

@test "absolute and climbing paths, foreign characters and too long paths are refused, in archives too" {
	tarball t /etc/x=1
	refused 'relative' t
	tarball t ../x=1
	refused '"." or ".."' t
	tarball t a/../x=1
	refused '"." or ".."' t
	tarball t a/./x=1
	refused '"." or ".."' t
	tarball t ok=1 ../d/
	refused '"." or ".."' t
	for name in 'a b' 'a:b' 'a\b' 'a"b'; do
		tarball t "$name=1"
		refused 'A-Z a-z 0-9' t
		rm -rf dir
		mkdir dir
		echo >"dir/$name"
		refused 'A-Z a-z 0-9' dir
	done
	tarball t $'n\n=1'
	refused 'A-Z a-z 0-9' t
	long=$(printf 'a%.0s' {1..128})
	tarball t "$long/$long=1" # 257 characters
	refused '256 characters' t
	tarball t "$long/${long%a}=1"
	digest t
	tarball t a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p=1
	digest t
	tarball t a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q=1
	refused '16 segments' t
	rm -rf dir
	mkdir -p dir/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p
	echo >dir/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q
	refused '16 segments' dir
}

@test "duplicates but for case, and clashes of files and directories, are refused" {
	tarball t a=1 a=2
	refused twice t
	tarball t a.js=1 A.JS=2
	refused twice t
	tarball t a=1 a/b=2
	refused 'a file and a directory' t
	tarball t a=1 A/b=2
	refused 'a file and a directory' t
	tarball t d/a=1 D/b=2
	refused 'but for case' t
	tarball t b=1 a.b/c=2 a=3
	digest t
	mkdir dir
	echo >dir/x
	echo >dir/X
	refused twice dir
}

@test "at most 4096 files and 64 MiB; exactly that is fine" {
	mkdir many
	(cd many && seq 4096 | xargs touch)
	digest many
	touch many/more
	refused '4096 files' many
	mkdir big
	truncate -s 32M big/a
	truncate -s 32M big/b
	digest big
	echo >big/c
	refused '64 MiB' big
	# An archive's own claims bound nothing: 1 MiB that unpacks to more than 64.
	truncate -s 65M huge
	tar -czf huge.tgz huge
	refused '64 MiB' huge.tgz
	truncate -s 1M hole
	tar -cSf hole.tar hole
	refused 'not as long' hole.tar
}

@test "what is no whole archive is refused: text, nothing, a cut one; mtree would name files outside" {
	echo hello >t
	refused 'no whole archive' t
	: >t
	refused 'no whole archive' t
	mkdir dir
	head -c 300000 /dev/urandom >dir/x
	tar -C dir -czf t .
	truncate -s 100000 t
	refused 'no whole archive' t
	printf '#mtree\n./x type=file contents=/etc/passwd size=10\n' >t
	refused 'no whole archive' t
	rv_fails 5 rv-confine --snapshot nowhere
}

@test "libarchive is loaded for an archive and not for a directory" {
	rv_need strace
	mkdir dir
	tar -cf t dir
	strace -f -e trace=openat -o trace rv-confine --snapshot dir
	rv_fails 1 grep libarchive trace
	strace -f -e trace=openat -o trace rv-confine --snapshot t
	grep -q libarchive trace
}

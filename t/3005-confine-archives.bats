# rv-confine: an archive is read by a process of its own, which has nothing but the archive.
load helper
load confine

# stand_in: a copy of the program in ./own whose helper is the script on standard input.
stand_in() {
	mkdir -p own/libexec
	cp "$RV_BIN/rv-confine" own/
	cat >own/libexec/rv-unpack
	chmod 755 own/libexec/rv-unpack
}

# One that says its number in ./reader, and then nothing.
stand_in_that_waits() {
	stand_in <<-SCRIPT
		#!/bin/sh
		echo \$\$ >"$PWD/reader.new" && mv "$PWD/reader.new" "$PWD/reader"
		exec sleep 600
	SCRIPT
}

# ends_by_term PID: rv-confine, once it has such a helper; which ends with it.
ends_by_term() {
	local status=0

	rv_until is_named
	kill -TERM "$1"
	wait "$1" || status=$?
	rv_equal 3 "$status"
	rv_fails 1 test -d "/proc/$(cat reader)"
	root_is_empty
}

# said TEXT: the refusal is this, and nothing is printed.
said() {
	[ ! -s out ] || rv_die "printed: $(cat out)" || return
	grep -qF -- "$1" err || rv_die "no \"$1\" in: $(cat err)"
}

# value NAME PID: of its status.
value() {
	sed -n "s/^$1:[[:space:]]*//p" "/proc/$2/status" | tr -s '[:space:]' ' ' | sed 's/ $//'
}

# A reader that waits for the first byte of the archive; its number is in $reader.
waiting_reader() {
	mkfifo pipe
	mkfifo said
	cat said >records &
	"$RV_BIN/libexec/rv-unpack" <pipe >said &
	reader=$!
	exec 7>pipe
	rv_until is_restricted
}

is_restricted() {
	[ "$(value Seccomp "$reader")" = 2 ]
}

@test "before the first byte it has nothing: no root, no group, no capability, no new privilege, three descriptors" {
	waiting_reader
	rv_equal '1' "$(value NoNewPrivs "$reader")"
	for set in Inh Prm Eff Amb; do
		rv_equal 0000000000000000 "$(value "Cap$set" "$reader")" "$set"
	done
	if [ "$(id -u)" -eq 0 ]; then
		rv_equal '65534 65534 65534 65534' "$(value Uid "$reader")"
		rv_equal '65534 65534 65534 65534' "$(value Gid "$reader")"
		rv_equal '' "$(value Groups "$reader")"
		rv_equal 0000000000000000 "$(value CapBnd "$reader")"
		rv_equal '0 1 2' "$(cd "/proc/$reader/fd" && echo *)"
	fi
	sed -nE 's/^Max (cpu time|file size|core file size|open files|address space) +([0-9a-z]+) +([0-9a-z]+) .*/\1 \2 \3/p' \
		"/proc/$reader/limits" | sort >limits
	rv_have own-memory || sed -i 's/^address space.*/address space 2147483648 2147483648/' limits
	printf '%s\n' 'address space 2147483648 2147483648' 'core file size 0 0' 'cpu time 60 61' 'file size 0 0' 'open files 3 3' |
		diff - limits
	exec 7>&-
	wait "$reader"
}

@test "an archive that comes slowly through a pipe is read as it comes" {
	mkdir dir
	echo x >dir/x
	tar -C dir -cf a.tar x
	truncate -s 2048 a.tar # its end is there, and nothing that nobody reads
	waiting_reader
	head -c 700 a.tar >&7
	tail -c +701 a.tar >&7
	exec 7>&-
	wait "$reader"
	wait
	rv_equal E "$(head -c 1 records)"
	rv_equal Z "$(tail -c 9 records | head -c 1)"
}

# Made by libarchive itself: what each kind loads late (conversions of names, the zone of times) must be there before.
@test "every kind of archive and of compression is the same snapshot as the directory" {
	mkdir -p dir/lib
	seq 60000 >dir/lib/b
	echo one >dir/a.js
	want=$(rv-confine --snapshot dir | jq -r .digest)
	/usr/bin/python3 -I - dir <<'PY'
import ctypes
L = ctypes.CDLL("libarchive.so.13")
for name in ("archive_write_new", "archive_entry_new"):
    getattr(L, name).restype = ctypes.c_void_p
def make(out, form, compression=None, options=None):
    a = ctypes.c_void_p(L.archive_write_new())
    assert getattr(L, "archive_write_set_format_" + form)(a) == 0
    assert compression is None or getattr(L, "archive_write_add_filter_" + compression)(a) == 0, compression
    assert options is None or L.archive_write_set_options(a, options.encode()) == 0
    assert L.archive_write_open_filename(a, out.encode()) == 0
    for name in ("a.js", "lib/b"):
        data = open("dir/" + name, "rb").read()
        e = ctypes.c_void_p(L.archive_entry_new())
        L.archive_entry_set_pathname(e, name.encode())
        L.archive_entry_set_filetype(e, 0o100000)
        L.archive_entry_set_perm(e, 0o644)
        L.archive_entry_set_size(e, ctypes.c_int64(len(data)))
        L.archive_entry_set_mtime(e, ctypes.c_long(1500000000), ctypes.c_long(0))
        assert L.archive_write_header(a, e) == 0
        assert L.archive_write_data(a, data, ctypes.c_size_t(len(data))) == len(data)
        L.archive_entry_free(e)
    assert L.archive_write_close(a) == 0
    L.archive_write_free(a)
for form in ("pax", "ustar", "gnutar", "cpio_newc", "zip", "7zip", "iso9660"):
    make("k." + form, form)
for c in ("gzip", "bzip2", "xz", "lzma", "lzip", "lz4", "zstd", "compress"):
    make("k.tar." + c, "pax", c)
for c in ("lzma1", "lzma2", "bzip2", "deflate", "ppmd"):
    make("k.7zip." + c, "7zip", None, "7zip:compression=" + c)
make("k.tar.xz-threads", "pax", "xz", "xz:threads=2")
make("k.tar.zstd-22", "pax", "zstd", "zstd:compression-level=22")
PY
	for archive in k.*; do
		rv_equal "$want" "$(rv-confine --snapshot "$archive" | jq -r .digest)" "$archive"
	done
	[ "$(ls k.* | wc -l)" -eq 22 ]
}

@test "names in UTF-8, in another encoding and in none are refused by the same words in the boundary as without it" {
	/usr/bin/python3 -Ic '
import struct, zipfile, zlib
def raw(out, name, put):
    with zipfile.ZipFile(out, "w") as z:
        z.writestr(name, "x")
    data = open(out, "rb").read().replace(name.encode(), put)
    open(out, "wb").write(data)
with zipfile.ZipFile("utf8.zip", "w") as z:
    z.writestr("n\u00e4\u65e5", "x")
raw("latin.zip", "aXb", b"a\xe4b")
def xar(out, encoding):
    xml = ("<?xml version=\"1.0\" encoding=\"%s\"?>\n<xar><toc><file id=\"1\"><name>abc</name><type>file</type></file></toc></xar>"
           % encoding).encode()
    packed = zlib.compress(xml)
    open(out, "wb").write(struct.pack(">IHHQQI", 0x78617221, 28, 1, len(packed), len(xml), 0) + packed)
xar("utf8.xar", "UTF-8")
xar("koi8.xar", "KOI8-R")'
	rv_fails 2 rv-confine --snapshot utf8.zip >out 2>err
	said 'Pathname cannot be converted from UTF-8'
	rv_fails 2 rv-confine --snapshot latin.zip >out 2>err
	said 'a path has only A-Z a-z 0-9'
	rv_equal abc "$(rv-confine --snapshot utf8.xar | jq -r '.files[].path')"
	# This one names code that would have to be loaded.
	rv_fails 2 rv-confine --snapshot koi8.xar >out 2>err
	said 'no whole archive: its reader was ended by SIGSYS'
}

@test "a helper that is somebody else's: garbage, lengths that are none, a death, a word behind the end" {
	: >archive
	mkdir -p -m 700 root
	while IFS='|' read -r script why; do
		printf '#!/bin/sh\n%s\n' "$script" | stand_in
		rv_fails 2 own/rv-confine --snapshot archive >out 2>err
		said "$why"
		rv_fails 2 own/rv-confine --root "$PWD/root" --runtime "$SH" --program archive --entry a.sh --unpinned >out 2>err
		said "invalid confined run request: archive: snapshot: no whole archive: "
		root_is_empty
	done <<'ROWS'
echo garbage|no whole archive: what its reader says makes no sense: a record of no kind
printf 'E\0\0\0\0\0\0\0\200'|no whole archive: what its reader says makes no sense: a record of no such length
printf 'Z\0\0\0\0\0\0\0\0E\2\0\0\0\0\0\0\0\10a'|no whole archive: what its reader says makes no sense: more behind the end
printf 'E\2\0\0\0\0\0\0\0\10aC\7\0'; kill -9 $$|no whole archive: its reader was ended by SIGKILL
printf 'Z\0\0\0\0\0\0\0\0'; exit 3|no whole archive: its reader exited with 3
exit 0|no whole archive: its reader ended early
ROWS
}

@test "a helper that is not there, or cannot be run, is named with the package" {
	: >archive
	mkdir own
	cp "$RV_BIN/rv-confine" own/
	rv_fails 5 own/rv-confine --snapshot archive >out 2>err || skip 'this package is installed here, too'
	said 'this package (rv-tools)'
	said '/rv-unpack: No such file or directory'
	rm -r own
	stand_in <<<'#!/nowhere/at-all'
	rv_fails 5 own/rv-confine --snapshot archive >out 2>err
	said 'the helper that reads archives cannot be run: No such file or directory'
}

is_named() {
	[ -s reader ]
}

@test "a run that is cancelled while its archive is read ends at once, with a result, and leaves neither process nor slot" {
	: >archive
	mkdir -p -m 700 root
	stand_in_that_waits
	own/rv-confine --root "$PWD/root" --runtime "$SH" --program archive --entry a.sh --unpinned >result 2>stderr &
	ends_by_term $!
	holds 'r["status"] == "not-started" and r["reason"] == "aborted" and r["namespace"] is None' '"cancelled" in r["message"]'
}

@test "a stream that is cancelled in an archive answers the line, and a killed one takes the helper along" {
	: >archive
	mkdir -p -m 700 root prog in
	echo 'exit 0' >prog/main.sh
	pins_for "$SH" linux/1
	request 'del(.program.dir) | .program.archive = "'"$PWD"'/archive" | .id = "one"' >lines
	stand_in_that_waits
	own/rv-confine --root "$PWD/root" --stream <lines >result 2>stderr &
	ends_by_term $!
	holds 'r["id"] == "one" and r["status"] == "not-started" and r["reason"] == "aborted"'
	rm reader
	own/rv-confine --snapshot archive >result 2>stderr &
	run=$!
	rv_until is_named
	kill -KILL "$run"
	wait "$run" || true
	rv_until reader_is_gone
}

reader_is_gone() {
	[ ! -d "/proc/$(cat reader)" ] || [ "$(value State "$(cat reader)" | cut -c1)" = Z ]
}

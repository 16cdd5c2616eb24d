# A ledger on a network file system, which t/faults/remote.so stands in for: where neither locks nor appends can be
# relied on nothing is written, nothing runs, and the scan reads but says of nobody that he lives or is dead.
load helper
load exec

setup() {
	mkdir dirs far
	marking_tool
	x --key whole --ledger far/l.jsonl -- "$PWD/mark"
	# Of a writer that is dead, as far as a local file system could tell.
	grep '"intent"' far/l.jsonl | sed 's/"idempotencyKey":"whole"/"idempotencyKey":"left"/; s/"attemptId":"[^"]*"/"attemptId":"left"/' >row
	cat row >>far/l.jsonl
	rv_fails 1 rv-ledger-scan far/l.jsonl | grep -q '"state":"orphan"'
	: >ran
}

# on MAGIC COMMAND...: with ./far on such a file system.
on() {
	local magic=$1

	shift
	RV_REMOTE_MAGIC=$magic RV_REMOTE_UNDER=$(pwd -P)/far LD_PRELOAD=$RV_BIN/t/faults/remote.so \
		ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" "$@"
}

# z OPTION...
z() {
	x --key k --ledger far/l.jsonl "$@" -- "$PWD/mark"
}

@test "NFS, SMB, CIFS, 9p, FUSE: rv-exec refuses before anything, the repair refuses, the scan reads" {
	printf '{"torn' >>far/l.jsonl
	cp far/l.jsonl before
	while read -r magic name; do
		fails ledger 122 on "$magic" z
		grep -q "far/l.jsonl: on a file system ($name) where neither locks nor appends can be relied on" stderr
		[ ! -s ran ]
		no_workdir
		rv_fails 5 on "$magic" rv-ledger-repair far/l.jsonl >out 2>err
		[ ! -s out ]
		grep -q "far/l.jsonl: on a file system ($name) where" err
		cmp before far/l.jsonl
		rv_equal l.jsonl "$(ls -A far)"
		rv_fails 1 on "$magic" rv-ledger-repair --check far/l.jsonl >out # which writes nothing
		rv_equal quarantined "$(member action out)"
		rv_fails 1 on "$magic" rv-ledger-scan far/l.jsonl >out 2>err
		rv_equal 'left unknown' "$(jq -r '.idempotencyKey + " " + .state' out)"
		grep -q 'a torn tail' err
		rv_fails 1 on "$magic" rv-ledger-scan --format report far/l.jsonl >out
		rv_fails 1 rv-ledger-scan --format report far/l.jsonl >want
		cmp want out
	done <<-'KINDS'
		0x6969 nfs
		0x517b smb
		0xff534d42 cifs
		0xfe534d42 smb2
		0x01021997 9p
		0x65735546 fuse
	KINDS
}

@test "a stream is refused there as a whole, and a ledger that is not there yet is not made" {
	echo '{"id":1,"tool":"t","args":{},"ctx":{"runId":"r","idempotencyKey":"k"}}' >requests
	for ledger in l new; do
		rv_fails 122 on 0x6969 rv-exec --stream --workdir-base "$PWD/dirs" --ledger far/$ledger.jsonl -- "$PWD/mark" <requests >replies 2>stderr
		grep -q "^rv-exec: far/$ledger.jsonl: on a file system (nfs) where" stderr
		[ ! -s replies ]
		[ ! -s ran ]
	done
	rv_equal l.jsonl "$(ls -A far)"
}

@test "--ledger-unsafe-fs takes it all the same; and a local one under the same stand-in needs no such word" {
	rv_equal 1 "$(on 0x6969 z --ledger-unsafe-fs)"
	rv_equal k "$(cat ran)"
	for magic in 0xef53 0x01021994 0x58465342 0x9123683e 0x794c7630; do # ext4, tmpfs, xfs, btrfs, overlayfs
		rv_equal 1 "$(on $magic z)"
	done
	printf '{"torn' >>far/l.jsonl
	on 0xef53 rv-ledger-repair far/l.jsonl >out
	rv_equal quarantined "$(member action out)"
	rv_fails 1 on 0xef53 rv-ledger-scan far/l.jsonl >out
	rv_equal 'left orphan' "$(jq -r '.idempotencyKey + " " + .state' out)"
}

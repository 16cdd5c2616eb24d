# A ledger on a file system of 1 MiB that fills and empties, in a mount namespace that any user can have.
load helper
load exec

setup() {
	rv_need userns
	mkdir disk dirs
	marking_tool
	# What each test does is on the disk: inside.  It is the rest of the file, in the namespace.
	cat >preamble <<-'SHELL'
		set -eEuo pipefail
		trap 'echo "line $LINENO: $BASH_COMMAND" >&2' ERR
		. "$RV_SRC/t/helper.bash"
		. "$RV_SRC/t/exec.bash"
		mount -t tmpfs -o size=1m none disk

		# row BYTES N: an outcome of so many bytes, its newline included.
		row() {
			local row='{"phase":"outcome","idempotencyKey":"k","runId":"r","spanId":"s","tool":"@","argsHash":"h","executor":"e","workdir":"/w","startedAt":'$2',"attemptId":"a-'$2'","durationMs":1,"outcome":"ok","exitCode":0,"signal":null}'
			local padding

			printf -v padding '%*s' $(($1 - ${#row})) ''
			printf '%s\n' "${row/@/$padding}"
		}

		# append BYTES: the next row; what was confirmed so far is in ./confirmed.
		n=0
		append() {
			n=$((n + 1))
			row "$1" $n >row
			LEDGER_WAIT_MS=${LEDGER_WAIT_MS:-10000} "$RV_BIN/t/ledger-tool" append disk/l.jsonl <row 2>err || return
			cat row >>confirmed
		}

		# fill LEFT: no room but for the last page of the ledger, of which so many bytes are left.
		fill() {
			local size

			size=$(stat -c %s disk/l.jsonl)
			append $((8192 - size % 4096 - $1))
			cat /dev/zero >disk/fill 2>full || grep -q 'No space left' full
			rv_equal 0 "$(stat -f -c %f disk)"
		}

		# cut_row LEFT: fill, and a row that is cut in two by the end of the disk; ./fragment is what of it is there.
		cut_row() {
			local size

			fill "$1"
			size=$(stat -c %s disk/l.jsonl)
			rv_fails 1 append 700
			grep -q "^ledger-tool: ledger: .*: only $1 of 700 bytes were written" err
			head -c "$1" row >fragment
			tail -c "+$((size + 1))" disk/l.jsonl | cmp fragment
			cp disk/l.jsonl cut
		}

		# is_quarantined COUNT: so many torn tails are, ./fragment the last of them, and each confirmed row is there.
		is_quarantined() {
			local want have

			rv-ledger-scan --format report disk/l.jsonl >report
			rv_equal "$1 [] null" "$(jq -r '"\(.tornArtifacts | length) \(.corrupt) \(.tornTail)"' report)"
			rows disk/l.jsonl 'r["phase"] == "torn"' | tail -n 1 | jq -r .bytesBase64 | base64 -d | cmp fragment
			want=$(sort confirmed | sha256sum)
			have=$(grep -F '"attemptId":"a-' disk/l.jsonl | grep -v '"phase":"torn"' | sort | sha256sum)
			rv_equal "$want" "$have" 'the confirmed rows'
			rv_equal l.jsonl "$(ls -I fill disk)"
		}

		: >confirmed
		append 3000
	SHELL
}

inside() {
	local user=

	[ "$(id -u)" -eq 0 ] || user='--user --map-root-user'
	cat preamble - >script
	# shellcheck disable=SC2086 # words, or none
	unshare $user --mount bash script
}

@test "a row cut in two by the end of the disk: it is named, kept as it is while there is no room, and quarantined by the next append" {
	inside <<-'SHELL'
		cut_row 100
		rv-ledger-scan --format summary disk/l.jsonl >summary 2>err
		rv_equal "$((n - 1)) 0 1" "$(jq -r '"\(.outcomes) \(.corrupt) \(.tornTails)"' summary)"
		grep -q "disk/l.jsonl:$n: byte $(($(stat -c %s cut) - 100)): a torn tail" err
		rv_fails 1 rv-ledger-repair --check disk/l.jsonl >out
		rv_equal "quarantined $n 100 $(sha256sum <fragment | cut -d ' ' -f 1)" "$(jq -r '"\(.action) \(.line) \(.bytes) \(.sha256)"' out)"
		# No room for a repair: nothing is glued, nothing lost, and nothing left beside it.
		rv_fails 5 rv-ledger-repair --wait 500ms disk/l.jsonl >out 2>err
		grep -q 'No space left' err
		rv_fails 1 append 300
		grep -q '^ledger-tool: ledger: .*No space left' err
		cmp cut disk/l.jsonl
		rv_equal l.jsonl "$(ls -I fill disk)"
		rm disk/fill
		append 300
		is_quarantined 1
		# And again.
		cut_row 37
		rm disk/fill
		rv-ledger-repair disk/l.jsonl >out
		rv_equal "quarantined $(($(stat -c %s cut) - 37)) 37 $(sha256sum <fragment | cut -d ' ' -f 1)" \
			"$(jq -r '"\(.action) \(.offset) \(.bytes) \(.sha256)"' out)"
		is_quarantined 2
		append 300
		is_quarantined 2
		# All but its newline: it was not confirmed, and is whole.
		cut_row 699
		rm disk/fill
		append 300
		rv-ledger-scan --format summary disk/l.jsonl >summary
		rv_equal "$(($(wc -l <confirmed) + 1)) 2 0" "$(jq -r '"\(.outcomes) \(.tornArtifacts) \(.corrupt)"' summary)"
	SHELL
}

@test "room that comes page by page: at none of them is anything lost" {
	inside <<-'SHELL'
		for left in 650 300 1; do
			cut_row $left
			for ((pages = 1; pages < 20; pages++)); do
				truncate -s -4096 disk/fill
				LEDGER_WAIT_MS=300 append 5000 && break
				cmp -n "$(stat -c %s cut)" cut disk/l.jsonl || grep -qF "$(base64 -w 0 fragment)" disk/l.jsonl
				rv-ledger-scan disk/l.jsonl 2>err
			done
			[ $pages -gt 1 ] && [ $pages -lt 20 ] || rv_die "room after $pages pages"
			rm disk/fill
			rv-ledger-repair disk/l.jsonl >out # of a row that the disk cut again on the way
			rows disk/l.jsonl 'r["phase"] == "torn"' | jq -r .bytesBase64 | grep -xF "$(base64 -w 0 fragment)" >/dev/null
			rv-ledger-scan --format summary disk/l.jsonl >summary
			rv_equal "$(wc -l <confirmed) 0 0" "$(jq -r '"\(.outcomes) \(.corrupt) \(.tornTails)"' summary)"
			rv_equal l.jsonl "$(ls disk)"
		done
	SHELL
}

@test "rv-exec: an intent that is cut in two is ledger and nothing runs; it goes on when there is room" {
	inside <<-'SHELL'
		z() { x --key "$1" --ledger disk/l.jsonl -- "$PWD/mark"; }
		for left in 100 0; do
			fill $left
			cp disk/l.jsonl before
			fails ledger 122 z refused
			grep -q 'so nothing was run' stderr
			[ ! -s ran ]
			no_workdir
			cmp -n "$(stat -c %s before)" before disk/l.jsonl
			rv_equal $left $(($(stat -c %s disk/l.jsonl) - $(stat -c %s before)))
			rv-ledger-scan disk/l.jsonl >orphans 2>err # no orphan: none of it was confirmed
			[ ! -s orphans ]
			rm disk/fill
			rv_equal 1 "$(z "after-$left")"
			rv_equal "after-$left" "$(cat ran)"
			: >ran
		done
		rv-ledger-repair --check disk/l.jsonl >out
		rv-ledger-scan --format summary disk/l.jsonl >summary
		rv_equal '2 1 0 0' "$(jq -r '"\(.intents) \(.tornArtifacts) \(.corrupt) \(.tornTails)"' summary)"
	SHELL
}

# The examples of the pages and of the README run as they are written.
load helper

# The tools and files that the examples speak of.
setup() {
	mkdir example
	cd example || return
	printf '#!/bin/sh\nread -r line\nprintf "%%s\\n" "$line" >>"%s/charged"\necho "{\\"receipt\\":1}"\n' "$PWD" >charge
	printf '#!/bin/sh\nread -r line\n[ "$TOKEN" = t0p ] || exit 1\necho null\n' >send
	printf '#!/bin/sh\necho "{\\"TOKEN\\":\\"t0p\\"}"\n' >mint-token
	printf '#!/bin/sh\nread -r line\necho 3\n' >sum
	chmod +x charge send mint-token sum
	echo '{"invoice":"2026-0412","cents":1999}' >invoice.json
	echo '{"to":"someone@example.org"}' >letter.json
	echo '{"tool":"charge","args":{"invoice":1},"ctx":{"runId":"r","idempotencyKey":"k1"}}' >requests.jsonl
	rv-key --new-run mail.run
	: >effects.jsonl
	: >effects.w1.jsonl
	mkdir there
	cp charge there
	cp "$RV_SRC/t/host" .
	chmod +x host
	export HOSTS="2/$PWD/host there"
}

teardown() {
	[ -n "${PG_DIR:-}" ] || return 0
	pg_stop "$PG_DIR" immediate || :
	rm -rf "$PG_DIR"
}

# page_commands PAGE [SECTION]: a file command.N for each "$ " command of its EXAMPLES, and expect.N for
# the output that the display shows after it, if it shows any.  A command goes on while its quotes are open.
page_commands() {
	awk -v section=".Sh ${2:-EXAMPLES}" '
		function is_open(text) { return gsub(/\047/, "", text) % 2 }
		/^\.Sh/ { on = $0 == section }
		/^\.Bd/ { display = 1; current = 0 } # a display without a command shows no output
		/^\.Ed/ { display = more = 0 }
		!on || !display || /^\./ { next }
		{ gsub(/\\e/, "\\") }
		/^\$ / {
			current = ++n
			sub(/^\$ /, "")
			print >("command." n)
			quoted = is_open($0)
			more = quoted || /(\\|\||&&)$/
			next
		}
		n && more {
			print >("command." n)
			quoted = (quoted + is_open($0)) % 2
			more = quoted || /(\\|\||&&)$/
			next
		}
		current && NF { print >("expect." n) }' "$1"
}

# Run them in order; each must succeed, or end with the status of its "# exit N", and print what the page shows.
run_commands() {
	local n=1 status want

	while [ -e "command.$n" ]; do
		status=0
		want=$(sed -n 's/.* # exit \([0-9]*\)$/\1/p' "command.$n")
		bash -o pipefail "command.$n" >"got.$n" 2>err || status=$?
		[ "$status" -eq "${want:-0}" ] || rv_die "exit $status: $(cat "command.$n" err)"
		[ ! -e "expect.$n" ] || diff -u "expect.$n" "got.$n"
		n=$((n + 1))
	done
	rm -f command.* expect.*
	echo $((n - 1)) >count
}

@test "each example of each page" {
	rv_need jq parallel node bwrap userns
	for program in $(rv_programs); do
		page_commands "$RV_SRC/man/$program.1"
		run_commands
		[ "$(cat count)" -ge 2 ] || rv_die "man/$program.1 has $(cat count) examples"
		rm -f invoices.run
	done
}

@test "the night of rv-reconcile(7)" {
	rv_need jq
	load exec
	load night
	rm -rf ./*
	rv_night
	page_commands "$RV_SRC/man/rv-reconcile.7" DESCRIPTION
	[ "$(grep -c '^\$ ' "$RV_SRC/man/rv-reconcile.7")" -eq "$(find . -name 'command.*' | wc -l)" ]
	cp command.* ..
	run_commands
	[ "$(cat count)" -ge 20 ]
	# One who runs the call again without a look at the provider is refused.
	night_killed after 3 1004
	rv_fails 122 rv-exec --run invoices.run --agent-seq 0 --ordinal 3 --ledger effects.w1.jsonl --refuse-orphan \
		--tool charge --args '{"invoice":1004}' -- ./charge 2>err
}

@test "each example of rv-ledger(5), with a PostgreSQL" {
	rv_need jq psycopg2
	load stores/stores
	PG_DIR=$(mktemp -d /tmp/rv-pg.XXXXXX)
	[ "$(id -u)" -ne 0 ] || chown "$RV_USER" "$PG_DIR"
	pg_start "$PG_DIR"
	export PGHOST=$PG_DIR PGUSER=ledger PGDATABASE=postgres PATH="$RV_SRC/scripts:$PATH"
	page_commands "$RV_SRC/man/rv-ledger.5"
	run_commands
	rv_equal 5 "$(cat count)"
	rv_equal '{"receipt":1}' "$(jq -c .result replies.jsonl)"
}

@test "the README's first example, twice: the same key" {
	sed -n '/^```sh$/,/^```$/p' "$RV_SRC/README.md" | sed '/^```/d' >readme.sh
	[ "$(grep -c '^rv-' readme.sh)" -eq 3 ]
	bash -e readme.sh
	rv_equal 1 "$(wc -l <charged)"
	rv_equal 2 "$(wc -l <effects.jsonl)"
	# Unchanged, as it says, but for the run file, which is there.
	sed '/--new-run/d' readme.sh >again.sh
	bash -e again.sh
	rv_equal 2 "$(wc -l <charged)"
	rv_equal 1 "$(sort -u charged | wc -l)" 'different requests'
	rv_equal 1 "$(jq -r .idempotencyKey effects.jsonl | sort -u | wc -l)" 'different keys'
}

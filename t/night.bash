# The ledgers of rv-reconcile(7), as a crash, a torn tail and a damaged disk left them.

# rv_night: made in the current directory, with ./charge, ./provider and invoices.run.
rv_night() {
	night_tools
	# Two calls whose worker is killed, one behind its effect, one before it.
	night_killed after 0 1001
	night_killed before 1 1002
	printf '{"phase":"intent","idempotencyKey":"' >>effects.w1.jsonl
	night_damaged
	night_call 2 1003 effects.w2.jsonl >third
}

night_tools() {
	printf '%s\n' '{"runId":"invoices-0412","genesis":"3f6c2f0e-7d0a-4a53-8b4f-2f5f3c1b9f21","execKeyDerivation":2}' >invoices.run
	cat >charge <<-TOOL
		#!/usr/bin/python3 -I
		import json, os, sys, time

		book = "$PWD/book.jsonl"
		call = json.loads(sys.stdin.readline())
		key, invoice = call["idempotencyKey"], call["args"]["invoice"]

		def stop_here(where):
		    if os.path.exists("$PWD/crash-" + where):
		        open("$PWD/going", "w").close()
		        time.sleep(600)

		stop_here("before")
		known = [json.loads(line) for line in open(book)] if os.path.exists(book) else []
		receipt = next((r for r in known if r["key"] == key), None)
		if receipt is None:
		    receipt = {"receipt": f"R-{len(known) + 1:04}", "key": key, "invoice": invoice}
		    with open(book, "a") as file:
		        file.write(json.dumps(receipt) + "\n")
		stop_here("after")
		print(json.dumps(receipt))
	TOOL
	cat >provider <<-TOOL
		#!/bin/sh
		# provider KEY: the receipt of the charge with this key; exit 1 if there is none.
		grep -F "\"\$1\"" "$PWD/book.jsonl"
	TOOL
	chmod 755 charge provider
}

# night_call ORDINAL INVOICE LEDGER
night_call() {
	rv-exec --run invoices.run --agent-seq 0 --ordinal "$1" --ledger "$3" --workdir-base "$PWD/workdirs" \
		--tool charge --args "{\"invoice\":$2}" -- ./charge
}

# night_killed WHEN ORDINAL INVOICE
night_killed() {
	mkdir -p workdirs
	rm -f going
	: >"crash-$1"
	night_call "$2" "$3" effects.w1.jsonl 3>&- 2>/dev/null &
	rv_until test -e going
	kill -9 "$(rv_exec_of $!)"
	wait $! || true
	rm "crash-$1"
}

# An older attempt: eight bytes of its intent are gone, its outcome is there.
night_damaged() {
	local nine='"idempotencyKey":"9d2bd5cf33d95d2cf95c9c10b0cb46ac8ca60f6a50dcb2f08f6d1c1f7d7a5a10","runId":"invoices-0411","spanId":"5f1c0e9a3b7d2468","tool":"charge","argsHash":"4b8c2c6d0f3a19e5570c3b1de0a1c8f6b2d4e6f8091a2b3c4d5e6f708192a3b4","executor":"subprocess","workdir":"/tmp/rulvar-exec-charge-8sKq2L","startedAt":1796000000000,"attemptId":"2f1b6a54-0c3d-4e8f-9a7b-6c5d4e3f2a1b"'

	{
		printf '{"phase":"intent",%s}\n' "${nine/4b8c2c6d/$'\1\1\1\1\1\1\1\1'}" | tr '\001' '\000'
		printf '{"phase":"outcome",%s,"durationMs":812,"outcome":"ok","exitCode":0,"signal":null}\n' "$nine"
	} >effects.w2.jsonl
}

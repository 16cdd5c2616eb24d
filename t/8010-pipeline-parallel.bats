# Scaling out as rv-exec(1) says: one rv-exec and one ledger a worker, one scan over all of them.
load helper
load exec

@test "GNU parallel spreads a stream over workers, and one scan accounts for all" {
	rv_need parallel
	local n

	mkdir dirs home
	tool half <<-'TOOL'
		#!/bin/sh
		read -r line
		case $line in *0}*) exit 4 ;; esac
		echo 1
	TOOL
	for ((n = 1; n <= 60; n++)); do
		printf '{"id":%d,"tool":"t","args":{"n":%d},"ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' $n $n $n
	done >requests.jsonl
	export WORK=$PWD HOME=$PWD/home
	# exit statuses: parallel counts the workers that had a failed call
	parallel --will-cite --pipe -N 10 -j 3 \
		'rv-exec --stream --jobs 2 --workdir-base "$WORK/dirs" --ledger "$WORK/effects.{%}.jsonl" -- "$WORK/half"' \
		<requests.jsonl >replies.jsonl || [ $? -le 100 ]
	rv_equal 60 "$(wc -l <replies.jsonl)"
	rv_equal 54 "$(grep -c '"ok":true' replies.jsonl)"
	[ "$(ls effects.*.jsonl | wc -l)" -ge 2 ]
	rv-ledger-scan effects.*.jsonl
	rv-ledger-scan --format summary effects.*.jsonl >summary
	rv_equal '60 60 0' "$(member intents <summary) $(member outcomes <summary) $(member orphans <summary)"
	rv_equal 60 "$(rv-ledger-scan --format keys effects.*.jsonl | wc -l)"
}

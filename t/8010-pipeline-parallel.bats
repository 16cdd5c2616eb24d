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

# The commands of rv-exec(1)'s example that speak of HOSTS, and the scan behind them.
host_commands() {
	awk '/^\$ parallel.*HOSTS/ { on = 1 } /^\.Ed/ { on = 0 } on { sub(/^\$ /, ""); gsub(/\\e/, "\\"); print }' "$RV_SRC/man/rv-exec.1"
}

@test "the same on two hosts, as rv-exec(1) has it: ledgers of their own, brought together and scanned" {
	rv_need parallel userns
	local n

	mkdir home left right
	cp "$RV_SRC/t/host" .
	chmod 755 host
	for n in left right; do
		printf '#!/bin/sh\nread -r line\nprintf "\\"%%s\\"" "$(uname -n)"\n' >$n/charge
		chmod 755 $n/charge
	done
	for ((n = 1; n <= 40; n++)); do
		printf '{"id":%d,"tool":"t","args":{"n":%d},"ctx":{"runId":"r","idempotencyKey":"k%d"}}\n' $n $n $n
	done >requests.jsonl
	host_commands >commands
	rv_equal 3 "$(grep -c '^parallel\|^rv-ledger-scan' commands)"
	HOME=$PWD/home HOSTS="2/$PWD/host left,2/$PWD/host right" bash -eo pipefail commands >scan 2>stderr || rv_die "$(cat stderr)"
	rv_equal '40 2' "$(grep -c '"ok":true' replies.jsonl) $(grep -o '"result":"[a-z]*"' replies.jsonl | sort -u | wc -l)"
	rv_equal "$(cd left && ls effects.*; cd ../right && ls effects.*)" "$(ls effects.*)"
	rv_equal 0 "$(ls effects.* | grep -cv '^effects\.\(left\|right\)\.')"
	rv_equal '' "$(cat scan)" 'orphans'
	rv-ledger-scan --format summary effects.*.*.jsonl >summary
	rv_equal '40 40 0 0' "$(member intents <summary) $(member outcomes <summary) $(member orphans <summary) $(member tornTails <summary)"
	# a row that is torn off on one host stays the last one of its ledger
	truncate -s -10 "$(ls left/effects.left.*.jsonl | head -1)"
	rm effects.*
	HOME=$PWD/home HOSTS="2/$PWD/host left,2/$PWD/host right" bash -e <(sed -n '/--nonall/,/tar -xi/p' commands) 2>stderr
	rv-ledger-scan --format summary effects.*.*.jsonl >summary || :
	rv_equal '40 39 1' "$(member intents <summary) $(member outcomes <summary) $(member tornTails <summary)"
}

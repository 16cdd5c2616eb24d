# What CI systems read, whatever a tool or an adapter printed.
load helper
load conform

# An adapter whose words are control bytes, invalid UTF-8 and markup.
noisy() {
	make_adapter noisy '"ledger"' "printf '\\001\\033[31m]]>\\377\\300\\200 <b>&amp;\"\\357\\277\\276\\r\\t\\n# not TAP\\nok 1\\n'; printf '\\000\\376 %%s \\010' stderr >&2; exit 3"
}

@test "TAP is TAP 14, with a plan, and prove takes it" {
	rv_need prove
	rv-conform --only e1 --only e2 --only key.both --format tap >out.tap
	rv_equal 'TAP version 14' "$(sed -n 1p out.tap)"
	rv_equal '1..3' "$(sed -n 2p out.tap)"
	rv_equal 'ok 1 - e1 protocol round trip' "$(grep -m1 '^ok' out.tap)"
	printf '#!/bin/sh\nexec rv-conform --only e1 --only e2 --format tap\n' >good.t
	printf '#!/bin/sh\nexec rv-conform --suite key --only e1 --only "canonical.*" --skip canonical.refusals --format tap\n' >key.t
	chmod +x good.t key.t
	prove ./good.t ./key.t >prove.out 2>&1 || { cat prove.out; false; }
	grep -q 'Result: PASS' prove.out
}

@test "prove sees a failed check and a skipped one" {
	rv_need prove
	noisy
	printf '#!/bin/sh\nexec rv-conform --only e1 --only e4 --only e9 --format tap -- ./noisy\n' >bad.t
	chmod +x bad.t
	rv_fails 1 prove -v ./bad.t >prove.out 2>&1
	grep -q 'Failed tests:  1, 3' prove.out
	grep -q '^ok 2 - e4 .* # SKIP the adapter does not declare credentials' prove.out
	rv_fails 1 grep -q 'Parse errors' prove.out
}

@test "a noisy adapter does not break the TAP" {
	noisy
	rv_fails 1 rv-conform --only e1 --format tap -- ./noisy >out.tap
	rv_equal 1 "$(grep -c '^not ok' out.tap)"
	rv_equal 0 "$(grep -c '^ok' out.tap)"
	rv_fails 1 grep -q '^# not TAP' out.tap
	rv_fails 1 grep -qP '[\x00-\x08\x0b-\x1f\x7f]' out.tap
}

@test "JUnit is XML 1.0 and what the schema says, whatever was printed" {
	rv_need xmllint
	noisy
	rv_fails 1 rv-conform --only e1 --only e4 --only e11 --only 'scan.merge' --format junit -- ./noisy >out.xml
	xmllint --noout --schema "$RV_SRC/t/junit.xsd" out.xml
	rv_equal 2 "$(xmllint --xpath 'string(/testsuites/@failures)' out.xml)"
	rv_equal 2 "$(xmllint --xpath 'count(//failure)' out.xml)"
	rv_equal 2 "$(xmllint --xpath 'count(//skipped)' out.xml)"
	rv_equal 3 "$(xmllint --xpath 'string(/testsuites/testsuite[1]/@tests)' out.xml)"
	xmllint --xpath 'string(//failure[1])' out.xml | grep -qF '\x01\x1b[31m]]>\xff'
	xmllint --xpath 'string(//failure[1])' out.xml | grep -qF 'u{fffe}'
}

@test "JSON lines are JSON, line by line, and UTF-8" {
	noisy
	rv_fails 1 rv-conform --only e1 --only e4 --only e11 --format jsonl -- ./noisy >out.jsonl
	rv_equal 5 "$(wc -l <out.jsonl)"
	while IFS= read -r line; do
		printf '%s' "$line" | rv-key --canonical >/dev/null || rv_die "no JSON: $line"
	done <out.jsonl
	rv_equal 'e1 e11' "$(ids fail out.jsonl | paste -s -d ' ')"
	rv_equal 'e4' "$(ids skip out.jsonl)"
}

@test "pretty lets no control byte through, and says did, saw and promised" {
	noisy
	rv_fails 1 rv-conform --only e1 -- ./noisy >out.txt
	rv_fails 1 grep -qP '[\x00-\x08\x0b-\x1f\x7f]' out.txt
	for word in did saw promised; do
		grep -q "^        $word  *[^ ]" out.txt
	done
	grep -q '^0 passed, 1 failed, 0 skipped' out.txt
}

@test "a report takes its format from its name, beside what is shown" {
	rv_need xmllint
	for name in a.tap a.xml a.jsonl; do
		rv-conform --only e1 --report "$name" >out.txt
		grep -q '^1 passed' out.txt
	done
	grep -q '^TAP version 14' a.tap
	xmllint --noout --schema "$RV_SRC/t/junit.xsd" a.xml
	rv_equal e1 "$(ids pass a.jsonl)"
	rv_fails 2 rv-conform --only e1 --report a.txt
	rv_fails 5 rv-conform --only e1 --report /no/such/place/a.tap >out.txt
}

@test "results stand in the order of the tables, however many run at once" {
	rv-conform --list --suite executor --only 'e*' --only 'tree.*' | cut -f 2 >want.txt
	rv-conform --suite executor --only 'e*' --only 'tree.*' --jobs 8 --format jsonl >out.jsonl
	ids pass out.jsonl | diff want.txt -
}

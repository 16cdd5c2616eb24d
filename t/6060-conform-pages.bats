# rv-conformance(7) has every check, and the recipes of rv-conform(1) run as they are written.
load helper
load conform

@test "rv-conformance(7) has every check, with its reason" {
	rv-conform --list --format jsonl | awk -f "$RV_SRC/t/conformance.awk" >want.txt
	awk '/^\.Ss The suite / { on = 1 } /^\.Sh/ { on = 0 } on' "$RV_SRC/man/rv-conformance.7" >page.txt
	[ "$(grep -c '^\.It Li' want.txt)" -eq "$(rv-conform --list | wc -l)" ]
	diff -u --label rv-conformance.7 --label 'rv-conform --list' page.txt want.txt
}

@test "rv-conformance(7) has every capability" {
	rv-conform --adapter -- --capabilities >all.json
	"$RV_PYTHON" -I -S -c 'import json, sys; print("\n".join(json.load(open("all.json"))["capabilities"]))' >names.txt
	[ "$(wc -l <names.txt)" -ge 10 ]
	awk '/^\.Ss Capabilities/ { on = 1; next } /^\.Ss/ { on = 0 } on && /^\.It Li/ { print $3 }' "$RV_SRC/man/rv-conformance.7" | diff - names.txt
}

# recipe NAME: the literal text of a recipe of rv-conform(1).
recipe() {
	awk -v name="$1" '
		/^\.\\" recipe:/ { on = $3 == name; next }
		/^\.\\" end/ { on = 0 }
		on && !/^\./ { gsub(/\\e/, "\\"); print }' "$RV_SRC/man/rv-conform.1"
}

# The adapter of the recipes.
setup() {
	printf '#!/bin/sh\nexec %s -I -S %s/careful.py "$@"\n' "$RV_PYTHON" "$RV_ADAPTERS" >my-adapter
	chmod +x my-adapter
}

@test "the CI recipe runs as written" {
	rv_need python3 xmllint
	recipe ci >steps.yaml
	[ -s steps.yaml ]
	# Each "run: |" is a script of its own, as a runner has it.
	awk '
		/^    run: \|$/ { n++; on = 1; next }
		/^    [a-z]/ || /^  - / { on = 0 }
		on { sub(/^      /, ""); print >("step." n) }' steps.yaml
	[ -s step.1 ] && [ -s step.2 ] && [ ! -e step.3 ]
	# The first undoes a restriction of the host: where there is one it is not for a test to undo.
	bash -n step.1
	if ! grep -qs 1 /proc/sys/kernel/apparmor_restrict_unprivileged_userns; then bash -e step.1; fi
	bash -e -o pipefail step.2 >out.txt || { grep -A4 FAIL out.txt; false; }
	xmllint --noout --schema "$RV_SRC/t/junit.xsd" "$(sed -n 's/^      path: //p' steps.yaml)"
}

@test "the Makefile recipe runs as written" {
	rv_need python3
	recipe make >Makefile
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make check-conformance >out.txt 2>&1 || { cat out.txt; grep -A4 '^not ok' conformance.tap*; false; }
	grep -q '^TAP version 1' conformance.tap
	rv_fails 1 grep '^not ok' conformance.tap
}

@test "the prove recipe runs as written" {
	rv_need python3 prove
	recipe prove >conformance.t
	chmod +x conformance.t
	prove ./conformance.t >out.txt 2>&1 || { cat out.txt; false; }
	grep -q 'Result: PASS' out.txt
}

@test "where the host forbids PID namespaces exactly the checks that the page names fail" {
	unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces' 2>/dev/null || {
		[ "${RV_MUST_WORK:-}" != 1 ] || rv_die "user.max_pid_namespaces cannot be set and RV_MUST_WORK=1" || return
		skip "user.max_pid_namespaces cannot be set here"
	}
	awk '/^Where they cannot be had/ { on = 1; next } on && /^\.Pq Li/ { for (i = 3; i <= NF; i++) if ($i != ",") print $i; exit }' \
		"$RV_SRC/man/rv-conform.1" | sort >want.txt
	[ -s want.txt ]
	rv_fails 1 unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces && exec "$@"' forbidding \
		rv-conform --only 'tree.*' --only 'crash.*' --only 'time.*' --only 'abort.*' --only 'e1?' --jobs 6 --format jsonl >out.jsonl
	ids fail out.jsonl | sort | diff want.txt -
	rv_equal '' "$(ids skip out.jsonl)"
}

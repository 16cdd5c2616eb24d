# rv-confine: broken set-ups.  A policy with one broken entry never runs the program, and is another profile by its digest.
load helper
load confine

BROKEN=$RV_BIN/t/confine-broken

# variant NAME: its result in ./result, its profile's digest in $digest, its exit in $status.
variant() {
	script main.sh <<<'echo ran'
	mkdir -p root
	chmod 700 root
	status=0
	"$BROKEN" "$1" "$PWD/root" "$SH" prog main.sh >lines 2>stderr || status=$?
	digest=$(head -n 1 lines)
	tail -n +2 lines >result
}

@test "the control: unbroken, it is linux/1 by its digest, and the program runs" {
	variant whole
	holds "$GOOD" 'out == b"ran\n"'
	rv_equal "$(rv-confine --describe-profile | jq -r .digest)" "$digest"
}

@test "no system call refused, a writable home, everything readable: the program never runs" {
	for broken in calls writable readable; do
		variant $broken
		holds 'out == b""' '(r["status"], r.get("reason")) == ("not-started", "unsupported-host") or p["admission"] == "refused"' \
			'r.get("attributable") is not True' || rv_die "$broken" || return
		[ "$status" -ne 0 ] || rv_die "$broken: exit 0" || return
		for name in linux/1 linux/1+proc landlock/1; do
			[ "$digest" != "$(rv-confine --describe-profile --profile $name | jq -r .digest)" ] || rv_die "$broken is $name" || return
		done
	done
}

@test "limits other than the request's: measured, and the program never runs" {
	for broken in limit core descriptors data files kept; do
		variant $broken
		holds '(r["status"], r["reason"]) == ("not-started", "unsupported-host") and out == b""' '"limits" in r["message"]' ||
			rv_die "$broken" || return
		[ "$digest" != "$(rv-confine --describe-profile | jq -r .digest)" ]
	done
}

@test "every entry of every table, broken alone: another profile, which the whole one's pin never starts" {
	script main.sh <<<'echo ran'
	mkdir -p root in
	chmod 700 root
	n=0
	for name in linux/1 linux/1+proc landlock/1; do
		pins_for "$SH" $name
		# The launcher's bytes are the runtime's, too: they are not what is asked about here.
		jq -c --arg launcher "$("$BROKEN" runtime "$SH" | jq -r .digest)" --arg empty "$(rv-confine --snapshot in | jq -r .digest)" \
			'.runtime = $launcher | .input = $empty' pins >pins.$n
		n=$((n + 1))
	done
	"$BROKEN" every "$PWD/root" "$SH" prog main.sh "$PWD/pins" >lines
	root_is_empty
	for name in linux/1 linux/1+proc landlock/1; do
		jq -e --arg name $name -s 'map(select(.profile == $name)) | .[0].variant == "whole" and .[0].result.attributable and (.[0].digest as $whole |
			.[1:] | length > 400 and all(.digest != $whole and .result.status == "not-started" and .result.reason == "profile-mismatch"
				and .result.namespace == null))' lines >/dev/null ||
			rv_die "$name: $(jq -c -s 'map(select(.result.reason != "profile-mismatch"))[0:3]' lines | head -c 1500)" || return
	done
	# No two of them are one to a pin.
	rv_equal '' "$(jq -r 'select(.variant | endswith("missing") | not) | .digest' lines | sort | uniq -d)"
	for table in mount Landlock seccomp namespace limit environment hostname; do
		grep -q "\"variant\":\"$table " lines || rv_die "no variant of $table" || return
	done
}

# No page promises what no program can keep, or what these do not have yet.
load helper

pages() {
	printf '%s\n' "$RV_SRC/README.md" "$RV_SRC/CONTRIBUTING.md" "$RV_SRC/NEWS" "$RV_SRC"/man/*.[157]
	for program in $(rv_programs); do
		"$program" --help >"$program.help"
		printf '%s\n' "$PWD/$program.help"
	done
}

# promises FILE...: each "exactly-once" (or "exactly once") that the word before it does not deny.
# Line breaks and markup must not hide one.
promises() {
	local file

	for file; do
		tr '\n' ' ' <"$file" | sed -E 's/\\f.|[*_`]|\.(Em|Sy|Li|Dq|Qq|Ql) / /g; s/ +/ /g' |
			grep -oiE '([[:alnum:]]+ )?exactly[- ]once' | grep -viE '^(never|not) ' | sed "s,^,${file##*/}: ," || :
	done
}

@test "no page promises exactly-once" {
	mapfile -t all < <(pages)
	[ ${#all[@]} -ge 9 ]
	promises "${all[@]}" >found.txt
	rv_equal '' "$(cat found.txt)" 'promised'
}

@test "the check sees such a promise, however it is written" {
	for text in 'runs exactly-once' 'It runs exactly
once.' '**Exactly-once** delivery' 'is
.Em exactly-once' 'never fails, exactly-once' 'Exactly once'; do
		printf '%s\n' "$text" >page
		promises page >found.txt
		[ -s found.txt ] || rv_die "not seen: $text"
	done
	for text in 'is never exactly-once' 'Not exactly-once.' 'never *exactly-once*' 'never
exactly once'; do
		printf '%s\n' "$text" >page
		promises page >found.txt
		[ ! -s found.txt ] || rv_die "denied, and yet seen: $text"
	done
}

@test "what must be said is said" {
	for page in "$RV_SRC/README.md" "$RV_SRC/man/rv.7"; do
		tr '\n' ' ' <"$page" | tr -s ' *_`' ' ' >text
		for must in 'at-least-once' 'never exactly-once' 'utbox' 'uthoris' 'not a sandbox' '/proc/PID/environ' 'network' 'root' 'orged'; do
			grep -q -- "$must" text || rv_die "${page##*/} does not say: $must"
		done
	done
}

@test "no page speaks of a program or an option that is not there" {
	for program in $(rv_programs); do "$program" --help; done | grep -oE -- '--[a-z][a-z-]+' | sort -u >options.txt
	# Options of the scripts and of t/isolation, of configure, of jq, of a container engine, of GNU parallel, and what rv-conform asks an adapter.
	printf '%s\n' --help --version --sanitize --valgrind --enable-werror --for --disable-static-libs --disable-static-start --prefix --jobs \
		--arg --pipe --nonall --cap-add --security-opt --runtime --capabilities --keys --repair --scan --confine --stream \
		--bin --name --remote --tmpfs >>options.txt
	mapfile -t all < <(pages)
	cat "${all[@]}" | sed -E 's/\.?Fl -([a-z])/--\1/g' | grep -oE -- '(^|[^-[:alnum:]])--[a-z][a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u |
		grep -vxF -f options.txt >unknown.txt || :
	rv_equal '' "$(cat unknown.txt)" 'options of no program'
	cat "${all[@]}" | grep -oE '\brv-[a-z]+(-[a-z]+)*' | sort -u >named.txt
	{ rv_programs; printf '%s\n' rv-tools rv-inner rv-unpack; basename -a "$RV_SRC"/man/* | sed 's/\.[157]$//'; } | sort -u >programs.txt
	grep -vxF -f programs.txt named.txt >unknown.txt || :
	rv_equal '' "$(cat unknown.txt)" 'programs and pages that are not there'
}

@test "the pages are clean mdoc" {
	rv_need mandoc
	mandoc -Tlint -Wwarning "$RV_SRC"/man/*.[157] 2>&1 | grep -v 'outdated mandoc.db' >lint.txt || :
	rv_equal '' "$(cat lint.txt)"
}

@test "nothing refers to the machine it was written on" {
	cd "$RV_SRC"
	rv_fails 1 grep -rnE '/(work|root|home/[a-z]+)/' README.md CONTRIBUTING.md NEWS man lib scripts
}

# What is installed, what a tarball holds, and that another compiler builds it.
load helper

setup() {
	# A make above us must not lend its jobs and its variables.
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
}

@test "make install puts programs, pages and completions in their places, uninstall takes them away" {
	make -s -C "$RV_BIN" DESTDIR="$PWD/root" prefix=/usr install >install.log 2>&1 || rv_die "$(cat install.log)"
	[ -n "$(rv_programs)" ]
	for program in $(rv_programs); do
		"root/usr/bin/$program" --version | grep -q "^$program "
		[ -s "root/usr/share/man/man1/$program.1" ]
		bash -c 'source "$1" && complete -p "$2"' - "root/usr/share/bash-completion/completions/$program" "$program"
	done
	[ -s root/usr/share/man/man5/rv-ledger.5 ]
	[ -s root/usr/share/man/man7/rv.7 ]
	[ -s root/usr/share/man/man7/rv-reconcile.7 ]
	root/usr/share/rv-tools/ledger-store --help >help.txt
	make -s -C "$RV_BIN" DESTDIR="$PWD/root" prefix=/usr uninstall >uninstall.log 2>&1 || rv_die "$(cat uninstall.log)"
	rv_equal '' "$(find root -type f)"
}

@test "rv-confine needs no library and no dynamic linker where configure has found that it can be static" {
	how=$(sed -n "s/^CONFINE_LDFLAGS='\(.*\)'$/\1/p" "$RV_BIN/config.log")
	grep '^configure:.*result: ' "$RV_BIN/config.log" | grep -qE 'result: (-static-pie|-static|dynamic.*)$'
	readelf -lW "$RV_BIN/rv-confine" >headers
	readelf -dW "$RV_BIN/rv-confine" >dynamic
	case " $how " in
	*' -static'*)
		rv_fails 1 grep -E 'INTERP|Requesting program interpreter' headers
		rv_fails 1 grep NEEDED dynamic
		# What would load libraries late, or another's code by name.
		nm "$RV_BIN/rv-confine" >symbols
		[ -s symbols ]
		rv_fails 1 grep -E ' [Tt] (getpwnam|getgrnam|getaddrinfo|archive_read_new|rv_unpacker_new)' symbols
		;;
	*) grep -q INTERP headers ;;
	esac
}

@test "the tarball has every file of the clone" {
	make -s -C "$RV_BIN" distdir distdir="$PWD/dist" >dist.log 2>&1 || rv_die "$(cat dist.log)"
	cd "$RV_SRC"
	if [ -e .git ] && git ls-files >"$BATS_TEST_TMPDIR/wanted"; then
		:
	else
		# A tarball's tree, or a copy: what is there but for what configure and make have made.
		find .ci cmd lib man scripts t -type f -not -name '*.o' -not -name '*.log' -not -name '*.trs' |
			grep -v '/\.' >"$BATS_TEST_TMPDIR/wanted"
	fi
	cd "$BATS_TEST_TMPDIR"
	[ "$(wc -l <wanted)" -gt 50 ]
	while read -r file; do
		[ "$file" = .gitignore ] || [ -e "dist/$file" ] || printf '%s\n' "$file"
	done <wanted >missing
	rv_equal '' "$(cat missing)" 'not in the tarball'
}

@test "clang builds it without a warning, from a tarball, out of tree" {
	rv_need clang
	make -s -C "$RV_BIN" distdir distdir="$PWD/dist" >dist.log 2>&1 || rv_die "$(cat dist.log)"
	chmod -R a-w dist
	mkdir clang
	cd clang
	{ ../dist/configure -q --enable-werror CC=clang CFLAGS=-O1 && make -s -j2; } >build.log 2>&1 || rv_die "$(cat build.log)"
	for program in $(rv_programs); do
		"./$program" --version
	done
	chmod -R u+w ../dist
}

@test "configure names the Debian package of what is missing" {
	mkdir conf
	cd conf
	rv_fails 1 "$RV_SRC/configure" -q ac_cv_header_yajl_yajl_parse_h=no >out 2>&1
	grep -q 'install the Debian package libyajl-dev' out
	rv_fails 1 "$RV_SRC/configure" -q ac_cv_header_openssl_evp_h=no >out 2>&1
	grep -q 'install the Debian package libssl-dev' out
}

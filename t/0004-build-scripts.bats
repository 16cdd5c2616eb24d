# The scripts that people type.
load helper

@test "each script has --help, and refuses what it does not know" {
	for script in bootstrap demo layers lint soak tally test; do
		"$RV_SRC/scripts/$script" --help >out 2>err
		grep -q "^usage: scripts/$script" out
		[ ! -s err ]
		rv_fails 2 "$RV_SRC/scripts/$script" --no-such-option >out 2>err
		[ ! -s out ]
		grep -q "^usage: scripts/$script" err
	done
}

# A copy of what bootstrap looks at, and a PATH with every program of the system but $1, an apt-get
# that writes down what it is asked for, and a sudo that does as it is told.
machine_without() {
	mkdir -p tree/scripts tree/build-aux bin
	cp "$RV_SRC/scripts/bootstrap" tree/scripts/
	cp "$RV_SRC/configure.ac" "$RV_SRC/Makefile.am" tree/
	touch tree/configure tree/Makefile.in tree/build-aux/tap-driver.sh
	ln -s /usr/bin/* bin/
	rm -f "bin/$1" bin/sudo bin/apt-get
	printf '#!/bin/sh\necho "apt-get $*" >>"%s/asked"\n' "$PWD" >bin/apt-get
	chmod +x bin/apt-get
}

bootstrap() {
	env PATH="$PWD/bin" tree/scripts/bootstrap "$@" </dev/null
}

@test "bootstrap installs nothing that is there" {
	machine_without nothing
	bootstrap build demo test
	[ ! -e asked ]
}

@test "bootstrap as root installs just what is missing" {
	rv_need root
	machine_without strace
	bootstrap test
	rv_equal 'apt-get -q -y --no-install-recommends install strace' "$(grep install asked)"
}

@test "bootstrap as a user installs by sudo, where that asks for no password" {
	rv_need user
	cd "$(rv_user_dir)"
	machine_without strace
	printf '#!/bin/sh\n[ "$1" != -n ] || shift\necho sudo >>"%s/asked"\nexec "$@"\n' "$PWD" >bin/sudo
	chmod +x bin/sudo
	[ "$(id -u)" -ne 0 ] || chown -R "$RV_USER" .
	export -f bootstrap
	rv_as_user bash -c 'bootstrap test'
	grep -q '^sudo$' asked
	rv_equal 'apt-get -q -y --no-install-recommends install strace' "$(grep install asked)"
}

@test "bootstrap as a user without sudo names what is missing" {
	rv_need user
	cd "$(rv_user_dir)"
	machine_without strace
	[ "$(id -u)" -ne 0 ] || chown -R "$RV_USER" .
	export -f bootstrap
	rv_fails 5 rv_as_user bash -c 'bootstrap test' 2>err
	grep -q 'apt-get install strace' err
	[ ! -e asked ]
}

@test "bootstrap says so where apt-get fails" {
	rv_need root
	machine_without strace
	printf '#!/bin/sh\nexit 100\n' >bin/apt-get
	rv_fails 5 bootstrap test 2>err
	grep -q 'could not install: strace' err
}

# A tree whose configure makes a Makefile with the recipes all ($1) and check ($2).
toy_tree() {
	mkdir -p toy/scripts
	cp "$RV_SRC/scripts/test" "$RV_SRC/scripts/tally" toy/scripts/
	printf '#!/bin/sh\n' >toy/scripts/bootstrap
	printf '#!/bin/sh\nprintf "all:\\n\\t%s\\ncheck:\\n\\t%s\\n" >Makefile\n: >config.status\n' "$1" "$2" >toy/configure
	chmod +x toy/scripts/bootstrap toy/configure
	# One tree, one run for each user that may run it.
	runs=1
	[ "$(id -u)" -ne 0 ] || runs=2
}

toy_test() {
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
	bash toy/scripts/test </dev/null >out 2>&1 || return
}

results='{ echo :test-global-result: %s; echo :test-result: %s; } >t.trs; echo said >t.log'

@test "scripts/test: all passed" {
	# shellcheck disable=SC2059 # a format of our own
	toy_tree true "$(printf "$results" PASS PASS)"
	toy_test
	rv_equal "$runs passed, 0 failed, 0 skipped" "$(tail -n 1 out)"
}

@test "scripts/test: a failed test fails it and its log is shown" {
	# shellcheck disable=SC2059
	toy_tree true "$(printf "$results" FAIL FAIL)"
	rv_fails 1 toy_test
	rv_equal "0 passed, $runs failed, 0 skipped" "$(tail -n 1 out)"
	grep -qx said out
}

@test "scripts/test: a check that fails without saying where fails it" {
	# shellcheck disable=SC2059
	toy_tree true "$(printf "$results" PASS PASS); exit 1"
	rv_fails 1 toy_test
	rv_equal "$runs passed, $runs failed, 0 skipped" "$(tail -n 1 out)"
}

@test "scripts/test: a failed build fails it" {
	toy_tree false true
	rv_fails 1 toy_test
	rv_equal "0 passed, $runs failed, 0 skipped" "$(tail -n 1 out)"
}

@test "scripts/test: a failed configure fails it" {
	toy_tree true true
	printf '#!/bin/sh\nexit 77\n' >toy/configure
	rv_fails 1 toy_test
	rv_equal "0 passed, $runs failed, 0 skipped" "$(tail -n 1 out)"
}

@test "scripts/test: nothing run is no success, nor is everything skipped" {
	toy_tree true true
	rv_fails 1 toy_test
	rm -rf toy
	# shellcheck disable=SC2059
	toy_tree true "$(printf "$results" SKIP SKIP)"
	rv_fails 1 toy_test
	rv_equal "0 passed, 0 failed, $runs skipped" "$(tail -n 1 out)"
}

# The bash completion offers what --help says, and files and commands in their places.
load helper

setup() {
	# shellcheck source=/dev/null
	source "$RV_SRC/scripts/rv-completion.bash"
	mkdir -p files/sub
	: >files/one.json
	cd files || return
}

# offers WORD...: complete the last word as bash would call the function; one offer a line, sorted.
offers() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	_rv_complete "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
	printf '%s\n' "${COMPREPLY[@]}" | sort
}

@test "every option of every program is offered" {
	[ -n "$(rv_programs)" ]
	for program in $(rv_programs); do
		"$program" --help | awk -f "$RV_SRC/t/docs.awk" | sed -n 's/^option .*\(--[a-z-]*\).*/\1/p' | sort >want
		[ -s want ]
		offers "$program" -- >got
		diff -u want got
	done
}

@test "a start narrows the offers" {
	rv_equal $'--help' "$(offers rv-exec --he)"
	rv_equal '' "$(offers rv-exec --zz)"
}

@test "the words of a choice are offered, and with = too" {
	rv_equal $'power\nprocess' "$(offers rv-exec --durability '')"
	rv_equal 'power' "$(offers rv-exec --durability po)"
	rv_equal 'power' "$(offers rv-exec --durability = po)"
	rv_equal $'power\nprocess' "$(offers rv-exec --durability =)"
}

@test "a choice of words or a file offers both" {
	rv_equal $'inherit\none.json\nsub\ntail' "$(offers rv-exec --tool-stderr '')"
}

@test "FILE offers files, DIR directories, a number nothing" {
	rv_equal $'one.json\nsub' "$(offers rv-exec --args-file '')"
	rv_equal 'sub' "$(offers rv-exec --workdir-base '')"
	rv_equal '' "$(offers rv-exec --ordinal '')"
}

@test "operands are files, and after -- of rv-exec a command comes first" {
	rv_equal $'one.json\nsub' "$(offers rv-ledger-scan '')"
	rv_equal $'one.json\nsub' "$(offers rv-ledger-scan --format report '')"
	offers rv-exec --tool x -- ca | grep -qx cat
	rv_equal $'one.json\nsub' "$(offers rv-exec --tool x -- cat '')"
}

@test "after the first operand an option is the tool's" {
	rv_equal '' "$(offers rv-exec --tool x -- cat --he)"
}

@test "it is bound to each program by name" {
	for program in $(rv_programs); do
		complete -p "$program" | grep -q _rv_complete
	done
}

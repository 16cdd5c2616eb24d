# bash completion for the programs of rv-tools; one file under each program's name.
#
# Everything comes from `PROGRAM --help`, which prints the program's own option table: there is
# no second list to keep.  An option's argument that reads a|b|c offers these words, FILE and
# DIR offer names; after the first operand, or --, names and commands.

# _rv_options PROGRAM: a line for each option: the name, then its argument if it takes one.  In
# --help one space comes before an argument, and two or more before the text.
_rv_options() {
	local line short name

	"$1" --help 2>/dev/null | while IFS= read -r line; do
		[[ $line =~ ^\ \ (-.,|\ \ \ )\ --[a-z] ]] || continue
		line=${line#"${line%%[! ]*}"}
		line=${line%%  *}
		short=
		[[ $line == -?,* ]] && short=${line%%,*} && line=${line#*, }
		name=${line%% *}
		printf '%s\n' "$line"
		[[ -z $short ]] || printf '%s\n' "$short${line#"$name"}"
	done
}

# _rv_argument OPTION < options: what OPTION takes; empty for a flag or an unknown option.
_rv_argument() {
	local name argument

	while read -r name argument; do
		if [[ $name == "$1" ]]; then
			printf '%s\n' "$argument"
			return
		fi
	done
}

# A choice is of words and of what it names in capitals: tail|inherit|FILE.
_rv_offer() {
	local cur=$2 part parts

	COMPREPLY=()
	IFS='|' read -ra parts <<<"$1"
	for part in "${parts[@]}"; do
		case $part in
		DIR) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$cur") ;;
		FILE) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur") ;;
		*[A-Z]*) ;;
		*) [[ $part != "$cur"* ]] || COMPREPLY+=("$part") ;;
		esac
	done
}

# Is the word being completed behind the options?  Prints how many operands come before it.
_rv_operands() {
	local options=$1 index word count=0

	for ((index = 1; index < COMP_CWORD; index++)); do
		word=${COMP_WORDS[index]}
		if ((count > 0)); then
			count=$((count + 1))
		elif [[ $word == -- ]]; then
			count=1
		elif [[ $word == -* ]]; then
			[[ ${COMP_WORDS[index + 1]:-} == '=' ]] && index=$((index + 2)) && continue
			[[ -n $(_rv_argument "$word" <<<"$options") ]] && index=$((index + 1))
		else
			count=1
		fi
	done
	printf '%s\n' "$count"
}

_rv_complete() {
	local program=$1 cur=$2 prev=$3 options argument operands

	options=$(_rv_options "$program")
	if [[ $cur == '=' ]]; then
		cur=
	elif [[ $prev == '=' ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	operands=$(_rv_operands "$options")
	if ((operands == 0)); then
		argument=$(_rv_argument "$prev" <<<"$options")
		if [[ $prev == -* && -n $argument ]]; then
			_rv_offer "$argument" "$cur"
			return
		fi
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(cut -d ' ' -f 1 <<<"$options" | grep '^--')" -- "$cur")
			return
		fi
	fi
	if ((operands == 1)) && [[ ${program##*/} == rv-exec || ${program##*/} == rv-conform ]]; then
		mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}

complete -o filenames -F _rv_complete rv-confine rv-conform rv-exec rv-key rv-ledger-repair rv-ledger-scan

#!/bin/sh
# Make the C source of lib/conform/vectors.h on standard output: sh vectors.sh DIRECTORY-OF-VECTORS
set -eu

name_of() {
	case $1 in
	json.jsonl) echo json ;;
	keys.jsonl) echo keys ;;
	ledger-repair.jsonl) echo ledger_repair ;;
	ledger-scan.jsonl) echo ledger_scan ;;
	numbers.txt) echo numbers ;;
	esac
}

echo '/* Made by lib/conform/vectors.sh. */'
echo '#include "lib/conform/vectors.h"'
for file in json.jsonl keys.jsonl ledger-repair.jsonl ledger-scan.jsonl numbers.txt; do
	name=$(name_of "$file")
	[ -s "$1/$file" ] || { echo "vectors.sh: no $1/$file" >&2; exit 1; }
	echo
	echo "static const unsigned char bytes_$name[] = {"
	od -An -v -tu1 "$1/$file" | sed 's/^ *//; s/  */,/g; s/$/,/'
	echo '};'
	echo "const struct rv_span rv_vectors_$name = { (const char *)bytes_$name, sizeof bytes_$name };"
done

# What the tests of rv-conform share: adapters made of a few lines, and python without its surroundings.

# The system's own interpreter, without site packages: half the start-up.
RV_PYTHON=/usr/bin/python3
[ -x "$RV_PYTHON" ] || RV_PYTHON=python3
RV_ADAPTERS=$RV_SRC/t/adapters
export RV_CONFORM=$RV_BIN/rv-conform RV_ADAPTERS

# make_adapter NAME CAPABILITIES BODY: an executable ./NAME; BODY is shell text that answers a request.
make_adapter() {
	{
		printf '#!/bin/sh\n'
		printf 'if [ "$1" = --capabilities ]; then echo '\''{"name":"%s","capabilities":[%s]}'\''; exit; fi\n' "$1" "$2"
		printf '%s\n' "$3"
	} >"$1"
	chmod +x "$1"
}

# Words of a JSON line's member: member NAME FILE
member() {
	"$RV_PYTHON" -I -S -c '
import json, sys
for line in open(sys.argv[2], "rb"):
    value = json.loads(line)
    if sys.argv[1] in value:
        print(value[sys.argv[1]])' "$1" "$2"
}

# The ids with a status in a JSON lines report: ids STATUS FILE
ids() {
	"$RV_PYTHON" -I -S -c '
import json, sys
for line in open(sys.argv[2], "rb"):
    value = json.loads(line)
    if value.get("status") == sys.argv[1]:
        print(value["id"])' "$1" "$2"
}

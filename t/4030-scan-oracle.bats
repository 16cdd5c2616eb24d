# Two scanners, one answer: rv-ledger-scan and t/scan-oracle.py, which was written from the pages alone.
load helper

@test "120 ledgers with every kind of damage" {
	/usr/bin/python3 -I "$RV_SRC/t/scan-oracle.py" --compare 120 --scan "$RV_BIN/rv-ledger-scan"
}

@test "80 others, read with three threads" {
	/usr/bin/python3 -I "$RV_SRC/t/scan-oracle.py" --compare 80 --seed 5000 --threads 3 --scan "$RV_BIN/rv-ledger-scan"
}

@test "the oracle gives the answers of the vectors" {
	/usr/bin/python3 -I - "$RV_SRC" <<-'PY'
		import base64, importlib.util, json, sys
		spec = importlib.util.spec_from_file_location("oracle", sys.argv[1] + "/t/scan-oracle.py")
		oracle = importlib.util.module_from_spec(spec)
		spec.loader.exec_module(oracle)
		count = 0
		for line in open(sys.argv[1] + "/t/vectors/ledger-scan.jsonl", encoding="utf-8"):
		    vector = json.loads(line)
		    with open("v.jsonl", "wb") as file:
		        file.write(base64.b64decode(vector["fileBase64"]))
		    scan = oracle.Scan(["v.jsonl"])
		    assert (scan.status(False) == 4) == vector["strictRefused"], vector["name"]
		    want = json.loads(json.dumps(vector["scan"]), parse_int=float)
		    got = json.loads(oracle.report(scan), parse_int=float)
		    for one in (want, got):
		        for element in one["corrupt"] + [one.get("tornTail", {})]:
		            element.pop("preview", None)
		    assert got == want, vector["name"]
		    count += 1
		assert count == 87, count
	PY
}

@test "a scanner that is wrong is found out" {
	export TMPDIR=$PWD # a difference keeps its files
	for wrong in 's/"orphans":0/"orphans":1/' 's/"line":2/"line":3/' 's/,"startedAt":1,/,"startedAt":1.0,/'; do
		cat >wrong <<-SH
			#!/bin/sh
			"$RV_BIN/rv-ledger-scan" "\$@" >"\$0.out"
			status=\$?
			sed '$wrong' "\$0.out"
			exit \$status
		SH
		chmod +x wrong
		rv_fails 1 /usr/bin/python3 -I "$RV_SRC/t/scan-oracle.py" --compare 30 --scan "$PWD/wrong" 2>/dev/null
	done
}

# rv-ledger-scan killed, and failed, at system calls all over a scan: the right answer, or none.  All of them, with
# more faults, are in scripts/soak.
load helper

faults() { # PLAN...
	/usr/bin/python3 -I "$RV_SRC/t/faults/scan" --bin "$RV_BIN" --inject "$RV_BIN/t/faults/inject" --every 9 "$@"
}

@test "killed" {
	faults host:kill worker:kill:2
}

@test "failed" {
	faults host:EIO host:ENOMEM host:EIO:3 worker:ENOMEM:2
}

@test "writes cut short" {
	faults host:short
}

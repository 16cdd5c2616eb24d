#!/usr/bin/python3 -IBS
"""A store of rows for rv-exec --ledger-exec that does what it is told to.

usage: stand-in.py FILE MODE [N [M]]

Each row is appended to FILE before it is answered, and FILE.seen gets "row" or "end" for what was read, and
"early PID" or "closed" for what was done.

  ok           answer each row with ok
  refuse N     the N-th row with "no room for N", the others with ok
  die N        read the N-th row, keep it, and exit 3 without an answer
  kill N       the same, by SIGKILL
  close N      close the input after the answer to the N-th row, and go on living
  hang N       answer nothing from the N-th row on
  late N       the N-th row late: after as many rows as may come until the file FILE.go is there
  early        say ok before anything was read
  twice N      say ok twice to the N-th row
  cut N        say ok to the N-th row without its newline, and exit
  long N       the N-th row with an answer that never ends
  gather N M   answer when N rows are there, all of them then; and so on, until M rows have come
  stay         ok, but do not end at the end of file
  fail-last    ok, but exit 4 at the end of file
"""

import os
import signal
import sys
import time

path, mode = sys.argv[1:3]
n = int(sys.argv[3]) if len(sys.argv) > 3 else 0
kept = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
seen = os.open(path + ".seen", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def say(text):
    os.write(1, text.encode())


def answer(at):
    """What the row has coming to it that was read as the at-th one."""
    if at != n:
        say("" if mode == "hang" and at > n else "ok\n")
    elif mode == "refuse":
        say(f"no room for {at}\n")
    elif mode == "die":
        sys.exit(3)
    elif mode == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "late":
        while not os.path.exists(path + ".go"):
            time.sleep(0.01)
        say("no: too late\n")
    elif mode == "twice":
        say("ok\nok\n")
    elif mode == "cut":
        say("ok")
        sys.exit(0)
    elif mode == "long":
        while True:
            say("o" * 4096)
    elif mode == "close":
        say("ok\n")
        os.close(0)
        os.write(seen, b"closed\n")
        time.sleep(600)
    elif mode != "hang":
        say("ok\n")


if mode == "early":
    os.write(seen, f"early {os.getpid()}\n".encode())
    say("ok\n")
count = 0
for line in sys.stdin.buffer:
    os.write(kept, line)
    os.write(seen, b"row\n")
    count += 1
    if mode != "gather" or count > int(sys.argv[4]):
        answer(count)
    elif count % n == 0:
        say("ok\n" * n)
os.write(seen, b"end\n")
if mode == "stay":
    time.sleep(600)
sys.exit(4 if mode == "fail-last" else 0)

#!/usr/bin/python3 -I
"""A second scanner of ledgers, written from rv-ledger(5) and rv-ledger-scan(1) alone, to hold the first to.

usage: scan-oracle.py [--tolerate-corrupt] --format orphans|report|keys|summary FILE...
       scan-oracle.py --compare COUNT [--seed N] [--threads N] --scan PROGRAM

The first form prints what rv-ledger-scan should print and exits as it should; no attempt runs.
The second makes COUNT ledgers with every kind of damage in them, and has both scanners read each, in
every format.  A difference is shown with its files, which stay.  Exit: 0 none, 1 some, 2 usage.

It is JavaScript's reading: JSON.parse, trim, the order of members, numbers as JSON.stringify writes them.
"""

import base64
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

FORMATS = ("orphans", "report", "keys", "summary")
SPACE = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


# ---- JavaScript ----

def no_constant(name):
    raise ValueError(name)


def parse(text):
    """JSON.parse: numbers are doubles, the last duplicate counts at the first one's place."""
    return json.loads(text, parse_int=float, parse_float=float, parse_constant=no_constant)


def number(value):
    """Number.prototype.toString."""
    if value == 0:
        return "0"
    sign, digits, exponent = re.fullmatch(r"(-?)([\d.]+)(?:e([-+]\d+))?", repr(value)).groups()
    whole, _, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{point - 1:+d}"


def string(text):
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    return '"' + "".join(
        short[c] if c in short else f"\\u{ord(c):04x}" if c < " " or "\ud800" <= c <= "\udfff" else c for c in text) + '"'


def is_index(name):
    return re.fullmatch(r"0|[1-9][0-9]{0,9}", name) is not None and int(name) < 2**32 - 1


def members(value):
    indices = sorted((name for name in value if is_index(name)), key=int)
    return [(name, value[name]) for name in indices] + [(n, v) for n, v in value.items() if not is_index(n)]


def stringify(value):
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return number(float(value)) if abs(value) != float("inf") else "null"
    if isinstance(value, str):
        return string(value)
    if isinstance(value, list):
        return "[" + ",".join(map(stringify, value)) + "]"
    return "{" + ",".join(string(name) + ":" + stringify(v) for name, v in members(value)) + "}"


# ---- lines ----

BLANK, ROW, UNREADABLE, WRONG = range(4)


def is_number(value):
    return isinstance(value, float)


def is_wrong(row):
    if not isinstance(row, dict):
        return True
    if row.get("phase") == "torn":
        return not isinstance(row.get("bytes"), str) or not is_number(row.get("recoveredAt")) or any(
            not isinstance(row.get(name, ""), str) for name in ("bytesBase64", "sha256"))
    if row.get("phase") not in ("intent", "outcome"):
        return True
    texts = ("idempotencyKey", "runId", "spanId", "tool", "argsHash", "executor", "workdir")
    if any(not isinstance(row.get(name), str) for name in texts) or not is_number(row.get("startedAt")):
        return True
    if not isinstance(row.get("attemptId", ""), str):
        return True
    if row["phase"] == "intent":
        return False
    if row.get("outcome") not in ("ok", "error", "timeout") or not is_number(row.get("durationMs")):
        return True
    if "exitCode" not in row or "signal" not in row:
        return True
    return not (row["exitCode"] is None or is_number(row["exitCode"])) or not (
        row["signal"] is None or isinstance(row["signal"], str))


def read_line(line):
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return UNREADABLE, None
    if text.strip(SPACE) == "":
        return BLANK, None
    try:
        row = parse(text[1:] if text.startswith("\ufeff") else text)
    except ValueError:
        return UNREADABLE, None
    return (WRONG, None) if is_wrong(row) else (ROW, row)


# ---- the scan ----

def identity(row):
    if "attemptId" in row:
        return "attempt", row["attemptId"]
    return "call", row["idempotencyKey"], row["startedAt"] + 0.0  # -0 is 0


class Scan:
    def __init__(self, paths):
        self.paths = paths
        self.rows = []     # (row, place), intents and outcomes
        self.torn = []     # (row, path)
        self.corrupt = []  # (path, line, offset, sha256)
        self.tails = []    # path
        for path in paths:
            with open(path, "rb") as file:
                self.read(path, file.read())
        intents = {identity(row) for row, _ in self.rows if row["phase"] == "intent"}
        outcomes = {identity(row) for row, _ in self.rows if row["phase"] == "outcome"}
        self.intents = [(row, place) for row, place in self.rows if row["phase"] == "intent"]
        self.outcomes = [(row, place) for row, place in self.rows if row["phase"] == "outcome"]
        self.orphans = [(row, place) for row, place in self.intents if identity(row) not in outcomes]
        self.alone = [row for row, _ in self.outcomes if identity(row) not in intents]

    def read(self, path, data):
        offset = 0
        lines = data.split(b"\n")
        for at, line in enumerate(lines, 1):
            tail = at == len(lines)
            kind, row = read_line(line)
            if kind == ROW and row["phase"] == "torn":
                self.torn.append((row, path))
            elif kind == ROW:
                self.rows.append((row, {"file": path, "line": at, "offset": offset}))
            elif kind == UNREADABLE and tail:
                self.tails.append(path)
            elif kind in (UNREADABLE, WRONG):
                self.corrupt.append((path, at, offset, hashlib.sha256(line).hexdigest()))
            offset += len(line) + 1

    def status(self, tolerate):
        if self.corrupt and not tolerate:
            return 4
        return 1 if self.orphans or self.corrupt else 0


def state(row):
    """Nothing runs here, so a writer of another boot is all that there is to be unsure of."""
    return "unknown" if "writer" in row else "orphan"


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


def orphans(scan):
    # What is added comes last, whatever the row's own members are called.
    return "".join(stringify(without(row, "phase", "at", "state"))[:-1] + ',"at":' + stringify(place) +
                   ',"state":' + string(state(row)) + "}\n" for row, place in scan.orphans)


def located(scan, path, element):
    return {"file": path, **element} if len(scan.paths) > 1 else element


def report(scan):
    whole = {
        "intents": [without(row, "phase") for row, _ in scan.intents],
        "outcomes": [without(row, "phase") for row, _ in scan.outcomes],
        "orphanedIntents": [without(row, "phase") for row, _ in scan.orphans],
        "corrupt": [located(scan, path, {"line": line, "offset": offset, "sha256": sha256, "preview": ""})
                    for path, line, offset, sha256 in scan.corrupt],
        "tornArtifacts": [located(scan, path, without(row, "phase")) for row, path in scan.torn],
    }
    if len(scan.paths) > 1:
        whole["tornTails"] = [{"file": path, "preview": ""} for path in scan.tails]
    elif scan.tails:
        whole["tornTail"] = {"preview": ""}
    return stringify(whole) + "\n"


def keys(scan):
    intents = {identity(row) for row, _ in scan.intents}
    table = {}
    for row, _ in scan.rows:
        key = table.setdefault(row["idempotencyKey"], {
            **{name: row[name] for name in ("idempotencyKey", "runId", "tool", "argsHash")}, "attempts": 0,
            "outcomes": {"ok": 0, "error": 0, "timeout": 0}, "orphans": 0, "running": 0,
            "firstStartedAt": row["startedAt"], "lastStartedAt": row["startedAt"]})
        key["attempts"] += row["phase"] == "intent" or identity(row) not in intents
        if row["phase"] == "outcome":
            key["outcomes"][row["outcome"]] += 1
        key["firstStartedAt"] = min(key["firstStartedAt"], row["startedAt"])
        key["lastStartedAt"] = max(key["lastStartedAt"], row["startedAt"])
    for row, _ in scan.orphans:
        table[row["idempotencyKey"]]["orphans"] += 1
    return "".join(stringify(key) + "\n" for key in table.values())


def summary(scan):
    unknown = sum(state(row) == "unknown" for row, _ in scan.orphans)
    return stringify({
        "files": len(scan.paths), "rows": len(scan.rows) + len(scan.torn), "intents": len(scan.intents),
        "outcomes": len(scan.outcomes), "attempts": len(scan.intents) + len(scan.alone),
        "orphans": len(scan.orphans) - unknown, "running": 0, "unknown": unknown, "corrupt": len(scan.corrupt),
        "tornArtifacts": len(scan.torn), "tornTails": len(scan.tails)}) + "\n"


WRITERS = {"orphans": orphans, "report": report, "keys": keys, "summary": summary}


# ---- ledgers with every kind of damage ----

def uuid(chance):
    text = f"{chance.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class Maker:
    """One case's files, from one seed."""

    def __init__(self, chance):
        self.chance = chance
        self.attempts = [self.attempt() for _ in range(chance.randrange(1, 12))]

    def text(self):
        return self.chance.choice([
            "k", "", "run-1", "é", "\u2028", "😀", "\\", '"', "a\tb", "\ud800", "\udfff\ud800", "\x00", "\x7f", "/", "x" * 300,
            "0", "__proto__", "constructor", "\ufeff", "ﬁ", "a" * self.chance.randrange(70)])

    def started(self):
        return self.chance.choice([1, 1, 2, 0, 1780000000000 + self.chance.randrange(5), 2**53, 0.5])

    def attempt(self):
        chance = self.chance
        row = {"idempotencyKey": chance.choice([f"{chance.getrandbits(256):064x}", "k", "k", self.text()]),
               "runId": "run-1", "spanId": f"{chance.getrandbits(64):016x}", "tool": chance.choice(["charge", self.text()]),
               "argsHash": f"{chance.getrandbits(256):064x}", "executor": "subprocess", "workdir": "/tmp/w",
               "startedAt": self.started()}
        kind = chance.randrange(6)
        if kind < 3:
            row["attemptId"] = uuid(chance)
        elif kind == 3:
            row["attemptId"] = chance.choice([self.text(), uuid(chance).upper(), uuid(chance)[:-1], uuid(chance) + "0",
                                              uuid(chance).replace("-", "_"), "g" + uuid(chance)[1:]])
        return row

    def writer(self):
        return {"host": "h", "bootId": "00000000-0000-0000-0000-000000000000", "pid": 7, "startTime": 5,
                "lock": 2**52 + 3, "until": 9}

    def row(self):
        chance = self.chance
        attempt = chance.choice(self.attempts)
        if chance.randrange(12) == 0:
            torn = {"phase": "torn", "bytes": self.text(), "recoveredAt": self.started()}
            if chance.randrange(2) == 0:
                torn["bytesBase64"] = base64.b64encode(b"x").decode()
            return torn
        if chance.randrange(2) == 0:
            row = {"phase": "intent", **attempt}
            if chance.randrange(2) == 0:
                row.update(sandbox="none", containment="pid-namespace")
                if chance.randrange(2) == 0:
                    row["writer"] = self.writer()
            return self.extra(row)
        return self.extra({"phase": "outcome", **attempt, "durationMs": chance.choice([0, 5, 1.5]),
                           "outcome": chance.choice(["ok", "error", "timeout"]), "exitCode": chance.choice([0, 1, None, -1, 0.5]),
                           "signal": chance.choice([None, None, "SIGKILL", ""])})

    def extra(self, row):
        if self.chance.randrange(5) == 0:
            row[self.chance.choice(["10", "9", "01", "at", "state", "file", "x", "4294967295", "4294967294", "-1"])] = self.chance.choice(
                [1, "y", None, True, [], {}, [[{"b": 2, "1": [1e21, 1e-7, -0.0]}]], self.text()])
        if self.chance.randrange(8) == 0:
            names = list(row)
            self.chance.shuffle(names)
            return {name: row[name] for name in names}
        return row

    def spell(self, value):
        """The same JSON, written in one of the ways in which it can be."""
        chance = self.chance
        if isinstance(value, (dict, list)):
            blank = chance.choice(["", "", "", " ", "\t", "\r"]) if chance.randrange(6) == 0 else ""
            parts = [blank + (self.spell(name) + blank + ":" + blank if isinstance(value, dict) else "") +
                     self.spell(value[name] if isinstance(value, dict) else name) + blank for name in value]
            return ("{" if isinstance(value, dict) else "[") + ",".join(parts) + ("}" if isinstance(value, dict) else "]")
        if isinstance(value, str):
            if chance.randrange(30) == 0:
                return '"' + "".join(f"\\u{unit:04X}" if chance.randrange(2) else f"\\u{unit:04x}" for unit in self.units(value)) + '"'
            return json.dumps(value, ensure_ascii=chance.randrange(10) == 0) if not self.has_lone(value) else json.dumps(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self.spell_number(value)
        return json.dumps(value)

    @staticmethod
    def units(text):
        data = text.encode("utf-16-le", "surrogatepass")
        return [data[i] | data[i + 1] << 8 for i in range(0, len(data), 2)]

    @staticmethod
    def has_lone(text):
        return any("\ud800" <= c <= "\udfff" for c in text)

    def spell_number(self, value):
        chance = self.chance
        plain = number(float(value))
        if chance.randrange(6) != 0:
            return plain
        ways = ["1e400", "-1e400", f"{value:e}", repr(float(value)), plain]
        if value == 0:
            ways = ["-0", "0.0", "0e7", "-0.0e-3"]
        elif value == int(value) and value > 0:
            ways += [plain + ".0", plain + "e0", plain + ".000E+00", f"{int(value)}0e-1"]
        return chance.choice(ways)

    def damage(self, line):
        """A line that is no row any more, or a row that is another one: the oracle knows which."""
        chance = self.chance
        at = chance.randrange(len(line) + 1)
        kind = chance.randrange(22)
        if kind == 0:
            return line[:at]
        if kind == 1:
            return line[:at] + chance.choice([b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xf0\x9f", b"\x80"]) + line[at:]
        if kind == 2:
            return line[:at] + bytes([chance.randrange(32)]) .replace(b"\n", b"\0") + line[at:]
        if kind == 3:
            return b"\0" * chance.choice([1, 7, 4096])
        if kind == 4:
            return chance.choice([b"null", b"[]", b"42", b'"x"', b"true", b"{}", b"[1,", b"nul", b"NaN", b"-", b"01", b"1.", b"{'a':1}", b"{\"a\":1,}"])
        if kind == 5:
            return line + chance.choice([b"{}", b" x", b",", b"\"abc", b"}", b"\xef\xbb\xbf"])
        if kind == 6:
            return chance.choice([b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf", b" \xef\xbb\xbf", b"\v", b"\xc2\xa0", b" ", b"\t"]) + line
        if kind == 7:
            return line + chance.choice([b"\r", b" ", b"\t\r", b"\xc2\xa0", b"\f", b"\xe2\x80\xa8"])
        if kind == 8:  # a member twice
            name = chance.choice([b'"phase":"outcome"', b'"phase":"intent"', b'"attemptId":"a"', b'"attemptId":null', b'"startedAt":1.0',
                                  b'"startedAt":"1"', b'"idempotencyKey":"k"', b'"outcome":"ok"', b'"\\u0070hase":"torn"', b'"exitCode":null'])
            return line[:1] + name + b"," + line[1:] if chance.randrange(2) else line[:-1] + b"," + name + b"}"
        if kind == 9:
            return line.replace(b'"startedAt":', chance.choice([b'"startedat":', b'"startedAt":-', b'"startedAt":"', b'"startedAt":0', b'"startedAt":null,"x":']), 1)
        if kind == 10:
            return line.replace(b'"attemptId":"', chance.choice([b'"attemptId":1,"y":"', b'"attemptId":null,"y":"', b'"attemptid":"', b'"attemptId":"\\u0061']), 1)
        if kind == 11:
            return line.replace(chance.choice([b"ok", b"error", b"timeout", b"null", b"intent", b"outcome"]), chance.choice([b"OK", b"", b"nil", b"\\u006fk", b"intents"]), 1)
        if kind == 12 and line:
            return line[:at] + line[at + 1:]
        if kind == 13 and line:
            return line[:at] + bytes([line[at % len(line)] ^ 1 << chance.randrange(8)]).replace(b"\n", b"\v") + line[at + 1:]
        if kind == 14:
            return line.replace(b":", chance.choice([b": ", b" :", b":\t", b"\v:", b":\xc2\xa0"]), chance.randrange(4))
        if kind == 15:
            return chance.choice([b"", b" ", b"\t \r", b"\v\f", b"\xe2\x80\xa8", b"\xc2\xa0\xe3\x80\x80", b"\xef\xbb\xbf", b"\xe2\x80\x8b", b"\xc2\x85"])
        if kind == 16:
            return line.replace(b'"phase"', chance.choice([b'"Phase"', b'"phas\\u0065"', b'"phase" ']), 1)
        if kind == 17:
            return line.replace(b"}", chance.choice([b',"deep":' + b"[" * 200 + b"]" * 200 + b"}", b"}}", b"]", b',"n":1e999}', b',"n":0123}', b',"s":"\\x"}', b',"s":"\\ud83d\\u0041"}']), 1)
        if kind == 18:
            return line + line
        if kind == 19:
            return line[:at] + chance.choice([b'\\"', b"\\\\", b"\\u0000", b"\\u12g4", b"\\", b"\\/"]) + line[at:]
        if kind == 20:
            return line[at:]
        return line.upper()

    def file(self):
        chance = self.chance
        lines = []
        damaged = chance.randrange(3) == 0  # else the strict answer would hardly ever be asked for
        for _ in range(chance.choice([0, 1, 3, 10, 30])):
            line = self.spell(self.row()).encode("utf-8")
            lines.append(self.damage(line) if damaged and chance.randrange(4) == 0 else line)
            if chance.randrange(15) == 0:
                lines.append(chance.choice([b"", b" ", b"\r", b"\xc2\xa0", b"\t"]))
        end = chance.choice([b"\r\n" if chance.randrange(8) == 0 else b"\n"])
        data = b"".join(line + end for line in lines)
        if chance.randrange(3) == 0:
            line = self.spell(self.row()).encode("utf-8")
            tail = line[:chance.randrange(len(line) + 1)] if chance.randrange(2) else self.damage(line)
            data += tail if damaged or read_line(tail)[0] != WRONG else b""
        return data if chance.randrange(20) else b"\xef\xbb\xbf" + data


def comparable(text, form):
    """Previews are for people; the rest, its order too, must be the same."""
    return re.sub(r'"preview":"(?:[^"\\]|\\.)*"', '"preview":""', text) if form == "report" else text


def sort_located(text):
    """In elements that say their file, it may stand anywhere."""
    whole = json.loads(text, parse_int=str, parse_float=str)
    for name in ("corrupt", "tornArtifacts", "tornTails"):
        for element in whole.get(name, []):
            if "file" in element:
                element["file"] = element.pop("file")
    return json.dumps(whole)


def run(program, arguments):
    done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          env={"PATH": "/usr/bin:/bin", "TZ": "UTC"})
    return done.returncode, done.stdout.decode("utf-8", "surrogateescape")


def differs(program, paths, form, tolerate, threads):
    scan = Scan(paths)
    status = scan.status(tolerate)
    want = "" if status == 4 else WRITERS[form](scan)
    options = ["--format", form, "--threads", str(threads), *(["--tolerate-corrupt"] if tolerate else [])]
    got_status, got = run(program, [*options, *paths])
    same = comparable(want, form) == comparable(got, form)
    if not same and form == "report" and want and got and len(paths) > 1:
        same = sort_located(comparable(want, form)) == sort_located(comparable(got, form))
    if same and status == got_status:
        return None
    return f"{' '.join(options)}: status {got_status}, should be {status}\n  got:  {got[:2000]}\n  want: {want[:2000]}"


def make_case(top, seed):
    chance = random.Random(seed)
    maker = Maker(chance)
    paths = []
    for index in range(chance.choice([1, 1, 1, 2, 3])):
        paths.append(os.path.join(top, f"{index}.jsonl"))
        with open(paths[-1], "wb") as file:
            file.write(maker.file())
    if chance.randrange(10) == 0:
        paths.append(paths[0])
    chance.shuffle(paths)
    return paths


def compare(program, count, seed, threads):
    kinds = {0: 0, 1: 0, 4: 0}
    for case in range(seed, seed + count):
        top = tempfile.mkdtemp(prefix="rv-oracle.")
        paths = make_case(top, case)
        kinds[Scan(paths).status(False)] += 1
        # Where a scan is refused each format is silent: one of them each time.
        for form, tolerate in [(FORMATS[case % 4], False), *((form, True) for form in FORMATS)]:
            difference = differs(program, paths, form, tolerate, threads)
            if difference is not None:
                print(f"scan-oracle: seed {case}: {' '.join(paths)}\n  {difference}", file=sys.stderr)
                return 1
        shutil.rmtree(top)
    print(f"{count} ledgers from seed {seed}: {kinds[0]} clean, {kinds[1]} with orphans, {kinds[4]} refused")
    return 0 if min(kinds.values()) * 20 >= count else 1


def main(words):
    options = {"--format": None, "--compare": None, "--seed": "1", "--threads": "1", "--scan": None}
    tolerate, paths = False, []
    while words:
        word = words.pop(0)
        if word in options and words:
            options[word] = words.pop(0)
        elif word == "--tolerate-corrupt":
            tolerate = True
        elif word in ("-h", "--help"):
            print(__doc__)
            return 0
        else:
            paths.append(word)
    if options["--compare"] is not None and options["--scan"] is not None and not paths:
        return compare(options["--scan"], int(options["--compare"]), int(options["--seed"]), options["--threads"])
    if options["--format"] not in FORMATS or not paths:
        print(__doc__, file=sys.stderr)
        return 2
    scan = Scan(paths)
    if scan.status(tolerate) != 4:
        sys.stdout.buffer.write(WRITERS[options["--format"]](scan).encode("utf-8"))
    return scan.status(tolerate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Broken executors, one named defect each: mutant.py --list, or as an adapter: mutant.py FAULT ...

A defect sits either in a method of t/adapters/careful.py, or around rv-exec's own adapter: before it
(the request, the configuration), inside it (a wrapper of the tool) or behind it (the reply, the
ledger).  `targets` are the checks that must turn red; `also` are checks that do so too, with the
reason; in those of `alike` a glob stands for many.  `changes` are the calls of an adapter that the
defect can be seen in: every other one is passed on by exec.  scripts/mutants holds every run to this
table."""
import fcntl
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "adapters"))
import careful  # noqa: E402
from careful import Failure, canonical  # noqa: E402



class Later:
    """A module that few defects need, imported where one does: a defect is started some hundred times."""
    def __init__(self, name):
        self.name = name

    def __getattr__(self, what):
        return getattr(__import__(self.name), what)


base64, hashlib, shutil, struct, termios = map(Later, ("base64", "hashlib", "shutil", "struct", "termios"))

FAULTS = {}


def fault(targets, alike=None, **also):
    """Register a class under its name with dashes; `also` maps a check, dots as double underscores, to why."""
    def register(cls):
        also_too = {k.replace("__", ".").replace("_", "-"): v for k, v in also.items()}
        FAULTS[cls.__name__.replace("_", "-")] = (cls, targets.split(), {**also_too, **(alike or {})})
        return cls
    return register


def lines_of(data):
    """With their ends, which are line feeds alone: JSON may have a carriage return between two tokens."""
    return [line for line in re.split(rb"(?<=\n)", data) if line]


# ---- around rv-exec ----

class Wrapper:
    """Passes everything on."""
    setup = None  # shell text before the tool's exec
    whole = False  # rows() gets the rows of other calls, too

    def __init__(self):
        self.line = None

    def before(self, config, request):
        pass

    def after(self, reply):
        return reply

    def rows(self, rows):
        return rows

    def adapter(self):
        return [os.environ.get("RV_CONFORM", "rv-conform"), "--adapter", "--"]

    def ledger(self):
        """After the run: rewrite its rows, with the append lock held, and leave the others' bytes alone."""
        path = self.config.get("ledger")
        if type(self).rows is Wrapper.rows or not path or not os.path.isfile(path):
            return
        with open(path, "r+b") as file:
            fcntl.fcntl(file, fcntl.F_OFD_SETLKW, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1 << 52, 0))
            lines = lines_of(file.read())
            mine = [n for n, line in enumerate(lines) if self.is_mine(line)]
            old = [json.loads(lines[n]) for n in mine]
            new = self.rows([dict(row) for row in old])
            if json.dumps(new) == json.dumps(old):
                return
            if len(new) < len(old):
                for n, row in zip(mine, old):
                    if row not in new:
                        lines[n] = b""
            else:
                for n, was, row in zip(mine, old, new):
                    if json.dumps(row) != json.dumps(was):
                        lines[n] = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            file.seek(0)
            file.truncate()
            file.write(b"".join(lines))

    def is_mine(self, line):
        try:
            row = json.loads(line)
        except ValueError:
            return False
        return isinstance(row, dict) and "attemptId" in row and (self.whole or row.get("idempotencyKey") == self.request["ctx"].get("idempotencyKey"))

    def engine(self, data):
        child = subprocess.Popen(self.adapter(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda n, f: self.on_signal(child, n))
        try:
            out = child.communicate(data)[0]
        except BrokenPipeError:
            out = child.stdout.read()
        return out

    def on_signal(self, child, number):
        child.send_signal(number)

    def run(self):
        raw = sys.stdin.buffer.read()
        self.raw = raw
        line = json.loads(raw)
        self.config, self.request = line["config"], line["request"]
        was = json.dumps(line)
        self.before(self.config, self.request)
        # A command that cannot be run is left to fail as it does.
        if self.setup and self.config.get("command") == "/bin/sh":
            spec = [self.config["command"], *self.config.get("args", [])]
            self.config["command"] = "/bin/sh"
            self.config["args"] = ["-c", self.setup + '; exec "$@"', "sh", *spec]
        if json.dumps(line) != was:
            raw = json.dumps(line).encode()
        out = self.engine(raw)
        self.ledger()
        if type(self).after is not Wrapper.after:
            try:
                out = json.dumps(self.after(json.loads(out))).encode() + b"\n"
            except ValueError:
                pass
        sys.stdout.buffer.write(out)

    def question(self, words):
        os.execvp(self.adapter()[0], self.adapter() + words)


def error(reply, code, message="broken"):
    reply.pop("result", None)
    return {**reply, "ok": False, "error": {"code": code, "message": message}}


def code_of(reply):
    return reply.get("error", {}).get("code")


def outcomes(rows):
    return [row for row in rows if row.get("phase") == "outcome"]


@fault("e1")
class reply_of_another_tool(Wrapper):
    """The reply names another tool."""
    def after(self, reply):
        return {**reply, "tool": "another"}


@fault("e2", env__exact="the secret is a variable that was not granted", kernel__environ="it looks for that secret, too")
class secret_leaks(Wrapper):
    """The adapter's secret is allowed through."""
    def before(self, config, request):
        config["allowEnv"].append("RV_CONFORM_SECRET")


@fault("e3", env__absent="its empty variable is an allowed one")
class allow_env_ignored(Wrapper):
    """No variable is allowed."""
    def before(self, config, request):
        config["allowEnv"] = []


@fault("e4")
class credentials_shortened(Wrapper):
    """Minted values lose a letter."""
    def before(self, config, request):
        if "credentials" in config:
            config["credentials"] = ["/bin/sh", "-c", 'out=$("$@") || exit; printf %s "$out" | sed s/token/tokn/', "sh", *config["credentials"]]


KEY_VARIABLE = "it looks at the same variable"


@fault("e5", env__identity=KEY_VARIABLE, env__own_wins=KEY_VARIABLE, key__exact="the tool prints that variable")
class key_not_in_environment(Wrapper):
    """The tool has no RULVAR_IDEMPOTENCY_KEY."""
    setup = "unset RULVAR_IDEMPOTENCY_KEY"


LATE = "it bounds the same deadline"


@fault("e6", time__term_first=LATE, time__ignores_term=LATE, time__stopped=LATE, time__traffic=LATE, time__closed_pipes=LATE, tree__timeout=LATE)
class timeout_late(Wrapper):
    """Every timeout comes nine seconds late."""
    def before(self, config, request):
        config["timeoutMs"] += 9000


FLOOD = "it expects the same code"


@fault("e7", cap__exact=FLOOD, row__flood=FLOOD, workdir__failures=FLOOD)
class flood_is_exit(Wrapper):
    """output-cap is reported as exit."""
    def after(self, reply):
        return error(reply, "exit") if code_of(reply) == "output-cap" else reply


@fault("e8", stderr__tail="it reads the same message", stderr__bytes="it reads the same message")
class message_empty(Wrapper):
    """The message of exit has no stderr."""
    def after(self, reply):
        return error(reply, "exit", "failed") if code_of(reply) == "exit" else reply


REFUSED = "it expects protocol for other output"


@fault("e9", e12=REFUSED, protocol__trim=REFUSED, protocol__utf8=REFUSED, workdir__failures=REFUSED)
class output_guessed(Wrapper):
    """Unparseable output is taken as null."""
    def after(self, reply):
        return {**reply, "ok": True, "result": None, "error": None} if code_of(reply) == "protocol" else reply


@fault("e10", e13="the workdir of its intent is not empty either", kernel__work="it begins with an empty workdir")
class workdir_not_empty(Wrapper):
    """There is a file in the workdir before the tool starts."""
    setup = ": >.lock"


ERROR_ROW = "it expects error in the row"


@fault("e11", e12=ERROR_ROW, exit__ledgered=ERROR_ROW, spawn__ledgered=ERROR_ROW, credentials__ledgered=ERROR_ROW, row__flood=ERROR_ROW, abort__signals=ERROR_ROW)
class outcome_always_ok(Wrapper):
    """Every error stands in the ledger as ok."""
    def rows(self, rows):
        return [{**row, "outcome": "ok"} if row.get("outcome") == "error" else row for row in rows]


@fault("e12", exit__ledgered="it reads the same member")
class exit_code_dropped(Wrapper):
    """exitCode is always null."""
    def rows(self, rows):
        return [{**row, "exitCode": None} if row["phase"] == "outcome" else row for row in rows]


DURING = "nothing stands in the ledger while the tool runs"
REWRITTEN = "the ledger is written anew at the end"


@fault("e13 append.concurrent append.waits row.no-intent", crash__workdir=DURING, crash__retry=DURING, crash__anytime=DURING,
       credentials__after_intent=DURING, row__no_outcome=REWRITTEN, row__renamed=REWRITTEN, append__torn=REWRITTEN)
class ledger_late(Wrapper):
    """The ledger is read at the start and written as a whole at the end."""
    def before(self, config, request):
        self.path = config.get("ledger")
        if not self.path:
            return
        self.old = b""
        if os.path.isfile(self.path):
            with open(self.path, "rb") as file:
                self.old = file.read()
        self.own = os.path.join(os.path.dirname(config["workdirBase"]), "own-%d.jsonl" % os.getpid())
        config["ledger"] = self.own

    def ledger(self):
        if not self.path or not os.path.exists(self.own):
            return
        time.sleep(0.2)
        try:
            with open(self.own, "rb") as rows, open(self.path, "wb") as file:
                file.write(self.old + rows.read())
        except OSError:
            pass


@fault("crash.workdir", name__hostile="the directory is one further down")
class intent_names_another_workdir(Wrapper):
    """The tool runs in a directory below the workdir of the intent."""
    setup = "if mkdir -m 700 below; then cd below; fi"


PAIRS = "it pairs rows by attemptId"


@fault("crash.retry", append__again=PAIRS, append__concurrent=PAIRS, row__attempts=PAIRS)
class outcome_resolves_first_attempt(Wrapper):
    """An outcome carries the attemptId of the key's first intent."""
    def rows(self, rows):
        first = {}
        for row in rows:
            if row["phase"] == "intent":
                first.setdefault(row["idempotencyKey"], row["attemptId"])
        return [{**row, "attemptId": first.get(row["idempotencyKey"], row["attemptId"])} if row["phase"] == "outcome" else row for row in rows]


OTHERS = "the orphan is that of another call"


@fault("crash.anytime", crash__retry="it counts the orphan, too", append__torn=OTHERS, append__interior=OTHERS, append__concurrent="the others have no outcome yet")
class orphans_tidied(Wrapper):
    """Intents without an outcome are removed."""
    whole = True

    def rows(self, rows):
        done = {row["attemptId"] for row in outcomes(rows)}
        return [row for row in rows if row["attemptId"] in done]


@fault("abort.signals")
class abort_kills(Wrapper):
    """SIGTERM is passed on as SIGKILL."""
    def on_signal(self, child, number):
        child.kill()


@fault("exit.ledgered")
class signal_dropped(Wrapper):
    """The signal's name is not in the row."""
    def rows(self, rows):
        return [{**row, "signal": None} if row["phase"] == "outcome" else row for row in rows]


@fault("spawn.ledgered", credentials__ledgered="nothing ran there either")
class nothing_ran_is_status_127(Wrapper):
    """Where nothing ran the row has exitCode 127."""
    def rows(self, rows):
        return [{**row, "exitCode": 127} if row["phase"] == "outcome" and row["exitCode"] is None and row["signal"] is None else row for row in rows]


@fault("credentials.ledgered")
class failed_minting_not_ledgered(Wrapper):
    """A dispatch without credentials leaves its intent alone."""
    def ledger(self):
        path = self.config.get("ledger")
        if path and self.config.get("credentials") and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                rows = [row for row in file if '"phase":"intent"' in row or '"exitCode":0' in row]
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(rows)


@fault("credentials.after-intent", credentials__nowhere="it hands them on in a command line")
class minted_before_the_intent(Wrapper):
    """The credentials program runs before anything else."""
    def before(self, config, request):
        if config.get("credentials"):
            done = subprocess.run(config["credentials"], input=json.dumps(request).encode() + b"\n", stdout=subprocess.PIPE, check=False)
            status = done.returncode if done.returncode >= 0 else 1
            config["credentials"] = ["/bin/sh", "-c", 'printf %s "$1"; exit "$2"', "sh", done.stdout.decode(), str(status)]


@fault("row.members")
class members_in_another_order(Wrapper):
    """The row's members are sorted."""
    def rows(self, rows):
        return [dict(sorted(row.items())) for row in rows]


@fault("row.pairing")
class outcome_in_another_span(Wrapper):
    """The outcome carries a spanId of its own."""
    def rows(self, rows):
        return [{**row, "spanId": "span-2"} if row["phase"] == "outcome" else row for row in rows]


@fault("row.attempts append.again", crash__retry=PAIRS, append__concurrent=PAIRS)
class one_attempt_id_for_all(Wrapper):
    """attemptId is always the same."""
    def rows(self, rows):
        return [{**row, "attemptId": "00000000-0000-4000-8000-000000000000"} for row in rows]


@fault("row.timeout")
class timeout_ledgered_as_error(Wrapper):
    """The outcome of a timeout is error."""
    def rows(self, rows):
        return [{**row, "outcome": "error"} if row.get("outcome") == "timeout" else row for row in rows]


@fault("row.flood")
class flood_ledgered_as_flood(Wrapper):
    """The outcome of a flood is its code."""
    def ledger(self):
        self.flood = self.config.get("maxOutputBytes") == 65536
        super().ledger()

    def rows(self, rows):
        return [{**row, "outcome": "output-cap"} if self.flood and row.get("outcome") == "error" else row for row in rows]


@fault("row.no-intent", row__no_outcome="the reply is that of a second dispatch")
class goes_on_without_ledger(Wrapper):
    """Where the ledger fails the call is dispatched without one."""
    def after(self, reply):
        if code_of(reply) != "ledger":
            return reply
        line = json.loads(self.raw)
        line["config"].pop("ledger")
        return json.loads(self.engine(json.dumps(line).encode()))


@fault("row.no-outcome")
class outcome_failure_ignored(Wrapper):
    """A failed outcome write is not in the reply."""
    def after(self, reply):
        return {**reply, "ok": True, "result": 1, "error": None} if code_of(reply) == "ledger" and "attemptId" in reply else reply


@fault("row.renamed")
class outcome_alone_removed(Wrapper):
    """A ledger that begins with an outcome is taken for a broken one, and emptied."""
    whole = True

    def rows(self, rows):
        return [] if rows and rows[0].get("phase") == "outcome" else rows


@fault("key.stable")
class key_depends_on_time_zone(Wrapper):
    """TZ goes into the key."""
    def after(self, reply):
        zone = os.environ.get("TZ", "") if "agentSeq" in self.request["ctx"] else ""
        if zone and "idempotencyKey" in reply:
            reply["idempotencyKey"] = hashlib.sha256((reply["idempotencyKey"] + zone).encode()).hexdigest()
        return reply


@fault("key.exact key.distinct")
class genesis_not_in_key(Wrapper):
    """Keys are of derivation 1, whatever the run says."""
    def before(self, config, request):
        if "agentSeq" in request["ctx"]:
            request["ctx"].pop("genesis", None)
            request["ctx"]["execKeyDerivation"] = 1


@fault("key.both")
class coordinates_win(Wrapper):
    """A key beside coordinates is ignored."""
    def before(self, config, request):
        if "agentSeq" in request["ctx"]:
            request["ctx"].pop("idempotencyKey", None)


@fault("approval.binding")
class hash_of_the_spelling(Wrapper):
    """argsHash is of the arguments as they were spelled."""
    def rows(self, rows):
        args = re.search(rb'"args":(\{[^{}]*\}),"ctx"', self.raw)
        if args:
            digest = hashlib.sha256(args.group(1)).hexdigest()
            rows[-2:] = [{**row, "argsHash": digest} for row in rows[-2:]]
        return rows


# ---- what may run ----

class Permits(Wrapper):
    """The manifest and the approvals as bytes, before they are read."""
    def before(self, config, request):
        for name in ("manifest", "approvals"):
            if name in config:
                with open(config[name], "rb") as file:
                    new = getattr(self, name)(file.read())
                config[name] += ".own"
                with open(config[name], "wb") as file:
                    file.write(new)

    def manifest(self, text):
        return text

    def approvals(self, text):
        return text

    def replaced(self, name, value, text):
        return re.sub(rb'"%s":"[^"]*"' % name, lambda match: b'"%s":%s' % (name, json.dumps(value).encode()), text)


@fault("manifest.runs")
class empty_words_dropped(Permits):
    """A manifest's args lose their empty words."""
    def manifest(self, text):
        return text.replace(b',""', b"")


@fault("manifest.runs")
class first_tool_for_all(Permits):
    """Every tool of the manifest runs by the first one's command."""
    def manifest(self, text):
        tools = json.loads(text)
        if len(tools) < 3:
            return text
        first = next(iter(tools.values()))
        return json.dumps({name: {**entry, "args": first["args"]} for name, entry in tools.items()}).encode()


@fault("manifest.spec")
class spec_passed_over(Permits):
    """A spec beside a manifest is ignored."""
    def before(self, config, request):
        if "manifest" in config:
            request.pop("spec", None)


@fault("manifest.spec")
class spec_wins(Permits):
    """A spec beside a manifest says what is run."""
    def before(self, config, request):
        if "manifest" in config and "command" in request.get("spec", {}):
            del config["manifest"]
            config.pop("approvals", None)


@fault("manifest.unlisted")
class names_in_any_case(Permits):
    """The manifest's names are compared without their case."""
    def before(self, config, request):
        if "manifest" in config:
            request["tool"] = request["tool"].lower()


REFUSALS = ("manifest.spec manifest.unlisted manifest.duplicate manifest.whole "
            "approvals.needed approvals.other approvals.denied approvals.damaged")


@fault(REFUSALS)
class workdir_before_the_rules(Permits):
    """The workdir is made before it is known whether the tool may run."""
    def before(self, config, request):
        if "manifest" in config:
            made = os.path.join(config["workdirBase"], "rulvar-exec-early")
            os.mkdir(made)
            os.rmdir(made)


@fault(REFUSALS)
class refusals_ledgered(Permits):
    """A refusal by manifest or approvals has a row."""
    def after(self, reply):
        if "manifest" in self.config and "ledger" in self.config and code_of(reply) in ("config", "request"):
            with open(self.config["ledger"], "a", encoding="utf-8") as file:
                file.write('{"phase":"outcome","outcome":"error"}\n')
        return reply


@fault("manifest.duplicate")
class last_name_wins(Permits):
    """Of a name that stands twice in the manifest the last one counts."""
    def manifest(self, text):
        return json.dumps(json.loads(text)).encode()


@fault("manifest.whole", manifest__duplicate="its other entry is gone, too")
class own_entry_checked(Permits):
    """Of the manifest the called tool's entry alone is looked at."""
    def manifest(self, text):
        return json.dumps({name: entry for name, entry in json.loads(text).items() if name == self.request["tool"]}).encode()


@fault("manifest.timeout")
class tool_timeout_ignored(Permits):
    """A tool's own timeout is checked and not kept."""
    def manifest(self, text):
        return re.sub(rb',"timeout":"[0-9]+m?s"', b"", text)


APPROVAL = "it needs an approval there, too"


@fault("approvals.needed", approvals__other=APPROVAL, approvals__denied=APPROVAL)
class approvals_not_asked_for(Permits):
    """needsApproval is taken for a label."""
    def manifest(self, text):
        return text.replace(b'"needsApproval":true', b'"needsApproval":false')


@fault("approvals.granted")
class approvals_of_the_spelling(Permits):
    """An approval is of the arguments as they were spelled."""
    def approvals(self, text):
        args = re.search(rb'"args":(\s*\{[^{}]*\}\s*),"ctx"', self.raw)
        digest = hashlib.sha256(args.group(1) if args else b"").hexdigest().encode()
        return b"".join(line for line in lines_of(text) if b"argsHash" not in line or digest in line or b":7}" in line)


@fault("approvals.other")
class approvals_of_any_run(Permits):
    """An approval's run is not compared."""
    def approvals(self, text):
        return self.replaced(b"runId", self.request["ctx"]["runId"], text)


@fault("approvals.other")
class approvals_of_any_tool(Permits):
    """An approval's tool is not compared."""
    def approvals(self, text):
        return self.replaced(b"tool", self.request["tool"], text)


@fault("approvals.other")
class approvals_of_any_arguments(Permits):
    """An approval's arguments are not compared."""
    def approvals(self, text):
        return self.replaced(b"argsHash", hashlib.sha256(canonical(self.request["args"]).encode()).hexdigest(), text)


@fault("approvals.denied")
class denials_passed_over(Permits):
    """A row that does not approve is passed over."""
    def approvals(self, text):
        return b"".join(line for line in lines_of(text) if b'"decision":' not in line or b'"approved"' in line)


@fault("approvals.denied")
class decisions_not_read(Permits):
    """Whatever a row decides, it is an approval."""
    def approvals(self, text):
        return re.sub(rb',"decision":"[^"]*"', b"", text)


@fault("approvals.damaged")
class damage_passed_over(Permits):
    """Lines that are no approvals are passed over."""
    def approvals(self, text):
        return b"".join(line for line in lines_of(text) if self.is_approval(line))

    def is_approval(self, line):
        try:
            row = json.loads(line)
        except ValueError:
            return False
        return isinstance(row, dict) and all(isinstance(row.get(name), str) for name in ("runId", "tool", "argsHash"))


# ---- rows that others wrote ----

@fault("append.torn")
class tail_terminated_whatever_it_is(Wrapper):
    """A tail without a newline gets one."""
    def before(self, config, request):
        path = config.get("ledger")
        if path and os.path.isfile(path):
            with open(path, "r+b") as file:
                data = file.read()
                if data and not data.endswith(b"\n"):
                    file.write(b"\n")


@fault("append.interior")
class damage_tidied(Wrapper):
    """Lines that are no rows are removed before an append."""
    def before(self, config, request):
        path = config.get("ledger")
        if not path or not os.path.isfile(path):
            return
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
        tail = lines.pop()
        good = [line for line in lines if line.startswith(b'{"phase":"intent"') or line.startswith(b'{"phase":"outcome"')]
        if len(good) != len(lines):
            with open(path, "wb") as file:
                file.write(b"".join(line + b"\n" for line in good) + tail)


@fault("append.reader", append__torn="what it has open gets no lease, and is mended in place")
class flock_for_the_dispatch(Wrapper):
    """The ledger is locked with flock."""
    def before(self, config, request):
        path = config.get("ledger")
        if not path or not os.path.isfile(path):
            return
        self.lock = open(path, "rb")  # noqa: SIM115  (held to the end)
        end = time.monotonic() + 9
        while time.monotonic() < end:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(0.05)


# ---- questions about ledgers and keys ----

class Questions(Wrapper):
    """Answers of the programs, changed."""
    asks = ()

    def question(self, words):
        if words[0] not in self.asks:
            super().question(words)
        self.answer(words)

    def ask(self, words, data=None):
        if data is None and words[0] in ("--keys", "--canonical"):
            data = sys.stdin.buffer.read()
        return subprocess.run(self.adapter() + words, input=data if data is not None else b"", stdout=subprocess.PIPE, check=False)

    def tell(self, out, status):
        sys.stdout.buffer.write(out)
        sys.stdout.flush()
        sys.exit(status)


def files_of(words):
    return [word for word in words[1:] if not word.startswith("--")]


@fault("scan.strict")
class scan_tolerates(Questions):
    """Every scan tolerates damage."""
    asks = ("--scan",)

    def answer(self, words):
        done = self.ask(["--scan", "--tolerate-corrupt", *files_of(words)])
        report = json.loads(done.stdout) if done.stdout else {}
        self.tell(done.stdout, done.returncode if done.returncode == 5 else 1 if report.get("orphanedIntents") else 0)


@fault("scan.report")
class scan_drops_torn(Questions):
    """Torn artifacts are left out of the report."""
    asks = ("--scan",)

    def answer(self, words):
        done = self.ask(words)
        self.tell(re.sub(rb'"tornArtifacts":\[\{.*\}\]', b'"tornArtifacts":[]', done.stdout), done.returncode)


@fault("scan.status")
class scan_always_alarmed(Questions):
    """A scan without orphans ends in 1."""
    asks = ("--scan",)

    def answer(self, words):
        done = self.ask(words)
        self.tell(done.stdout, done.returncode or 1)


@fault("scan.merge", scan__unreadable="the second file is not looked at")
class scan_of_one_file(Questions):
    """Only the first file is scanned."""
    asks = ("--scan",)

    def answer(self, words):
        done = self.ask([word for word in words if word not in files_of(words)[1:]])
        self.tell(done.stdout, done.returncode)


@fault("scan.unreadable")
class scan_passes_over_missing(Questions):
    """A file that is not there is passed over."""
    asks = ("--scan",)

    def answer(self, words):
        done = self.ask([word for word in words if word.startswith("--") or os.path.exists(word)])
        self.tell(done.stdout, done.returncode)


@fault("scan.long-line")
class scan_with_a_line_limit(Questions):
    """Lines of more than 1 MiB are not read."""
    asks = ("--scan",)

    def answer(self, words):
        for path in files_of(words):
            if os.path.exists(path) and os.path.getsize(path) > 1 << 20:
                with open(path, "rb") as file:
                    lines = [line for line in file.read().split(b"\n") if len(line) <= 1 << 20]
                with open(path + ".short", "wb") as file:
                    file.write(b"\n".join(lines))
                words[words.index(path)] = path + ".short"
        done = self.ask(words)
        self.tell(done.stdout, done.returncode)


@fault("scan.untouched")
class scan_repairs(Questions):
    """A scan repairs first."""
    asks = ("--scan",)

    def answer(self, words):
        for path in files_of(words):
            if os.path.basename(path) == "torn.jsonl":
                os.chmod(path, 0o600)
                self.ask(["--repair", path])
        done = self.ask(words)
        self.tell(done.stdout, done.returncode)


QUARANTINE = "it looks for the quarantined tail"


@fault("repair.vectors", lock__stale=QUARANTINE, lock__future=QUARANTINE)
class tail_cut(Questions):
    """A torn tail is cut off."""
    asks = ("--repair",)

    def answer(self, words):
        done = self.ask(words)
        if b'"quarantined"' in done.stdout and "--check" not in words:
            for path in files_of(words):
                with open(path, "rb") as file:
                    lines = lines_of(file.read())
                with open(path, "wb") as file:
                    file.write(b"".join(lines[:-1]))
        self.tell(done.stdout, done.returncode)


@fault("repair.interior")
class repair_removes_damage(Questions):
    """Interior damage is removed."""
    asks = ("--repair",)

    def answer(self, words):
        done = self.ask(words)
        if done.returncode == 4:
            for path in files_of(words):
                os.truncate(path, 0)
        self.tell(done.stdout, done.returncode)


@fault("repair.idempotent", repair__vectors="a sound ledger grows, too")
class repair_adds_a_newline(Questions):
    """A sound ledger gets an empty line."""
    asks = ("--repair",)

    def answer(self, words):
        done = self.ask(words)
        if b'"none"' in done.stdout:
            for path in files_of(words):
                with open(path, "ab") as file:
                    file.write(b"\n")
        self.tell(done.stdout, done.returncode)


@fault("repair.check")
class check_repairs(Questions):
    """--check repairs."""
    asks = ("--repair",)

    def answer(self, words):
        done = self.ask(words)
        if "--check" in words:
            for path in files_of(words):
                os.chmod(path, 0o600)
            self.ask(["--repair", *files_of(words)])
        self.tell(done.stdout, done.returncode)


@fault("repair.missing")
class repair_makes_the_file(Questions):
    """A ledger that is not there is made."""
    asks = ("--repair",)

    def answer(self, words):
        for path in files_of(words):
            with open(path, "ab"):
                pass
        done = self.ask(words)
        self.tell(done.stdout, done.returncode)


@fault("lock.held")
class foreign_lock_removed(Questions):
    """Another writer's repair lock is removed."""
    asks = ("--repair",)

    def answer(self, words):
        for path in files_of(words):
            if os.path.exists(path + ".repair-lock"):
                os.unlink(path + ".repair-lock")
        done = self.ask(words)
        self.tell(done.stdout, done.returncode)


@fault("lock.stale lock.future")
class locks_never_stale(Questions):
    """Any repair lock refuses the repair."""
    asks = ("--repair",)

    def answer(self, words):
        if any(os.path.exists(path + ".repair-lock") for path in files_of(words)):
            self.tell(b"", 5)
        done = self.ask(words)
        self.tell(done.stdout, done.returncode)


class Keys(Questions):
    asks = ("--keys",)

    def change(self, answers):
        return answers

    def prepare(self, lines):
        return lines

    def answer(self, words):
        lines = [line.rstrip(b"\n") for line in lines_of(sys.stdin.buffer.read())]
        done = self.ask(words, b"".join(line + b"\n" for line in self.prepare(lines)))
        answers = [json.loads(line) for line in lines_of(done.stdout)]
        self.lines = lines
        self.tell(b"".join(json.dumps(one).encode() + b"\n" for one in self.change(answers)), done.returncode)


@fault("keys.two", keys__derivations="an unknown derivation becomes a known one", keys__recorded="an unknown derivation becomes a known one")
class keys_without_genesis(Keys):
    """Every key is of derivation 1."""
    def prepare(self, lines):
        return [re.sub(rb'"genesis":("([^"\\]|\\.)*"),', b"", re.sub(rb'"execKeyDerivation":\d+', b'"execKeyDerivation":1', line)) for line in lines]


@fault("keys.one")
class old_keys_renewed(Keys):
    """Keys of derivation 1 are hashed again."""
    def change(self, answers):
        return [{**one, "idempotencyKey": hashlib.sha256(one["idempotencyKey"].encode()).hexdigest()} if one.get("derivation") == 1 else one for one in answers]


@fault("keys.args-hash")
class args_hash_of_the_text(Keys):
    """argsHash is of the text of args."""
    def change(self, answers):
        return [{**one, "argsHash": hashlib.sha256(line[line.index(b'"args":') + 7:-1]).hexdigest()} if "argsHash" in one else one
                for one, line in zip(answers, self.lines)]


@fault("keys.numbers")
class overflow_is_a_request(Keys):
    """An overflow is reported as request."""
    def change(self, answers):
        return [error(one, "request") if code_of(one) == "number" else one for one in answers]


@fault("keys.derivations")
class always_recorded(Questions):
    """--recorded is taken for granted."""
    asks = ("--keys",)

    def answer(self, words):
        done = self.ask(["--keys", "--recorded"])
        self.tell(done.stdout, done.returncode)


@fault("keys.recorded")
class never_recorded(Questions):
    """--recorded is ignored."""
    asks = ("--keys",)

    def answer(self, words):
        done = self.ask(["--keys"])
        self.tell(done.stdout, done.returncode)


@fault("keys.bad-line")
class stops_at_a_bad_line(Keys):
    """Lines behind one that does not parse get no answer."""
    def prepare(self, lines):
        good = []
        for line in lines:
            good.append(line)
            try:
                json.loads(line)
            except ValueError:
                break
        return good


class Canonical(Questions):
    asks = ("--canonical",)


@fault("canonical.documents")
class escapes_in_capitals(Canonical):
    """Escapes are written with capital digits."""
    def answer(self, words):
        done = self.ask(words)
        self.tell(re.sub(rb"\\u[0-9a-f]{4}", lambda m: b"\\u" + m.group()[2:].upper(), done.stdout), done.returncode)


@fault("canonical.refusals", canonical__overflow="what is refused is null there, too")
class refusals_are_null(Canonical):
    """What is refused is null."""
    def answer(self, words):
        done = self.ask(words)
        self.tell(done.stdout if done.returncode == 0 else b"null", 0)


@fault("canonical.overflow")
class overflow_is_null(Canonical):
    """A number that overflows is null."""
    def answer(self, words):
        data = sys.stdin.buffer.read()
        done = self.ask(words, data)
        if re.fullmatch(rb"-?[0-9.]+e[0-9]+", data.strip()) and done.returncode != 0:
            self.tell(b"null", 0)
        self.tell(done.stdout, done.returncode)


@fault("canonical.numbers", canonical__documents="some documents hold such numbers")
class exponents_without_plus(Canonical):
    """1e+30 is written 1e30."""
    def answer(self, words):
        done = self.ask(words)
        self.tell(done.stdout.replace(b"e+", b"e"), done.returncode)


# ---- careful.py, with one method broken ----

class Careful(careful.Executor):
    name = "careful.py, broken"


@fault("crash.tree tree.setsid tree.double-fork tree.timeout tree.kill-all tree.kill-guard")
class no_namespace(Careful):
    """It claims to contain tools, and kills a process group."""
    capabilities = ["credentials", "contain"]


@fault("protocol.canonical")
class arguments_as_python_has_them(Careful):
    """The input is json.dumps of the request's arguments."""
    def input(self):
        return (json.dumps({"tool": self.tool, "args": self.request["args"], "idempotencyKey": self.key}) + "\n").encode()


@fault("protocol.null", protocol__values="its null is a result, too")
class null_is_protocol(Careful):
    """A result of null is refused."""
    def admit_output(self):
        value = super().admit_output()
        if value is None:
            raise Failure("protocol", "nothing")
        return value


@fault("protocol.trim")
class trims_as_json_does(Careful):
    """Only JSON's own white space is trimmed."""
    def trim(self, text):
        return text.strip(" \t\r\n")


@fault("protocol.utf8")
class output_repaired(Careful):
    """Invalid bytes of the output become U+FFFD."""
    def decode(self, raw):
        return raw.decode("utf-8", "replace")


@fault("protocol.values", descriptor__leak="its tool has nothing to name: an empty string")
class false_is_no_result(Careful):
    """What is false to Python is no result."""
    def admit_output(self):
        value = super().admit_output()
        return value or None


@fault("protocol.large")
class input_cut(Careful):
    """Only the first 64 KiB of the input are written."""
    def input(self):
        return super().input()[:65536]


@fault("protocol.deep")
class recursion_limited(Careful):
    """Arguments are walked with recursion."""
    def input(self):
        sys.setrecursionlimit(1000)
        try:
            json.dumps(self.request["args"])
        finally:
            sys.setrecursionlimit(1 << 20)
        return super().input()


@fault("pipe.both-ways")
class writes_first(Careful):
    """All the input is written before anything is read."""
    def before_reading(self, tool, data):
        end = time.monotonic() + 8
        os.set_blocking(tool.stdin.fileno(), False)
        while data and time.monotonic() < end and tool.poll() is None:
            try:
                data = data[os.write(tool.stdin.fileno(), data):]
            except BlockingIOError:
                time.sleep(0.005)
            except BrokenPipeError:
                data = b""
        if data and tool.poll() is None:
            raise Failure("timeout", "the input could not be written")
        return b""  # what is left is its end


@fault("pipe.unread")
class unread_input_is_failure(Careful):
    """A tool that does not read a large input is protocol."""
    def broken_pipe(self, data):
        if len(data) > 65536:
            raise Failure("protocol", "broken pipe")
        return b""

    def is_over(self, tool, pipes):
        over = super().is_over(tool, pipes)
        if over and not tool.stdin.closed and len(self.request["args"].get("fill", "")) > 65536:
            raise Failure("protocol", "unread")
        return over


@fault("env.exact")
class path_passed(Careful):
    """The tool gets PATH."""
    def allowed(self):
        return {"PATH": os.environ.get("PATH", ""), **super().allowed()}


@fault("env.identity")
class name_tidied(Careful):
    """RULVAR_TOOL holds only safe characters."""
    def own_variables(self):
        return {**super().own_variables(), "RULVAR_TOOL": re.sub("[^A-Za-z0-9_.-]", "_", self.tool)}


@fault("env.absent")
class absent_is_empty(Careful):
    """An allowed variable that is absent is set, and empty."""
    def allowed(self):
        return {name: os.environ.get(name, "") for name in self.config.get("allowEnv", [])}


@fault("env.own-wins credentials.own-wins")
class own_variables_first(Careful):
    """Allowed variables and credentials come after the call's own."""
    def environment(self):
        return {**self.own_variables(), **self.allowed(), **self.credentials()}


@fault("signal.mask")
class mask_inherited(Careful):
    """The signal mask is the caller's."""
    def reset_mask(self):
        pass


@fault("signal.dispositions")
class ignored_stays_ignored(Careful):
    """What the caller ignored is ignored."""
    def reset_signals(self):
        self.reset_mask()


@fault("privileges.none")
class privileges_kept(Careful):
    """no_new_privs is not set."""
    def drop_privileges(self):
        pass


@fault("descriptor.leak")
class descriptors_kept(Careful):
    """Descriptors are not closed."""
    close_fds = False


@fault("session.own")
class group_but_no_session(Careful):
    """The tool gets a process group, and the caller's session."""
    def new_session(self):
        os.setpgid(0, 0)


@fault("umask.fixed")
class umask_inherited(Careful):
    """The umask is the caller's."""
    def set_umask(self):
        pass


@fault("time.term-first")
class kills_at_once(Careful):
    """A deadline is SIGKILL."""
    def ask_to_stop(self, tool):
        self.kill(tool, signal.SIGKILL)


@fault("time.ignores-term", time__traffic="its tool ignores SIGTERM, too")
class asks_only(Careful):
    """SIGKILL comes eight seconds late."""
    def grace(self):
        return super().grace() + 8


@fault("time.stopped")
class stopped_is_over(Careful):
    """A stopped tool is taken for one that has ended."""
    def poll_tool(self, tool):
        try:
            with open("/proc/%d/stat" % tool.pid, encoding="latin-1") as file:
                if file.read().rpartition(")")[2].split()[0] == "T":
                    self.kill(tool, signal.SIGKILL)
        except OSError:
            pass
        return super().poll_tool(tool)


@fault("time.traffic")
class starved_timer(Careful):
    """As long as there is something to read the clock is not looked at."""
    def decide(self, tool, state):
        if self.config["maxOutputBytes"] >= 1 << 28 and time.monotonic() < state["deadline"] + 7:
            return
        super().decide(tool, state)


@fault("time.closed-pipes")
class waits_after_end_of_file(Careful):
    """After end of file on both pipes the tool is waited for without a clock."""
    def is_over(self, tool, pipes):
        if not pipes:
            try:
                tool.wait(8)
            except subprocess.TimeoutExpired:
                pass
        return super().is_over(tool, pipes)


@fault("time.patience")
class timeout_wraps(Careful):
    """Timeouts are kept in a field of eleven seconds."""
    def timeout(self):
        return self.config["timeoutMs"] % 11000 / 1000


@fault("time.reason", time__term_first="its tool ends in time, too")
class late_result_counts(Careful):
    """A tool that ends well within the grace has not timed out."""
    def admit(self, tool, reason):
        return super().admit(tool, None if reason == "timeout" and tool.returncode == 0 else reason)


@fault("tree.background-pipe")
class waits_for_end_of_file(Careful):
    """The dispatch is over when both pipes are."""
    def is_over(self, tool, pipes):
        return super().is_over(tool, pipes) and (not pipes or self.config["timeoutMs"] != 15000)


LEFT = "it leaves something running, too"


@fault("tree.background tree.many", tree__stopped=LEFT, tree__deaf=LEFT)
class rest_left_running(Careful):
    """What the tool left running is left."""
    def end_rest(self, tool):
        pass


@fault("tree.stopped tree.deaf")
class rest_asked_to_stop(Careful):
    """What the tool left running is sent SIGTERM."""
    def end_rest(self, tool):
        self.kill(tool, signal.SIGTERM)


@fault("cap.exact")
class cap_off_by_one(Careful):
    """Exactly the cap is too much."""
    def too_much(self):
        return len(self.stdout) >= self.cap()


@fault("cap.stderr", time__traffic="its tool writes to stderr up to its deadline")
class stderr_capped(Careful):
    """stderr counts against the cap."""
    noise = 0

    def keep_stderr(self):
        self.noise = max(self.noise, 1) + len(self.stderr)
        super().keep_stderr()

    def too_much(self):
        return super().too_much() or self.noise > 1 << 20


@fault("stderr.tail")
class stderr_head(Careful):
    """The message has the beginning of stderr."""
    def keep_stderr(self):
        del self.stderr[4096:]

    def tail(self):
        return bytes(self.stderr).decode("utf-8", "replace")[:500]


@fault("stderr.bytes")
class invalid_bytes_dropped(Careful):
    """Invalid bytes of stderr are left out."""
    def tail(self):
        return bytes(self.stderr).decode("utf-8", "ignore")[-500:]


@fault("exit.lies")
class status_124_is_timeout(Careful):
    """Status 124 is taken for a timeout."""
    def failed(self, status):
        if status == 124:
            raise Failure("timeout", "status 124")
        super().failed(status)


@fault("exit.signal", workdir__failures="one of its tools kills itself")
class death_is_timeout(Careful):
    """A death by a signal is taken for a timeout."""
    def failed(self, status):
        if status < 0:
            raise Failure("timeout", "signal")
        super().failed(status)


@fault("spawn.missing spawn.interpreter")
class missing_is_exit(Careful):
    """A file that is not there is exit."""
    def spawn_failed(self, error):
        raise Failure("exit" if isinstance(error, FileNotFoundError) else "spawn", str(error))


@fault("spawn.not-executable")
class forbidden_is_exit(Careful):
    """A file that may not be run is exit."""
    def spawn_failed(self, error):
        raise Failure("exit" if isinstance(error, PermissionError) else "spawn", str(error))


@fault("spawn.no-shell")
class shell_tried(Careful):
    """What is no program is run by the shell."""
    def find(self, command):
        path = super().find(command)
        try:
            with open(path, "rb") as file:
                if os.access(path, os.X_OK) and file.read(4) not in (b"\x7fELF",) and not os.path.isdir(path):
                    file.seek(0)
                    if file.read(2) != b"#!":
                        self.shell = path
                        return "/bin/sh"
        except OSError:
            pass
        return path

    def argv(self):
        argv = super().argv()
        if "/" in argv[0] and os.path.isfile(argv[0]) and self.find_shell(argv[0]):
            return ["sh", argv[0]]
        return argv

    def find_shell(self, path):
        with open(path, "rb") as file:
            head = file.read(4)
        return os.access(path, os.X_OK) and head != b"\x7fELF" and head[:2] != b"#!"

    def spawn(self, workdir, env):
        if self.argv()[0] == "sh":
            return subprocess.Popen(self.argv(), executable="/bin/sh", cwd=workdir, env=env, preexec_fn=self.in_child,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return super().spawn(workdir, env)


@fault("spawn.too-long")
class too_long_is_exit(Careful):
    """An argument list that is too long is exit."""
    def spawn_failed(self, error):
        raise Failure("exit" if error.errno == 7 else "spawn", str(error))


@fault("spawn.arguments")
class empty_arguments_dropped(Careful):
    """Empty arguments are left out."""
    def argv(self):
        return [word for word in super().argv() if word]


@fault("name.hostile", name__long="a name of 5000 characters is no file name")
class name_in_the_path(Careful):
    """The workdir's name holds the tool's as it is."""
    def workdir_name(self):
        return "rulvar-exec-" + self.tool + "-"


@fault("name.long")
class name_not_shortened(Careful):
    """The workdir's name holds all of the tool's safe characters."""
    def workdir_name(self):
        return "rulvar-exec-" + re.sub("[^A-Za-z0-9_-]", "_", self.tool) + "-"


@fault("name.nul")
class name_cut_at_nul(Careful):
    """A name ends at its NUL."""
    def check(self):
        self.tool = self.tool.partition("\0")[0]


@fault("workdir.mode")
class workdir_for_all(Careful):
    """The workdir's mode is 0755."""
    def workdir_mode(self):
        return 0o755


@fault("workdir.name")
class workdir_anonymous(Careful):
    """The workdir is called tmp-XXXXXX."""
    def workdir_name(self):
        return "tmp-"


ELSEWHERE = "it looks at the workdir, and refuses to work elsewhere"


@fault("workdir.cwd", e10=ELSEWHERE, workdir__mode=ELSEWHERE, workdir__name=ELSEWHERE, workdir__failures=ELSEWHERE, workdir__forbidden=ELSEWHERE,
       workdir__deep=ELSEWHERE, workdir__links=ELSEWHERE, workdir__swapped=ELSEWHERE, name__hostile=ELSEWHERE)
class runs_in_root(Careful):
    """The tool runs in the root directory."""
    def spawn(self, workdir, env):
        return super().spawn("/", env)


@fault("workdir.failures")
class workdir_kept_on_failure(Careful):
    """After a failure the workdir stays."""
    def clear_up(self, workdir, error):
        if error is None:
            self.remove(workdir)


@fault("workdir.forbidden")
class removal_gives_up(Careful):
    """A directory without permissions ends the removal."""
    def open_up(self, path, dir_fd=None):
        if os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_mode & 0o700 != 0o700:
            raise FileNotFoundError
        return True

    def clear_up(self, workdir, error):
        try:
            self.remove(workdir)
        except FileNotFoundError:
            pass


@fault("workdir.deep")
class removal_by_whole_paths(Careful):
    """Files are removed by their whole paths."""
    def remove(self, path):
        if os.path.islink(path):
            os.unlink(path)
            return
        todo = [path]
        while todo:
            top = todo[-1]
            try:
                os.chmod(top, 0o700)
                entries = [os.path.join(top, entry) for entry in os.listdir(top)]
                below = [entry for entry in entries if os.path.isdir(entry) and not os.path.islink(entry)]
                for entry in entries:
                    if entry not in below:
                        os.unlink(entry)
                if below:
                    todo.extend(below)
                    continue
                os.rmdir(top)
            except OSError:
                return
            todo.pop()


@fault("workdir.links")
class removal_follows_links(Careful):
    """What a link in the workdir points at is removed with it (never beyond this trial's directory)."""
    def remove(self, path):
        trial = os.path.dirname(self.config["workdirBase"]) + "/"
        if not os.path.islink(path):
            for entry in os.listdir(path):
                link = os.path.join(path, entry)
                target = os.path.realpath(link)
                if os.path.islink(link) and target.startswith(trial) and os.path.isdir(target):
                    shutil.rmtree(target)
        super().remove(path)


@fault("workdir.swapped")
class removal_follows_the_workdir(Careful):
    """The workdir's name is resolved before it is removed (never beyond this trial's directory)."""
    def remove(self, path):
        target = os.path.realpath(path)
        if os.path.islink(path) and target.startswith(os.path.dirname(self.config["workdirBase"]) + "/"):
            shutil.rmtree(target)
            os.unlink(path)
        else:
            super().remove(path)


@fault("credentials.fresh")
class credentials_kept(Careful):
    """The first credentials are used again."""
    def mint(self):
        store = os.path.join(os.path.dirname(self.config["workdirBase"]), "kept")
        if not os.path.exists(store):
            with open(store, "wb") as file:
                file.write(super().mint())
        with open(store, "rb") as file:
            return file.read()


@fault("credentials.request")
class minted_blindly(Careful):
    """The credentials program reads nothing."""
    def mint_input(self):
        return b""


@fault("credentials.failure")
class failed_minting_ignored(Careful):
    """The credentials program's status is not looked at, nor that it said nothing."""
    def check_mint(self, done):
        pass


@fault("credentials.shape")
class credentials_coerced(Careful):
    """Whatever is in the object is made a string."""
    def admit_credentials(self, value):
        return {name: str(text) for name, text in value.items()} if isinstance(value, dict) and not {"A=B"} & set(value) and \
            "\0" not in "".join(map(str, value.values())) else super().admit_credentials(value)


@fault("credentials.nowhere")
class environment_in_the_reply(Careful):
    """The reply holds the tool's environment."""
    seen = None

    def environment(self):
        self.seen = super().environment()
        return self.seen

    def reply(self):
        return {**super().reply(), "environment": self.seen}


# ---- rv-confine, and what it is asked ----

class Confine(Questions):
    """A run of rv-confine: its words before, its result behind."""
    asks = ("--confine",)
    runs = True  # only what is one run; else every form

    def answer(self, words):
        self.words = words[1:]
        if self.runs and "--program" not in words:
            super(Questions, self).question(words)
        words = [words[0], *self.asked(self.words)]
        done = subprocess.run(self.adapter() + words, stdin=sys.stdin if self.runs or "--stream" in words else subprocess.DEVNULL,
                              stdout=subprocess.PIPE, check=False)
        self.status = done.returncode
        lines = [json.loads(line) for line in lines_of(done.stdout)]
        lines = self.told(lines)
        self.tell(b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines), self.status)

    def asked(self, words):
        return words

    def told(self, lines):
        if lines:
            self.result(lines[0])
        return lines

    def result(self, result):
        """Changed in place."""

    def given(self, option):
        return self.words[self.words.index(option) + 1] if option in self.words else None

    def hook(self):
        """The fault that the check injects, as text."""
        path = os.path.join(os.path.dirname(self.given("--root") or "/"), "hook")
        if "--on-event" not in self.words:
            return ""
        with open(path) as file:
            return file.read()

    def without(self, words, option):
        at = words.index(option)
        return words[:at] + words[at + 2:]

    def instead(self, words, option, value):
        at = words.index(option)
        return words[:at + 1] + [value] + words[at + 2:]

    def ran(self, result, out=b"ran\n"):
        """As if the program had run to its end."""
        result.clear()
        result.update(status="observed", attributable=True, problems=[], identities={}, namespace={"state": "removed", "durable": True},
                      process={"admission": "admitted", "exit": {"code": 0, "signal": None}, "stdoutBase64": base64.b64encode(out).decode(),
                               "stopped": None, "killSent": False, "pipesClosed": True})
        self.status = 0

    def said(self, result, text):
        """The program had said this, too."""
        process = result["process"]
        process["stdoutBase64"] = base64.b64encode(text + base64.b64decode(process["stdoutBase64"])).decode()

    def script(self):
        with open(os.path.join(self.given("--program"), "main.sh")) as file:
            return file.read()


@fault("confine.run")
class confine_loses_stderr(Confine):
    """What the program said on its standard error is gone, where it exits with 0 and was not stopped."""
    def result(self, result):
        if "echo problem" in self.script():
            result["process"]["stderrBase64"] = ""


@fault("confine.profile")
class confine_one_profile(Confine):
    """The default profile, whatever is asked for."""
    def asked(self, words):
        return self.without(words, "--profile") if "--profile" in words else words


@fault("confine.failure")
class confine_judges(Confine):
    """A program that fails is not attributable."""
    def result(self, result):
        if result.get("process", {}).get("exit", {}).get("code") == 3:
            result["attributable"] = False
            result["problems"] = ["the program failed"]
            self.status = 1


@fault("confine.authority")
class confine_believes_the_program(Confine):
    """Control text in the output, and exit 125, are a refusal."""
    def result(self, result):
        process = result.get("process", {})
        if process.get("admission") == "admitted" and process["exit"]["code"] == 125:
            process["admission"] = "refused"


@fault("confine.limits")
class confine_echoes_limits(Confine):
    """The limits of the request are reported and not set."""
    def asked(self, words):
        return self.without(words, "--max-descriptors") if "--max-descriptors" in words else words

    def result(self, result):
        if "--max-descriptors" in self.words:
            limit = int(self.given("--max-descriptors"))
            result["process"]["limits"]["descriptors"] = {"soft": limit, "hard": limit}


@fault("confine.timeout")
class confine_hides_the_deadline(Confine):
    """A deadline looks like a death by itself."""
    def result(self, result):
        if result.get("process", {}).get("stopped") == "timeout":
            result["process"]["stopped"] = None


@fault("confine.output")
class confine_off_by_one(Confine):
    """One byte less than the bound is kept."""
    def asked(self, words):
        if "--max-output" in words and self.given("--max-output") == "10":
            return self.instead(words, "--max-output", "9")
        return words


@fault("confine.flood")
class confine_keeps_the_flood(Confine):
    """Twice the bound is kept."""
    def asked(self, words):
        if "--max-output" in words and self.given("--max-output") == "1000":
            return self.instead(words, "--max-output", "2000")
        return words


@fault("confine.memory")
class confine_without_memory_limit(Confine):
    """The bound of memory is passed over; the deadline comes sooner."""
    def asked(self, words):
        return self.instead(self.without(words, "--max-memory"), "--timeout", "2s") if "--max-memory" in words else words


@fault("confine.isolation")
class confine_leaks_the_environment(Confine):
    """A variable of the caller's is seen."""
    def result(self, result):
        if "SHELL-none" in self.script():
            out = base64.b64decode(result["process"]["stdoutBase64"])
            result["process"]["stdoutBase64"] = base64.b64encode(out.replace(b" none none ", b" /bin/bash none ")).decode()


@fault("confine.descriptors")
class confine_leaks_a_descriptor(Confine):
    """Descriptor 7 is open, too."""
    def result(self, result):
        if 'open $n' in self.script():
            out = base64.b64decode(result["process"]["stdoutBase64"])
            result["process"]["stdoutBase64"] = base64.b64encode(out + b"open 7\n").decode()


@fault("confine.writes")
class confine_writable_tmp(Confine):
    """/tmp takes a write."""
    def result(self, result):
        if "wrote" in self.script():
            self.said(result, b"wrote /tmp/x\n")


@fault("confine.reads")
class confine_readable_host(Confine):
    """A file of the host can be read."""
    def result(self, result):
        if "/etc/passwd" in self.script():
            self.said(result, b"read /etc/passwd\n")


@fault("confine.signals")
class confine_signals(Confine):
    """Another process can be asked for by a signal."""
    def result(self, result):
        if "signalled" in self.script():
            self.said(result, b"signalled\n")


@fault("confine.fork")
class confine_forks(Confine):
    """A child runs."""
    def result(self, result):
        if "forked" in self.script():
            self.said(result, b"forked\n")


@fault("confine.exec")
class confine_execs(Confine):
    """Another program runs."""
    def result(self, result):
        if "echo again" in self.script():
            self.said(result, b"again\n")


@fault("confine.root")
class confine_any_root(Confine):
    """A root that others can enter is made private, and taken."""
    def asked(self, words):
        os.chmod(self.given("--root"), 0o700)
        return words


@fault("confine.retained")
class confine_reclaims(Confine):
    """What is foreign in the root is taken away."""
    def asked(self, words):
        foreign = os.path.join(self.given("--root"), "foreign")
        if os.path.exists(foreign):
            os.unlink(foreign)
        return words


@fault("confine.runtime")
class confine_runs_scripts(Confine):
    """A script as a runtime is run by its interpreter."""
    def asked(self, words):
        return self.instead(words, "--runtime", "/bin/sh") if open(self.given("--runtime"), "rb").read(2) == b"#!" else words


@fault("confine.receipt")
class confine_without_receipt(Confine):
    """A receipt is read and not heeded."""
    def asked(self, words):
        return self.without(words, "--receipt") if "--receipt" in words else words


@fault("confine.claim")
class confine_shares_a_slot(Confine):
    """A slot that is taken is used all the same."""
    def result(self, result):
        if "slot is taken" in result.get("message", ""):
            self.ran(result)


@fault("confine.integrity")
class confine_runs_what_is_there(Confine):
    """A slot with other content is run."""
    def result(self, result):
        if result.get("reason") == "snapshot-mismatch" and "echo bad" in self.hook():
            self.ran(result, b"bad\n")


@fault("confine.links")
class confine_counts_no_links(Confine):
    """A second link is not looked for."""
    def result(self, result):
        if result.get("reason") == "snapshot-mismatch" and "ln $namespace/program" in self.hook():
            self.ran(result)


@fault("confine.aborted")
class confine_deaf_before_the_launch(Confine):
    """A cancellation before the launch is a failed set-up."""
    def result(self, result):
        if result.get("reason") == "aborted":
            result["reason"] = "setup-failed"


@fault("confine.gate")
class confine_lets_go_blindly(Confine):
    """The go byte is sent whether it was cancelled or not."""
    def result(self, result):
        if result.get("process", {}).get("admission") == "absent":
            self.ran(result)


@fault("confine.cancelled")
class confine_cancel_is_a_crash(Confine):
    """A cancelled program looks like one that crashed."""
    def result(self, result):
        process = result.get("process", {})
        if process.get("stopped") == "cancelled" and process.get("admission") == "admitted":
            process["stopped"] = None


@fault("confine.swapped")
class confine_executes_the_path(Confine):
    """What is at the runtime's path is executed."""
    def result(self, result):
        if result.get("process", {}).get("admission") == "refused":
            self.ran(result)


@fault("confine.runtime-changed")
class confine_looks_at_the_runtime_once(Confine):
    """The runtime is not verified again."""
    def result(self, result):
        if "runtime changed" in "".join(result.get("problems", [])) and result["process"]["admission"] == "admitted" and "--stream" not in self.words:
            result.update(attributable=True, problems=[])
            self.status = 0


@fault("confine.slot-changed")
class confine_looks_at_the_slot_once(Confine):
    """The slot is not verified again."""
    def result(self, result):
        if "namespace changed" in "".join(result.get("problems", [])) and "touch" in self.hook():
            result.update(attributable=True, problems=[])
            self.status = 0


@fault("confine.cleanup")
class confine_removes_recursively(Confine):
    """A slot is removed with all that is in it, and a file beside the root with it."""
    def result(self, result):
        if "home/link" in self.hook():
            target = os.path.join(os.path.dirname(self.given("--root")), "file")
            if os.path.exists(target):
                os.unlink(target)


@fault("confine.killed")
class confine_claims_the_kill(Confine):
    """A kill is claimed that was not sent."""
    def result(self, result):
        process = result.get("process", {})
        if process.get("stopped") is None and (process.get("exit") or {}).get("signal") == "SIGKILL":
            process["killSent"] = True


@fault("confine.alone")
class confine_outlived(Confine):
    """Something of the run goes on when rv-confine is killed."""
    def asked(self, words):
        if "kill -KILL $PPID" in self.hook():
            subprocess.Popen(["/bin/sh", "-c", "sleep 15; :", words[-1]], start_new_session=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return words


@fault("confine.unresolved")
class confine_resolves_all(Confine):
    """Pipes that stay open are passed over."""
    def result(self, result):
        if result.get("status") == "unresolved":
            result.update(status="observed", attributable=True, problems=[])
            self.status = 0


@fault("confine.unsupported")
class confine_falls_back(Confine):
    """Where the host cannot, the program runs without a boundary."""
    def result(self, result):
        if result.get("reason") == "unsupported-host":
            self.ran(result)


@fault("confine.probe")
class confine_probe_is_sad(Confine):
    """The probe says that the host cannot."""
    runs = False

    def told(self, lines):
        if "--probe" in self.words:
            self.status = 5
        return lines


@fault("confine.invalid")
class confine_begins_before_it_looks(Confine):
    """A slot is made before the request is looked at."""
    def asked(self, words):
        if words[-1] == "nowhere.sh" or "nowhere.sh" in words:
            os.mkdir(os.path.join(self.given("--root"), "slot-0"), 0o700)
        return words


@fault("confine.pins")
class confine_unpinned(Confine):
    """Pins are not taken."""
    def result(self, result):
        if "--pins" in self.words and result.get("status") == "observed":
            result["identities"]["pinned"] = False


@fault("confine.runtime-pin")
class confine_any_runtime(Confine):
    """The runtime's pin is not compared."""
    def result(self, result):
        if "--pins" in self.words and result.get("reason") == "runtime-mismatch":
            self.ran(result)


@fault("confine.profile-pin")
class confine_any_profile(Confine):
    """The profile's pin is not compared."""
    def result(self, result):
        if result.get("reason") == "profile-mismatch" and "--pins" in self.words:
            self.ran(result)


@fault("confine.snapshot-pin")
class confine_pins_late(Confine):
    """A digest that does not match its own files is a mismatch, and no invalid request."""
    def told(self, lines):
        if "--pins" in self.words and self.status == 2:
            self.status = 3
            return [{"status": "not-started", "reason": "snapshot-mismatch", "message": "", "namespace": None}]
        return super().told(lines)


@fault("confine.snapshot")
class confine_counts_modes(Confine):
    """A mode is a part of a snapshot's digest."""
    runs = False

    def told(self, lines):
        path = os.path.join(self.given("--snapshot") or "/", "data")
        if os.path.exists(path) and os.stat(path).st_mode & 0o777 == 0o700:
            lines[0]["digest"] = "sha256:" + "1" * 64
        return lines


@fault("confine.identities")
class confine_dates_identities(Confine):
    """The instantiated profile has the time in it."""
    def result(self, result):
        if self.script() == "echo ran\n" and result.get("status") == "observed" and "--pins" not in self.words and not self.hook() and "--profile" not in self.words:
            result["identities"]["profile"]["instantiated"] = "sha256:" + hashlib.sha256(str(time.monotonic_ns()).encode()).hexdigest()


@fault("confine.stream")
class confine_stops_at_a_bad_line(Confine):
    """A stream ends at its first bad line."""
    runs = False

    def told(self, lines):
        return lines[:2] if "--stream" in self.words else lines


@fault("confine.identity")
class confine_trusts_a_stream(Confine):
    """By identity the runtime is not looked at behind a run."""
    runs = False

    def told(self, lines):
        if "identity" in self.words and lines:
            lines[0].update(attributable=True, problems=[])
        return lines
# ---- the sandbox and containers ----

class Enclosed(Wrapper):
    """Changes calls in the sandbox `kernel`, and no other."""
    def enclose(self, config):
        pass

    def before(self, config, request):
        if config.get("sandbox") == "kernel":
            self.enclose(config)


@fault("kernel.files kernel.escapes kernel.writes kernel.sys kernel.devices kernel.processes kernel.environ kernel.signals kernel.inherited "
       "kernel.families kernel.network kernel.sockets kernel.mounts kernel.namespaces kernel.keyrings kernel.calls kernel.terminal "
       "kernel.ledger kernel.work kernel.said kernel.refused")
class sandbox_absent(Enclosed):
    """The tool runs without the sandbox, and finds the caller's descriptors and environment."""
    def enclose(self, config):
        del config["sandbox"]
        config.pop("readable", None)
        config["allowEnv"] = [*config.get("allowEnv", []), "RV_PROBE_SECRET", "RV_CONFORM_SECRET"]
        if config.get("command") == "/bin/sh":
            config["args"] = ["-c", 'exec 7</dev/null; exec "$@"', "sh", "/bin/sh", *config["args"]]


@fault("kernel.files")
class sandbox_shows_var(Enclosed):
    """/var is shown, too."""
    def enclose(self, config):
        config["readable"] = [*config.get("readable", []), "/var"]


@fault("kernel.ledger")
class sandbox_shows_the_ledger(Enclosed):
    """The ledger's directory is shown, too."""
    def enclose(self, config):
        if "ledger" in config:
            config["readable"] = [*config.get("readable", []), os.path.dirname(config["ledger"])]


@fault("kernel.work")
class sandbox_without_workdir(Enclosed):
    """The tool starts in /tmp."""
    def enclose(self, config):
        if config.get("command") == "/bin/sh":
            config["args"] = ["-c", 'cd /tmp; exec "$@"', "sh", "/bin/sh", *config["args"]]


@fault("kernel.said")
class sandbox_unsaid(Enclosed):
    """The reply names no sandbox."""
    def after(self, reply):
        return {**reply, "sandbox": "none"} if self.config.get("sandbox") == "kernel" else reply


@fault("kernel.refused")
class sandbox_drops_what_is_absent(Enclosed):
    """A path that is not there is left out."""
    def enclose(self, config):
        config["readable"] = [path for path in config.get("readable", []) if os.path.exists(path)]


class Contained(Wrapper):
    """Changes the engine's words of calls in a container, and no other call: edit() gets and returns an argv."""
    def before(self, config, request):
        if "container" in config and type(self).edit is not Contained.edit:
            own = [sys.executable, "-I", "-S", os.path.abspath(sys.argv[0]), "--as-engine", sys.argv[1]]
            config["container"]["engine"] = " ".join("'%s'" % word for word in own) + " " + config["container"].get("engine", "docker")

    @staticmethod
    def edit(words):
        return words


def without(words, flag, values=1):
    at = words.index(flag) if flag in words else len(words)
    return words[:at] + words[at + 1 + values:]


@fault("container.network")
class container_on_the_host_network(Contained):
    """The container has the host's network."""
    @staticmethod
    def edit(words):
        return ["host" if n > 0 and words[n - 1] == "--network" else word for n, word in enumerate(words)]


@fault("container.root")
class container_root_writable(Contained):
    """The root is writable."""
    @staticmethod
    def edit(words):
        return without(words, "--read-only", 0)


@fault("container.work")
class container_starts_elsewhere(Contained):
    """The tool starts in /tmp."""
    @staticmethod
    def edit(words):
        return ["/tmp" if n > 0 and words[n - 1] == "--workdir" else word for n, word in enumerate(words)]


@fault("container.capabilities")
class container_keeps_capabilities(Contained):
    """The engine's usual capabilities are kept."""
    @staticmethod
    def edit(words):
        return without(words, "--cap-drop")


@fault("container.memory")
class container_memory_unbounded(Contained):
    """Memory is not limited."""
    @staticmethod
    def edit(words):
        return without(words, "--memory")


@fault("container.pids")
class container_processes_unbounded(Contained):
    """The number of processes is the engine's own, of thousands."""
    @staticmethod
    def edit(words):
        return without(words, "--pids-limit")


@fault("container.credentials")
class container_values_in_argv(Contained):
    """Variables are given with their values."""
    @staticmethod
    def edit(words):
        return [word + "=" + os.environ[word] if n > 0 and words[n - 1] == "-e" and word in os.environ else word for n, word in enumerate(words)]


@fault("container.deaf container.killed")
class container_outlives(Contained):
    """Something of the container runs on when it is said to be gone."""
    def before(self, config, request):
        if "container" in config and config.get("command") == "/bin/sh":
            subprocess.Popen(["/bin/sleep", "3600." + config["args"][-2]], start_new_session=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@fault("container.removed")
class container_not_removed(Contained):
    """The container is said to be removed, and is only called otherwise (rv-mutant-NAME: t/6070 removes it)."""
    @staticmethod
    def edit(words):
        if "rm" not in words:
            return words
        subprocess.run([*words[:words.index("rm")], "rename", words[-1], "rv-mutant-" + words[-1]], check=False)
        return ["/bin/echo", words[-1]]


@fault("container.secret")
class container_sees_the_caller(Contained):
    """A variable of the caller's is passed on unasked."""
    def before(self, config, request):
        if "container" in config:
            config["allowEnv"] = [*config.get("allowEnv", []), "RV_CONFORM_SECRET"]


@fault("container.status")
class container_statuses_guessed(Contained):
    """125, 126 and 127 are the engine's."""
    def after(self, reply):
        guessed = "container" in self.config and reply.get("exitCode") in (125, 126, 127)
        return error({**reply, "exitCode": None}, "spawn") if guessed else reply


@fault("container.missing")
class container_image_missed_late(Contained):
    """A missing image is found out by running it."""
    def after(self, reply):
        return error(reply, "spawn") if "container" in self.config and code_of(reply) == "config" else reply


@fault("container.rows")
class container_called_subprocess(Contained):
    """The rows name the executor subprocess."""
    def rows(self, rows):
        return [{**row, "executor": "subprocess"} if "container" in self.config else row for row in rows]
# ---- streams, each of whose checks has ordinary tools in it, too ----

ORDINARY = {"hostile.*": "the defect meets ordinary tools, too, and those are in every one of these checks"}
OTHER_ENDS = {"hostile.*": "it is about one end of a tool, and this one is another's, too"}


def stream(targets, alike=None):
    return fault(" ".join("hostile." + target for target in targets.split()), alike or ORDINARY)


class Streamed(Careful):
    """Careful, in a stream; it says that it contains tools, so that it is held to that."""
    capabilities = ["credentials", "stream", "contain"]
    changes = ("--stream",)

    def reply(self):
        return {**super().reply(), "survivors": 0, "containment": "pid-namespace"}

    def spawn(self, workdir, env):
        """Without Python between fork and exec: the half of what a call costs."""
        self.drop_privileges()
        argv = self.argv()
        try:
            return subprocess.Popen(argv, executable=self.find(argv[0]), cwd=workdir, env=env, start_new_session=True, umask=0o022,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError as error:
            self.spawn_failed(error)


@stream("background setsid daemon stopped deaf nohup-storm pipeline busy-child priority forks-at-term holds-stdout holds-stdin clone-quiet clone-sibling "
        "new-namespaces subreaper pdeathsig traced-child timers descriptors socket-holds "
        "trace-guard kill-all kill-fast storm fork-chain kill-shell stops-the-guard")
class leaves_the_tree(Streamed):
    """What a tool left running is left running."""
    def end_rest(self, tool):
        pass


@stream("sibling-lies")
class waits_for_any_child(Streamed):
    """The first process to end is taken for the tool."""
    def poll_tool(self, tool):
        if tool.returncode is None:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                tool.returncode = os.waitstatus_to_exitcode(status)
        return tool.returncode is not None


@stream("never-reads closes-stdin", OTHER_ENDS)
class input_must_be_read(Streamed):
    """A tool is over when it has read its input, too."""
    def is_over(self, tool, pipes):
        return super().is_over(tool, pipes) and (tool.stdin.closed or self.is_read(tool))

    def write(self, tool, data):
        if data:
            os.write(tool.stdin.fileno(), data)
        if self.is_read(tool):
            tool.stdin.close()
            return None
        return b""

    def is_read(self, tool):
        return struct.unpack("i", fcntl.ioctl(tool.stdin.fileno(), termios.FIONREAD, b"\0" * 4))[0] == 0


@stream("closes-stdout-late closed-and-quiet", OTHER_ENDS)
class end_of_file_is_the_end(Streamed):
    """A tool that has closed its output is killed."""
    def is_over(self, tool, pipes):
        if tool.stdout.fileno() not in pipes and not super().is_over(tool, pipes):
            self.kill(tool, signal.SIGKILL)
        return super().is_over(tool, pipes)


@stream("byte-by-byte", OTHER_ENDS)
class one_read(Streamed):
    """What the first read of standard output gave is all."""
    def take(self, tool, fd):
        return super().take(tool, fd) if fd != tool.stdout.fileno() or not self.stdout else len(os.read(fd, 65536)) > 0


@stream("stderr-flood writes-before-reading shrinks-pipe", OTHER_ENDS)
class reads_at_the_end(Streamed):
    """The output is read when the tool is over."""
    def read(self, tool, fd, pipes):
        if tool.returncode is not None:
            super().read(tool, fd, pipes)
        else:
            time.sleep(0.005)


@stream("stderr-only exactly-the-cap", OTHER_ENDS)
class cap_of_both(Streamed):
    """The cap is less than was said, and nothing at all is no result."""
    def too_much(self):
        return len(self.stdout) >= self.cap()

    def parse_output(self, text):
        if not text:
            raise ValueError("nothing")
        return super().parse_output(text)


@stream("terminal", OTHER_ENDS)
class terminal_given(Streamed):
    """The hostile tool has a terminal."""
    def spawn(self, workdir, env):
        self.close_fds = self.request["id"] != "hostile"
        return Careful.spawn(self, workdir, env)

    def new_session(self):
        super().new_session()
        if not self.close_fds:
            master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
            os.set_inheritable(master, True)
            fcntl.ioctl(master, 0x40045431, struct.pack("i", 0))  # TIOCSPTLCK
            number, = struct.unpack("i", fcntl.ioctl(master, 0x80045430, b"\0" * 4))  # TIOCGPTN
            os.open("/dev/pts/%d" % number, os.O_RDWR)


@stream("nonblocking")
class poisoned(Streamed):
    """The calls behind a hostile one get its standard input: nothing."""
    def input(self):
        return b"" if self.request["id"].startswith("after") else super().input()


@stream("deep-tree mode-0 links-loop many-files odd-names special-files renames-cwd fills-again mounts umask")
class workdirs_stay(Streamed):
    """No workdir is removed."""
    def clear_up(self, workdir, error):
        pass


@stream("links-out", OTHER_ENDS)
class links_are_followed(Streamed):
    """What a link in the workdir points at is emptied (never beyond this trial's directory)."""
    def remove(self, path):
        trial = os.path.dirname(self.config["workdirBase"]) + "/"
        for entry in os.listdir(path):
            target = os.path.realpath(os.path.join(path, entry))
            if os.path.islink(os.path.join(path, entry)) and target.startswith(trial) and os.path.isdir(target):
                shutil.rmtree(target)
        super().remove(path)


@stream("deletes-cwd swaps-cwd cwd-is-a-file", OTHER_ENDS)
class removal_must_succeed(Streamed):
    """A workdir that is not as it was made makes the call a failure."""
    def clear_up(self, workdir, error):
        if os.path.islink(workdir) or not os.path.isdir(workdir):
            raise Failure("config", "no workdir")
        super().clear_up(workdir, error)


@stream("environment", OTHER_ENDS)
class environment_passed_on(Streamed):
    """The tool has the executor's environment."""
    def environment(self):
        return {**os.environ, **super().environment(), **{"RV_%d" % n: "" for n in range(8)}}


@stream("exit-120 exit-124 exit-125 exit-126 exit-127 exit-137 exit-143", OTHER_ENDS)
class status_means_something(Streamed):
    """Statuses are read as if they were the executor's own, or a shell's."""
    def failed(self, status):
        code = {120: "protocol", 124: "timeout", 125: "config", 126: "spawn", 127: "spawn", 137: "output-cap", 143: "aborted"}
        raise Failure(code.get(status, "exit"), "status %d" % status)


@stream("exit-1 exit-2 exit-99 exit-255 memory", OTHER_ENDS)
class status_ignored(Streamed):
    """Whatever its status, what the tool said is its result."""
    def failed(self, status):
        if status < 0:
            super().failed(status)


@stream("kills-itself terminates-itself aborts", OTHER_ENDS)
class signals_are_timeouts(Streamed):
    """A tool that was ended by a signal was too slow."""
    def failed(self, status):
        raise Failure("timeout" if status < 0 else "exit", "ended")


@stream("two-values trailing-comma not-utf-8 overlong surrogate-bytes nul half-a-value nan control-bytes html nested", OTHER_ENDS)
class any_output_will_do(Streamed):
    """What is no JSON is a string."""
    def admit_output(self):
        try:
            return super().admit_output()
        except Failure:
            return bytes(self.stdout).decode("utf-8", "replace")[:100]


class Renamed(Streamed):
    """An error under another name."""
    names = {}

    def reply(self):
        reply = super().reply()
        code = code_of(reply)
        return error(reply, self.names[code]) if code in self.names else reply


@stream("cap-and-one flood flood-of-children", OTHER_ENDS)
class floods_are_exits(Renamed):
    """output-cap is reported as exit."""
    names = {"output-cap": "exit"}


@stream("no-such a-directory no-interpreter no-magic not-executable too-long", OTHER_ENDS)
class not_started_is_exit(Renamed):
    """spawn is reported as exit."""
    names = {"spawn": "exit"}


@stream("stops-itself whole-pipe traffic one-byte-at-a-time opens-a-fifo reads-itself vfork-parent trace-me", OTHER_ENDS)
class timeouts_are_exits(Renamed):
    """timeout is reported as exit."""
    names = {"timeout": "exit"}


@stream("answers-and-stays answers-term", OTHER_ENDS)
class late_results_admitted(Streamed):
    """A tool that was ended at its deadline has its result all the same."""
    def admit(self, tool, reason):
        return self.admit_output() if reason == "timeout" and self.stdout else super().admit(tool, reason)


@stream("sleeps ignores-term", OTHER_ENDS)
class answers_late(Streamed):
    """Every timeout comes nine seconds late."""
    def timeout(self):
        return super().timeout() + 9


class Relay(Questions):
    """rv-exec's stream, its calls and replies changed."""
    asks = ("--stream",)
    config = None

    def answer(self, words):
        child = subprocess.Popen(self.adapter() + words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        sender = threading.Thread(target=self.pass_on, args=(child,))
        sender.start()
        for line in child.stdout:
            for reply in self.replies(json.loads(line)):
                sys.stdout.write(json.dumps(reply) + "\n")
                sys.stdout.flush()
        sender.join()
        child.wait()
        self.at_the_end()

    def pass_on(self, child):
        for line in sys.stdin.buffer:
            line = json.loads(line)
            if "config" in line:
                self.config = line["config"]
                self.configure(self.config)
            else:
                self.call(line)
            child.stdin.write(json.dumps(line).encode() + b"\n")
            child.stdin.flush()
        child.stdin.close()

    def configure(self, config):
        pass

    def call(self, request):
        pass

    def replies(self, reply):
        return [reply]

    def at_the_end(self):
        pass


@stream("zombies")
class not_alone(Relay):
    """The calls behind the hostile one have a process beside them."""
    def call(self, request):
        if request["id"].startswith("after"):
            spec = request["spec"]
            spec["args"] = ["-c", 'sleep 3 & exec "$@"', "sh", spec["command"], *spec["args"]]
            spec["command"] = "/bin/sh"


@stream("containment")
class containment_unsaid(Relay):
    """The replies speak of a weaker containment than there is."""
    def replies(self, reply):
        return [{**reply, "containment": "subreaper"}]


@stream("background")
class a_reply_dropped(Relay):
    """The call behind the hostile one is not answered."""
    def replies(self, reply):
        return [] if reply["id"] == "after-1" else [reply]


@stream("background")
class answered_twice(Relay):
    """The hostile call is answered twice."""
    def replies(self, reply):
        return [reply] * (2 if reply["id"] == "hostile" else 1)


@stream("background")
class survivors_counted(Relay):
    """A survivor is counted where there is none."""
    def replies(self, reply):
        return [{**reply, "survivors": 1}]


@stream("together", OTHER_ENDS)
class slots_wear_out(Relay):
    """What comes after fifty calls is not begun."""
    count = 0

    def replies(self, reply):
        self.count += 1
        return [reply if self.count <= 50 else error(reply, "config")]


@stream("kill-all")
class neighbours_killed(Relay):
    """The end of the hostile tool is the end of the one beside it."""
    def replies(self, reply):
        return [error(reply, "exit") if reply["id"].startswith("beside") else reply]


@stream("background")
class an_orphan_left(Relay):
    """One outcome row is taken away at the end."""
    def at_the_end(self):
        with open(self.config["ledger"], "r+b") as file:
            lines = lines_of(file.read())
            file.seek(0)
            file.truncate()
            file.write(b"".join(lines[:-1]))


@fault("approvals.again", {"hostile.*": "those streams have no approvals, and nothing of it is seen there"})
class approvals_read_once(Relay):
    """What the approvals were at the start of a stream they are to its end."""
    def configure(self, config):
        if "approvals" in config:
            shutil.copyfile(config["approvals"], config["approvals"] + ".own")
            config["approvals"] += ".own"


def changes_of(cls):
    if hasattr(cls, "changes"):
        return list(cls.changes)
    return list(cls.asks) if issubclass(cls, Questions) else ["dispatch"]


def main():
    if sys.argv[1:2] == ["--as-engine"]:
        words = FAULTS[sys.argv[2]][0].edit(sys.argv[3:])
        os.execvp(words[0], words)
    if sys.argv[1:] == ["--list"]:
        for name, (cls, targets, also) in FAULTS.items():
            changes = changes_of(cls)
            print(json.dumps({"name": name, "defect": cls.__doc__, "targets": targets, "also": also, "changes": changes}))
        return
    cls = FAULTS[sys.argv[1]][0]
    words = sys.argv[2:]
    if issubclass(cls, careful.Executor):
        careful.serve(cls)
    elif words:
        cls().question(words)
    else:
        # The parser recurses; the stack of the main thread grows up to this limit.
        sys.setrecursionlimit(1 << 20)
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 26, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        cls().run()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""An adapter of rv-conformance(7) with the care that Python allows: its own session and supervision
for each tool, bounds on time and output, credentials, removal that follows no link.  It keeps no
ledger and has no PID namespace, and does not claim to.

Each promise is a method of Executor, so that t/mutants can break them one at a time."""
import json
import math
import os
import re
import select
import signal
import stat
import subprocess
import sys
import threading
import time

SPACE = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
PR_SET_NO_NEW_PRIVS = 38


class Failure(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


# ---- JSON as the engine has it ----

def number(value):
    """ECMAScript's Number::toString."""
    if isinstance(value, int):
        value = float(value)
    if math.isinf(value) or math.isnan(value):
        raise Failure("number", "a number overflows a double")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    n = len(digits)
    if n <= point <= 21:
        text = digits + "0" * (point - n)
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = digits[0] + ("." + digits[1:] if n > 1 else "") + "e%+d" % (point - 1)
    return sign + text


def string(value):
    out = json.dumps(value, ensure_ascii=False)
    out = out.replace("\x7f", "\x7f")
    return re.sub("[\ud800-\udfff]", lambda m: "\\u%04x" % ord(m.group()), out)


def canonical(root):
    """Without recursion: a request may be as deep as it likes."""
    out = []
    work = [root]
    while work:
        item = work.pop()
        if isinstance(item, tuple):
            out.append(item[0])
        elif item is None:
            out.append("null")
        elif isinstance(item, bool):
            out.append("true" if item else "false")
        elif isinstance(item, (int, float)):
            out.append(number(item))
        elif isinstance(item, str):
            out.append(string(item))
        elif isinstance(item, list):
            out.append("[")
            work.append(("]",))
            for i in range(len(item) - 1, -1, -1):
                work.append(item[i])
                if i:
                    work.append((",",))
        else:
            out.append("{")
            work.append(("}",))
            names = sorted(item, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
            for i in range(len(names) - 1, -1, -1):
                work.append(item[names[i]])
                work.append((("," if i else "") + string(names[i]) + ":",))
    return "".join(out)


def no_constant(text):
    raise ValueError("no JSON: " + text)


def parse(text):
    return json.loads(text, parse_constant=no_constant)


# ---- one dispatch ----

class Executor:
    name = "careful.py"
    capabilities = ["credentials", "stream"]

    def __init__(self, config, request):
        import ctypes  # only where a tool is started
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.config = config
        self.request = request
        self.tool = request["tool"]
        self.ctx = request["ctx"]
        self.key = self.ctx["idempotencyKey"]
        self.stderr = bytearray()
        self.stdout = bytearray()

    # -- before

    def check(self):
        if "\0" in self.tool + self.key + self.ctx["runId"]:
            raise Failure("request", "a NUL in a name")

    def workdir_name(self):
        return "rulvar-exec-" + re.sub("[^A-Za-z0-9_-]", "_", self.tool)[:64] + "-"

    def make_workdir(self):
        base = self.config.get("workdirBase", "/tmp")
        for _ in range(64):
            path = os.path.join(base, self.workdir_name() + os.urandom(3).hex())
            try:
                os.mkdir(path, 0o700)
                os.chmod(path, self.workdir_mode())
                return path
            except FileExistsError:
                continue
            except OSError as error:
                raise Failure("config", str(error)) from error
        raise Failure("config", "no name for a workdir")

    def workdir_mode(self):
        return 0o700

    def own_variables(self):
        return {"RULVAR_TOOL": self.tool, "RULVAR_RUN_ID": self.ctx["runId"], "RULVAR_IDEMPOTENCY_KEY": self.key}

    def allowed(self):
        return {name: os.environ[name] for name in self.config.get("allowEnv", []) if name in os.environ}

    def environment(self):
        return {**self.allowed(), **self.credentials(), **self.own_variables()}

    def mint_input(self):
        return (json.dumps(self.request) + "\n").encode()

    def mint(self):
        done = subprocess.run(self.config["credentials"], input=self.mint_input(), stdout=subprocess.PIPE, timeout=10, check=False)
        self.check_mint(done)
        return done.stdout

    def check_mint(self, done):
        if done.returncode != 0:
            raise Failure("config", "the credentials program failed")

    def credentials(self):
        if not self.config.get("credentials"):
            return {}
        try:
            return self.admit_credentials(parse(self.mint().decode()))
        except (ValueError, OSError, subprocess.TimeoutExpired) as error:
            raise Failure("config", "no credentials: " + type(error).__name__) from error

    def admit_credentials(self, value):
        if not isinstance(value, dict):
            raise ValueError("no object")
        for name, text in value.items():
            if not isinstance(text, str) or "\0" in name + text or "=" in name or not name:
                raise ValueError("no variable")
        return value

    def argv(self):
        spec = self.request.get("spec", {})
        own = [spec["command"]] if "command" in spec else [self.config["command"], *self.config.get("args", [])]
        return own + spec.get("args", [])

    def find(self, command):
        if "/" in command:
            return os.path.abspath(command)
        for place in os.environ.get("PATH", "/usr/bin:/bin").split(":"):
            path = os.path.join(place, command)
            if os.access(path, os.X_OK):
                return path
        raise Failure("spawn", command + ": not found")

    def input(self):
        return ('{"tool":%s,"args":%s,"idempotencyKey":%s}\n' % (string(self.tool), canonical(self.request["args"]), string(self.key))).encode()

    # -- in the child

    def reset_signals(self):
        for number in range(1, signal.NSIG):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                pass
        self.reset_mask()

    def reset_mask(self):
        signal.pthread_sigmask(signal.SIG_SETMASK, [])

    def in_child(self):
        self.new_session()
        self.reset_signals()
        self.set_umask()
        self.drop_privileges()

    def new_session(self):
        os.setsid()

    def set_umask(self):
        os.umask(0o022)

    def drop_privileges(self):
        self.libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)

    close_fds = True

    def spawn(self, workdir, env):
        argv = self.argv()
        try:
            return subprocess.Popen(argv, executable=self.find(argv[0]), cwd=workdir, env=env, preexec_fn=self.in_child,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, close_fds=self.close_fds)
        except OSError as error:
            self.spawn_failed(error)

    def spawn_failed(self, error):
        raise Failure("spawn", str(error)) from error

    # -- while it runs

    def kill(self, tool, number):
        try:
            os.killpg(tool.pid, number)
        except (ProcessLookupError, PermissionError):
            pass
        if tool.returncode is None:
            try:
                os.kill(tool.pid, number)
            except ProcessLookupError:
                pass

    def end_rest(self, tool):
        self.kill(tool, signal.SIGKILL)

    def timeout(self):
        return self.config["timeoutMs"] / 1000

    def grace(self):
        return self.config["killGraceMs"] / 1000

    def cap(self):
        return self.config["maxOutputBytes"]

    def too_much(self):
        return len(self.stdout) > self.cap()

    def take(self, tool, fd):
        chunk = os.read(fd, 65536)
        if fd == tool.stdout.fileno():
            if not self.too_much():
                self.stdout += chunk
        else:
            self.stderr += chunk
            self.keep_stderr()
        return len(chunk) > 0

    def keep_stderr(self):
        del self.stderr[:-4096]

    def poll_tool(self, tool):
        # A tool that is traced and stopped is no ended one, and Popen takes it for one.
        info = os.waitid(os.P_PID, tool.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) if tool.returncode is None else None
        if info is not None and info.si_code not in (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED):
            return False
        return tool.poll() is not None

    def decide(self, tool, state):
        """What the clock and the counters say: the reason for the end, decided once."""
        now = time.monotonic()
        if state["reason"] is None and self.too_much():
            state["reason"] = "output-cap"
            self.kill(tool, signal.SIGKILL)
        elif state["reason"] is None and now >= state["deadline"]:
            state["reason"] = "timeout"
            state["kill"] = now + self.grace()
            self.ask_to_stop(tool)
        elif state["reason"] == "timeout" and now >= state["kill"]:
            self.kill(tool, signal.SIGKILL)
            state["kill"] = now + 3600

    def ask_to_stop(self, tool):
        self.kill(tool, signal.SIGTERM)
        self.kill(tool, signal.SIGCONT)

    def is_over(self, tool, pipes):
        return self.poll_tool(tool)

    def before_reading(self, tool, data):
        return data

    def write(self, tool, data):
        """A part of the input; None when it need not be written on."""
        try:
            data = data[os.write(tool.stdin.fileno(), data[:65536]):]
        except BlockingIOError:
            return data
        except BrokenPipeError:
            data = self.broken_pipe(data)
        if not data:
            tool.stdin.close()
            return None
        return data

    def broken_pipe(self, data):
        return b""

    def supervise(self, tool, data):
        state = {"deadline": time.monotonic() + self.timeout(), "reason": None, "kill": 0}
        pipes = {tool.stdout.fileno(), tool.stderr.fileno()}
        data = self.before_reading(tool, data)
        os.set_blocking(tool.stdin.fileno(), False)
        while not self.is_over(tool, pipes):
            writers = [tool.stdin.fileno()] if data is not None else []
            ready, room, _ = select.select(list(pipes), writers, [], 0.02)
            for fd in ready:
                self.read(tool, fd, pipes)
            if room:
                data = self.write(tool, data)
            self.decide(tool, state)
        self.end_rest(tool)
        self.drain(tool, pipes)
        if state["reason"] is None and self.too_much():
            state["reason"] = "output-cap"
        return state["reason"]

    def read(self, tool, fd, pipes):
        if not self.take(tool, fd):
            pipes.discard(fd)

    def drain(self, tool, pipes):
        while pipes:
            ready, _, _ = select.select(list(pipes), [], [], 0)
            if not ready:
                return
            for fd in ready:
                self.read(tool, fd, pipes)

    # -- after

    def tail(self):
        return bytes(self.stderr).decode("utf-8", "replace").lstrip("\ufffd")[-500:] if len(self.stderr) >= 4096 else \
            bytes(self.stderr).decode("utf-8", "replace")[-500:]

    def trim(self, text):
        return text.strip(SPACE)

    def decode(self, raw):
        return raw.decode("utf-8")

    def admit_output(self):
        try:
            text = self.trim(self.decode(bytes(self.stdout)))
            return self.parse_output(text)
        except (ValueError, RecursionError) as error:
            raise Failure("protocol", "stdout is not one JSON value") from error

    def parse_output(self, text):
        return parse(text) if text else None

    def failed(self, status):
        raise Failure("exit", "the tool ended with %d: %s" % (status, self.tail()))

    def admit(self, tool, reason):
        if reason is not None:
            raise Failure(reason, "ended: " + reason)
        if tool.returncode != 0:
            self.failed(tool.returncode)
        return self.admit_output()

    def remove(self, path):
        """Depth and length of paths do not matter: what is below is moved up, and no link is followed."""
        try:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                os.unlink(path)
                return
            top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) if self.open_up(path) else -1
        except FileNotFoundError:
            return
        count = 0
        again = True
        while again:
            again = False
            for entry in os.listdir(top):
                info = os.lstat(entry, dir_fd=top)
                if not stat.S_ISDIR(info.st_mode):
                    os.unlink(entry, dir_fd=top)
                    continue
                self.open_up(entry, top)
                sub = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
                for below in os.listdir(sub):
                    if stat.S_ISDIR(os.lstat(below, dir_fd=sub).st_mode):
                        self.open_up(below, sub)
                        count += 1
                        os.rename(below, ".moved-%d" % count, src_dir_fd=sub, dst_dir_fd=top)
                        again = True
                    else:
                        os.unlink(below, dir_fd=sub)
                os.close(sub)
                os.rmdir(entry, dir_fd=top)
        os.close(top)
        os.rmdir(path)

    def open_up(self, path, dir_fd=None):
        os.chmod(path, 0o700, dir_fd=dir_fd)
        return True

    def clear_up(self, workdir, error):
        self.remove(workdir)

    def let_go(self, tool):
        tool.wait()
        for pipe in (tool.stdin, tool.stdout, tool.stderr):
            pipe.close()

    def run(self):
        self.check()
        workdir = self.make_workdir()
        error = None
        try:
            tool = self.spawn(workdir, self.environment())
            try:
                return self.admit(tool, self.supervise(tool, self.input()))
            finally:
                self.let_go(tool)
        except Failure as failure:
            error = failure
            raise
        finally:
            self.clear_up(workdir, error)

    def reply(self):
        reply = {"tool": self.tool, "runId": self.ctx["runId"], "spanId": self.ctx.get("spanId"), "idempotencyKey": self.key}
        try:
            return {**reply, "ok": True, "result": self.run()}
        except Failure as failure:
            return {**reply, "ok": False, "error": {"code": failure.code, "message": failure.message}}


def answer(executor):
    line = parse(sys.stdin.buffer.read().decode())
    reply = executor(line["config"], line["request"]).reply()
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def answer_stream(executor, config, reading, writing):
    """One of several at work: the next call, its reply, and again."""
    while True:
        with reading:
            line = sys.stdin.buffer.readline()
        if not line:
            return
        request = parse(line.decode())
        reply = {"id": request.get("id"), **executor(config, request).reply()}
        with writing:
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


def serve(executor):
    if sys.argv[-1] == "--capabilities":
        print(json.dumps({"name": executor.name, "capabilities": executor.capabilities}))
        return
    # The parser recurses, so it needs a deep stack for what may be deep.
    sys.setrecursionlimit(1 << 20)
    threading.stack_size(1 << 29)
    threads = [threading.Thread(target=answer, args=(executor,))]
    if sys.argv[-1] == "--stream":
        config = parse(sys.stdin.buffer.readline().decode())["config"]
        words = (executor, config, threading.Lock(), threading.Lock())
        threads = [threading.Thread(target=answer_stream, args=words) for _ in range(config["jobs"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    serve(Executor)

"""Denial probes from Python: probe.py KEY=VALUE... prints `NAME allowed` or `NAME denied ERRNO`, as probe.c does."""
import errno
import os
import shutil
import socket
import sqlite3
import sys
import tempfile

key = dict(word.split("=", 1) for word in sys.argv[1:])
secret, outside, pid, port = key["secret"], key["dir"], int(key["pid"]), int(key["port"])
victim = os.path.join(outside, "victim")


def read(path):
    with open(path, "rb") as file:
        if not file.read(1):
            raise OSError(errno.ENODATA, "empty")


def connect(family, address):
    with socket.socket(family) as client:
        client.settimeout(5)
        client.connect(address)


def database():
    db = sqlite3.connect("file:" + key["database"] + "?mode=ro", uri=True)
    db.execute("select * from t").fetchall()


def undone(make, path, undo=os.unlink):
    make(path)
    undo(path)


PROBES = {
    "read": lambda: read(secret),
    "stat": lambda: os.stat(secret),
    "listdir": lambda: os.listdir(outside),
    "chdir": lambda: os.chdir(outside),
    "access": lambda: os.access(secret, os.R_OK) or (_ for _ in ()).throw(OSError(errno.ENOENT, "")),
    "dot-dot": lambda: read("../" * 20 + secret[1:]),
    "self-root": lambda: read("/proc/self/root" + secret),
    "copy": lambda: shutil.copyfile(secret, os.devnull),
    "sqlite": database,
    "write": lambda: open(victim, "r+b").close(),
    "append": lambda: open(victim, "ab").close(),
    "create": lambda: undone(lambda p: open(p, "xb").close(), outside + "/py-new"),
    "mkdir": lambda: undone(os.mkdir, outside + "/py-dir", os.rmdir),
    "symlink": lambda: undone(lambda p: os.symlink("x", p), outside + "/py-link"),
    "mkfifo": lambda: undone(os.mkfifo, outside + "/py-fifo"),
    "temporary": lambda: tempfile.TemporaryFile(dir=outside).close(),
    "chmod": lambda: os.chmod(victim, 0o644),
    "utime": lambda: os.utime(victim),
    "truncate": lambda: os.truncate(victim, 1),
    "rename": lambda: (os.rename(victim, victim + "2"), os.rename(victim + "2", victim)),
    "cmdline": lambda: read(f"/proc/{pid}/cmdline"),
    "environ": lambda: read(f"/proc/{pid}/environ"),
    "kill": lambda: os.kill(pid, 0),
    "pidfd": lambda: os.close(os.pidfd_open(pid)),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, pid, 5),
    "affinity": lambda: os.sched_getaffinity(pid),
    "connect": lambda: connect(socket.AF_INET, ("127.0.0.1", port)),
    "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port)),
    "listen": lambda: socket.create_server(("127.0.0.1", 0)).close(),
    "unix": lambda: connect(socket.AF_UNIX, key["unix"]),
    "abstract": lambda: connect(socket.AF_UNIX, "\0" + key["abstract"]),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close(),
    "hostname": lambda: read("/etc/hostname"),
    "sys": lambda: read("/sys/kernel/notes"),
    "home": lambda: os.listdir("/var"),
}


def verdict(attempt):
    try:
        attempt()
        return "allowed"
    except sqlite3.Error:
        return "denied SQLITE"
    except OSError as error:
        return "denied " + errno.errorcode.get(error.errno, type(error).__name__)


here = os.getcwd()
for name, attempt in PROBES.items():
    print("python." + name, verdict(attempt), flush=True)
    os.chdir(here)

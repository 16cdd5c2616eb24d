"""What the network probes try to reach: serve.py UNIX-PATH ABSTRACT-NAME prints the port, and serves until killed."""
import signal
import socket
import sys

four = socket.socket()
four.bind(("127.0.0.1", 0))
port = four.getsockname()[1]
four.listen(64)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", port))
kept = []
try:
    six = socket.socket(socket.AF_INET6)
    six.bind(("::1", port))
    six.listen(64)
    kept.append(six)
except OSError:
    pass  # no IPv6 here: its control fails, and its probe does not count
for address in (sys.argv[1], "\0" + sys.argv[2]):
    local = socket.socket(socket.AF_UNIX)
    local.bind(address)
    local.listen(64)
    kept.append(local)
print(port, flush=True)
signal.pause()

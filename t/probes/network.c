/* Sockets of every family, and what is done with them. */
#include "t/probes/probe.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#define SOCKET(function, family, type, protocol) \
	static int function(void) \
	{ \
		return probe_close(socket((family), (type) | SOCK_CLOEXEC, (protocol))); \
	}
SOCKET(tcp4, AF_INET, SOCK_STREAM, 0)
SOCKET(tcp6, AF_INET6, SOCK_STREAM, 0)
SOCKET(udp4, AF_INET, SOCK_DGRAM, 0)
SOCKET(udp6, AF_INET6, SOCK_DGRAM, 0)
SOCKET(icmp, AF_INET, SOCK_DGRAM, IPPROTO_ICMP)
SOCKET(raw, AF_INET, SOCK_RAW, IPPROTO_ICMP)
SOCKET(packet, AF_PACKET, SOCK_RAW, 0)
SOCKET(mptcp, AF_INET, SOCK_STREAM, 262)
SOCKET(netlink, AF_NETLINK, SOCK_RAW, 0)
SOCKET(netlink_audit, AF_NETLINK, SOCK_RAW, 9)
SOCKET(netlink_uevent, AF_NETLINK, SOCK_RAW, 15)
SOCKET(vsock, AF_VSOCK, SOCK_STREAM, 0)
SOCKET(alg, AF_ALG, SOCK_SEQPACKET, 0)
SOCKET(key, AF_KEY, SOCK_RAW, 2)
SOCKET(xdp, AF_XDP, SOCK_RAW, 0)
SOCKET(unix_stream, AF_UNIX, SOCK_STREAM, 0)
SOCKET(unix_dgram, AF_UNIX, SOCK_DGRAM, 0)

static int pair(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	(void)close(ends[0]);
	return probe_close(ends[1]);
}

static in_port_t port(void)
{
	return htons((in_port_t)strtoul(probe_value[KEY_PORT], NULL, 10));
}

static int connected(int fd, const void *address, size_t size)
{
	int result = fd < 0 ? -1 : connect(fd, address, (socklen_t)size);

	(void)probe_close(fd);
	return result;
}

static int connect4(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = port(), .sin_addr = { htonl(INADDR_LOOPBACK) } };

	return connected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), &to, sizeof to);
}

static int connect6(void)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = port(), .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	return connected(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), &to, sizeof to);
}

/* UDP to a port that answers nothing: that it was taken is what is asked. */
static int send4(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = port(), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ssize_t n = fd < 0 ? -1 : sendto(fd, "x", 1, 0, (const struct sockaddr *)&to, sizeof to);

	(void)probe_close(fd);
	return n == 1 ? 0 : -1;
}

static int fast_open(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = port(), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t n = fd < 0 ? -1 : sendto(fd, "x", 1, MSG_FASTOPEN, (const struct sockaddr *)&to, sizeof to);

	(void)probe_close(fd);
	return n == 1 ? 0 : -1;
}

static int bind4(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int result = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&any, sizeof any);

	(void)probe_close(fd);
	return result;
}

static int listen_unbound(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int result = fd < 0 ? -1 : listen(fd, 1);

	(void)probe_close(fd);
	return result;
}

static int connect_unix(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	(void)snprintf(to.sun_path, sizeof to.sun_path, "%s", probe_value[KEY_UNIX]);
	return connected(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), &to, sizeof to);
}

static int connect_abstract(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = strlen(probe_value[KEY_ABSTRACT]);

	if (len >= sizeof to.sun_path)
		return probe_no(ENAMETOOLONG);
	memcpy(to.sun_path + 1, probe_value[KEY_ABSTRACT], len);
	return connected(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), &to, offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

const struct probe probes_network[] = {
	{ "socket.tcp4", KEY_NONE, tcp4 }, { "socket.tcp6", KEY_NONE, tcp6 }, { "socket.udp4", KEY_NONE, udp4 },
	{ "socket.udp6", KEY_NONE, udp6 }, { "socket.icmp", KEY_NONE, icmp }, { "socket.raw", KEY_NONE, raw },
	{ "socket.packet", KEY_NONE, packet }, { "socket.mptcp", KEY_NONE, mptcp },
	{ "socket.netlink", KEY_NONE, netlink }, { "socket.netlink-audit", KEY_NONE, netlink_audit },
	{ "socket.netlink-uevent", KEY_NONE, netlink_uevent }, { "socket.vsock", KEY_NONE, vsock },
	{ "socket.alg", KEY_NONE, alg }, { "socket.key", KEY_NONE, key }, { "socket.xdp", KEY_NONE, xdp },
	{ "socket.unix-stream", KEY_NONE, unix_stream }, { "socket.unix-dgram", KEY_NONE, unix_dgram },
	{ "socket.pair", KEY_NONE, pair }, { "net.connect4", KEY_PORT, connect4 }, { "net.connect6", KEY_PORT, connect6 },
	{ "net.send4", KEY_PORT, send4 }, { "net.fast-open", KEY_PORT, fast_open }, { "net.bind4", KEY_NONE, bind4 },
	{ "net.listen", KEY_NONE, listen_unbound }, { "net.unix-path", KEY_UNIX, connect_unix },
	{ "net.unix-abstract", KEY_ABSTRACT, connect_abstract },
	PROBE_END
};

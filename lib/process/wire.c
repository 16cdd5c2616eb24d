#include "lib/process/wire.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
	struct cmsghdr first;
	char bytes[CMSG_SPACE(RV_WIRE_FDS * sizeof(int))];
};

int rv_wire_send(int socket, struct rv_wire_message *message, const int *fds, int count, struct rv_error *err)
{
	struct iovec part = { .iov_base = message, .iov_len = offsetof(struct rv_wire_message, path) + message->length };
	union control control;
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	if (count > 0) {
		struct cmsghdr *rights = &control.first;

		memset(&control, 0, sizeof control);
		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, (size_t)count * sizeof(int));
	}
	do
		n = sendmsg(socket, &header, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return rv_error_set(err, RV_E_IO, errno, "slot worker");
	if ((size_t)n != part.iov_len)
		return rv_error_set(err, RV_E_IO, EIO, "slot worker: a message went out short");
	return 0;
}

static void take_fds(struct msghdr *header, int *fds)
{
	struct cmsghdr *part;
	int got = 0;

	for (part = CMSG_FIRSTHDR(header); part != NULL; part = CMSG_NXTHDR(header, part)) {
		size_t count;

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
			if (fds != NULL && got < RV_WIRE_FDS)
				fds[got++] = fd;
			else
				(void)close(fd);
		}
	}
}

int rv_wire_receive(int socket, struct rv_wire_message *message, int *fds)
{
	struct iovec part = { .iov_base = message, .iov_len = sizeof *message };
	union control control;
	struct msghdr header = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes
	};
	ssize_t n;

	for (int i = 0; fds != NULL && i < RV_WIRE_FDS; i++)
		fds[i] = -1;
	do
		n = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	take_fds(&header, fds);
	if (n == 0)
		return 0;
	if ((size_t)n < offsetof(struct rv_wire_message, path) ||
	    (size_t)n != offsetof(struct rv_wire_message, path) + message->length) {
		errno = EPROTO;
		return -1;
	}
	return 1;
}

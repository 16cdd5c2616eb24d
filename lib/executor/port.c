#include "lib/executor/port.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"

#define READ_CHUNK ((size_t)256 * 1024) /* a pipe gives less, a file all of it */
#define LARGE_CHUNK ((size_t)1 << 20)   /* in the middle of a long line */
#define KEPT ((size_t)4 << 20)          /* bytes of memory that wait for the next line, or reply */
#define SMALL ((size_t)16 << 10)        /* bytes that are copied sooner than their memory is moved */
#define PIPE_ROOM ((size_t)64 << 10)    /* of an ordinary pipe */

/* 1 watched, 0 it cannot be (a regular file), -1 the system failed. */
static int watch(struct rv_loop *loop, struct rv_watch *watch, int fd, uint32_t events, struct rv_error *err)
{
	if (rv_loop_add(loop, watch, fd, events, err) == 0)
		return 1;
	if (err->errnum != EPERM)
		return -1;
	rv_error_clear(err);
	return 0;
}

/* ---- in ---- */

static void on_input(struct rv_watch *watch, uint32_t events)
{
	(void)events;
	rv_inlet_read(watch->owner);
}

void rv_inlet_init(struct rv_inlet *inlet, struct rv_loop *loop, int fd)
{
	*inlet = (struct rv_inlet){ .loop = loop, .fd = fd, .watchable = true, .watch = { -1, on_input, inlet } };
	rv_buffer_init(&inlet->bytes, 0);
}

void rv_inlet_release(struct rv_inlet *inlet)
{
	rv_loop_remove(inlet->loop, &inlet->watch);
	rv_buffer_release(&inlet->bytes);
}

int rv_inlet_want(struct rv_inlet *inlet, bool wanted, struct rv_error *err)
{
	inlet->wanted = wanted && !inlet->ended;
	if (!inlet->wanted || !inlet->watchable) {
		rv_loop_remove(inlet->loop, &inlet->watch);
		return 0;
	}
	if (inlet->watch.fd < 0) {
		int watched = watch(inlet->loop, &inlet->watch, inlet->fd, EPOLLIN, err);

		if (watched < 0)
			return -1;
		inlet->watchable = watched == 1;
	}
	return 0;
}

bool rv_inlet_is_ready(const struct rv_inlet *inlet)
{
	return inlet->wanted && !inlet->watchable;
}

/* A line that did not fit into its pipe will come in fewer pieces, and so will its like. */
static size_t chunk(struct rv_inlet *inlet)
{
	if (!inlet->large && inlet->bytes.len - inlet->at >= PIPE_ROOM) {
		rv_io_enlarge_pipe(inlet->fd);
		inlet->large = true;
	}
	return inlet->bytes.len > inlet->at && inlet->large ? LARGE_CHUNK : READ_CHUNK;
}

void rv_inlet_read(struct rv_inlet *inlet)
{
	size_t want = chunk(inlet);
	char *room;
	ssize_t n;

	if (inlet->at == inlet->bytes.len) {
		rv_buffer_clear_to(&inlet->bytes, KEPT);
		inlet->at = inlet->searched = 0;
	} else if (inlet->at > 0) { /* lines were taken: what is left moves to the front */
		memmove(inlet->bytes.data, inlet->bytes.data + inlet->at, inlet->bytes.len - inlet->at);
		inlet->bytes.len -= inlet->at;
		inlet->searched -= inlet->searched < inlet->at ? inlet->searched : inlet->at;
		inlet->at = 0;
	}
	room = rv_buffer_reserve(&inlet->bytes, want);
	if (room == NULL) {
		inlet->errnum = ENOMEM;
		inlet->ended = true;
		return;
	}
	do
		n = read(inlet->fd, room, want);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0)
		inlet->errnum = errno;
	if (n <= 0)
		inlet->ended = true;
	else
		rv_buffer_commit(&inlet->bytes, (size_t)n);
}

/* No byte is searched twice: a line of 64 MiB comes in a thousand pieces. */
static const char *find_newline(struct rv_inlet *inlet)
{
	const char *newline = NULL;

	if (inlet->searched < inlet->at)
		inlet->searched = inlet->at;
	if (inlet->bytes.len > inlet->searched)
		newline = memchr(inlet->bytes.data + inlet->searched, '\n', inlet->bytes.len - inlet->searched);
	inlet->searched = newline != NULL ? (size_t)(newline - inlet->bytes.data) : inlet->bytes.len;
	return newline;
}

/* A last line without its newline is a line; one that was cut by an error is none. */
bool rv_inlet_has_line(struct rv_inlet *inlet)
{
	if (find_newline(inlet) != NULL)
		return true;
	return inlet->ended && inlet->errnum == 0 && inlet->at < inlet->bytes.len;
}

bool rv_inlet_line(struct rv_inlet *inlet, struct rv_span *line)
{
	if (!rv_inlet_has_line(inlet))
		return false;
	*line = (struct rv_span){ inlet->bytes.data + inlet->at, inlet->searched - inlet->at };
	inlet->at = inlet->searched < inlet->bytes.len ? inlet->searched + 1 : inlet->searched;
	inlet->line++;
	return true;
}

/* ---- out ---- */

size_t rv_outlet_pending(const struct rv_outlet *outlet)
{
	return outlet->errnum != 0 ? 0 : outlet->bytes.len - outlet->at;
}

/* A pipe that says it is writable takes PIPE_BUF bytes without blocking (pipe(7)), and no more is asked
 * of it where it may block; a file takes all.  Did some of it go? */
static bool write_some(struct rv_outlet *outlet)
{
	size_t pending = rv_outlet_pending(outlet);
	size_t want = !outlet->prompt && pending > PIPE_BUF ? PIPE_BUF : pending;
	ssize_t n;

	if (want == 0)
		return false;
	do
		n = write(outlet->fd, outlet->bytes.data + outlet->at, want);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		outlet->at += (size_t)n;
	else if (errno != EAGAIN)
		outlet->errnum = errno;
	return n > 0;
}

static void on_output(struct rv_watch *watch, uint32_t events)
{
	(void)events;
	(void)write_some(watch->owner);
}

/* A pipe's writing end with flags of our own; -1 where there is none to be had (another user's, no /proc). */
static int open_again(int fd)
{
	struct stat info;
	char path[64];

	if (fstat(fd, &info) != 0 || !S_ISFIFO(info.st_mode))
		return -1;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void rv_outlet_init(struct rv_outlet *outlet, struct rv_loop *loop, int fd)
{
	int own = open_again(fd);

	*outlet = (struct rv_outlet){ .loop = loop, .fd = own >= 0 ? own : fd, .own = own >= 0, .prompt = own >= 0,
				      .watchable = true, .watch = { -1, on_output, outlet } };
	rv_buffer_init(&outlet->bytes, 0);
}

void rv_outlet_release(struct rv_outlet *outlet)
{
	rv_loop_remove(outlet->loop, &outlet->watch);
	if (outlet->own)
		(void)close(outlet->fd);
	outlet->own = false;
	rv_buffer_release(&outlet->bytes);
}

/* A reader who is always a little behind must not make it grow: once half of it is written the rest moves up. */
static void drop_written(struct rv_outlet *outlet)
{
	size_t pending = outlet->bytes.len - outlet->at;

	if (outlet->at < pending)
		return;
	if (pending == 0)
		rv_buffer_clear_to(&outlet->bytes, KEPT);
	else
		memmove(outlet->bytes.data, outlet->bytes.data + outlet->at, pending);
	outlet->bytes.len = pending;
	outlet->at = 0;
}

void rv_outlet_add(struct rv_outlet *outlet, struct rv_buffer *bytes)
{
	bool failed = bytes->failed;

	/* a small one is copied: every reply's buffer would become as large as the largest that went out */
	if (outlet->at == outlet->bytes.len && bytes->len >= SMALL) {
		struct rv_buffer written = outlet->bytes;

		outlet->bytes = *bytes;
		outlet->at = 0;
		*bytes = written;
	} else {
		drop_written(outlet);
		rv_buffer_add(&outlet->bytes, bytes->data, bytes->len);
	}
	rv_buffer_clear_to(bytes, KEPT);
	if (outlet->bytes.failed || failed)
		outlet->errnum = ENOMEM;
}

static int watch_outlet(struct rv_outlet *outlet, struct rv_error *err)
{
	int watched = watch(outlet->loop, &outlet->watch, outlet->fd, EPOLLOUT, err);

	outlet->watchable = watched == 1;
	outlet->prompt = outlet->prompt || watched == 0;
	return watched < 0 ? -1 : 0;
}

int rv_outlet_turn(struct rv_outlet *outlet, struct rv_error *err)
{
	if (!outlet->large && rv_outlet_pending(outlet) > PIPE_ROOM) {
		rv_io_enlarge_pipe(outlet->fd);
		outlet->large = true;
	}
	if (rv_outlet_pending(outlet) > 0 && !outlet->prompt && outlet->watch.fd < 0 && watch_outlet(outlet, err) != 0)
		return -1;
	while (outlet->prompt && outlet->watch.fd < 0 && write_some(outlet))
		;
	if (rv_outlet_pending(outlet) == 0) {
		rv_loop_remove(outlet->loop, &outlet->watch);
		return 0;
	}
	return outlet->watch.fd < 0 && outlet->watchable ? watch_outlet(outlet, err) : 0;
}

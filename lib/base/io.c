#include "lib/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define PIPE_LARGE (1 << 20) /* what anybody may ask for */

int rv_io_standard_descriptors(void)
{
	static const int wrong_way[3] = { O_WRONLY, O_RDONLY, O_RDONLY };

	for (int fd = 0; fd <= 2; fd++) {
		int got;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		got = open("/dev/null", wrong_way[fd]); /* the lowest free number, that is fd: meant to be inherited */
		if (got != fd)
			return -1;
	}
	return 0;
}

void rv_io_allow_descriptors(size_t count)
{
	struct rlimit limit;
	rlim_t want = (rlim_t)count + 64; /* and what a program has open of its own */

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= want)
		return;
	limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || want < limit.rlim_max ? want : limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int rv_io_open(const char *path, int flags, mode_t mode, struct rv_error *err)
{
	int fd;

	do
		fd = open(path, flags | O_CLOEXEC, mode);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return rv_error_set(err, RV_E_IO, errno, "open %s", path);
	return fd;
}

int rv_io_write_all(int fd, const void *bytes, size_t len, struct rv_error *err)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rv_error_set(err, RV_E_IO, errno, "write");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int rv_io_pwrite_all(int fd, const void *bytes, size_t len, off_t at, struct rv_error *err)
{
	const char *from = bytes;

	while (len > 0) {
		ssize_t n = pwrite(fd, from, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rv_error_set(err, RV_E_IO, errno, "pwrite");
		from += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t rv_io_read_some(int fd, void *bytes, size_t len, struct rv_error *err)
{
	ssize_t n;

	do
		n = read(fd, bytes, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? rv_error_set(err, RV_E_IO, errno, "read") : n;
}

ssize_t rv_io_pread_some(int fd, void *bytes, size_t len, off_t at, struct rv_error *err)
{
	ssize_t n;

	do
		n = pread(fd, bytes, len, at);
	while (n < 0 && errno == EINTR);
	return n < 0 ? rv_error_set(err, RV_E_IO, errno, "pread") : n;
}

int rv_io_read_all(int fd, struct rv_buffer *out, struct rv_error *err)
{
	size_t chunk = 4096;

	for (;;) {
		char *room = rv_buffer_reserve(out, chunk);
		ssize_t n;

		if (room == NULL)
			return rv_buffer_check(out, err);
		n = rv_io_read_some(fd, room, chunk, err);
		if (n <= 0)
			return (int)n;
		rv_buffer_commit(out, (size_t)n);
		if ((size_t)n == chunk && chunk < ((size_t)1 << 20))
			chunk *= 2;
	}
}

int rv_io_pread_all(int fd, void *bytes, size_t len, off_t at, struct rv_error *err)
{
	char *to = bytes;

	while (len > 0) {
		ssize_t n = rv_io_pread_some(fd, to, len, at, err);

		if (n < 0)
			return -1;
		if (n == 0)
			return rv_error_set(err, RV_E_IO, 0, "pread: the file became shorter");
		to += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int rv_io_read_file(const char *path, struct rv_buffer *out, struct rv_error *err)
{
	rv_auto_fd int owned = -1;
	int fd = STDIN_FILENO;

	if (strcmp(path, "-") != 0) {
		owned = rv_io_open(path, O_RDONLY | O_NOCTTY, 0, err);
		fd = owned;
	}
	if (fd < 0)
		return -1;
	if (rv_io_read_all(fd, out, err) != 0)
		return rv_error_wrap(err, "%s", fd == STDIN_FILENO ? "standard input" : path);
	return 0;
}

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return strdup(".");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int fill(int fd, const void *bytes, size_t len, bool sync, struct rv_error *err)
{
	if (rv_io_write_all(fd, bytes, len, err) != 0)
		return -1;
	if (sync && fsync(fd) != 0)
		return rv_error_set(err, RV_E_IO, errno, "fsync");
	return 0;
}

/* By a nameless file that gets its name when it is whole.  1 made, 0 the name is taken, -1 error,
 * -2 not possible here (the file system, or no /proc). */
static int create_nameless(const char *path, const void *bytes, size_t len, mode_t mode, bool sync, struct rv_error *err)
{
	rv_auto_free char *dir = parent_of(path);
	rv_auto_fd int fd = -1;
	char self[64];

	if (dir == NULL)
		return rv_error_nomem(err);
	fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
	if (fd < 0)
		return -2;
	if (fill(fd, bytes, len, sync, err) != 0)
		return rv_error_wrap(err, "create %s", path);
	(void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
		return 1;
	return errno == EEXIST ? 0 : -2;
}

static int create_named(const char *path, const void *bytes, size_t len, mode_t mode, bool sync, struct rv_error *err)
{
	rv_auto_fd int fd = -1;

	do
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return errno == EEXIST ? 0 : rv_error_set(err, RV_E_IO, errno, "create %s", path);
	if (fill(fd, bytes, len, sync, err) == 0)
		return 1;
	(void)unlink(path);
	return rv_error_wrap(err, "create %s", path);
}

int rv_io_create(const char *path, const void *bytes, size_t len, mode_t mode, bool sync, struct rv_error *err)
{
	int made = create_nameless(path, bytes, len, mode, sync, err);

	if (made == -2)
		made = create_named(path, bytes, len, mode, sync, err);
	if (made == 1 && sync && rv_io_sync_parent(path, err) != 0)
		return -1;
	return made;
}

int rv_io_open_parent(const char *path, int flags, struct rv_error *err)
{
	rv_auto_free char *dir = parent_of(path);

	return dir == NULL ? rv_error_nomem(err) : rv_io_open(dir, flags | O_DIRECTORY, 0, err);
}

int rv_io_sync_parent(const char *path, struct rv_error *err)
{
	rv_auto_fd int fd = rv_io_open_parent(path, O_RDONLY, err);

	if (fd < 0)
		return -1;
	if (fsync(fd) != 0)
		return rv_error_set(err, RV_E_IO, errno, "fsync the directory of %s", path);
	return 0;
}

static struct flock range(short type, off_t at, off_t len)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = len, .l_pid = 0 };
}

int rv_io_lock(int fd, off_t at, off_t len, int64_t deadline_ms, struct rv_error *err)
{
	int pause = 1;

	/* F_OFD_SETLKW cannot time out without a signal, and a signal would be the process's
	 * own business: a short poll costs nothing where there is no queue, and growing to 5 ms
	 * only it is not starved by others who come and go. */
	for (;;) {
		struct flock want = range(F_WRLCK, at, len);
		int left;

		if (fcntl(fd, F_OFD_SETLK, &want) == 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EACCES)
			return rv_error_set(err, RV_E_IO, errno, "lock");
		left = rv_clock_left_ms(deadline_ms);
		if (left == 0)
			return rv_error_set(err, RV_E_BUSY, 0, "lock held by another process past the deadline");
		rv_clock_pause_ms(pause < left ? pause : left);
		pause = pause < 4 ? pause * 2 : 5;
	}
}

int rv_io_unlock(int fd, off_t at, off_t len, struct rv_error *err)
{
	struct flock want = range(F_UNLCK, at, len);

	if (fcntl(fd, F_OFD_SETLK, &want) != 0)
		return rv_error_set(err, RV_E_IO, errno, "unlock");
	return 0;
}

int rv_io_lock_probe(int fd, off_t at, off_t len, struct rv_error *err)
{
	struct flock want = range(F_WRLCK, at, len);

	if (fcntl(fd, F_OFD_GETLK, &want) != 0)
		return rv_error_set(err, RV_E_IO, errno, "lock probe");
	return want.l_type != F_UNLCK;
}

int rv_io_lease(int fd, struct rv_error *err)
{
	if (fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0)
		return 1;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return 0;
	return rv_error_set(err, RV_E_IO, errno, "lease");
}

bool rv_io_lease_is_quiet(int fd)
{
	return fcntl(fd, F_GETLEASE) == F_WRLCK;
}

int rv_io_lease_end(int fd, struct rv_error *err)
{
	if (fcntl(fd, F_SETLEASE, F_UNLCK) != 0)
		return rv_error_set(err, RV_E_IO, errno, "end lease");
	return 0;
}

void rv_io_enlarge_pipe(int fd)
{
	int size = fcntl(fd, F_GETPIPE_SZ);

	if (size > 0 && size < PIPE_LARGE)
		(void)fcntl(fd, F_SETPIPE_SZ, PIPE_LARGE);
}

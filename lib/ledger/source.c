#include "lib/ledger/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/ledger/fs.h"
#include "lib/ledger/lock.h"
#include "lib/ledger/patch.h"
#include "lib/ledger/sidecar.h"

#define CHUNK ((size_t)1 << 20)
#define OPEN_WAIT_MS 10000 /* for a repair's lease to end */

/* A regular file is opened without blocking, since a repair may hold a lease on it; a FIFO must block
 * until it has a writer. */
static int open_path(const char *path, struct rv_error *err)
{
	int64_t deadline = rv_clock_mono_ms() + OPEN_WAIT_MS;
	struct stat st;
	int flags = O_RDONLY | O_NOCTTY | O_CLOEXEC;

	if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		flags |= O_NONBLOCK;
	for (;;) {
		int fd = open(path, flags);

		if (fd >= 0)
			return fd;
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK || rv_clock_left_ms(deadline) == 0)
			return rv_error_set(err, RV_E_IO, errno, "open %s", path);
		rv_clock_pause_ms(5);
	}
}

static int open_spool(struct rv_error *err)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir != NULL && dir[0] != '\0' ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0) /* no such directory, or no O_TMPFILE there: in memory */
		fd = memfd_create("rv-ledger-scan", MFD_CLOEXEC);
	if (fd < 0)
		return rv_error_set(err, RV_E_IO, errno, "temporary file");
	return fd;
}

static int spool(struct rv_source *source, int from, struct rv_error *err)
{
	rv_auto_free char *chunk = malloc(CHUNK);

	source->streamed = true;
	source->fd = open_spool(err);
	if (chunk == NULL)
		return rv_error_nomem(err);
	while (source->fd >= 0) {
		ssize_t n = rv_io_read_some(from, chunk, CHUNK, err);

		if (n <= 0)
			return (int)n;
		if (rv_io_write_all(source->fd, chunk, (size_t)n, err) != 0)
			return rv_error_wrap(err, "temporary file");
	}
	return -1;
}

static int64_t birth_ms(int fd)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &stx) != 0 || (stx.stx_mask & STATX_BTIME) == 0)
		return -1;
	return (int64_t)stx.stx_btime.tv_sec * 1000 + stx.stx_btime.tv_nsec / 1000000;
}

/* What cannot be told is not relied on. */
static bool is_remote(int fd)
{
	struct rv_error ignored = RV_ERROR_INIT;

	return rv_fs_check(fd, &ignored) != 0;
}

static int open_file(struct rv_source *source, struct rv_error *err)
{
	rv_auto_fd int fd = open_path(source->path, err);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) != 0)
		return rv_error_set(err, RV_E_IO, errno, "%s", source->path);
	if (!S_ISREG(st.st_mode))
		return spool(source, fd, err) == 0 ? 0 : rv_error_wrap(err, "%s", source->path);
	source->remote = is_remote(fd);
	source->born_ms = birth_ms(fd);
	source->fd = rv_steal_fd(&fd);
	return 0;
}

int rv_source_open(struct rv_source *source, const char *path, struct rv_error *err)
{
	*source = (struct rv_source){ .path = path, .fd = -1, .born_ms = -1, .live = -1 };
	if (strcmp(path, "-") != 0)
		return open_file(source, err);
	return spool(source, STDIN_FILENO, err) == 0 ? 0 : rv_error_wrap(err, "standard input");
}

void rv_source_close(struct rv_source *source)
{
	if (source->fd >= 0)
		(void)close(source->fd);
	source->fd = -1;
}

int rv_source_size(const struct rv_source *source, uint64_t *size, struct rv_error *err)
{
	return rv_patch_size(source->fd, size, err) == 0 ? 0 : rv_error_wrap(err, "%s", source->path);
}

int rv_source_read(const struct rv_source *source, uint64_t offset, uint64_t len, struct rv_buffer *out,
		   struct rv_error *err)
{
	return rv_patch_read(source->fd, offset, offset + len, out, err) == 0 ? 0 : rv_error_wrap(err, "%s", source->path);
}

bool rv_source_is_busy(const struct rv_source *source)
{
	struct rv_error ignored = RV_ERROR_INIT;

	if (source->streamed)
		return false;
	return rv_sidecar_exists(source->path) || rv_io_lock_probe(source->fd, 0, RV_APPEND_LEN, &ignored) == 1;
}

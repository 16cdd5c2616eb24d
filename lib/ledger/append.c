#include "lib/ledger/append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/digest/digest.h"
#include "lib/ledger/finish.h"
#include "lib/ledger/fs.h"
#include "lib/ledger/lock.h"
#include "lib/ledger/mend.h"
#include "lib/ledger/patch.h"

/* A repair may not hold up a dispatch for long: past this the row is appended beside the open
 * descriptors of others (lib/ledger/mend.h). */
#define LEASE_MS 100
#define WRITE_MAX 0x7ffff000 /* what one write(2) takes */

/* One file that this path was. */
struct incarnation {
	int fd;
	dev_t dev;
	ino_t ino;
};

struct hold {
	int64_t lock;
	size_t since; /* the incarnation that was current when it was taken */
};

struct rv_ledger {
	char *path;
	char *real; /* of the current incarnation */
	struct rv_ledger_options options;
	struct incarnation *files; /* the last is current; an earlier one stays open while an attempt
				    * lives whose intent may be in it, so that its lock holds there */
	size_t file_count;
	struct hold *holds;
	size_t hold_count;
	bool suspect; /* a repair of ours failed: look for what it left */
};

static struct incarnation *current(const struct rv_ledger *ledger)
{
	return &ledger->files[ledger->file_count - 1];
}

/* None is made where it would be refused. */
static int check_place(const struct rv_ledger *ledger, struct rv_error *err)
{
	rv_auto_fd int fd = -1;

	if (ledger->options.unsafe_fs)
		return 0;
	fd = rv_io_open_parent(ledger->path, O_PATH, err);
	if (fd < 0)
		return -1;
	return rv_fs_check(fd, err) == 0 ? 0 : rv_error_wrap(err, "%s", ledger->path);
}

static int open_file(const struct rv_ledger *ledger, int *fd, struct rv_error *err)
{
	int64_t deadline = rv_clock_mono_ms() + ledger->options.wait_ms;

	/* O_NONBLOCK: a repair's lease would hold this up past any deadline. */
	for (;;) {
		int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

		*fd = open(ledger->path, flags);
		if (*fd >= 0)
			return 0;
		if (errno == ENOENT) {
			if (check_place(ledger, err) != 0)
				return -1;
			*fd = open(ledger->path, flags | O_CREAT | O_EXCL, 0600);
			if (*fd >= 0)
				return 0;
			if (errno == EEXIST && rv_clock_left_ms(deadline) > 0) {
				rv_clock_pause_ms(1); /* made by another; or a dangling link, for which O_EXCL is no */
				continue;
			}
		}
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK || rv_clock_left_ms(deadline) == 0)
			return rv_error_set(err, RV_E_LEDGER, errno, "open %s", ledger->path);
		rv_clock_pause_ms(5);
	}
}

static int check_file(const struct rv_ledger *ledger, int fd, struct incarnation *file, struct rv_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return rv_error_set(err, RV_E_LEDGER, errno, "%s", ledger->path);
	if (!S_ISREG(st.st_mode))
		return rv_error_set(err, RV_E_LEDGER, 0, "%s: not a regular file", ledger->path);
	if (!ledger->options.unsafe_fs && rv_fs_check(fd, err) != 0)
		return rv_error_wrap(err, "%s", ledger->path);
	*file = (struct incarnation){ .fd = fd, .dev = st.st_dev, .ino = st.st_ino };
	return 0;
}

static int take_holds(const struct rv_ledger *ledger, int fd, struct rv_error *err)
{
	for (size_t i = 0; i < ledger->hold_count; i++) {
		if (rv_io_lock(fd, ledger->holds[i].lock, 1, rv_clock_mono_ms(), err) != 0)
			return rv_error_wrap(err, "%s: liveness lock", ledger->path);
	}
	return 0;
}

/* Make what the path names the current incarnation, with every live lock in it too. */
static int adopt(struct rv_ledger *ledger, struct rv_error *err)
{
	struct incarnation *files = realloc(ledger->files, (ledger->file_count + 1) * sizeof *files);
	rv_auto_free char *real = NULL;
	struct incarnation file;
	rv_auto_fd int fd = -1;

	if (files == NULL)
		return rv_error_nomem(err);
	ledger->files = files;
	if (open_file(ledger, &fd, err) != 0 || check_file(ledger, fd, &file, err) != 0 || take_holds(ledger, fd, err) != 0)
		return -1;
	real = realpath(ledger->path, NULL);
	if (real == NULL)
		return rv_error_set(err, RV_E_LEDGER, errno, "%s", ledger->path);
	/* Also where another made it: it may not have synced, or not yet. */
	if (ledger->options.power && rv_io_sync_parent(real, err) != 0)
		return -1;
	free(ledger->real);
	ledger->real = rv_steal_ptr(&real);
	(void)rv_steal_fd(&fd);
	files[ledger->file_count++] = file;
	return 0;
}

static bool is_needed(const struct rv_ledger *ledger, size_t file)
{
	if (file + 1 == ledger->file_count)
		return true;
	for (size_t i = 0; i < ledger->hold_count; i++) {
		if (ledger->holds[i].since <= file)
			return true;
	}
	return false;
}

/* Close earlier incarnations without a live attempt; their numbers, which holds know, stay. */
static void forget_old(struct rv_ledger *ledger)
{
	for (size_t i = 0; i + 1 < ledger->file_count; i++) {
		if (ledger->files[i].fd >= 0 && !is_needed(ledger, i)) {
			(void)close(ledger->files[i].fd);
			ledger->files[i].fd = -1;
		}
	}
}

static int as_ledger(struct rv_error *err)
{
	if (err->code != RV_E_NOMEM)
		err->code = RV_E_LEDGER;
	return -1;
}

int rv_ledger_open(struct rv_ledger **out, const char *path, const struct rv_ledger_options *options,
		   struct rv_error *err)
{
	struct rv_ledger *ledger = calloc(1, sizeof *ledger);

	*out = NULL;
	if (ledger == NULL)
		return rv_error_nomem(err);
	ledger->options = *options;
	ledger->path = strdup(path);
	if (ledger->path == NULL) {
		rv_ledger_close(ledger);
		return rv_error_nomem(err);
	}
	if (adopt(ledger, err) != 0) {
		rv_ledger_close(ledger);
		return as_ledger(err);
	}
	*out = ledger;
	return 0;
}

void rv_ledger_close(struct rv_ledger *ledger)
{
	if (ledger == NULL)
		return;
	for (size_t i = 0; i < ledger->file_count; i++) {
		if (ledger->files[i].fd >= 0)
			(void)close(ledger->files[i].fd);
	}
	free(ledger->files);
	free(ledger->holds);
	free(ledger->real);
	free(ledger->path);
	free(ledger);
}

/* Lock what the path names now.  A ledger may be renamed away, or deleted, at any time before the
 * lock is had: then the lock is of the wrong file. */
static int lock_current(struct rv_ledger *ledger, int64_t deadline, uint64_t *size, struct rv_error *err)
{
	for (;;) {
		const struct incarnation *file = current(ledger);
		struct stat st;

		if (rv_append_lock(file->fd, deadline, err) != 0)
			return rv_error_wrap(err, "%s", ledger->path);
		if (stat(ledger->path, &st) != 0) {
			if (errno != ENOENT) { /* not known to be renamed: opened again, it would be its own rival */
				(void)rv_error_set(err, RV_E_LEDGER, errno, "%s", ledger->path);
				rv_append_unlock(file->fd);
				return -1;
			}
		} else if (st.st_dev == file->dev && st.st_ino == file->ino) {
			*size = (uint64_t)st.st_size;
			return 0;
		}
		rv_append_unlock(file->fd);
		if (rv_clock_left_ms(deadline) == 0)
			return rv_error_set(err, RV_E_LEDGER, 0, "%s: renamed again and again", ledger->path);
		if (adopt(ledger, err) != 0)
			return -1;
		forget_old(ledger);
	}
}

static int is_torn(int fd, uint64_t size, bool *torn, struct rv_error *err)
{
	char last = '\n';

	if (size > 0 && rv_io_pread_all(fd, &last, 1, (off_t)size - 1, err) != 0)
		return -1;
	*torn = last != '\n';
	return 0;
}

/* A repair that failed between its overwrite and setting O_APPEND again must not let the next row land
 * on others. */
static int ensure_append_mode(int fd, struct rv_error *err)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || ((flags & O_APPEND) == 0 && fcntl(fd, F_SETFL, flags | O_APPEND) != 0))
		return rv_error_set(err, RV_E_LEDGER, errno, "fcntl");
	return 0;
}

static int repair(struct rv_ledger *ledger, bool torn, int64_t deadline, struct rv_error *err)
{
	struct rv_mend mend = { .fd = current(ledger)->fd, .path = ledger->path, .real = ledger->real,
				.deadline_ms = deadline, .lease_ms = LEASE_MS };
	bool crashed = ledger->suspect || rv_sidecar_is_ours(ledger->path);
	struct rv_repair_result result = { .action = RV_REPAIR_NONE };

	if (ledger->suspect && ensure_append_mode(mend.fd, err) != 0)
		return -1;
	ledger->suspect = true;
	if (torn && rv_mend_tail(&mend, &result, err) != 0)
		return rv_error_wrap(err, "%s: repair", ledger->path);
	if ((crashed || result.older_copy) && rv_finish_leftovers(&mend, &result, err) != 0)
		return rv_error_wrap(err, "%s: repair", ledger->path);
	ledger->suspect = false;
	return 0;
}

/* Under the append lock. */
static int append_locked(struct rv_ledger *ledger, const void *rows, size_t len, uint64_t size, int64_t deadline,
			 struct rv_error *err)
{
	int fd = current(ledger)->fd;
	ssize_t n;
	bool torn;

	if (is_torn(fd, size, &torn, err) != 0)
		return rv_error_wrap(err, "%s", ledger->path);
	if ((torn || ledger->suspect || rv_sidecar_exists(ledger->path)) && repair(ledger, torn, deadline, err) != 0)
		return -1;
	do
		n = write(fd, rows, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return rv_error_set(err, RV_E_LEDGER, errno, "append to %s", ledger->path);
	if ((size_t)n != len)
		return rv_error_set(err, RV_E_LEDGER, 0, "append to %s: only %zd of %zu bytes were written", ledger->path, n, len);
	/* One sync after the lock is given back could serve several dispatches; it is taken here, before
	 * the append is confirmed. */
	if (ledger->options.power && fdatasync(fd) != 0)
		return rv_error_set(err, RV_E_LEDGER, errno, "sync %s", ledger->path);
	return 0;
}

int rv_ledger_append(struct rv_ledger *ledger, const void *rows, size_t len, struct rv_error *err)
{
	return rv_ledger_append_if(ledger, NULL, rows, len, err);
}

int rv_ledger_append_if(struct rv_ledger *ledger, const struct rv_ledger_guard *guard, const void *rows, size_t len,
			struct rv_error *err)
{
	int64_t deadline = rv_clock_mono_ms() + ledger->options.wait_ms;
	uint64_t size = 0;
	int result;

	if (len == 0)
		return 0;
	if (len > WRITE_MAX)
		return rv_error_set(err, RV_E_LEDGER, 0, "append to %s: %zu bytes are more than one write", ledger->path, len);
	if (lock_current(ledger, deadline, &size, err) != 0)
		return as_ledger(err);
	result = guard != NULL ? guard->ask(guard->context, err) : 0;
	if (result == 0)
		result = append_locked(ledger, rows, len, size, deadline, err);
	rv_append_unlock(current(ledger)->fd);
	return result == 0 ? 0 : as_ledger(err);
}

static bool is_held_here(const struct rv_ledger *ledger, int64_t lock)
{
	for (size_t i = 0; i < ledger->hold_count; i++) {
		if (ledger->holds[i].lock == lock)
			return true;
	}
	return false;
}

int rv_ledger_hold(struct rv_ledger *ledger, int64_t *lock, struct rv_error *err)
{
	int64_t deadline = rv_clock_mono_ms() + ledger->options.wait_ms;
	struct hold *holds = realloc(ledger->holds, (ledger->hold_count + 1) * sizeof *holds);

	if (holds == NULL)
		return rv_error_nomem(err);
	ledger->holds = holds;
	for (;;) {
		uint64_t random;
		int64_t at;

		if (rv_random(&random, sizeof random, err) != 0)
			return as_ledger(err);
		at = RV_LIVENESS_START + (int64_t)(random % (uint64_t)RV_LIVENESS_LEN);
		if (is_held_here(ledger, at)) /* a lock of one's own never conflicts */
			continue;
		if (rv_io_lock(current(ledger)->fd, at, 1, rv_clock_mono_ms(), err) == 0) {
			holds[ledger->hold_count++] = (struct hold){ at, ledger->file_count - 1 };
			*lock = at;
			return 0;
		}
		if (err->code != RV_E_BUSY || rv_clock_left_ms(deadline) == 0)
			return as_ledger(err);
		rv_error_clear(err);
		rv_clock_pause_ms(1); /* another's byte; or a lock on the whole file, which ends or does not */
	}
}

void rv_ledger_drop(struct rv_ledger *ledger, int64_t lock)
{
	struct rv_error ignored = RV_ERROR_INIT; /* an unlock of a held byte has no way to fail */

	for (size_t i = 0; i < ledger->hold_count; i++) {
		if (ledger->holds[i].lock != lock)
			continue;
		for (size_t file = ledger->holds[i].since; file < ledger->file_count; file++) {
			if (ledger->files[file].fd >= 0)
				(void)rv_io_unlock(ledger->files[file].fd, lock, 1, &ignored);
		}
		ledger->holds[i] = ledger->holds[--ledger->hold_count];
		forget_old(ledger);
		return;
	}
}

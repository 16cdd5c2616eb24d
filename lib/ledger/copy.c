#include "lib/ledger/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"

#define SUFFIX ".torn."

static char *copy_path(const char *ledger_path, const char *sha256)
{
	struct rv_buffer text = RV_BUFFER_INIT;

	rv_buffer_add_string(&text, ledger_path);
	rv_buffer_add_string(&text, SUFFIX);
	rv_buffer_add_string(&text, sha256);
	return rv_buffer_steal(&text, NULL);
}

static int hash(struct rv_span bytes, char sha256[RV_SHA256_HEX], struct rv_error *err)
{
	struct rv_sha256 *sha = rv_sha256_new(err);
	int result = sha == NULL ? -1 : rv_sha256_hex(sha, bytes.data, bytes.len, sha256, err);

	rv_sha256_free(sha);
	return result;
}

/* A regular file's bytes; no link is followed, and a FIFO does not hang. */
static int read_copy(const char *path, struct rv_buffer *out, bool sync, struct rv_error *err)
{
	rv_auto_fd int fd = rv_io_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, err);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return rv_error_set(err, RV_E_IO, 0, "%s: not a regular file", path);
	if (rv_io_read_all(fd, out, err) != 0)
		return rv_error_wrap(err, "%s", path);
	if (sync && fsync(fd) != 0)
		return rv_error_set(err, RV_E_IO, errno, "fsync %s", path);
	return 0;
}

/* 1 where the copy that is there holds the bytes (and is synced), 0 where not. */
static int is_kept(const char *path, struct rv_span bytes, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer there = RV_BUFFER_INIT;

	if (read_copy(path, &there, true, err) != 0)
		return -1;
	if (!rv_span_equal((struct rv_span){ there.data, there.len }, bytes))
		return 0;
	return rv_io_sync_parent(path, err) != 0 ? -1 : 1;
}

int rv_copy_keep(const char *ledger_path, struct rv_span bytes, char sha256[RV_SHA256_HEX], struct rv_error *err)
{
	rv_auto_free char *path = NULL;

	if (hash(bytes, sha256, err) != 0)
		return -1;
	path = copy_path(ledger_path, sha256);
	if (path == NULL)
		return rv_error_nomem(err);
	for (int tries = 0; tries < 2; tries++) {
		int made = rv_io_create(path, bytes.data, bytes.len, 0600, true, err);
		int kept = made < 0 ? -1 : is_kept(path, bytes, err); /* what counts is what can be read of it */

		if (kept != 0)
			return kept < 0 ? -1 : made == 0;
		if (unlink(path) != 0 && errno != ENOENT) /* never finished: its repair wrote nothing */
			return rv_error_set(err, RV_E_IO, errno, "remove %s", path);
	}
	return rv_error_set(err, RV_E_IO, 0, "%s: cannot be made", path);
}

int rv_copy_drop(const char *ledger_path, const char *sha256, struct rv_error *err)
{
	rv_auto_free char *path = copy_path(ledger_path, sha256);

	if (path == NULL)
		return rv_error_nomem(err);
	if (unlink(path) != 0 && errno != ENOENT)
		return rv_error_set(err, RV_E_IO, errno, "remove %s", path);
	return rv_io_sync_parent(path, err);
}

void rv_copies_release(struct rv_copies *copies)
{
	for (size_t i = 0; i < copies->count; i++)
		rv_buffer_release(&copies->items[i].bytes);
	free(copies->items);
	*copies = (struct rv_copies){ NULL, 0 };
}

/* What only bears such a name, or is another user's, is no copy to work with. */
static bool is_foreign(struct rv_error *err)
{
	if (err->code != RV_E_IO || (err->errnum != 0 && err->errnum != EACCES && err->errnum != ENOENT &&
				     err->errnum != ELOOP && err->errnum != ENXIO))
		return false;
	rv_error_clear(err);
	return true;
}

static int add_copy(struct rv_copies *copies, const char *ledger_path, const char *sha256, bool drop_partial,
		    struct rv_error *err)
{
	struct rv_copy *items = realloc(copies->items, (copies->count + 1) * sizeof *items);
	rv_auto_free char *path = copy_path(ledger_path, sha256);
	char real[RV_SHA256_HEX];
	struct rv_copy *copy;

	if (items != NULL)
		copies->items = items;
	if (items == NULL || path == NULL)
		return rv_error_nomem(err);
	copy = &items[copies->count];
	memcpy(copy->sha256, sha256, RV_SHA256_HEX);
	rv_buffer_init(&copy->bytes, 0);
	if (read_copy(path, &copy->bytes, false, err) != 0) {
		bool foreign = is_foreign(err);

		rv_buffer_release(&copy->bytes);
		return foreign ? 0 : -1;
	}
	copies->count++;
	if (hash((struct rv_span){ copy->bytes.data, copy->bytes.len }, real, err) != 0)
		return -1;
	if (strcmp(real, sha256) == 0)
		return 0;
	rv_buffer_release(&copies->items[--copies->count].bytes);
	return drop_partial ? rv_copy_drop(ledger_path, sha256, err) : 0;
}

static bool is_sha256(const char *text)
{
	return strlen(text) == RV_SHA256_HEX - 1 && strspn(text, "0123456789abcdef") == RV_SHA256_HEX - 1;
}

int rv_copies_list(struct rv_copies *copies, const char *ledger_path, bool drop_partial, struct rv_error *err)
{
	const char *slash = strrchr(ledger_path, '/');
	const char *base = slash == NULL ? ledger_path : slash + 1;
	size_t base_len = strlen(base);
	rv_auto_free char *dir_path = slash == NULL ? strdup(".") : strndup(ledger_path, (size_t)(slash - ledger_path) + 1);
	rv_auto_dir DIR *dir = NULL;
	const struct dirent *entry;

	*copies = (struct rv_copies){ NULL, 0 };
	if (dir_path == NULL)
		return rv_error_nomem(err);
	dir = opendir(dir_path); /* CLOEXEC by opendir(3) */
	if (dir == NULL)
		return rv_error_set(err, RV_E_IO, errno, "open %s", dir_path);
	while (errno = 0, (entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;

		if (strncmp(name, base, base_len) != 0 || strncmp(name + base_len, SUFFIX, strlen(SUFFIX)) != 0)
			continue;
		name += base_len + strlen(SUFFIX);
		if (is_sha256(name) && add_copy(copies, ledger_path, name, drop_partial, err) != 0)
			return -1;
	}
	return errno == 0 ? 0 : rv_error_set(err, RV_E_IO, errno, "read %s", dir_path);
}

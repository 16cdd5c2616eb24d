#include "lib/ledger/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/digest/digest.h"

#define STALE_MS 10000
#define POLL_MS 20
#define STALE ".stale"
#define OUR_MARK "rv-"

static char *joined(const char *path, const char *suffix)
{
	struct rv_buffer text = RV_BUFFER_INIT;

	rv_buffer_add_string(&text, path);
	rv_buffer_add_string(&text, suffix);
	return rv_buffer_steal(&text, NULL);
}

/* The token inside, as far as one of ours is long; false where there is none to read. */
static bool read_token(const char *path, char token[48])
{
	rv_auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct rv_error ignored = RV_ERROR_INIT;
	ssize_t n;

	if (fd < 0)
		return false;
	n = rv_io_read_some(fd, token, 47, &ignored);
	token[n < 0 ? 0 : n] = '\0';
	return n >= 0;
}

static bool has_token(const char *path, const char *want)
{
	char token[48];

	return read_token(path, token) && strcmp(token, want) == 0;
}

static bool is_stale(const struct stat *st)
{
	int64_t age = rv_clock_wall_ms() - ((int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000);

	return age > STALE_MS || age < -STALE_MS;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Take a stale sidecar away.  By rename and a second look: between the look that found it stale and
 * an unlink its place might have been taken by a fresh one.  A fresh one is put back. */
static int steal(const char *path, const struct stat *seen, struct rv_error *err)
{
	rv_auto_free char *aside = joined(path, STALE);
	struct stat moved;

	if (aside == NULL)
		return rv_error_nomem(err);
	if (rename(path, aside) != 0)
		return errno == ENOENT ? 0 : rv_error_set(err, RV_E_IO, errno, "rename %s", path);
	if (lstat(aside, &moved) == 0 && !is_same(&moved, seen) && link(aside, path) != 0)
		return 0; /* there is a third by now: the owner of this one finds out by its token */
	(void)unlink(aside);
	return 0;
}

/* There is one: steal it if its maker is dead, else wait a moment. */
static int wait_or_steal(const char *path, int64_t deadline_ms, struct rv_error *err)
{
	char token[48];
	struct stat st;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : rv_error_set(err, RV_E_IO, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return rv_error_set(err, RV_E_IO, 0, "%s: not a regular file", path);
	if (is_stale(&st) || (read_token(path, token) && strncmp(token, OUR_MARK, strlen(OUR_MARK)) == 0))
		return steal(path, &st, err);
	if (rv_clock_left_ms(deadline_ms) == 0)
		return rv_error_set(err, RV_E_BUSY, 0, "%s: another writer repairs", path);
	rv_clock_pause_ms(POLL_MS);
	return 0;
}

int rv_sidecar_take(struct rv_sidecar *sidecar, const char *ledger_path, int64_t deadline_ms, struct rv_error *err)
{
	rv_auto_free char *path = joined(ledger_path, ".repair-lock");
	char uuid[RV_UUID_TEXT];

	if (path == NULL)
		return rv_error_nomem(err);
	if (rv_uuid(uuid, err) != 0)
		return -1;
	(void)snprintf(sidecar->token, sizeof sidecar->token, OUR_MARK "%s", uuid);
	for (;;) {
		int made = rv_io_create(path, sidecar->token, strlen(sidecar->token), 0600, false, err);

		if (made < 0)
			return -1;
		if (made > 0)
			break;
		if (wait_or_steal(path, deadline_ms, err) != 0)
			return -1;
	}
	if (!has_token(path, sidecar->token)) {
		(void)unlink(path);
		return rv_error_set(err, RV_E_IO, 0, "%s: what was written is not what is there", path);
	}
	sidecar->path = rv_steal_ptr(&path);
	return 0;
}

static bool is_mine(const struct rv_sidecar *sidecar)
{
	return has_token(sidecar->path, sidecar->token);
}

int rv_sidecar_check(const struct rv_sidecar *sidecar, struct rv_error *err)
{
	if (!is_mine(sidecar))
		return rv_error_set(err, RV_E_BUSY, 0, "%s: taken by another writer", sidecar->path);
	if (utimensat(AT_FDCWD, sidecar->path, NULL, AT_SYMLINK_NOFOLLOW) != 0)
		return rv_error_set(err, RV_E_IO, errno, "touch %s", sidecar->path);
	return 0;
}

void rv_sidecar_release(struct rv_sidecar *sidecar)
{
	rv_auto_free char *aside = NULL;

	if (sidecar->path == NULL)
		return;
	aside = joined(sidecar->path, STALE);
	if (aside != NULL)
		(void)unlink(aside); /* of who was killed while it stole: nobody else steals under the append lock */
	if (is_mine(sidecar))
		(void)unlink(sidecar->path);
	free(sidecar->path);
	sidecar->path = NULL;
}

void rv_sidecar_leave(struct rv_sidecar *sidecar)
{
	free(sidecar->path);
	sidecar->path = NULL;
}

bool rv_sidecar_exists(const char *ledger_path)
{
	rv_auto_free char *path = joined(ledger_path, ".repair-lock");
	struct stat st;

	return path != NULL && lstat(path, &st) == 0;
}

bool rv_sidecar_is_ours(const char *ledger_path)
{
	rv_auto_free char *path = joined(ledger_path, ".repair-lock");
	char token[48];

	return path != NULL && read_token(path, token) && strncmp(token, OUR_MARK, strlen(OUR_MARK)) == 0;
}

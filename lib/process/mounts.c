#include "lib/process/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX ((size_t)64 * 1024) /* beyond some 500 mounts a new namespace costs less than to read about them */
#define PIECE ((size_t)4096)         /* what the kernel gives at a time */

static void close_info(struct rv_mounts *mounts)
{
	if (mounts->info >= 0)
		(void)close(mounts->info);
	mounts->info = -1;
}

/* The whole text, of which the end is an empty read; without it the namespace is never used twice. */
static void read_text(struct rv_mounts *mounts)
{
	char *text = malloc(TEXT_MAX);
	size_t len = 0;
	ssize_t n = -1;

	while (text != NULL && len < TEXT_MAX && (n = pread(mounts->info, text + len, TEXT_MAX - len, (off_t)len)) > 0)
		len += (size_t)n;
	free(mounts->text);
	mounts->text = text != NULL && n == 0 && len > 0 ? realloc(text, len) : NULL;
	mounts->len = len;
	if (mounts->text == NULL)
		free(text);
}

/* The old one is held by nobody then, and what was mounted in it is gone. */
static int renew(struct rv_mounts *mounts)
{
	close_info(mounts);
	if (setns(mounts->pristine, CLONE_NEWNS) != 0 || unshare(CLONE_NEWNS) != 0 || chdir("/") != 0)
		return -1;
	mounts->info = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (mounts->info < 0)
		return -1;
	read_text(mounts);
	return 0;
}

bool rv_mounts_begin(struct rv_mounts *mounts)
{
	*mounts = (struct rv_mounts)RV_MOUNTS_INIT;
	mounts->pristine = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (mounts->pristine < 0)
		return false;
	if (renew(mounts) == 0)
		return true;
	(void)setns(mounts->pristine, CLONE_NEWNS);
	(void)close(mounts->pristine);
	mounts->pristine = -1;
	return false;
}

bool rv_mounts_kept(const struct rv_mounts *mounts)
{
	return mounts->pristine >= 0;
}

static bool has_event(const struct rv_mounts *mounts)
{
	struct pollfd look = { .fd = mounts->info, .events = POLLPRI, .revents = 0 };

	return poll(&look, 1, 0) != 0; /* a failed look is a change, too */
}

/* More mounts behind the text would have been an event. */
static bool text_differs(const struct rv_mounts *mounts)
{
	char piece[PIECE];
	size_t at = 0;

	while (at < mounts->len) {
		size_t want = mounts->len - at < sizeof piece ? mounts->len - at : sizeof piece;
		ssize_t n = pread(mounts->info, piece, want, (off_t)at);

		if (n <= 0 || memcmp(piece, mounts->text + at, (size_t)n) != 0)
			return true;
		at += (size_t)n;
	}
	return false;
}

/* A failure is told when the next tool is to start. */
void rv_mounts_leave(struct rv_mounts *mounts)
{
	if (rv_mounts_kept(mounts) && (mounts->info < 0 || mounts->text == NULL || has_event(mounts)))
		(void)renew(mounts);
}

void rv_mounts_compare(struct rv_mounts *mounts)
{
	if (rv_mounts_kept(mounts) && mounts->info >= 0 && mounts->text != NULL && text_differs(mounts))
		(void)renew(mounts);
}

int rv_mounts_ready(struct rv_mounts *mounts)
{
	return !rv_mounts_kept(mounts) || mounts->info >= 0 ? 0 : renew(mounts);
}

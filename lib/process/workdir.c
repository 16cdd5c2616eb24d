#include "lib/process/workdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#define TOOL_NAME_MAX 64

static bool is_safe(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
	       c == '.';
}

int rv_workdir_name(struct rv_buffer *path, const char *base, struct rv_span tool, const char random[7],
		    struct rv_error *err)
{
	size_t len = tool.len < TOOL_NAME_MAX ? tool.len : TOOL_NAME_MAX;

	rv_buffer_clear(path);
	rv_buffer_printf(path, "%s%srulvar-exec-", base, base[strlen(base) - 1] == '/' ? "" : "/");
	for (size_t i = 0; i < len; i++)
		rv_buffer_add_byte(path, is_safe(tool.data[i]) ? tool.data[i] : '_');
	rv_buffer_printf(path, "-%.6s", random);
	(void)rv_buffer_string(path);
	return rv_buffer_check(path, err);
}

/* One removal: the top stays open, the rest is done by names in it. */
struct removal {
	int top;
	unsigned long moved; /* counts the names given to directories that were moved up */
	unsigned long queue; /* the first of them that was not looked at yet */
	unsigned long steps; /* what was unlinked or moved: a pass without a step is the last */
	struct rv_error *first;
};

static void note(struct removal *removal, const char *what)
{
	if (removal->first->code == RV_E_NONE)
		(void)rv_error_set(removal->first, RV_E_IO, errno, "%s", what);
}

static int open_dir(int parent, const char *name)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
	};
	long fd = syscall(SYS_openat2, parent, name, &how, sizeof how);

	if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0)
		fd = syscall(SYS_openat2, parent, name, &how, sizeof how);
	return (int)fd;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

#define MOVED_NAME 32

static void name_moved(char name[MOVED_NAME], unsigned long number)
{
	(void)snprintf(name, MOVED_NAME, ".rv-%lu", number);
}

/* Move a directory up to the top, under a name that is not taken. */
static int move_up(struct removal *removal, int from, const char *name)
{
	char target[MOVED_NAME];
	/* renaming a directory into another parent rewrites its "..": it must be writable itself */
	int may_fail = fchmodat(from, name, 0700, AT_SYMLINK_NOFOLLOW);

	(void)may_fail; /* the rename has the last word */
	do {
		name_moved(target, removal->moved++);
		if (syscall(SYS_renameat2, from, name, removal->top, target, 1U /* RENAME_NOREPLACE */) == 0) {
			removal->steps++;
			return 0;
		}
	} while (errno == EEXIST);
	return -1;
}

/* Unlink all files of a directory; move its sub-directories up (from the top itself: nothing to move). */
static int empty_level(struct removal *removal, int fd, bool is_top)
{
	rv_auto_dir DIR *dir = NULL;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	int left = 0;
	const struct dirent *entry;

	if (copy < 0 || (dir = fdopendir(copy)) == NULL) {
		note(removal, "workdir");
		if (copy >= 0)
			(void)close(copy);
		return -1;
	}
	rewinddir(dir);
	while ((errno = 0, entry = readdir(dir)) != NULL) {
		if (is_dot(entry->d_name))
			continue;
		if (unlinkat(fd, entry->d_name, 0) == 0 || unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0) {
			removal->steps++;
			continue;
		}
		if (!is_top && errno != ENOTDIR && move_up(removal, fd, entry->d_name) == 0)
			continue;
		left++;
	}
	return left;
}

/* umount2(2) knows no directory but the current one, which is the caller's: it may have relative paths to follow. */
static bool detach(int top, const char *name)
{
	rv_auto_fd int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool detached;

	if (here < 0 || fchdir(top) != 0)
		return false;
	detached = umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
	return fchdir(here) == 0 && detached;
}

/* A directory at the top: empty one level of it and remove it. */
static void remove_at_top(struct removal *removal, const char *name)
{
	rv_auto_fd int fd = open_dir(removal->top, name);

	if (fd < 0) {
		if (errno == EXDEV && detach(removal->top, name))
			removal->steps++; /* the next pass sees the plain directory below it */
		else if (errno != ENOENT) /* one of the tool's own names, met before */
			note(removal, "workdir");
		return;
	}
	(void)fchmod(fd, 0700);
	if (empty_level(removal, fd, false) != 0 || unlinkat(removal->top, name, AT_REMOVEDIR) != 0)
		note(removal, "workdir");
	else
		removal->steps++;
}

/* What was moved up, in that order: each level is listed once, however deep the tree. */
static void work_off_queue(struct removal *removal)
{
	char name[MOVED_NAME];

	while (removal->queue < removal->moved) {
		name_moved(name, removal->queue++);
		remove_at_top(removal, name);
	}
}

/* One pass over the directories at the top, and over what they bring up. */
static void top_pass(struct removal *removal)
{
	rv_auto_dir DIR *dir = NULL;
	int copy = fcntl(removal->top, F_DUPFD_CLOEXEC, 3);
	const struct dirent *entry;

	if (copy < 0 || (dir = fdopendir(copy)) == NULL) {
		if (copy >= 0)
			(void)close(copy);
		return;
	}
	rewinddir(dir);
	while ((entry = readdir(dir)) != NULL) {
		if (!is_dot(entry->d_name))
			remove_at_top(removal, entry->d_name);
	}
	work_off_queue(removal);
}

/* One pass is enough for all that can be removed; another one, for as long as anything moves, is for
 * what a mount had hidden. */
static void remove_below(struct removal *removal)
{
	unsigned long before;

	(void)fchmod(removal->top, 0700);
	do {
		before = removal->steps;
		rv_error_clear(removal->first);
		if (empty_level(removal, removal->top, true) == 0)
			return;
		top_pass(removal);
	} while (removal->steps > before);
}

int rv_workdir_remove(const char *path, struct rv_error *err)
{
	struct rv_error first = RV_ERROR_INIT;
	struct removal removal = { .top = -1, .moved = 0, .steps = 0, .first = &first };

	if (rmdir(path) == 0 || errno == ENOENT)
		return 0; /* empty, as most are */
	if (errno == ENOTDIR && unlink(path) == 0)
		return 0; /* the tool put a file or a link in its place: that goes, and not what it points at */
	removal.top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (removal.top < 0 && errno == EACCES && chmod(path, 0700) == 0)
		removal.top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (removal.top >= 0) {
		remove_below(&removal);
		(void)close(removal.top);
	}
	if (rmdir(path) == 0 || errno == ENOENT)
		return 0;
	if (first.code != RV_E_NONE) {
		*err = first;
		return rv_error_wrap(err, "cannot remove %s", path);
	}
	return rv_error_set(err, RV_E_IO, errno, "cannot remove %s", path);
}

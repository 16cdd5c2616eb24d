/* The end of groups: what is in them is killed, and they are removed, also when nobody else is left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/process/cgroup_tree.h"

#define END_MS 700
#define JANITOR_MS 10000 /* what dies with rv-exec is given so long to be gone */

int rv_cgroup_file_write(int dir, const char *file, const char *text, struct rv_error *err)
{
	rv_auto_fd int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return rv_error_set(err, RV_E_CONFIG, errno, "%s to %s", text, file);
	return 0;
}

int64_t rv_cgroup_file_count(int dir, const char *file, const char *key)
{
	rv_auto_fd int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	const char *line = text;

	if (n <= 0)
		return -1;
	text[n] = '\0';
	while (line != NULL && *line != '\0') {
		if (strncmp(line, key, strlen(key)) == 0)
			return strtoll(line + strlen(key), NULL, 10);
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
	return -1;
}

/* ---- killing ---- */

static bool lists(int parent, const char *path, pid_t pid)
{
	rv_auto_fd int fd = openat(parent, path, O_RDONLY | O_CLOEXEC);
	rv_auto_file FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	long listed;

	if (file == NULL)
		return false;
	fd = -1; /* the file's */
	while (fscanf(file, "%ld", &listed) == 1) {
		if (listed == (long)pid)
			return true;
	}
	return false;
}

/* A number may be somebody else's by the time of the signal: hold it, and look whether it is listed still. */
static void kill_one(int parent, const char *path, pid_t pid)
{
	rv_auto_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd >= 0 && lists(parent, path, pid))
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

static void kill_all(int parent, const char *name)
{
	char path[320];
	struct rv_error ignored = RV_ERROR_INIT;
	rv_auto_fd int fd = -1;
	rv_auto_file FILE *file = NULL;
	long pid;

	(void)snprintf(path, sizeof path, "%.255s/cgroup.kill", name);
	if (rv_cgroup_file_write(parent, path, "1", &ignored) == 0)
		return; /* version 2, since Linux 5.14: complete, whatever forks meanwhile */
	(void)snprintf(path, sizeof path, "%.255s/cgroup.procs", name);
	fd = openat(parent, path, O_RDONLY | O_CLOEXEC);
	file = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (file == NULL)
		return;
	fd = -1; /* the file's */
	while (fscanf(file, "%ld", &pid) == 1) {
		if (pid > 1)
			kill_one(parent, path, (pid_t)pid);
	}
}

/* Remove the groups in this one that can be; the descriptor of one that cannot yet, and what is in that is killed; or
 * -1 where none is left.  The directory is the caller's, and closed. */
static int clear_level(int dir)
{
	rv_auto_dir DIR *list = fdopendir(dir);
	const struct dirent *entry;
	int left = -1;

	if (list == NULL)
		(void)close(dir);
	while (list != NULL && (entry = readdir(list)) != NULL) {
		int fd;

		if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    unlinkat(dir, entry->d_name, AT_REMOVEDIR) == 0)
			continue;
		kill_all(dir, entry->d_name);
		fd = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (left >= 0)
			(void)close(left);
		left = fd;
	}
	return left;
}

/* A tool may have made groups in its own.  Each pass goes down to the bottom, so that there is less with each, at
 * whatever depth. */
static void clear_below(int parent, const char *name, int64_t deadline)
{
	int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	while (dir >= 0 && rv_clock_left_ms(deadline) > 0)
		dir = clear_level(dir);
	if (dir >= 0)
		(void)close(dir);
}

static bool end_within(int parent, const char *name, int wait_ms)
{
	int64_t deadline = rv_clock_mono_ms() + wait_ms;

	while (unlinkat(parent, name, AT_REMOVEDIR) != 0) {
		if (errno == ENOENT)
			return true;
		if (errno != EBUSY || rv_clock_left_ms(deadline) == 0)
			return false;
		kill_all(parent, name);
		clear_below(parent, name, deadline);
		rv_clock_pause_ms(1);
	}
	return true;
}

bool rv_cgroup_end(int parent, const char *name)
{
	return end_within(parent, name, END_MS);
}

/* An owner holds a shared lock for as long as it lives; one that has not taken it yet finds its group gone,
 * and refuses the call. */
static bool is_unowned(int parent, const char *name)
{
	rv_auto_fd int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void rv_cgroup_sweep(int parent, const char *prefix, bool unowned)
{
	int copy = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rv_auto_dir DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	const struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && (!unowned || is_unowned(parent, entry->d_name)))
			(void)end_within(parent, entry->d_name, unowned ? END_MS : JANITOR_MS);
	}
}

/* ---- the janitor ---- */

/* It exists since nobody else outlives a killed rv-exec: the workers are killed with it, so that all that is
 * in their namespaces dies.  It keeps nothing open but what it needs, and no signal of a terminal or of a
 * service's end reaches it. */
static int janitor(void *data)
{
	struct rv_cgroups *groups = data;
	int keep[1 + RV_CGROUP_TREES] = { groups->line, -1, -1 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t all;
	char byte;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "rv-janitor", 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	for (int i = 0; i < groups->count; i++)
		keep[i + 1] = groups->trees[i].dir;
	for (int i = 0; i <= groups->count; i++)
		keep[i] = fcntl(keep[i], F_DUPFD_CLOEXEC, 64); /* out of the way of where they go */
	for (int i = 0; i <= groups->count; i++)
		keep[i] = dup2(keep[i], 3 + i);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 || chdir("/") != 0 ||
	    syscall(SYS_close_range, 4U + (unsigned)groups->count, UINT_MAX, 0U) != 0)
		return 125;
	while (read(keep[0], &byte, 1) < 0 && errno == EINTR)
		;
	for (int i = 0; i < groups->count; i++)
		rv_cgroup_sweep(keep[i + 1], groups->prefix, false);
	return 0;
}

int rv_cgroup_start_janitor(struct rv_cgroups *groups, struct rv_error *err)
{
	struct rv_spawn_plan plan = { .child = janitor, .data = groups };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return rv_error_set(err, RV_E_IO, errno, "pipe");
	groups->line = ends[0]; /* what the child has of this is its own */
	if (rv_spawn(&plan, &groups->janitor, err) != 0) {
		(void)close(ends[0]);
		(void)close(ends[1]);
		groups->line = -1;
		return -1;
	}
	(void)close(ends[0]);
	groups->line = ends[1];
	return 0;
}

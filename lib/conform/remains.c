#include "lib/conform/remains.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/process/descend.h"

#define END_MS 2000
#define DYING_MS 1000 /* what was sent SIGKILL a moment ago, a whole namespace perhaps, is not what was left */

/* A zombie's command line is empty. */
static bool carries(int proc, const char *pid, const char *nonce, char *text, size_t size)
{
	char path[40];
	ssize_t n;
	rv_auto_fd int fd = -1;

	(void)snprintf(path, sizeof path, "%.16s/cmdline", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return memmem(text, (size_t)n, nonce, strlen(nonce)) != NULL;
}

static void name_it(struct rv_note *named, const char *pid, char *text)
{
	size_t len = strlen(text);

	/* the words up to the script's text: who it is, not what it says */
	if (text[len + 1] != '\0')
		text[len] = ' ';
	rv_note_printf(named, "%s%s (%.120s)", named->len > 0 ? ", " : "", pid, text);
}

static size_t walk(const char *nonce, struct rv_note *named, int signal_number)
{
	rv_auto_dir DIR *dir = opendir("/proc");
	const struct dirent *entry;
	char text[65536 + 2];
	size_t count = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid())
			continue;
		memset(text, 0, 256);
		if (!carries(dirfd(dir), entry->d_name, nonce, text, sizeof text - 1))
			continue;
		count++;
		if (named != NULL)
			name_it(named, entry->d_name, text);
		if (signal_number != 0) {
			rv_auto_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

			/* held, and still the one that was read about */
			if (pidfd >= 0 && carries(dirfd(dir), entry->d_name, nonce, text, sizeof text - 1))
				(void)syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0);
		}
	}
	return count;
}

size_t rv_remains_count(const char *nonce)
{
	return walk(nonce, NULL, 0);
}

static void await_the_dying(const char *nonce)
{
	int64_t until = rv_clock_mono_ms() + DYING_MS;

	while ((walk(nonce, NULL, 0) > 0 || rv_descend_signal(0, NULL, 0) > 0) && rv_clock_mono_ms() < until)
		rv_clock_pause_ms(10);
}

void rv_remains_end(const char *nonce, struct rv_note *named)
{
	int64_t until = rv_clock_mono_ms() + DYING_MS + END_MS;
	size_t known;
	int all;

	await_the_dying(nonce);
	known = walk(nonce, named, 0);
	all = rv_descend_signal(0, NULL, 0);
	if (all > 0 && (size_t)all > known)
		rv_note_printf(named, "%s%zu without the nonce", known > 0 ? ", and " : "", (size_t)all - known);
	for (;;) {
		int alive = rv_descend_signal(SIGKILL, NULL, 0);

		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		if ((alive <= 0 && walk(nonce, NULL, SIGKILL) == 0) || rv_clock_mono_ms() >= until)
			return;
		rv_clock_pause_ms(5);
	}
}

#include "lib/confine/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

static bool read_small(const char *path, char *text, size_t size)
{
	rv_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;

	text[n > 0 ? n : 0] = '\0';
	return n >= 0;
}

static pid_t find_program(pid_t init)
{
	char path[64], text[64];

	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)init, (int)init);
	return read_small(path, text, sizeof text) ? (pid_t)strtol(text, NULL, 10) : -1;
}

int64_t rv_memory_look(struct rv_memory_watch *watch, pid_t spawned, bool init)
{
	char path[64], text[128], *end;
	long long pages;

	if (watch->program == 0)
		watch->program = init ? find_program(spawned) : spawned;
	if (watch->program < 0) {
		watch->program = 0;
		watch->blind = true;
		return 0;
	}
	if (watch->program == 0)
		return 0;
	(void)snprintf(path, sizeof path, "/proc/%d/statm", (int)watch->program);
	if (!read_small(path, text, sizeof text))
		return 0; /* it has just ended */
	(void)strtoll(text, &end, 10);
	pages = strtoll(end, NULL, 10);
	return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

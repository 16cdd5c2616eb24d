#include "lib/base/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

void rv_signals_default_of(uint64_t ignored)
{
	static const unsigned long action[16] = { 0 }; /* struct kernel_sigaction, all of it zero, on any machine */

	for (long number = 1; number < _NSIG; number++) {
		if ((ignored >> (number - 1) & 1) != 0)
			(void)syscall(SYS_rt_sigaction, number, action, NULL, (size_t)(_NSIG / 8)); /* not KILL and STOP */
	}
}

void rv_signals_default(void)
{
	rv_signals_default_of(UINT64_MAX);
}

uint64_t rv_signals_ignored(void)
{
	static const char name[] = "\nSigIgn:\t";
	rv_auto_fd int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	const char *at;
	char *end;
	uint64_t mask;

	if (n <= 0)
		return UINT64_MAX;
	text[n] = '\0';
	at = strstr(text, name);
	if (at == NULL)
		return UINT64_MAX;
	mask = strtoull(at + sizeof name - 1, &end, 16);
	return *end == '\n' ? mask : UINT64_MAX;
}

static int watch(const int *ends, size_t count)
{
	sigset_t ours;

	(void)sigemptyset(&ours);
	for (size_t i = 0; i < count; i++) {
		struct sigaction now;

		if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			(void)sigaddset(&ours, ends[i]);
	}
	(void)sigprocmask(SIG_BLOCK, &ours, NULL);
	return signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

static const int ends[] = { SIGTERM, SIGINT, SIGHUP, SIGPIPE };

int rv_signals_watch(void)
{
	return watch(ends, 3);
}

int rv_signals_watch_pipe(void)
{
	return watch(ends, 4);
}

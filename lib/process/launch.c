#include "lib/process/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

/* exec resets handlers but neither an ignored signal nor the mask: signal(7). */
static void reset_signals(void)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		(void)sigaction(number, &action, NULL); /* refused for KILL, STOP and libc's own two */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The numbers may overlap 0..2: lift them first, then put each in its place. */
static int place_stdio(const int stdio[3])
{
	int lifted[3];

	for (int i = 0; i < 3; i++) {
		lifted[i] = fcntl(stdio[i], F_DUPFD_CLOEXEC, 10);
		if (lifted[i] < 0)
			return -1;
	}
	for (int i = 0; i < 3; i++) {
		if (dup2(lifted[i], i) < 0)
			return -1;
	}
	return 0;
}

static int set_up(const struct rv_launch *launch, pid_t parent)
{
	if (setsid() < 0 && errno != EPERM)
		return -1;
	if (place_stdio(launch->stdio) != 0)
		return -1;
	/* CLOEXEC and not close: the report pipe must live until the exec */
	if (syscall(SYS_close_range, 3U, UINT_MAX, CLOSE_RANGE_CLOEXEC) != 0)
		return -1;
	if (launch->own_mounts)
		(void)unshare(CLONE_NEWNS); /* only an ordinary worker cannot, and then no tool can mount either */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	if (launch->guarded_by_parent) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
			return -1;
		if (getppid() != parent) { /* it died before the line above */
			errno = ESRCH;
			return -1;
		}
	}
	(void)umask(022);
	return 0;
}

static void child_main(const struct rv_launch *launch, pid_t parent, int report)
{
	struct rv_launch_report failure = { .step = RV_START_SETUP, .errnum = 0 };

	if (set_up(launch, parent) == 0) {
		failure.step = RV_START_CWD;
		if (launch->cwd == NULL || chdir(launch->cwd) == 0) {
			failure.step = RV_START_EXEC;
			reset_signals();
			(void)execve(launch->path, launch->argv, launch->envp);
		}
	}
	failure.errnum = errno;
	while (write(report, &failure, sizeof failure) < 0 && errno == EINTR)
		;
	_exit(127);
}

pid_t rv_launch(const struct rv_launch *launch, int *report)
{
	int ends[2];
	pid_t parent = getpid();
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return -1;
	pid = fork();
	if (pid == 0)
		child_main(launch, parent, ends[1]);
	(void)close(ends[1]);
	if (pid < 0) {
		int saved = errno;

		(void)close(ends[0]);
		errno = saved;
		return -1;
	}
	*report = ends[0];
	return pid;
}

int rv_launch_report(int report, struct rv_launch_report *failure)
{
	ssize_t n;

	do
		n = read(report, failure, sizeof *failure);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	return n == (ssize_t)sizeof *failure ? -1 : 1;
}

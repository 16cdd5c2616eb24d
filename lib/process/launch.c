#include "lib/process/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/process/slot.h"

#define STACK_SIZE ((size_t)64 * 1024) /* a few calls deep; freed as soon as the exec has happened */

/* The worker's own 0 to 2 are always open, so none of these is among them. */
static int place_stdio(const int stdio[3])
{
	for (int i = 0; i < 3; i++) {
		if (stdio[i] <= 2) {
			errno = EBADF;
			return -1;
		}
		if (dup2(stdio[i], i) < 0)
			return -1;
	}
	return 0;
}

static int set_up(const struct rv_launch *launch)
{
	if (setsid() < 0 && errno != EPERM)
		return -1;
	if (place_stdio(launch->stdio) != 0)
		return -1;
	if (syscall(SYS_close_range, 3U, UINT_MAX, CLOSE_RANGE_CLOEXEC) != 0)
		return -1;
	if (launch->own_mounts)
		(void)unshare(CLONE_NEWNS); /* where a worker cannot, no tool can mount either */
	if (!launch->privileged && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	if (launch->guarded_by_parent) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
			return -1;
		if (getppid() != launch->parent) { /* it died before the line above */
			errno = ESRCH;
			return -1;
		}
	}
	(void)umask(022);
	return 0;
}

/* Hard and soft, so that the tool cannot take it back; never more than what held before. */
static int limit(int resource, uint64_t value)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)resource, &now) != 0)
		return -1;
	if (now.rlim_max != RLIM_INFINITY && now.rlim_max < value)
		value = now.rlim_max;
	now.rlim_max = now.rlim_cur = value;
	return setrlimit((__rlimit_resource_t)resource, &now);
}

static int set_limits(const struct rv_launch *launch)
{
	for (int i = 0; i < launch->group_count; i++) {
		if (write(launch->groups[i], "0", 1) != 1)
			return -1;
	}
	if (launch->cpu_seconds > 0 && limit(RLIMIT_CPU, (uint64_t)launch->cpu_seconds) != 0)
		return -1;
	return launch->data_bytes != UINT64_MAX ? limit(RLIMIT_DATA, launch->data_bytes) : 0;
}

static int to_cwd(struct rv_launch *launch)
{
	launch->step = RV_START_CWD;
	return chdir(launch->cwd);
}

static int enclose(struct rv_launch *launch)
{
	if (launch->enclosure == NULL)
		return 0;
	launch->step = RV_START_ENCLOSE;
	return launch->enclosure->enter(launch->enclosure->data, launch->cwd);
}

static int child_main(void *data)
{
	struct rv_launch *launch = data;
	sigset_t none;

	launch->step = RV_START_SETUP;
	if (set_up(launch) == 0) {
		launch->step = RV_START_LIMITS;
		if (set_limits(launch) == 0 && enclose(launch) == 0 && to_cwd(launch) == 0) {
			(void)sigemptyset(&none);
			(void)sigprocmask(SIG_SETMASK, &none, NULL); /* exec keeps it; the dispositions are the worker's */
			launch->step = RV_START_OK; /* before the exec: behind it there is nobody to say so */
			(void)execve(launch->path, launch->argv, launch->envp);
			launch->step = RV_START_EXEC;
		}
	}
	launch->errnum = errno;
	_exit(127);
}

pid_t rv_launch(struct rv_launch *launch)
{
	rv_auto_free char *stack = aligned_alloc(16, STACK_SIZE);
	pid_t pid;

	if (stack == NULL)
		return -1;
	launch->parent = getpid();
	launch->step = RV_START_FORK;
	pid = clone(child_main, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, launch);
	if (pid > 0 && launch->step == RV_START_FORK) { /* killed before its first step */
		launch->step = RV_START_SETUP;
		launch->errnum = EINTR;
	}
	return pid;
}

#include "lib/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/idmap.h"
#include "lib/base/io.h"

static pid_t clone_with_pidfd(uint64_t namespaces, int *pidfd)
{
	struct clone_args args = {
		.flags = namespaces | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid = syscall(SYS_clone3, &args, sizeof args);

	if (pid < 0 && (errno == ENOSYS || errno == EPERM)) /* EPERM: some seccomp profiles; clone decides */
		pid = syscall(SYS_clone, (unsigned long)(namespaces | CLONE_PIDFD | SIGCHLD), NULL, pidfd, NULL, 0UL);
	return (pid_t)pid;
}

/* Wait at the gate: one byte means go, end of file means that the parent is gone or gave up. */
static void child_main(const struct rv_spawn_plan *plan, int gate)
{
	char go;
	ssize_t n;

	do
		n = read(gate, &go, 1);
	while (n < 0 && errno == EINTR);
	(void)close(gate);
	_exit(n == 1 ? plan->child(plan->data) : 125);
}

int rv_spawn(const struct rv_spawn_plan *plan, struct rv_child *child, struct rv_error *err)
{
	int gate[2];

	if (pipe2(gate, O_CLOEXEC) != 0)
		return rv_error_set(err, RV_E_IO, errno, "pipe");
	child->pid = clone_with_pidfd(plan->namespaces, &child->pidfd);
	if (child->pid == 0) {
		(void)close(gate[1]);
		child_main(plan, gate[0]);
	}
	(void)close(gate[0]);
	if (child->pid < 0) {
		(void)rv_error_set(err, plan->namespaces != 0 ? RV_E_CONFIG : RV_E_IO, errno, "clone");
		(void)close(gate[1]);
		return -1;
	}
	(void)fcntl(child->pidfd, F_SETFD, FD_CLOEXEC);
	if ((plan->parent_setup != NULL && plan->parent_setup(child->pid, plan->data, err) != 0) ||
	    rv_io_write_all(gate[1], "g", 1, err) != 0) {
		(void)close(gate[1]);
		(void)rv_child_kill(child, 1000, NULL);
		return -1;
	}
	(void)close(gate[1]);
	return 0;
}

int rv_child_kill(struct rv_child *child, int wait_ms, int *status)
{
	int64_t deadline = rv_clock_mono_ms() + wait_ms;
	struct pollfd ready = { .fd = child->pidfd, .events = POLLIN, .revents = 0 };
	int got = 0;

	if (child->pid <= 0)
		return 1;
	(void)syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
	while (poll(&ready, 1, rv_clock_left_ms(deadline)) < 0 && errno == EINTR)
		;
	if (waitpid(child->pid, &got, WNOHANG) == 0)
		return 0;
	if (status != NULL)
		*status = got;
	(void)close(child->pidfd);
	*child = (struct rv_child)RV_CHILD_INIT;
	return 1;
}

int rv_spawn_map_self(pid_t child, void *data, struct rv_error *err)
{
	const struct rv_idmap map = {
		.inside_uid = geteuid(), .outside_uid = geteuid(), .inside_gid = getegid(), .outside_gid = getegid(),
	};

	(void)data;
	return rv_idmap_write(child, &map, err);
}

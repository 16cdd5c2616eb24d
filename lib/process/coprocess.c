#include "lib/process/coprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/signals.h"
#include "lib/process/supervise.h"

#define REAP_MS 700

struct start {
	const char *path;
	char *const *argv;
	int in;     /* the child's ends */
	int out;
	int failed; /* where it says why it could not; its close by the exec says that it could */
};

extern char **environ;

/* Behind fork: what goes wrong is said by errno. */
static int child_main(void *data)
{
	const struct start *start = data;
	sigset_t none;

	(void)setsid();
	rv_signals_default();
	(void)sigemptyset(&none);
	if (dup2(start->in, STDIN_FILENO) >= 0 && dup2(start->out, STDOUT_FILENO) >= 0 &&
	    syscall(SYS_close_range, 3U, UINT_MAX, CLOSE_RANGE_CLOEXEC) == 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0)
		(void)execve(start->path, start->argv, environ);
	if (write(start->failed, &errno, sizeof errno) < 0)
		return 126;
	return 127;
}

/* 0: the exec has happened. */
static int failure_of(int fd)
{
	int errnum = 0;
	ssize_t n;

	do
		n = read(fd, &errnum, sizeof errnum);
	while (n < 0 && errno == EINTR);
	return n < 0 ? errno : n == (ssize_t)sizeof errnum ? errnum : 0;
}

static int make_pipe(int *read_end, int *write_end, struct rv_error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return rv_error_set(err, RV_E_IO, errno, "pipe");
	*read_end = ends[0];
	*write_end = ends[1];
	return 0;
}

int rv_coprocess_start(struct rv_coprocess *coprocess, const char *path, char *const *argv, struct rv_error *err)
{
	rv_auto_fd int in = -1, out = -1, failed = -1; /* the child's ends */
	rv_auto_fd int our_in = -1, our_out = -1, why = -1;
	struct start start = { .path = path, .argv = argv };
	struct rv_spawn_plan plan = { .namespaces = 0, .parent_setup = NULL, .child = child_main, .data = &start };
	int errnum;

	*coprocess = (struct rv_coprocess)RV_COPROCESS_INIT;
	if (make_pipe(&in, &our_in, err) != 0 || make_pipe(&our_out, &out, err) != 0 || make_pipe(&why, &failed, err) != 0)
		return -1;
	/* Each end of a pipe is a description of its own: the child's ends stay blocking. */
	if (fcntl(our_in, F_SETFL, O_WRONLY | O_NONBLOCK) != 0 || fcntl(our_out, F_SETFL, O_RDONLY | O_NONBLOCK) != 0)
		return rv_error_set(err, RV_E_IO, errno, "fcntl");
	start.in = in;
	start.out = out;
	start.failed = failed;
	if (rv_spawn(&plan, &coprocess->child, err) != 0)
		return -1;
	(void)close(rv_steal_fd(&failed));
	errnum = failure_of(why);
	if (errnum != 0) {
		rv_coprocess_kill(coprocess);
		return rv_error_set(err, RV_E_SPAWN, errnum, "%s", path);
	}
	coprocess->in = rv_steal_fd(&our_in);
	coprocess->out = rv_steal_fd(&our_out);
	return 0;
}

bool rv_coprocess_has_ended(struct rv_coprocess *coprocess, int wait_ms)
{
	int64_t deadline = rv_clock_mono_ms() + wait_ms;
	struct pollfd ready = { .fd = coprocess->child.pidfd, .events = POLLIN, .revents = 0 };

	if (coprocess->ended || coprocess->child.pid <= 0)
		return true;
	while (poll(&ready, 1, rv_clock_left_ms(deadline)) < 0 && errno == EINTR)
		;
	if (waitpid(coprocess->child.pid, &coprocess->status, WNOHANG) == 0)
		return false;
	coprocess->ended = true;
	(void)close(coprocess->child.pidfd);
	coprocess->child = (struct rv_child)RV_CHILD_INIT;
	return true;
}

void rv_coprocess_close_in(struct rv_coprocess *coprocess)
{
	if (coprocess->in >= 0)
		(void)close(coprocess->in);
	coprocess->in = -1;
}

void rv_coprocess_kill(struct rv_coprocess *coprocess)
{
	if (!coprocess->ended && coprocess->child.pid > 0) {
		/* unreaped, so the number is still its own; its group may be not there yet */
		(void)kill(-coprocess->child.pid, SIGKILL);
		(void)syscall(SYS_pidfd_send_signal, coprocess->child.pidfd, SIGKILL, NULL, 0);
		(void)rv_coprocess_has_ended(coprocess, REAP_MS);
	}
	rv_coprocess_close_in(coprocess);
	if (coprocess->out >= 0)
		(void)close(coprocess->out);
	coprocess->out = -1;
}

void rv_coprocess_describe(const struct rv_coprocess *coprocess, char *text, size_t size)
{
	char name[16];

	if (!coprocess->ended)
		(void)snprintf(text, size, "did not end and was killed");
	else if (WIFSIGNALED(coprocess->status))
		(void)snprintf(text, size, "was killed by %s", rv_signal_name(WTERMSIG(coprocess->status), name));
	else
		(void)snprintf(text, size, "exited with status %d", WEXITSTATUS(coprocess->status));
}

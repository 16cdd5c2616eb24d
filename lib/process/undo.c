#include "lib/process/undo.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"

#define UNDO_MS 20000 /* how long an engine may take */

void rv_undoing_forget(struct rv_undoing *undoing)
{
	free(undoing->memory);
	undoing->memory = NULL;
	undoing->words = NULL;
	undoing->killed = false;
}

void rv_undoing_keep(struct rv_undoing *undoing, struct rv_plan_view *view, uint64_t length, bool started)
{
	bool kept = started && undoing->run != NULL && view->undo[0] != NULL;
	size_t secret = kept ? (size_t)(view->undo[0] - view->path) : (size_t)length;

	explicit_bzero(view->path, secret);
	if (!kept) {
		free(view->memory);
		return;
	}
	rv_undoing_forget(undoing);
	undoing->memory = view->memory;
	undoing->words = view->undo;
}

static int await(pid_t pid, int children)
{
	int64_t deadline = rv_clock_mono_ms() + UNDO_MS;
	struct pollfd dead = { .fd = children, .events = POLLIN, .revents = 0 };
	struct signalfd_siginfo info;
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (rv_clock_left_ms(deadline) == 0) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, &status, 0);
			return ETIMEDOUT;
		}
		(void)poll(&dead, 1, rv_clock_left_ms(deadline));
		while (read(children, &info, sizeof info) > 0)
			;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EBUSY;
}

int rv_undoing_do(struct rv_undoing *undoing, int children)
{
	int failed;
	pid_t pid;

	if (undoing->words == NULL)
		return 0;
	pid = fork();
	if (pid == 0)
		_exit(undoing->run(undoing->words, undoing->killed));
	failed = pid < 0 ? errno : await(pid, children);
	rv_undoing_forget(undoing);
	return failed;
}

/* The helper as a process: started, heard, ended. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/helper.h"
#include "lib/base/io.h"
#include "lib/base/signals.h"
#include "lib/confine/unpack.h"
#include "lib/process/spawn.h"
#include "lib/process/supervise.h"

#define CHUNK ((size_t)RV_UNPACK_BLOCK + RV_UNPACK_HEADER)
#define EXIT_MS 5000 /* from the end of what it says to its own */

struct start {
	const struct rv_unpack_plan *plan;
	int out;
	pid_t parent;
};

/* In the child, without the heap.  The death of the parent is its own from here on, over the exec too. */
static int become_helper(void *data)
{
	static char name[] = "rv-unpack", zone[] = "TZ=UTC0", locale[] = "LC_ALL=C";
	const struct start *start = data;
	char *const argv[] = { name, NULL };
	char *const envp[] = { zone, locale, NULL };
	char record[RV_UNPACK_HEADER + sizeof(int32_t)] = { RV_UNPACK_UNSTARTED, sizeof(int32_t) };
	sigset_t none;
	int32_t errnum;
	int null;

	(void)sigemptyset(&none);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != start->parent)
		return 125;
	rv_signals_default();
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	null = open("/dev/null", O_RDWR | O_CLOEXEC); /* what it says elsewhere may hold anything */
	if (null >= 0 && dup2(start->plan->archive, 0) == 0 && dup2(start->out, 1) == 1 && dup2(null, 2) == 2)
		(void)execve(start->plan->helper, argv, envp);
	errnum = errno;
	memcpy(record + RV_UNPACK_HEADER, &errnum, sizeof errnum);
	(void)!write(start->out, record, sizeof record);
	return 125;
}

/* 1: something can be read, or is at its end. */
static int await(const struct rv_unpack_plan *plan, int from, int64_t deadline_ms, struct rv_error *err)
{
	struct pollfd ready[] = { { .fd = from, .events = POLLIN }, { .fd = plan->cancel, .events = POLLIN } };
	int n;

	do
		n = poll(ready, 2, rv_clock_left_ms(deadline_ms));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return rv_error_set(err, RV_E_IO, errno, "poll");
	if (n == 0 || rv_clock_left_ms(deadline_ms) == 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: no whole archive: its reader was ended, since it took "
							 "more than %d s", plan->wall_ms / 1000);
	if (ready[1].revents != 0)
		return rv_error_set(err, RV_E_ABORTED, 0, "cancelled while an archive was read");
	return 1;
}

static int hear(const struct rv_unpack_plan *plan, int from, struct rv_unpack_taker *taker, struct rv_error *err)
{
	int64_t deadline = rv_clock_mono_ms() + plan->wall_ms;
	rv_auto_free char *chunk = malloc(CHUNK);

	if (chunk == NULL)
		return rv_error_nomem(err);
	for (;;) {
		ssize_t n;

		if (await(plan, from, deadline, err) < 0)
			return -1;
		n = rv_io_read_some(from, chunk, CHUNK, err);
		if (n <= 0)
			return (int)n;
		if (rv_unpack_take(taker, chunk, (size_t)n, err) != 0)
			return -1;
	}
}

/* Everything was said, or it stopped in the middle: how it ended tells the two apart, and a bad end unsays all. */
static int judge(const struct rv_unpack_taker *taker, int status, struct rv_error *err)
{
	char name[16];

	if (WIFSIGNALED(status))
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: no whole archive: its reader was ended by %s%s",
				    rv_signal_name(WTERMSIG(status), name),
				    WTERMSIG(status) == SIGSYS    ? ", since it asked for what no reader needs"
				    : WTERMSIG(status) == SIGXCPU ? ", since it took too much processor time"
								  : "");
	if (WEXITSTATUS(status) != 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: no whole archive: its reader exited with %d",
				    WEXITSTATUS(status));
	if (!rv_unpack_taker_has_all(taker))
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: no whole archive: its reader ended early");
	return 0;
}

/* Its own exit is waited for where it has said all, so that a signal is seen as what it was; else it is killed. */
static int end(struct rv_child *child, bool heard, int *status, struct rv_error *err)
{
	struct pollfd ready = { .fd = child->pidfd, .events = POLLIN };
	int64_t deadline = rv_clock_mono_ms() + EXIT_MS;

	while (heard && poll(&ready, 1, rv_clock_left_ms(deadline)) < 0 && errno == EINTR)
		;
	if (rv_child_kill(child, EXIT_MS, status) == 1)
		return 0;
	return rv_error_set(err, RV_E_IO, 0, "snapshot: the helper that reads archives cannot be ended: process %d", (int)child->pid);
}

int rv_unpack_run(const struct rv_unpack_plan *plan, struct rv_snapshot *snapshot, struct rv_error *err)
{
	struct start start = { .plan = plan, .out = -1, .parent = getpid() };
	const struct rv_spawn_plan spawn = { .child = become_helper, .data = &start };
	struct rv_child child = RV_CHILD_INIT;
	struct rv_unpack_taker taker;
	int ends[2];
	int status = 0;
	int result;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return rv_error_set(err, RV_E_IO, errno, "pipe");
	rv_io_enlarge_pipe(ends[0]);
	start.out = ends[1];
	result = rv_spawn(&spawn, &child, err);
	(void)close(ends[1]);
	if (result == 0) {
		struct rv_error ending = RV_ERROR_INIT;

		rv_unpack_taker_init(&taker, snapshot);
		result = hear(plan, ends[0], &taker, err);
		if (end(&child, result == 0, &status, &ending) != 0 && result == 0) {
			*err = ending;
			result = -1;
		}
		if (result == 0)
			result = judge(&taker, status, err);
		rv_unpack_taker_release(&taker);
	}
	(void)close(ends[0]);
	return result;
}

int rv_snapshot_read_archive(struct rv_snapshot *snapshot, int fd, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer helper = RV_BUFFER_INIT;
	struct rv_unpack_plan plan = { .archive = fd, .cancel = snapshot->cancel, .wall_ms = RV_UNPACK_WALL_MS };

	if (rv_helper_find(&helper, "rv-unpack", err) != 0) {
		err->code = RV_E_IO;
		return rv_error_wrap(err, "snapshot: archives are read by a part of this package (rv-tools) that is not there");
	}
	plan.helper = helper.data;
	return rv_unpack_run(&plan, snapshot, err);
}

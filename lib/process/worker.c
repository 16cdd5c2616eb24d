/*
 * The worker of a slot.  It exists because only a process that outlives the tool can end all that
 * the tool left behind, and only one that the tool can neither signal nor outlive can be relied on:
 * pid 1 of a PID namespace.  Races that it closes:
 *
 *  - the host dies during a run: PDEATHSIG kills this process and the kernel then kills the whole
 *    namespace; as a subreaper (no namespace) it sees end of file instead and walks its descendants;
 *  - the host dies between making the workdir and writing the intent that names it: the directory was
 *    announced before it was made (rv_slot_arm), and is removed here while it is empty;
 *  - the host is stopped: deadlines are kept here and not there;
 *  - the host dies between the outcome's decision and the workdir's removal: an empty one is removed
 *    before the end is told, any other's removal was asked for first (DISCARD), and happens all the same;
 *  - the host dies while an engine runs something for it: the run's plan said what undoes it, and that is
 *    done here, after the engine's client is dead.
 *
 * It reads no secret but the plan that it runs, keeps no descriptor of the host's, and is undumpable.
 */
#include "lib/process/worker.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/signals.h"
#include "lib/process/descend.h"
#include "lib/process/inherited.h"
#include "lib/process/launch.h"
#include "lib/process/mounts.h"
#include "lib/process/plan.h"
#include "lib/process/slice.h"
#include "lib/process/slot.h"
#include "lib/process/spawn.h"
#include "lib/process/undo.h"
#include "lib/process/wire.h"
#include "lib/process/workdir.h"

/* How long the dead are waited for before they are reported as survivors. */
#define REAP_MS 700
/* An engine's client that is killed within a create leaves half a container, which the engine does not know; asked to
 * end, it ends between such steps.  One that passes the signal on to its tool instead is killed then. */
#define CLIENT_MS 1500
#define RUN_FDS 3 /* that come with a run in any case */

struct worker {
	int socket;
	int children; /* signalfd for SIGCHLD */
	bool contained; /* pid 1: kill(-1) reaches everything and nothing can leave */
	bool own_proc;
	bool may_mount; /* root, and in no user namespace: so might a tool */
	struct rv_mounts mounts;
	struct rv_wire_page *page;
	const struct rv_enclosure *enclosure;
	int oom_score; /* its own; -1: cannot be read */
	struct rv_inherited inherited; /* before any tool */
	/* the run */
	pid_t tool; /* -1: none */
	int64_t started_us;
	int64_t deadline_ms; /* monotonic; of the tool, then of the grace */
	int64_t grace_ms;
	bool terminating;
	char *cwd; /* owned: the directory that goes with the run; NULL: it stays */
	int64_t cpu_seconds; /* the tool's limit; 0: none */
	bool client; /* RV_RUN_CLIENT */
	struct rv_undoing undoing;
	struct rv_wire_message done;
};

/* ---- killing and reaping ---- */

static int signal_all(const struct worker *worker, int number)
{
	if (worker->client)
		return worker->tool > 0 && kill(worker->tool, number) == 0 ? 1 : 0;
	if (worker->contained)
		return kill(-1, number) == 0 ? 1 : 0; /* ESRCH: nobody left */
	return rv_descend_signal(number, NULL, 0);
}

static void count_usage(struct worker *worker, const struct rusage *usage)
{
	int64_t rss = (int64_t)usage->ru_maxrss * 1024;

	worker->done.user_us += (int64_t)usage->ru_utime.tv_sec * 1000000 + usage->ru_utime.tv_usec;
	worker->done.system_us += (int64_t)usage->ru_stime.tv_sec * 1000000 + usage->ru_stime.tv_usec;
	if (rss > worker->done.max_rss_bytes)
		worker->done.max_rss_bytes = rss;
}

/* Was the tool killed at its limit?  Its own time, which its zombie still has, tells: what wait4(2) counts is
 * also that of its children, who have limits of their own. */
static void look_at_cpu(struct worker *worker, const siginfo_t *dead)
{
	/* its CPUCLOCK_PROF, in ticks: what the kernel holds to the limit, unlike the finer CPUCLOCK_SCHED of
	 * clock_getcpuclockid(3) */
	clockid_t clock = (clockid_t)(~(unsigned)dead->si_pid << 3);
	struct timespec used;

	if (dead->si_code == CLD_KILLED && dead->si_status == SIGKILL && worker->done.reason == RV_RUN_NATURAL &&
	    clock_gettime(clock, &used) == 0)
		worker->done.cpu_reached = used.tv_sec >= worker->cpu_seconds ? 1 : 0;
}

/* Which child is to be reaped next.  Where CPU time is limited the tool is looked at first, and reaped by name,
 * lest it dies between the look and the reaping. */
static pid_t next_dead(struct worker *worker, int *status, struct rusage *usage)
{
	siginfo_t dead = { .si_pid = 0 };

	if (worker->cpu_seconds == 0)
		return wait4(-1, status, WNOHANG | __WALL, usage);
	if (waitid(P_ALL, 0, &dead, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0)
		return -1;
	if (dead.si_pid == 0)
		return 0;
	if (dead.si_pid == worker->tool)
		look_at_cpu(worker, &dead);
	return wait4(dead.si_pid, status, WNOHANG | __WALL, usage);
}

/* Reap what is dead, at most some at a time so that a storm of zombies cannot keep the deadline
 * waiting.  1: the tool itself is among them. */
static int reap_some(struct worker *worker, bool *none_left)
{
	int tool_gone = 0;

	*none_left = false;
	for (int i = 0; i < 1000; i++) {
		struct rusage usage;
		int status;
		pid_t pid = next_dead(worker, &status, &usage);

		if (pid < 0 && errno != ECHILD)
			continue;
		if (pid <= 0) {
			*none_left = pid < 0;
			break;
		}
		if (!WIFEXITED(status) && !WIFSIGNALED(status))
			continue; /* it asked to be traced by us, and has stopped: no end */
		count_usage(worker, &usage);
		if (pid == worker->tool) {
			worker->done.status = status;
			worker->tool = -1;
			tool_gone = 1;
		}
	}
	return tool_gone;
}

/* The client of an engine alone, for what it started is the engine's; it has so long to end. */
static void signal_client(struct worker *worker, int number, int64_t wait_ms)
{
	int64_t deadline = rv_clock_mono_ms() + wait_ms;
	struct pollfd dead = { .fd = worker->children, .events = POLLIN, .revents = 0 };
	struct signalfd_siginfo info;
	bool none_left;

	if (worker->tool > 0)
		(void)kill(worker->tool, number);
	while (worker->tool > 0) {
		if (reap_some(worker, &none_left) == 1 || rv_clock_left_ms(deadline) == 0)
			break;
		(void)poll(&dead, 1, rv_clock_left_ms(deadline));
		while (read(worker->children, &info, sizeof info) > 0)
			;
	}
}

static int end_client(struct worker *worker)
{
	signal_client(worker, SIGKILL, REAP_MS);
	return worker->tool > 0 ? 1 : 0;
}

/* End everything but this process.  The count of survivors, -1 where it is not known.  `none_left` says
 * that there is no child: then there is no descendant either, for what lost its parent has become ours. */
static int end_all(struct worker *worker, bool none_left)
{
	int64_t deadline = rv_clock_mono_ms() + REAP_MS;
	struct pollfd dead = { .fd = worker->children, .events = POLLIN, .revents = 0 };

	if (none_left)
		return 0;
	for (;;) {
		struct signalfd_siginfo info;
		int alive;

		(void)reap_some(worker, &none_left);
		if (none_left)
			return 0;
		alive = signal_all(worker, SIGKILL);
		(void)reap_some(worker, &none_left);
		if (none_left || (alive == 0 && !worker->contained))
			return 0;
		if (rv_clock_left_ms(deadline) == 0)
			break;
		/* one kill(-1) is complete (fork and it exclude each other); a walk has to be repeated */
		(void)poll(&dead, 1, worker->contained ? rv_clock_left_ms(deadline) : 2);
		while (read(worker->children, &info, sizeof info) > 0)
			;
	}
	if (!worker->contained)
		return rv_descend_signal(0, NULL, 0);
	rv_mounts_leave(&worker->mounts); /* a tool may have mounted something else on /proc */
	return worker->own_proc && rv_mounts_ready(&worker->mounts) == 0 ? rv_descend_count_all() : -1;
}

/* ---- the run ---- */

static void send_done(struct worker *worker)
{
	struct rv_error ignored = RV_ERROR_INIT;

	worker->done.op = RV_WIRE_DONE;
	worker->done.length = 0;
	(void)rv_wire_send(worker->socket, &worker->done, NULL, 0, &ignored); /* gone host: seen as end of file */
}

static void finish(struct worker *worker, bool none_left)
{
	worker->done.duration_us = rv_clock_mono_us() - worker->started_us;
	/* a client below a script that somebody killed, or that broke down, is a status and no signal */
	if (worker->client && (worker->tool > 0 || worker->done.reason != RV_RUN_NATURAL || worker->done.status != 0))
		worker->undoing.killed = true;
	worker->done.survivors = worker->client ? end_client(worker) : end_all(worker, none_left);
	worker->tool = -1;
	rv_mounts_leave(&worker->mounts); /* what is mounted on the workdir keeps it from being removed */
	/* from here on this process must outlive the host for as long as a removal takes */
	if (worker->contained)
		(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	/* most tools leave it empty: one call, and no further word about it */
	worker->done.discard = worker->cwd != NULL && (rmdir(worker->cwd) == 0 || errno == ENOENT);
	free(worker->cwd);
	worker->cwd = NULL;
	worker->done.changed = rv_inherited_differs(&worker->inherited, worker->oom_score);
	send_done(worker);
	rv_mounts_compare(&worker->mounts);
}

static void fail_start(struct worker *worker, int step, int errnum)
{
	worker->done.step = step;
	worker->done.errnum = errnum;
	finish(worker, false);
}

static void run(struct worker *worker, const struct rv_wire_message *message, int *fds)
{
	const char *inside = message->length > 0 ? message->path : NULL;
	struct rv_plan_size size = { message->plan_length, message->argc, message->envc, message->undoc };
	struct rv_plan_view view;
	struct rv_launch launch = {
		.stdio = { fds[0], fds[1], fds[2] },
		.privileged = (message->flags & RV_RUN_PRIVILEGED) != 0,
		.own_mounts = worker->may_mount && worker->enclosure == NULL && !rv_mounts_kept(&worker->mounts),
		.groups = fds + RUN_FDS,
		.group_count = message->groups,
		.cpu_seconds = message->cpu_seconds,
		.data_bytes = message->data_bytes,
		.enclosure = worker->enclosure,
		.guarded_by_parent = !worker->contained,
	};

	memset(&worker->done, 0, offsetof(struct rv_wire_message, path));
	atomic_store(&worker->page->armed, false); /* the intent stands: the directory is named by its row */
	worker->started_us = rv_clock_mono_us();
	worker->deadline_ms = worker->started_us / 1000 + message->timeout_ms;
	worker->grace_ms = message->grace_ms;
	worker->terminating = false;
	worker->cpu_seconds = message->cpu_seconds;
	worker->client = (message->flags & RV_RUN_CLIENT) != 0;
	if (worker->contained)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* a host dead before this line: end of file */
	if (rv_mounts_ready(&worker->mounts) != 0 ||
	    rv_plan_read(inside, fds[RUN_FDS + message->groups], &size, &view) != 0) {
		fail_start(worker, RV_START_SETUP, errno);
		return;
	}
	worker->cwd = message->discard != 0 ? strdup(view.cwd) : NULL; /* no memory: the host asks for it */
	launch.path = view.path;
	launch.cwd = view.cwd;
	launch.argv = view.argv;
	launch.envp = view.envp;
	worker->tool = rv_launch(&launch);
	if (worker->tool < 0)
		fail_start(worker, RV_START_FORK, errno);
	else if (launch.step != RV_START_OK)
		fail_start(worker, launch.step, launch.errnum);
	rv_undoing_keep(&worker->undoing, &view, size.length, launch.step == RV_START_OK);
}

/* What is decided first is the reason for the end. */
static void terminate(struct worker *worker, int reason)
{
	if (worker->tool < 0)
		return;
	if (worker->terminating) { /* asked again, or a flood: the grace is cut short, the first reason stays */
		if (reason != RV_RUN_TIMEOUT) {
			(void)signal_all(worker, SIGKILL);
			worker->deadline_ms = rv_clock_mono_ms();
		}
		return;
	}
	worker->terminating = true;
	worker->done.reason = reason;
	if (reason == RV_RUN_OUTPUT_CAP || worker->grace_ms == 0) {
		(void)signal_all(worker, SIGKILL);
		worker->deadline_ms = rv_clock_mono_ms() + REAP_MS;
		return;
	}
	(void)signal_all(worker, SIGTERM);
	(void)signal_all(worker, SIGCONT); /* a stopped one would not see it */
	worker->deadline_ms = rv_clock_mono_ms() + worker->grace_ms;
}

static void on_deadline(struct worker *worker)
{
	bool none_left;

	if (reap_some(worker, &none_left) == 1 || worker->terminating)
		finish(worker, none_left); /* the grace is over, or it ended by itself in time */
	else
		terminate(worker, RV_RUN_TIMEOUT);
}

/* Also where nothing runs: an end that was seen before its signal leaves that signal, and one that nobody takes would
 * wake this process without end. */
static void on_children(struct worker *worker)
{
	struct signalfd_siginfo info;
	bool none_left;

	/* one is pending at most: what comes behind it shows again */
	if (read(worker->children, &info, sizeof info) < 0 || reap_some(worker, &none_left) == 0)
		return;
	finish(worker, none_left);
}

/* ---- the host's words ---- */

static void discard(struct worker *worker, const char *path)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_wire_message answer;

	memset(&answer, 0, offsetof(struct rv_wire_message, path));
	atomic_store(&worker->page->armed, false);
	if (rv_workdir_remove(path, &err) != 0) {
		answer.errnum = err.errnum != 0 ? err.errnum : EIO;
		(void)strncpy(answer.path, err.message, sizeof answer.path - 1);
		answer.path[sizeof answer.path - 1] = '\0';
		answer.length = (uint32_t)strlen(answer.path) + 1;
	}
	answer.op = RV_WIRE_REMOVED;
	(void)rv_wire_send(worker->socket, &answer, NULL, 0, &err);
}

static void undo(struct worker *worker)
{
	struct rv_error ignored = RV_ERROR_INIT;
	struct rv_wire_message answer;

	memset(&answer, 0, offsetof(struct rv_wire_message, path));
	answer.op = RV_WIRE_UNDONE;
	answer.errnum = rv_undoing_do(&worker->undoing, worker->children);
	(void)rv_wire_send(worker->socket, &answer, NULL, 0, &ignored);
}

/* 0 to go on, -1 when the host is gone. */
static int on_message(struct worker *worker)
{
	struct rv_wire_message message;
	int fds[RV_WIRE_FDS];

	if (rv_wire_receive(worker->socket, &message, fds) <= 0)
		return -1;
	switch (message.op) {
	case RV_WIRE_RUN:
		run(worker, &message, fds);
		explicit_bzero(message.path, message.length); /* credentials are in it */
		break;
	case RV_WIRE_ABORT:
		terminate(worker, RV_RUN_ABORTED);
		break;
	case RV_WIRE_CAP:
		terminate(worker, RV_RUN_OUTPUT_CAP);
		break;
	case RV_WIRE_DISCARD:
		discard(worker, message.path);
		break;
	case RV_WIRE_UNDO:
		undo(worker);
		break;
	default:
		break;
	}
	for (int i = 0; i < RV_WIRE_FDS; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
	return 0;
}

static int turn(struct worker *worker)
{
	struct pollfd ready[2] = {
		{ .fd = worker->socket, .events = POLLIN },
		{ .fd = worker->children, .events = POLLIN },
	};
	int wait = worker->tool > 0 ? rv_clock_left_ms(worker->deadline_ms) : -1;

	if (poll(ready, 2, wait) < 0)
		return errno == EINTR ? 0 : -1;
	if (ready[0].revents != 0 && on_message(worker) != 0)
		return -1;
	if (ready[1].revents != 0)
		on_children(worker);
	if (worker->tool > 0 && rv_clock_left_ms(worker->deadline_ms) == 0)
		on_deadline(worker);
	return 0;
}

/* ---- the beginning ---- */

/* Nothing of the host's stays open here: a pipeline's reader must see the host's end as the end. */
static int drop_descriptors(int socket)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		return -1;
	if (socket > 3 && syscall(SYS_close_range, 3U, (unsigned)socket - 1, 0U) != 0)
		return -1;
	return (int)syscall(SYS_close_range, (unsigned)socket + 1, UINT_MAX, 0U);
}

static bool mount_proc(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
		return false;
	return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
}

/* What it could not be is said in the greeting; then there is no worker. */
static int prepare(struct worker *worker, const struct rv_enclosure *enclosure, struct rv_wire_message *hello)
{
	struct rv_error err = RV_ERROR_INIT;

	worker->enclosure = enclosure;
	if (!worker->contained)
		(void)rv_error_set(&err, RV_E_CONFIG, 0, "there is no PID namespace to enclose");
	else if (enclosure->prepare(enclosure->data, &err) == 0)
		return 0;
	hello->step = RV_START_ENCLOSE;
	(void)strncpy(hello->path, err.message, sizeof hello->path - 1);
	hello->path[sizeof hello->path - 1] = '\0';
	hello->length = (uint32_t)strlen(hello->path) + 1;
	(void)rv_wire_send(worker->socket, hello, NULL, 0, &err);
	return -1;
}

static int begin(struct worker *worker, const struct rv_worker_setup *setup)
{
	struct rv_wire_message hello;
	struct rv_error err = RV_ERROR_INIT;
	sigset_t all;
	sigset_t child;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	rv_signals_default(); /* an exec keeps what is ignored; and SIGCHLD ignored would reap behind our back */
	if (drop_descriptors(setup->socket) != 0)
		return -1;
	(void)setsid(); /* a terminal's stop must not reach the one who keeps the deadline */
	(void)prctl(PR_SET_NAME, "rv-slot", 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	rv_slice_shorten();
	worker->socket = setup->socket;
	worker->page = setup->page;
	worker->undoing.run = setup->undo;
	worker->contained = setup->namespaces && getpid() == 1;
	if (!worker->contained && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		return -1;
	worker->may_mount = worker->contained && geteuid() == 0;
	worker->own_proc = worker->contained && setup->mounts && mount_proc();
	if (worker->own_proc && worker->may_mount && setup->enclosure == NULL)
		(void)rv_mounts_begin(&worker->mounts);
	if (chdir("/") != 0) /* pin no directory of the host's */
		return -1;
	worker->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (worker->children < 0)
		return -1;
	memset(&hello, 0, offsetof(struct rv_wire_message, path));
	hello.op = RV_WIRE_HELLO;
	hello.contained = worker->contained ? 1 : 0;
	if (setup->enclosure != NULL && prepare(worker, setup->enclosure, &hello) != 0)
		return -1;
	worker->oom_score = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
	rv_inherited_read(&worker->inherited, worker->oom_score);
	return rv_wire_send(worker->socket, &hello, NULL, 0, &err);
}

int rv_worker_main(void *setup)
{
	struct worker worker = { .tool = -1, .mounts = RV_MOUNTS_INIT };

	if (begin(&worker, setup) != 0)
		return 125;
	while (turn(&worker) == 0)
		;
	if (worker.client) {
		worker.undoing.killed = worker.undoing.killed || worker.tool > 0;
		signal_client(&worker, SIGTERM, CLIENT_MS);
		(void)end_client(&worker);
	}
	(void)rv_undoing_do(&worker.undoing, worker.children);
	worker.client = false;
	(void)end_all(&worker, false);
	if (atomic_load(&worker.page->armed))
		(void)rmdir(worker.page->path);
	return 0;
}

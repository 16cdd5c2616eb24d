#include "lib/confine/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/confine/control.h"
#include "lib/confine/memory.h"
#include "lib/process/spawn.h"

#define CHUNK 16384 /* on the stack: pages that are touched whether there is output or not */

/* Between two parties: which end is whose. */
struct channel {
	int host, child;
};

struct collect {
	struct rv_facts *facts;
	struct rv_launch_plan *plan;
	const struct rv_bounds *bounds;
	const struct rv_collect_hooks *hooks;
	int cancel;
	struct rv_child child;
	struct channel in, out, err, record, go, status;
	struct rv_control control;
	int64_t started_ms, stopped_ms, ended_ms; /* 0: not yet */
	struct rv_memory_watch memory;
};

bool rv_cancelled(int cancel)
{
	struct pollfd ready = { .fd = cancel, .events = POLLIN, .revents = 0 };

	return cancel >= 0 && poll(&ready, 1, 0) > 0;
}

void rv_facts_release(struct rv_facts *facts)
{
	rv_buffer_release(&facts->out);
	rv_buffer_release(&facts->err);
}

/* ---- the start ---- */

static void close_one(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static int open_channel(struct channel *channel, bool to_host, struct rv_error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return rv_error_set(err, RV_E_IO, errno, "pipe");
	channel->host = ends[to_host ? 0 : 1];
	channel->child = ends[to_host ? 1 : 0];
	if (to_host && fcntl(channel->host, F_SETFL, O_NONBLOCK) != 0)
		return rv_error_set(err, RV_E_IO, errno, "fcntl");
	return 0;
}

static int open_channels(struct collect *run, struct rv_error *err)
{
	bool init = run->plan->boundary.instance.policy->namespaces != 0;

	if (open_channel(&run->in, false, err) != 0 || open_channel(&run->out, true, err) != 0 ||
	    open_channel(&run->err, true, err) != 0 || open_channel(&run->record, true, err) != 0 ||
	    open_channel(&run->go, false, err) != 0)
		return -1;
	close_one(&run->in.host); /* standard input is at its end from the start */
	return init ? open_channel(&run->status, true, err) : 0;
}

static void close_channels(struct collect *run)
{
	struct channel *const all[] = { &run->in, &run->out, &run->err, &run->record, &run->go, &run->status };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		close_one(&all[i]->host);
		close_one(&all[i]->child);
	}
}

static void close_childs_ends(struct collect *run)
{
	struct channel *const all[] = { &run->in, &run->out, &run->err, &run->record, &run->go, &run->status };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		close_one(&all[i]->child);
}

/* The parent's part of the start, while the child waits: its ids, and its group, so that what it takes is counted from the
 * first page on. */
static int set_up(pid_t child, void *data, struct rv_error *err)
{
	const struct collect *run = data;
	const struct rv_cgroup *group = run->plan->group;
	char pid[16];

	(void)snprintf(pid, sizeof pid, "%d", (int)child);
	for (int i = 0; group != NULL && i < RV_CGROUP_TREES; i++) {
		if (group->entries[i] >= 0 && rv_io_write_all(group->entries[i], pid, strlen(pid), err) != 0)
			return rv_error_wrap(err, "cgroup %s", group->name);
	}
	return rv_boundary_map(child, &run->plan->boundary, err);
}

static int child_main(void *data)
{
	struct collect *run = data;

	return rv_boundary_main(&run->plan->boundary);
}

static int start(struct collect *run, struct rv_error *err)
{
	struct rv_boundary *boundary = &run->plan->boundary;
	struct rv_spawn_plan spawn = {
		.namespaces = boundary->instance.policy->namespaces,
		.parent_setup = set_up,
		.child = child_main,
		.data = run,
	};
	int result;

	boundary->stdio[0] = run->in.child;
	boundary->stdio[1] = run->out.child;
	boundary->stdio[2] = run->err.child;
	boundary->record = run->record.child;
	boundary->go = run->go.child;
	boundary->status = run->status.child;
	run->started_ms = rv_clock_mono_ms();
	result = rv_spawn(&spawn, &run->child, err);
	close_childs_ends(run);
	return result;
}

/* ---- stopping ---- */

/* The only signal there is: to a process that is ours and not reaped, by its descriptor and never by its number. */
static void stop(struct collect *run, enum rv_stop reason)
{
	if (run->ended_ms != 0 || run->stopped_ms != 0)
		return;
	run->stopped_ms = rv_clock_mono_ms();
	run->facts->stopped = reason;
	run->facts->kill_sent = syscall(SYS_pidfd_send_signal, run->child.pidfd, SIGKILL, NULL, 0) == 0;
}

/* ---- the record ---- */

static bool is_exact(const struct rv_boundary_report *report, enum rv_limit_name name, uint64_t value)
{
	return report->soft[name] == value && report->hard[name] == value;
}

bool rv_bounds_are_measured(const struct rv_bounds *bounds, const struct rv_boundary_report *report)
{
	return is_exact(report, RV_LIMIT_CPU, (uint64_t)bounds->cpu_seconds) &&
	       is_exact(report, RV_LIMIT_NOFILE, (uint64_t)bounds->max_descriptors) &&
	       is_exact(report, RV_LIMIT_CORE, 0) && is_exact(report, RV_LIMIT_FSIZE, 0) &&
	       is_exact(report, RV_LIMIT_DATA, (uint64_t)bounds->max_data);
}

/* The report is there: let it go, or not.  A refused launcher is not killed: it sees the gate close and exits with 125. */
static void decide(struct collect *run)
{
	static const unsigned char go = RV_BOUNDARY_GO;
	const struct rv_boundary_report *report = &run->facts->report;
	bool refused = report->step != RV_BOUNDARY_READY;

	for (int i = 0; i < RV_EFFECTS; i++)
		refused = refused || report->effects[i] == 0;
	if (refused)
		run->control.refused = true;
	else if (!rv_bounds_are_measured(run->bounds, report))
		stop(run, RV_STOP_LIMITS);
	else if (rv_cancelled(run->cancel))
		stop(run, RV_STOP_CANCELLED);
	else if (run->stopped_ms == 0)
		(void)!write(run->go.host, &go, 1); /* EPIPE: it is gone, and that is seen elsewhere */
	close_one(&run->go.host);
}

static void take_record(struct collect *run)
{
	char chunk[RV_CONFINE_CONTROL_MAX + sizeof(struct rv_boundary_report) + 1];
	ssize_t n = read(run->record.host, chunk, sizeof chunk);
	bool had = run->facts->reported;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_one(&run->record.host);
		run->control.ended = true;
		if (rv_control_admission(&run->control) == RV_ADMISSION_ADMITTED && run->hooks != NULL &&
		    run->hooks->admitted != NULL)
			run->hooks->admitted(run->hooks->data, run->child.pid);
		return;
	}
	rv_control_add(&run->control, chunk, (size_t)n);
	run->facts->reported = rv_control_report(&run->control, &run->facts->report);
	if (!had && run->facts->reported)
		decide(run);
	if (rv_control_is_malformed(&run->control))
		stop(run, RV_STOP_CONTROL);
}

/* ---- output, end ---- */

static void take_output(struct collect *run, int *fd, struct rv_buffer *into)
{
	char chunk[CHUNK];
	ssize_t n = read(*fd, chunk, sizeof chunk);
	struct rv_facts *facts = run->facts;
	uint64_t kept, room;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_one(fd);
		return;
	}
	kept = facts->out.len + facts->err.len;
	room = (uint64_t)run->bounds->max_output - kept;
	rv_buffer_add(into, chunk, (uint64_t)n < room ? (size_t)n : (size_t)room);
	facts->output_bytes += (uint64_t)n;
	if (facts->output_bytes > (uint64_t)run->bounds->max_output)
		stop(run, RV_STOP_OUTPUT);
}

static void take_status(struct rv_facts *facts, int status)
{
	facts->exit_known = true;
	facts->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	facts->exit_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* The process that was spawned has been reaped: how did the program end? */
static void take_end(struct collect *run, const siginfo_t *info)
{
	struct rv_facts *facts = run->facts;
	int status;

	facts->gone = true;
	run->ended_ms = rv_clock_mono_ms();
	if (run->status.host < 0) { /* there is no init: it was the program */
		take_status(facts, info->si_code == CLD_EXITED ? info->si_status << 8 : info->si_status & 0x7f);
		return;
	}
	if (read(run->status.host, &status, sizeof status) == (ssize_t)sizeof status) {
		take_status(facts, status);
	} else if (info->si_code != CLD_EXITED && info->si_status == SIGKILL) {
		facts->exit_known = true; /* init takes everything along */
		facts->exit_signal = SIGKILL;
	} else if (facts->reported && facts->report.step != RV_BOUNDARY_READY && info->si_code == CLD_EXITED) {
		take_status(facts, info->si_status << 8); /* the launcher itself refused, before there was a program */
	} else {
		facts->lost_contact = true;
	}
}

static void reap(struct collect *run)
{
	siginfo_t info = { .si_pid = 0 };

	if (run->ended_ms != 0 || waitid(P_PIDFD, (id_t)run->child.pidfd, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
		return;
	take_end(run, &info);
}

static bool all_closed(const struct collect *run)
{
	return run->out.host < 0 && run->err.host < 0 && run->record.host < 0;
}

static bool is_settled(const struct collect *run, int64_t now)
{
	if (run->ended_ms != 0)
		return all_closed(run) || now >= run->ended_ms + RV_CONFINE_CLOSE_GRACE_MS;
	return run->stopped_ms != 0 && now >= run->stopped_ms + RV_CONFINE_KILL_CONFIRM_MS;
}

/* A group's bound is the kernel's to keep. */
static bool is_watched(const struct collect *run)
{
	return run->bounds->max_memory > 0 && run->plan->group == NULL;
}

static int64_t next_instant(const struct collect *run, int64_t now)
{
	int64_t next = run->started_ms + run->bounds->timeout_ms;

	if (run->ended_ms != 0)
		return run->ended_ms + RV_CONFINE_CLOSE_GRACE_MS;
	if (run->stopped_ms != 0)
		return run->stopped_ms + RV_CONFINE_KILL_CONFIRM_MS;
	if (is_watched(run) && now + RV_CONFINE_MEMORY_WATCH_MS < next)
		next = now + RV_CONFINE_MEMORY_WATCH_MS;
	return next;
}

static void watch(struct collect *run, int64_t now)
{
	if (run->ended_ms != 0 || run->stopped_ms != 0)
		return;
	if (rv_cancelled(run->cancel))
		stop(run, RV_STOP_CANCELLED);
	else if (now >= run->started_ms + run->bounds->timeout_ms)
		stop(run, RV_STOP_TIMEOUT);
	else if (is_watched(run) && run->facts->reported &&
		 rv_memory_look(&run->memory, run->child.pid, run->status.host >= 0) > run->bounds->max_memory)
		stop(run, RV_STOP_MEMORY);
}

static void turn(struct collect *run)
{
	struct pollfd ready[] = {
		{ .fd = run->out.host, .events = POLLIN },
		{ .fd = run->err.host, .events = POLLIN },
		{ .fd = run->record.host, .events = POLLIN },
		{ .fd = run->ended_ms == 0 ? run->child.pidfd : -1, .events = POLLIN },
		{ .fd = run->ended_ms == 0 && run->stopped_ms == 0 ? run->cancel : -1, .events = POLLIN },
	};
	int64_t now = rv_clock_mono_ms();

	if (poll(ready, sizeof ready / sizeof ready[0], rv_clock_left_ms(next_instant(run, now))) > 0) {
		if (ready[0].revents != 0)
			take_output(run, &run->out.host, &run->facts->out);
		if (ready[1].revents != 0)
			take_output(run, &run->err.host, &run->facts->err);
		if (ready[2].revents != 0)
			take_record(run);
		if (ready[3].revents != 0)
			reap(run);
	}
	watch(run, rv_clock_mono_ms());
}

/* Whom the kernel ended for want of memory it did not stop in our name, and the reason is the same. */
static void take_memory(struct collect *run)
{
	struct rv_facts *facts = run->facts;
	struct rv_cgroup_facts group;

	facts->memory_by_group = run->plan->group != NULL;
	if (!facts->memory_by_group)
		return;
	rv_cgroup_measure(run->plan->group, &group);
	if (group.memory && facts->stopped == RV_STOP_NONE)
		facts->stopped = RV_STOP_MEMORY;
}

static void finish(struct collect *run)
{
	struct rv_facts *facts = run->facts;

	facts->pipes_closed = all_closed(run);
	facts->admission = rv_control_admission(&run->control);
	facts->exec_errno = run->control.exec_errno;
	facts->unwatched = is_watched(run) && run->memory.blind;
	take_memory(run);
	facts->duration_ms = rv_clock_mono_ms() - run->started_ms;
	close_one(&run->child.pidfd); /* also of one that is not gone: it is not touched again */
}

int rv_collect(struct rv_facts *facts, struct rv_launch_plan *plan, const struct rv_bounds *bounds, int cancel,
	       const struct rv_collect_hooks *hooks, struct rv_error *err)
{
	struct channel none = { -1, -1 };
	struct collect run = { .facts = facts, .plan = plan, .bounds = bounds, .hooks = hooks, .cancel = cancel,
			       .child = RV_CHILD_INIT, .in = none, .out = none, .err = none, .record = none, .go = none,
			       .status = none };

	*facts = (struct rv_facts){ .pid = -1, .exit_code = -1, .out = RV_BUFFER_INIT, .err = RV_BUFFER_INIT };
	if (open_channels(&run, err) != 0 || start(&run, err) != 0) {
		close_channels(&run);
		return -1;
	}
	facts->pid = run.child.pid;
	if (hooks != NULL && hooks->launched != NULL)
		hooks->launched(hooks->data, run.child.pid);
	while (!is_settled(&run, rv_clock_mono_ms()))
		turn(&run);
	finish(&run);
	close_channels(&run);
	return 0;
}

#include "lib/conform/battery.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/signals.h"
#include "lib/conform/trial.h"
#include "lib/process/descend.h"
#include "lib/process/spawn.h"
#include "lib/process/workdir.h"

#define LOOK_MS 250   /* at most between two looks at what orphans there are */
#define WRAP_UP_MS 1500 /* of a check's time, for its own clearing up */

struct job {
	struct rv_child child; /* pid -1: free */
	size_t index;
	int64_t started_ms;
	char *dir;
};

struct battery {
	const struct rv_battery_plan *plan;
	struct rv_record *records; /* shared with the checks, one each */
	struct rv_result *results;
	struct job *jobs;
	size_t next;     /* to be begun */
	size_t done;
	size_t reported;
	char *dir;
	int signals;
	sigset_t mask; /* as it was before */
};

/* ---- the check's own process ---- */

struct start {
	const struct battery *battery;
	const struct job *job;
};

static int check_main(void *data)
{
	const struct start *start = data;
	const struct battery *battery = start->battery;
	const struct rv_battery_plan *plan = battery->plan;
	struct rv_record *record = &battery->records[start->job->index];
	sigset_t none;
	bool held;
	struct rv_trial trial = {
		.check = plan->selection->items[start->job->index].check,
		.adapter = plan->adapter->argv,
		.declared = plan->adapter->capabilities,
		.record = record,
		.dir = start->job->dir,
		.place = plan->place,
		.deadline_ms = start->job->started_ms + plan->timeout_ms -
			       (plan->timeout_ms > 2 * WRAP_UP_MS ? WRAP_UP_MS : plan->timeout_ms / 2),
	};

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	held = rv_trial_begin(&trial) && trial.check->run(&trial);
	if (record->verdict == RV_UNDECIDED && !held)
		(void)rv_expect(&trial, false, "the check failed without a reason");
	rv_trial_end(&trial);
	if (record->verdict == RV_UNDECIDED)
		record->verdict = RV_PASS;
	return 0;
}

/* ---- results ---- */

static void settle(struct battery *battery, size_t index, int64_t took_ms)
{
	const struct rv_choice *choice = &battery->plan->selection->items[index];

	battery->results[index] = (struct rv_result){
		.check = choice->check,
		.suite = choice->suite,
		.verdict = battery->records[index].verdict,
		.took_ms = took_ms,
		.record = &battery->records[index],
	};
	battery->done++;
	while (battery->reported < battery->plan->selection->count && battery->results[battery->reported].check != NULL)
		battery->plan->on_result(battery->plan->data, &battery->results[battery->reported++]);
}

static void progress(const struct battery *battery, const char *id)
{
	if (battery->plan->on_progress != NULL)
		battery->plan->on_progress(battery->plan->data, battery->done, battery->plan->selection->count, id);
}

/* true: the adapter does not declare what the check needs; skipped by name. */
static bool skip_undeclared(struct battery *battery, size_t index)
{
	const struct rv_check *check = battery->plan->selection->items[index].check;
	unsigned missing = check->needs & ~battery->plan->adapter->capabilities;
	struct rv_record *record = &battery->records[index];

	if (missing == 0)
		return false;
	record->verdict = RV_SKIP;
	for (size_t i = 0; i < RV_CAPABILITIES; i++) {
		if ((missing & 1U << i) != 0)
			rv_note_printf(&record->saw, "%s%s", record->saw.len > 0 ? ", " : "the adapter does not declare ",
				       rv_capability_name(i));
	}
	settle(battery, index, 0);
	return true;
}

/* ---- jobs ---- */

static int begin(struct battery *battery, struct job *job, struct rv_error *err)
{
	struct start start = { battery, job };
	struct rv_spawn_plan spawn = { .child = check_main, .data = &start };

	job->index = battery->next++;
	if (skip_undeclared(battery, job->index))
		return 0;
	if (asprintf(&job->dir, "%s/%s", battery->dir, battery->plan->selection->items[job->index].check->id) < 0) {
		job->dir = NULL;
		return rv_error_nomem(err);
	}
	if (mkdir(job->dir, 0700) != 0)
		return rv_error_set(err, RV_E_IO, errno, "%s", job->dir);
	job->started_ms = rv_clock_mono_ms();
	progress(battery, battery->plan->selection->items[job->index].check->id);
	return rv_spawn(&spawn, &job->child, err);
}

static size_t living(const struct battery *battery, pid_t *pids)
{
	const struct rv_inherited *inherited = battery->plan->inherited;
	size_t count = 0;

	for (size_t i = 0; i < battery->plan->jobs; i++) {
		if (battery->jobs[i].child.pid > 0)
			pids[count++] = battery->jobs[i].child.pid;
	}
	for (size_t i = 0; i < inherited->count; i++)
		pids[count++] = inherited->pids[i];
	return count;
}

/* What descends from us, and from no check that still runs, was lost by one that is over; but what was there before. */
static void kill_lost(const struct battery *battery)
{
	pid_t *spare = calloc(battery->plan->jobs + battery->plan->inherited->count, sizeof *spare);

	if (spare != NULL)
		(void)rv_descend_signal(SIGKILL, spare, living(battery, spare));
	free(spare);
}

static void remove_dir(char **dir)
{
	struct rv_error ignored = RV_ERROR_INIT;

	if (*dir != NULL)
		(void)rv_workdir_remove(*dir, &ignored); /* what stays is in a private directory under /tmp */
	free(*dir);
	*dir = NULL;
}

/* The check's process is a zombie. */
static void finish(struct battery *battery, struct job *job)
{
	struct rv_record *record = &battery->records[job->index];
	int status = 0;

	(void)waitpid(job->child.pid, &status, 0);
	(void)close(job->child.pidfd);
	job->child = (struct rv_child)RV_CHILD_INIT;
	if (record->verdict == RV_UNDECIDED) {
		record->verdict = RV_FAIL;
		rv_note_printf(&record->saw, "the check's own process was killed (status %d)", status);
	}
	kill_lost(battery);
	remove_dir(&job->dir);
	settle(battery, job->index, rv_clock_mono_ms() - job->started_ms);
	progress(battery, NULL);
}

static void time_out(struct battery *battery, struct job *job)
{
	struct rv_record *record = &battery->records[job->index];

	(void)kill(-job->child.pid, SIGKILL); /* unreaped: the number is still its own */
	(void)kill(job->child.pid, SIGKILL);
	if (record->verdict != RV_UNDECIDED)
		return; /* it had concluded, and hung in clearing up */
	record->verdict = RV_FAIL;
	rv_note_printf(&record->saw, "the check did not end within %lld ms and was killed",
		       (long long)battery->plan->timeout_ms);
}

static struct job *job_of(struct battery *battery, pid_t pid)
{
	for (size_t i = 0; i < battery->plan->jobs; i++) {
		if (battery->jobs[i].child.pid == pid)
			return &battery->jobs[i];
	}
	return NULL;
}

static void reap(struct battery *battery)
{
	for (;;) {
		siginfo_t info = { .si_pid = 0 };
		struct job *job;

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
			return;
		job = job_of(battery, info.si_pid);
		if (job != NULL)
			finish(battery, job);
		else
			(void)waitpid(info.si_pid, NULL, WNOHANG);
	}
}

/* ---- the loop ---- */

static int fill(struct battery *battery, struct rv_error *err)
{
	for (size_t i = 0; i < battery->plan->jobs; i++) {
		while (battery->jobs[i].child.pid <= 0 && battery->next < battery->plan->selection->count) {
			if (begin(battery, &battery->jobs[i], err) != 0)
				return -1;
		}
	}
	return 0;
}

/* 0, or the signal that came. */
static int turn(struct battery *battery, struct pollfd *ready)
{
	struct signalfd_siginfo info;
	int64_t until = rv_clock_mono_ms() + LOOK_MS;
	nfds_t count = 1;

	ready[0] = (struct pollfd){ .fd = battery->signals, .events = POLLIN };
	for (size_t i = 0; i < battery->plan->jobs; i++) {
		const struct job *job = &battery->jobs[i];

		if (job->child.pid <= 0)
			continue;
		ready[count++] = (struct pollfd){ .fd = job->child.pidfd, .events = POLLIN };
		if (job->started_ms + battery->plan->timeout_ms < until)
			until = job->started_ms + battery->plan->timeout_ms;
	}
	(void)poll(ready, count, rv_clock_left_ms(until));
	if (read(battery->signals, &info, sizeof info) == (ssize_t)sizeof info)
		return (int)info.ssi_signo;
	reap(battery);
	for (size_t i = 0; i < battery->plan->jobs; i++) {
		struct job *job = &battery->jobs[i];

		if (job->child.pid > 0 && rv_clock_left_ms(job->started_ms + battery->plan->timeout_ms) == 0)
			time_out(battery, job);
	}
	return 0;
}

static int loop(struct battery *battery, int *interrupted, struct rv_error *err)
{
	struct pollfd *ready = calloc(battery->plan->jobs + 1, sizeof *ready);
	int result = ready != NULL ? 0 : rv_error_nomem(err);

	while (result == 0 && *interrupted == 0 && battery->done < battery->plan->selection->count) {
		result = fill(battery, err);
		if (result == 0 && battery->done < battery->plan->selection->count)
			*interrupted = turn(battery, ready);
	}
	free(ready);
	return result;
}

/* ---- set-up and end ---- */

/* Before this is a sub-reaper: all that it started descends from its children.  No list where the kernel keeps none. */
static int take_children(struct rv_inherited *inherited, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_error ignored = RV_ERROR_INIT;
	char path[64];
	char *at, *end;

	(void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	if (rv_io_read_file(path, &text, &ignored) != 0 || rv_buffer_string(&text) == NULL)
		return 0;
	inherited->pids = calloc(text.len / 2 + 1, sizeof *inherited->pids);
	if (inherited->pids == NULL)
		return rv_error_nomem(err);
	for (at = text.data; inherited->count <= text.len / 2; at = end) {
		pid_t pid = (pid_t)strtol(at, &end, 10);

		if (end == at)
			break;
		inherited->pids[inherited->count++] = pid;
	}
	return 0;
}

int rv_battery_adopt(struct rv_inherited *inherited, struct rv_error *err)
{
	*inherited = (struct rv_inherited){ NULL, 0 };
	if (take_children(inherited, err) != 0)
		return -1;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		return rv_error_set(err, RV_E_IO, errno, "prctl(PR_SET_CHILD_SUBREAPER)");
	return 0;
}

void rv_battery_clear(const struct rv_inherited *inherited)
{
	for (int i = 0; i < 100 && rv_descend_signal(SIGKILL, inherited->pids, inherited->count) > 0; i++)
		rv_clock_pause_ms(10);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static int make_dir(struct battery *battery, struct rv_error *err)
{
	const char *base = getenv("TMPDIR");

	if (base == NULL || base[0] != '/')
		base = "/tmp";
	if (asprintf(&battery->dir, "%s/rv-conform-XXXXXX", base) < 0) {
		battery->dir = NULL;
		return rv_error_nomem(err);
	}
	if (mkdtemp(battery->dir) != NULL)
		return 0;
	(void)rv_error_set(err, RV_E_IO, errno, "%s", battery->dir);
	free(battery->dir);
	battery->dir = NULL;
	return -1;
}

static int catch_signals(struct battery *battery, struct rv_error *err)
{
	(void)sigprocmask(SIG_BLOCK, NULL, &battery->mask);
	(void)signal(SIGCHLD, SIG_DFL);
	battery->signals = rv_signals_watch_pipe();
	if (battery->signals < 0)
		return rv_error_set(err, RV_E_IO, errno, "signalfd");
	battery->plan->on_signals(battery->plan->data, battery->signals);
	return 0;
}

static int set_up(struct battery *battery, struct rv_error *err)
{
	size_t count = battery->plan->selection->count;
	void *records = mmap(NULL, count * sizeof *battery->records, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			     -1, 0);

	battery->records = records != MAP_FAILED ? records : NULL;
	battery->results = calloc(count, sizeof *battery->results);
	battery->jobs = calloc(battery->plan->jobs, sizeof *battery->jobs);
	if (battery->records == NULL || battery->results == NULL || battery->jobs == NULL)
		return rv_error_nomem(err);
	for (size_t i = 0; i < battery->plan->jobs; i++)
		battery->jobs[i].child = (struct rv_child)RV_CHILD_INIT;
	return catch_signals(battery, err) != 0 ? -1 : make_dir(battery, err);
}

static void end(struct battery *battery)
{
	for (size_t i = 0; battery->jobs != NULL && i < battery->plan->jobs; i++) {
		struct job *job = &battery->jobs[i];

		if (job->child.pid > 0)
			(void)rv_child_kill(&job->child, 2000, NULL);
	}
	if (battery->dir != NULL)
		rv_battery_clear(battery->plan->inherited);
	for (size_t i = 0; battery->jobs != NULL && i < battery->plan->jobs; i++)
		free(battery->jobs[i].dir);
	remove_dir(&battery->dir);
	if (battery->signals >= 0) {
		battery->plan->on_signals(battery->plan->data, -1);
		(void)close(battery->signals);
	}
	if (battery->records != NULL)
		(void)munmap(battery->records, battery->plan->selection->count * sizeof *battery->records);
	free(battery->results);
	free(battery->jobs);
	(void)sigprocmask(SIG_SETMASK, &battery->mask, NULL);
}

int rv_battery_run(const struct rv_battery_plan *plan, int *interrupted, struct rv_error *err)
{
	struct battery battery = { .plan = plan, .signals = -1 };
	int result;

	(void)sigprocmask(SIG_SETMASK, NULL, &battery.mask);
	*interrupted = 0;
	result = set_up(&battery, err);
	if (result == 0)
		result = loop(&battery, interrupted, err);
	end(&battery);
	return result;
}

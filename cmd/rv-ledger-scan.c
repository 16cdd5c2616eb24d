/* rv-ledger-scan(1): find the attempts that nothing accounts for. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/instant.h"
#include "lib/base/io.h"
#include "lib/cli/cli.h"
#include "lib/cli/progress.h"
#include "lib/ledger/gather.h"
#include "lib/ledger/report.h"

enum format { FORMAT_ORPHANS, FORMAT_TABLE, FORMAT_REPORT, FORMAT_KEYS, FORMAT_SUMMARY };

struct options {
	int format; /* -1: by what standard output is */
	bool tolerate;
	const char *approvals;
	const char *decisions;
	struct rv_strings tools, run_ids, keys, attempts, states;
	const char *since;
	const char *until;
	int64_t min_age;
	bool has_min_age;
	int64_t threads;
};

#define PROGRESS_AFTER_MS 500
#define PROGRESS_EVERY_MS 100

#define AT(member) offsetof(struct options, member)

static const struct rv_option options[] = {
	{ "format", 0, RV_OPT_CHOICE, AT(format), RV_UNSEEN, NULL, "what to print (orphans, on a terminal table)", 0, 0, "orphans|table|report|keys|summary" },
	{ "tolerate-corrupt", 0, RV_OPT_FLAG, AT(tolerate), RV_UNSEEN, NULL, "go on past damage and report it as data, for triage", 0, 0, NULL },
	{ "approvals", 0, RV_OPT_STRING, AT(approvals), RV_UNSEEN, "FILE", "show instead which attempts these approvals do not cover", 0, 0, NULL },
	{ "decisions", 0, RV_OPT_STRING, AT(decisions), RV_UNSEEN, "FILE", "leave out what an operator has decided", 0, 0, NULL },
	{ "threads", 0, RV_OPT_INTEGER, AT(threads), RV_UNSEEN, "N", "read with so many threads; the answer is the same", 1, RV_THREADS_MAX, NULL },
	{ "tool", 0, RV_OPT_LIST, AT(tools), RV_UNSEEN, "NAME", "show only what is of this tool; repeatable, as all filters", 0, 0, NULL },
	{ "run-id", 0, RV_OPT_LIST, AT(run_ids), RV_UNSEEN, "ID", "only of this run", 0, 0, NULL },
	{ "key", 0, RV_OPT_LIST, AT(keys), RV_UNSEEN, "KEY", "only of this idempotency key", 0, 0, NULL },
	{ "attempt", 0, RV_OPT_LIST, AT(attempts), RV_UNSEEN, "ID", "only this attempt", 0, 0, NULL },
	{ "state", 0, RV_OPT_LIST, AT(states), RV_UNSEEN, "orphan|running|unknown", "only in this state", 0, 0, NULL },
	{ "since", 0, RV_OPT_STRING, AT(since), RV_UNSEEN, "TIME", "only started then or later: RFC 3339, or milliseconds", 0, 0, NULL },
	{ "until", 0, RV_OPT_STRING, AT(until), RV_UNSEEN, "TIME", "only started then or before", 0, 0, NULL },
	{ "min-age", 0, RV_OPT_DURATION, AT(min_age), AT(has_min_age), "DUR", "only at least so old", 0, 0, NULL },
};

static const char *const usage[] = {
	"[--format FORMAT] [filter ...] [option ...] FILE ...",
	"--approvals FILE [filter ...] [option ...] FILE ...",
	NULL,
};

static const char *const statuses[] = {
	"0  no orphan; an attempt that is running is none",
	"1  there are orphans, attempts of unknown state or without approval, or tolerated damage",
	"2  the command line is wrong",
	"3  a file of decisions or approvals is refused",
	"4  a ledger is corrupt, and nothing was concluded",
	"5  a file could not be read, or the system failed",
	NULL,
};

static const struct rv_program program = {
	.name = "rv-ledger-scan",
	.usage = usage,
	.about = "Find the attempts in ledgers that nothing accounts for.",
	.options = options,
	.count = sizeof options / sizeof options[0],
	.statuses = statuses,
};

static struct rv_filter_texts texts_of(const struct rv_strings *list)
{
	return (struct rv_filter_texts){ list->items, list->count };
}

static int add_state(struct rv_filter *filter, const char *name, struct rv_error *err)
{
	for (int state = 0; state < RV_STATES; state++) {
		if (strcmp(name, rv_state_name((enum rv_state)state)) == 0) {
			filter->states |= 1u << state;
			return 0;
		}
	}
	return rv_error_set(err, RV_E_USAGE, 0, "--state: none of orphan, running, unknown: %s", name);
}

static int make_filter(const struct options *values, struct rv_filter *filter, struct rv_error *err)
{
	*filter = (struct rv_filter){
		.tools = texts_of(&values->tools),
		.run_ids = texts_of(&values->run_ids),
		.keys = texts_of(&values->keys),
		.attempts = texts_of(&values->attempts),
		.has_since = values->since != NULL,
		.has_until = values->until != NULL,
		.has_min_age = values->has_min_age,
		.min_age = values->min_age,
	};
	for (size_t i = 0; i < values->states.count; i++) {
		if (add_state(filter, values->states.items[i], err) != 0)
			return -1;
	}
	if (values->since != NULL && rv_instant_parse(values->since, &filter->since, err) != 0)
		return rv_error_wrap(err, "--since");
	if (values->until != NULL && rv_instant_parse(values->until, &filter->until, err) != 0)
		return rv_error_wrap(err, "--until");
	return 0;
}

static int sink_write(void *context, const char *bytes, size_t len)
{
	(void)context;
	return rv_cli_write(bytes, len);
}

static void say_place(const struct rv_view *view, const struct rv_place *place, const char *what)
{
	rv_cli_say("%s:%llu: byte %llu: %s", view->sources[place->file].path, (unsigned long long)place->line,
		   (unsigned long long)place->offset, what);
}

/* Name each corrupt line; returns how many of them nobody has decided about. */
static size_t say_damage(const struct rv_view *view)
{
	size_t undecided = 0;

	for (size_t i = 0; i < view->scan.damage_count; i++) {
		const struct rv_damage *damage = &view->scan.damage[i];
		char hex[RV_SHA256_HEX];
		char what[160];

		if (damage->decided)
			continue;
		rv_hex(damage->sha256, RV_SHA256_SIZE, hex);
		(void)snprintf(what, sizeof what, "sha256 %s: %s", hex, damage->reason);
		say_place(view, &damage->place, what);
		undecided++;
	}
	return undecided;
}

static void say_tails(const struct rv_view *view)
{
	for (size_t i = 0; i < view->source_count; i++) {
		const struct rv_scan_tail *tail = rv_scan_tail(&view->scan, (uint32_t)i);

		if (tail->present)
			say_place(view, &tail->place, "a torn tail: a write in progress, or one for rv-ledger-repair");
	}
}

/* One run: what was asked for, and what it is asked of. */
struct job {
	const struct options *values;
	int format;
	struct rv_filter filter;
	struct rv_approvals approvals;
	struct rv_decisions decisions;
	struct rv_view view;
};

static int print(struct job *job, struct rv_error *err)
{
	struct rv_sink sink = { .write = sink_write, .context = NULL };

	switch ((enum format)job->format) {
	case FORMAT_ORPHANS:
		return rv_report_orphans(&job->view, &job->filter, &sink, err);
	case FORMAT_TABLE:
		return rv_report_table(&job->view, &job->filter, &sink, err);
	case FORMAT_REPORT:
		return rv_report_whole(&job->view, &job->filter, job->values->decisions != NULL ? &job->decisions : NULL, &sink,
				       err);
	case FORMAT_KEYS:
		return rv_report_keys(&job->view, &job->filter, &sink, err);
	case FORMAT_SUMMARY:
		return rv_report_summary(&job->view, &job->filter, &sink, err);
	}
	return -1;
}

/* An error of a report, unless it is the one of standard output, which is said already. */
static int fail(const struct rv_error *err)
{
	return rv_cli_end(RV_EXIT_DONE) != RV_EXIT_DONE ? RV_EXIT_SYSTEM : rv_cli_fail(err);
}

static int answer_approvals(struct job *job, bool *found)
{
	struct rv_sink sink = { .write = sink_write, .context = NULL };
	struct rv_error err = RV_ERROR_INIT;
	uint64_t unapproved;

	if (rv_report_approvals(&job->view, &job->filter, &job->approvals, &sink, &unapproved, &err) != 0)
		return fail(&err);
	*found = unapproved > 0;
	return RV_EXIT_DONE;
}

static int answer_orphans(struct job *job, bool *found)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_report_counts counts;

	if (rv_report_count(&job->view, &job->filter, &counts, &err) != 0 || print(job, &err) != 0)
		return fail(&err);
	*found = counts.shown[RV_STATE_ORPHAN] + counts.shown[RV_STATE_UNKNOWN] > 0;
	if (counts.hidden > 0)
		rv_cli_say("%llu more outside the filters without an outcome", (unsigned long long)counts.hidden);
	if (*found && job->format == FORMAT_TABLE)
		rv_cli_say("look each key up with the provider of its effect before any retry: rv-ledger-scan(1)");
	return RV_EXIT_DONE;
}

static int answer(struct job *job)
{
	struct rv_error err = RV_ERROR_INIT;
	size_t damage;
	bool found = false;
	int status;

	if (job->values->decisions != NULL && rv_decisions_apply(&job->decisions, &job->view, &err) != 0)
		return rv_cli_fail(&err);
	damage = say_damage(&job->view);
	if (damage > 0 && !job->values->tolerate)
		return RV_EXIT_CORRUPT;
	say_tails(&job->view);
	status = job->values->approvals != NULL ? answer_approvals(job, &found) : answer_orphans(job, &found);
	if (status != RV_EXIT_DONE)
		return status;
	return found || damage > 0 ? RV_EXIT_NEEDS_SOMEONE : RV_EXIT_DONE;
}

/* The line is not worth its writing for a scan that is over at once, nor many times a second. */
static void show_progress(void *context, uint64_t done, uint64_t total)
{
	int64_t *next_ms = context;
	int64_t now = rv_clock_mono_ms();

	if (now < *next_ms)
		return;
	rv_cli_progress((size_t)(done >> 20), (size_t)(total >> 20), "MiB");
	*next_ms = now + PROGRESS_EVERY_MS;
}

/* Does what was asked for take every row in hand, and not only what is open? */
static bool needs_all(const struct job *job)
{
	switch ((enum format)job->format) {
	case FORMAT_ORPHANS:
	case FORMAT_TABLE:
		return job->values->approvals != NULL;
	case FORMAT_SUMMARY:
		return !rv_filter_is_empty(&job->filter);
	case FORMAT_REPORT:
	case FORMAT_KEYS:
		break;
	}
	return true;
}

/* The operator's files first: they are small, and a refused one must not cost a long scan. */
static int scan(struct job *job, char **paths, int count)
{
	const struct options *values = job->values;
	struct rv_error err = RV_ERROR_INIT;
	int64_t progress_ms = rv_clock_mono_ms() + PROGRESS_AFTER_MS;
	struct rv_view_options view_options = {
		.keep_all = needs_all(job),
		.threads = (unsigned)values->threads,
		.progress = isatty(STDERR_FILENO) == 1 ? show_progress : NULL,
		.context = &progress_ms,
	};
	int status;

	if (values->approvals != NULL && rv_approvals_load(&job->approvals, values->approvals, &err) != 0)
		return rv_cli_fail(&err);
	if (values->decisions != NULL && rv_decisions_load(&job->decisions, values->decisions, &err) != 0)
		return rv_cli_fail(&err);
	rv_io_allow_descriptors((size_t)count); /* all stay open: their locks are asked for in the end */
	status = rv_view_open(&job->view, (const char *const *)paths, (size_t)count, &view_options, &err);
	rv_cli_progress_clear();
	if (status != 0)
		return rv_cli_fail(&err);
	status = answer(job);
	rv_view_close(&job->view);
	return status;
}

/* A second reader of it would find it empty, which is a smaller answer. */
static int count_stdin(const struct options *values, char **paths, int count)
{
	int readers = 0;

	readers += values->approvals != NULL && strcmp(values->approvals, "-") == 0;
	readers += values->decisions != NULL && strcmp(values->decisions, "-") == 0;
	for (int i = 0; i < count; i++)
		readers += strcmp(paths[i], "-") == 0;
	return readers;
}

static int run(const struct options *values, char **paths, int count)
{
	struct rv_error err = RV_ERROR_INIT;
	struct job job = { .values = values, .format = values->format };
	int status;

	if (count == 0)
		return rv_cli_usage("no ledger was named");
	if (count_stdin(values, paths, count) > 1)
		return rv_cli_usage("standard input can be read once only");
	if (values->approvals != NULL && values->format >= 0)
		return rv_cli_usage("--approvals has a format of its own");
	if (make_filter(values, &job.filter, &err) != 0)
		return rv_cli_usage("%s", err.message);
	if (job.format < 0)
		job.format = isatty(STDOUT_FILENO) == 1 ? FORMAT_TABLE : FORMAT_ORPHANS;
	status = scan(&job, paths, count);
	rv_approvals_release(&job.approvals);
	rv_decisions_release(&job.decisions);
	return status;
}

static void release(struct options *values)
{
	rv_strings_release(&values->tools);
	rv_strings_release(&values->run_ids);
	rv_strings_release(&values->keys);
	rv_strings_release(&values->attempts);
	rv_strings_release(&values->states);
}

int main(int argc, char **argv)
{
	struct options values = { .format = -1, .threads = 1 };
	int operand, status;

	rv_cli_start("rv-ledger-scan");
	if (rv_cli_parse(&program, argc, argv, &values, &operand, &status) == 0)
		status = run(&values, argv + operand, argc - operand);
	release(&values);
	return rv_cli_end(status);
}

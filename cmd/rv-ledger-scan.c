/* rv-ledger-scan(1): find the attempts that nothing accounts for. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/instant.h"
#include "lib/cli/cli.h"
#include "lib/ledger/report.h"

enum format { FORMAT_ORPHANS, FORMAT_TABLE, FORMAT_REPORT, FORMAT_SUMMARY };

struct options {
	int format; /* -1: by what standard output is */
	bool tolerate;
	struct rv_strings tools, run_ids, keys, attempts, states;
	const char *since;
	const char *until;
	int64_t min_age;
	bool has_min_age;
};

#define AT(member) offsetof(struct options, member)

static const struct rv_option options[] = {
	{ "format", 0, RV_OPT_CHOICE, AT(format), RV_UNSEEN, NULL, "what to print (orphans, on a terminal table)", 0, 0, "orphans|table|report|summary" },
	{ "tolerate-corrupt", 0, RV_OPT_FLAG, AT(tolerate), RV_UNSEEN, NULL, "go on past damage and report it as data, for triage", 0, 0, NULL },
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
	"[--format FORMAT] [filter ...] [--tolerate-corrupt] FILE ...",
	NULL,
};

static const char *const statuses[] = {
	"0  no orphan; an attempt that is running is none",
	"1  there are orphans, or attempts of unknown state, or tolerated damage",
	"2  the command line is wrong",
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

static void say_damage(const struct rv_view *view)
{
	for (size_t i = 0; i < view->scan.damage_count; i++) {
		const struct rv_damage *damage = &view->scan.damage[i];
		char hex[RV_SHA256_HEX];
		char what[160];

		rv_hex(damage->sha256, RV_SHA256_SIZE, hex);
		(void)snprintf(what, sizeof what, "sha256 %s: %s", hex, damage->reason);
		say_place(view, &damage->place, what);
	}
}

static void say_tails(const struct rv_view *view)
{
	for (size_t i = 0; i < view->source_count; i++) {
		const struct rv_scan_tail *tail = rv_scan_tail(&view->scan, (uint32_t)i);

		if (tail->present)
			say_place(view, &tail->place, "a torn tail: a write in progress, or one for rv-ledger-repair");
	}
}

static int print(struct rv_view *view, const struct rv_filter *filter, int format, struct rv_error *err)
{
	static int (*const writers[])(struct rv_view *, const struct rv_filter *, const struct rv_sink *,
				      struct rv_error *) = {
		[FORMAT_ORPHANS] = rv_report_orphans,
		[FORMAT_TABLE] = rv_report_table,
		[FORMAT_REPORT] = rv_report_whole,
		[FORMAT_SUMMARY] = rv_report_summary,
	};
	struct rv_sink sink = { .write = sink_write, .context = NULL };

	return writers[format](view, filter, &sink, err);
}

static int answer(struct rv_view *view, const struct rv_filter *filter, const struct options *values, int format)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_report_counts counts;
	bool found;

	say_damage(view);
	if (view->scan.damage_count > 0 && !values->tolerate)
		return RV_EXIT_CORRUPT;
	say_tails(view);
	if (rv_report_count(view, filter, &counts, &err) != 0 || print(view, filter, format, &err) != 0)
		return rv_cli_end(RV_EXIT_DONE) != RV_EXIT_DONE ? RV_EXIT_SYSTEM : rv_cli_fail(&err);
	found = counts.shown[RV_STATE_ORPHAN] + counts.shown[RV_STATE_UNKNOWN] > 0;
	if (counts.hidden > 0)
		rv_cli_say("%llu more outside the filters without an outcome", (unsigned long long)counts.hidden);
	if (found && format == FORMAT_TABLE)
		rv_cli_say("look each key up with the provider of its effect before any retry: rv-ledger-scan(1)");
	return found || view->scan.damage_count > 0 ? RV_EXIT_NEEDS_SOMEONE : RV_EXIT_DONE;
}

static int scan(const struct options *values, char **paths, int count)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_filter filter;
	struct rv_view view;
	int format = values->format;
	int status;

	if (count == 0)
		return rv_cli_usage("no ledger was named");
	if (make_filter(values, &filter, &err) != 0)
		return rv_cli_usage("%s", err.message);
	if (format < 0)
		format = isatty(STDOUT_FILENO) == 1 ? FORMAT_TABLE : FORMAT_ORPHANS;
	if (rv_view_open(&view, (const char *const *)paths, (size_t)count,
			 format == FORMAT_REPORT || format == FORMAT_SUMMARY, &err) != 0)
		return rv_cli_fail(&err);
	status = answer(&view, &filter, values, format);
	rv_view_close(&view);
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
	struct options values = { .format = -1 };
	int operand, status;

	rv_cli_start("rv-ledger-scan");
	if (rv_cli_parse(&program, argc, argv, &values, &operand, &status) == 0)
		status = scan(&values, argv + operand, argc - operand);
	release(&values);
	return rv_cli_end(status);
}

#include "lib/conform/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/conform/battery.h"
#include "lib/conform/command.h"
#include "lib/conform/receipt.h"
#include "lib/json/write.h"

#define HOST_MS 10000

struct session {
	const struct rv_session_plan *plan;
	struct rv_report shown;
	struct rv_report filed;
	bool filing;
	struct rv_inherited inherited;
	int report;            /* its file: open and empty from the beginning; -1: none */
	struct rv_buffer text; /* for standard output, written as it comes */
	struct rv_buffer file; /* for the report's file, written at the end */
	struct rv_receipt receipt;
};

/* ---- what a run stands on ---- */

/* The tools of the checks are shell text: a host without their programs would fail every check. */
static int check_host(struct rv_error *err)
{
	static const char *const argv[] = {
		"/bin/sh", "-c",
		"PATH=/usr/local/bin:/usr/bin:/bin; for p in base64 cat chmod env head ln ls mkdir mkfifo mv nice nohup printf readlink rm rmdir setsid sleep stat tr wc yes; do "
		"command -v $p >/dev/null || { echo \"$p is missing\" >&2; exit 1; }; done; [ -r /proc/self/status ] || "
		"{ echo '/proc is not mounted' >&2; exit 1; }",
		NULL,
	};
	const struct rv_command_plan plan = { .argv = argv };
	struct rv_command command;
	int result;

	if (rv_command_run(&command, &plan, rv_clock_mono_ms() + HOST_MS, err) != 0)
		return -1;
	result = command.ended && command.status == 0 ? 0 :
		 rv_error_set(err, RV_E_IO, 0, "this host cannot run the checks: %.*s",
			      (int)command.complained.len, command.complained.len > 0 ? command.complained.data : "/bin/sh");
	rv_command_release(&command);
	return result;
}

/* "PROGRAM --adapter --", this very program. */
static int open_adapter(struct rv_adapter *adapter, const struct rv_session_plan *plan, const char **words, char *self,
			size_t size, struct rv_error *err)
{
	ssize_t n;

	if (plan->adapter != NULL && plan->adapter[0] != NULL)
		return rv_adapter_open(adapter, plan->adapter, err);
	n = readlink("/proc/self/exe", self, size - 1);
	if (n < 0)
		return rv_error_set(err, RV_E_IO, errno, "/proc/self/exe");
	self[n] = '\0';
	words[0] = self;
	words[1] = "--adapter";
	words[2] = "--";
	words[3] = NULL;
	return rv_adapter_open(adapter, words, err);
}

static int check_plan(const struct rv_session_plan *plan, struct rv_error *err)
{
	bool filtered = plan->suite != NULL || (plan->only != NULL && plan->only[0] != NULL) ||
			(plan->skip != NULL && plan->skip[0] != NULL);

	if (plan->report != NULL && rv_report_format_of(plan->report) < 0)
		return rv_error_set(err, RV_E_USAGE, 0, "--report: %s ends in none of .tap, .xml, .jsonl", plan->report);
	if (plan->place.image == NULL && (plan->place.engine != NULL || plan->place.engine_args[0] != NULL))
		return rv_error_set(err, RV_E_USAGE, 0, "--engine and --engine-arg need --image");
	if (plan->place.image == NULL && plan->suite != NULL && strcmp(plan->suite, "container") == 0)
		return rv_error_set(err, RV_E_USAGE, 0, "--suite container needs --image");
	if (plan->receipt == NULL && (plan->previous != NULL || plan->source != NULL))
		return rv_error_set(err, RV_E_USAGE, 0, "--previous and --source need --receipt");
	if (plan->receipt != NULL && filtered)
		return rv_error_set(err, RV_E_USAGE, 0, "--receipt is for a whole run: it goes with no --suite, --only or --skip");
	return 0;
}

/* ---- reporting ---- */

static void flush(struct session *session)
{
	if (session->text.len > 0)
		session->plan->write(session->text.data, session->text.len);
	rv_buffer_clear(&session->text);
}

static void on_result(void *data, const struct rv_result *result)
{
	struct session *session = data;

	rv_report_add(&session->shown, result, &session->text);
	if (session->filing)
		rv_report_add(&session->filed, result, &session->file);
	rv_receipt_add(&session->receipt, result);
	flush(session);
}

static void on_signals(void *data, int fd)
{
	const struct session *session = data;

	session->plan->heed(fd);
}

static void on_progress(void *data, size_t done, size_t count, const char *id)
{
	const struct session *session = data;

	if (session->plan->progress != NULL)
		session->plan->progress(done, count, id);
}

/* Before anything is run: a report of an earlier run must not stand for this one, whatever becomes of it. */
static int open_report(struct session *session, struct rv_error *err)
{
	if (session->plan->report == NULL)
		return 0;
	session->report = rv_io_open(session->plan->report, O_WRONLY | O_CREAT | O_TRUNC, 0666, err);
	return session->report >= 0 ? 0 : -1;
}

static int write_report(const struct session *session, struct rv_error *err)
{
	if (!session->filing)
		return 0;
	if (rv_buffer_check(&session->file, err) != 0)
		return -1;
	if (rv_io_write_all(session->report, session->file.data, session->file.len, err) != 0)
		return rv_error_wrap(err, "%s", session->plan->report);
	return 0;
}

static void begin_reports(struct session *session, const struct rv_adapter *adapter, size_t count)
{
	const struct rv_session_plan *plan = session->plan;

	session->shown = (struct rv_report){
		.format = plan->format, .strict_skips = plan->strict_skips, .colour = plan->colour, .tap13 = plan->tap13,
	};
	rv_report_begin(&session->shown, adapter, count, &session->text);
	session->filing = plan->report != NULL;
	if (session->filing) {
		session->filed = (struct rv_report){
			.format = (enum rv_format)rv_report_format_of(plan->report), .strict_skips = plan->strict_skips,
		};
		rv_report_begin(&session->filed, adapter, count, &session->file);
	}
	flush(session);
}

static int end_reports(struct session *session, int64_t took_ms, struct rv_error *err)
{
	int result;

	rv_report_end(&session->shown, took_ms, &session->text);
	if (session->filing)
		rv_report_end(&session->filed, took_ms, &session->file);
	result = rv_buffer_check(&session->text, err);
	flush(session);
	return result == 0 ? write_report(session, err) : result;
}

/* ---- the run ---- */

static int run_battery(struct session *session, const struct rv_adapter *adapter, const struct rv_selection *selection,
		       struct rv_session_result *result, struct rv_error *err)
{
	const struct rv_session_plan *plan = session->plan;
	const struct rv_battery_plan battery = {
		.adapter = adapter, .selection = selection, .inherited = &session->inherited,
		.jobs = plan->jobs, .timeout_ms = plan->timeout_ms, .place = plan->place,
		.on_result = on_result, .on_progress = on_progress, .on_signals = on_signals, .data = session,
	};
	int64_t started = rv_clock_mono_ms();

	if (selection->count == 0)
		return rv_error_set(err, RV_E_IO, 0, "no check is selected");
	if (plan->receipt != NULL && rv_receipt_begin(&session->receipt, plan->receipt, plan->previous, adapter, plan->source, err) != 0)
		return -1;
	begin_reports(session, adapter, selection->count);
	if (rv_battery_run(&battery, &result->interrupted, err) != 0)
		return -1;
	result->counts = session->shown.counts;
	if (result->interrupted != 0)
		return 0;
	if (end_reports(session, rv_clock_mono_ms() - started, err) != 0)
		return -1;
	if (result->counts.passed + result->counts.failed == 0)
		return rv_error_set(err, RV_E_IO, 0, "every selected check was skipped");
	return plan->receipt != NULL ? rv_receipt_write(&session->receipt, plan->place.image != NULL, err) : 0;
}

int rv_session_run(const struct rv_session_plan *plan, struct rv_session_result *result, struct rv_error *err)
{
	struct session session = { .plan = plan, .report = -1 };
	struct rv_adapter adapter = { .argv = NULL };
	struct rv_selection selection = { NULL, 0, false };
	const char *words[4];
	char self[4096];
	int status = -1;

	memset(result, 0, sizeof *result);
	if (check_plan(plan, err) != 0 || rv_battery_adopt(&session.inherited, err) != 0)
		return -1;
	if (open_report(&session, err) == 0 && check_host(err) == 0 &&
	    rv_selection_make(&selection, plan->suite, plan->place.image != NULL, plan->only, plan->skip, err) == 0 &&
	    open_adapter(&adapter, plan, words, self, sizeof self, err) == 0)
		status = run_battery(&session, &adapter, &selection, result, err);
	rv_battery_clear(&session.inherited); /* what an adapter left running that was asked for its capabilities, or for a digest */
	rv_cleanup_fd(&session.report);
	free(session.inherited.pids);
	rv_receipt_release(&session.receipt);
	rv_report_release(&session.shown);
	rv_report_release(&session.filed);
	rv_buffer_release(&session.text);
	rv_buffer_release(&session.file);
	rv_selection_release(&selection);
	rv_adapter_release(&adapter);
	return status;
}

/* ---- the list ---- */

static void add_needs(struct rv_buffer *out, unsigned needs)
{
	rv_json_add_name(out, "needs");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < RV_CAPABILITIES; i++) {
		if ((needs & 1U << i) == 0)
			continue;
		if (out->data != NULL && out->data[out->len - 1] != '[')
			rv_buffer_add_byte(out, ',');
		rv_json_add_string(out, rv_capability_name(i), strlen(rv_capability_name(i)));
	}
	rv_buffer_add_byte(out, ']');
}

static void list_as_json(struct rv_buffer *out, const struct rv_choice *choice)
{
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "suite", choice->suite->name);
	rv_json_member_string(out, "id", choice->check->id);
	rv_json_member_string(out, "title", choice->check->title);
	rv_json_member_string(out, "promise", choice->check->promise);
	rv_json_member_string(out, "why", choice->check->why);
	rv_json_member_string(out, "clause", choice->check->clause);
	add_needs(out, choice->check->needs);
	rv_buffer_add_string(out, "}\n");
}

int rv_session_list(const struct rv_session_plan *plan, struct rv_buffer *out, struct rv_error *err)
{
	struct rv_selection selection = { NULL, 0, false };
	int result = rv_selection_make(&selection, plan->suite, true, plan->only, plan->skip, err);

	for (size_t i = 0; i < selection.count; i++) {
		const struct rv_choice *choice = &selection.items[i];

		if (plan->format == RV_FORMAT_JSONL)
			list_as_json(out, choice);
		else
			rv_buffer_printf(out, "%s\t%s\t%s\n", choice->suite->name, choice->check->id, choice->check->title);
	}
	if (result == 0 && selection.count == 0)
		result = rv_error_set(err, RV_E_IO, 0, "no check is selected");
	rv_selection_release(&selection);
	return result == 0 ? rv_buffer_check(out, err) : result;
}

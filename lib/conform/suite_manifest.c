/* executor: what may run is the trusted side's word, and what needs an approval runs by one. */
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/conform/ask.h"
#include "lib/conform/rows.h"
#include "lib/conform/stream.h"
#include "lib/conform/suites.h"
#include "lib/digest/digest.h"
#include "lib/json/write.h"

#define PROBE "\"probe\""
#define EFFECT ": >\"$1/effect\"; echo 1"
#define APPROVED ",\"needsApproval\":true"

/* ---- the files ---- */

/* One tool of a manifest. */
struct entry {
	const char *name;   /* a JSON string */
	const char *script; /* as in lib/conform/ask.h */
	const char *words;  /* more words of the script, as JSON: ",\"a\"" */
	const char *more;   /* more members, as JSON */
};

static void add_entry(struct rv_buffer *text, const struct rv_trial *trial, const struct entry *entry)
{
	if (text->data[text->len - 1] != '{')
		rv_buffer_add_byte(text, ',');
	rv_buffer_printf(text, "%s:{\"command\":\"/bin/sh\",\"args\":[", entry->name);
	rv_ask_add_script(text, trial, entry->script);
	rv_buffer_printf(text, "%s]%s}", entry->words != NULL ? entry->words : "", entry->more != NULL ? entry->more : "");
}

static const char *written(struct rv_trial *trial, const char *name, const struct rv_buffer *text)
{
	const char *path = rv_trial_path(trial, name);
	struct rv_error err = RV_ERROR_INIT;

	if (rv_buffer_check(text, &err) != 0) {
		(void)rv_trial_failed(trial, &err);
		return NULL;
	}
	return path != NULL && rv_trial_write(trial, path, (struct rv_span){ text->data, text->len }, 0600) ? path : NULL;
}

/* The path of a manifest of these tools, and of one more entry as JSON, or NULL.  NULL noted. */
static const char *manifest_with(struct rv_trial *trial, const struct entry *entries, size_t count, const char *last)
{
	struct rv_buffer *text = rv_trial_buffer(trial);

	if (text == NULL)
		return NULL;
	rv_buffer_add_byte(text, '{');
	for (size_t i = 0; i < count; i++)
		add_entry(text, trial, &entries[i]);
	if (last != NULL)
		rv_buffer_printf(text, ",%s", last);
	rv_buffer_add_string(text, "}\n");
	return written(trial, "manifest.json", text);
}

#define manifest_of(trial, entries) manifest_with(trial, entries, sizeof(entries) / sizeof(entries)[0], NULL)

/* One approval; NULL is the run, tool or arguments of the call that the checks make. */
struct row {
	const char *run_id;
	const char *tool;
	const char *args;     /* their canonical form */
	const char *decision; /* NULL: there is no such member */
};

static bool add_row(struct rv_buffer *text, struct rv_trial *trial, const struct row *row)
{
	const char *args = row->args != NULL ? row->args : "{}";
	struct rv_error err = RV_ERROR_INIT;
	struct rv_sha256 *sha = rv_sha256_new(&err);
	char hash[RV_SHA256_HEX];
	bool made = sha != NULL && rv_sha256_hex(sha, args, strlen(args), hash, &err) == 0;

	rv_sha256_free(sha);
	if (!made)
		return rv_trial_failed(trial, &err);
	rv_buffer_add_byte(text, '{');
	rv_json_member_string(text, "runId", row->run_id != NULL ? row->run_id : "run-m");
	rv_json_member_string(text, "tool", row->tool != NULL ? row->tool : "probe");
	rv_json_member_string(text, "argsHash", hash);
	if (row->decision != NULL)
		rv_json_member_string(text, "decision", row->decision);
	rv_buffer_add_string(text, "}\n");
	return true;
}

/* The path of a file of these approvals, and of the bytes behind them.  NULL noted. */
static const char *approvals_of(struct rv_trial *trial, const struct row *rows, size_t count, const char *last)
{
	struct rv_buffer *text = rv_trial_buffer(trial);

	for (size_t i = 0; text != NULL && i < count; i++) {
		if (!add_row(text, trial, &rows[i]))
			return NULL;
	}
	if (text == NULL)
		return NULL;
	rv_buffer_add_string(text, last);
	return written(trial, "approvals.jsonl", text);
}

/* ---- what becomes of a call ---- */

/* Refused so before an intent: no workdir, no row, and nothing was run. */
static bool is_refused(struct rv_trial *trial, const struct rv_ask *ask, const char *code)
{
	char event[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	rv_auto_fd int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	const struct rv_answer *answer;
	const struct rv_rows *rows;

	if (!rv_expect(trial, watch >= 0 && inotify_add_watch(watch, trial->base, IN_CREATE | IN_MOVED_TO) >= 0,
		       "inotify: %s", strerror(errno)))
		return false;
	answer = rv_ask(trial, ask);
	if (!rv_expect_error(trial, answer, code) ||
	    !rv_expect_reply(trial, answer, !rv_trial_exists(rv_trial_path(trial, "effect")), "a tool was run all the same") ||
	    !rv_expect_reply(trial, answer, read(watch, event, sizeof event) < 0, "a workdir was made"))
		return false;
	rows = rv_rows_read(trial, trial->ledger);
	return rows != NULL && rv_expect_reply(trial, answer, rows->count == 0, "%zu rows were written", rows->count);
}

/* The very call that was refused runs where it may: no refusal is one of everything.  It is kept out of the ledger. */
static bool is_run(struct rv_trial *trial, const struct rv_ask *ask)
{
	struct rv_ask call = *ask;
	const char *effect = rv_trial_path(trial, "effect");
	const struct rv_answer *answer;

	call.ledger = NULL;
	answer = rv_ask(trial, &call);
	return rv_expect_result(trial, answer, "1") &&
	       rv_expect_reply(trial, answer, effect != NULL && unlink(effect) == 0, "another tool was run");
}

/* ---- the manifest ---- */

static const struct entry plain[] = { { .name = PROBE, .script = EFFECT } };

static bool run_runs(struct rv_trial *trial)
{
	static const struct entry tools[] = {
		{ .name = "\"first\"", .script = "echo 1" },
		{ .name = PROBE, .script = "echo \"[\\\"$4\\\",\\\"$5\\\",$#]\"", .words = ",\"\",\"two words\"" },
		{ .name = "\"last\"", .script = "echo 3" },
	};
	struct rv_ask ask = { .manifest = manifest_of(trial, tools) };

	if (ask.manifest == NULL || !rv_expect_result(trial, rv_ask(trial, &ask), "[\"\",\"two words\",5]"))
		return false;
	ask.tool_json = RV_SPAN("\"last\"");
	return rv_expect_result(trial, rv_ask(trial, &ask), "3");
}

static bool run_spec(struct rv_trial *trial)
{
	struct rv_buffer *spec = rv_trial_buffer(trial);
	struct rv_ask ask = { .manifest = manifest_of(trial, plain), .ledger = trial->ledger };

	if (spec == NULL || ask.manifest == NULL)
		return false;
	rv_buffer_add_string(spec, "\"spec\":{\"command\":\"/bin/sh\",\"args\":[");
	rv_ask_add_script(spec, trial, ": >\"$1/effect\"; echo 2");
	rv_buffer_add_string(spec, "]}");
	ask.members = rv_buffer_string(spec) != NULL ? spec->data : "";
	if (!is_refused(trial, &ask, "config"))
		return false;
	ask.members = "\"spec\":{\"args\":[\"more\"]}";
	if (!is_refused(trial, &ask, "config"))
		return false;
	ask.members = NULL;
	return is_run(trial, &ask);
}

static bool run_unlisted(struct rv_trial *trial)
{
	static const struct rv_span names[] = {
		RV_SPAN_INIT("\"another\""), RV_SPAN_INIT("\"Probe\""), RV_SPAN_INIT("\"probe \""), RV_SPAN_INIT("\"prob\""),
	};
	struct rv_ask ask = { .manifest = manifest_of(trial, plain), .ledger = trial->ledger };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		ask.tool_json = names[i];
		if (ask.manifest == NULL || !is_refused(trial, &ask, "config"))
			return false;
	}
	ask.tool_json = RV_SPAN(PROBE);
	return is_run(trial, &ask);
}

static bool run_duplicate(struct rv_trial *trial)
{
	static const char *const names[] = { PROBE, "\"pr\\u006fbe\"" };

	for (size_t i = 0; i < 2; i++) {
		const struct entry twice[] = {
			{ .name = PROBE, .script = EFFECT }, { .name = names[i], .script = ": >\"$1/effect\"; echo 2" },
		};
		const struct rv_ask ask = { .manifest = manifest_of(trial, twice), .ledger = trial->ledger };

		if (ask.manifest == NULL || !is_refused(trial, &ask, "config"))
			return false;
	}
	return true;
}

static bool run_whole(struct rv_trial *trial)
{
	static const char *const bad[] = {
		"\"other\":null", "\"other\":{\"args\":[]}", "\"other\":{\"command\":[\"/bin/true\"]}",
		"\"other\":{\"command\":\"/bin/true\",\"args\":[\"a\",1]}",
		"\"other\":{\"command\":\"/bin/true\",\"timeout\":\"30\"}",
		"\"other\":{\"command\":\"/bin/true\",\"needsApproval\":\"yes\"}",
		"\"other\":{\"command\":\"/bin/true\",\"needsAproval\":true}",
	};
	struct rv_ask ask = { .ledger = trial->ledger };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		ask.manifest = manifest_with(trial, plain, 1, bad[i]);
		if (ask.manifest == NULL || !is_refused(trial, &ask, "config"))
			return false;
	}
	ask.manifest = manifest_with(trial, plain, 1, "\"other\":{\"command\":\"/bin/true\",\"timeout\":\"30s\"}");
	return ask.manifest != NULL && is_run(trial, &ask);
}

static bool run_timeout(struct rv_trial *trial)
{
	static const struct entry tools[] = {
		{ .name = PROBE, .script = "sleep 2; echo 1", .more = ",\"timeout\":\"300ms\"" },
		{ .name = "\"long\"", .script = "sleep 0.7; echo 1", .more = ",\"timeout\":\"20s\"" },
	};
	struct rv_ask ask = { .manifest = manifest_of(trial, tools), .timeout_ms = 300 };

	if (ask.manifest == NULL)
		return false;
	ask.tool_json = RV_SPAN("\"long\"");
	if (!rv_expect_result(trial, rv_ask(trial, &ask), "1"))
		return false;
	ask.tool_json = RV_SPAN(PROBE);
	ask.timeout_ms = 20000;
	return rv_expect_error(trial, rv_ask(trial, &ask), "timeout");
}

/* ---- approvals ---- */

static const struct entry guarded[] = {
	{ .name = PROBE, .script = EFFECT, .more = APPROVED }, { .name = "\"free\"", .script = EFFECT },
};

/* Refused with these approvals. */
static bool is_refused_with(struct rv_trial *trial, struct rv_ask *ask, const struct row *rows, size_t count)
{
	ask->approvals = approvals_of(trial, rows, count, "");
	return ask->approvals != NULL && is_refused(trial, ask, "config");
}

static bool is_run_with(struct rv_trial *trial, struct rv_ask *ask, const struct row *rows, size_t count)
{
	ask->approvals = approvals_of(trial, rows, count, "");
	return ask->approvals != NULL && is_run(trial, ask);
}

static bool run_needed(struct rv_trial *trial)
{
	struct rv_ask ask = { .manifest = manifest_of(trial, guarded), .run_id = "run-m", .ledger = trial->ledger };

	if (ask.manifest == NULL || !is_refused(trial, &ask, "config") || !is_refused_with(trial, &ask, NULL, 0))
		return false;
	ask.tool_json = RV_SPAN("\"free\"");
	if (!is_run(trial, &ask))
		return false;
	ask.approvals = NULL;
	return is_run(trial, &ask);
}

static bool run_granted(struct rv_trial *trial)
{
	static const char canonical[] = "{\"amount\":100,\"to\":\"\xc3\xa9\"}";
	static const struct row rows[] = { { .tool = "free" }, { .args = canonical, .decision = "approved" } };
	struct rv_ask ask = { .manifest = manifest_of(trial, guarded), .run_id = "run-m", .args = rv_span_of(canonical) };

	if (ask.manifest == NULL || !is_run_with(trial, &ask, rows, 2))
		return false;
	ask.args = RV_SPAN(" { \"to\":\"\\u00e9\", \"amount\":1e2 } ");
	return is_run(trial, &ask);
}

static bool run_other(struct rv_trial *trial)
{
	static const struct row rows[] = {
		{ .run_id = "run-n" }, { .tool = "free" }, { .args = "{\"amount\":100}" }, { .decision = NULL },
	};
	struct rv_ask ask = { .manifest = manifest_of(trial, guarded), .run_id = "run-m", .ledger = trial->ledger };

	if (ask.manifest == NULL)
		return false;
	for (size_t i = 0; i < 3; i++) {
		if (!is_refused_with(trial, &ask, &rows[i], 1))
			return false;
	}
	return is_refused_with(trial, &ask, rows, 3) && is_run_with(trial, &ask, rows, 4);
}

static bool run_denied(struct rv_trial *trial)
{
	static const struct row denied[] = { { .decision = "approved" }, { .decision = "denied" } };
	static const struct row unknown[] = { { .decision = NULL }, { .decision = "Approved" } };
	static const struct row again[] = { { .decision = "denied" }, { .decision = "approved" } };
	struct rv_ask ask = { .manifest = manifest_of(trial, guarded), .run_id = "run-m", .ledger = trial->ledger };

	return ask.manifest != NULL && is_refused_with(trial, &ask, &denied[1], 1) &&
	       is_refused_with(trial, &ask, denied, 2) && is_refused_with(trial, &ask, unknown, 2) &&
	       is_run_with(trial, &ask, again, 2);
}

static bool run_damaged(struct rv_trial *trial)
{
	static const char *const bad[] = {
		"approved\n", "[]\n", "{\"runId\":\"run-m\",\"tool\":\"probe\"}\n",
		"{\"runId\":\"run-m\",\"tool\":\"probe\",\"argsHash\":7}\n", "{\"runId\":\"run-m\",\"tool\":\"pro",
	};
	static const struct row good = { .decision = NULL };
	struct rv_ask ask = { .manifest = manifest_of(trial, guarded), .run_id = "run-m", .ledger = trial->ledger };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		ask.approvals = approvals_of(trial, &good, 1, bad[i]);
		if (ask.manifest == NULL || ask.approvals == NULL || !is_refused(trial, &ask, "request"))
			return false;
	}
	return is_run_with(trial, &ask, &good, 1);
}

static bool run_again(struct rv_trial *trial)
{
	const struct row row = { .run_id = rv_trial_printf(trial, "run-%s", trial->nonce) };
	struct rv_stream_plan plan = {
		.jobs = 2, .timeout_ms = 10000, .grace_ms = 1000, .max_output = 1 << 20, .ledger = trial->ledger,
		.manifest = manifest_of(trial, guarded), .approvals = approvals_of(trial, NULL, 0, ""),
	};
	const char *effect = rv_trial_path(trial, "effect");
	const struct rv_call *call;
	struct rv_stream *stream;

	if (row.run_id == NULL || plan.manifest == NULL || plan.approvals == NULL || effect == NULL)
		return false;
	rv_did(trial, "asked for a call in a stream, wrote its approval, and asked for it again");
	stream = rv_stream_open(trial, &plan);
	call = stream != NULL ? rv_stream_listed(stream, "unapproved") : NULL;
	if (call == NULL || !rv_stream_await(stream, call, trial->deadline_ms, true) ||
	    !rv_expect_code(stream, call, "config") ||
	    !rv_expect_call(stream, call, !rv_trial_exists(effect), "it was run all the same") ||
	    approvals_of(trial, &row, 1, "") == NULL)
		return false;
	call = rv_stream_listed(stream, "approved");
	return call != NULL && rv_stream_await(stream, call, trial->deadline_ms, true) &&
	       rv_expect_value(stream, call, "1") &&
	       rv_expect_call(stream, call, rv_trial_exists(effect), "another tool was run") &&
	       rv_stream_end(stream);
}

#define PAGE "rv-exec(1), What may run"

const struct rv_check rv_checks_manifest[] = {
	{ "manifest.runs", "a listed tool runs by the manifest's command",
	  "A request names a tool; the command and its words, empty ones too, are those of the tool's own entry.",
	  "Who asks for a tool is not who says what it is.",
	  PAGE, RV_CAN_MANIFEST, run_runs },
	{ "manifest.spec", "a request brings no command beside a manifest",
	  "A request with a spec is refused as config, with no workdir, no row and nothing run.",
	  "What the trusted side lists is worth nothing if a request says what is run.",
	  PAGE, RV_CAN_MANIFEST, run_spec },
	{ "manifest.unlisted", "what the manifest does not name does not run",
	  "Any other name, a near one too, is refused as config, with no workdir, no row and nothing run.",
	  "A list that lets other names through is no list.",
	  PAGE, RV_CAN_MANIFEST, run_unlisted },
	{ "manifest.duplicate", "a name that stands twice refuses the manifest",
	  "It is config, however the name is spelled, with no workdir, no row and nothing run.",
	  "A person reads the one, and the other runs.",
	  PAGE, RV_CAN_MANIFEST, run_duplicate },
	{ "manifest.whole", "one bad entry refuses the manifest",
	  "A wrong type, a missing command, an unknown member of any tool are config for a call of every tool, with no workdir, no row and nothing run.",
	  "A misspelt needsApproval is an approval that nobody asks for.",
	  PAGE, RV_CAN_MANIFEST, run_whole },
	{ "manifest.timeout", "a tool's own timeout stands for the configured one",
	  "It ends a tool sooner than the configured timeout would, and lets one run longer.",
	  "A bound that is written down and not kept is a slot that is gone.",
	  PAGE, RV_CAN_MANIFEST, run_timeout },
	{ "approvals.needed", "a tool that needs an approval does not run without",
	  "It is config with no approvals and with none that is the call's, with no workdir, no row and nothing run; a tool that needs none runs.",
	  "The effect that was to be asked for has happened.",
	  PAGE, RV_CAN_MANIFEST | RV_CAN_APPROVALS, run_needed },
	{ "approvals.granted", "an approved call runs",
	  "The approval is of the call's run, tool and argsHash, however the request spells its arguments.",
	  "An approval that depends on white space is asked for again and again, until nobody reads it.",
	  PAGE, RV_CAN_MANIFEST | RV_CAN_APPROVALS, run_granted },
	{ "approvals.other", "an approval of another call lets nothing through",
	  "One of another run, another tool or other arguments leaves the call refused, with no workdir, no row and nothing run.",
	  "Who approved a payment of ten has not approved one of ten thousand.",
	  PAGE, RV_CAN_MANIFEST | RV_CAN_APPROVALS, run_other },
	{ "approvals.denied", "the last word on a call counts",
	  "A decision other than approved authorises nothing, also behind an approval; an approval behind it does.",
	  "What was withdrawn would be done.",
	  PAGE, RV_CAN_MANIFEST | RV_CAN_APPROVALS, run_denied },
	{ "approvals.damaged", "a damaged file of approvals authorises nothing",
	  "A line that is no approval, or not whole, makes it request, with no workdir, no row and nothing run, whatever stands before it.",
	  "The line that cannot be read may be the one that withdraws.",
	  PAGE, RV_CAN_MANIFEST | RV_CAN_APPROVALS, run_damaged },
	{ "approvals.again", "an approval that comes while a stream runs counts",
	  "The file is read again, if it changed, before a call is refused.",
	  "An executor that must be started anew for each approval is run without them.",
	  PAGE, RV_CAN_MANIFEST | RV_CAN_APPROVALS | RV_CAN_STREAM, run_again },
	{ .id = NULL },
};

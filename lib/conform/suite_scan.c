/* ledger: what a scan says, by ADAPTER --scan. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/conform/rows.h"
#include "lib/conform/suites.h"
#include "lib/conform/vectors.h"
#include "lib/digest/digest.h"

#define ROW(phase, attempt, more) \
	"{\"phase\":\"" phase "\",\"idempotencyKey\":\"k\",\"runId\":\"r\",\"spanId\":\"s\",\"tool\":\"t\",\"argsHash\":" \
	"\"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\",\"executor\":\"subprocess\",\"workdir\":\"/w\"," \
	"\"startedAt\":1764441000001,\"attemptId\":\"" attempt "\"" more "}\n"
#define DONE ",\"durationMs\":5,\"outcome\":\"ok\",\"exitCode\":0,\"signal\":null"

static struct rv_span text_of(const struct rv_json_node *object, const char *name)
{
	const struct rv_json_node *member = rv_json_get(object, name);

	return rv_json_is_string(member) ? rv_json_string(member) : (struct rv_span){ NULL, 0 };
}

static const struct rv_command *scan(struct rv_trial *trial, bool tolerate, const char *one, const char *two)
{
	const char *words[5] = { "--scan", NULL, NULL, NULL, NULL };
	size_t n = 1;

	if (tolerate)
		words[n++] = "--tolerate-corrupt";
	words[n++] = one;
	words[n] = two;
	return one != NULL ? rv_trial_adapter(trial, words, RV_SPAN("")) : NULL;
}

/* Append the canonical form without the previews, which are for people. */
static bool add_comparable(struct rv_buffer *out, const struct rv_json_node *report)
{
	static const char member[] = "\"preview\":\"";
	struct rv_buffer form = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	bool made = report != NULL && rv_json_canonical(report, &form, &err) == 0 && rv_buffer_string(&form) != NULL;
	const char *at = made ? form.data : "";

	for (const char *next; (next = strstr(at, member)) != NULL;) {
		next += sizeof member - 1;
		rv_buffer_add(out, at, (size_t)(next - at));
		while (*next != '"' && *next != '\0')
			next += *next == '\\' ? 2 : 1;
		at = next;
	}
	rv_buffer_add_string(out, at);
	rv_buffer_release(&form);
	return made && !out->failed;
}

static bool expect_report(struct rv_trial *trial, const struct rv_command *command, const struct rv_json_node *want)
{
	struct rv_buffer *got = rv_trial_buffer(trial), *right = rv_trial_buffer(trial);
	const struct rv_json_node *report = rv_trial_parse(trial, command->said.data, command->said.len);
	size_t same = 0;

	if (got == NULL || right == NULL ||
	    !rv_expect(trial, add_comparable(got, report), "no report: status %d: %.*s", rv_trial_status(command),
		       (int)(command->complained.len < 300 ? command->complained.len : 300), command->complained.data) ||
	    !rv_expect(trial, add_comparable(right, want), "the vector itself has no report"))
		return false;
	while (same < got->len && same < right->len && got->data[same] == right->data[same])
		same++;
	return rv_expect(trial, got->len == right->len && same == got->len, "from byte %zu of its canonical form the report is %.*s, and not %.*s",
			 same, (int)(got->len - same < 120 ? got->len - same : 120), got->data + same,
			 (int)(right->len - same < 120 ? right->len - same : 120), right->data + same);
}

/* A vector, its file, and the scan of it that goes on. */
struct going {
	const struct rv_json_node *vector;
	struct rv_command *command;
	struct rv_span name, raw;
};

static bool begin(struct rv_trial *trial, struct going *going, struct rv_span line, bool tolerate, size_t number)
{
	const char *words[4] = { "--scan", NULL, NULL, NULL };
	const char *file = rv_trial_printf(trial, "%s/vector%zu.jsonl", trial->dir, number);
	struct rv_buffer *bytes = rv_trial_buffer(trial);
	struct rv_error err = RV_ERROR_INIT;

	going->vector = rv_trial_parse(trial, line.data, line.len);
	going->raw = text_of(going->vector, "fileBase64");
	going->name = text_of(going->vector, "name");
	if (bytes == NULL || file == NULL || rv_base64_decode(bytes, going->raw.data, going->raw.len, &err) != 0)
		return rv_trial_failed(trial, &err);
	if (!rv_trial_write(trial, file, (struct rv_span){ bytes->data, bytes->len }, 0600))
		return false;
	words[1] = tolerate ? "--tolerate-corrupt" : file;
	words[2] = tolerate ? file : NULL;
	going->command = rv_trial_adapter_start(trial, words, RV_SPAN(""));
	return going->command != NULL;
}

static bool end(struct rv_trial *trial, struct going *going, bool (*judge)(struct rv_trial *trial, const struct rv_command *command,
						    const struct rv_json_node *vector))
{
	rv_did(trial, "scanned the ledger '%.*s' (base64 %.*s)", (int)going->name.len, going->name.data,
	       (int)(going->raw.len < 1200 ? going->raw.len : 1200), going->raw.data);
	(void)rv_trial_finish(trial, going->command);
	return judge(trial, going->command, going->vector);
}

/* Some at a time: most of a short program's life is waiting for its turn. */
static bool each_vector(struct rv_trial *trial, bool tolerate, bool (*judge)(struct rv_trial *trial, const struct rv_command *command,
						    const struct rv_json_node *vector))
{
	struct rv_span rest = rv_vectors_ledger_scan, line;
	struct going going[RV_TRIAL_ABREAST];
	size_t begun = 0, ended = 0;

	while (rv_vectors_next(&rest, &line)) {
		if (begun - ended == RV_TRIAL_ABREAST && !end(trial, &going[ended++ % RV_TRIAL_ABREAST], judge))
			return false;
		if (!begin(trial, &going[begun % RV_TRIAL_ABREAST], line, tolerate, begun % RV_TRIAL_ABREAST))
			return false;
		begun++;
	}
	while (ended < begun) {
		if (!end(trial, &going[ended++ % RV_TRIAL_ABREAST], judge))
			return false;
	}
	return rv_expect(trial, begun > 20, "only %zu vectors", begun);
}

static bool is_refused(const struct rv_json_node *vector)
{
	const struct rv_json_node *member = rv_json_get(vector, "strictRefused");

	return member != NULL && rv_json_type(member) == RV_JSON_TRUE;
}

static size_t count_of(const struct rv_json_node *report, const char *list)
{
	const struct rv_json_node *node = rv_json_get(report, list);
	size_t count = 0;

	for (node = node != NULL ? rv_json_first(node) : NULL; node != NULL; node = rv_json_next(node))
		count++;
	return count;
}

static bool judge_strict(struct rv_trial *trial, const struct rv_command *command, const struct rv_json_node *vector)
{
	int status = rv_trial_status(command);

	if (is_refused(vector))
		return rv_expect(trial, status == 4 && command->said.len == 0,
				 "a corrupt ledger is not refused: status %d, %zu bytes on stdout", status, command->said.len);
	return rv_expect(trial, status == 0 || status == 1, "a sound ledger is refused: status %d", status);
}

static bool judge_report(struct rv_trial *trial, const struct rv_command *command, const struct rv_json_node *vector)
{
	return expect_report(trial, command, rv_json_get(vector, "scan"));
}

static bool judge_status(struct rv_trial *trial, const struct rv_command *command, const struct rv_json_node *vector)
{
	const struct rv_json_node *report = rv_json_get(vector, "scan");
	int want = count_of(report, "orphanedIntents") > 0 ? 1 : 0;

	return is_refused(vector) || rv_expect(trial, rv_trial_status(command) == want, "%zu orphans, and status %d",
					       count_of(report, "orphanedIntents"), rv_trial_status(command));
}

static bool run_strict(struct rv_trial *trial)
{
	return each_vector(trial, false, judge_strict);
}

static bool run_report(struct rv_trial *trial)
{
	return each_vector(trial, true, judge_report);
}

static bool run_status(struct rv_trial *trial)
{
	return each_vector(trial, false, judge_status);
}

/* The report's counts of intents, outcomes and orphans. */
static bool expect_counts(struct rv_trial *trial, const struct rv_command *command, int status, size_t intents,
			  size_t outcomes, size_t orphans)
{
	const struct rv_json_node *report;

	if (command == NULL)
		return false;
	report = rv_trial_parse(trial, command->said.data, command->said.len);
	return rv_expect(trial, report != NULL && rv_trial_status(command) == status, "status %d and not %d: %.*s",
			 rv_trial_status(command), status,
			 (int)(command->complained.len < 300 ? command->complained.len : 300), command->complained.data) &&
	       rv_expect(trial, count_of(report, "intents") == intents && count_of(report, "outcomes") == outcomes &&
			 count_of(report, "orphanedIntents") == orphans, "%zu intents, %zu outcomes, %zu orphans, and not %zu, %zu, %zu",
			 count_of(report, "intents"), count_of(report, "outcomes"), count_of(report, "orphanedIntents"), intents,
			 outcomes, orphans);
}

static bool run_merge(struct rv_trial *trial)
{
	const char *one = rv_trial_path(trial, "one.jsonl"), *two = rv_trial_path(trial, "two.jsonl");

	if (one == NULL || two == NULL ||
	    !rv_trial_write(trial, one, RV_SPAN(ROW("outcome", "a", DONE) ROW("intent", "b", "")), 0600) ||
	    !rv_trial_write(trial, two, RV_SPAN(ROW("intent", "a", "") ROW("intent", "c", "") ROW("outcome", "c", DONE)), 0600))
		return false;
	rv_did(trial, "scanned two ledgers, of which the first has the outcome of an intent of the second, in both orders");
	return expect_counts(trial, scan(trial, false, one, two), 1, 3, 2, 1) &&
	       expect_counts(trial, scan(trial, false, two, one), 1, 3, 2, 1);
}

static bool run_unreadable(struct rv_trial *trial)
{
	const char *good = rv_trial_path(trial, "good.jsonl"), *missing = rv_trial_path(trial, "missing.jsonl");
	const struct rv_command *command;

	if (good == NULL || missing == NULL || !rv_trial_write(trial, good, RV_SPAN(ROW("intent", "a", "")), 0600))
		return false;
	command = scan(trial, false, good, missing);
	rv_did(trial, "scanned a ledger and one that is not there");
	return command != NULL && rv_expect(trial, rv_trial_status(command) == 5 && command->said.len == 0,
					    "status %d, and %zu bytes on stdout", rv_trial_status(command), command->said.len);
}

static bool run_long_line(struct rv_trial *trial)
{
	const char *file = rv_trial_path(trial, "long.jsonl");
	struct rv_buffer *text = rv_trial_buffer(trial);

	if (file == NULL || text == NULL)
		return false;
	rv_buffer_add_string(text, ROW("intent", "a", ",\"pad\":\""));
	text->len -= 2; /* into the string */
	while (text->len < (size_t)4 << 20)
		rv_buffer_add(text, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 64);
	rv_buffer_add_string(text, "\"}\n" ROW("intent", "b", "") ROW("outcome", "a", DONE));
	rv_did(trial, "scanned a ledger with a row of 4 MiB and good rows behind it");
	return rv_trial_write(trial, file, (struct rv_span){ text->data, text->len }, 0600) &&
	       expect_counts(trial, scan(trial, false, file, NULL), 1, 2, 1, 1);
}

static bool run_untouched(struct rv_trial *trial)
{
	static const char torn[] = ROW("intent", "a", "") "{\"phase\":\"outco";
	const char *file = rv_trial_path(trial, "torn.jsonl");
	const struct rv_buffer *after;

	if (file == NULL || !rv_trial_write(trial, file, RV_SPAN(torn), 0400))
		return false;
	rv_did(trial, "scanned a read-only ledger with a torn tail");
	if (!expect_counts(trial, scan(trial, false, file, NULL), 1, 1, 0, 1))
		return false;
	after = rv_trial_read(trial, file);
	return rv_expect(trial, after != NULL && after->len == sizeof torn - 1 && memcmp(after->data, torn, after->len) == 0,
			 "the scan has changed the ledger");
}

const struct rv_check rv_checks_scan[] = {
	{ "scan.strict", "a corrupt ledger is refused",
	  "Every vector with a line that is not strict UTF-8, JSON and the shape of its phase ends in status 4 with nothing on stdout; every other one is read.",
	  "Whoever reconciles from a part of a ledger drops intents without knowing.",
	  "rv-ledger-scan(1)", RV_CAN_SCAN, run_strict },
	{ "scan.report", "the report is the engine's",
	  "Every vector has exactly its intents, outcomes, orphans, corrupt lines, torn artifacts and torn tail.",
	  "Two readers of one ledger must not disagree on what is an orphan.",
	  "rv-ledger-scan(1)", RV_CAN_SCAN, run_report },
	{ "scan.status", "the exit status tells whether there are orphans",
	  "1 where the report has one, else 0.",
	  "A boot script asks nothing else.",
	  "rv-ledger-scan(1)", RV_CAN_SCAN, run_status },
	{ "scan.merge", "pairing is over all files, in any order",
	  "An outcome in one worker's ledger resolves its intent in another's.",
	  "Each worker writes a file of its own.",
	  "rv-ledger-scan(1)", RV_CAN_SCAN, run_merge },
	{ "scan.unreadable", "a ledger that cannot be read is no smaller answer",
	  "Status 5, with nothing on stdout.",
	  "An answer without one worker's ledger looks like an answer.",
	  "rv-ledger-scan(1)", RV_CAN_SCAN, run_unreadable },
	{ "scan.long-line", "a row of 4 MiB hides nothing behind it",
	  "Rows behind a very long one are read.",
	  "A reader with a line limit loses the rest of the file.",
	  "rv-ledger-scan(1)", RV_CAN_SCAN, run_long_line },
	{ "scan.untouched", "a scan changes nothing",
	  "A read-only ledger with a torn tail is scanned and stays as it is.",
	  "An operator looks before touching.",
	  "rv-ledger-scan(1)", RV_CAN_SCAN, run_untouched },
	{ .id = NULL },
};

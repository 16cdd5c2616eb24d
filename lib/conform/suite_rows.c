/* executor: the rows that a dispatch writes, and when it may not go on without them. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/conform/ask.h"
#include "lib/conform/rows.h"
#include "lib/conform/suites.h"

static const char *const shared[] = {
	"idempotencyKey", "runId", "spanId", "tool", "argsHash", "executor", "workdir", "startedAt", "attemptId",
};

#define SHARED (sizeof shared / sizeof shared[0])

static bool run_members(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "echo 1", .ledger = trial->ledger };
	const struct rv_json_node *row, *member;
	int64_t number;

	if (!rv_expect_ok(trial, rv_ask(trial, &ask)))
		return false;
	row = rv_expect_attempt(trial, trial->ledger, "ok");
	member = row != NULL ? rv_json_first(row) : NULL;
	if (member == NULL || !rv_expect(trial, rv_span_equal(rv_json_name(member), RV_SPAN("phase")), "the row does not begin with phase"))
		return false;
	for (size_t i = 0; i < SHARED; i++) {
		member = rv_json_next(member);
		if (!rv_expect(trial, member != NULL && rv_span_equal(rv_json_name(member), rv_span_of(shared[i])),
			       "member %zu of the row is not %s", i + 2, shared[i]) ||
		    !rv_expect(trial, strcmp(shared[i], "startedAt") == 0 ? rv_json_integer(member, &number) && number > 1500000000000
									  : rv_json_is_string(member) && rv_json_string(member).len > 0,
			       "the row's %s is not what it should be", shared[i]))
			return false;
	}
	member = rv_json_get(row, "durationMs");
	return rv_expect(trial, member != NULL && rv_json_integer(member, &number) && number >= 0, "durationMs is no integer");
}

static bool run_pairing(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "exit 1", .ledger = trial->ledger };
	const struct rv_rows *rows;
	const struct rv_json_node *intent, *outcome;

	if (!rv_expect_error(trial, rv_ask(trial, &ask), "exit"))
		return false;
	rows = rv_rows_read(trial, trial->ledger);
	if (rows == NULL || !rv_expect(trial, rows->count == 2 && rv_member_is(rows->row[0], "phase", "intent") &&
				       rv_member_is(rows->row[1], "phase", "outcome"),
				       "the ledger has %zu rows, and not an intent and its outcome", rows->count))
		return false;
	intent = rows->row[0];
	outcome = rows->row[1];
	for (size_t i = 0; i < SHARED; i++) {
		if (!rv_expect(trial, rv_member_same(intent, outcome, shared[i]), "%s differs between intent and outcome", shared[i]))
			return false;
	}
	return true;
}

static bool run_attempts(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "echo 1", .ledger = trial->ledger };
	const struct rv_rows *rows;
	const struct rv_json_node *first, *second;

	for (int call = 0; call < 2; call++) {
		if (!rv_expect_ok(trial, rv_ask(trial, &ask)))
			return false;
	}
	rows = rv_rows_read(trial, trial->ledger);
	first = rv_rows_nth(rows, "outcome", 0);
	second = rv_rows_nth(rows, "outcome", 1);
	return rv_expect(trial, first != NULL && second != NULL, "two calls have not two outcomes") &&
	       rv_expect(trial, rv_member_same(first, second, "idempotencyKey"), "the same call has two keys") &&
	       rv_expect(trial, !rv_member_same(first, second, "attemptId"), "two attempts have one attemptId");
}

static bool run_timeout(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "exec sleep 3600.$2", .ledger = trial->ledger, .timeout_ms = 300, .grace_ms = 300,
	};

	return rv_expect_error(trial, rv_ask(trial, &ask), "timeout") &&
	       rv_expect_attempt(trial, trial->ledger, "timeout") != NULL;
}

static bool run_flood(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "head -c 1000000 /dev/zero; exec sleep 3600.$2", .ledger = trial->ledger, .max_output = 65536 };

	return rv_expect_error(trial, rv_ask(trial, &ask), "output-cap") &&
	       rv_expect_attempt(trial, trial->ledger, "error") != NULL;
}

static bool refuses(struct rv_trial *trial, const char *ledger)
{
	const struct rv_ask ask = { .script = ": >\"$1/effect\"; echo 1", .ledger = ledger };

	return ledger != NULL && rv_expect_error(trial, rv_ask(trial, &ask), "ledger") &&
	       rv_expect(trial, !rv_trial_exists(rv_trial_path(trial, "effect")), "the tool was run without an intent");
}

static bool run_no_intent(struct rv_trial *trial)
{
	const char *directory = rv_trial_path(trial, "directory");

	return rv_expect(trial, directory != NULL && mkdir(directory, 0700) == 0, "mkdir") && refuses(trial, directory) &&
	       refuses(trial, rv_trial_path(trial, "no/such/directory/effects.jsonl")) && refuses(trial, "/dev/full") &&
	       rv_expect(trial, rv_trial_entries(trial->base) == 0, "a refused dispatch leaves its workdir");
}

static bool run_no_outcome(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "mv \"$1/effects.jsonl\" \"$1/away\"; mkdir \"$1/effects.jsonl\"; echo 1", .ledger = trial->ledger,
	};

	return rv_expect_error(trial, rv_ask(trial, &ask), "ledger");
}

static bool run_renamed(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "mv \"$1/effects.jsonl\" \"$1/away\"; echo 1", .ledger = trial->ledger };
	const struct rv_rows *old, *new;

	if (!rv_expect_ok(trial, rv_ask(trial, &ask)))
		return false;
	old = rv_rows_read(trial, rv_trial_path(trial, "away"));
	new = rv_rows_read(trial, trial->ledger);
	return rv_expect(trial, rv_rows_count(old, "intent") == 1 && rv_rows_count(old, "outcome") + rv_rows_count(new, "outcome") == 1,
			 "of a dispatch whose ledger was renamed there are %zu intents and %zu outcomes", rv_rows_count(old, "intent"),
			 rv_rows_count(old, "outcome") + rv_rows_count(new, "outcome"));
}

const struct rv_check rv_checks_rows[] = {
	{ "row.members", "an outcome row has its members, in their order",
	  "phase, then the nine that identify the attempt, each of its type; durationMs is an integer.",
	  "A reader that fails closed refuses a row that lacks one.",
	  "rv-ledger(5)", RV_CAN_LEDGER, run_members },
	{ "row.pairing", "intent and outcome are one attempt",
	  "An intent, then its outcome, with the same nine members.",
	  "They pair by attemptId, and are looked up by the rest.",
	  "rv-ledger(5)", RV_CAN_LEDGER | RV_CAN_TWO_PHASE, run_pairing },
	{ "row.attempts", "each attempt has an id of its own",
	  "The same call twice has one key and two attemptIds.",
	  "With one id the outcome of the one would resolve the other.",
	  "rv-ledger(5)", RV_CAN_LEDGER, run_attempts },
	{ "row.timeout", "a timeout is ledgered as timeout",
	  "The outcome of a tool that ran past its deadline is timeout.",
	  "Of a timeout nobody knows whether the effect happened; of an error the tool may.",
	  "rv-ledger(5)", RV_CAN_LEDGER, run_timeout },
	{ "row.flood", "a flood is ledgered as error",
	  "The outcome of a tool that wrote too much is error.",
	  "There are three outcomes, and readers know no fourth.",
	  "rv-ledger(5)", RV_CAN_LEDGER, run_flood },
	{ "row.no-intent", "no intent, no dispatch",
	  "Where the intent cannot be written the error is ledger, and nothing runs.",
	  "Going on would reopen the very window that the intent closes.",
	  "rv-ledger(5)", RV_CAN_LEDGER | RV_CAN_TWO_PHASE, run_no_intent },
	{ "row.no-outcome", "a success whose outcome cannot be written is no success",
	  "The reply is the error ledger.",
	  "An effect that could not be audited must not report success silently.",
	  "rv-ledger(5)", RV_CAN_LEDGER, run_no_outcome },
	{ "row.renamed", "a ledger that is renamed away loses no row",
	  "The outcome stands in the renamed file or in a new one at the path.",
	  "Log rotation must not make orphans.",
	  "rv-ledger(5)", RV_CAN_LEDGER | RV_CAN_TWO_PHASE, run_renamed },
	{ .id = NULL },
};

/* kernel: what a tool in the sandbox has, what is said of it, and what is refused. */
#include <string.h>
#include <unistd.h>

#include "lib/conform/ask.h"
#include "lib/conform/rows.h"
#include "lib/conform/suites.h"

static bool run_ledger(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "{ cat \"$1/effects.jsonl\"; ls \"$1\"; } 2>/dev/null | say; "
			  "{ echo '{\"phase\":\"forged\"}' >>\"$1/effects.jsonl\"; rm -f \"$1/effects.jsonl\"; } 2>/dev/null; exit 0",
		.sandbox = "kernel", .ledger = trial->ledger,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *said = rv_answer_said(trial, answer);
	const struct rv_rows *rows = said != NULL ? rv_rows_read(trial, trial->ledger) : NULL;

	return rows != NULL && rv_expect(trial, strstr(said->data, "intent") == NULL && strstr(said->data, "effects") == NULL,
					 "the tool read its own intent: %s", said->data) &&
	       rv_expect(trial, rows->count == 2 && rv_rows_count(rows, "intent") == 1 && rv_rows_count(rows, "outcome") == 1,
			 "the ledger has %zu rows, and not an intent and an outcome", rows->count);
}

/* Twice: nothing of the first is there for the second. */
static bool run_work(struct rv_trial *trial)
{
	const char *mine = rv_trial_printf(trial, "/tmp/rv-conform-%s", trial->nonce);
	const struct rv_ask ask = {
		.script = "inside \"$1\"; set -e; [ -z \"$(ls -A .)\" ]; echo 1 >here; mkdir d; mv here d/there; cat d/there >/dev/null; "
			  "[ ! -e /tmp/rv-conform-$2 ]; echo 1 >/tmp/rv-conform-$2; echo 1 >/dev/null; head -c 2 /dev/zero >two; "
			  "[ \"$(wc -c <two)\" = 2 ]; head -c 2 /dev/urandom >two; sleep 0 & wait; echo '\"all there\"'",
		.sandbox = "kernel",
	};
	bool held;

	if (mine == NULL)
		return false;
	held = rv_expect_result(trial, rv_ask(trial, &ask), "\"all there\"") &&
	       rv_expect_result(trial, rv_ask(trial, &ask), "\"all there\"") &&
	       rv_expect(trial, !rv_trial_exists(mine), "the sandbox's /tmp is the host's");
	(void)unlink(mine); /* of a bad sandbox */
	return held;
}

static bool run_said(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "echo 1", .sandbox = "kernel", .ledger = trial->ledger };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_json_node *intent;

	if (!rv_expect_result(trial, answer, "1"))
		return false;
	intent = rv_rows_nth(rv_rows_read(trial, trial->ledger), "intent", 0);
	return rv_expect_reply(trial, answer, rv_member_is(answer->reply, "sandbox", "kernel"), "the reply names another sandbox") &&
	       rv_expect(trial, intent != NULL && rv_member_is(intent, "sandbox", "kernel") &&
				rv_member_is(intent, "executor", "subprocess"),
			 "the intent names another sandbox or executor");
}

static bool run_refused(struct rv_trial *trial)
{
	const char *const readable[] = { rv_trial_path(trial, "absent"), NULL };
	const struct rv_ask ask = {
		.script = "echo 1", .sandbox = "kernel", .readable = readable, .ledger = trial->ledger,
	};

	if (readable[0] == NULL || !rv_expect_error(trial, rv_ask(trial, &ask), "config"))
		return false;
	return rv_expect(trial, rv_trial_read(trial, trial->ledger) == NULL || rv_trial_read(trial, trial->ledger)->len == 0,
			 "what was refused has a row") &&
	       rv_expect(trial, rv_trial_entries(trial->base) == 0, "what was refused has a workdir");
}

const struct rv_check rv_checks_enclosed[] = {
	{ "kernel.ledger", "the ledger is neither read nor written",
	  "The tool cannot see the ledger nor its directory, and what it appends there is in no row.",
	  "Forged rows cannot be told from true ones.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL | RV_CAN_LEDGER | RV_CAN_TWO_PHASE, run_ledger },
	{ "kernel.work", "the workdir, /tmp and the harmless devices are there",
	  "The workdir is writable at its path, /tmp is private and empty each time, and a tool can do its work.",
	  "A sandbox in which nothing runs is switched off.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_work },
	{ "kernel.said", "reply and intent name the sandbox",
	  "Both have sandbox kernel, and the executor stays subprocess.",
	  "An audit has to tell what ran behind it from what did not.",
	  "rv-exec(1), Replies", RV_CAN_KERNEL | RV_CAN_LEDGER | RV_CAN_TWO_PHASE, run_said },
	{ "kernel.refused", "what cannot be enforced is config before anything is written",
	  "A path to be shown that is not there: no row, no workdir, no run.",
	  "A sandbox that is quietly another one is none.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL | RV_CAN_LEDGER, run_refused },
	{ .id = NULL },
};

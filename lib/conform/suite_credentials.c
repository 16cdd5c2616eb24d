/* executor: credentials that are minted for one call. */
#include <string.h>

#include "lib/conform/ask.h"
#include "lib/conform/remains.h"
#include "lib/conform/rows.h"
#include "lib/conform/suites.h"

#define MINT "cat >/dev/null; printf '{\"RV_MINTED\":\"%s\"}' \"minted-$2\""

static bool run_fresh(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "env | say",
		.mint = "cat >/dev/null; echo . >>\"$1/count\"; printf '{\"RV_MINTED\":\"%s\"}' $(wc -l <\"$1/count\")",
	};

	for (int i = 1; i <= 3; i++) {
		const struct rv_answer *answer = rv_ask(trial, &ask);
		const struct rv_buffer *env = rv_answer_said(trial, answer);
		const char *want = rv_trial_printf(trial, "RV_MINTED=%d", i);

		if (env == NULL || want == NULL ||
		    !rv_expect_reply(trial, answer, rv_has_line(env->data, want), "call %d got: %s", i, env->data))
			return false;
	}
	return true;
}

static bool run_request(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "echo 1", .mint = "cat >\"$1/request\"; printf '{}'", .key = "key-m", .run_id = "run-m",
		.args = RV_SPAN("{\"b\":1,\"a\":2}"),
	};
	const struct rv_buffer *line;
	const struct rv_json_node *root, *ctx;

	if (!rv_expect_ok(trial, rv_ask(trial, &ask)))
		return false;
	line = rv_trial_read(trial, rv_trial_path(trial, "request"));
	root = line != NULL ? rv_trial_parse(trial, line->data, line->len) : NULL;
	ctx = rv_json_get(root, "ctx");
	return rv_expect(trial, root != NULL, "the program's input is no JSON: %s", line != NULL ? line->data : "(nothing)") &&
	       rv_expect(trial, rv_member_is(root, "tool", "probe") && rv_json_get(rv_json_get(root, "args"), "b") != NULL &&
			 rv_member_is(ctx, "runId", "run-m") && rv_member_is(ctx, "idempotencyKey", "key-m"),
			 "the program's input does not say tool, args, runId and idempotencyKey: %s", line->data);
}

static bool fails_as_config(struct rv_trial *trial, const char *mint, const char *ledger)
{
	const struct rv_ask ask = { .script = ": >\"$1/effect\"; echo 1", .mint = mint, .ledger = ledger };

	return rv_expect_error(trial, rv_ask(trial, &ask), "config") &&
	       rv_expect(trial, !rv_trial_exists(rv_trial_path(trial, "effect")), "the tool was run without credentials");
}

static bool run_failure(struct rv_trial *trial)
{
	return fails_as_config(trial, "cat >/dev/null; printf '{\"A\":\"1\"}'; exit 1", NULL) &&
	       fails_as_config(trial, "cat >/dev/null; kill -9 $$", NULL);
}

static bool run_shape(struct rv_trial *trial)
{
	static const char *const mints[] = {
		"cat >/dev/null", "cat >/dev/null; echo '[\"A\"]'", "cat >/dev/null; echo '{\"A\":1}'", "cat >/dev/null; echo '{} {}'",
		"cat >/dev/null; echo '{\"A=B\":\"1\"}'", "cat >/dev/null; echo '{\"A\":\"x\\u0000y\"}'", NULL,
	};

	for (size_t i = 0; mints[i] != NULL; i++) {
		if (!fails_as_config(trial, mints[i], NULL))
			return false;
	}
	return true;
}

static bool run_ledgered(struct rv_trial *trial)
{
	const struct rv_json_node *row;

	if (!fails_as_config(trial, "cat >/dev/null; exit 1", trial->ledger))
		return false;
	row = rv_expect_attempt(trial, trial->ledger, "error");
	return row != NULL && rv_expect(trial, rv_json_get(row, "exitCode") != NULL &&
					rv_json_type(rv_json_get(row, "exitCode")) == RV_JSON_NULL,
					"the row has an exitCode, as if the tool had run");
}

static bool run_after_intent(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "echo 1", .mint = "cat >/dev/null; cat \"$1/effects.jsonl\" >\"$1/seen\"; printf '{}'",
		.ledger = trial->ledger,
	};
	const struct rv_rows *rows;

	if (!rv_expect_ok(trial, rv_ask(trial, &ask)))
		return false;
	rows = rv_rows_read(trial, rv_trial_path(trial, "seen"));
	return rv_expect(trial, rv_rows_count(rows, "intent") == 1, "the ledger had no intent when the credentials were minted");
}

static bool run_own_wins(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "env | say", .key = "true-key",
		.mint = "cat >/dev/null; echo '{\"RULVAR_IDEMPOTENCY_KEY\":\"forged\",\"RULVAR_RUN_ID\":\"forged\",\"RV_OTHER\":\"1\"}'",
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *env = rv_answer_said(trial, answer);

	return env != NULL && rv_expect_reply(trial, answer, strstr(env->data, "forged") == NULL &&
					      rv_has_line(env->data, "RV_OTHER=1"),
					      "credentials override the call's own variables: %s", env->data);
}

/* While the tool holds the secret: is it in any command line of the machine, in the ledger, in the reply? */
static bool run_nowhere(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "[ \"$RV_MINTED\" = \"minted-$2\" ] || exit 1; : >\"$1/effect\"; "
			  "while [ ! -e \"$1/go\" ]; do sleep 0.02; done; echo 1",
		.mint = MINT, .ledger = trial->ledger, .timeout_ms = 15000,
	};
	const char *secret = rv_trial_printf(trial, "minted-%s", trial->nonce);
	struct rv_command *command = rv_ask_begin(trial, &ask);
	const struct rv_answer *answer;
	const struct rv_buffer *ledger;
	size_t seen;

	if (command == NULL || secret == NULL ||
	    !rv_expect_reply(trial, NULL, rv_trial_await(trial, rv_trial_path(trial, "effect"), command), "the tool got no credentials"))
		return false;
	seen = rv_remains_count(secret);
	if (!rv_trial_write(trial, rv_trial_path(trial, "go"), RV_SPAN(""), 0600))
		return false;
	answer = rv_ask_end(trial, command);
	ledger = rv_trial_read(trial, trial->ledger);
	return rv_expect_result(trial, answer, "1") &&
	       rv_expect(trial, seen == 0, "the secret stood in the command line of %zu processes", seen) &&
	       rv_expect_reply(trial, answer, memmem(answer->line.data, answer->line.len, secret, strlen(secret)) == NULL,
			       "the secret is in the reply") &&
	       rv_expect(trial, ledger == NULL || strstr(ledger->data, secret) == NULL, "the secret is in the ledger");
}

const struct rv_check rv_checks_credentials[] = {
	{ "credentials.fresh", "credentials are minted afresh for each dispatch",
	  "Three calls run the program three times, and each gets its own value.",
	  "A token that is kept outlives the call that it was minted for.",
	  "rv-exec(1), --credentials", RV_CAN_CREDENTIALS, run_fresh },
	{ "credentials.request", "the minting program knows the call",
	  "It reads the request: tool, args, runId and idempotencyKey.",
	  "Who mints without knowing what for mints for everything.",
	  "rv-exec(1), --credentials", RV_CAN_CREDENTIALS, run_request },
	{ "credentials.failure", "a minting program that fails is config",
	  "The error is config, and the tool is not run.",
	  "A tool without the credentials that it counts on may fall back on worse ones.",
	  "rv-exec(1), --credentials", RV_CAN_CREDENTIALS, run_failure },
	{ "credentials.shape", "credentials that are no object of strings are config",
	  "Anything but one JSON object of strings that an environment can carry is refused.",
	  "A number that is printed as one executor prints it is another's broken token.",
	  "rv-exec(1), --credentials", RV_CAN_CREDENTIALS, run_shape },
	{ "credentials.ledgered", "a failed minting has its outcome row",
	  "The outcome is error with exitCode null.",
	  "An intent without it would be an orphan that someone has to look up for nothing.",
	  "rv-ledger(5)", RV_CAN_CREDENTIALS | RV_CAN_LEDGER, run_ledgered },
	{ "credentials.after-intent", "credentials are minted after the intent",
	  "The intent stands in the ledger when the program runs.",
	  "Minting is an effect at someone else's, too.",
	  "rv-exec(1), --credentials", RV_CAN_CREDENTIALS | RV_CAN_LEDGER | RV_CAN_TWO_PHASE, run_after_intent },
	{ "credentials.own-wins", "credentials do not override the call's own variables",
	  "A minted RULVAR_IDEMPOTENCY_KEY gives way to the call's.",
	  "The minting program must not be able to move an effect to another key.",
	  "rv-exec(1), The tool", RV_CAN_CREDENTIALS, run_own_wins },
	{ "credentials.nowhere", "a secret stands nowhere but in the tool's environment",
	  "No command line, no row and no reply holds a minted value.",
	  "Command lines are readable by every user, and ledgers are kept.",
	  "rv-exec(1), --credentials", RV_CAN_CREDENTIALS, run_nowhere },
	{ .id = NULL },
};

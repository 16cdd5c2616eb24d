/* executor: e1 to e12, what any executor must do. */
#include <string.h>

#include "lib/conform/ask.h"
#include "lib/conform/rows.h"
#include "lib/conform/suites.h"

static bool run_e1(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "exec cat", /* ends only at end of file */
		.args = RV_SPAN("{\"text\":\"h\\u00e9llo\",\"list\":[1,2.5,null,true],\"empty\":{}}"),
		.key = "key-e1",
		.run_id = "run-e1",
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_result(trial, answer, "{\"tool\":\"probe\",\"args\":{\"text\":\"h\xc3\xa9llo\","
					       "\"list\":[1,2.5,null,true],\"empty\":{}},\"idempotencyKey\":\"key-e1\"}") &&
	       rv_expect_reply(trial, answer, rv_member_is(answer->reply, "tool", "probe") &&
			       rv_member_is(answer->reply, "runId", "run-e1") &&
			       rv_member_is(answer->reply, "idempotencyKey", "key-e1"),
			       "the reply does not say which call it answers (tool, runId, idempotencyKey)");
}

static bool run_e2(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "env | say" };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *env = rv_answer_said(trial, answer);

	return env != NULL && rv_expect_reply(trial, answer, strstr(env->data, "RV_CONFORM_SECRET") == NULL &&
					      strstr(env->data, "secret-") == NULL,
					      "the tool's environment holds the adapter's secret: %s", env->data);
}

static bool run_e3(struct rv_trial *trial)
{
	static const char *const names[] = { "RV_CONFORM_ALLOWED", NULL };
	static const char *const set[] = { "RV_CONFORM_ALLOWED=a b=c'\"$", NULL };
	const struct rv_ask ask = { .script = "env | say", .allow_env = names, .set = set };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *env = rv_answer_said(trial, answer);

	return env != NULL && rv_expect_reply(trial, answer, rv_has_line(env->data, set[0]),
					      "no %s in the tool's environment: %s", set[0], env->data);
}

static bool run_e4(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "env | say",
		.mint = "cat >/dev/null; printf '{\"RV_MINTED\":\"token %s\"}' \"$2\"",
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *env = rv_answer_said(trial, answer);
	const char *want = rv_trial_printf(trial, "RV_MINTED=token %s", trial->nonce);

	return env != NULL && want != NULL &&
	       rv_expect_reply(trial, answer, rv_has_line(env->data, want), "no %s in the tool's environment: %s", want,
			       env->data);
}

static bool run_e5(struct rv_trial *trial)
{
	static const char key[] = "key-e5 \xe2\x82\xac";
	const struct rv_ask line = { .script = "exec cat", .key = key };
	const struct rv_ask variable = { .script = "env | say", .key = key };
	const struct rv_answer *answer = rv_ask(trial, &line);
	const struct rv_buffer *env;

	if (!rv_expect_ok(trial, answer) ||
	    !rv_expect_reply(trial, answer, rv_member_is(rv_answer_result(answer), "idempotencyKey", key),
			     "no idempotencyKey in the tool's input"))
		return false;
	answer = rv_ask(trial, &variable);
	env = rv_answer_said(trial, answer);
	return env != NULL &&
	       rv_expect_reply(trial, answer, rv_has_line(env->data, "RULVAR_IDEMPOTENCY_KEY=key-e5 \xe2\x82\xac"),
			       "no RULVAR_IDEMPOTENCY_KEY in the tool's environment: %s", env->data);
}

static bool run_e6(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "exec sleep 3600.$2", .timeout_ms = 300, .grace_ms = 300 };
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_error(trial, answer, "timeout") && rv_expect_within(trial, answer, 5000);
}

/* Finite, so that an executor without a cap takes no more than this; then it hangs. */
#define FLOOD "head -c 50000000 /dev/zero; exec sleep 3600.$2"

static bool run_e7(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = FLOOD, .max_output = 65536 };
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_error(trial, answer, "output-cap") && rv_expect_within(trial, answer, 8000);
}

static bool run_e8(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "echo '{\"ok\":1}'; echo first >&2; echo 'the reason' >&2; exit 3" };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	struct rv_span message;

	if (!rv_expect_error(trial, answer, "exit"))
		return false;
	message = rv_answer_message(answer);
	return rv_expect_reply(trial, answer, message.len > 0 && memmem(message.data, message.len, "the reason", 10) != NULL,
			       "the message does not end with what stderr said");
}

static bool run_e9(struct rv_trial *trial)
{
	static const char *const scripts[] = {
		"echo not json", "echo '{\"a\":1'", "echo 1 2", "echo '{}{}'", "echo \"'a'\"", "echo NaN", NULL,
	};

	for (size_t i = 0; scripts[i] != NULL; i++) {
		const struct rv_ask ask = { .script = scripts[i] };

		if (!rv_expect_error(trial, rv_ask(trial, &ask), "protocol"))
			return false;
	}
	return true;
}

/* The workdir's path; NULL noted. */
static const char *ask_workdir(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "inside \"$1\"; n=$(ls -A | wc -l); : >left; mkdir sub; : >sub/left; { echo $n; pwd; } | say" };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *said = rv_answer_said(trial, answer);
	const char *path = said != NULL ? strchr(said->data, '/') : NULL;
	char *copy;

	if (said == NULL || !rv_expect_reply(trial, answer, path != NULL, "no workdir: %s", said->data) ||
	    !rv_expect_reply(trial, answer, said->data[0] == '0', "the workdir was not empty at the start: %s", said->data))
		return NULL;
	copy = rv_trial_printf(trial, "%.*s", (int)strcspn(path, "\n"), path);
	if (copy == NULL || !rv_expect_reply(trial, answer, !rv_trial_exists(copy), "%s is still there after the reply", copy))
		return NULL;
	return copy;
}

static bool run_e10(struct rv_trial *trial)
{
	const char *first = ask_workdir(trial);
	const char *second = first != NULL ? ask_workdir(trial) : NULL;

	return second != NULL && rv_expect(trial, strcmp(first, second) != 0, "both calls had the workdir %s", first) &&
	       rv_expect(trial, rv_trial_entries(trial->base) == 0, "%d entries are left in the workdirs' base",
			 rv_trial_entries(trial->base));
}

static bool has_hash(struct rv_trial *trial, const struct rv_json_node *row)
{
	const struct rv_json_node *hash = rv_json_get(row, "argsHash");

	return rv_expect(trial, rv_json_is_string(hash) && rv_is_hex64(rv_json_string(hash)),
			 "the row's argsHash is no 64 lowercase hex digits");
}

static bool run_e11(struct rv_trial *trial)
{
	char *other = rv_trial_path(trial, "failures.jsonl");
	const struct rv_ask good = { .script = "echo 1", .ledger = trial->ledger };
	const struct rv_ask bad = { .script = "exit 1", .ledger = other };
	const struct rv_json_node *row;

	if (other == NULL || !rv_expect_ok(trial, rv_ask(trial, &good)))
		return false;
	row = rv_expect_attempt(trial, trial->ledger, "ok");
	if (row == NULL || !has_hash(trial, row) || !rv_expect_error(trial, rv_ask(trial, &bad), "exit"))
		return false;
	row = rv_expect_attempt(trial, other, "error");
	return row != NULL && has_hash(trial, row);
}

static bool run_e12(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "echo not json", .ledger = trial->ledger };
	const struct rv_json_node *row;
	int64_t status = -1;

	if (!rv_expect_error(trial, rv_ask(trial, &ask), "protocol"))
		return false;
	row = rv_expect_attempt(trial, trial->ledger, "error");
	return row != NULL && rv_expect(trial, rv_json_get(row, "exitCode") != NULL &&
					rv_json_integer(rv_json_get(row, "exitCode"), &status) && status == 0,
					"the row's exitCode is not 0");
}

const struct rv_check rv_checks_first[] = {
	{ "e1", "protocol round trip",
	  "A tool reads one line {tool, args, idempotencyKey} and then end of file; its stdout is the result, and the reply names the call.",
	  "A tool that waits for end of file hangs, or one that reads other arguments than were asked for acts on them.",
	  "rv-exec(1), The tool", 0, run_e1 },
	{ "e2", "a host secret is not in the tool's environment",
	  "The tool's environment is replaced and not inherited.",
	  "Whatever token the host's environment holds is the first thing that hostile code sends away.",
	  "rv-exec(1), The tool", 0, run_e2 },
	{ "e3", "an allowed variable passes",
	  "A variable named in allowEnv reaches the tool with its exact value.",
	  "Without it people pass secrets by worse ways.",
	  "rv-exec(1), --allow-env", 0, run_e3 },
	{ "e4", "minted credentials arrive",
	  "What the credentials program prints is in the tool's environment.",
	  "A token that is minted for one call need not live in the host's environment.",
	  "rv-exec(1), --credentials", RV_CAN_CREDENTIALS, run_e4 },
	{ "e5", "the idempotency key arrives",
	  "The tool finds the call's key in its input line and in RULVAR_IDEMPOTENCY_KEY.",
	  "Only a key that reaches the effect's provider lets a retry be recognised and an orphan be looked up.",
	  "rv-exec(1), The tool", 0, run_e5 },
	{ "e6", "a slow tool is timeout within 5 s",
	  "A tool that runs past its timeout is killed, and the reply is timeout.",
	  "One tool that hangs would hold an agent for ever.",
	  "rv-exec(1), The end", 0, run_e6 },
	{ "e7", "a flood is output-cap",
	  "More on stdout than maxOutputBytes ends the tool, and the reply is output-cap.",
	  "One tool that does not stop writing would take the host's memory.",
	  "rv-exec(1), --max-output", 0, run_e7 },
	{ "e8", "a non-zero exit is exit with its stderr tail",
	  "A tool's own failure is the error exit, whatever stdout says, and its message ends with the end of stderr.",
	  "A failed effect that is reported as a result is never looked at again.",
	  "rv-exec(1), The end", 0, run_e8 },
	{ "e9", "unparseable output is protocol",
	  "Output that is not exactly one JSON value is the error protocol, and never a guess.",
	  "A guess turns a broken tool's text into an agent's fact.",
	  "rv-exec(1), The tool", 0, run_e9 },
	{ "e10", "each call gets an empty workdir that is removed",
	  "Two calls have two workdirs, both empty at the start and gone after the reply.",
	  "What one call leaves another would read.",
	  "rv-exec(1), The tool", 0, run_e10 },
	{ "e11", "success and failure are both in the ledger",
	  "Each dispatch has one outcome row, ok or error, with a 64-digit argsHash.",
	  "An effect without a row is an effect that nobody can account for.",
	  "rv-ledger(5)", RV_CAN_LEDGER, run_e11 },
	{ "e12", "a protocol failure is ledgered as error with exitCode 0",
	  "Where the tool exited 0 and its output was refused, the row says error and exitCode 0.",
	  "A row that says ok would hide a failure, one without the status would hide that the effect may have happened.",
	  "rv-ledger(5)", RV_CAN_LEDGER, run_e12 },
	{ .id = NULL },
};

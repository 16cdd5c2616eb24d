/* executor: which call this is: its key, and the hash that binds an approval to it. */
#include <string.h>

#include "lib/conform/ask.h"
#include "lib/conform/rows.h"
#include "lib/conform/suites.h"
#include "lib/digest/digest.h"

#define COORDINATES "\"genesis\":\"g-1\",\"execKeyDerivation\":2,\"agentSeq\":7,\"ordinal\":3"

/* The reply's key for these coordinates and arguments; NULL noted. */
static const char *ask_key(struct rv_trial *trial, const struct rv_ask *ask)
{
	const struct rv_answer *answer = rv_ask(trial, ask);
	const char *key;

	if (!rv_expect_ok(trial, answer))
		return NULL;
	key = rv_member_text(trial, answer->reply, "idempotencyKey");
	return rv_expect_reply(trial, answer, rv_is_hex64(rv_span_of(key)), "the derived key is '%s'", key) ? key : NULL;
}

static bool run_stable(struct rv_trial *trial)
{
	static const char *const set[] = { "TZ=Pacific/Auckland", "LC_ALL=de_DE.UTF-8", "LANG=de_DE.UTF-8", NULL };
	const struct rv_ask plain = {
		.script = "echo 1", .run_id = "run-k", .coordinates = COORDINATES, .args = RV_SPAN("{\"a\":0.5,\"b\":[1,2]}"),
	};
	const struct rv_ask moved = {
		.script = "echo 1", .run_id = "run-k", .coordinates = COORDINATES, .args = RV_SPAN(" { \"b\" : [ 1.0, 2 ],\n \"a\" : 5e-1 } "),
		.set = set,
	};
	const char *first = ask_key(trial, &plain);
	const char *second = first != NULL ? ask_key(trial, &moved) : NULL;

	return second != NULL && rv_expect(trial, strcmp(first, second) == 0, "the same call has the keys %s and %s", first, second);
}

static bool run_exact(struct rv_trial *trial)
{
	/* of the canonical {"agentSeq":7,"args":{"a":1},"derivation":2,"genesis":"g-1","ordinal":3,"runId":"run-k","tool":"probe"} */
	static const char text[] = "{\"agentSeq\":7,\"args\":{\"a\":1},\"derivation\":2,\"genesis\":\"g-1\",\"ordinal\":3,"
				   "\"runId\":\"run-k\",\"tool\":\"probe\"}";
	const struct rv_ask ask = {
		.script = "echo \"\\\"$RULVAR_IDEMPOTENCY_KEY\\\"\"", .run_id = "run-k", .coordinates = COORDINATES, .args = RV_SPAN("{\"a\":1}"),
	};
	struct rv_error err = RV_ERROR_INIT;
	struct rv_sha256 *sha = rv_sha256_new(&err);
	char want[RV_SHA256_HEX + 2] = "\"";
	const char *key = ask_key(trial, &ask);
	bool made = sha != NULL && rv_sha256_hex(sha, text, strlen(text), want + 1, &err) == 0;

	rv_sha256_free(sha);
	if (!made)
		return rv_trial_failed(trial, &err);
	if (key == NULL || !rv_expect(trial, strcmp(key, want + 1) == 0, "the key is %s and not %s", key, want + 1))
		return false;
	want[RV_SHA256_HEX] = '"';
	want[RV_SHA256_HEX + 1] = '\0';
	return rv_expect_result(trial, rv_ask(trial, &ask), want);
}

static bool run_distinct(struct rv_trial *trial)
{
	static const char *const others[] = {
		"\"genesis\":\"g-1\",\"execKeyDerivation\":2,\"agentSeq\":7,\"ordinal\":4",
		"\"genesis\":\"g-1\",\"execKeyDerivation\":2,\"agentSeq\":8,\"ordinal\":3",
		"\"genesis\":\"g-2\",\"execKeyDerivation\":2,\"agentSeq\":7,\"ordinal\":3",
	};
	struct rv_ask ask = { .script = "echo 1", .run_id = "run-k", .coordinates = COORDINATES };
	const char *first = ask_key(trial, &ask);

	for (size_t i = 0; first != NULL && i < sizeof others / sizeof others[0]; i++) {
		const char *other;

		ask.coordinates = others[i];
		other = ask_key(trial, &ask);
		if (other == NULL || !rv_expect(trial, strcmp(first, other) != 0, "another call (%s) has the same key", others[i]))
			return false;
	}
	return first != NULL;
}

static bool run_both(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = ": >\"$1/effect\"; echo 1", .coordinates = COORDINATES, .both = true, .key = "another", .ledger = trial->ledger,
	};

	return rv_expect_error(trial, rv_ask(trial, &ask), "request") &&
	       rv_expect(trial, !rv_trial_exists(rv_trial_path(trial, "effect")), "the tool was run all the same");
}

/* argsHash of the row: of the canonical arguments, whoever spells them. */
static bool run_approval(struct rv_trial *trial)
{
	static const char canonical[] = "{\"amount\":100,\"to\":\"\xc3\xa9\"}";
	static const char *const spellings[] = {
		"{\"amount\":100,\"to\":\"\xc3\xa9\"}", "{ \"to\":\"\\u00e9\", \"amount\":1e2 }",
	};
	struct rv_error err = RV_ERROR_INIT;
	struct rv_sha256 *sha = rv_sha256_new(&err);
	char want[RV_SHA256_HEX];
	bool made = sha != NULL && rv_sha256_hex(sha, canonical, strlen(canonical), want, &err) == 0;

	rv_sha256_free(sha);
	if (!made)
		return rv_trial_failed(trial, &err);
	for (size_t i = 0; i < 2; i++) {
		const struct rv_ask ask = { .script = "echo 1", .run_id = "run-a", .args = rv_span_of(spellings[i]), .ledger = trial->ledger };

		if (!rv_expect_ok(trial, rv_ask(trial, &ask)))
			return false;
	}
	for (size_t i = 0; i < 2; i++) {
		const struct rv_json_node *row = rv_rows_nth(rv_rows_read(trial, trial->ledger), "outcome", i);

		if (!rv_expect(trial, rv_member_is(row, "runId", "run-a") && rv_member_is(row, "tool", "probe") &&
			       rv_member_is(row, "argsHash", want),
			       "the row's (runId, tool, argsHash) is (%s, %s, %s), and not (run-a, probe, %s)",
			       rv_member_text(trial, row, "runId"), rv_member_text(trial, row, "tool"),
			       rv_member_text(trial, row, "argsHash"), want))
			return false;
	}
	return true;
}

const struct rv_check rv_checks_identity[] = {
	{ "key.stable", "the same call has the same key",
	  "Coordinates and arguments alone make the key: not their spelling, nor time zone or locale.",
	  "A rerun after a crash under another key is a second effect.",
	  "rv-exec(1), Keys", RV_CAN_KEY, run_stable },
	{ "key.exact", "the key is what the derivation says",
	  "It is the SHA-256 of the canonical coordinates, and the tool gets that very key.",
	  "Whoever derives it elsewhere must find the effect under it.",
	  "rv-key(1)", RV_CAN_KEY, run_exact },
	{ "key.distinct", "another call has another key",
	  "Ordinal, agent entry and generation each make another key.",
	  "Two intended effects under one key are one effect at the provider.",
	  "rv-exec(1), Keys", RV_CAN_KEY, run_distinct },
	{ "key.both", "a key beside coordinates that give another is refused",
	  "The error is request, and nothing runs.",
	  "One of the two is wrong, and nobody can say which.",
	  "rv-exec(1), Keys", RV_CAN_KEY, run_both },
	{ "approval.binding", "an approval and its effect share run, tool and argsHash",
	  "argsHash is the SHA-256 of the canonical arguments, however they were spelled.",
	  "It is how one proves that only approved calls ran.",
	  "rv-ledger(5)", RV_CAN_LEDGER, run_approval },
	{ .id = NULL },
};

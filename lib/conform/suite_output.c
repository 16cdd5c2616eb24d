/* executor: bounds on output, what an exit status means, what becomes of stderr. */
#include <stdio.h>
#include <string.h>

#include "lib/conform/ask.h"
#include "lib/conform/rows.h"
#include "lib/conform/suites.h"

static bool run_exact(struct rv_trial *trial)
{
	const struct rv_ask full = {
		.script = "printf '\"'; head -c 9998 /dev/zero | tr '\\0' x; printf '\"'", .max_output = 10000,
	};
	const struct rv_ask more = {
		.script = "printf '\"'; head -c 9998 /dev/zero | tr '\\0' x; printf '\" '", .max_output = 10000,
	};
	const struct rv_answer *answer = rv_ask(trial, &full);
	const struct rv_json_node *result = rv_answer_result(answer);

	if (!rv_expect_ok(trial, answer) ||
	    !rv_expect_reply(trial, answer, rv_json_is_string(result) && rv_json_string(result).len == 9998,
			     "exactly maxOutputBytes did not arrive whole"))
		return false;
	return rv_expect_error(trial, rv_ask(trial, &more), "output-cap");
}

static bool run_stderr_flood(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "head -c 4000000 /dev/zero | tr '\\0' e >&2; " RV_ASK_NONCE, .max_output = 65536,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_nonce(trial, answer);
}

static bool run_tail(struct rv_trial *trial)
{
	/* 3-byte characters, and an end that is not on a multiple of three from any power of two */
	const struct rv_ask ask = {
		.script = "n=0; while [ $n -lt 3000 ]; do printf '\\342\\202\\254'; n=$((n+1)); done >&2; echo ab the-end >&2; exit 1",
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);
	struct rv_span message;

	if (!rv_expect_error(trial, answer, "exit"))
		return false;
	message = rv_answer_message(answer);
	return rv_expect_reply(trial, answer, memmem(message.data, message.len, "the-end", 7) != NULL,
			       "the message has not the end of stderr") &&
	       rv_expect_reply(trial, answer, memmem(message.data, message.len, "\xef\xbf\xbd", 3) == NULL,
			       "a character is cut in the message") &&
	       rv_expect_reply(trial, answer, message.len >= 300 && message.len <= 1800,
			       "the message has %zu bytes, and not those of about 500 characters", message.len);
}

static bool run_stderr_bytes(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "printf 'bad \\377\\300 \\001 \\033[31m end' >&2; exit 1" };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	struct rv_span message;

	if (!rv_expect_error(trial, answer, "exit"))
		return false;
	message = rv_answer_message(answer);
	return rv_expect_reply(trial, answer, memmem(message.data, message.len, "\xef\xbf\xbd", 3) != NULL,
			       "invalid bytes of stderr are not U+FFFD in the message");
}

static bool run_lies(struct rv_trial *trial)
{
	static const char *const lies[] = {
		"exit 124", "exit 125", "exit 126", "exit 127", "exit 137", "exit 143", "echo '{}'; exit 1",
	};

	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		const struct rv_ask ask = { .script = lies[i] };

		if (!rv_expect_error(trial, rv_ask(trial, &ask), "exit"))
			return false;
	}
	return true;
}

static bool run_signal(struct rv_trial *trial)
{
	static const char *const scripts[] = { "echo 1; kill -9 $$", "echo 1; kill -TERM $$", "kill -SEGV $$", NULL };

	for (size_t i = 0; scripts[i] != NULL; i++) {
		const struct rv_ask ask = { .script = scripts[i] };

		if (!rv_expect_error(trial, rv_ask(trial, &ask), "exit"))
			return false;
	}
	return true;
}

static bool run_ledgered(struct rv_trial *trial)
{
	char *second = rv_trial_path(trial, "second.jsonl");
	const struct rv_ask status = { .script = "exit 124", .ledger = trial->ledger };
	const struct rv_ask killed = { .script = "kill -9 $$", .ledger = second };
	const struct rv_json_node *row;
	int64_t code = -1;

	if (second == NULL || !rv_expect_error(trial, rv_ask(trial, &status), "exit"))
		return false;
	row = rv_expect_attempt(trial, trial->ledger, "error");
	if (row == NULL || !rv_expect(trial, rv_json_get(row, "exitCode") != NULL &&
				      rv_json_integer(rv_json_get(row, "exitCode"), &code) && code == 124,
				      "the row's exitCode is not 124") ||
	    !rv_expect_error(trial, rv_ask(trial, &killed), "exit"))
		return false;
	row = rv_expect_attempt(trial, second, "error");
	return row != NULL && rv_expect(trial, rv_member_is(row, "signal", "SIGKILL"), "the row's signal is '%s' and not SIGKILL",
					rv_member_text(trial, row, "signal")) &&
	       rv_expect(trial, rv_json_get(row, "exitCode") != NULL &&
			 rv_json_type(rv_json_get(row, "exitCode")) == RV_JSON_NULL, "the row's exitCode is not null");
}

const struct rv_check rv_checks_output[] = {
	{ "cap.exact", "the cap is exact",
	  "Exactly maxOutputBytes on stdout are fine, one byte more is output-cap.",
	  "A cap that is off by one fails a tool that keeps to it.",
	  "rv-exec(1), --max-output", 0, run_exact },
	{ "cap.stderr", "stderr has no cap that kills",
	  "A tool that writes more than maxOutputBytes to stderr gives its result.",
	  "Diagnostics are no result; they are dropped and counted.",
	  "rv-exec(1), --max-output", 0, run_stderr_flood },
	{ "stderr.tail", "the message has the end of stderr, in whole characters",
	  "Of a long stderr the last 500 characters are kept, and none is cut.",
	  "The reason stands at the end, and half a character is no character.",
	  "rv-exec(1), The end", 0, run_tail },
	{ "stderr.bytes", "invalid bytes of stderr become U+FFFD",
	  "A reply is valid UTF-8 whatever the tool wrote.",
	  "A reply that no JSON parser takes is an effect without an answer.",
	  "rv-exec(1), The end", 0, run_stderr_bytes },
	{ "exit.lies", "an exit status that looks like something else is exit",
	  "124, 125, 126, 127, 137 and 143 are the tool's own statuses, and so is 1 after a good result.",
	  "Whoever reads a timeout or a failed start out of a status is told so by every tool that likes to.",
	  "rv-exec(1), The end", 0, run_lies },
	{ "exit.signal", "a tool that kills itself is exit",
	  "A death by a signal that the executor did not send is the tool's own failure.",
	  "It looks like a timeout's kill, and is none.",
	  "rv-exec(1), The end", 0, run_signal },
	{ "exit.ledgered", "the row says how the tool ended",
	  "exitCode is the tool's own status, or null with the signal's name.",
	  "Who reconciles must know what the tool said of itself.",
	  "rv-ledger(5)", RV_CAN_LEDGER, run_ledgered },
	{ .id = NULL },
};

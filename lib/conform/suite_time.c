/* executor: deadlines.  Bounds are generous: a loaded machine is slow, and no less right. */
#include <string.h>

#include "lib/conform/ask.h"
#include "lib/conform/suites.h"

/* Timeout and grace of these checks, and what the answer may take beyond them: the promise is one
 * second, the rest is for the machine. */
#define TIMEOUT 400
#define GRACE 600
#define LATEST (TIMEOUT + GRACE + 1000 + 4000)

static bool run_term_first(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "trap ': >\"$1/termed\"; exit 0' TERM; : >\"$1/ready\"; while :; do sleep 0.02; done",
		.timeout_ms = 1000, .grace_ms = 8000,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	if (!rv_expect_error(trial, answer, "timeout") ||
	    !rv_expect_reply(trial, answer, rv_trial_exists(rv_trial_path(trial, "ready")), "the tool never began"))
		return false;
	return rv_expect_reply(trial, answer, rv_trial_exists(rv_trial_path(trial, "termed")),
			       "the tool was not sent SIGTERM before it was killed") &&
	       rv_expect_within(trial, answer, 7500); /* it went at once: the grace is a bound, no pause */
}

static bool run_ignores_term(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "trap '' TERM; exec sleep 3600.$2", .timeout_ms = TIMEOUT, .grace_ms = GRACE,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_error(trial, answer, "timeout") && rv_expect_within(trial, answer, LATEST);
}

static bool run_stopped(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "kill -STOP $$; sleep 3600.$2", .timeout_ms = TIMEOUT, .grace_ms = GRACE };
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_error(trial, answer, "timeout") && rv_expect_within(trial, answer, LATEST);
}

static bool run_traffic(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "trap '' TERM; while :; do printf x >&2; printf ' '; done",
		.timeout_ms = TIMEOUT, .grace_ms = GRACE, .max_output = 1 << 28,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_error(trial, answer, "timeout") && rv_expect_within(trial, answer, LATEST);
}

static bool run_patience(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "sleep 1.2; " RV_ASK_NONCE, .timeout_ms = 12000 };

	return rv_expect_nonce(trial, rv_ask(trial, &ask));
}

static bool run_silent(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "exec >&- 2>&- <&-; sleep 3600.$2", .timeout_ms = TIMEOUT, .grace_ms = GRACE,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_error(trial, answer, "timeout") && rv_expect_within(trial, answer, LATEST);
}

static bool run_reason(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "trap 'echo 1; exit 0' TERM; while :; do sleep 0.02; done", .timeout_ms = TIMEOUT, .grace_ms = 5000,
	};

	return rv_expect_error(trial, rv_ask(trial, &ask), "timeout");
}

const struct rv_check rv_checks_time[] = {
	{ "time.term-first", "a deadline is SIGTERM first",
	  "A tool past its timeout is sent SIGTERM; one that then ends by itself is answered at once.",
	  "A tool that may tidy up leaves less to reconcile.",
	  "rv-exec(1), --kill-grace", 0, run_term_first },
	{ "time.ignores-term", "a tool that ignores SIGTERM is killed",
	  "After the grace comes SIGKILL, and the dispatch is answered.",
	  "A bound that the bounded may decline is none.",
	  "rv-exec(1), --kill-grace", 0, run_ignores_term },
	{ "time.stopped", "a stopped tool is killed, too",
	  "A tool that has stopped itself is ended at its deadline.",
	  "A stopped process does not see SIGTERM.",
	  "rv-exec(1), The end", 0, run_stopped },
	{ "time.traffic", "traffic does not starve the timer",
	  "A tool that writes single bytes without pause is ended at its deadline.",
	  "A loop that reads as long as there is something to read never looks at the clock.",
	  "rv-exec(1), The end", 0, run_traffic },
	{ "time.closed-pipes", "a tool that closed its pipes still has a deadline",
	  "End of file on its output is not the tool's end.",
	  "Whoever waits for it after end of file, without a timer, waits for ever.",
	  "rv-exec(1), The end", 0, run_silent },
	{ "time.patience", "a tool within its timeout is left alone",
	  "A tool that takes its time, but less than its timeout, gives its result.",
	  "Timeouts are milliseconds; who reads them as something else kills honest tools.",
	  "rv-exec(1), --timeout", 0, run_patience },
	{ "time.reason", "the reason for an end is what was decided first",
	  "A tool that answers SIGTERM with a result and exit 0 has timed out all the same.",
	  "A late result may be half of one.",
	  "rv-exec(1), The end", 0, run_reason },
	{ .id = NULL },
};

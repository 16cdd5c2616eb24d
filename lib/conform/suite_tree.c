/* executor: what a tool starts, and how it ends with the tool. */
#include <string.h>

#include "lib/conform/ask.h"
#include "lib/conform/suites.h"

/* A new session where there is setsid(1), else at least a process group (timeout(1) makes one). */
#define ESCAPE "escape() { if command -v setsid >/dev/null; then setsid \"$@\"; else timeout 9999 \"$@\"; fi; }; "

/* The tool answers at once, and nothing that it started lives on. */
static bool leaves_nothing(struct rv_trial *trial, const char *script)
{
	const struct rv_ask ask = { .script = script, .timeout_ms = 15000 };
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_nonce(trial, answer) &&
	       rv_expect(trial, rv_trial_all_gone(trial, 1000), "%zu processes of the tool still run after the reply",
			 rv_trial_alive(trial));
}

static bool run_background(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "sleep 3600.$2 & " RV_ASK_NONCE, .timeout_ms = 15000 };
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_nonce(trial, answer) && rv_expect_within(trial, answer, 8000);
}

static bool run_killed(struct rv_trial *trial)
{
	return leaves_nothing(trial, "sleep 3600.$2 >/dev/null 2>&1 </dev/null & " RV_ASK_NONCE);
}

static bool run_setsid(struct rv_trial *trial)
{
	return leaves_nothing(trial, ESCAPE "escape sleep 3600.$2 >/dev/null 2>&1 </dev/null & "
					    "n=0; while [ $n -lt 20 ]; do sleep 0.01; n=$((n+1)); done; " RV_ASK_NONCE);
}

static bool run_double_fork(struct rv_trial *trial)
{
	return leaves_nothing(trial, ESCAPE "(escape sh -c '(sleep 3600.$1 &) ; (sleep 3601.$1 &)' sh $2 "
					    ">/dev/null 2>&1 </dev/null &) ; sleep 0.3; " RV_ASK_NONCE);
}

static bool run_stopped(struct rv_trial *trial)
{
	return leaves_nothing(trial, "sh -c 'kill -STOP $$; sleep 3600.$1' sh $2 >/dev/null 2>&1 </dev/null & sleep 0.2; " RV_ASK_NONCE);
}

static bool run_deaf(struct rv_trial *trial)
{
	return leaves_nothing(trial, "sh -c 'trap \"\" TERM HUP INT QUIT; sleep 3600.$1; sleep 3601.$1' sh $2 "
				     ">/dev/null 2>&1 </dev/null & sleep 0.2; " RV_ASK_NONCE);
}

static bool run_many(struct rv_trial *trial)
{
	return leaves_nothing(trial, "n=0; while [ $n -lt 150 ]; do sleep 3600.$2 >/dev/null 2>&1 </dev/null & n=$((n+1)); done; " RV_ASK_NONCE);
}

static bool run_timeout(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = ESCAPE "trap '' TERM; escape sleep 3601.$2 & sleep 3600.$2; sleep 3602.$2",
		.timeout_ms = 500, .grace_ms = 300,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_error(trial, answer, "timeout") && rv_expect_within(trial, answer, 7000) &&
	       rv_expect(trial, rv_trial_all_gone(trial, 1000), "%zu processes of the tool still run after the reply",
			 rv_trial_alive(trial));
}

static bool run_kill_all(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "contained \"$3\"; kill -9 -1; echo '\"killed\"'" };
	const struct rv_answer *answer = rv_ask(trial, &ask);

	/* kill(2) with -1 spares the caller on Linux, so a tool that is contained may well go on */
	if (answer == NULL || !rv_expect_reply(trial, answer, answer->reply != NULL, "no reply line"))
		return false;
	if (rv_json_get(answer->reply, "result") == NULL)
		return rv_expect_error(trial, answer, "exit");
	return rv_expect_result(trial, answer, "\"killed\"");
}

static bool run_kill_guard(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "sleep 3600.$2 >/dev/null 2>&1 </dev/null & "
			  "contained \"$3\"; kill -9 1; kill -STOP 1; kill -TERM 1; " RV_ASK_NONCE,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_nonce(trial, answer) &&
	       rv_expect(trial, rv_trial_all_gone(trial, 1000), "%zu processes of the tool still run after the reply",
			 rv_trial_alive(trial));
}

const struct rv_check rv_checks_tree[] = {
	{ "tree.background-pipe", "a background child that holds stdout does not hold the reply",
	  "The dispatch is answered when the tool itself ends.",
	  "Waiting for end of file waits for every process that inherited the pipe.",
	  "rv-exec(1), The end", 0, run_background },
	{ "tree.background", "a background child ends with its tool",
	  "What the tool left running is killed at once.",
	  "Its effects would come after the outcome row.",
	  "rv-exec(1), The end", 0, run_killed },
	{ "tree.setsid", "a child in a session of its own ends, too",
	  "Leaving the session or the process group is no way out.",
	  "A signal to a process group reaches only who stayed in it.",
	  "rv-exec(1), The end", RV_CAN_CONTAIN, run_setsid },
	{ "tree.double-fork", "a daemon ends, too",
	  "A grandchild whose parent is gone is killed with the rest.",
	  "It has no parent in the tree that a walk would follow.",
	  "rv-exec(1), The end", RV_CAN_CONTAIN, run_double_fork },
	{ "tree.stopped", "a stopped child ends, too",
	  "A child that has stopped itself is killed.",
	  "It takes no other signal than SIGKILL.",
	  "rv-exec(1), The end", 0, run_stopped },
	{ "tree.deaf", "a child that ignores signals ends, too",
	  "A child that ignores TERM, HUP, INT and QUIT is killed.",
	  "Grace is for tools at their deadline and not for what they leave.",
	  "rv-exec(1), The end", 0, run_deaf },
	{ "tree.many", "a hundred and fifty children end, too",
	  "However many there are, all are killed and reaped before the reply.",
	  "A survivor that is not in the reply is one that nobody looks for.",
	  "rv-exec(1), The end", 0, run_many },
	{ "tree.timeout", "a timeout ends the whole tree",
	  "At the deadline the tool's children end with it, also those in sessions of their own.",
	  "Killing the shell alone leaves what the shell was waiting for.",
	  "rv-exec(1), The end", RV_CAN_CONTAIN, run_timeout },
	{ "tree.kill-all", "a tool that kills everything it can reaches its own tree alone",
	  "The tool runs in a PID namespace: kill -9 -1 ends what the tool started, and the reply says how the tool ended.",
	  "Without one the same line ends the user's other processes.",
	  "rv-exec(1), The end", RV_CAN_CONTAIN, run_kill_all },
	{ "tree.kill-guard", "a tool cannot kill its guard",
	  "Signals to the parent do nothing, and what the tool left running is still killed.",
	  "Who can end the supervisor can outlive it.",
	  "rv-exec(1), The end", RV_CAN_CONTAIN, run_kill_guard },
	{ .id = NULL },
};

/* executor: what is left when the executor itself is killed, or told to stop. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/conform/ask.h"
#include "lib/conform/rows.h"
#include "lib/conform/suites.h"

/* The tool has done its effect (DIR/effect is there) and runs on. */
static bool await_effect(struct rv_trial *trial, struct rv_command *command)
{
	const char *effect = rv_trial_path(trial, "effect");

	if (command == NULL || effect == NULL)
		return false;
	return rv_trial_await(trial, effect, command) ||
	       rv_expect_reply(trial, rv_ask_end(trial, command), false, "the tool never came as far as its effect");
}

static void kill_whole(struct rv_trial *trial, struct rv_command *command)
{
	rv_command_kill_group(command);
	(void)rv_command_wait(command, trial->deadline_ms);
}

/* ---- e13 ---- */

/* Did the workdir come before the first byte of the ledger?  One queue has both, in order. */
static bool workdir_came_first(int watch, int base)
{
	char events[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(watch, events, sizeof events);

	for (ssize_t at = 0; n > 0 && at < n;) {
		const struct inotify_event *event = (const struct inotify_event *)(const void *)(events + at);

		if (event->wd == base)
			return true;
		if (event->len > 0 && strcmp(event->name, "effects.jsonl") == 0 && (event->mask & IN_MODIFY) != 0)
			return false;
		at += (ssize_t)(sizeof *event + event->len);
	}
	return false;
}

static bool has_lookup_members(struct rv_trial *trial, const struct rv_json_node *intent)
{
	static const char *const strings[] = { "spanId", "executor", "workdir", "attemptId" };
	const struct rv_json_node *hash = rv_json_get(intent, "argsHash");
	int64_t number;

	for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
		const struct rv_json_node *member = rv_json_get(intent, strings[i]);

		if (!rv_expect(trial, rv_json_is_string(member) && rv_json_string(member).len > 0, "the intent has no %s",
			       strings[i]))
			return false;
	}
	return rv_expect(trial, rv_json_is_string(hash) && rv_is_hex64(rv_json_string(hash)), "the intent has no argsHash") &&
	       rv_expect(trial, rv_json_get(intent, "startedAt") != NULL &&
			 rv_json_integer(rv_json_get(intent, "startedAt"), &number) && number > 0, "the intent has no startedAt") &&
	       rv_expect(trial, rv_member_is(intent, "idempotencyKey", "key-e13") && rv_member_is(intent, "tool", "probe") &&
			 rv_member_is(intent, "runId", "run-e13"),
			 "the intent's key, tool or run is not the call's");
}

static bool run_e13(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "cat \"$1/effects.jsonl\" >\"$1/seen\"; ls -A >\"$1/listing\"; pwd >\"$1/where\"; "
			  ": >\"$1/effect\"; exec sleep 3600.$2",
		.key = "key-e13", .run_id = "run-e13", .ledger = trial->ledger,
	};
	rv_auto_fd int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	int base = watch >= 0 ? inotify_add_watch(watch, trial->base, IN_CREATE) : -1;
	const char *seen = rv_trial_path(trial, "seen");
	const struct rv_buffer *listing;
	const struct rv_rows *rows;
	struct rv_command *command;

	if (!rv_expect(trial, base >= 0 && inotify_add_watch(watch, trial->dir, IN_MODIFY) >= 0, "inotify: %s", strerror(errno)))
		return false;
	command = rv_ask_begin(trial, &ask);
	if (seen == NULL || !await_effect(trial, command))
		return false;
	kill_whole(trial, command);
	rows = rv_rows_read(trial, seen);
	if (!rv_expect(trial, rows != NULL && rv_rows_count(rows, "intent") == 1 && rows->count == 1,
		       "the ledger that the tool found at its start had %zu intents", rv_rows_count(rows, "intent")) ||
	    !has_lookup_members(trial, rv_rows_nth(rows, "intent", 0)))
		return false;
	listing = rv_trial_read(trial, rv_trial_path(trial, "listing"));
	if (!rv_expect(trial, listing != NULL && listing->len == 0, "the workdir was not empty at the effect") ||
	    !rv_expect(trial, workdir_came_first(watch, base), "the intent was written before its workdir was made"))
		return false;
	rows = rv_rows_read(trial, trial->ledger);
	return rv_expect(trial, rows != NULL && rv_rows_count(rows, "intent") == 1 && rv_rows_count(rows, "outcome") == 0,
			 "after the kill the ledger has %zu intents and %zu outcomes, and not one orphan",
			 rv_rows_count(rows, "intent"), rv_rows_count(rows, "outcome"));
}

/* ---- beyond ---- */

static bool run_workdir(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "pwd >\"$1/where\"; : >\"$1/effect\"; exec sleep 3600.$2", .ledger = trial->ledger,
	};
	struct rv_command *command = rv_ask_begin(trial, &ask);
	const struct rv_json_node *intent;
	const struct rv_buffer *where;

	if (!await_effect(trial, command))
		return false;
	intent = rv_rows_nth(rv_rows_read(trial, trial->ledger), "intent", 0);
	where = rv_trial_read(trial, rv_trial_path(trial, "where"));
	return rv_expect(trial, intent != NULL && where != NULL && where->len > 0, "no intent, or no workdir") &&
	       rv_expect(trial, strcmp(rv_member_text(trial, intent, "workdir"),
				       rv_trial_printf(trial, "%.*s", (int)where->len - 1, where->data)) == 0,
			 "the intent's workdir is %s, the tool's is %s", rv_member_text(trial, intent, "workdir"), where->data);
}

static bool run_tree(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "sleep 3601.$2 & (sleep 3602.$2 &) ; : >\"$1/effect\"; exec sleep 3600.$2", .timeout_ms = 15000,
	};
	struct rv_command *command = rv_ask_begin(trial, &ask);

	if (!await_effect(trial, command))
		return false;
	rv_did(trial, "killed the adapter's process group while its tool ran with two children in the background");
	kill_whole(trial, command);
	return rv_expect(trial, rv_trial_all_gone(trial, 5000), "%zu of the tool's processes still run 5 s later",
			 rv_trial_alive(trial));
}

static bool run_retry(struct rv_trial *trial)
{
	const struct rv_ask first = { .script = ": >\"$1/effect\"; exec sleep 3600.$2", .ledger = trial->ledger };
	const struct rv_ask second = { .script = "echo 2", .ledger = trial->ledger };
	struct rv_command *command = rv_ask_begin(trial, &first);
	const struct rv_json_node *orphan, *outcome;
	const struct rv_rows *rows;

	if (!await_effect(trial, command))
		return false;
	kill_whole(trial, command);
	if (!rv_expect_ok(trial, rv_ask(trial, &second)))
		return false;
	rows = rv_rows_read(trial, trial->ledger);
	orphan = rv_rows_nth(rows, "intent", 0);
	outcome = rv_rows_nth(rows, "outcome", 0);
	return rv_expect(trial, rows != NULL && rv_rows_count(rows, "intent") == 2 && rv_rows_count(rows, "outcome") == 1,
			 "%zu intents and %zu outcomes after a kill and a retry", rv_rows_count(rows, "intent"),
			 rv_rows_count(rows, "outcome")) &&
	       rv_expect(trial, rv_member_same(orphan, outcome, "idempotencyKey"), "the retry has another key") &&
	       rv_expect(trial, !rv_member_same(orphan, outcome, "attemptId"), "the retry's outcome carries the orphan's attemptId");
}

static size_t lines_of(struct rv_trial *trial, const char *path)
{
	const struct rv_buffer *text = rv_trial_read(trial, path);
	size_t lines = 0;

	for (size_t i = 0; text != NULL && i < text->len; i++)
		lines += text->data[i] == '\n';
	return lines;
}

/* Killed later each time, until some of the tools have come as far as their effect. */
static bool run_anytime(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "echo \"$RULVAR_IDEMPOTENCY_KEY\" >>\"$1/effects\"; sleep 0.5; echo 1", .ledger = trial->ledger,
	};
	const struct rv_ask last = { .script = "echo 2", .ledger = trial->ledger };
	const char *effects = rv_trial_path(trial, "effects");
	const struct rv_rows *rows;
	size_t kills = 0;
	int64_t delay = 1;

	while (effects != NULL && lines_of(trial, effects) < 3 && rv_clock_mono_ms() + delay + 5000 < trial->deadline_ms) {
		struct rv_command *command = rv_ask_begin(trial, &ask);

		if (command == NULL)
			return false;
		(void)rv_command_wait(command, rv_clock_mono_ms() + delay);
		kill_whole(trial, command);
		kills++;
		delay += 2 + delay / 4;
	}
	rv_did(trial, "killed %zu dispatches, the first after 1 ms and each a little later, then dispatched once more", kills);
	if (!rv_trial_all_gone(trial, 3000)) /* of executors that contain nothing: their tools may still be at it */
		rv_clock_pause_ms(700);
	if (!rv_expect(trial, lines_of(trial, effects) > 0, "no tool came as far as its effect") ||
	    !rv_expect_ok(trial, rv_ask(trial, &last)))
		return false;
	rows = rv_rows_read(trial, trial->ledger); /* every line a row: the last dispatch repaired what was torn */
	return rows != NULL && rv_expect(trial, rv_rows_count(rows, "intent") > lines_of(trial, effects),
					 "%zu effects of killed dispatches, and %zu intents with that of the last one",
					 lines_of(trial, effects), rv_rows_count(rows, "intent"));
}

static bool run_abort(struct rv_trial *trial)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		char *ledger = rv_trial_printf(trial, "%s/abort%zu.jsonl", trial->dir, i);
		const struct rv_ask ask = {
			.script = ": >\"$1/effect\"; exec sleep 3600.$2", .ledger = ledger, .grace_ms = 500,
		};
		struct rv_command *command = rv_ask_begin(trial, &ask);
		const struct rv_answer *answer;

		if (ledger == NULL || !await_effect(trial, command))
			return false;
		rv_command_signal(command, numbers[i]);
		answer = rv_ask_end(trial, command);
		if (!rv_expect_reply(trial, answer, answer != NULL && command->ended, "signal %d did not end it", numbers[i]) ||
		    rv_expect_attempt(trial, ledger, "error") == NULL ||
		    !rv_expect(trial, rv_trial_entries(trial->base) == 0, "the workdir is left behind") ||
		    !rv_expect(trial, rv_trial_all_gone(trial, 2000), "the tool still runs"))
			return false;
		(void)unlink(rv_trial_path(trial, "effect"));
	}
	return true;
}

const struct rv_check rv_checks_crash[] = {
	{ "e13", "a kill between effect and outcome leaves the orphan intent",
	  "The intent is written before the effect, while the workdir exists and is empty, with every member that a reconciler looks up; a kill before the outcome leaves it alone.",
	  "An effect that happened and stands nowhere cannot be reconciled.",
	  "rv-ledger(5)", RV_CAN_LEDGER | RV_CAN_TWO_PHASE, run_e13 },
	{ "crash.workdir", "the intent names the tool's own workdir",
	  "The workdir of the intent is the directory that the tool runs in.",
	  "After a crash it is the one place that shows what the tool had done so far.",
	  "rv-ledger(5)", RV_CAN_LEDGER | RV_CAN_TWO_PHASE, run_workdir },
	{ "crash.tree", "a killed executor takes its tool along",
	  "SIGKILL of the executor ends the tool and all that the tool started.",
	  "A tool that lives on has effects after its attempt was declared an orphan.",
	  "rv-exec(1), The end", RV_CAN_CONTAIN, run_tree },
	{ "crash.retry", "a retry does not resolve the orphan",
	  "After a crash the same key is dispatched again as an attempt of its own; its outcome carries its own attemptId.",
	  "A sibling's success says nothing about an effect that may already have happened.",
	  "rv-ledger(5)", RV_CAN_LEDGER | RV_CAN_TWO_PHASE, run_retry },
	{ "crash.anytime", "no effect without an intent, whenever the kill comes",
	  "However early a dispatch is killed, the ledger has an intent for each effect, and the next dispatch leaves whole rows alone.",
	  "The window between effect and row is what the ledger exists to close.",
	  "rv-ledger(5)", RV_CAN_LEDGER | RV_CAN_TWO_PHASE, run_anytime },
	{ "abort.signals", "TERM, INT and HUP end a dispatch in good order",
	  "The outcome is written, the workdir removed, the tool ended.",
	  "A deploy that stops workers must not leave an orphan for each of them.",
	  "rv-exec(1), The end", RV_CAN_ABORT | RV_CAN_LEDGER, run_abort },
	{ .id = NULL },
};

/*
 * container: a tool in a one-shot container.  Its image has a POSIX shell and the usual tools; what the tool starts
 * has the trial's nonce in its command line, which the host sees, so what is left is found without asking an engine.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/conform/ask.h"
#include "lib/conform/rows.h"
#include "lib/conform/suites.h"

#define TIMEOUT 4000 /* in which the container of a loaded machine has come */
#define GRACE 500
#define START_MS 20000 /* an engine may be slow to create */
#define REMOVED_MS 10000
#define GONE_MS 20000  /* and to remove, where nobody waits for it */

/* A script in a container; its result as `say` said it. */
static const struct rv_buffer *said_by(struct rv_trial *trial, const char *script)
{
	const struct rv_ask ask = { .script = script, .container = &trial->place, .timeout_ms = START_MS };

	return rv_answer_said(trial, rv_ask(trial, &ask));
}

static bool holds_in(struct rv_trial *trial, const char *script, const char *line, const char *what)
{
	const struct rv_buffer *said = said_by(trial, script);

	return said != NULL && rv_expect(trial, rv_has_line(said->data, line), "%s: %s", what, said->data);
}

static bool run_network(struct rv_trial *trial)
{
	return holds_in(trial, "grep -c : /proc/net/dev | say", "1", "interfaces beside lo are there");
}

static bool run_root(struct rv_trial *trial)
{
	return holds_in(trial, "{ (: >/rv-probe) && echo written; (: >/bin/rv-probe) && echo written; echo tried; } 2>/dev/null >x; "
			       "case $(cat x) in tried) echo refused ;; *) cat x ;; esac | say",
			"refused", "the container's root is writable");
}

static bool run_work(struct rv_trial *trial)
{
	return holds_in(trial, "{ ls -A . | wc -l; echo 1 >here; mkdir d && mv here d/there && cat d/there; "
			       "pwd; } | tr -d ' ' | tr '\\n' : | say",
			"0:1:/work:", "the workdir is not an empty, writable /work") &&
	       rv_expect(trial, rv_trial_entries(trial->base) == 0, "a workdir is left");
}

static bool run_capabilities(struct rv_trial *trial)
{
	return holds_in(trial, "grep -E '^(CapEff|CapPrm|NoNewPrivs)' /proc/self/status | tr -d '\\t' | tr '\\n' ' ' | say",
			"CapPrm:0000000000000000 CapEff:0000000000000000 NoNewPrivs:1 ", "the tool has privileges");
}

static bool run_memory(struct rv_trial *trial)
{
	struct rv_container_place place = trial->place;
	const struct rv_ask ask = {
		.script = "x=0123456789abcdef; i=0; while [ $i -lt 23 ]; do x=$x$x; i=$((i+1)); done; echo ${#x}",
		.container = &place, .ledger = trial->ledger, .timeout_ms = START_MS,
	};
	const struct rv_answer *answer;
	struct rv_span message;

	place.memory = "48m";
	answer = rv_ask(trial, &ask);
	message = rv_answer_message(answer);
	return rv_expect_error(trial, answer, "exit") &&
	       rv_expect_reply(trial, answer, message.len > 0 && memmem(message.data, message.len, "memory", 6) != NULL,
			       "the reply does not speak of memory") &&
	       rv_expect_attempt(trial, trial->ledger, "error") != NULL &&
	       rv_expect(trial, rv_trial_all_gone(trial, GONE_MS), "the container is left");
}

/* All of them at once: how many there are beside what counts them.  Nothing is started for the counting, which could
 * not be any more. */
static bool run_pids(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "(i=0; while [ $i -lt 300 ]; do sleep 3 & i=$((i+1)); done) 2>/dev/null; "
			  "n=0; for p in /proc/[0-9]*; do n=$((n+1)); done; echo $n",
		.container = &trial->place, .timeout_ms = START_MS,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_json_node *result = rv_answer_result(answer);
	int64_t count = 0;

	return rv_expect_ok(trial, answer) &&
	       rv_expect_reply(trial, answer, result != NULL && rv_json_integer(result, &count) && count > 8 && count <= 140,
			       "%lld processes were there at once", (long long)count);
}

static bool run_secret(struct rv_trial *trial)
{
	const struct rv_buffer *said = said_by(trial, "{ env; cat /proc/1/environ /proc/self/environ; } 2>/dev/null | tr '\\0' '\\n' | say");

	return said != NULL &&
	       rv_expect(trial, strstr(said->data, "RV_CONFORM_SECRET") == NULL && strstr(said->data, "XDG_RUNTIME_DIR=") == NULL,
			 "the tool has what is the host's: %s", said->data) &&
	       rv_expect(trial, strstr(said->data, "RULVAR_IDEMPOTENCY_KEY=") != NULL, "the tool has no key: %s", said->data);
}

/* Does any process's command line hold this? */
static bool is_in_an_argv(const char *value)
{
	rv_auto_dir DIR *dir = opendir("/proc");
	const struct dirent *entry;
	bool found = false;

	while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
		rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
		struct rv_error ignored = RV_ERROR_INIT;
		char path[300];

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
		found = rv_io_read_file(path, &line, &ignored) == 0 && line.len > 0 && memmem(line.data, line.len, value, strlen(value)) != NULL;
	}
	return found;
}

/* No process of the host has the value in its command line, as often as can be looked while the tool runs. */
static bool run_credentials(struct rv_trial *trial)
{
	const char *value = rv_trial_printf(trial, "minted-%s-value", trial->nonce);
	const struct rv_ask ask = {
		.script = "sleep 1; printf %s \"$TOKEN\" | say", .mint = "printf '{\"TOKEN\":\"%s-%s-%s\"}' minted \"$2\" value",
		.container = &trial->place, .timeout_ms = START_MS,
	};
	struct rv_command *command = value != NULL ? rv_ask_begin(trial, &ask) : NULL;
	const struct rv_buffer *said;

	while (command != NULL && rv_command_wait(command, rv_clock_mono_ms() + 20) == 0 && rv_clock_mono_ms() < trial->deadline_ms) {
		if (!rv_expect(trial, !is_in_an_argv(value), "a credential is in a command line"))
			return false;
	}
	said = command != NULL ? rv_answer_said(trial, rv_ask_end(trial, command)) : NULL;
	return said != NULL && rv_expect(trial, strcmp(said->data, value) == 0, "the tool's credential is %s", said->data);
}

static bool run_deaf(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "trap '' TERM; echo deaf >&2; sleep 3600.$2 & sleep 3601.$2; sleep 3602.$2", .container = &trial->place,
		.ledger = trial->ledger, .timeout_ms = TIMEOUT, .grace_ms = GRACE,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_json_node *said = answer != NULL && answer->reply != NULL ? rv_json_get(answer->reply, "stderrBytes") : NULL;
	int64_t bytes = 0;

	/* a container that took longer than the deadline to come proves nothing */
	return rv_expect_error(trial, answer, "timeout") &&
	       rv_expect_reply(trial, answer, said != NULL && rv_json_integer(said, &bytes) && bytes > 0, "the tool was never started") &&
	       rv_expect_attempt(trial, trial->ledger, "timeout") != NULL &&
	       rv_expect(trial, rv_trial_all_gone(trial, GRACE + 2000), "the container runs on: %zu processes", rv_trial_alive(trial)) &&
	       rv_expect(trial, rv_trial_entries(trial->base) == 0, "a workdir is left");
}

/* Does the tool run?  Its own `sleep` has the nonce; the engine's client has it, too, in the script that it was given. */
static bool await_tool(struct rv_trial *trial)
{
	const char *look = rv_trial_printf(trial, "grep -laE '^sleep.3600[.]%s' /proc/[0-9]*/cmdline 2>/dev/null | head -n 1", trial->nonce);
	const char *const argv[] = { "/bin/sh", "-c", look, NULL };
	const struct rv_command_plan plan = { .argv = argv };
	int64_t until = rv_clock_mono_ms() + START_MS;

	while (look != NULL && rv_clock_mono_ms() < until) {
		const struct rv_command *seen = rv_trial_run(trial, &plan);

		if (seen == NULL || seen->said.len > 0)
			return seen != NULL;
		rv_clock_pause_ms(50);
	}
	return rv_unexpected(trial, "the tool was never started");
}

static bool run_killed(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "trap '' TERM; sleep 3600.$2 & wait", .container = &trial->place, .ledger = trial->ledger,
		.timeout_ms = 60000,
	};
	struct rv_command *command = rv_ask_begin(trial, &ask);
	const struct rv_rows *rows;

	if (command == NULL || !await_tool(trial))
		return false;
	rv_command_kill_group(command);
	(void)rv_command_wait(command, trial->deadline_ms);
	if (!rv_expect(trial, rv_trial_all_gone(trial, GONE_MS), "the container outlives its executor: %zu processes", rv_trial_alive(trial)))
		return false;
	rows = rv_rows_read(trial, trial->ledger);
	return rv_expect(trial, rows != NULL && rv_rows_count(rows, "intent") == 1 && rv_rows_count(rows, "outcome") == 0,
			 "the ledger does not have one orphan");
}

/* Is a container there whose id begins so?  What the engine itself shows is what it keeps.  -1: it shows nothing. */
static int is_shown(struct rv_trial *trial, const char *id)
{
	const char *look = rv_trial_printf(trial, "%s ps -a -q --no-trunc", trial->place.engine != NULL ? trial->place.engine : "docker");
	const char *const argv[] = { "/bin/sh", "-c", look, NULL };
	const struct rv_command_plan plan = { .argv = argv };
	const struct rv_command *seen = look != NULL ? rv_trial_run(trial, &plan) : NULL;

	if (seen == NULL || !seen->ended || seen->status != 0)
		return -1;
	return memmem(seen->said.data, seen->said.len, id, strlen(id)) != NULL ? 1 : 0;
}

/* The host's name in a container is the head of its id, unless somebody gave it another. */
static bool run_removed(struct rv_trial *trial)
{
	const struct rv_buffer *said = said_by(trial, "cut -c1-12 /proc/sys/kernel/hostname | tr -d '\\n' | say");
	int64_t until = rv_clock_mono_ms() + REMOVED_MS;
	int shown;

	if (said == NULL || !rv_expect(trial, said->len == 12 && strspn(said->data, "0123456789abcdef") == 12,
				       "the container's host name is no id: %s", said->data))
		return false;
	while ((shown = is_shown(trial, said->data)) == 1 && rv_clock_mono_ms() < until)
		rv_clock_pause_ms(200);
	return rv_expect(trial, shown >= 0, "the engine does not show its containers") &&
	       rv_expect(trial, shown == 0, "the engine still has the container %s", said->data);
}

static bool run_status(struct rv_trial *trial)
{
	static const char *const scripts[] = { "exit 125", "exit 126", "exit 127" };

	for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
		const struct rv_ask ask = { .script = scripts[i], .container = &trial->place, .timeout_ms = START_MS };
		const struct rv_answer *answer = rv_ask(trial, &ask);
		const struct rv_json_node *status = answer != NULL && answer->reply != NULL ? rv_json_get(answer->reply, "exitCode") : NULL;
		int64_t number = -1;

		if (!rv_expect_error(trial, answer, "exit") ||
		    !rv_expect_reply(trial, answer, status != NULL && rv_json_integer(status, &number) && number == 125 + (int64_t)i,
				     "exitCode is not the tool's %zu", 125 + i))
			return false;
	}
	return true;
}

static bool run_missing(struct rv_trial *trial)
{
	struct rv_container_place place = trial->place;
	const struct rv_ask ask = { .script = "echo 1", .container = &place, .ledger = trial->ledger, .timeout_ms = START_MS };

	place.image = "localhost/rv-conform-no-such-image:0";
	return rv_expect_error(trial, rv_ask(trial, &ask), "config") &&
	       rv_expect(trial, rv_rows_count(rv_rows_read(trial, trial->ledger), "intent") == 0, "what was refused has a row") &&
	       rv_expect(trial, rv_trial_entries(trial->base) == 0, "what was refused has a workdir");
}

static bool run_rows(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "echo 1", .container = &trial->place, .ledger = trial->ledger, .timeout_ms = START_MS };
	const struct rv_ask bare = { .script = "echo 1", .timeout_ms = START_MS };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_answer *other;
	const struct rv_json_node *outcome;

	if (!rv_expect_result(trial, answer, "1"))
		return false;
	outcome = rv_expect_attempt(trial, trial->ledger, "ok");
	if (outcome == NULL || !rv_expect(trial, rv_member_is(outcome, "executor", "container"), "the rows name another executor"))
		return false;
	other = rv_ask(trial, &bare);
	return rv_expect_result(trial, other, "1") &&
	       rv_expect(trial, rv_member_same(answer->reply, other->reply, "argsHash") &&
			 rv_member_same(answer->reply, other->reply, "idempotencyKey"),
			 "the executor has entered the key or the argsHash");
}

#define PAGE "rv-exec(1), Isolation"

const struct rv_check rv_checks_container[] = {
	{ "container.network", "no network",
	  "The container has its own loopback interface and no other.",
	  "A script that the model wrote talks to whom it likes.",
	  PAGE, RV_CAN_CONTAINER, run_network },
	{ "container.root", "the root is read-only",
	  "Nothing can be written but in the workdir.",
	  "What one call leaves in a shared image layer, the next one runs.",
	  PAGE, RV_CAN_CONTAINER, run_root },
	{ "container.work", "the workdir is at /work, empty, writable and gone afterwards",
	  "It is the one place that the tool and the host share.",
	  "A result in a file has to come out, and nothing else.",
	  PAGE, RV_CAN_CONTAINER, run_work },
	{ "container.capabilities", "no capability, and none to be gained",
	  "The effective and permitted sets are empty, and no_new_privs is set.",
	  "A container's root with capabilities is nearly the host's.",
	  PAGE, RV_CAN_CONTAINER, run_capabilities },
	{ "container.memory", "a memory bomb dies, and the reply says so",
	  "More than the limit is exit with a message that speaks of memory; the row is error.",
	  "A bare 137 is taken for the tool's own.",
	  PAGE, RV_CAN_CONTAINER | RV_CAN_LEDGER, run_memory },
	{ "container.pids", "a fork bomb meets its limit",
	  "No more than the default of 128 processes are there at once.",
	  "The process table is the host's.",
	  PAGE, RV_CAN_CONTAINER, run_pids },
	{ "container.secret", "nothing of the host's environment comes in",
	  "Neither the caller's secret nor what the engine's client reads is in the container.",
	  "The client needs an environment, and it is easily the tool's as well.",
	  PAGE, RV_CAN_CONTAINER, run_secret },
	{ "container.credentials", "credentials come by name, and are in no command line",
	  "The tool has the minted value, and no process of the host shows it in its arguments meanwhile.",
	  "Command lines are readable by every user.",
	  PAGE, RV_CAN_CONTAINER | RV_CAN_CREDENTIALS, run_credentials },
	{ "container.deaf", "a tool that ignores SIGTERM is gone with its container",
	  "At the deadline it is timeout, and two seconds beyond the grace nothing of it runs.",
	  "Killing the client leaves the container.",
	  PAGE, RV_CAN_CONTAINER | RV_CAN_LEDGER, run_deaf },
	{ "container.killed", "the container does not outlive its executor",
	  "After SIGKILL of the executor the container goes, and the intent stays as an orphan.",
	  "The engine's daemon knows nothing of the death of who asked.",
	  PAGE, RV_CAN_CONTAINER | RV_CAN_LEDGER | RV_CAN_TWO_PHASE, run_killed },
	{ "container.removed", "a container that ended is removed",
	  "A while after the call the engine shows no container of that id, also none that has exited.",
	  "A fleet fills its disks with what ended long ago, and no tool notices.",
	  PAGE, RV_CAN_CONTAINER, run_removed },
	{ "container.status", "125, 126 and 127 of a tool are its own",
	  "A tool that ends with one of the engine's statuses is exit with that status.",
	  "Guessed, an effect that happened is reported as one that never began.",
	  PAGE, RV_CAN_CONTAINER, run_status },
	{ "container.missing", "an image that is not there is config, before anything is written",
	  "No row, no workdir, and nothing is pulled.",
	  "A pull eats the deadline, and what it brings nobody has looked at.",
	  PAGE, RV_CAN_CONTAINER | RV_CAN_LEDGER, run_missing },
	{ "container.rows", "rows name the executor, and the key does not know it",
	  "The executor is container in the rows; argsHash and key are those of a plain subprocess.",
	  "A retry under another isolation has to find the first one's effect.",
	  PAGE, RV_CAN_CONTAINER | RV_CAN_LEDGER, run_rows },
	{ .id = NULL },
};

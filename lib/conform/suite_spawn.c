/* executor: commands that cannot be run, and names that are meant to hurt. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/conform/ask.h"
#include "lib/conform/rows.h"
#include "lib/conform/suites.h"

static bool is_spawn_error(struct rv_trial *trial, const char *command, const char *const *words)
{
	const struct rv_ask ask = { .command = command, .words = words };

	return command != NULL && rv_expect_error(trial, rv_ask(trial, &ask), "spawn");
}

static bool run_missing(struct rv_trial *trial)
{
	return is_spawn_error(trial, rv_trial_path(trial, "no-such-file"), NULL) &&
	       is_spawn_error(trial, "rv-conform-no-such-program", NULL);
}

static bool run_not_executable(struct rv_trial *trial)
{
	const char *file = rv_trial_path(trial, "plain");

	return file != NULL && rv_trial_write(trial, file, RV_SPAN("#!/bin/sh\necho 1\n"), 0644) &&
	       is_spawn_error(trial, file, NULL) && is_spawn_error(trial, trial->base, NULL);
}

static bool run_interpreter(struct rv_trial *trial)
{
	const char *file = rv_trial_path(trial, "lost");

	return file != NULL && rv_trial_write(trial, file, RV_SPAN("#!/no/such/interpreter\necho 1\n"), 0755) &&
	       is_spawn_error(trial, file, NULL);
}

static bool run_no_shell(struct rv_trial *trial)
{
	const char *file = rv_trial_path(trial, "shebangless");

	return file != NULL && rv_trial_write(trial, file, RV_SPAN("echo 1\n"), 0755) && is_spawn_error(trial, file, NULL);
}

static bool run_too_long(struct rv_trial *trial)
{
	struct rv_buffer *word = rv_trial_buffer(trial);
	const char *words[2] = { NULL, NULL };
	bool held;

	for (int i = 0; word != NULL && i < 200000; i++)
		rv_buffer_add_byte(word, 'x');
	words[0] = word != NULL ? rv_buffer_string(word) : NULL;
	held = words[0] != NULL && is_spawn_error(trial, "/bin/echo", words);
	rv_did(trial, "asked for /bin/echo with an argument of 200000 bytes, which no exec takes");
	return held;
}

static bool run_ledgered(struct rv_trial *trial)
{
	const struct rv_ask ask = { .command = rv_trial_path(trial, "no-such-file"), .ledger = trial->ledger };
	const struct rv_json_node *row;

	if (!rv_expect_error(trial, rv_ask(trial, &ask), "spawn"))
		return false;
	row = rv_expect_attempt(trial, trial->ledger, "error");
	return row != NULL && rv_expect(trial, rv_json_get(row, "exitCode") != NULL &&
					rv_json_type(rv_json_get(row, "exitCode")) == RV_JSON_NULL,
					"the row has an exitCode, as if something had run");
}

static bool run_arguments(struct rv_trial *trial)
{
	/* the words follow the script's own three */
	static const char *const words[] = {
		"-c", "for w; do printf '%s\\n' \"$w\"; done | base64 | tr -d '\\n' | { printf '\"'; cat; printf '\"'; }",
		"sh", "", "a b", "$HOME", "*", "`id`", "'\"\\", "--help", "\xe2\x82\xac", NULL,
	};
	const struct rv_ask ask = { .command = "/bin/sh", .words = words };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *said = rv_answer_said(trial, answer);

	return said != NULL && rv_expect_reply(trial, answer,
					       strcmp(said->data, "\na b\n$HOME\n*\n`id`\n'\"\\\n--help\n\xe2\x82\xac\n") == 0,
					       "the tool's arguments are: %s", said->data);
}

/* The only entry of the workdirs' base, while the tool runs, is directly in it. */
static bool run_hostile_name(struct rv_trial *trial)
{
	static const char *const names[] = {
		"\"../../../rv-escape\"", "\"/etc/passwd\"", "\"a\\nb\\tc\"", "\"$(touch pwned)`touch pwned`\"", "\".\"", "\"-rf\"",
		"\"%s%n\"", "\"\\u20ac \\ud83d\\ude00\"",
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const struct rv_ask ask = { .script = "pwd | say", .tool_json = rv_span_of(names[i]), .ledger = trial->ledger };
		const struct rv_answer *answer = rv_ask(trial, &ask);
		const struct rv_buffer *where = rv_answer_said(trial, answer);
		const char *slash;

		if (where == NULL)
			return false;
		slash = strrchr(where->data, '/');
		if (!rv_expect_reply(trial, answer, slash != NULL && (size_t)(slash - where->data) == strlen(trial->base) &&
				     strncmp(where->data, trial->base, strlen(trial->base)) == 0 && slash[1] != '.',
				     "the tool %s runs in %s, which is not directly in %s", names[i], where->data, trial->base))
			return false;
	}
	return true;
}

static bool run_long_name(struct rv_trial *trial)
{
	struct rv_buffer *name = rv_trial_buffer(trial);
	struct rv_ask ask = { .script = "echo ${#RULVAR_TOOL}" };

	if (name == NULL)
		return false;
	rv_buffer_add_byte(name, '"');
	while (name->len < 5001)
		rv_buffer_add_byte(name, 'n');
	rv_buffer_add_byte(name, '"');
	ask.tool_json = (struct rv_span){ name->data, name->len };
	return rv_expect_result(trial, rv_ask(trial, &ask), "5000");
}

static bool run_nul(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = ": >\"$1/effect\"; echo 1", .tool_json = RV_SPAN("\"a\\u0000b\""), .ledger = trial->ledger,
	};

	if (!rv_expect_error(trial, rv_ask(trial, &ask), "request"))
		return false;
	return rv_expect(trial, !rv_trial_exists(rv_trial_path(trial, "effect")), "the tool was run all the same") &&
	       rv_expect(trial, rv_rows_count(rv_rows_read(trial, trial->ledger), "intent") == 0 &&
			 rv_rows_count(rv_rows_read(trial, trial->ledger), "outcome") == 0,
			 "a refused request has rows in the ledger");
}

const struct rv_check rv_checks_spawn[] = {
	{ "spawn.missing", "a command that is not there is spawn",
	  "A path or a name that leads to no file is the error spawn.",
	  "Taken for the tool's own failure, a typing error looks like a broken tool.",
	  "rv-exec(1), EXIT STATUS", 0, run_missing },
	{ "spawn.not-executable", "a file that may not be run, and a directory, are spawn",
	  "Found and not executable is the error spawn.",
	  "An exec that fails after the fork is easily taken for a tool that ran.",
	  "rv-exec(1), EXIT STATUS", 0, run_not_executable },
	{ "spawn.interpreter", "a script whose interpreter is missing is spawn",
	  "The error is spawn, although the file itself is there.",
	  "Nothing ran, so nothing need be reconciled.",
	  "rv-exec(1), EXIT STATUS", 0, run_interpreter },
	{ "spawn.no-shell", "a file without #! is spawn",
	  "No shell is tried on what the kernel does not take for a program.",
	  "execvp would, and then a data file runs as a shell script.",
	  "rv-exec(1), The tool", 0, run_no_shell },
	{ "spawn.too-long", "an argument that no exec takes is spawn",
	  "E2BIG is the error spawn.",
	  "It comes after the fork, where an executor is easily blind.",
	  "rv-exec(1), EXIT STATUS", 0, run_too_long },
	{ "spawn.ledgered", "the row of a command that did not run has no status",
	  "After the intent there is one outcome, error, with exitCode null.",
	  "The row must not say that something ran.",
	  "rv-ledger(5)", RV_CAN_LEDGER, run_ledgered },
	{ "spawn.arguments", "arguments arrive as they are",
	  "No shell, no expansion, no option parsing stands between the request and the tool's argv.",
	  "An argument that is expanded is a command that someone else writes.",
	  "rv-exec(1), The tool", 0, run_arguments },
	{ "name.hostile", "a hostile tool name stays a name",
	  "The workdir is directly in its base whatever the tool is called.",
	  "A name comes from outside, and a path is made of it.",
	  "rv-exec(1), The tool", 0, run_hostile_name },
	{ "name.long", "a long tool name is no failure",
	  "A name of 5000 characters is dispatched.",
	  "A path is made of it, and paths have limits that names do not.",
	  "rv-exec(1), The tool", 0, run_long_name },
	{ "name.nul", "a NUL in a name is refused before anything happens",
	  "The error is request; nothing runs and the ledger has no row.",
	  "Cut at the NUL, the tool would act under another name than the ledger has.",
	  "rv-exec(1), EXIT STATUS", 0, run_nul },
	{ .id = NULL },
};

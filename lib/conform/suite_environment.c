/* executor: the tool's environment, to the last variable. */
#include <stdio.h>
#include <string.h>

#include "lib/conform/ask.h"
#include "lib/conform/suites.h"

/* A shell exports these of its own accord. */
static bool is_the_shells(const char *line)
{
	static const char *const names[] = { "PWD=", "OLDPWD=", "SHLVL=", "_=" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strncmp(line, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

/* The first line of `env` that is none of `allowed`, ended at its newline; NULL: there is none. */
static char *first_stranger(char *env, const char *const *allowed)
{
	char *rest = NULL;

	for (char *line = strtok_r(env, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		bool known = is_the_shells(line);

		for (size_t i = 0; allowed[i] != NULL && !known; i++)
			known = strncmp(line, allowed[i], strlen(allowed[i])) == 0 && line[strlen(allowed[i])] == '=';
		if (!known)
			return line;
	}
	return NULL;
}

static bool run_exact(struct rv_trial *trial)
{
	static const char *const names[] = { "RV_CONFORM_ONE", NULL };
	static const char *const set[] = { "RV_CONFORM_ONE=1", "RV_CONFORM_TWO=2", "LD_LIBRARY_PATH=/nowhere", NULL };
	static const char *const allowed[] = {
		"RULVAR_TOOL", "RULVAR_RUN_ID", "RULVAR_IDEMPOTENCY_KEY", "RV_CONFORM_ONE", NULL,
	};
	const struct rv_ask ask = { .script = "env | say", .allow_env = names, .set = set };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *env = rv_answer_said(trial, answer);
	char *stranger = env != NULL ? first_stranger(env->data, allowed) : NULL;

	return env != NULL && rv_expect_reply(trial, answer, stranger == NULL, "the tool's environment also holds %s", stranger);
}

static bool run_identity(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "env | say", .run_id = "run \xe2\x82\xac", .key = "k=1",
				    .tool_json = RV_SPAN("\"a tool \\\"quoted\\\"\"") };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *env = rv_answer_said(trial, answer);

	return env != NULL &&
	       rv_expect_reply(trial, answer, rv_has_line(env->data, "RULVAR_TOOL=a tool \"quoted\"") &&
			       rv_has_line(env->data, "RULVAR_RUN_ID=run \xe2\x82\xac") &&
			       rv_has_line(env->data, "RULVAR_IDEMPOTENCY_KEY=k=1"),
			       "RULVAR_TOOL, RULVAR_RUN_ID or RULVAR_IDEMPOTENCY_KEY is not the call's: %s", env->data);
}

static bool run_absent(struct rv_trial *trial)
{
	static const char *const names[] = { "RV_CONFORM_ABSENT", "RV_CONFORM_EMPTY", NULL };
	static const char *const set[] = { "RV_CONFORM_EMPTY=", NULL };
	const struct rv_ask ask = { .script = "env | say", .allow_env = names, .set = set };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *env = rv_answer_said(trial, answer);

	return env != NULL &&
	       rv_expect_reply(trial, answer, strstr(env->data, "RV_CONFORM_ABSENT") == NULL,
			       "a variable that the host does not have is set: %s", env->data) &&
	       rv_expect_reply(trial, answer, rv_has_line(env->data, "RV_CONFORM_EMPTY="),
			       "a variable that is empty in the host is not there: %s", env->data);
}

static bool run_own_wins(struct rv_trial *trial)
{
	static const char *const names[] = { "RULVAR_TOOL", "RULVAR_RUN_ID", "RULVAR_IDEMPOTENCY_KEY", NULL };
	static const char *const set[] = { "RULVAR_TOOL=forged", "RULVAR_RUN_ID=forged", "RULVAR_IDEMPOTENCY_KEY=forged", NULL };
	const struct rv_ask ask = { .script = "env | say", .allow_env = names, .set = set, .key = "true-key" };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *env = rv_answer_said(trial, answer);

	return env != NULL &&
	       rv_expect_reply(trial, answer, strstr(env->data, "forged") == NULL &&
			       rv_has_line(env->data, "RULVAR_IDEMPOTENCY_KEY=true-key"),
			       "what the host says wins over the call's own: %s", env->data);
}

const struct rv_check rv_checks_environment[] = {
	{ "env.exact", "the environment is exactly what was granted",
	  "RULVAR_TOOL, RULVAR_RUN_ID, RULVAR_IDEMPOTENCY_KEY and the allowed variables: nothing else, neither PATH nor HOME.",
	  "An exception list is always one variable short.",
	  "rv-exec(1), The tool", 0, run_exact },
	{ "env.identity", "the tool knows its name, run and key",
	  "The three variables hold the call's own values, byte for byte.",
	  "A tool that attaches a mangled key to its effect makes the effect unfindable.",
	  "rv-exec(1), The tool", 0, run_identity },
	{ "env.absent", "an absent variable is left out, an empty one is empty",
	  "What is allowed and not there is not set.",
	  "Many programs take an empty variable for a setting.",
	  "rv-exec(1), --allow-env", 0, run_absent },
	{ "env.own-wins", "nothing overrides the call's own variables",
	  "Allowed variables of the same names give way to the call's tool, run and key.",
	  "An effect under a foreign key is deduplicated against the wrong one.",
	  "rv-exec(1), The tool", 0, run_own_wins },
	{ .id = NULL },
};

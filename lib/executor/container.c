#include "lib/executor/container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/executor/admit.h"
#include "lib/executor/dispatch.h"
#include "lib/executor/leavings.h"
#include "lib/json/json.h"

#define ASK_MS 10000
#define ASKS 2          /* at most: after the container, and after the image */
#define ASK_END_MS 1000 /* and what it takes to end who is asked */

static const struct rv_container *container_of(const struct rv_dispatch *dispatch)
{
	return dispatch->executor->isolation_data;
}

static void name_of(const struct rv_dispatch *dispatch, char name[64])
{
	(void)snprintf(name, 64, RV_CONTAINER_NAME "%s", dispatch->attempt_id);
}

/* ---- what is to be run ---- */

/* The tool's values by their names. */
static int add_environment(struct rv_dispatch *dispatch, char *const *tool, struct rv_error *err)
{
	const struct rv_engine *engine = &container_of(dispatch)->engine;

	for (size_t i = 0; tool[i] != NULL; i++) {
		bool has;

		if (rv_container_check_value(engine, tool[i], &has, err) != 0)
			return -1;
		rv_words_add(&dispatch->argv, "-e");
		rv_buffer_add(&dispatch->argv.text, tool[i], strcspn(tool[i], "="));
		rv_words_add(&dispatch->argv, "");
		if (!has)
			rv_words_add(&dispatch->envp, tool[i]);
	}
	rv_words_add_all(&dispatch->envp, (const char *const *)engine->envp);
	return 0;
}

static void add_mount(struct rv_dispatch *dispatch)
{
	struct rv_words *argv = &dispatch->argv;

	rv_words_add(argv, "--mount");
	rv_buffer_printf(&argv->text, "type=bind,source=%s,target=%s", dispatch->workdir.data,
			 container_of(dispatch)->options->work_mount);
	rv_words_add(argv, "");
}

static int start(struct rv_dispatch *dispatch, struct rv_run_plan *plan, struct rv_error *err)
{
	const struct rv_container *container = container_of(dispatch);
	struct rv_words *argv = &dispatch->argv;
	char name[64];

	name_of(dispatch, name);
	rv_words_add_all(argv, (const char *const *)container->engine.words);
	rv_words_add(argv, "run");
	rv_words_add(argv, "--name");
	rv_words_add(argv, name);
	rv_words_add(argv, "--label");
	rv_words_printf(argv, RV_CONTAINER_LABEL "=%s", dispatch->attempt_id);
	rv_words_add_all(argv, (const char *const *)container->set_up.list);
	add_mount(dispatch);
	if (add_environment(dispatch, plan->envp, err) != 0)
		return -1;
	rv_words_add_all(argv, container->options->engine_args);
	rv_words_add(argv, container->options->image);
	rv_words_add_all(argv, (const char *const *)plan->argv);
	rv_container_undo_words(&dispatch->undo_words, &container->engine, name);
	plan->path = container->engine.words[0];
	plan->argv = rv_words_list(argv, err);
	plan->envp = plan->argv != NULL ? rv_words_list(&dispatch->envp, err) : NULL;
	plan->undo = plan->envp != NULL ? rv_words_list(&dispatch->undo_words, err) : NULL;
	plan->cwd = "/";
	plan->discard = false; /* it goes when the container has */
	plan->flags |= RV_RUN_CLIENT | RV_RUN_PRIVILEGED; /* rootless engines have setuid helpers */
	return plan->undo != NULL ? 0 : -1;
}

/* ---- what became of it ---- */

enum question { NOTHING_ASKED, THE_CONTAINER, THE_IMAGE };

static int ask(struct rv_dispatch *dispatch, enum question question, struct rv_error *err)
{
	const struct rv_container *container = container_of(dispatch);
	struct rv_run_plan plan = {
		.path = container->engine.words[0], .envp = container->engine.envp, .cwd = "/", .timeout_ms = ASK_MS,
		.max_output = 1U << 20, .stderr_fd = -1, .flags = RV_RUN_CLIENT | RV_RUN_PRIVILEGED,
	};
	struct rv_words words = RV_WORDS_INIT;
	char name[64];
	int result = -1;

	name_of(dispatch, name);
	rv_words_add_all(&words, (const char *const *)container->engine.words);
	rv_words_add(&words, question == THE_CONTAINER ? "container" : "image");
	rv_words_add(&words, "inspect");
	rv_words_add(&words, "--format");
	rv_words_add(&words, question == THE_CONTAINER ? "{{json .State}}" : "{{.Id}}");
	rv_words_add(&words, question == THE_CONTAINER ? name : container->options->image);
	plan.argv = rv_words_list(&words, err);
	if (plan.argv != NULL)
		result = rv_run_start(&dispatch->run, dispatch->executor->loop, dispatch->slot, &plan, err);
	rv_words_release(&words);
	if (result != 0)
		rv_run_release(&dispatch->run);
	dispatch->asked = (int)question;
	return result;
}

/* The engine's own words, as its client said them. */
static enum rv_after fail(struct rv_run_result *result, enum rv_code code, const char *what, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer tail = RV_BUFFER_INIT;
	struct rv_span words;

	rv_admit_add_tail(&tail, (struct rv_span){ result->err_tail.data, result->err_tail.len },
			  result->stderr_bytes > result->err_tail.len, RV_STDERR_CHARACTERS);
	words = rv_text_trim((struct rv_span){ tail.data, tail.len });
	(void)rv_error_set(err, code, 0, "%s%s%.*s", what, words.len > 0 ? ": " : "", (int)words.len, words.data);
	if (code != RV_E_EXIT)
		result->exit_code = -1;
	return RV_AFTER_FAILED;
}

struct state {
	bool known;
	bool started;
	bool running;
	bool out_of_memory;
};

static bool is_true(const struct rv_json_node *node)
{
	return node != NULL && rv_json_type(node) == RV_JSON_TRUE;
}

static struct state read_state(const struct rv_run_result *answer)
{
	struct rv_error ignored = RV_ERROR_INIT;
	struct rv_json_doc *doc = rv_json_doc_new(&ignored);
	struct state state = { .known = false };
	const struct rv_json_node *root = NULL;
	const struct rv_json_node *at;

	if (doc != NULL && answer->exit_code == 0 && answer->reason == RV_RUN_NATURAL && answer->out.len > 0)
		root = rv_json_parse(doc, answer->out.data, answer->out.len, RV_JSON_DEFAULT, &ignored);
	at = root != NULL && rv_json_type(root) == RV_JSON_OBJECT ? rv_json_get(root, "StartedAt") : NULL;
	if (rv_json_is_string(at)) {
		struct rv_span text = rv_json_string(at);

		state.known = true;
		state.started = text.len > 4 && strncmp(text.data, "0001", 4) != 0;
		state.running = is_true(rv_json_get(root, "Running"));
		state.out_of_memory = is_true(rv_json_get(root, "OOMKilled"));
	}
	rv_json_doc_free(doc);
	return state;
}

static bool is_engines_own(int status)
{
	return status >= 125 && status <= 127;
}

/* Not every engine sees its kernel's OOM killer (conmon under cgroup v1 does not), and 137 may be the tool's own. */
static enum rv_after killed_by_kernel(struct rv_dispatch *dispatch, struct rv_run_result *result, bool known,
				      struct rv_error *err)
{
	const char *memory = container_of(dispatch)->options->memory;
	char what[256];

	if (!known && result->exit_code != 137)
		return RV_AFTER_RESULT;
	(void)snprintf(what, sizeof what, known ? "the tool was killed: out of memory (--memory %s)"
						: "the tool exited with status 137, which is its own or that of the kernel's "
						  "SIGKILL for what is out of memory (--memory %s)", memory);
	return fail(result, RV_E_EXIT, what, err);
}

/* The client's end is not the tool's: somebody killed it, or it lost its engine.  A failure, so that the container is
 * killed before it is told. */
static enum rv_after client_ended(struct rv_run_result *result, bool running, struct rv_error *err)
{
	char what[256];
	char how[RV_HOW_TEXT];

	rv_admit_how(result, how);
	(void)snprintf(what, sizeof what, "the engine's client %s, and how the tool ends is not known%s", how,
		       running ? " (its container was still running, and is killed)" : "");
	(void)fail(result, RV_E_EXIT, what, err);
	result->exit_code = -1;
	result->signal_number = 0;
	return RV_AFTER_FAILED;
}

/* The client's own run comes back in *result; what it asked after is over. */
static void take_back(struct rv_dispatch *dispatch, struct rv_run_result *result)
{
	rv_buffer_release(&result->out);
	rv_buffer_release(&result->err_tail);
	*result = dispatch->first;
	memset(&dispatch->first, 0, sizeof dispatch->first);
}

static enum rv_after after_image(struct rv_dispatch *dispatch, struct rv_run_result *result, struct rv_error *err)
{
	bool missing = result->reason == RV_RUN_NATURAL && !result->lost && result->exit_code != 0;

	take_back(dispatch, result);
	return fail(result, missing ? RV_E_CONFIG : RV_E_SPAWN, "the engine did not start the container", err);
}

static enum rv_after after_container(struct rv_dispatch *dispatch, struct rv_run_result *result, struct rv_error *err)
{
	struct state state = read_state(result);
	struct rv_error ignored = RV_ERROR_INIT;
	int status;

	status = dispatch->first.exit_code;
	if (!state.known && is_engines_own(status)) { /* there is no container: what is missing? */
		rv_buffer_release(&result->out);
		rv_buffer_release(&result->err_tail);
		if (ask(dispatch, THE_IMAGE, &ignored) == 0)
			return RV_AFTER_AGAIN;
	}
	take_back(dispatch, result);
	if (state.known && !state.started)
		return fail(result, status == 127 ? RV_E_SPAWN_MISSING : RV_E_SPAWN,
			    "the engine did not start the container", err);
	if (!state.known && is_engines_own(status))
		return fail(result, RV_E_SPAWN, "the engine failed, and does not say whether the tool ran", err);
	if (state.running || result->signal_number != 0)
		return client_ended(result, state.running, err);
	return killed_by_kernel(dispatch, result, state.out_of_memory, err);
}

static enum rv_after after(struct rv_dispatch *dispatch, struct rv_run_result *result, struct rv_error *err)
{
	struct rv_run_result first = *result;

	if (dispatch->asked == THE_CONTAINER)
		return after_container(dispatch, result, err);
	if (dispatch->asked == THE_IMAGE)
		return after_image(dispatch, result, err);
	if (result->step != RV_START_OK) {
		(void)rv_error_set(err, RV_E_SPAWN, result->errnum, "the engine's client cannot be started");
		return RV_AFTER_FAILED;
	}
	if (result->reason != RV_RUN_NATURAL || result->lost)
		return RV_AFTER_RESULT;
	if (result->exit_code == 0)
		return RV_AFTER_RESULT;
	dispatch->first = first;
	if (ask(dispatch, THE_CONTAINER, err) == 0)
		return RV_AFTER_AGAIN;
	*result = dispatch->first;
	memset(&dispatch->first, 0, sizeof dispatch->first);
	return fail(result, RV_E_SPAWN, "the engine cannot be asked how the tool ended", err);
}

static int check(const struct rv_executor *executor, const struct rv_call *call, struct rv_error *err)
{
	const struct rv_container *container = executor->isolation_data;

	(void)call;
	if (container->refusal.code == RV_E_NONE)
		return 0;
	*err = container->refusal;
	return -1;
}

const struct rv_isolation rv_isolation_container = {
	.on_host = true, .finds_commands = true, .own_limits = "--memory, --cpus and --pids-limit", .containment = "container",
	.after_ms = ASKS * (ASK_MS + ASK_END_MS) + RV_LEAVINGS_UNDO_MS,
	.check = check, .start = start, .after = after,
};

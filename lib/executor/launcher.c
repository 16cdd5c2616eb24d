#include "lib/executor/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/digest/digest.h"
#include "lib/executor/admit.h"
#include "lib/executor/command.h"
#include "lib/executor/dispatch.h"

#define NOISE_MAX ((uint64_t)64 * 1024) /* what a launcher may say on stdout before the tool is there */
#define STARTED " started\n"
#define FAILED " failed "
#define ENDED " ended "

/* ---- what is to be run ---- */

/* The environment's block, before the tool's own input, whose head and end now lie behind it. */
static int prefix_input(struct rv_dispatch *dispatch, struct rv_run_plan *plan, struct rv_error *err)
{
	size_t head = plan->input[0].len;
	struct rv_buffer block = RV_BUFFER_INIT;
	struct rv_buffer whole = RV_BUFFER_INIT;
	const char *heads[] = { dispatch->nonce, plan->stderr_fd >= 0 ? "1" : "12", plan->path, plan->cwd };

	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
		rv_buffer_add(&block, heads[i], strlen(heads[i]) + 1);
	for (size_t i = 0; plan->envp[i] != NULL; i++)
		rv_buffer_add(&block, plan->envp[i], strlen(plan->envp[i]) + 1);
	rv_buffer_printf(&whole, "rv-inner 1 %010zu\n", block.len);
	rv_buffer_add(&whole, block.data, block.len);
	head += whole.len;
	rv_buffer_add(&whole, dispatch->input.data, dispatch->input.len);
	if (block.data != NULL)
		explicit_bzero(block.data, block.len);
	rv_buffer_release(&block);
	rv_buffer_release(&dispatch->input);
	dispatch->input = whole;
	plan->input[0] = (struct rv_span){ whole.data, head };
	plan->input[2] = (struct rv_span){ whole.data + head, whole.len - head };
	return rv_buffer_check(&whole, err);
}

static int make_nonce(char nonce[33], struct rv_error *err)
{
	unsigned char raw[16];

	if (rv_random(raw, sizeof raw, err) != 0)
		return -1;
	rv_hex(raw, sizeof raw, nonce);
	return 0;
}

static int start(struct rv_dispatch *dispatch, struct rv_run_plan *plan, struct rv_error *err)
{
	const struct rv_launcher *launcher = dispatch->executor->isolation_data;
	struct rv_words *argv = &dispatch->argv;

	if (make_nonce(dispatch->nonce, err) != 0 || prefix_input(dispatch, plan, err) != 0)
		return -1;
	for (size_t i = 0; launcher->words.list[i] != NULL; i++)
		rv_words_add_with(argv, launcher->words.list[i], plan->cwd);
	rv_words_add(argv, launcher->inner.data);
	for (size_t i = 0; plan->argv[i] != NULL; i++)
		rv_words_add(argv, plan->argv[i]);
	plan->argv = rv_words_list(argv, err);
	if (plan->argv == NULL)
		return -1;
	plan->path = launcher->path.data;
	plan->envp = launcher->envp;
	plan->max_output += NOISE_MAX;
	plan->flags |= RV_RUN_PRIVILEGED;
	return 0;
}

/* ---- what became of it ---- */

/* Where the first `mark` ends, 0 where there is none. */
static size_t behind(const struct rv_buffer *text, const char *nonce, const char *mark)
{
	char line[64];
	int len = snprintf(line, sizeof line, "%s%s", nonce, mark);
	const char *found = text->len > 0 ? memmem(text->data, text->len, line, (size_t)len) : NULL;

	return found != NULL ? (size_t)(found - text->data) + (size_t)len : 0;
}

static void cut_front(struct rv_buffer *text, size_t bytes)
{
	if (bytes > 0)
		memmove(text->data, text->data + bytes, text->len - bytes);
	text->len -= bytes;
}

static enum rv_after nothing_ran(struct rv_run_result *result)
{
	result->step = RV_START_SETUP;
	result->exit_code = -1;
	result->signal_number = 0;
	return RV_AFTER_FAILED;
}

static enum rv_after launcher_failed(struct rv_dispatch *dispatch, struct rv_run_result *result, struct rv_error *err)
{
	const struct rv_launcher *launcher = dispatch->executor->isolation_data;
	rv_auto_buffer struct rv_buffer tail = RV_BUFFER_INIT;
	struct rv_span words;
	char how[RV_HOW_TEXT];

	rv_admit_how(result, how);
	rv_admit_add_tail(&tail, (struct rv_span){ result->err_tail.data, result->err_tail.len },
			  result->stderr_bytes > result->err_tail.len, RV_STDERR_CHARACTERS);
	words = rv_text_trim((struct rv_span){ tail.data, tail.len });
	(void)rv_error_set(err, RV_E_SPAWN, 0, "the launcher %s %s before the tool was started%s%.*s",
			   launcher->words.list[0], how, words.len > 0 ? ": " : "", (int)words.len, words.data);
	return nothing_ran(result);
}

static enum rv_after exec_failed(struct rv_dispatch *dispatch, struct rv_run_result *result, size_t at,
				 struct rv_error *err)
{
	char step[8] = "";
	int errnum = 0;

	(void)rv_buffer_string(&result->out);
	if (sscanf(result->out.data + at, "%7s %d", step, &errnum) != 2) /* NOLINT(cert-err34-c): our own digits */
		errnum = 0;
	if (strcmp(step, "exec") == 0)
		(void)rv_command_failed(dispatch->path.data, errnum, err);
	else
		(void)rv_error_set(err, RV_E_SPAWN, errnum, "inside the sandbox: workdir or set-up");
	if (strcmp(step, "exec") == 0 && errnum == ENOENT && err->code == RV_E_SPAWN)
		(void)rv_error_set(err, RV_E_SPAWN_MISSING, 0, "%s: not there inside the sandbox", dispatch->path.data);
	return nothing_ran(result);
}

/* rv-inner's word on how the tool ended, which no launcher can garble; without it (somebody killed it) what the
 * launcher says. */
static void take_end(struct rv_dispatch *dispatch, struct rv_run_result *result)
{
	size_t at = behind(&result->out, dispatch->nonce, ENDED);
	int status = -1;

	if (at == 0 || result->lost)
		return;
	(void)rv_buffer_string(&result->out);
	if (sscanf(result->out.data + at, "%d", &status) != 1) /* NOLINT(cert-err34-c): our own digits */
		return;
	result->stdout_bytes -= result->out.len;
	result->out.len = at - strlen(dispatch->nonce) - strlen(ENDED);
	result->stdout_bytes += result->out.len;
	result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	result->signal_number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static enum rv_after after(struct rv_dispatch *dispatch, struct rv_run_result *result, struct rv_error *err)
{
	const struct rv_launcher *launcher = dispatch->executor->isolation_data;
	size_t started;
	size_t failed;
	size_t noise;

	if (result->step != RV_START_OK) {
		(void)rv_error_set(err, RV_E_SPAWN, result->errnum, "the launcher %s cannot be started", launcher->words.list[0]);
		return RV_AFTER_FAILED;
	}
	started = behind(&result->out, dispatch->nonce, STARTED);
	failed = behind(&result->out, dispatch->nonce, FAILED);
	if (failed > 0)
		return exec_failed(dispatch, result, failed, err);
	if (started == 0 && result->reason == RV_RUN_NATURAL && !result->lost)
		return launcher_failed(dispatch, result, err);
	if (started == 0) /* its deadline, or the caller, came first: all there is is the launcher's */
		rv_buffer_clear(&result->out);
	cut_front(&result->out, started);
	take_end(dispatch, result);
	noise = behind(&result->err_tail, dispatch->nonce, STARTED);
	cut_front(&result->err_tail, noise);
	result->stdout_bytes -= started;
	result->stderr_bytes -= noise;
	if (result->out.len > dispatch->executor->max_output && result->reason == RV_RUN_NATURAL)
		result->reason = RV_RUN_OUTPUT_CAP;
	return RV_AFTER_RESULT;
}

/* ---- what can be refused before ---- */

static int check(const struct rv_executor *executor, const struct rv_call *call, struct rv_error *err)
{
	const struct rv_launcher *launcher = executor->isolation_data;
	rv_auto_buffer struct rv_buffer path = RV_BUFFER_INIT;
	struct rv_error ignored = RV_ERROR_INIT;
	rv_auto_free char *real = NULL;

	if (!launcher->hides || rv_command_find(&path, call->command, &ignored) != 0)
		return 0; /* what is not there is found out when it is started */
	real = realpath(path.data, NULL);
	for (size_t i = 0; real != NULL && launcher->shown.list[i] != NULL; i++) {
		if (rv_path_is_within(real, launcher->shown.list[i]))
			return 0;
	}
	return real == NULL ? 0
			    : rv_error_set(err, RV_E_CONFIG, 0, "%s is not in the sandbox: --ro %s shows it there", path.data, path.data);
}

const struct rv_isolation rv_isolation_launcher = { .on_host = true, .check = check, .start = start, .after = after };

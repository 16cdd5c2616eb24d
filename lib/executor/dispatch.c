#include "lib/executor/dispatch.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/executor/admit.h"
#include "lib/executor/command.h"
#include "lib/json/write.h"
#include "lib/process/workdir.h"

#define NAME_TRIES 64
#define REMOVAL_MS 1000 /* how long an answer waits for its workdir to be gone; the slot goes on */
#define SETTLE_MS 2000  /* beyond all deadlines: the last row's own time */

/* ---- the end ---- */

static void remove_workdir(struct rv_dispatch *dispatch)
{
	struct rv_error err = RV_ERROR_INIT;

	if (dispatch->workdir.len == 0)
		return;
	if (dispatch->slot->socket >= 0 && rv_slot_discard(dispatch->slot, dispatch->workdir.data, &err) == 0)
		return; /* answered later: await_removal() */
	if (rv_workdir_remove(dispatch->workdir.data, &err) != 0)
		dispatch->warning = err;
	rv_buffer_clear(&dispatch->workdir);
}

static void await_removal(struct rv_dispatch *dispatch)
{
	struct rv_error err = RV_ERROR_INIT;
	int removed;

	if (dispatch->workdir.len == 0 || dispatch->slot->socket < 0)
		return;
	removed = rv_slot_discarded(dispatch->slot, REMOVAL_MS, &err);
	if (removed == 0)
		(void)rv_error_set(&err, RV_E_IO, 0, "%s is still being removed", dispatch->workdir.data);
	if (removed < 0 && rv_workdir_remove(dispatch->workdir.data, &err) == 0)
		return; /* the worker was killed meanwhile, or could not: it was not the directory's fault */
	if (removed != 1)
		dispatch->warning = err;
}

static struct rv_attempt attempt_of(const struct rv_dispatch *dispatch)
{
	const struct rv_call *call = dispatch->call;

	return (struct rv_attempt){
		.idempotency_key = call->key,
		.run_id = call->run_id,
		.span_id = call->span_id,
		.tool = call->tool,
		.args_hash = call->args_hash,
		.executor = rv_span_of(dispatch->executor->name),
		.workdir = { dispatch->workdir.data, strlen(dispatch->workdir.data) },
		.started_at = dispatch->started_at,
		.attempt_id = { dispatch->attempt_id, strlen(dispatch->attempt_id) },
	};
}

static void write_outcome(struct rv_dispatch *dispatch)
{
	struct rv_buffer row = RV_BUFFER_INIT;
	struct rv_attempt attempt = attempt_of(dispatch);
	struct rv_error err = RV_ERROR_INIT;
	char signal_text[16];
	struct rv_outcome outcome = {
		.duration_ms = dispatch->duration_ms,
		.outcome = dispatch->outcome,
		.exit_code = dispatch->exit_code,
		.signal = dispatch->signal_number != 0 ? rv_signal_name(dispatch->signal_number, signal_text) : NULL,
	};

	if (dispatch->executor->ledger == NULL)
		return;
	rv_row_add_outcome(&row, &attempt, &outcome);
	if (rv_buffer_check(&row, &err) != 0 || rv_ledger_append(dispatch->executor->ledger, row.data, row.len, &err) != 0) {
		/* an effect whose outcome could not be audited must not report success silently */
		(void)rv_error_wrap(&err, "the outcome '%s' could not be written", dispatch->outcome);
		err.code = RV_E_LEDGER;
		dispatch->error = err;
	}
	rv_buffer_release(&row);
	if (dispatch->lock >= 0)
		rv_ledger_drop(dispatch->executor->ledger, dispatch->lock);
	dispatch->lock = -1;
}

/* The attempt is over, `error` says how.  What is asked of the slot first happens also if this process
 * dies at the next instruction. */
static void settle(struct rv_dispatch *dispatch)
{
	enum rv_code code = dispatch->error.code;

	dispatch->duration_ms = rv_clock_mono_ms() - dispatch->started_mono_ms;
	dispatch->outcome = code == RV_E_NONE ? "ok" : code == RV_E_TIMEOUT ? "timeout" : "error";
	rv_environment_release(&dispatch->environment);
	remove_workdir(dispatch);
	write_outcome(dispatch);
	await_removal(dispatch);
	dispatch->stage = RV_STAGE_DONE;
}

/* Refused before the intent: no row, no workdir. */
static void refuse(struct rv_dispatch *dispatch)
{
	if (dispatch->lock >= 0)
		rv_ledger_drop(dispatch->executor->ledger, dispatch->lock);
	dispatch->lock = -1;
	remove_workdir(dispatch);
	await_removal(dispatch);
	dispatch->stage = RV_STAGE_DONE;
}

/* ---- before the intent ---- */

static int build_environment(struct rv_dispatch *dispatch, struct rv_error *err)
{
	const struct rv_executor *executor = dispatch->executor;

	for (size_t i = 0; executor->allow_env[i] != NULL; i++) {
		if (rv_environment_allow(&dispatch->environment, executor->allow_env[i], err) != 0)
			return rv_error_wrap(err, "--allow-env");
	}
	for (size_t i = 0; executor->set_env[i] != NULL; i++) {
		if (rv_environment_put(&dispatch->environment, executor->set_env[i], err) != 0)
			return rv_error_wrap(err, "--setenv");
	}
	return 0;
}

static bool has_nul(struct rv_span text)
{
	return text.len > 0 && memchr(text.data, '\0', text.len) != NULL;
}

/* What no environment and no command line can carry is refused before anything is written. */
static int check_call(const struct rv_call *call, struct rv_error *err)
{
	if (has_nul(call->tool) || has_nul(call->run_id) || has_nul(call->key))
		return rv_error_set(err, RV_E_REQUEST, 0, "a NUL in the tool's name, the run id or the key");
	if (call->command == NULL || call->command[0] == '\0')
		return rv_error_set(err, RV_E_CONFIG, 0, "there is no command to run");
	return 0;
}

/* Last, so that nothing overrides them. */
static int add_identity(struct rv_dispatch *dispatch, struct rv_error *err)
{
	struct rv_environment *env = &dispatch->environment;
	const struct rv_call *call = dispatch->call;

	if (rv_environment_set(env, RV_SPAN("RULVAR_TOOL"), call->tool, err) != 0 ||
	    rv_environment_set(env, RV_SPAN("RULVAR_RUN_ID"), call->run_id, err) != 0)
		return -1;
	return rv_environment_set(env, RV_SPAN("RULVAR_IDEMPOTENCY_KEY"), call->key, err);
}

static int random_letters(char text[7], struct rv_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	unsigned char raw[6];

	if (rv_random(raw, sizeof raw, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof raw; i++)
		text[i] = letters[raw[i] % (sizeof letters - 1)];
	text[6] = '\0';
	return 0;
}

static int make_workdir(struct rv_dispatch *dispatch, struct rv_error *err)
{
	char letters[7];

	for (int i = 0; i < NAME_TRIES; i++) {
		if (random_letters(letters, err) != 0 ||
		    rv_workdir_name(&dispatch->workdir, dispatch->executor->workdir_base, dispatch->call->tool, letters,
				    err) != 0)
			return -1;
		if (rv_slot_arm(dispatch->slot, dispatch->workdir.data, err) != 0)
			return -1;
		if (mkdir(dispatch->workdir.data, 0700) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	(void)rv_error_set(err, RV_E_CONFIG, errno, "workdir %s", dispatch->workdir.data);
	rv_buffer_clear(&dispatch->workdir);
	return -1;
}

static int check_orphan(const struct rv_dispatch *dispatch, struct rv_error *err)
{
	const char *path = dispatch->executor->refuse_orphan;
	struct rv_buffer attempt = RV_BUFFER_INIT;
	bool found = false;
	int result;

	if (path == NULL)
		return 0;
	result = rv_ledger_find_orphan(path, dispatch->call->key, &found, &attempt, err);
	if (result != 0)
		(void)rv_error_wrap(err, "--refuse-orphan");
	else if (found)
		result = rv_error_set(err, RV_E_LEDGER, 0,
				      "an earlier attempt of this key has no outcome (%.*s): look the key %.*s up with "
				      "the effect's provider before any retry",
				      (int)attempt.len, attempt.len > 0 ? attempt.data : "", (int)dispatch->call->key.len,
				      dispatch->call->key.data);
	if (result != 0)
		err->code = RV_E_LEDGER;
	rv_buffer_release(&attempt);
	return result;
}

static int64_t latest_end(const struct rv_executor *executor)
{
	int64_t ms = executor->timeout_ms + 2 * executor->grace_ms + executor->ledger_wait_ms + SETTLE_MS;

	return executor->credentials != NULL ? ms + executor->credentials_timeout_ms : ms;
}

static int write_intent(struct rv_dispatch *dispatch, struct rv_error *err)
{
	const struct rv_executor *executor = dispatch->executor;
	struct rv_attempt attempt = attempt_of(dispatch);
	struct rv_buffer row = RV_BUFFER_INIT;
	struct rv_writer writer;
	int result = -1;

	if (executor->ledger == NULL || executor->outcomes_only)
		return 0;
	if (rv_writer_init(&writer, err) == 0 && rv_ledger_hold(executor->ledger, &dispatch->lock, err) == 0) {
		writer.lock = dispatch->lock;
		writer.until = dispatch->started_at + latest_end(executor);
		rv_row_add_intent(&row, &attempt, executor->sandbox, rv_containment_name(dispatch->slot->containment),
				  &writer);
		result = rv_buffer_check(&row, err);
		if (result == 0)
			result = rv_ledger_append(executor->ledger, row.data, row.len, err);
	}
	if (result != 0) {
		err->code = RV_E_LEDGER;
		(void)rv_error_wrap(err, "the intent could not be written, so nothing was run");
	}
	rv_buffer_release(&row);
	return result;
}

/* ---- the runs ---- */

/* What the minting program reads: the request as the stream form has it. */
static void add_request(struct rv_buffer *out, const struct rv_dispatch *dispatch)
{
	const struct rv_call *call = dispatch->call;

	rv_buffer_add_byte(out, '{');
	if (call->id.len > 0)
		rv_json_member_raw(out, "id", call->id);
	rv_json_member_span(out, "tool", call->tool);
	rv_json_member_raw(out, "args", call->args);
	rv_json_member_string(out, "executor", dispatch->executor->name);
	rv_json_add_name(out, "ctx");
	rv_buffer_add_byte(out, '{');
	rv_json_member_span(out, "runId", call->run_id);
	rv_json_member_span(out, "spanId", call->span_id);
	if (call->agent_type.data != NULL)
		rv_json_member_span(out, "agentType", call->agent_type);
	rv_json_member_span(out, "idempotencyKey", call->key);
	rv_buffer_add_string(out, "}}\n");
}

static void add_tool_input(struct rv_buffer *out, const struct rv_call *call)
{
	rv_buffer_add_byte(out, '{');
	rv_json_member_span(out, "tool", call->tool);
	rv_json_member_raw(out, "args", call->args);
	rv_json_member_span(out, "idempotencyKey", call->key);
	rv_buffer_add_string(out, "}\n");
}

extern char **environ;

static int start_credentials(struct rv_dispatch *dispatch, struct rv_error *err)
{
	const struct rv_executor *executor = dispatch->executor;
	struct rv_run_plan plan = {
		.path = executor->credentials_path,
		.argv = executor->credentials,
		.envp = environ,
		.cwd = "", /* where rv-exec was started */
		.timeout_ms = executor->credentials_timeout_ms,
		.grace_ms = 0,
		.max_output = 1U << 20,
		.stderr_fd = STDERR_FILENO, /* the host's own program: what it says may name a secret, and is not kept */
	};
	char *cwd = getcwd(NULL, 0);
	int result = -1;

	if (cwd == NULL)
		return rv_error_set(err, RV_E_CONFIG, errno, "--credentials: the current directory");
	plan.cwd = cwd;
	rv_buffer_clear(&dispatch->input);
	add_request(&dispatch->input, dispatch);
	if (rv_buffer_check(&dispatch->input, err) == 0) {
		plan.input = (struct rv_span){ dispatch->input.data, dispatch->input.len };
		result = rv_run_start(&dispatch->run, executor->loop, dispatch->host_slot, &plan, err);
		dispatch->running = true;
		dispatch->stage = RV_STAGE_CREDENTIALS;
	}
	free(cwd);
	if (result != 0)
		err->code = RV_E_CONFIG;
	return result;
}

static int start_tool(struct rv_dispatch *dispatch, struct rv_error *err)
{
	const struct rv_executor *executor = dispatch->executor;
	struct rv_buffer path = RV_BUFFER_INIT;
	struct rv_run_plan plan = {
		.argv = dispatch->call->argv,
		.cwd = dispatch->workdir.data,
		.timeout_ms = executor->timeout_ms,
		.grace_ms = executor->grace_ms,
		.max_output = executor->max_output,
		.stderr_fd = executor->stderr_fd,
	};
	int result = -1;

	rv_buffer_clear(&dispatch->input);
	add_tool_input(&dispatch->input, dispatch->call);
	if (add_identity(dispatch, err) == 0 && rv_buffer_check(&dispatch->input, err) == 0 &&
	    rv_command_find(&path, dispatch->call->command, err) == 0) {
		plan.path = path.data;
		plan.envp = dispatch->environment.entries;
		plan.input = (struct rv_span){ dispatch->input.data, dispatch->input.len };
		result = rv_run_start(&dispatch->run, executor->loop, dispatch->slot, &plan, err);
		dispatch->running = true;
		dispatch->stage = RV_STAGE_TOOL;
		if (result != 0)
			err->code = RV_E_SPAWN;
	}
	rv_buffer_release(&path);
	return result;
}

static void start_or_settle(struct rv_dispatch *dispatch, int started)
{
	if (started != 0)
		settle(dispatch);
}

void rv_dispatch_begin(struct rv_dispatch *dispatch, const struct rv_executor *executor, const struct rv_call *call,
		       struct rv_slot *slot, struct rv_slot *host_slot)
{
	struct rv_error *err = &dispatch->error;

	memset(dispatch, 0, sizeof *dispatch);
	dispatch->executor = executor;
	dispatch->call = call;
	dispatch->slot = slot;
	dispatch->host_slot = host_slot;
	dispatch->lock = -1;
	dispatch->exit_code = -1;
	dispatch->started_at = rv_clock_wall_ms();
	dispatch->started_mono_ms = rv_clock_mono_ms();
	if (rv_uuid(dispatch->attempt_id, err) != 0 || check_call(call, err) != 0 || build_environment(dispatch, err) != 0 ||
	    check_orphan(dispatch, err) != 0 || make_workdir(dispatch, err) != 0 || write_intent(dispatch, err) != 0) {
		refuse(dispatch);
		return;
	}
	dispatch->intended = true;
	start_or_settle(dispatch, executor->credentials != NULL ? start_credentials(dispatch, err)
								: start_tool(dispatch, err));
}

/* ---- after a run ---- */

static void take_facts(struct rv_dispatch *dispatch)
{
	const struct rv_run_result *result = &dispatch->run.result;

	dispatch->ran = result->step == RV_START_OK;
	dispatch->exit_code = result->exit_code;
	dispatch->signal_number = dispatch->ran ? result->signal_number : 0;
	dispatch->survivors = result->survivors;
	dispatch->stdout_bytes = result->stdout_bytes;
	dispatch->stderr_bytes = result->stderr_bytes;
	dispatch->user_ms = result->user_ms;
	dispatch->system_ms = result->system_ms;
	dispatch->max_rss_bytes = result->max_rss_bytes;
}

static void end_run(struct rv_dispatch *dispatch)
{
	rv_run_release(&dispatch->run);
	dispatch->running = false;
}

static void after_tool(struct rv_dispatch *dispatch)
{
	take_facts(dispatch);
	(void)rv_admit_tool(&dispatch->run.result, dispatch->executor, dispatch->call, &dispatch->result, &dispatch->error);
	end_run(dispatch);
	settle(dispatch);
}

static void after_credentials(struct rv_dispatch *dispatch)
{
	struct rv_error *err = &dispatch->error;
	int minted = rv_admit_credentials(&dispatch->run.result, &dispatch->environment, err);

	if (dispatch->run.result.out.data != NULL)
		explicit_bzero(dispatch->run.result.out.data, dispatch->run.result.out.len);
	end_run(dispatch);
	if (minted != 0)
		(void)rv_error_wrap(err, "--credentials");
	else if (dispatch->abort_asked)
		minted = rv_error_set(err, RV_E_ABORTED, 0, "aborted before the tool was started");
	start_or_settle(dispatch, minted == 0 ? start_tool(dispatch, err) : -1);
}

void rv_dispatch_check(struct rv_dispatch *dispatch)
{
	if (!dispatch->running || dispatch->stage == RV_STAGE_DONE)
		return;
	rv_run_check(&dispatch->run);
	if (!dispatch->run.finished)
		return;
	if (dispatch->stage == RV_STAGE_TOOL)
		after_tool(dispatch);
	else if (dispatch->stage == RV_STAGE_CREDENTIALS)
		after_credentials(dispatch);
}

void rv_dispatch_give_up(struct rv_dispatch *dispatch, const struct rv_error *why)
{
	if (dispatch->stage == RV_STAGE_DONE)
		return;
	if (dispatch->running && !dispatch->run.finished)
		rv_run_give_up(&dispatch->run);
	take_facts(dispatch);
	dispatch->error = *why;
	dispatch->error.code = RV_E_SPAWN;
	(void)rv_error_wrap(&dispatch->error, "the tool was killed since it could not be supervised");
	settle(dispatch);
}

void rv_dispatch_abort(struct rv_dispatch *dispatch)
{
	dispatch->abort_asked = true;
	if (dispatch->running)
		rv_run_abort(&dispatch->run);
}

bool rv_dispatch_done(const struct rv_dispatch *dispatch)
{
	return dispatch->stage == RV_STAGE_DONE;
}

int64_t rv_dispatch_deadline(const struct rv_dispatch *dispatch)
{
	return dispatch->running ? rv_run_deadline(&dispatch->run) : rv_clock_mono_ms();
}

void rv_dispatch_release(struct rv_dispatch *dispatch)
{
	if (dispatch->running)
		rv_run_release(&dispatch->run);
	rv_environment_release(&dispatch->environment);
	rv_buffer_release(&dispatch->workdir);
	rv_buffer_release(&dispatch->input);
	rv_buffer_release(&dispatch->result);
}

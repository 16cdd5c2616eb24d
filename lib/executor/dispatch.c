#include "lib/executor/dispatch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/executor/admit.h"
#include "lib/executor/attempt.h"
#include "lib/executor/command.h"
#include "lib/executor/leavings.h"
#include "lib/json/write.h"

/* ---- the end ---- */

static void let_go(struct rv_dispatch *dispatch)
{
	if (dispatch->lock >= 0)
		rv_ledger_drop(dispatch->executor->ledger, dispatch->lock);
	dispatch->lock = -1;
}

/* NOLINTBEGIN(misc-no-recursion): a refused row leads to a later stage, of which there are few */
/* Queue a row; where that cannot be, it is as if it had been refused. */
static void queue(struct rv_dispatch *dispatch, enum rv_dispatch_stage stage, struct rv_buffer *row, int made,
		  struct rv_error *err)
{
	dispatch->stage = stage;
	if (made != 0 || rv_batch_add(dispatch->executor->batch, dispatch, row, err) != 0)
		rv_dispatch_written(dispatch, err);
	rv_buffer_release(row);
}

/* The attempt is over, `error` says how. */
static void settle(struct rv_dispatch *dispatch)
{
	enum rv_code code = dispatch->error.code;
	struct rv_buffer row = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;

	dispatch->duration_ms = rv_clock_mono_ms() - dispatch->started_mono_ms;
	dispatch->outcome = code == RV_E_NONE ? "ok" : code == RV_E_TIMEOUT ? "timeout" : "error";
	rv_environment_release(&dispatch->environment);
	rv_attempt_unlimit(dispatch);
	if (code != RV_E_NONE && dispatch->ran && dispatch->has_workdir && dispatch->executor->keep_on_error) {
		dispatch->has_workdir = false;
		dispatch->kept = true;
	}
	rv_leavings_remove(dispatch);
	queue(dispatch, RV_STAGE_OUTCOME, &row, rv_attempt_outcome(dispatch, &row, &err), &err);
}

/* Refused before the intent: no row, no workdir. */
static void refuse(struct rv_dispatch *dispatch)
{
	let_go(dispatch);
	rv_attempt_unlimit(dispatch);
	rv_leavings_remove(dispatch);
	dispatch->stage = RV_STAGE_DONE;
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

/* The line that the tool reads, its arguments from where they lie. */
static int make_tool_input(struct rv_dispatch *dispatch, struct rv_span parts[RV_INPUT_PARTS], struct rv_error *err)
{
	const struct rv_call *call = dispatch->call;
	struct rv_buffer *out = &dispatch->input;
	size_t head;

	rv_buffer_clear(out);
	rv_buffer_add_byte(out, '{');
	rv_json_member_span(out, "tool", call->tool);
	rv_json_add_name(out, "args");
	head = out->len;
	rv_json_member_span(out, "idempotencyKey", call->key);
	rv_buffer_add_string(out, "}\n");
	parts[0] = (struct rv_span){ out->data, head };
	parts[1] = call->args;
	parts[2] = (struct rv_span){ out->data + head, out->len - head };
	return rv_buffer_check(out, err);
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
		plan.input[0] = (struct rv_span){ dispatch->input.data, dispatch->input.len };
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
	struct rv_run_plan plan = {
		.argv = dispatch->call->argv,
		.cwd = dispatch->workdir.data,
		.timeout_ms = dispatch->call->timeout_ms,
		.grace_ms = executor->grace_ms,
		.max_output = executor->max_output,
		.stderr_fd = executor->stderr_fd,
		.discard = !executor->keep_on_error,
	};
	int result = -1;

	if (rv_attempt_identity(dispatch, err) == 0 && make_tool_input(dispatch, plan.input, err) == 0 &&
	    (executor->isolation->finds_commands || rv_command_find(&dispatch->path, dispatch->call->command, err) == 0)) {
		plan.path = dispatch->path.data;
		plan.envp = dispatch->environment.entries;
		rv_attempt_limit(dispatch, &plan);
		if (executor->isolation->start != NULL && executor->isolation->start(dispatch, &plan, err) != 0)
			return -1;
		result = rv_run_start(&dispatch->run, executor->loop, dispatch->slot, &plan, err);
		dispatch->running = true;
		dispatch->stage = RV_STAGE_TOOL;
		dispatch->undo = result == 0 && plan.undo != NULL ? RV_UNDO_OWED : RV_UNDO_NONE;
		if (result != 0)
			err->code = RV_E_SPAWN;
	}
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
	struct rv_error failure = RV_ERROR_INIT;
	struct rv_buffer row = RV_BUFFER_INIT;

	memset(dispatch, 0, sizeof *dispatch);
	dispatch->executor = executor;
	dispatch->call = call;
	dispatch->slot = executor->isolation->on_host ? host_slot : slot;
	dispatch->host_slot = host_slot;
	dispatch->group = (struct rv_cgroup)RV_CGROUP_INIT;
	dispatch->lock = -1;
	dispatch->exit_code = -1;
	dispatch->started_at = rv_clock_wall_ms();
	dispatch->started_mono_ms = rv_clock_mono_ms();
	if (rv_uuid(dispatch->attempt_id, err) != 0 || rv_attempt_check(executor, call, err) != 0 ||
	    rv_attempt_permit(dispatch, err) != 0 || rv_attempt_environment(dispatch, err) != 0 ||
	    rv_attempt_orphan(dispatch, err) != 0 || rv_attempt_group(dispatch, err) != 0 ||
	    rv_attempt_workdir(dispatch, err) != 0) {
		refuse(dispatch);
		return;
	}
	queue(dispatch, RV_STAGE_INTENT, &row, rv_attempt_intent(dispatch, &row, &failure), &failure);
}

static void intent_written(struct rv_dispatch *dispatch, const struct rv_error *failure)
{
	struct rv_error *err = &dispatch->error;

	if (failure != NULL) {
		*err = *failure;
		(void)rv_error_wrap(err, "the intent could not be written, so nothing was run");
		err->code = RV_E_LEDGER;
		refuse(dispatch);
		return;
	}
	dispatch->intended = true;
	if (dispatch->abort_asked)
		start_or_settle(dispatch, rv_error_set(err, RV_E_ABORTED, 0, "aborted before the tool was started"));
	else
		start_or_settle(dispatch, dispatch->executor->credentials != NULL ? start_credentials(dispatch, err)
										  : start_tool(dispatch, err));
}

/* An effect whose outcome could not be audited must not report success silently. */
static void outcome_written(struct rv_dispatch *dispatch, const struct rv_error *failure)
{
	if (failure != NULL) {
		dispatch->error = *failure;
		(void)rv_error_wrap(&dispatch->error, "the outcome '%s' could not be written", dispatch->outcome);
		dispatch->error.code = RV_E_LEDGER;
	}
	let_go(dispatch);
	dispatch->stage = RV_STAGE_DONE;
}

void rv_dispatch_written(struct rv_dispatch *dispatch, const struct rv_error *failure)
{
	if (dispatch->stage == RV_STAGE_INTENT)
		intent_written(dispatch, failure);
	else if (dispatch->stage == RV_STAGE_OUTCOME)
		outcome_written(dispatch, failure);
}
/* NOLINTEND(misc-no-recursion) */

/* ---- after a run ---- */

/* Of the credentials program, then of the tool. */
static void count_survivors(struct rv_dispatch *dispatch, int more)
{
	dispatch->survivors = dispatch->survivors < 0 || more < 0 ? -1 : dispatch->survivors + more;
}

static void take_facts(struct rv_dispatch *dispatch)
{
	const struct rv_run_result *result = &dispatch->run.result;

	dispatch->ran = result->step == RV_START_OK;
	if (!dispatch->ran)
		dispatch->undo = RV_UNDO_NONE;
	dispatch->exit_code = result->exit_code;
	dispatch->signal_number = dispatch->ran ? result->signal_number : 0;
	dispatch->survivors_before = dispatch->survivors;
	count_survivors(dispatch, result->survivors);
	dispatch->stdout_bytes = result->stdout_bytes;
	dispatch->stderr_bytes = result->stderr_bytes;
	dispatch->user_ms = result->user_ms;
	dispatch->system_ms = result->system_ms;
	dispatch->max_rss_bytes = result->max_rss_bytes;
	if (result->cwd_removed)
		dispatch->has_workdir = false;
	dispatch->limit = result->cpu_reached ? "cpu" : NULL;
}

static void end_run(struct rv_dispatch *dispatch)
{
	rv_run_release(&dispatch->run);
	dispatch->running = false;
}

static void settle_undone(struct rv_dispatch *dispatch)
{
	if (dispatch->stage == RV_STAGE_UNDO && dispatch->undo != RV_UNDO_ASKED)
		settle(dispatch);
}

static void after_tool(struct rv_dispatch *dispatch)
{
	const struct rv_isolation *isolation = dispatch->executor->isolation;
	struct rv_run_result *result = &dispatch->run.result;
	enum rv_after after = RV_AFTER_RESULT;
	bool killed;

	if (isolation->after != NULL)
		after = isolation->after(dispatch, result, &dispatch->error);
	if (after == RV_AFTER_AGAIN)
		return;
	take_facts(dispatch);
	if (after == RV_AFTER_RESULT)
		(void)rv_admit_tool(result, dispatch->executor, dispatch->call, &dispatch->result, &dispatch->error);
	/* what ended by itself is dead, and is removed behind the answer; what was killed is asked for first */
	killed = result->reason != RV_RUN_NATURAL || result->lost || after == RV_AFTER_FAILED;
	end_run(dispatch);
	dispatch->stage = RV_STAGE_UNDO;
	if (killed)
		rv_leavings_undo(dispatch);
	settle_undone(dispatch);
}

static void after_credentials(struct rv_dispatch *dispatch)
{
	struct rv_error *err = &dispatch->error;
	int minted = rv_admit_credentials(&dispatch->run.result, &dispatch->environment, err);

	count_survivors(dispatch, dispatch->run.result.survivors);
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
	rv_leavings_check(dispatch);
	settle_undone(dispatch);
	if (!dispatch->running)
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
	if (dispatch->stage == RV_STAGE_TOOL || dispatch->stage == RV_STAGE_CREDENTIALS) {
		rv_run_give_up(&dispatch->run);
		if (dispatch->stage == RV_STAGE_TOOL)
			take_facts(dispatch);
		else
			count_survivors(dispatch, dispatch->run.result.survivors);
		end_run(dispatch);
		dispatch->error = *why;
		dispatch->error.code = RV_E_SPAWN;
		(void)rv_error_wrap(&dispatch->error, "the tool was killed since it could not be supervised");
		settle(dispatch);
	}
	if (dispatch->stage == RV_STAGE_UNDO || dispatch->stage == RV_STAGE_DONE)
		rv_leavings_force(dispatch);
	settle_undone(dispatch);
}

void rv_dispatch_abort(struct rv_dispatch *dispatch)
{
	dispatch->abort_asked = true;
	if (dispatch->running)
		rv_run_abort(&dispatch->run);
}

bool rv_dispatch_answered(const struct rv_dispatch *dispatch)
{
	return dispatch->stage == RV_STAGE_DONE && (!dispatch->has_workdir || dispatch->warning.code != RV_E_NONE);
}

bool rv_dispatch_is_undoing(const struct rv_dispatch *dispatch)
{
	return dispatch->undo == RV_UNDO_OWED || dispatch->undo == RV_UNDO_ASKED;
}

bool rv_dispatch_done(const struct rv_dispatch *dispatch)
{
	return dispatch->stage == RV_STAGE_DONE && !dispatch->has_workdir && !rv_dispatch_is_undoing(dispatch);
}

bool rv_dispatch_leaves_slot(const struct rv_dispatch *dispatch)
{
	return dispatch->stage == RV_STAGE_OUTCOME && !dispatch->has_workdir && !rv_dispatch_is_undoing(dispatch) &&
	       dispatch->slot->socket >= 0 &&
	       (!dispatch->ran || (dispatch->survivors == 0 && !rv_slot_is_changed(dispatch->slot))) &&
	       (dispatch->host_slot == NULL || dispatch->host_slot->socket >= 0) &&
	       dispatch->executor->refuse_orphan == NULL; /* which looks for the very row */
}

int64_t rv_dispatch_deadline(const struct rv_dispatch *dispatch)
{
	if (dispatch->running)
		return rv_run_deadline(&dispatch->run);
	return rv_leavings_deadline(dispatch);
}

void rv_dispatch_release(struct rv_dispatch *dispatch)
{
	if (dispatch->running)
		end_run(dispatch);
	if (dispatch->has_workdir || dispatch->undo == RV_UNDO_ASKED)
		rv_loop_remove(dispatch->executor->loop, &dispatch->removal);
	rv_environment_release(&dispatch->environment);
	(void)rv_cgroup_remove(&dispatch->group);
	rv_buffer_release(&dispatch->workdir);
	if (dispatch->input.data != NULL)
		explicit_bzero(dispatch->input.data, dispatch->input.len); /* a launcher's tool finds its environment in it */
	rv_buffer_release(&dispatch->input);
	rv_buffer_release(&dispatch->path);
	rv_buffer_release(&dispatch->result);
	rv_buffer_release(&dispatch->first.out);
	rv_buffer_release(&dispatch->first.err_tail);
	rv_words_release(&dispatch->argv);
	rv_words_release(&dispatch->envp);
	rv_words_release(&dispatch->undo_words);
}

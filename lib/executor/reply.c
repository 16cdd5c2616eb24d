#include "lib/executor/reply.h"

#include <string.h>

#include "lib/json/write.h"

static void add_error(struct rv_buffer *out, const struct rv_error *err)
{
	rv_json_member_bool(out, "ok", false);
	rv_json_add_name(out, "error");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "code", rv_code_name(err->code));
	rv_json_member_string(out, "message", err->message);
	rv_buffer_add_byte(out, '}');
}

static void add_known(struct rv_buffer *out, const char *name, struct rv_span text)
{
	if (text.data != NULL)
		rv_json_member_span(out, name, text);
}

static void add_call(struct rv_buffer *out, const struct rv_call *call)
{
	add_known(out, "tool", call->tool);
	add_known(out, "runId", call->run_id);
	add_known(out, "spanId", call->span_id);
	add_known(out, "idempotencyKey", call->key);
	add_known(out, "argsHash", call->args_hash);
}

/* What is refused for itself may have been read in part, and its key may be what it is refused for. */
static bool was_read_whole(const struct rv_error *err)
{
	return err->code == RV_E_CONFIG || err->code == RV_E_ABORTED;
}

void rv_reply_add_refusal(struct rv_buffer *out, const struct rv_call *call, uint64_t line, const struct rv_error *err)
{
	rv_buffer_add_byte(out, '{');
	if (call->id.len > 0)
		rv_json_member_raw(out, "id", call->id);
	if (was_read_whole(err))
		add_call(out, call);
	add_error(out, err);
	if (line > 0)
		rv_json_member_int(out, "line", (int64_t)line);
	rv_buffer_add_string(out, "}\n");
}

static void add_identity(struct rv_buffer *out, const struct rv_dispatch *dispatch)
{
	const struct rv_call *call = dispatch->call;

	if (call->id.len > 0)
		rv_json_member_raw(out, "id", call->id);
	add_call(out, call);
	if (dispatch->intended) { /* refused before: there was no attempt */
		rv_json_member_string(out, "attemptId", dispatch->attempt_id);
		rv_json_member_int(out, "startedAt", dispatch->started_at);
	}
}

/* Where limits were asked for: which one was run into, and how near the memory came to its own. */
static void add_limits(struct rv_buffer *out, const struct rv_dispatch *dispatch)
{
	const struct rv_limits *limits = dispatch->executor->limits;

	if (limits->cpu_ms == INT64_MAX && limits->data == UINT64_MAX && limits->memory == UINT64_MAX &&
	    limits->processes == 0)
		return;
	if (dispatch->peak_bytes >= 0)
		rv_json_member_int(out, "peakMemoryBytes", dispatch->peak_bytes);
	rv_json_member_string_or_null(out, "limit", dispatch->limit);
}

static void add_end(struct rv_buffer *out, const struct rv_dispatch *dispatch)
{
	char signal_text[16];

	rv_json_member_string(out, "outcome", dispatch->outcome);
	if (dispatch->exit_code >= 0)
		rv_json_member_int(out, "exitCode", dispatch->exit_code);
	else
		rv_json_member_null(out, "exitCode");
	if (dispatch->signal_number != 0)
		rv_json_member_string(out, "signal", rv_signal_name(dispatch->signal_number, signal_text));
	else
		rv_json_member_null(out, "signal");
	rv_json_member_int(out, "durationMs", dispatch->duration_ms);
	rv_json_member_int(out, "stdoutBytes", (int64_t)dispatch->stdout_bytes);
	rv_json_member_int(out, "stderrBytes", (int64_t)dispatch->stderr_bytes);
	if (dispatch->survivors >= 0)
		rv_json_member_int(out, "survivors", dispatch->survivors);
	else
		rv_json_member_null(out, "survivors");
	rv_json_member_string(out, "containment", rv_isolation_containment(dispatch));
	rv_json_member_string(out, "sandbox", dispatch->executor->sandbox);
	if (dispatch->kept)
		rv_json_member_string(out, "keptWorkdir", dispatch->workdir.data);
	rv_json_add_name(out, "resources");
	rv_buffer_add_byte(out, '{');
	rv_json_member_int(out, "userMs", dispatch->user_ms);
	rv_json_member_int(out, "systemMs", dispatch->system_ms);
	rv_json_member_int(out, "maxRssBytes", dispatch->max_rss_bytes);
	add_limits(out, dispatch);
	rv_buffer_add_byte(out, '}');
}

void rv_reply_add(struct rv_buffer *out, const struct rv_dispatch *dispatch)
{
	rv_buffer_add_byte(out, '{');
	add_identity(out, dispatch);
	if (dispatch->error.code == RV_E_NONE) {
		rv_json_member_bool(out, "ok", true);
		rv_json_member_raw(out, "result", (struct rv_span){ dispatch->result.data, dispatch->result.len });
	} else {
		add_error(out, &dispatch->error);
	}
	if (dispatch->intended)
		add_end(out, dispatch);
	rv_buffer_add_string(out, "}\n");
}

#include "lib/confine/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/digest/digest.h"
#include "lib/json/write.h"
#include "lib/process/supervise.h"

void rv_confine_result_init(struct rv_confine_result *result)
{
	memset(result, 0, sizeof *result);
	result->facts.exit_code = -1;
}

void rv_confine_result_refuse(struct rv_confine_result *result, const struct rv_error *err)
{
	result->status = err->code == RV_E_REQUEST   ? RV_CONFINE_INVALID
			 : err->code == RV_E_ABORTED ? RV_CONFINE_NOT_STARTED
						     : RV_CONFINE_FAILED;
	result->reason = RV_REASON_ABORTED;
	result->error = *err;
}

void rv_confine_result_release(struct rv_confine_result *result)
{
	rv_buffer_release(&result->ns.reason);
	rv_buffer_release(&result->problems);
	rv_facts_release(&result->facts);
	rv_confine_result_init(result);
}

void rv_confine_problem(struct rv_confine_result *result, const char *format, ...)
{
	char text[RV_ERROR_MESSAGE_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (result->problem_count++ > 0)
		rv_buffer_add_byte(&result->problems, ',');
	rv_json_add_string(&result->problems, text, strlen(text));
}

bool rv_confine_is_attributable(const struct rv_confine_result *result)
{
	return result->status == RV_CONFINE_OBSERVED && result->problem_count == 0;
}

int rv_confine_exit(const struct rv_confine_result *result)
{
	switch (result->status) {
	case RV_CONFINE_INVALID:
		return 2;
	case RV_CONFINE_FAILED:
		return 5;
	case RV_CONFINE_NOT_STARTED:
		return 3;
	case RV_CONFINE_OBSERVED:
		return rv_confine_is_attributable(result) ? 0 : 1;
	case RV_CONFINE_UNRESOLVED:
		break;
	}
	return 4;
}

static const char *reason_name(enum rv_not_started reason)
{
	static const char *const names[] = {
		[RV_REASON_ABORTED] = "aborted",           [RV_REASON_HOST] = "unsupported-host",
		[RV_REASON_RUNTIME] = "runtime-mismatch",  [RV_REASON_PROFILE] = "profile-mismatch",
		[RV_REASON_SNAPSHOT] = "snapshot-mismatch", [RV_REASON_RETAINED] = "retained-limit",
		[RV_REASON_SETUP] = "setup-failed",
	};

	return names[reason];
}

static const char *admission_name(enum rv_admission admission)
{
	static const char *const names[] = { [RV_ADMISSION_ABSENT] = "absent", [RV_ADMISSION_ADMITTED] = "admitted",
					     [RV_ADMISSION_REFUSED] = "refused", [RV_ADMISSION_MALFORMED] = "malformed" };

	return names[admission];
}

static void add_stop(struct rv_buffer *out, enum rv_stop stop)
{
	static const char *const names[] = { [RV_STOP_TIMEOUT] = "timeout",        [RV_STOP_CANCELLED] = "cancelled",
					     [RV_STOP_OUTPUT] = "output-limit",    [RV_STOP_LIMITS] = "limits-mismatch",
					     [RV_STOP_CONTROL] = "control-malformed", [RV_STOP_MEMORY] = "memory-limit" };

	if (stop == RV_STOP_NONE)
		rv_json_member_null(out, "stopped");
	else
		rv_json_member_string(out, "stopped", names[stop]);
}

static void add_limit_value(struct rv_buffer *out, const char *name, uint64_t value, uint64_t unit)
{
	if (value == UINT64_MAX)
		rv_json_member_string(out, name, "unlimited");
	else
		rv_json_member_int(out, name, (int64_t)(value / unit));
}

static void add_limits(struct rv_buffer *out, const struct rv_facts *facts)
{
	/* 512-byte blocks where the seed has them. */
	static const struct {
		const char *name;
		enum rv_limit_name limit;
		uint64_t unit;
	} rows[] = { { "cpuSeconds", RV_LIMIT_CPU, 1 },
		     { "descriptors", RV_LIMIT_NOFILE, 1 },
		     { "coreBlocks", RV_LIMIT_CORE, 512 },
		     { "fileBlocks", RV_LIMIT_FSIZE, 512 },
		     { "dataBytes", RV_LIMIT_DATA, 1 } };

	if (!facts->reported || facts->report.step != RV_BOUNDARY_READY) {
		rv_json_member_null(out, "limits");
		return;
	}
	rv_json_add_name(out, "limits");
	rv_buffer_add_byte(out, '{');
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		rv_json_add_name(out, rows[i].name);
		rv_buffer_add_byte(out, '{');
		add_limit_value(out, "soft", facts->report.soft[rows[i].limit], rows[i].unit);
		add_limit_value(out, "hard", facts->report.hard[rows[i].limit], rows[i].unit);
		rv_buffer_add_byte(out, '}');
	}
	rv_buffer_add_byte(out, '}');
}

static void add_exit(struct rv_buffer *out, const struct rv_facts *facts)
{
	char name[16];

	if (!facts->exit_known) {
		rv_json_member_null(out, "exit");
		return;
	}
	rv_json_add_name(out, "exit");
	rv_buffer_add_byte(out, '{');
	if (facts->exit_code >= 0)
		rv_json_member_int(out, "code", facts->exit_code);
	else
		rv_json_member_null(out, "code");
	if (facts->exit_signal > 0)
		rv_json_member_string(out, "signal", rv_signal_name(facts->exit_signal, name));
	else
		rv_json_member_null(out, "signal");
	rv_buffer_add_byte(out, '}');
}

static void add_base64(struct rv_buffer *out, const char *name, const struct rv_buffer *bytes)
{
	rv_json_add_name(out, name);
	rv_buffer_add_byte(out, '"');
	rv_base64_add(out, bytes->data, bytes->len);
	rv_buffer_add_byte(out, '"');
}

/* `bounded`: there is a maxMemoryBytes. */
static void add_process(struct rv_buffer *out, const struct rv_facts *facts, bool bounded)
{
	rv_json_add_name(out, "process");
	rv_buffer_add_byte(out, '{');
	rv_json_member_int(out, "pid", facts->pid);
	rv_json_member_string(out, "admission", admission_name(facts->admission));
	add_limits(out, facts);
	add_exit(out, facts);
	rv_json_member_bool(out, "pipesClosed", facts->pipes_closed);
	add_stop(out, facts->stopped);
	rv_json_member_bool(out, "killSent", facts->kill_sent);
	if (bounded)
		rv_json_member_string(out, "memoryBy", facts->memory_by_group ? "cgroup" : "watch");
	add_base64(out, "stdoutBase64", &facts->out);
	add_base64(out, "stderrBase64", &facts->err);
	rv_json_member_int(out, "outputBytes", (int64_t)facts->output_bytes);
	rv_json_member_int(out, "durationMs", facts->duration_ms);
	rv_buffer_add_byte(out, '}');
}

static void add_bounds(struct rv_buffer *out, const struct rv_bounds *bounds)
{
	rv_json_add_name(out, "bounds");
	rv_buffer_add_byte(out, '{');
	rv_json_member_int(out, "timeoutMs", bounds->timeout_ms);
	rv_json_member_int(out, "maxOutputBytes", bounds->max_output);
	rv_json_member_int(out, "cpuSeconds", bounds->cpu_seconds);
	rv_json_member_int(out, "maxDescriptors", bounds->max_descriptors);
	rv_json_member_int(out, "maxDataBytes", bounds->max_data);
	if (bounds->max_memory > 0)
		rv_json_member_int(out, "maxMemoryBytes", bounds->max_memory);
	rv_buffer_add_byte(out, '}');
}

static void add_program(struct rv_buffer *out, const struct rv_confine_request *request)
{
	rv_json_add_name(out, "program");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "digest", request->program.digest);
	rv_json_member_string(out, "entry", request->entry);
	rv_json_add_name(out, "args");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < request->arg_count; i++) {
		if (i > 0)
			rv_buffer_add_byte(out, ',');
		rv_json_add_string(out, request->args[i], strlen(request->args[i]));
	}
	rv_buffer_add_string(out, "]},\"input\":{");
	rv_json_member_string(out, "digest", request->input.digest);
	rv_buffer_add_byte(out, '}');
}

static void add_identities(struct rv_buffer *out, const struct rv_confine_result *result,
			   const struct rv_confine_request *request)
{
	rv_json_add_name(out, "identities");
	rv_buffer_add_byte(out, '{');
	add_program(out, request);
	rv_json_add_name(out, "runtime");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "digest", result->runtime);
	rv_json_member_string(out, "path", request->runtime);
	rv_json_member_string(out, "verified", result->by_digest ? "digest" : "identity");
	rv_json_member_bool(out, "proven", result->proven);
	rv_buffer_add_byte(out, '}');
	rv_json_add_name(out, "profile");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "name", request->profile);
	rv_json_member_string(out, "digest", result->profile);
	rv_json_member_string(out, "instantiated", result->instantiated);
	rv_json_member_int(out, "landlockAbi", result->landlock_abi);
	rv_buffer_add_byte(out, '}');
	add_bounds(out, &request->bounds);
	rv_json_member_bool(out, "pinned", request->pinned);
	rv_buffer_add_byte(out, '}');
}

static void add_namespace(struct rv_buffer *out, const struct rv_disposition *ns)
{
	if (ns->state == RV_NS_NONE) {
		rv_json_member_null(out, "namespace");
		return;
	}
	rv_json_add_name(out, "namespace");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "state", ns->state == RV_NS_REMOVED ? "removed" : "quarantined");
	if (ns->state == RV_NS_REMOVED) {
		rv_json_member_bool(out, "durable", ns->durable);
	} else {
		rv_json_member_string(out, "path", ns->path);
		rv_json_member_span(out, "reason", (struct rv_span){ ns->reason.len > 0 ? ns->reason.data : "", ns->reason.len });
	}
	rv_buffer_add_byte(out, '}');
}

static void add_error(struct rv_buffer *out, const struct rv_error *error)
{
	rv_json_member_bool(out, "ok", false);
	rv_json_add_name(out, "error");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "code", rv_code_name(error->code));
	rv_json_member_string(out, "message", error->message);
	rv_buffer_add_byte(out, '}');
}

static void add_observed(struct rv_buffer *out, const struct rv_confine_result *result,
			 const struct rv_confine_request *request)
{
	bool observed = result->status == RV_CONFINE_OBSERVED;

	rv_json_member_string(out, "status", observed ? "observed" : "unresolved");
	if (observed)
		rv_json_member_bool(out, "attributable", rv_confine_is_attributable(result));
	rv_json_add_name(out, "problems");
	rv_buffer_add_byte(out, '[');
	rv_buffer_add(out, result->problems.data, result->problems.len);
	rv_buffer_add_byte(out, ']');
	add_identities(out, result, request);
	add_process(out, &result->facts, request->bounds.max_memory > 0);
	add_namespace(out, &result->ns);
}

int rv_confine_result_add_json(struct rv_buffer *out, const struct rv_confine_result *result,
			       const struct rv_confine_request *request, uint64_t line, struct rv_error *err)
{
	if (rv_buffer_check(&result->problems, err) != 0 || rv_buffer_check(&result->ns.reason, err) != 0 ||
	    rv_buffer_check(&result->facts.out, err) != 0 || rv_buffer_check(&result->facts.err, err) != 0)
		return -1; /* an answer that lost a part for want of memory is none */
	rv_buffer_add_byte(out, '{');
	if (request->id.len > 0)
		rv_json_member_raw(out, "id", (struct rv_span){ request->id.data, request->id.len });
	switch (result->status) {
	case RV_CONFINE_INVALID:
	case RV_CONFINE_FAILED:
		if (line > 0)
			rv_json_member_int(out, "line", (int64_t)line);
		add_error(out, &result->error);
		break;
	case RV_CONFINE_NOT_STARTED:
		rv_json_member_string(out, "status", "not-started");
		rv_json_member_string(out, "reason", reason_name(result->reason));
		rv_json_member_string(out, "message", result->error.message);
		add_namespace(out, &result->ns);
		break;
	case RV_CONFINE_OBSERVED:
	case RV_CONFINE_UNRESOLVED:
		add_observed(out, result, request);
		break;
	}
	rv_buffer_add_string(out, "}\n");
	return rv_buffer_check(out, err);
}

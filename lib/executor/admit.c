#include "lib/executor/admit.h"

#include <stdio.h>
#include <string.h>

#include "lib/executor/command.h"
#include "lib/executor/dispatch.h"
#include "lib/json/json.h"

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xC0) == 0x80;
}

/* A message is a C string: a NUL must not end it. */
static void add_without_nul(struct rv_buffer *out, const char *text, size_t len)
{
	while (len > 0) {
		const char *nul = memchr(text, '\0', len);
		size_t whole = nul != NULL ? (size_t)(nul - text) : len;

		rv_text_add_lossy(out, text, whole);
		if (nul == NULL)
			return;
		rv_buffer_add_string(out, "\xEF\xBF\xBD");
		text = nul + 1;
		len -= whole + 1;
	}
}

void rv_admit_add_tail(struct rv_buffer *out, struct rv_span tail, bool cut, size_t characters)
{
	struct rv_buffer text = RV_BUFFER_INIT;
	size_t at;

	/* where the ring cut a character, its rest is no invalid byte of the tool's: leave it out */
	for (int i = 0; cut && i < 3 && tail.len > 0 && is_continuation(tail.data[0]); i++) {
		tail.data++;
		tail.len--;
	}
	add_without_nul(&text, tail.data, tail.len);
	for (at = text.len; at > 0 && characters > 0; at--) {
		if (!is_continuation(text.data[at - 1]))
			characters--;
	}
	if (text.len > at)
		rv_buffer_add(out, text.data + at, text.len - at);
	rv_buffer_release(&text);
}

void rv_admit_how(const struct rv_run_result *run, char how[RV_HOW_TEXT])
{
	char name[16];

	if (run->signal_number != 0)
		(void)snprintf(how, RV_HOW_TEXT, "was killed by %s", rv_signal_name(run->signal_number, name));
	else
		(void)snprintf(how, RV_HOW_TEXT, "exited with status %d", run->exit_code);
}

static int fail_exit(const struct rv_run_result *run, struct rv_error *err)
{
	struct rv_buffer tail = RV_BUFFER_INIT;
	struct rv_span raw = { run->err_tail.data, run->err_tail.len };
	struct rv_span text;
	const char *whose = run->lost ? "the tool's worker" : "the tool";
	char how[RV_HOW_TEXT] = "was killed, and the tool with it";

	if (!run->lost)
		rv_admit_how(run, how);
	rv_admit_add_tail(&tail, raw, run->stderr_bytes > raw.len, RV_STDERR_CHARACTERS);
	text = rv_text_trim((struct rv_span){ tail.data, tail.len });
	if (text.len > 0)
		(void)rv_error_set(err, RV_E_EXIT, 0, "%s %s: %.*s", whose, how, (int)text.len, text.data);
	else
		(void)rv_error_set(err, RV_E_EXIT, 0, "%s %s", whose, how);
	rv_buffer_release(&tail);
	return -1;
}

/* What ended a run that was not the program's own doing; 0 where nothing did. */
static int check_reason(const struct rv_run_result *run, int64_t timeout_ms, uint64_t max_output, struct rv_error *err)
{
	switch (run->reason) {
	case RV_RUN_TIMEOUT:
		return rv_error_set(err, RV_E_TIMEOUT, 0, "no result within %lld ms", (long long)timeout_ms);
	case RV_RUN_ABORTED:
		return rv_error_set(err, RV_E_ABORTED, 0, "aborted by a signal to the caller");
	case RV_RUN_OUTPUT_CAP:
		return rv_error_set(err, RV_E_OUTPUT_CAP, 0, "more than %llu bytes on stdout", (unsigned long long)max_output);
	case RV_RUN_NATURAL:
		break;
	}
	return 0;
}

/* The memory itself, and no copy of it. */
static void move_text(struct rv_buffer *raw, struct rv_span text, struct rv_buffer *out)
{
	if (text.data != raw->data)
		memmove(raw->data, text.data, text.len);
	rv_buffer_release(out);
	*out = *raw;
	out->len = text.len;
	*raw = (struct rv_buffer)RV_BUFFER_INIT;
}

static int parse_output(struct rv_span text, struct rv_buffer *out, struct rv_error *err)
{
	struct rv_json_doc *doc = rv_json_doc_new(err);
	int result = 0;

	if (doc == NULL)
		return -1;
	if (rv_json_parse(doc, text.data, text.len, RV_JSON_DEFAULT, err) == NULL) {
		result = -1;
		if (err->code == RV_E_REQUEST) {
			err->code = RV_E_PROTOCOL;
			(void)rv_error_wrap(err, "stdout is not one JSON value");
		}
	} else {
		rv_json_add_compact(out, text.data, text.len);
		result = rv_buffer_check(out, err);
	}
	rv_json_doc_free(doc);
	return result;
}

static int admit_output(struct rv_buffer *raw, struct rv_buffer *out, struct rv_error *err)
{
	struct rv_span text = rv_text_trim((struct rv_span){ raw->data, raw->len });
	int result = 0;

	if (text.len == 0) {
		rv_buffer_add_string(out, "null");
		result = rv_buffer_check(out, err);
	} else {
		switch (rv_json_skim(text.data, text.len)) {
		case RV_JSON_COMPACT:
			move_text(raw, text, out);
			break;
		case RV_JSON_SPACED:
			rv_json_add_compact(out, text.data, text.len);
			result = rv_buffer_check(out, err);
			break;
		case RV_JSON_UNSURE:
			result = parse_output(text, out, err);
			break;
		}
	}
	if (result != 0)
		err->code = RV_E_PROTOCOL; /* no memory for a result is no result */
	return result;
}

int rv_admit_tool(struct rv_run_result *run, const struct rv_executor *executor, const struct rv_call *call,
		  struct rv_buffer *out, struct rv_error *err)
{
	if (run->step == RV_START_EXEC)
		return rv_command_failed(call->command, run->errnum, err);
	if (run->step != RV_START_OK)
		return rv_error_set(err, RV_E_SPAWN, run->errnum, "%s: cannot be started (%s)", call->command,
				    run->step == RV_START_FORK  ? "fork"
				    : run->step == RV_START_LIMITS ? "limits"
				    : run->step == RV_START_CWD ? "workdir"
				    : run->step == RV_START_ENCLOSE ? "sandbox"
								    : "set-up");
	if (check_reason(run, call->timeout_ms, executor->max_output, err) != 0)
		return -1;
	if (run->lost || run->signal_number != 0 || run->exit_code != 0)
		return fail_exit(run, err);
	if (run->io_error != 0)
		return rv_error_set(err, RV_E_PROTOCOL, run->io_error, "the tool's input or output could not be carried whole");
	return admit_output(&run->out, out, err);
}

static int take_credentials(const struct rv_json_node *root, struct rv_environment *env, struct rv_error *err)
{
	if (root == NULL || rv_json_type(root) != RV_JSON_OBJECT)
		return rv_error_set(err, RV_E_CONFIG, 0, "its output is not one JSON object of strings");
	for (const struct rv_json_node *member = rv_json_first(root); member != NULL; member = rv_json_next(member)) {
		if (!rv_json_is_string(member))
			return rv_error_set(err, RV_E_CONFIG, 0, "its output is not one JSON object of strings");
		if (rv_environment_set(env, rv_json_name(member), rv_json_string(member), err) != 0)
			return -1;
	}
	return 0;
}

int rv_admit_credentials(const struct rv_run_result *run, struct rv_environment *env, struct rv_error *err)
{
	struct rv_json_doc *doc;
	int result;

	if (run->step != RV_START_OK)
		return rv_error_set(err, RV_E_CONFIG, run->errnum, "cannot be started");
	if (run->reason == RV_RUN_TIMEOUT)
		return rv_error_set(err, RV_E_CONFIG, 0, "no answer in time");
	if (run->reason == RV_RUN_ABORTED)
		return rv_error_set(err, RV_E_ABORTED, 0, "aborted by a signal to the caller");
	if (run->reason != RV_RUN_NATURAL || run->lost || run->io_error != 0)
		return rv_error_set(err, RV_E_CONFIG, 0, "did not end as it should");
	if (run->signal_number != 0)
		return rv_error_set(err, RV_E_CONFIG, 0, "killed by signal %d", run->signal_number);
	if (run->exit_code != 0)
		return rv_error_set(err, RV_E_CONFIG, 0, "exited with status %d", run->exit_code);
	doc = rv_json_doc_new(err);
	if (doc == NULL)
		return -1;
	result = take_credentials(rv_json_parse(doc, run->out.data != NULL ? run->out.data : "", run->out.len,
						RV_JSON_DEFAULT, err),
				  env, err);
	rv_json_doc_free(doc);
	return result;
}

#include "lib/conform/stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/conform/ask.h"
#include "lib/conform/rows.h"
#include "lib/json/write.h"

#define SHOWN 700 /* bytes of a reply in a note */

/* ---- what is sent ---- */

static bool send(struct rv_stream *stream, const struct rv_buffer *line)
{
	struct rv_command *command = stream->command;
	struct rv_trial *trial = stream->trial;
	struct rv_error err = RV_ERROR_INIT;

	if (rv_buffer_check(line, &err) != 0)
		return rv_trial_failed(trial, &err);
	while (command->input.len > 0 && !command->ended && rv_clock_mono_ms() < trial->deadline_ms)
		(void)rv_command_turn(command, trial->deadline_ms);
	if (!rv_expect(trial, command->input.len == 0 && command->in >= 0, "the adapter reads no more of its stream"))
		return false;
	rv_command_send(command, (struct rv_span){ line->data, line->len });
	return true;
}

struct rv_stream *rv_stream_open(struct rv_trial *trial, const struct rv_stream_plan *plan)
{
	struct rv_stream *stream = rv_trial_alloc(trial, sizeof *stream);
	struct rv_buffer *line = rv_trial_buffer(trial);

	if (stream == NULL || line == NULL)
		return NULL;
	stream->trial = trial;
	stream->command = rv_trial_adapter_stream(trial);
	rv_buffer_add_string(line, "{\"config\":{");
	rv_json_member_int(line, "jobs", plan->jobs);
	rv_json_member_int(line, "timeoutMs", plan->timeout_ms);
	rv_json_member_int(line, "killGraceMs", plan->grace_ms);
	rv_json_member_int(line, "maxOutputBytes", plan->max_output);
	if (plan->ledger != NULL)
		rv_json_member_string(line, "ledger", plan->ledger);
	if (plan->manifest != NULL)
		rv_json_member_string(line, "manifest", plan->manifest);
	if (plan->approvals != NULL)
		rv_json_member_string(line, "approvals", plan->approvals);
	rv_json_member_string(line, "workdirBase", trial->base);
	rv_buffer_add_string(line, "}}\n");
	return stream->command != NULL && send(stream, line) ? stream : NULL;
}

static void add_words(struct rv_buffer *line, const char *const *words)
{
	for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
		if (line->data != NULL && line->data[line->len - 1] != '[')
			rv_buffer_add_byte(line, ',');
		rv_json_add_string(line, words[i], strlen(words[i]));
	}
}

static void add_spec(struct rv_buffer *line, const struct rv_trial *trial, const char *program, const char *script,
		     const char *const *words)
{
	rv_json_add_name(line, "spec");
	rv_buffer_add_byte(line, '{');
	rv_json_member_string(line, "command", program);
	rv_json_add_name(line, "args");
	rv_buffer_add_byte(line, '[');
	if (script != NULL)
		rv_ask_add_script(line, trial, script);
	add_words(line, words);
	rv_buffer_add_string(line, "]}");
}

static const struct rv_call *call(struct rv_stream *stream, const char *id, const char *program, const char *script,
				  const char *const *words)
{
	struct rv_trial *trial = stream->trial;
	struct rv_buffer *line = rv_trial_buffer(trial);
	struct rv_call *one = &stream->calls[stream->count];

	if (line == NULL || !rv_expect(trial, stream->count < RV_STREAM_CALLS, "the check sends too many calls"))
		return NULL;
	rv_buffer_add_byte(line, '{');
	rv_json_member_string(line, "id", id);
	rv_json_member_string(line, "tool", "probe");
	rv_buffer_add_string(line, ",\"args\":{}");
	if (program != NULL)
		add_spec(line, trial, program, script, words);
	rv_buffer_printf(line, ",\"ctx\":{\"runId\":\"run-%s\",\"spanId\":\"span-1\",\"idempotencyKey\":\"key-%s-%s\"}}\n",
			 trial->nonce, trial->nonce, id);
	*one = (struct rv_call){ .id = id, .sent_ms = rv_clock_mono_ms() };
	stream->count++;
	return send(stream, line) ? one : NULL;
}

const struct rv_call *rv_stream_script(struct rv_stream *stream, const char *id, const char *script,
				       const char *const *words)
{
	return call(stream, id, "/bin/sh", script, words);
}

const struct rv_call *rv_stream_program(struct rv_stream *stream, const char *id, const char *program,
					const char *const *words)
{
	return call(stream, id, program, NULL, words);
}

const struct rv_call *rv_stream_listed(struct rv_stream *stream, const char *id)
{
	return call(stream, id, NULL, NULL, NULL);
}

/* ---- what comes ---- */

static struct rv_call *call_of(struct rv_stream *stream, const struct rv_json_node *reply)
{
	for (size_t i = 0; i < stream->count; i++) {
		if (rv_member_is(reply, "id", stream->calls[i].id))
			return &stream->calls[i];
	}
	return NULL;
}

static bool take(struct rv_stream *stream, struct rv_span line)
{
	const struct rv_json_node *reply = rv_trial_parse(stream->trial, line.data, line.len);
	struct rv_call *one = reply != NULL ? call_of(stream, reply) : NULL;
	int shown = (int)(line.len < SHOWN ? line.len : SHOWN);

	if (!rv_expect(stream->trial, one != NULL, "a line that answers no call: %.*s", shown, line.data) ||
	    !rv_expect(stream->trial, one->reply == NULL, "%s is answered twice: %.*s", one->id, shown, line.data))
		return false;
	one->reply = reply;
	one->line = line;
	one->came_ms = rv_clock_mono_ms();
	return true;
}

/* The whole lines that have come.  What was said may move while more comes, so that a line is kept as a copy. */
static bool look(struct rv_stream *stream)
{
	const struct rv_buffer *said = &stream->command->said;
	const char *end;

	while (stream->read < said->len &&
	       (end = memchr(said->data + stream->read, '\n', said->len - stream->read)) != NULL) {
		size_t len = (size_t)(end - said->data) - stream->read;
		struct rv_buffer *copy = rv_trial_buffer(stream->trial);

		if (copy == NULL)
			return false;
		rv_buffer_add(copy, said->data + stream->read, len);
		stream->read += len + 1;
		if (!take(stream, (struct rv_span){ rv_buffer_string(copy), len }))
			return false;
	}
	return true;
}

bool rv_stream_await(struct rv_stream *stream, const struct rv_call *one, int64_t until_ms, bool noted)
{
	struct rv_trial *trial = stream->trial;
	char how[40];

	if (until_ms > trial->deadline_ms)
		until_ms = trial->deadline_ms;
	for (;;) {
		bool ended = stream->command->ended;

		if (!look(stream))
			return false;
		if (one->reply != NULL)
			return true;
		if (ended)
			return rv_unexpected_call(stream, one, "no reply, and the adapter ended: %s",
						  rv_command_how(stream->command, how));
		if (rv_clock_mono_ms() >= until_ms)
			return noted && rv_unexpected_call(stream, one, "no reply within %lld ms",
							   (long long)(until_ms - one->sent_ms));
		(void)rv_command_turn(stream->command, until_ms);
	}
}

bool rv_stream_end(struct rv_stream *stream)
{
	struct rv_trial *trial = stream->trial;

	rv_command_close(stream->command);
	(void)rv_trial_finish(trial, stream->command);
	if (!look(stream) || !rv_expect(trial, stream->command->ended, "the adapter does not end with its input") ||
	    !rv_expect(trial, stream->read == stream->command->said.len, "the last line has no end"))
		return false;
	for (size_t i = 0; i < stream->count; i++) {
		if (!rv_expect_call(stream, &stream->calls[i], stream->calls[i].reply != NULL, "no reply"))
			return false;
	}
	return true;
}

/* ---- expectations ---- */

bool rv_unexpected_call(struct rv_stream *stream, const struct rv_call *one, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	(void)rv_unexpected(stream->trial, "%s: %s", one->id, text);
	if (one->reply != NULL) {
		rv_note_printf(&stream->trial->record->saw, "; the reply: ");
		rv_note_add(&stream->trial->record->saw, one->line.data, one->line.len < SHOWN ? one->line.len : SHOWN);
	}
	return false;
}

bool rv_expect_code(struct rv_stream *stream, const struct rv_call *one, const char *code)
{
	const struct rv_json_node *ok = rv_json_get(one->reply, "ok");
	const struct rv_json_node *error = rv_json_get(one->reply, "error");
	enum rv_json_type due = code == NULL ? RV_JSON_TRUE : RV_JSON_FALSE;

	return rv_expect_call(stream, one, ok != NULL && rv_json_type(ok) == due &&
			      (code == NULL || rv_member_is(error, "code", code)),
			      "not '%s', which is due", code != NULL ? code : "ok");
}

bool rv_expect_value(struct rv_stream *stream, const struct rv_call *one, const char *json)
{
	struct rv_buffer got = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	const struct rv_json_node *result = rv_json_get(one->reply, "result");
	bool same;

	if (!rv_expect_code(stream, one, NULL) || !rv_expect_call(stream, one, result != NULL, "no result"))
		return false;
	same = rv_json_canonical(result, &got, &err) == 0 && got.len == strlen(json) &&
	       memcmp(got.data, json, got.len) == 0;
	rv_buffer_release(&got);
	return rv_expect_call(stream, one, same, "the result is not %.100s", json);
}

#include "lib/conform/ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/digest/digest.h"
#include "lib/json/write.h"

#define PRELUDE "PATH=/usr/local/bin:/usr/bin:/bin; " \
	"say() { printf '\"'; base64 | tr -d '\\n'; printf '\"'; }; " \
	"inside() { case $(pwd -P)/ in \"$(cd \"$1\" && pwd -P)\"/base/?*) ;; *) echo '\"not in a workdir\"'; exit 0 ;; esac; }; " \
	"contained() { ns=$(readlink /proc/self/ns/pid); " \
	"if [ \"$PPID\" -eq 1 ] && [ $$ -gt 1 ] && [ $$ -lt 9000 ] && [ -n \"$1\" ] && [ -n \"$ns\" ] && [ \"$ns\" != \"$1\" ]; " \
	"then return 0; fi; echo '\"not contained\"'; exit 0; }; "

#define SHOWN 1500 /* bytes of a request or a reply in a note */

/* ---- the question ---- */

static void add_string(struct rv_buffer *out, const char *text)
{
	if (out->len > 0 && out->data[out->len - 1] != '[')
		rv_buffer_add_byte(out, ',');
	rv_json_add_string(out, text, strlen(text));
}

static void add_strings(struct rv_buffer *out, const char *name, const char *const *strings)
{
	rv_json_add_name(out, name);
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; strings != NULL && strings[i] != NULL; i++)
		add_string(out, strings[i]);
	rv_buffer_add_byte(out, ']');
}

static void add_shell(struct rv_buffer *out, const struct rv_trial *trial, const char *script, bool noted)
{
	struct rv_buffer text = RV_BUFFER_INIT;

	rv_buffer_add_string(&text, noted ? "...; " : PRELUDE);
	rv_buffer_add_string(&text, script);
	add_string(out, "-c");
	add_string(out, rv_buffer_string(&text) != NULL ? text.data : "exit 99");
	add_string(out, "sh");
	add_string(out, trial->dir);
	add_string(out, trial->nonce);
	add_string(out, trial->pidns);
	rv_buffer_release(&text);
}

static void add_isolation(struct rv_buffer *out, const struct rv_ask *ask)
{
	if (ask->sandbox != NULL) {
		rv_json_member_string(out, "sandbox", ask->sandbox);
		add_strings(out, "readable", ask->readable);
	}
	if (ask->container == NULL)
		return;
	rv_json_add_name(out, "container");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "image", ask->container->image);
	if (ask->container->engine != NULL)
		rv_json_member_string(out, "engine", ask->container->engine);
	if (ask->container->memory != NULL)
		rv_json_member_string(out, "memory", ask->container->memory);
	add_strings(out, "engineArgs", ask->container->engine_args);
	rv_buffer_add_byte(out, '}');
}

static void add_command(struct rv_buffer *out, const struct rv_trial *trial, const struct rv_ask *ask, bool noted)
{
	rv_json_member_string(out, "command", ask->script != NULL ? "/bin/sh" : ask->command);
	if (ask->script != NULL) {
		rv_json_add_name(out, "args");
		rv_buffer_add_byte(out, '[');
		add_shell(out, trial, ask->script, noted);
		rv_buffer_add_byte(out, ']');
	} else {
		add_strings(out, "args", ask->words);
	}
}

/* What stands in place of a command. */
static void add_permits(struct rv_buffer *out, const struct rv_ask *ask)
{
	rv_json_member_string(out, "manifest", ask->manifest);
	if (ask->approvals != NULL)
		rv_json_member_string(out, "approvals", ask->approvals);
}

static void add_config(struct rv_buffer *out, const struct rv_trial *trial, const struct rv_ask *ask, bool noted)
{
	if (ask->manifest != NULL)
		add_permits(out, ask);
	else
		add_command(out, trial, ask, noted);
	add_strings(out, "allowEnv", ask->allow_env);
	if (ask->mint != NULL) {
		rv_json_add_name(out, "credentials");
		rv_buffer_add_byte(out, '[');
		add_string(out, "/bin/sh");
		add_shell(out, trial, ask->mint, noted);
		rv_buffer_add_byte(out, ']');
	}
	rv_json_member_int(out, "timeoutMs", ask->timeout_ms > 0 ? ask->timeout_ms : 10000);
	rv_json_member_int(out, "killGraceMs", ask->grace_ms > 0 ? ask->grace_ms : 1000);
	rv_json_member_int(out, "maxOutputBytes", ask->max_output > 0 ? ask->max_output : 1 << 20);
	if (ask->ledger != NULL)
		rv_json_member_string(out, "ledger", ask->ledger);
	rv_json_member_string(out, "workdirBase", trial->base);
	add_isolation(out, ask);
}

static void add_request(struct rv_buffer *out, const struct rv_trial *trial, const struct rv_ask *ask)
{
	char text[32];

	rv_json_member_raw(out, "tool", ask->tool_json.len > 0 ? ask->tool_json : RV_SPAN("\"probe\""));
	if (ask->container != NULL)
		rv_json_member_string(out, "executor", "container");
	rv_json_member_raw(out, "args", ask->args.len > 0 ? ask->args : RV_SPAN("{}"));
	if (ask->members != NULL)
		rv_buffer_printf(out, ",%s", ask->members);
	rv_json_add_name(out, "ctx");
	rv_buffer_add_byte(out, '{');
	(void)snprintf(text, sizeof text, "run-%s", trial->nonce);
	rv_json_member_string(out, "runId", ask->run_id != NULL ? ask->run_id : text);
	rv_json_member_string(out, "spanId", "span-1");
	if (ask->coordinates != NULL)
		rv_buffer_printf(out, ",%s", ask->coordinates);
	(void)snprintf(text, sizeof text, "key-%s", trial->nonce);
	if (ask->coordinates == NULL || ask->both)
		rv_json_member_string(out, "idempotencyKey", ask->key != NULL ? ask->key : text);
	rv_buffer_add_byte(out, '}');
}

void rv_ask_add_script(struct rv_buffer *out, const struct rv_trial *trial, const char *script)
{
	add_shell(out, trial, script, false);
}

/* {"config":{...},"request":{...}} and a newline; `noted`: as it is shown to people, without the prelude. */
static const struct rv_buffer *question(struct rv_trial *trial, const struct rv_ask *ask, bool noted)
{
	struct rv_buffer *line = rv_trial_buffer(trial);
	struct rv_error err = RV_ERROR_INIT;

	if (line == NULL)
		return NULL;
	rv_buffer_add_string(line, "{\"config\":{");
	add_config(line, trial, ask, noted);
	rv_buffer_add_string(line, "},\"request\":{");
	add_request(line, trial, ask);
	rv_buffer_add_string(line, "}}\n");
	if (rv_buffer_check(line, &err) == 0)
		return line;
	(void)rv_trial_failed(trial, &err);
	return NULL;
}

static const char *const *with_secret(struct rv_trial *trial, const char *const *set)
{
	size_t n = 0;
	const char **all;

	while (set != NULL && set[n] != NULL)
		n++;
	all = rv_trial_alloc(trial, (n + 2) * sizeof *all);
	if (all == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++)
		all[i] = set[i];
	all[n] = trial->secret;
	return all;
}

struct rv_command *rv_ask_begin(struct rv_trial *trial, const struct rv_ask *ask)
{
	const struct rv_buffer *line = question(trial, ask, false);
	const struct rv_buffer *shown = question(trial, ask, true);
	struct rv_command_plan plan = {
		.argv = trial->adapter, .set = with_secret(trial, ask->set), .flags = ask->flags,
	};

	if (line == NULL || shown == NULL || plan.set == NULL)
		return NULL;
	rv_did(trial, "asked the adapter: %.*s%s", (int)(shown->len < SHOWN ? shown->len - 1 : SHOWN), shown->data,
	       shown->len < SHOWN ? "" : "...");
	plan.input = (struct rv_span){ line->data, line->len };
	return rv_trial_start(trial, &plan);
}

/* ---- the answer ---- */

static bool one_line(struct rv_span text, struct rv_span *line)
{
	const char *end = text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;

	*line = text;
	if (end == NULL)
		return false;
	line->len = (size_t)(end - text.data);
	return line->len + 1 == text.len;
}

struct rv_answer *rv_ask_end(struct rv_trial *trial, struct rv_command *command)
{
	struct rv_answer *answer;

	if (command == NULL)
		return NULL;
	if (rv_command_wait(command, trial->deadline_ms) == 0) {
		rv_command_kill_group(command);
		(void)rv_command_wait(command, rv_clock_mono_ms() + 500);
		command->ended = false;
	}
	answer = rv_trial_alloc(trial, sizeof *answer);
	if (answer == NULL)
		return NULL;
	answer->command = command;
	answer->took_ms = command->took_ms;
	if (one_line((struct rv_span){ command->said.data, command->said.len }, &answer->line))
		answer->reply = rv_trial_parse(trial, answer->line.data, answer->line.len);
	return answer;
}

struct rv_answer *rv_ask(struct rv_trial *trial, const struct rv_ask *ask)
{
	return rv_ask_end(trial, rv_ask_begin(trial, ask));
}

static void note_cut(struct rv_note *note, const char *name, const struct rv_buffer *text)
{
	size_t len = text->len;

	if (len == 0)
		return;
	while (len > 0 && (text->data[len - 1] == '\n'))
		len--;
	rv_note_printf(note, "; %s: ", name);
	rv_note_add(note, text->data, len < SHOWN ? len : SHOWN);
	if (len >= SHOWN)
		rv_note_printf(note, "...");
}

bool rv_unexpected_reply(struct rv_trial *trial, const struct rv_answer *answer, const char *format, ...)
{
	struct rv_note *saw = &trial->record->saw;
	char text[1024];
	char how[40];
	va_list args;

	if (trial->record->verdict != RV_UNDECIDED)
		return false;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	(void)rv_unexpected(trial, "%s; the adapter: %s", text,
			answer != NULL ? rv_command_how(answer->command, how) : "not run");
	if (answer != NULL) {
		note_cut(saw, "stdout", &answer->command->said);
		note_cut(saw, "stderr", &answer->command->complained);
	}
	return false;
}

static bool is_true(const struct rv_json_node *node)
{
	return node != NULL && rv_json_type(node) == RV_JSON_TRUE;
}

static bool is_false(const struct rv_json_node *node)
{
	return node != NULL && rv_json_type(node) == RV_JSON_FALSE;
}

bool rv_expect_ok(struct rv_trial *trial, const struct rv_answer *answer)
{
	if (!rv_expect_reply(trial, answer, answer != NULL && answer->reply != NULL, "no reply line"))
		return false;
	return rv_expect_reply(trial, answer, is_true(rv_json_get(answer->reply, "ok")), "the reply is not ok");
}

bool rv_expect_error(struct rv_trial *trial, const struct rv_answer *answer, const char *code)
{
	const struct rv_json_node *got;
	struct rv_span text = RV_SPAN("(none)");

	if (!rv_expect_reply(trial, answer, answer != NULL && answer->reply != NULL, "no reply line") ||
	    !rv_expect_reply(trial, answer, is_false(rv_json_get(answer->reply, "ok")), "no error where '%s' was due", code))
		return false;
	got = rv_json_get(rv_json_get(answer->reply, "error"), "code");
	if (rv_json_is_string(got))
		text = rv_json_string(got);
	return rv_expect_reply(trial, answer, rv_span_equal(text, rv_span_of(code)), "error '%.*s' where '%s' was due",
			       (int)text.len, text.data, code);
}

const struct rv_json_node *rv_answer_result(const struct rv_answer *answer)
{
	return answer != NULL ? rv_json_get(answer->reply, "result") : NULL;
}

bool rv_expect_result(struct rv_trial *trial, const struct rv_answer *answer, const char *json)
{
	struct rv_buffer got = RV_BUFFER_INIT;
	struct rv_buffer want = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	const struct rv_json_node *result;
	const struct rv_json_node *wanted = rv_trial_parse(trial, json, strlen(json));
	bool same;

	if (!rv_expect_ok(trial, answer) || wanted == NULL)
		return false;
	result = rv_answer_result(answer);
	if (!rv_expect_reply(trial, answer, result != NULL, "the reply has no result"))
		return false;
	same = rv_json_canonical(result, &got, &err) == 0 && rv_json_canonical(wanted, &want, &err) == 0 &&
	       got.len == want.len && memcmp(got.data, want.data, got.len) == 0;
	rv_buffer_release(&got);
	rv_buffer_release(&want);
	return rv_expect_reply(trial, answer, same, "the result is not %.400s", json);
}

bool rv_expect_nonce(struct rv_trial *trial, const struct rv_answer *answer)
{
	const char *json = rv_trial_printf(trial, "\"%s\"", trial->nonce);

	return json != NULL && rv_expect_result(trial, answer, json);
}

bool rv_expect_within(struct rv_trial *trial, const struct rv_answer *answer, int64_t ms)
{
	return rv_expect_reply(trial, answer, answer != NULL && answer->command->ended && answer->took_ms <= ms,
			       "answered after %lld ms, and not within %lld",
			       answer != NULL ? (long long)answer->took_ms : 0LL, (long long)ms);
}

struct rv_span rv_answer_message(const struct rv_answer *answer)
{
	const struct rv_json_node *message = rv_json_get(rv_json_get(answer->reply, "error"), "message");

	return rv_json_is_string(message) ? rv_json_string(message) : RV_SPAN("");
}

const struct rv_buffer *rv_answer_said(struct rv_trial *trial, const struct rv_answer *answer)
{
	const struct rv_json_node *result = rv_answer_result(answer);
	struct rv_buffer *text = rv_trial_buffer(trial);
	struct rv_error err = RV_ERROR_INIT;
	struct rv_span raw;

	if (text == NULL || !rv_expect_ok(trial, answer) ||
	    !rv_expect_reply(trial, answer, rv_json_is_string(result), "the result is no string"))
		return NULL;
	raw = rv_json_string(result);
	if (!rv_expect_reply(trial, answer, rv_base64_decode(text, raw.data, raw.len, &err) == 0 &&
			     rv_buffer_string(text) != NULL, "the result is not what the tool said"))
		return NULL;
	return text;
}

bool rv_has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = text; at != NULL && *at != '\0'; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, line, len) == 0 && (at[len] == '\n' || at[len] == '\0'))
			return true;
	}
	return false;
}

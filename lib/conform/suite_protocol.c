/* executor: what crosses the pipe in either direction. */
#include <stdio.h>
#include <string.h>

#include "lib/conform/ask.h"
#include "lib/conform/suites.h"

static bool run_canonical(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "say",
		.args = RV_SPAN("{ \"b\" : 1.0, \"a\" : [ 1e30, -0, 0.000001, 1e-7 ], \"\\ufb33\" : 1, \"\\ud83d\\ude00\" : 2,"
				" \"e\" : \"\\u00e9\\u2028\\/\\u001F\", \"a\" : [ 1E21 ] }"),
		.key = "k",
	};
	static const char want[] = "{\"tool\":\"probe\",\"args\":{\"a\":[1e+21],\"b\":1,"
				   "\"e\":\"\xc3\xa9\xe2\x80\xa8/\\u001f\",\"\xf0\x9f\x98\x80\":2,\"\xef\xac\xb3\":1},"
				   "\"idempotencyKey\":\"k\"}\n";
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *said = rv_answer_said(trial, answer);

	return said != NULL && rv_expect_reply(trial, answer, strcmp(said->data, want) == 0, "the tool read: %s", said->data);
}

static bool run_null(struct rv_trial *trial)
{
	static const char *const scripts[] = { ":", "printf ' \\n\\t '", "exec >&-", NULL };

	for (size_t i = 0; scripts[i] != NULL; i++) {
		const struct rv_ask ask = { .script = scripts[i] };

		if (!rv_expect_result(trial, rv_ask(trial, &ask), "null"))
			return false;
	}
	return true;
}

static bool run_trim(struct rv_trial *trial)
{
	/* U+FEFF, NBSP, U+2028, U+3000, VT, FF: white space to String.prototype.trim, not to JSON */
	const struct rv_ask ask = { .script = "printf '\\357\\273\\277\\302\\240\\v {\"a\":1}\\n\\342\\200\\250\\343\\200\\200\\f\\n'" };
	const struct rv_ask inside = { .script = "printf '[1,\\302\\2402]'" };

	return rv_expect_result(trial, rv_ask(trial, &ask), "{\"a\":1}") &&
	       rv_expect_error(trial, rv_ask(trial, &inside), "protocol");
}

static bool run_utf8(struct rv_trial *trial)
{
	static const char *const scripts[] = {
		"printf '\"\\377\"'", "printf '\"\\300\\257\"'", "printf '\"\\355\\240\\200\"'", "printf '\"\\342\\202\"'", NULL,
	};

	for (size_t i = 0; scripts[i] != NULL; i++) {
		const struct rv_ask ask = { .script = scripts[i] };

		if (!rv_expect_error(trial, rv_ask(trial, &ask), "protocol"))
			return false;
	}
	return true;
}

static bool run_values(struct rv_trial *trial)
{
	static const char *const pairs[][2] = {
		{ "echo 0", "0" }, { "echo false", "false" }, { "echo null", "null" }, { "echo '\"\"'", "\"\"" },
		{ "echo '[ ]'", "[]" }, { "printf '{\"a\":\\n[1,\\n2]}'", "{\"a\":[1,2]}" },
		{ "printf '\"\\360\\237\\230\\200 \\\\u0000 \\\\ud800\"'", "\"\xf0\x9f\x98\x80 \\u0000 \\ud800\"" },
	};

	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		const struct rv_ask ask = { .script = pairs[i][0] };

		if (!rv_expect_result(trial, rv_ask(trial, &ask), pairs[i][1]))
			return false;
	}
	return true;
}

/* `len` bytes: {"fill":"xxx..."} */
static struct rv_span filled(struct rv_trial *trial, size_t len)
{
	struct rv_buffer *text = rv_trial_buffer(trial);

	if (text == NULL)
		return RV_SPAN("{}");
	rv_buffer_add_string(text, "{\"fill\":\"");
	while (text->len < len - 2)
		rv_buffer_add_byte(text, (char)('a' + text->len % 26));
	rv_buffer_add_string(text, "\"}");
	return text->failed ? RV_SPAN("{}") : (struct rv_span){ text->data, text->len };
}

/* The tool, wc -c, has read more than its arguments alone. */
static bool has_read(struct rv_trial *trial, const struct rv_answer *answer, size_t args)
{
	const struct rv_json_node *result = rv_answer_result(answer);
	int64_t count = 0;

	return rv_expect_ok(trial, answer) &&
	       rv_expect_reply(trial, answer, result != NULL && rv_json_integer(result, &count) && count > (int64_t)args,
			       "the tool read %lld bytes, and the arguments alone are %zu", (long long)count, args);
}

static bool run_large(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "exec wc -c", .args = filled(trial, 1 << 20) };
	const struct rv_answer *answer = rv_ask(trial, &ask);

	rv_did(trial, "asked with arguments of 1 MiB for a tool that counts what it reads");
	return has_read(trial, answer, ask.args.len);
}

static bool run_deep(struct rv_trial *trial)
{
	struct rv_buffer *text = rv_trial_buffer(trial);
	struct rv_ask ask = { .script = "exec wc -c", .key = "k" };
	const int depth = 20000;

	for (int i = 0; text != NULL && i < depth; i++)
		rv_buffer_add_byte(text, '[');
	for (int i = 0; text != NULL && i < depth; i++)
		rv_buffer_add_byte(text, ']');
	if (text == NULL || !rv_expect(trial, !text->failed, "out of memory in the battery itself"))
		return false;
	ask.args = (struct rv_span){ text->data, text->len };
	return has_read(trial, rv_ask(trial, &ask), ask.args.len);
}

static bool run_both_ways(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "head -c 786432 /dev/zero | tr '\\0' ' '; cat >/dev/null; head -c 786432 /dev/zero | tr '\\0' '\\n' >&2; " RV_ASK_NONCE,
		.args = filled(trial, 1 << 20),
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	rv_did(trial, "asked with 1 MiB of arguments for a tool that writes 768 KiB to stdout before it reads, and as much to stderr after");
	return rv_expect_nonce(trial, answer);
}

static bool run_unread(struct rv_trial *trial)
{
	static const char *const scripts[] = {
		RV_ASK_NONCE, "exec <&-; " RV_ASK_NONCE, "head -c 1 >/dev/null; exec <&-; " RV_ASK_NONCE, NULL,
	};

	for (size_t i = 0; scripts[i] != NULL; i++) {
		const struct rv_ask ask = { .script = scripts[i], .args = filled(trial, 1 << 20) };
		const struct rv_answer *answer = rv_ask(trial, &ask);

		rv_did(trial, "asked with 1 MiB of arguments for a tool that does not read them: %s", scripts[i]);
		if (!rv_expect_nonce(trial, answer))
			return false;
	}
	return true;
}

const struct rv_check rv_checks_protocol[] = {
	{ "protocol.canonical", "the tool reads canonical JSON",
	  "The arguments reach the tool in canonical form (RFC 8785), on one line: the bytes that were hashed are the bytes that are read.",
	  "A hash of something else than the tool saw binds no approval to an effect.",
	  "rv-exec(1), The tool", 0, run_canonical },
	{ "protocol.null", "empty output is null",
	  "A tool that prints nothing, or white space, has the result null.",
	  "A tool with nothing to say has not failed.",
	  "rv-exec(1), The tool", 0, run_null },
	{ "protocol.trim", "output is trimmed as JavaScript trims",
	  "White space around the value, a byte order mark included, is no part of it; within it only JSON's own is allowed.",
	  "Executors that trim differently accept different tools.",
	  "rv-exec(1), The tool", 0, run_trim },
	{ "protocol.utf8", "invalid UTF-8 is protocol",
	  "Output that is not strict UTF-8 is refused, and never repaired.",
	  "A replacement character is a value that the tool never wrote.",
	  "rv-exec(1), The tool", 0, run_utf8 },
	{ "protocol.values", "any JSON value is a result",
	  "Scalars, null, empty values, values over several lines and lone surrogates arrive as they are.",
	  "A result that reads as false is not the same as none.",
	  "rv-exec(1), The tool", 0, run_values },
	{ "protocol.large", "a megabyte of arguments arrives whole",
	  "There is no limit on arguments but memory.",
	  "A file's content is an argument, too.",
	  "rv-exec(1), The tool", 0, run_large },
	{ "protocol.deep", "deeply nested arguments are no crash",
	  "Arguments nested 20000 deep are dispatched.",
	  "Recursion on input's depth is a crash that the input chooses.",
	  "rv(7)", 0, run_deep },
	{ "pipe.both-ways", "a tool that writes before it reads is no deadlock",
	  "Input, output and errors are carried at once.",
	  "Whoever writes all the input first waits for ever for a tool that waits for them.",
	  "rv-exec(1), The tool", 0, run_both_ways },
	{ "pipe.unread", "a tool need not read its input",
	  "A closed or unread stdin is no failure.",
	  "Many tools have no use for arguments, and a broken pipe would fail them or kill the executor.",
	  "rv-exec(1), The tool", 0, run_unread },
	{ .id = NULL },
};

#include "lib/ledger/line.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/json/json.h"
#include "lib/ledger/names.h"

struct rv_reader {
	struct rv_json_doc *doc;
};

enum shape { SHAPE_STRING, SHAPE_NUMBER, SHAPE_STRING_OR_NULL, SHAPE_NUMBER_OR_NULL, SHAPE_MAYBE_STRING };

struct rule {
	const char *name;
	enum shape shape;
	const char *reason;
};

static const struct rule attempt_rules[] = {
	{ RV_NAME_KEY, SHAPE_STRING, "idempotencyKey is no string" },
	{ RV_NAME_RUN_ID, SHAPE_STRING, "runId is no string" },
	{ RV_NAME_SPAN_ID, SHAPE_STRING, "spanId is no string" },
	{ RV_NAME_TOOL, SHAPE_STRING, "tool is no string" },
	{ RV_NAME_ARGS_HASH, SHAPE_STRING, "argsHash is no string" },
	{ RV_NAME_EXECUTOR, SHAPE_STRING, "executor is no string" },
	{ RV_NAME_WORKDIR, SHAPE_STRING, "workdir is no string" },
	{ RV_NAME_STARTED_AT, SHAPE_NUMBER, "startedAt is no number" },
	{ RV_NAME_ATTEMPT_ID, SHAPE_MAYBE_STRING, "attemptId is there and no string" },
};

static const struct rule outcome_rules[] = {
	{ RV_NAME_DURATION_MS, SHAPE_NUMBER, "durationMs is no number" },
	{ RV_NAME_OUTCOME, SHAPE_STRING, "outcome is no string" },
	{ RV_NAME_EXIT_CODE, SHAPE_NUMBER_OR_NULL, "exitCode is neither number nor null" },
	{ RV_NAME_SIGNAL, SHAPE_STRING_OR_NULL, "signal is neither string nor null" },
};

static const struct rule torn_rules[] = {
	{ RV_NAME_BYTES, SHAPE_STRING, "bytes is no string" },
	{ RV_NAME_BYTES_BASE64, SHAPE_MAYBE_STRING, "bytesBase64 is there and no string" },
	{ RV_NAME_SHA256, SHAPE_MAYBE_STRING, "sha256 is there and no string" },
	{ RV_NAME_RECOVERED_AT, SHAPE_NUMBER, "recoveredAt is no number" },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct rv_reader *rv_reader_new(struct rv_error *err)
{
	struct rv_reader *reader = calloc(1, sizeof *reader);

	if (reader == NULL) {
		(void)rv_error_nomem(err);
		return NULL;
	}
	reader->doc = rv_json_doc_new(err);
	if (reader->doc == NULL) {
		free(reader);
		return NULL;
	}
	return reader;
}

void rv_reader_free(struct rv_reader *reader)
{
	if (reader == NULL)
		return;
	rv_json_doc_free(reader->doc);
	free(reader);
}

static bool has_shape(const struct rv_json_node *value, enum shape shape)
{
	enum rv_json_type type;

	if (value == NULL)
		return shape == SHAPE_MAYBE_STRING;
	type = rv_json_type(value);
	switch (shape) {
	case SHAPE_STRING:
	case SHAPE_MAYBE_STRING:
		return type == RV_JSON_STRING;
	case SHAPE_NUMBER:
		return type == RV_JSON_NUMBER;
	case SHAPE_STRING_OR_NULL:
		return type == RV_JSON_STRING || type == RV_JSON_NULL;
	case SHAPE_NUMBER_OR_NULL:
		return type == RV_JSON_NUMBER || type == RV_JSON_NULL;
	}
	return false;
}

/* The first rule that the row breaks, as a reason; NULL where it keeps all. */
static const char *broken_rule(const struct rv_json_node *node, const struct rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!has_shape(rv_json_get(node, rules[i].name), rules[i].shape))
			return rules[i].reason;
	}
	return NULL;
}

static struct rv_span string_member(const struct rv_json_node *node, const char *name)
{
	const struct rv_json_node *value = rv_json_get(node, name);
	struct rv_span text;

	if (value == NULL)
		return (struct rv_span){ NULL, 0 };
	text = rv_json_string(value);
	return text.data == NULL ? RV_SPAN("") : text; /* NULL says absent, and an empty string is there */
}

static void take_attempt(const struct rv_json_node *node, struct rv_row *row)
{
	row->key = string_member(node, RV_NAME_KEY);
	row->run_id = string_member(node, RV_NAME_RUN_ID);
	row->tool = string_member(node, RV_NAME_TOOL);
	row->args_hash = string_member(node, RV_NAME_ARGS_HASH);
	row->attempt_id = string_member(node, RV_NAME_ATTEMPT_ID);
	row->started_at = rv_json_number(rv_json_get(node, RV_NAME_STARTED_AT));
}

bool rv_outcome_class_of(struct rv_span name, enum rv_outcome_class *outcome)
{
	static const struct rv_span names[RV_OUTCOME_CLASSES] = {
		RV_SPAN_INIT("ok"), RV_SPAN_INIT("error"), RV_SPAN_INIT("timeout")
	};

	for (int i = 0; i < RV_OUTCOME_CLASSES; i++) {
		if (rv_span_equal(name, names[i])) {
			*outcome = (enum rv_outcome_class)i;
			return true;
		}
	}
	return false;
}

static const char *take_outcome(const struct rv_json_node *node, struct rv_row *row)
{
	const char *reason = broken_rule(node, outcome_rules, COUNT(outcome_rules));

	if (reason != NULL)
		return reason;
	return rv_outcome_class_of(string_member(node, RV_NAME_OUTCOME), &row->outcome)
		       ? NULL
		       : "outcome is none of ok, error, timeout";
}

static const char *take_torn(const struct rv_json_node *node, struct rv_row *row)
{
	row->bytes_base64 = string_member(node, RV_NAME_BYTES_BASE64);
	return broken_rule(node, torn_rules, COUNT(torn_rules));
}

static const char *take_row(const struct rv_json_node *node, struct rv_row *row)
{
	const struct rv_json_node *phase = rv_json_get(node, RV_NAME_PHASE);
	const char *reason;
	struct rv_span name;

	if (rv_json_type(node) != RV_JSON_OBJECT)
		return "not an object";
	if (!rv_json_is_string(phase))
		return "phase is no string";
	row->node = node;
	name = rv_json_string(phase);
	if (rv_span_equal(name, RV_SPAN("torn"))) {
		row->phase = RV_PHASE_TORN;
		return take_torn(node, row);
	}
	if (rv_span_equal(name, RV_SPAN("intent")))
		row->phase = RV_PHASE_INTENT;
	else if (rv_span_equal(name, RV_SPAN("outcome")))
		row->phase = RV_PHASE_OUTCOME;
	else
		return "phase is unknown";
	reason = broken_rule(node, attempt_rules, COUNT(attempt_rules));
	if (reason != NULL)
		return reason;
	take_attempt(node, row);
	return row->phase == RV_PHASE_OUTCOME ? take_outcome(node, row) : NULL;
}

/* Almost every line begins with its brace: only another is asked whether it is blank. */
static bool is_blank(struct rv_span line)
{
	return line.len == 0 || (line.data[0] != '{' && rv_text_trim(line).len == 0);
}

int rv_line_read(struct rv_reader *reader, struct rv_span line, enum rv_line *kind, struct rv_row *row,
		 const char **reason, struct rv_error *err)
{
	const struct rv_json_node *node;

	*reason = NULL;
	*kind = RV_LINE_UNREADABLE;
	if (!rv_text_is_utf8(line.data, line.len)) {
		*reason = "not strict UTF-8";
		return 0;
	}
	if (is_blank(line)) {
		*kind = RV_LINE_BLANK;
		return 0;
	}
	node = rv_json_parse(reader->doc, line.data, line.len, RV_JSON_BOM, err);
	if (node == NULL) {
		if (err->code != RV_E_REQUEST)
			return -1;
		rv_error_clear(err);
		*reason = "not JSON";
		return 0;
	}
	memset(row, 0, sizeof *row);
	*reason = take_row(node, row);
	*kind = *reason == NULL ? RV_LINE_ROW : RV_LINE_MISSHAPEN;
	return 0;
}

struct rv_row_writer rv_row_writer_of(const struct rv_row *row)
{
	const struct rv_json_node *node = rv_json_get(row->node, RV_NAME_WRITER);
	const struct rv_json_node *boot = rv_json_get(node, RV_NAME_BOOT_ID);
	const struct rv_json_node *lock = rv_json_get(node, RV_NAME_LOCK);
	const struct rv_json_node *until = rv_json_get(node, RV_NAME_UNTIL);
	struct rv_row_writer writer = { .present = node != NULL, .valid = false };

	if (!rv_json_is_string(boot) || lock == NULL || until == NULL)
		return writer;
	if (rv_json_type(lock) != RV_JSON_NUMBER || rv_json_type(until) != RV_JSON_NUMBER)
		return writer;
	writer.boot_id = rv_json_string(boot);
	writer.valid = rv_json_integer(lock, &writer.lock) && rv_json_integer(until, &writer.until) && writer.lock >= 0;
	return writer;
}

/* The end of the member at `at` in what JSON.stringify wrote: the comma or brace behind it. */
static size_t member_end(const char *text, size_t at)
{
	bool quoted = false;
	size_t depth = 0;

	for (;; at++) {
		char c = text[at];

		if (quoted) {
			if (c == '\\')
				at++;
			else if (c == '"')
				quoted = false;
		} else if (c == '"') {
			quoted = true;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (depth == 0 && (c == ',' || c == '}')) {
			return at;
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
}

static bool is_named(const char *member, size_t len, const char *const *names)
{
	for (; *names != NULL; names++) {
		size_t width = strlen(*names);

		if (len > width && memcmp(member, *names, width) == 0)
			return true;
	}
	return false;
}

/* JSON.stringify writes a name in one way only, so that its text can be compared. */
int rv_row_add_members(const struct rv_row *row, bool orphan, struct rv_buffer *out, struct rv_error *err)
{
	static const char *const plain[] = { "\"phase\":", NULL };
	static const char *const replaced[] = { "\"phase\":", "\"at\":", "\"state\":", NULL };
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	bool first = true;

	if (rv_json_stringify(row->node, &text, err) != 0)
		return -1;
	for (size_t at = 1, end; at < text.len && text.data[at] != '}'; at = end + (text.data[end] == ',')) {
		end = member_end(text.data, at);
		if (is_named(text.data + at, end - at, orphan ? replaced : plain))
			continue;
		if (!first)
			rv_buffer_add_byte(out, ',');
		rv_buffer_add(out, text.data + at, end - at);
		first = false;
	}
	return rv_buffer_check(out, err);
}

#include "lib/conform/expect_repair.h"

#include <string.h>

#include "lib/conform/vectors.h"
#include "lib/digest/digest.h"
#include "lib/ledger/line.h"

#define TIME_OF_VECTORS "1764441999999"

static struct rv_span text_of(const struct rv_json_node *object, const char *name)
{
	const struct rv_json_node *member = rv_json_get(object, name);

	return rv_json_is_string(member) ? rv_json_string(member) : (struct rv_span){ NULL, 0 };
}

static bool decode(struct rv_trial *trial, struct rv_span raw, struct rv_span *bytes)
{
	struct rv_buffer *buffer = rv_trial_buffer(trial);
	struct rv_error err = RV_ERROR_INIT;

	if (buffer == NULL || rv_base64_decode(buffer, raw.data, raw.len, &err) != 0)
		return rv_trial_failed(trial, &err);
	*bytes = (struct rv_span){ buffer->data != NULL ? buffer->data : "", buffer->len };
	return true;
}

static bool is_damaged(struct rv_span bytes)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_reader *reader = rv_reader_new(&err);
	struct rv_span rest = bytes, line;
	bool damaged = false;

	while (reader != NULL && rv_vectors_next(&rest, &line)) {
		enum rv_line kind = RV_LINE_BLANK;
		struct rv_row row;
		const char *reason;

		if (line.data + line.len == bytes.data + bytes.len) /* it has no newline: the tail */
			break;
		if (rv_line_read(reader, line, &kind, &row, &reason, &err) == 0)
			damaged = damaged || kind == RV_LINE_UNREADABLE || kind == RV_LINE_MISSHAPEN;
	}
	rv_reader_free(reader);
	return damaged;
}

bool rv_repair_vector_next(struct rv_trial *trial, struct rv_span *rest, struct rv_repair_vector *vector)
{
	struct rv_span line;
	const struct rv_json_node *node;

	if (!rv_vectors_next(rest, &line))
		return false;
	node = rv_trial_parse(trial, line.data, line.len);
	vector->name = text_of(node, "name");
	vector->action = text_of(node, "action");
	if (!decode(trial, text_of(node, "beforeBase64"), &vector->before) ||
	    !decode(trial, text_of(node, "afterBase64"), &vector->after))
		return false;
	vector->damaged = is_damaged(vector->before);
	return true;
}

bool rv_repair_vector_holds(const struct rv_repair_vector *vector, struct rv_span got, bool whole)
{
	static const char member[] = "\"recoveredAt\":" TIME_OF_VECTORS;
	struct rv_span want = vector->after;
	const char *at = rv_span_equal(vector->action, RV_SPAN("quarantined")) ?
			 memmem(want.data, want.len, member, sizeof member - 1) : NULL;
	size_t front;

	if (at == NULL)
		return whole ? rv_span_equal(want, got) : got.len >= want.len && memcmp(want.data, got.data, want.len) == 0;
	/* up to the number; some digits; the rest */
	front = (size_t)(at - want.data) + strlen("\"recoveredAt\":");
	if (got.len < front || memcmp(want.data, got.data, front) != 0)
		return false;
	want.data += front + strlen(TIME_OF_VECTORS);
	want.len -= front + strlen(TIME_OF_VECTORS);
	got.data += front;
	got.len -= front;
	while (got.len > 0 && *got.data >= '0' && *got.data <= '9') {
		got.data++;
		got.len--;
	}
	return whole ? rv_span_equal(want, got) : got.len >= want.len && memcmp(want.data, got.data, want.len) == 0;
}

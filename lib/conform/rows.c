#include "lib/conform/rows.h"

#include <string.h>

#define SHOWN 200

static bool add_row(struct rv_trial *trial, struct rv_rows *rows, const char *line, size_t len)
{
	const struct rv_json_node *node = rv_trial_parse(trial, line, len);

	if (!rv_expect(trial, node != NULL && rv_json_type(node) == RV_JSON_OBJECT,
		       "line %zu of the ledger is no row: %.*s", rows->count + 1, (int)(len < SHOWN ? len : SHOWN), line))
		return false;
	rows->row[rows->count++] = node;
	return true;
}

const struct rv_rows *rv_rows_read(struct rv_trial *trial, const char *path)
{
	struct rv_rows *rows = rv_trial_alloc(trial, sizeof *rows);
	const struct rv_buffer *text;
	size_t lines = 0;
	const char *at;

	if (rows == NULL || !rv_trial_exists(path))
		return rows;
	text = rv_trial_read(trial, path);
	if (!rv_expect(trial, text != NULL, "the ledger cannot be read"))
		return NULL;
	for (size_t i = 0; i < text->len; i++)
		lines += text->data[i] == '\n';
	if (!rv_expect(trial, text->len == 0 || text->data[text->len - 1] == '\n', "the ledger ends inside a line"))
		return NULL;
	rows->row = rv_trial_alloc(trial, (lines + 1) * sizeof *rows->row);
	at = text->data;
	for (size_t i = 0; i < lines && rows->row != NULL; i++) {
		const char *end = memchr(at, '\n', text->len - (size_t)(at - text->data));

		if (end == NULL || !add_row(trial, rows, at, (size_t)(end - at)))
			return NULL;
		at = end + 1;
	}
	return rows->row != NULL ? rows : NULL;
}

const struct rv_json_node *rv_rows_nth(const struct rv_rows *rows, const char *phase, size_t n)
{
	for (size_t i = 0; rows != NULL && i < rows->count; i++) {
		if (rv_member_is(rows->row[i], "phase", phase) && n-- == 0)
			return rows->row[i];
	}
	return NULL;
}

size_t rv_rows_count(const struct rv_rows *rows, const char *phase)
{
	size_t count = 0;

	while (rv_rows_nth(rows, phase, count) != NULL)
		count++;
	return count;
}

bool rv_member_is(const struct rv_json_node *row, const char *name, const char *text)
{
	const struct rv_json_node *member = rv_json_get(row, name);

	return rv_json_is_string(member) && rv_span_equal(rv_json_string(member), rv_span_of(text));
}

bool rv_member_same(const struct rv_json_node *a, const struct rv_json_node *b, const char *name)
{
	const struct rv_json_node *one = rv_json_get(a, name);
	const struct rv_json_node *two = rv_json_get(b, name);
	int64_t m, n;

	if (rv_json_is_string(one) && rv_json_is_string(two))
		return rv_span_equal(rv_json_string(one), rv_json_string(two));
	return one != NULL && two != NULL && rv_json_integer(one, &m) && rv_json_integer(two, &n) && m == n;
}

const char *rv_member_text(struct rv_trial *trial, const struct rv_json_node *row, const char *name)
{
	const struct rv_json_node *member = rv_json_get(row, name);
	struct rv_span text = rv_json_is_string(member) ? rv_json_string(member) : RV_SPAN("");
	const char *copy = rv_trial_printf(trial, "%.*s", (int)text.len, text.data);

	return copy != NULL ? copy : "";
}

bool rv_is_hex64(struct rv_span text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (strchr("0123456789abcdef", text.data[i]) == NULL || text.data[i] == '\0')
			return false;
	}
	return text.len == 64;
}

const struct rv_json_node *rv_expect_attempt(struct rv_trial *trial, const char *ledger, const char *outcome)
{
	const struct rv_rows *rows = rv_rows_read(trial, ledger);
	const struct rv_json_node *row = rv_rows_nth(rows, "outcome", 0);

	if (!rv_expect(trial, rows != NULL && rv_rows_count(rows, "outcome") == 1, "%zu outcome rows where one was due",
		       rv_rows_count(rows, "outcome")))
		return NULL;
	if (!rv_expect(trial, rv_member_is(row, "outcome", outcome), "the ledger's outcome is '%s' and not '%s'",
		       rv_member_text(trial, row, "outcome"), outcome))
		return NULL;
	return row;
}

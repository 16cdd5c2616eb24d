#include "lib/ledger/lines.h"

#include <stdlib.h>
#include <string.h>

#include "lib/ledger/flat.h"

#define ROWS_FIRST 1024

void rv_lines_init(struct rv_lines *lines)
{
	memset(lines, 0, sizeof *lines);
	rv_buffer_init(&lines->text, 0);
}

void rv_lines_release(struct rv_lines *lines)
{
	free(lines->rows);
	free(lines->damage);
	rv_reader_free(lines->reader);
	rv_sha256_free(lines->sha);
	rv_buffer_release(&lines->text);
	rv_lines_init(lines);
}

struct rv_reader *rv_lines_reader(struct rv_lines *lines, struct rv_error *err)
{
	if (lines->reader == NULL)
		lines->reader = rv_reader_new(err);
	return lines->reader;
}

struct rv_sha256 *rv_lines_sha256(struct rv_lines *lines, struct rv_error *err)
{
	if (lines->sha == NULL)
		lines->sha = rv_sha256_new(err);
	return lines->sha;
}

static void begin(struct rv_lines *lines, size_t bytes)
{
	lines->count = 0;
	lines->bytes = bytes;
	lines->row_count = 0;
	lines->damage_count = 0;
	rv_buffer_clear(&lines->text);
}

static int add_damage(struct rv_lines *lines, const struct rv_lines_place *at, struct rv_span line, enum rv_line kind,
		      const char *reason, struct rv_error *err)
{
	struct rv_lines_damage *damage;

	if (lines->damage_count == lines->damage_cap) {
		size_t cap = lines->damage_cap == 0 ? 16 : lines->damage_cap * 2;
		struct rv_lines_damage *grown = realloc(lines->damage, cap * sizeof *grown);

		if (grown == NULL)
			return rv_error_nomem(err);
		lines->damage = grown;
		lines->damage_cap = cap;
	}
	damage = &lines->damage[lines->damage_count++];
	*damage = (struct rv_lines_damage){ .at = *at, .misshapen = kind == RV_LINE_MISSHAPEN, .reason = reason };
	if (rv_lines_sha256(lines, err) == NULL || rv_sha256_begin(lines->sha, err) != 0 ||
	    rv_sha256_update(lines->sha, line.data, line.len, err) != 0)
		return -1;
	return rv_sha256_end(lines->sha, damage->sha256, err);
}

static int grow_rows(struct rv_lines *lines, struct rv_error *err)
{
	size_t cap = lines->row_cap == 0 ? ROWS_FIRST : lines->row_cap * 2;
	struct rv_lines_row *rows = realloc(lines->rows, cap * sizeof *rows);

	if (rows == NULL)
		return rv_error_nomem(err);
	lines->rows = rows;
	lines->row_cap = cap;
	return 0;
}

/* `owned`: the row's spans last no longer than this line. */
static int add_row(struct rv_lines *lines, const struct rv_pairs *pairs, const struct rv_lines_place *at,
		   const struct rv_row *row, bool owned, struct rv_error *err)
{
	struct rv_lines_row *added;

	if (lines->row_count == lines->row_cap && grow_rows(lines, err) != 0)
		return -1;
	added = &lines->rows[lines->row_count++];
	added->at = *at;
	added->phase = row->phase;
	added->copied = false;
	if (row->phase == RV_PHASE_TORN)
		return 0;
	rv_pairs_identify(pairs, row, &added->who);
	if (!owned || added->who.tail.len == 0)
		return 0;
	added->copied = true;
	added->copy = lines->text.len;
	rv_buffer_add(&lines->text, added->who.tail.data, added->who.tail.len);
	return rv_buffer_check(&lines->text, err);
}

/* `text` may have moved while it grew. */
static void point_at_copies(struct rv_lines *lines)
{
	for (size_t i = 0; lines->text.len > 0 && i < lines->row_count; i++) {
		if (lines->rows[i].copied)
			lines->rows[i].who.tail.data = lines->text.data + lines->rows[i].copy;
	}
}

/* A line that the layout does not fit. */
static int read_line(struct rv_lines *lines, const struct rv_pairs *pairs, const struct rv_lines_place *at,
		     struct rv_span line, struct rv_error *err)
{
	enum rv_line kind;
	struct rv_row row;
	const char *reason;

	if (rv_flat_read(line, &row))
		return add_row(lines, pairs, at, &row, false, err);
	if (rv_lines_reader(lines, err) == NULL ||
	    rv_line_read(lines->reader, line, &kind, &row, &reason, err) != 0)
		return -1;
	switch (kind) {
	case RV_LINE_BLANK:
		return 0;
	case RV_LINE_ROW:
		return add_row(lines, pairs, at, &row, true, err);
	case RV_LINE_UNREADABLE:
	case RV_LINE_MISSHAPEN:
		break;
	}
	return add_damage(lines, at, line, kind, reason, err);
}

int rv_lines_read(struct rv_lines *lines, const struct rv_pairs *pairs, const char *bytes, size_t len,
		  struct rv_error *err)
{
	const char *end = bytes + len;

	begin(lines, len);
	for (const char *line = bytes; line < end; lines->count++) {
		struct rv_row row;
		const char *newline = rv_layout_read(line, &row);
		bool fits = newline != NULL;
		struct rv_lines_place at;

		if (!fits)
			newline = memchr(line, '\n', (size_t)(end - line));
		at = (struct rv_lines_place){ .start = (size_t)(line - bytes), .len = (size_t)(newline - line), .line = lines->count };
		if (fits ? add_row(lines, pairs, &at, &row, false, err)
			 : read_line(lines, pairs, &at, (struct rv_span){ line, at.len }, err))
			return -1;
		line = newline + 1;
	}
	lines->first_len = len == 0 ? 0 : (size_t)((const char *)memchr(bytes, '\n', len) - bytes);
	point_at_copies(lines);
	return 0;
}

int rv_lines_read_tail(struct rv_lines *lines, const struct rv_pairs *pairs, struct rv_span tail, struct rv_error *err)
{
	struct rv_lines_place at = { .start = 0, .len = tail.len, .line = 0 };

	begin(lines, tail.len);
	if (read_line(lines, pairs, &at, tail, err) != 0)
		return -1;
	point_at_copies(lines);
	return 0;
}

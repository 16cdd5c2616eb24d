#include "lib/ledger/scan.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buffer.h"
#include "lib/ledger/flat.h"

struct rv_scan_file {
	struct rv_buffer carry; /* the line begun and not yet ended */
	uint64_t offset;        /* of its first byte */
	uint64_t line;
	uint64_t taken;         /* bytes of it that were already taken as a whole row, or 0 */
	struct rv_scan_tail tail;
};

int rv_scan_init(struct rv_scan *scan, bool keep_all, struct rv_error *err)
{
	memset(scan, 0, sizeof *scan);
	scan->keep_all = keep_all;
	scan->pairs = rv_pairs_new(err);
	scan->reader = scan->pairs == NULL ? NULL : rv_reader_new(err);
	scan->sha = scan->reader == NULL ? NULL : rv_sha256_new(err);
	if (scan->sha == NULL) {
		rv_scan_release(scan);
		return -1;
	}
	return 0;
}

void rv_scan_release(struct rv_scan *scan)
{
	for (size_t i = 0; i < scan->file_count; i++)
		rv_buffer_release(&scan->files[i].carry);
	free(scan->files);
	free(scan->intents.items);
	free(scan->outcomes.items);
	free(scan->torn.items);
	free(scan->damage);
	rv_pairs_free(scan->pairs);
	rv_reader_free(scan->reader);
	rv_sha256_free(scan->sha);
	memset(scan, 0, sizeof *scan);
}

int rv_scan_add_file(struct rv_scan *scan, uint32_t *file, struct rv_error *err)
{
	struct rv_scan_file *files = realloc(scan->files, (scan->file_count + 1) * sizeof *files);

	if (files == NULL)
		return rv_error_nomem(err);
	scan->files = files;
	*file = (uint32_t)scan->file_count++;
	memset(&files[*file], 0, sizeof *files);
	rv_buffer_init(&files[*file].carry, 0);
	files[*file].line = 1;
	return 0;
}

static int add_place(struct rv_places *places, const struct rv_place *place, struct rv_error *err)
{
	if (places->count == places->cap) {
		size_t cap = places->cap == 0 ? 256 : places->cap * 2;
		struct rv_place *items = realloc(places->items, cap * sizeof *items);

		if (items == NULL)
			return rv_error_nomem(err);
		places->items = items;
		places->cap = cap;
	}
	places->items[places->count++] = *place;
	return 0;
}

static int add_damage(struct rv_scan *scan, const struct rv_place *place, struct rv_span line, const char *reason,
		      struct rv_error *err)
{
	struct rv_damage *damage;

	if (scan->damage_count == scan->damage_cap) {
		size_t cap = scan->damage_cap == 0 ? 16 : scan->damage_cap * 2;
		struct rv_damage *grown = realloc(scan->damage, cap * sizeof *grown);

		if (grown == NULL)
			return rv_error_nomem(err);
		scan->damage = grown;
		scan->damage_cap = cap;
	}
	damage = &scan->damage[scan->damage_count];
	*damage = (struct rv_damage){ .place = *place, .reason = reason };
	if (rv_sha256_begin(scan->sha, err) != 0 || rv_sha256_update(scan->sha, line.data, line.len, err) != 0 ||
	    rv_sha256_end(scan->sha, damage->sha256, err) != 0)
		return -1;
	scan->damage_count++;
	return 0;
}

static int take_outcome(struct rv_scan *scan, struct rv_place *place, const struct rv_row *row, struct rv_error *err)
{
	if (rv_pairs_mark(scan->pairs, row, RV_PAIR_OUTCOME, &place->entry, err) != 0)
		return -1;
	scan->outcome_count++;
	return scan->keep_all ? add_place(&scan->outcomes, place, err) : 0;
}

static int take_row(struct rv_scan *scan, struct rv_place *place, const struct rv_row *row, struct rv_error *err)
{
	uint32_t entry;

	if (scan->settling) {
		if (row->phase != RV_PHASE_OUTCOME || !rv_pairs_find(scan->pairs, row, &entry))
			return 0;
		return take_outcome(scan, place, row, err);
	}
	switch (row->phase) {
	case RV_PHASE_INTENT:
		if (rv_pairs_mark(scan->pairs, row, RV_PAIR_INTENT, &place->entry, err) != 0)
			return -1;
		return add_place(&scan->intents, place, err);
	case RV_PHASE_OUTCOME:
		return take_outcome(scan, place, row, err);
	case RV_PHASE_TORN:
		scan->torn_count++;
		return scan->keep_all ? add_place(&scan->torn, place, err) : 0;
	}
	return 0;
}

static struct rv_place place_of(const struct rv_scan *scan, const struct rv_scan_file *file, size_t len)
{
	return (struct rv_place){ .offset = file->offset, .line = file->line, .len = len,
				  .file = (uint32_t)(file - scan->files), .entry = 0 };
}

/* A terminated line, or with *tail the unterminated rest. */
static int take_line(struct rv_scan *scan, struct rv_scan_file *file, struct rv_span line, bool tail,
		     struct rv_error *err)
{
	struct rv_place place = place_of(scan, file, line.len);
	enum rv_line kind = RV_LINE_ROW;
	struct rv_row row;
	const char *reason;

	if (!rv_flat_read(line, &row) && rv_line_read(scan->reader, line, &kind, &row, &reason, err) != 0)
		return -1;
	switch (kind) {
	case RV_LINE_BLANK:
		return 0;
	case RV_LINE_ROW:
		if (tail)
			file->taken = line.len;
		return take_row(scan, &place, &row, err);
	case RV_LINE_UNREADABLE:
		if (tail) {
			file->tail = (struct rv_scan_tail){ .present = true, .place = place };
			return 0;
		}
		break;
	case RV_LINE_MISSHAPEN:
		if (tail)
			file->taken = line.len;
		break;
	}
	return add_damage(scan, &place, line, reason, err);
}

/* A line is whole.  Where it was taken before as an unterminated tail, it is the same line with
 * its newline, or something was glued to it since. */
static int end_line(struct rv_scan *scan, struct rv_scan_file *file, struct rv_span line, struct rv_error *err)
{
	int result = 0;

	if (file->taken == 0)
		result = take_line(scan, file, line, false, err);
	else if (file->taken != line.len)
		scan->moved = true;
	file->taken = 0;
	file->tail.present = false;
	file->offset += line.len + 1;
	file->line++;
	return result;
}

int rv_scan_feed(struct rv_scan *scan, uint32_t index, const char *bytes, size_t len, struct rv_error *err)
{
	struct rv_scan_file *file = &scan->files[index];
	const char *end = bytes + len;

	while (bytes < end) {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		size_t part = (size_t)((newline != NULL ? newline : end) - bytes);
		struct rv_span line = { bytes, part };

		if (file->carry.len > 0 || newline == NULL) {
			rv_buffer_add(&file->carry, bytes, part);
			if (rv_buffer_check(&file->carry, err) != 0)
				return -1;
			line = (struct rv_span){ file->carry.data, file->carry.len };
		}
		if (newline == NULL)
			return 0;
		if (end_line(scan, file, line, err) != 0)
			return -1;
		rv_buffer_clear(&file->carry);
		bytes = newline + 1;
	}
	return 0;
}

int rv_scan_end(struct rv_scan *scan, uint32_t index, struct rv_error *err)
{
	struct rv_scan_file *file = &scan->files[index];
	struct rv_span line = { file->carry.data, file->carry.len };

	file->tail.present = false;
	if (line.len == 0 || file->taken == line.len)
		return 0;
	if (file->taken != 0) {
		scan->moved = true;
		return 0;
	}
	return take_line(scan, file, line, true, err);
}

void rv_scan_rewind(struct rv_scan *scan, uint32_t file)
{
	rv_buffer_clear(&scan->files[file].carry);
}

void rv_scan_settle(struct rv_scan *scan)
{
	scan->settling = true;
}

const struct rv_scan_tail *rv_scan_tail(const struct rv_scan *scan, uint32_t file)
{
	return &scan->files[file].tail;
}

struct rv_place rv_scan_position(const struct rv_scan *scan, uint32_t file)
{
	return place_of(scan, &scan->files[file], scan->files[file].carry.len);
}

bool rv_scan_is_open(const struct rv_scan *scan, const struct rv_place *intent)
{
	return (rv_pairs_marks(scan->pairs, intent->entry) & RV_PAIR_OUTCOME) == 0;
}

bool rv_scan_is_alone(const struct rv_scan *scan, const struct rv_place *outcome)
{
	return (rv_pairs_marks(scan->pairs, outcome->entry) & RV_PAIR_INTENT) == 0;
}

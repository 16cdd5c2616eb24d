#include "lib/ledger/scan.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buffer.h"
#include "lib/base/memory.h"

/* How many lookups ahead the pairing's memory is fetched: first a slot, then the entry it names. */
#define FETCH_SLOTS 16
#define FETCH_ENTRIES 8

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
	rv_lines_init(&scan->lines);
	scan->pairs = rv_pairs_new(err);
	return scan->pairs == NULL ? -1 : 0;
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
	rv_lines_release(&scan->lines);
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

static int grow_places(struct rv_places *places, struct rv_error *err)
{
	size_t cap = places->cap == 0 ? 256 : places->cap * 2;
	struct rv_place *items = rv_memory_grow(places->items, places->count * sizeof *items, cap * sizeof *items);

	if (items == NULL)
		return rv_error_nomem(err);
	places->items = items;
	places->cap = cap;
	return 0;
}

static int add_place(struct rv_places *places, const struct rv_place *place, struct rv_error *err)
{
	if (places->count == places->cap && grow_places(places, err) != 0)
		return -1;
	places->items[places->count++] = *place;
	return 0;
}

static bool is_paired(const struct rv_scan *scan, const struct rv_place *place)
{
	return rv_pairs_marks(scan->pairs, place->entry) == (RV_PAIR_INTENT | RV_PAIR_OUTCOME);
}

/* Those that are paired by now need no place where nobody will ask for them. */
static void drop_paired(const struct rv_scan *scan, struct rv_places *places)
{
	size_t kept = 0;

	for (size_t i = 0; i < places->count; i++) {
		if (!is_paired(scan, &places->items[i]))
			places->items[kept++] = places->items[i];
	}
	places->count = kept;
}

/* Where many are left after a drop the list grows, so that they are not gone over again for each new one. */
static int add_row(struct rv_scan *scan, struct rv_places *places, const struct rv_place *place, struct rv_error *err)
{
	if (!scan->keep_all && places->count == places->cap) {
		drop_paired(scan, places);
		if (places->count > places->cap / 2 && grow_places(places, err) != 0)
			return -1;
	}
	return add_place(places, place, err);
}

static int add_damage(struct rv_scan *scan, const struct rv_place *place, const struct rv_lines_damage *found,
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
	damage = &scan->damage[scan->damage_count++];
	*damage = (struct rv_damage){ .place = *place, .reason = found->reason };
	memcpy(damage->sha256, found->sha256, sizeof damage->sha256);
	return 0;
}

static int take_outcome(struct rv_scan *scan, struct rv_place *place, const struct rv_identity *who, struct rv_error *err)
{
	if (rv_pairs_mark_identity(scan->pairs, who, RV_PAIR_OUTCOME, &place->entry, err) != 0)
		return -1;
	scan->outcome_count++;
	if (!scan->keep_all && is_paired(scan, place))
		return 0;
	return add_row(scan, &scan->outcomes, place, err);
}

static int take_intent(struct rv_scan *scan, struct rv_place *place, const struct rv_identity *who, struct rv_error *err)
{
	if (rv_pairs_mark_identity(scan->pairs, who, RV_PAIR_INTENT, &place->entry, err) != 0)
		return -1;
	scan->intent_count++;
	if (!scan->keep_all && is_paired(scan, place))
		return 0;
	return add_row(scan, &scan->intents, place, err);
}

static int take_row(struct rv_scan *scan, struct rv_place *place, const struct rv_lines_row *row, struct rv_error *err)
{
	uint32_t entry;

	if (scan->settling) {
		if (row->phase != RV_PHASE_OUTCOME || !rv_pairs_find_identity(scan->pairs, &row->who, &entry))
			return 0;
		return take_outcome(scan, place, &row->who, err);
	}
	switch (row->phase) {
	case RV_PHASE_INTENT:
		return take_intent(scan, place, &row->who, err);
	case RV_PHASE_OUTCOME:
		return take_outcome(scan, place, &row->who, err);
	case RV_PHASE_TORN:
		scan->torn_count++;
		return scan->keep_all ? add_place(&scan->torn, place, err) : 0;
	}
	return 0;
}

static struct rv_place place_of(const struct rv_scan *scan, const struct rv_scan_file *file,
				const struct rv_lines_place *at)
{
	return (struct rv_place){ .offset = file->offset + at->start, .line = file->line + at->line, .len = at->len,
				  .file = (uint32_t)(file - scan->files), .entry = 0 };
}

static void fetch_ahead(const struct rv_scan *scan, const struct rv_lines *lines, size_t i)
{
	if (i + FETCH_SLOTS < lines->row_count && lines->rows[i + FETCH_SLOTS].phase != RV_PHASE_TORN)
		rv_pairs_fetch_slot(scan->pairs, &lines->rows[i + FETCH_SLOTS].who);
	if (i + FETCH_ENTRIES < lines->row_count && lines->rows[i + FETCH_ENTRIES].phase != RV_PHASE_TORN)
		rv_pairs_fetch_entry(scan->pairs, &lines->rows[i + FETCH_ENTRIES].who);
}

/* The rows and the damage from line `first` on, at the place where the file stands. */
static int take_found(struct rv_scan *scan, const struct rv_scan_file *file, const struct rv_lines *lines, size_t first,
		      struct rv_error *err)
{
	for (size_t i = 0; i < lines->row_count; i++) {
		struct rv_place place = place_of(scan, file, &lines->rows[i].at);

		fetch_ahead(scan, lines, i);
		if (lines->rows[i].at.line >= first && take_row(scan, &place, &lines->rows[i], err) != 0)
			return -1;
	}
	for (size_t i = 0; i < lines->damage_count; i++) {
		struct rv_place place = place_of(scan, file, &lines->damage[i].at);

		if (lines->damage[i].at.line >= first && add_damage(scan, &place, &lines->damage[i], err) != 0)
			return -1;
	}
	return 0;
}

/* Where the first line was taken before as an unterminated tail, it is the same line with its
 * newline, or something was glued to it since. */
int rv_scan_merge(struct rv_scan *scan, uint32_t index, const struct rv_lines *lines, struct rv_error *err)
{
	struct rv_scan_file *file = &scan->files[index];
	bool was_taken = file->taken != 0;

	if (lines->count == 0)
		return 0;
	if (was_taken && file->taken != lines->first_len)
		scan->moved = true;
	if (take_found(scan, file, lines, was_taken ? 1 : 0, err) != 0)
		return -1;
	file->taken = 0;
	file->tail.present = false;
	file->offset += lines->bytes;
	file->line += lines->count;
	return 0;
}

/* Whole lines at the start of what was carried. */
static int take_lines(struct rv_scan *scan, struct rv_scan_file *file, size_t len, struct rv_error *err)
{
	struct rv_buffer *carry = &file->carry;
	char *slack = rv_buffer_reserve(carry, RV_LAYOUT_SLACK);

	if (slack == NULL)
		return rv_buffer_check(carry, err);
	memset(slack, 0, RV_LAYOUT_SLACK);
	if (rv_lines_read(&scan->lines, scan->pairs, carry->data, len, err) != 0 ||
	    rv_scan_merge(scan, (uint32_t)(file - scan->files), &scan->lines, err) != 0)
		return -1;
	carry->len -= len;
	memmove(carry->data, carry->data + len, carry->len);
	return 0;
}

int rv_scan_feed(struct rv_scan *scan, uint32_t index, const char *bytes, size_t len, struct rv_error *err)
{
	struct rv_scan_file *file = &scan->files[index];
	const char *newline = len == 0 ? NULL : memrchr(bytes, '\n', len);
	size_t whole = file->carry.len + (newline == NULL ? 0 : (size_t)(newline - bytes) + 1);

	rv_buffer_add(&file->carry, bytes, len);
	if (rv_buffer_check(&file->carry, err) != 0)
		return -1;
	return newline == NULL ? 0 : take_lines(scan, file, whole, err);
}

int rv_scan_end(struct rv_scan *scan, uint32_t index, struct rv_error *err)
{
	struct rv_scan_file *file = &scan->files[index];
	struct rv_span line = { file->carry.data, file->carry.len };
	const struct rv_lines *lines = &scan->lines;

	file->tail.present = false;
	if (line.len == 0 || file->taken == line.len)
		return 0;
	if (file->taken != 0) {
		scan->moved = true;
		return 0;
	}
	if (rv_lines_read_tail(&scan->lines, scan->pairs, line, err) != 0)
		return -1;
	if (lines->damage_count > 0 && !lines->damage[0].misshapen) {
		file->tail = (struct rv_scan_tail){ .present = true, .place = place_of(scan, file, &lines->damage[0].at) };
		return 0;
	}
	if (lines->damage_count + lines->row_count > 0)
		file->taken = line.len;
	return take_found(scan, file, lines, 0, err);
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
	struct rv_lines_place at = { .start = 0, .len = scan->files[file].carry.len, .line = 0 };

	return place_of(scan, &scan->files[file], &at);
}

bool rv_scan_is_open(const struct rv_scan *scan, const struct rv_place *intent)
{
	return (rv_pairs_marks(scan->pairs, intent->entry) & RV_PAIR_OUTCOME) == 0;
}

bool rv_scan_is_alone(const struct rv_scan *scan, const struct rv_place *outcome)
{
	return (rv_pairs_marks(scan->pairs, outcome->entry) & RV_PAIR_INTENT) == 0;
}

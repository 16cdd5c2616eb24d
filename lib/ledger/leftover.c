#include "lib/ledger/leftover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/ledger/gather.h"
#include "lib/ledger/mend.h"
#include "lib/ledger/patch.h"
#include "lib/ledger/row.h"
#include "lib/ledger/torn.h"


static struct rv_span span_of(const struct rv_buffer *buf)
{
	return (struct rv_span){ buf->data != NULL ? buf->data : "", buf->len };
}

static int add_leftover(struct rv_leftovers *leftovers, struct rv_leftover found, struct rv_error *err)
{
	struct rv_leftover *items = realloc(leftovers->items, (leftovers->count + 1) * sizeof *items);

	if (items == NULL)
		return rv_error_nomem(err);
	leftovers->items = items;
	items[leftovers->count++] = found;
	return 0;
}

static bool begins_with(struct rv_span line, struct rv_span bytes)
{
	return line.len >= bytes.len && memcmp(line.data, bytes.data, bytes.len) == 0;
}

static bool is_taken(const struct rv_leftovers *leftovers, size_t damage)
{
	for (size_t i = 0; i < leftovers->count; i++) {
		if (leftovers->items[i].damage == damage)
			return true;
	}
	return false;
}

static bool is_matched(const struct rv_leftovers *leftovers, size_t copy)
{
	for (size_t i = 0; i < leftovers->count; i++) {
		if (leftovers->items[i].copy == copy)
			return true;
	}
	return false;
}

/* The line of one copy: `untouched` still begins with its very bytes, else partly overwritten. */
static int match_copy(struct rv_leftovers *leftovers, int fd, struct rv_scan *scan, const struct rv_copies *copies,
		      size_t copy, bool untouched, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer head = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
	struct rv_span bytes = span_of(&copies->items[copy].bytes);
	struct rv_reader *reader = rv_lines_reader(&scan->lines, err);

	if (reader == NULL || rv_row_add_torn_head(&head, bytes, err) != 0)
		return -1;
	for (size_t i = 0; i < scan->damage_count; i++) {
		const struct rv_place *place = &scan->damage[i].place;
		size_t extent;

		if (is_taken(leftovers, i))
			continue;
		rv_buffer_clear(&line);
		if (rv_patch_read(fd, place->offset, place->offset + place->len, &line, err) != 0)
			return -1;
		if (untouched && !begins_with(span_of(&line), bytes))
			continue;
		if (rv_torn_match(reader, span_of(&line), place->offset, bytes, span_of(&head), &extent, err) != 0)
			return -1;
		if (extent > 0)
			return add_leftover(leftovers, (struct rv_leftover){ copy, i, extent }, err);
	}
	return 0;
}

/* One line for a copy and one copy for a line.  Those that are still as they were torn come first: nothing else
 * can be meant by them. */
int rv_leftovers_match(struct rv_leftovers *leftovers, int fd, struct rv_scan *scan, const struct rv_copies *copies,
		       struct rv_error *err)
{
	*leftovers = (struct rv_leftovers){ NULL, 0 };
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < copies->count; i++) {
			if (!is_matched(leftovers, i) && match_copy(leftovers, fd, scan, copies, i, pass == 0, err) != 0)
				return -1;
		}
	}
	return 0;
}

void rv_leftovers_release(struct rv_leftovers *leftovers)
{
	free(leftovers->items);
	*leftovers = (struct rv_leftovers){ NULL, 0 };
}

/* Everything that finishing needs at hand. */
struct finish {
	struct rv_mending mending;
	struct rv_scan scan;
	struct rv_copies copies;
	struct rv_leftovers leftovers;
};

static bool is_line(const struct finish *finish, const struct rv_places *places, uint64_t from, struct rv_span bytes,
		    bool *found, struct rv_error *err)
{
	for (size_t i = 0; i < places->count && !*found; i++) {
		rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
		const struct rv_place *place = &places->items[i];

		if (place->offset < from || place->len != bytes.len)
			continue;
		if (rv_patch_read(finish->mending.mend->fd, place->offset, place->offset + place->len, &line, err) != 0)
			return false;
		*found = rv_span_equal(span_of(&line), bytes);
	}
	return true;
}

static bool is_quarantined(const struct finish *finish, uint64_t from, struct rv_span bytes, bool *found,
			   struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer base64 = RV_BUFFER_INIT;
	const struct rv_places *torn = &finish->scan.torn;

	rv_base64_add(&base64, bytes.data, bytes.len);
	if (rv_buffer_check(&base64, err) != 0)
		return false;
	for (size_t i = 0; i < torn->count && !*found; i++) {
		rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
		const struct rv_place *place = &torn->items[i];
		enum rv_line kind;
		struct rv_row row;
		const char *reason;

		if (place->offset < from)
			continue;
		if (rv_patch_read(finish->mending.mend->fd, place->offset, place->offset + place->len, &line, err) != 0 ||
		    rv_line_read(finish->mending.reader, span_of(&line), &kind, &row, &reason, err) != 0)
			return false;
		*found = kind == RV_LINE_ROW && row.bytes_base64.data != NULL &&
			 rv_span_equal(row.bytes_base64, span_of(&base64));
	}
	return true;
}

/* Does the row that replaces the fragment stand at or behind `from`? */
static int has_row(const struct finish *finish, uint64_t from, const struct rv_fragment *fragment, bool *found,
		   struct rv_error *err)
{
	struct rv_span bytes = span_of(&fragment->bytes);

	*found = false;
	if (!fragment->whole)
		return is_quarantined(finish, from, bytes, found, err) ? 0 : -1;
	if (!is_line(finish, &finish->scan.intents, from, bytes, found, err) ||
	    !is_line(finish, &finish->scan.outcomes, from, bytes, found, err))
		return -1;
	return 0;
}

static int fill_fragment(const struct finish *finish, size_t copy, struct rv_fragment *fragment, struct rv_error *err)
{
	const struct rv_copy *from = &finish->copies.items[copy];
	enum rv_tail kind = RV_TAIL_TORN;

	rv_buffer_add(&fragment->bytes, span_of(&from->bytes).data, from->bytes.len);
	for (size_t i = 0; i < RV_SHA256_HEX; i++)
		fragment->sha256[i] = from->sha256[i];
	if (rv_buffer_check(&fragment->bytes, err) != 0 ||
	    rv_tail_judge(finish->mending.reader, span_of(&fragment->bytes), &kind, err) != 0)
		return -1;
	fragment->whole = kind != RV_TAIL_TORN;
	return 0;
}

static int finish_damage(struct finish *finish, const struct rv_leftover *leftover, struct rv_fragment *fragment,
			 struct rv_repair_result *result, struct rv_error *err)
{
	uint64_t start = finish->scan.damage[leftover->damage].place.offset;
	bool done;

	fragment->start = start;
	if (rv_patch_read(finish->mending.mend->fd, start, start + leftover->extent, &fragment->found, err) != 0 ||
	    has_row(finish, start, fragment, &done, err) != 0)
		return -1;
	rv_repair_result_set(result, fragment->whole ? RV_REPAIR_TERMINATED : RV_REPAIR_QUARANTINED, fragment);
	if (done)
		return rv_mend_blank(&finish->mending, fragment, err);
	return rv_mend_by_append(&finish->mending, fragment, &done, err);
}

/* Nothing of the copy's bytes stands in the ledger as damage: the repair was done, or another
 * writer did it, or a power failure took the unsynced bytes, which then live in the copy alone. */
static int finish_copy(struct finish *finish, const struct rv_fragment *fragment, bool *keep, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer row = RV_BUFFER_INIT;
	int fd = finish->mending.mend->fd;
	uint64_t landed;
	bool found;

	*keep = false;
	if (has_row(finish, 0, fragment, &found, err) != 0)
		return -1;
	if (found)
		return 0;
	*keep = fragment->whole; /* a row must not come to life again in another ledger of the same name */
	if (*keep)
		return 0;
	rv_buffer_add_byte(&row, '\n');
	if (rv_fragment_add_row(fragment, &row, err) != 0 || rv_sidecar_check(&finish->mending.sidecar, err) != 0)
		return -1;
	finish->mending.begun = true;
	if (rv_patch_append(fd, span_of(&row), &landed, err) != 0)
		return -1;
	return rv_patch_sync(fd, err);
}

static const struct rv_leftover *leftover_of(const struct finish *finish, size_t copy)
{
	for (size_t i = 0; i < finish->leftovers.count; i++) {
		if (finish->leftovers.items[i].copy == copy)
			return &finish->leftovers.items[i];
	}
	return NULL;
}

static int finish_one(struct finish *finish, size_t copy, struct rv_repair_result *result, struct rv_error *err)
{
	struct rv_fragment fragment = { .start = 0, .bytes = RV_BUFFER_INIT, .found = RV_BUFFER_INIT };
	const struct rv_leftover *leftover = leftover_of(finish, copy);
	bool keep = false;
	int status = fill_fragment(finish, copy, &fragment, err);

	if (status == 0 && leftover != NULL)
		status = finish_damage(finish, leftover, &fragment, result, err);
	else if (status == 0)
		status = finish_copy(finish, &fragment, &keep, err);
	if (status == 0 && keep)
		result->stray_copies++;
	else if (status == 0)
		status = rv_copy_drop(finish->mending.mend->real, fragment.sha256, err);
	rv_fragment_release(&fragment);
	return status;
}

static int finish_all(struct finish *finish, struct rv_repair_result *result, struct rv_error *err)
{
	uint32_t file;

	if (rv_scan_init(&finish->scan, true, err) != 0 || rv_scan_add_file(&finish->scan, &file, err) != 0 ||
	    rv_scan_read(&finish->scan, file, finish->mending.mend->fd, err) != 0)
		return -1;
	if (rv_leftovers_match(&finish->leftovers, finish->mending.mend->fd, &finish->scan, &finish->copies, err) != 0)
		return -1;
	for (size_t i = 0; i < finish->copies.count; i++) {
		if (finish_one(finish, i, result, err) != 0)
			return -1;
	}
	return 0;
}

int rv_mend_leftovers(const struct rv_mend *mend, struct rv_repair_result *result, struct rv_error *err)
{
	struct finish finish = { .copies = { NULL, 0 }, .leftovers = { NULL, 0 } };
	int status = rv_copies_list(&finish.copies, mend->real, true, err);

	/* A dead repair's sidecar goes too, though it had finished all else: the engine's writers would
	 * wait for it. */
	if (status == 0 && (finish.copies.count > 0 || rv_sidecar_is_ours(mend->path))) {
		status = rv_mending_begin(&finish.mending, mend, err);
		if (status == 0 && finish.copies.count > 0)
			status = finish_all(&finish, result, err);
		rv_scan_release(&finish.scan);
		rv_mending_end(&finish.mending, status != 0);
	}
	rv_leftovers_release(&finish.leftovers);
	rv_copies_release(&finish.copies);
	return status;
}

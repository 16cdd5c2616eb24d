#include "lib/ledger/finish.h"

#include "lib/base/cleanup.h"
#include "lib/digest/digest.h"
#include "lib/ledger/copy.h"
#include "lib/ledger/leftover.h"
#include "lib/ledger/patch.h"
#include "lib/ledger/row.h"
#include "lib/ledger/torn.h"

static struct rv_span span_of(const struct rv_buffer *buf)
{
	return (struct rv_span){ buf->data != NULL ? buf->data : "", buf->len };
}

/* Everything that finishing needs at hand. */
struct finish {
	struct rv_mending mending;
	struct rv_scan scan;
	struct rv_copies copies;
	struct rv_leftovers leftovers;
};

static void note_row(struct finish *finish, size_t copy, uint64_t offset, bool *found)
{
	*found = true;
	for (size_t i = 0; i < finish->leftovers.count; i++) {
		struct rv_leftover *leftover = &finish->leftovers.items[i];

		if (leftover->copy == copy && finish->scan.damage[leftover->damage].place.offset <= offset)
			leftover->rows++;
	}
}

static int find_lines(struct finish *finish, size_t copy, const struct rv_places *places, struct rv_span bytes,
		      bool *found, struct rv_error *err)
{
	for (size_t i = 0; i < places->count; i++) {
		rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
		const struct rv_place *place = &places->items[i];

		if (place->len != bytes.len)
			continue;
		if (rv_patch_read(finish->mending.mend->fd, place->offset, place->offset + place->len, &line, err) != 0)
			return -1;
		if (rv_span_equal(span_of(&line), bytes))
			note_row(finish, copy, place->offset, found);
	}
	return 0;
}

static int find_quarantined(struct finish *finish, size_t copy, struct rv_span bytes, bool *found, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer base64 = RV_BUFFER_INIT;
	const struct rv_places *torn = &finish->scan.torn;

	rv_base64_add(&base64, bytes.data, bytes.len);
	if (rv_buffer_check(&base64, err) != 0)
		return -1;
	for (size_t i = 0; i < torn->count; i++) {
		rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
		const struct rv_place *place = &torn->items[i];
		enum rv_line kind;
		struct rv_row row;
		const char *reason;

		if (rv_patch_read(finish->mending.mend->fd, place->offset, place->offset + place->len, &line, err) != 0 ||
		    rv_line_read(finish->mending.reader, span_of(&line), &kind, &row, &reason, err) != 0)
			return -1;
		if (kind == RV_LINE_ROW && row.bytes_base64.data != NULL && rv_span_equal(row.bytes_base64, span_of(&base64)))
			note_row(finish, copy, place->offset, found);
	}
	return 0;
}

/* The rows that replace the copy's fragment: is there any, and how many are at or behind each of its lines? */
static int find_rows(struct finish *finish, size_t copy, const struct rv_fragment *fragment, bool *found,
		     struct rv_error *err)
{
	struct rv_span bytes = span_of(&fragment->bytes);

	*found = false;
	if (!fragment->whole)
		return find_quarantined(finish, copy, bytes, found, err);
	return find_lines(finish, copy, &finish->scan.intents, bytes, found, err) != 0
		       ? -1
		       : find_lines(finish, copy, &finish->scan.outcomes, bytes, found, err);
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

/* How many rows the copy's lines lack.  A row stands behind the line that it replaces, so each line and those behind
 * it need as many rows behind it as they are; rows do not say whose they are, and by this no line ever gets a second. */
static size_t count_lacking(const struct finish *finish, size_t copy)
{
	const struct rv_leftovers *leftovers = &finish->leftovers;
	size_t lacking = 0;

	for (size_t i = 0; i < leftovers->count; i++) {
		size_t lines = 0;

		if (leftovers->items[i].copy != copy)
			continue;
		for (size_t k = 0; k < leftovers->count; k++)
			lines += leftovers->items[k].copy == copy && leftovers->items[k].damage >= leftovers->items[i].damage;
		if (lines > leftovers->items[i].rows + lacking)
			lacking = lines - leftovers->items[i].rows;
	}
	return lacking;
}

static int blank_line(struct finish *finish, const struct rv_leftover *leftover, struct rv_fragment *fragment,
		      struct rv_repair_result *result, struct rv_error *err)
{
	fragment->start = finish->scan.damage[leftover->damage].place.offset;
	rv_buffer_clear(&fragment->found);
	if (rv_patch_read(finish->mending.mend->fd, fragment->start, fragment->start + leftover->extent, &fragment->found, err) != 0)
		return -1;
	rv_repair_result_set(result, fragment->whole ? RV_REPAIR_TERMINATED : RV_REPAIR_QUARANTINED, fragment);
	return rv_mend_blank(&finish->mending, fragment, err);
}

/* All rows first: from a line that is blank already its row cannot be told from one that another line lacks. */
static int finish_lines(struct finish *finish, size_t copy, struct rv_fragment *fragment, struct rv_repair_result *result,
			struct rv_error *err)
{
	size_t lacking = count_lacking(finish, copy);

	if (lacking > 0 && rv_mend_append_rows(&finish->mending, fragment, lacking, err) != 0)
		return -1;
	for (size_t i = 0; i < finish->leftovers.count; i++) {
		const struct rv_leftover *leftover = &finish->leftovers.items[i];

		if (leftover->copy == copy && blank_line(finish, leftover, fragment, result, err) != 0)
			return -1;
	}
	return 0;
}

/* Nothing of the copy's bytes stands in the ledger as damage: the repair was done, or another
 * writer did it, or a power failure took the unsynced bytes, which then live in the copy alone. */
static int finish_copy(struct finish *finish, const struct rv_fragment *fragment, bool found, bool *keep,
		       struct rv_error *err)
{
	*keep = !found && fragment->whole; /* a row must not come to life again in another ledger of the same name */
	return found || *keep ? 0 : rv_mend_append_rows(&finish->mending, fragment, 1, err);
}

static int finish_one(struct finish *finish, size_t copy, struct rv_repair_result *result, struct rv_error *err)
{
	struct rv_fragment fragment = { .start = 0, .bytes = RV_BUFFER_INIT, .found = RV_BUFFER_INIT };
	bool keep = false, found = false;
	int status = fill_fragment(finish, copy, &fragment, err);

	if (status == 0)
		status = find_rows(finish, copy, &fragment, &found, err);
	if (status == 0)
		status = rv_leftovers_has(&finish->leftovers, copy) ? finish_lines(finish, copy, &fragment, result, err)
							      : finish_copy(finish, &fragment, found, &keep, err);
	if (status == 0 && keep)
		result->stray_copies++;
	else if (status == 0)
		status = rv_copy_drop(finish->mending.mend->real, fragment.sha256, err);
	rv_fragment_release(&fragment);
	return status;
}

static int finish_all(struct finish *finish, struct rv_repair_result *result, struct rv_error *err)
{
	if (rv_leftovers_scan(&finish->scan, finish->mending.mend->fd, err) != 0 ||
	    rv_leftovers_match(&finish->leftovers, finish->mending.mend->fd, &finish->scan, &finish->copies, err) != 0)
		return -1;
	for (size_t i = 0; i < finish->copies.count; i++) {
		if (finish_one(finish, i, result, err) != 0)
			return -1;
	}
	return 0;
}

int rv_finish_leftovers(const struct rv_mend *mend, struct rv_repair_result *result, struct rv_error *err)
{
	struct finish finish = { .copies = { NULL, 0 }, .leftovers = { .items = NULL } };
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

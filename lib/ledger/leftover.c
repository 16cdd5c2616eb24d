#include "lib/ledger/leftover.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/ledger/gather.h"
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
	leftovers->taken[found.damage] = true;
	return 0;
}

static bool begins_with(struct rv_span line, struct rv_span bytes)
{
	return line.len >= bytes.len && memcmp(line.data, bytes.data, bytes.len) == 0;
}

bool rv_leftovers_has(const struct rv_leftovers *leftovers, size_t copy)
{
	for (size_t i = 0; i < leftovers->count; i++) {
		if (leftovers->items[i].copy == copy)
			return true;
	}
	return false;
}

/* How to look for a copy's lines. */
struct search {
	bool untouched; /* those that still begin with its very bytes, else partly overwritten ones, too */
	bool all;       /* not the first only */
};

static int match_copy(struct rv_leftovers *leftovers, int fd, struct rv_scan *scan, const struct rv_copies *copies,
		      size_t copy, struct search search, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer head = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
	struct rv_span bytes = span_of(&copies->items[copy].bytes);
	struct rv_reader *reader = rv_lines_reader(&scan->lines, err);
	size_t extent = 0;

	if (reader == NULL || rv_row_add_torn_head(&head, bytes, err) != 0)
		return -1;
	for (size_t i = 0; i < scan->damage_count && (search.all || extent == 0); i++) {
		const struct rv_place *place = &scan->damage[i].place;

		if (leftovers->taken[i])
			continue;
		rv_buffer_clear(&line);
		if (rv_patch_read(fd, place->offset, place->offset + place->len, &line, err) != 0)
			return -1;
		if (search.untouched && !begins_with(span_of(&line), bytes))
			continue;
		if (rv_torn_match(reader, span_of(&line), place->offset, bytes, span_of(&head), &extent, err) != 0)
			return -1;
		if (extent > 0 && add_leftover(leftovers, (struct rv_leftover){ .copy = copy, .damage = i, .extent = extent }, err) != 0)
			return -1;
	}
	return 0;
}

/* One line for a copy first, and of those the ones that are still as they were torn: nothing else can be meant by
 * them.  What is left then are further lines that were torn with the same bytes, which share their copy. */
int rv_leftovers_match(struct rv_leftovers *leftovers, int fd, struct rv_scan *scan, const struct rv_copies *copies,
		       struct rv_error *err)
{
	static const struct search searches[] = { { true, false }, { false, false }, { true, true }, { false, true } };

	*leftovers = (struct rv_leftovers){ .taken = calloc(scan->damage_count + 1, sizeof *leftovers->taken) };
	if (leftovers->taken == NULL)
		return rv_error_nomem(err);
	for (size_t k = 0; k < sizeof searches / sizeof searches[0]; k++) {
		for (size_t i = 0; i < copies->count; i++) {
			if (!searches[k].all && rv_leftovers_has(leftovers, i))
				continue;
			if (match_copy(leftovers, fd, scan, copies, i, searches[k], err) != 0)
				return -1;
		}
	}
	return 0;
}

void rv_leftovers_release(struct rv_leftovers *leftovers)
{
	free(leftovers->items);
	free(leftovers->taken);
	*leftovers = (struct rv_leftovers){ .items = NULL };
}

int rv_leftovers_scan(struct rv_scan *scan, int fd, struct rv_error *err)
{
	uint32_t file;

	if (rv_scan_init(scan, true, err) != 0 || rv_scan_add_file(scan, &file, err) != 0)
		return -1;
	return rv_scan_read(scan, file, fd, err);
}

int rv_leftovers_count(const struct rv_mend *mend, const char *sha256, size_t *lines, struct rv_error *err)
{
	struct rv_leftovers leftovers = { .items = NULL };
	struct rv_scan scan = { .pairs = NULL };
	struct rv_copies copies;
	int result = -1;

	*lines = 0;
	if (rv_copies_list(&copies, mend->real, false, err) == 0 && rv_leftovers_scan(&scan, mend->fd, err) == 0)
		result = rv_leftovers_match(&leftovers, mend->fd, &scan, &copies, err);
	for (size_t i = 0; i < leftovers.count; i++)
		*lines += strcmp(copies.items[leftovers.items[i].copy].sha256, sha256) == 0;
	rv_leftovers_release(&leftovers);
	rv_copies_release(&copies);
	rv_scan_release(&scan);
	return result;
}

/* The copy's bytes instead, if the tail is what an interrupted repair left of them. */
static int try_copy(struct rv_mending *mending, struct rv_fragment *fragment, struct rv_span bytes, bool *known,
		    struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer head = RV_BUFFER_INIT;
	size_t extent;

	if (rv_row_add_torn_head(&head, bytes, err) != 0 ||
	    rv_torn_match(mending->reader, span_of(&fragment->found), fragment->start, bytes, span_of(&head), &extent, err) != 0)
		return -1;
	*known = extent > 0 && extent == fragment->found.len;
	if (!*known)
		return 0;
	rv_buffer_clear(&fragment->bytes);
	rv_buffer_add(&fragment->bytes, bytes.data, bytes.len);
	return rv_buffer_check(&fragment->bytes, err);
}

int rv_leftovers_recognise(struct rv_mending *mending, struct rv_fragment *fragment, struct rv_error *err)
{
	struct rv_copies copies;
	int result = rv_copies_list(&copies, mending->mend->real, true, err);
	bool known = false;

	for (size_t i = 0; i < copies.count && !known; i++)
		known = rv_span_equal(span_of(&copies.items[i].bytes), span_of(&fragment->found)); /* untouched */
	for (size_t i = 0; result == 0 && !known && i < copies.count; i++)
		result = try_copy(mending, fragment, span_of(&copies.items[i].bytes), &known, err);
	rv_copies_release(&copies);
	return result;
}

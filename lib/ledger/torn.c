#include "lib/ledger/torn.h"

#include <string.h>

int rv_tail_judge(struct rv_reader *reader, struct rv_span tail, enum rv_tail *kind, struct rv_error *err)
{
	enum rv_line line;
	struct rv_row row;
	const char *reason;

	if (rv_line_read(reader, tail, &line, &row, &reason, err) != 0)
		return -1;
	if (line == RV_LINE_ROW)
		*kind = RV_TAIL_WHOLE;
	else if (line == RV_LINE_MISSHAPEN)
		*kind = RV_TAIL_MISSHAPEN;
	else
		*kind = RV_TAIL_TORN; /* also blanks, which JSON.parse refuses */
	return 0;
}

#define SECTOR 512 /* bytes of the file that a power failure leaves all old or all new */

/* What wrote the last byte, and has the one cut been used that a kill may make anywhere? */
enum { NEW = 1, OLD = 2, NEW_CUT = 4, OLD_CUT = 8 };

static unsigned states_after(unsigned states, bool at_sector, bool fits_new, bool fits_old)
{
	if (at_sector) {
		if ((states & (NEW | OLD)) != 0)
			states |= NEW | OLD;
		if ((states & (NEW_CUT | OLD_CUT)) != 0)
			states |= NEW_CUT | OLD_CUT;
	}
	if ((states & NEW) != 0)
		states |= OLD_CUT;
	return states & ((fits_new ? NEW | NEW_CUT : 0U) | (fits_old ? OLD | OLD_CUT : 0U));
}

/*
 * Does the line, which is at `offset` of its file, begin with what one write over the fragment left that was
 * interrupted: `over`, or spaces where it has no bytes?  A kill leaves the start of it and then what was there;
 * a power failure leaves each sector as it was or as it should be.  Any other mixture is of no write: two
 * fragments may differ in a single byte, and the row of one may have in that place the byte of the other.
 */
static bool is_overwritten(struct rv_span line, uint64_t offset, struct rv_span fragment, struct rv_span over)
{
	unsigned states = NEW | OLD;

	if (line.len < fragment.len || (over.len > 0 && over.len < fragment.len))
		return false;
	for (size_t i = 0; i < fragment.len && states != 0; i++) {
		char new = over.len > 0 ? over.data[i] : ' ';

		states = states_after(states, (offset + i) % SECTOR == 0, line.data[i] == new, line.data[i] == fragment.data[i]);
	}
	return states != 0;
}

/* The bytes at the start of `line` that are the fragment with a quarantine row partly written over
 * it; 0 where it is not that.  The row is longer than the fragment: behind it are more bytes of
 * the row, its digits, or zeros where the power failed before they were on disk. */
static size_t overwritten_len(struct rv_span line, uint64_t offset, struct rv_span fragment, struct rv_span head)
{
	size_t i = fragment.len;

	if (!is_overwritten(line, offset, fragment, head))
		return 0;
	while (i < line.len && i < head.len && (line.data[i] == head.data[i] || line.data[i] == '\0'))
		i++;
	while (i >= head.len && i < line.len && (strchr("0123456789}", line.data[i]) != NULL))
		i++; /* strchr finds the NUL too */
	return i;
}

/* Is what follows the first `at` bytes nothing, or a JSON text of its own? */
static int is_whole_behind(struct rv_reader *reader, struct rv_span line, size_t at, bool *whole, struct rv_error *err)
{
	struct rv_span rest = { line.data + at, line.len - at };
	enum rv_tail kind;

	*whole = rest.len == 0;
	if (*whole)
		return 0;
	if (rv_tail_judge(reader, rest, &kind, err) != 0)
		return -1;
	*whole = kind != RV_TAIL_TORN;
	return 0;
}

int rv_torn_match(struct rv_reader *reader, struct rv_span line, uint64_t offset, struct rv_span fragment, struct rv_span head,
		  size_t *extent, struct rv_error *err)
{
	size_t candidates[2] = { overwritten_len(line, offset, fragment, head), 0 }; /* the longer first */

	*extent = 0;
	if (fragment.len == 0)
		return 0;
	if (candidates[0] > 0 || is_overwritten(line, offset, fragment, (struct rv_span){ NULL, 0 }))
		candidates[1] = fragment.len;
	for (int i = 0; i < 2; i++) {
		bool whole;

		if (candidates[i] == 0)
			continue;
		if (is_whole_behind(reader, line, candidates[i], &whole, err) != 0)
			return -1;
		if (whole) {
			*extent = candidates[i];
			return 0;
		}
	}
	return 0;
}

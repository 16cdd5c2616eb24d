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

static bool is_blanked(struct rv_span line, struct rv_span fragment)
{
	if (line.len < fragment.len)
		return false;
	for (size_t i = 0; i < fragment.len; i++) {
		if (line.data[i] != fragment.data[i] && line.data[i] != ' ')
			return false;
	}
	return true;
}

/* The bytes at the start of `line` that are the fragment with a quarantine row partly written over
 * it; 0 where it is not that.  The row is longer than the fragment: behind it are more bytes of
 * the row, its digits, or zeros where the power failed before they were on disk. */
static size_t overwritten_len(struct rv_span line, struct rv_span fragment, struct rv_span head)
{
	size_t i = 0;

	if (line.len < fragment.len)
		return 0;
	for (; i < fragment.len; i++) {
		if (line.data[i] != fragment.data[i] && line.data[i] != head.data[i])
			return 0;
	}
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

int rv_torn_match(struct rv_reader *reader, struct rv_span line, struct rv_span fragment, struct rv_span head,
		  size_t *extent, struct rv_error *err)
{
	size_t candidates[2] = { overwritten_len(line, fragment, head), 0 }; /* the longer first */

	*extent = 0;
	if (fragment.len == 0)
		return 0;
	if (candidates[0] > 0 || is_blanked(line, fragment))
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

/*
 * The decision half of a repair: what a torn tail becomes, and what an interrupted repair left.
 * No I/O.
 *
 * A repair of torn bytes F (the fragment) at offset S goes one of two ways, each with a synced copy
 * of F beside the ledger from before its first write until it is done:
 *
 *   in place   F is the end of the file and nobody else has it open: one pwrite of the quarantine
 *              row over F.  Interrupted, the tail is a mixture of the row and F.
 *   by append  the row is appended, then F is overwritten with spaces, which makes a blank line, or
 *              spaces before the row that another writer glued to F meanwhile.  Interrupted, the
 *              line is a mixture of spaces and F, with or without a glued row behind it.
 *
 * So with the copy of F, what a crash left is recognised, and nothing but F's own bytes, the row's
 * and spaces is ever overwritten.
 *
 * Lines that were torn with the same bytes share one copy, which has the hash of them for a name, and their rows do
 * not say which line they are of.  So these are finished together, by append: no tail of the same bytes gets its row
 * before it is a line beside the others, the rows that are lacking are counted by where they stand (each line has its
 * row behind it) and appended at once, and no line is blanked before the last row is there.  Killed anywhere, each
 * has one row in the end, and none has two.  Two have one row between them only where a row of the same bytes stands
 * behind a line, or beside a copy, that is not its own: an engine's writer, which knows no copies, quarantined the
 * same bytes behind a line whose repair had died; or the power failed and took the first line out of the ledger, so
 * that its copy alone tells of it, and that copy might as well be the second's.
 */
#ifndef RV_LEDGER_TORN_H
#define RV_LEDGER_TORN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/ledger/line.h"

enum rv_tail {
	RV_TAIL_WHOLE,     /* a row: it lacks its newline only */
	RV_TAIL_MISSHAPEN, /* JSON of a wrong shape: the same, and it will be damage */
	RV_TAIL_TORN       /* anything else: to be quarantined */
};

/* What an unterminated, non-empty tail is. */
int rv_tail_judge(struct rv_reader *reader, struct rv_span tail, enum rv_tail *kind, struct rv_error *err);

/* How many leading bytes of `line`, which is at `offset` of the ledger, are what an interrupted repair of
 * `fragment` left, 0 for none: the rest is empty or JSON on its own.  `head` is rv_row_add_torn_head() of the
 * fragment. */
int rv_torn_match(struct rv_reader *reader, struct rv_span line, uint64_t offset, struct rv_span fragment, struct rv_span head,
		  size_t *extent, struct rv_error *err);

#endif

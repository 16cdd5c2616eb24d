/*
 * A fast reader of the rows that programs write: no white space between tokens, no escape in a
 * string, none of our members twice, startedAt a plain integer.  Of such a line it says the same as
 * lib/ledger/line.h in one pass and without decoding anything; of any other it says nothing.
 */
#ifndef RV_LEDGER_FLAT_H
#define RV_LEDGER_FLAT_H

#include <stdbool.h>

#include "lib/ledger/line.h"

/* True: the line is this row (its node is NULL).  False: read it the slow way. */
bool rv_flat_read(struct rv_span line, struct rv_row *row);

#endif

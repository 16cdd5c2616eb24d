/*
 * A fast reader of rows, in one pass and without decoding anything: white space, escapes and values in
 * values are passed over.  Where a line is a row and it can tell, it says the same of it as lib/ledger/line.h.
 * It cannot tell where one of our members is there twice, where a name, or a text that pairing needs, is
 * written with escapes, or where a startedAt that it needs is no plain integer.
 */
#ifndef RV_LEDGER_FLAT_H
#define RV_LEDGER_FLAT_H

#include <stdbool.h>

#include "lib/ledger/line.h"

/* True: the line is a row, of which only what pairing needs is filled: its phase, its attempt_id or without
 * one its key and started_at, and an outcome's class.  False: read it the slow way. */
bool rv_flat_read(struct rv_span line, struct rv_row *row);

#endif

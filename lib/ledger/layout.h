/*
 * The fastest reader of a row: it expects the very bytes that rv-exec and the engine write, name
 * after name as literals, and looks only for the ends of strings and numbers between them.  What it
 * takes it has proved: grammar, strict UTF-8 and the shape of the phase.  Of any other line it says
 * nothing, and flat.h or line.h has to read it.  It decodes nothing, and tells only what pairing needs.
 *
 * It needs no length: a newline ends every string and fits no literal, so that it cannot pass the
 * end of its line.
 */
#ifndef RV_LEDGER_LAYOUT_H
#define RV_LEDGER_LAYOUT_H

#include <stddef.h>

#include "lib/ledger/line.h"

/* So many bytes behind a newline may be read; what they are is without effect. */
#define RV_LAYOUT_SLACK ((size_t)64)

/* The newline of the line that begins at `line` and is a row, or NULL.  Of the row only its phase, its
 * attempt_id, which is there, and an outcome's class are filled.  There is a newline, and behind it
 * RV_LAYOUT_SLACK bytes that may be read. */
const char *rv_layout_read(const char *line, struct rv_row *row);
/* The same without vector instructions, which other machines use. */
const char *rv_layout_read_plain(const char *line, struct rv_row *row);

#endif

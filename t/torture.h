/* What the players of t/torture-players.c and their judge both know: the rows, and the files beside the ledger. */
#ifndef RV_TORTURE_H
#define RV_TORTURE_H

#include <stddef.h>

#include "lib/base/buffer.h"
#include "lib/digest/digest.h"

#define TORTURE_PATIENCE_MS 30000

struct torture {
	char ledger[512];
	char gate[520];      /* keeps what no lock of ours guards from falling between an engine's look and its append */
	char confirmed[520]; /* an id a line, each noted once its append had returned */
	char torn[520];      /* a tail a line, each noted before it was torn */
};

/* Bytes of padding, by how often: most rows have some hundred bytes, few are large. */
extern const size_t torture_sizes[];
extern const size_t torture_size_count;

/* The one row that has this id and this much padding; it replaces what `row` holds. */
void torture_row(struct rv_buffer *row, const char id[RV_UUID_TEXT], size_t padding);

_Noreturn void torture_die(const char *what, const struct rv_error *err);

/* All at the ledger until then (rv_clock_mono_ms()), or until `rows` more are confirmed where it is not 0: how many
 * players failed, and how many were killed as they should be. */
int torture_play(const struct torture *where, int64_t until_ms, long rows, unsigned *kills);

#endif

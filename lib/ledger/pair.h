/*
 * Which attempts exist and which have an outcome, by exact identity: the attemptId, or for a row
 * without one the idempotencyKey and startedAt as a number (contract, section 4).  The two never
 * meet.  Exact means by bytes and never by hash alone; a UUID in its usual form takes 16 of them.
 */
#ifndef RV_LEDGER_PAIR_H
#define RV_LEDGER_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/ledger/line.h"

enum rv_pair_mark {
	RV_PAIR_INTENT = 1 << 0,
	RV_PAIR_OUTCOME = 1 << 1
};

struct rv_pairs;

struct rv_pairs *rv_pairs_new(struct rv_error *err);
void rv_pairs_free(struct rv_pairs *pairs); /* NULL is fine */

/* The identity's entry, made if absent, with `mark` set on it. */
int rv_pairs_mark(struct rv_pairs *pairs, const struct rv_row *row, enum rv_pair_mark mark, uint32_t *entry,
		  struct rv_error *err);
/* Is the identity there?  Needs no memory. */
bool rv_pairs_find(const struct rv_pairs *pairs, const struct rv_row *row, uint32_t *entry);
unsigned rv_pairs_marks(const struct rv_pairs *pairs, uint32_t entry);

#endif

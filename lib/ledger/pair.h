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

/* An identity as it is looked up: the UUID, or startedAt's eight bytes or none and then `tail`. */
struct rv_identity {
	unsigned char head[16];
	struct rv_span tail; /* borrowed from the row */
	uint32_t hash;
	uint8_t kind;
};

struct rv_pairs *rv_pairs_new(struct rv_error *err);
void rv_pairs_free(struct rv_pairs *pairs); /* NULL is fine */

/* About so many of them will be there in the end: they grow in larger steps then. */
void rv_pairs_expect(struct rv_pairs *pairs, double count);
uint32_t rv_pairs_count(const struct rv_pairs *pairs);

/* The identity of a row of an attempt.  It changes nothing: threads may ask while another marks. */
void rv_pairs_identify(const struct rv_pairs *pairs, const struct rv_row *row, struct rv_identity *who);
int rv_pairs_mark_identity(struct rv_pairs *pairs, const struct rv_identity *who, enum rv_pair_mark mark,
			   uint32_t *entry, struct rv_error *err);
bool rv_pairs_find_identity(const struct rv_pairs *pairs, const struct rv_identity *who, uint32_t *entry);
/* Fetch what a lookup will need into the caches: its slot, and some lookups later the entry there. */
void rv_pairs_fetch_slot(const struct rv_pairs *pairs, const struct rv_identity *who);
void rv_pairs_fetch_entry(const struct rv_pairs *pairs, const struct rv_identity *who);

/* The identity's entry, made if absent, with `mark` set on it. */
int rv_pairs_mark(struct rv_pairs *pairs, const struct rv_row *row, enum rv_pair_mark mark, uint32_t *entry,
		  struct rv_error *err);
/* Is the identity there?  Needs no memory. */
bool rv_pairs_find(const struct rv_pairs *pairs, const struct rv_row *row, uint32_t *entry);
unsigned rv_pairs_marks(const struct rv_pairs *pairs, uint32_t entry);

#endif

/* Vectors of repairs: a ledger before, what is due, and the ledger after. */
#ifndef RV_CONFORM_EXPECT_REPAIR_H
#define RV_CONFORM_EXPECT_REPAIR_H

#include "lib/conform/trial.h"

struct rv_repair_vector {
	struct rv_span name;
	struct rv_span action;  /* none, terminated, quarantined */
	struct rv_span before;
	struct rv_span after;   /* recoveredAt is the vector's own */
	bool damaged;           /* a line that ends is no row: not a repair's to touch */
};

/* The next vector from `rest`; false at the end, or noted. */
bool rv_repair_vector_next(struct rv_trial *trial, struct rv_span *rest, struct rv_repair_vector *vector);

/* `got` begins with the vector's after, whatever its recoveredAt is; `whole`: and is no longer. */
bool rv_repair_vector_holds(const struct rv_repair_vector *vector, struct rv_span got, bool whole);

#endif

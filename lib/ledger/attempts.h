/* Inside the reports: the rows of attempts in the order in which they stand, files after each other. */
#ifndef RV_LEDGER_ATTEMPTS_H
#define RV_LEDGER_ATTEMPTS_H

#include <stddef.h>

#include "lib/ledger/view.h"

struct rv_attempts {
	const struct rv_view *view;
	size_t intent, outcome; /* of the next */
};

/* The next place of an intent or outcome row, or NULL. */
const struct rv_place *rv_attempts_next(struct rv_attempts *attempts);

#endif

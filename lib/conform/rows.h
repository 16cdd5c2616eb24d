/* A ledger as a check sees it: its lines, parsed, in order. */
#ifndef RV_CONFORM_ROWS_H
#define RV_CONFORM_ROWS_H

#include "lib/conform/trial.h"

struct rv_rows {
	const struct rv_json_node **row;
	size_t count;
};

/* Every line must be one JSON object and end with its newline: else noted, and NULL.  A ledger that is
 * not there has no rows. */
const struct rv_rows *rv_rows_read(struct rv_trial *trial, const char *path);

size_t rv_rows_count(const struct rv_rows *rows, const char *phase);
/* The n-th row of a phase; NULL if there are fewer. */
const struct rv_json_node *rv_rows_nth(const struct rv_rows *rows, const char *phase, size_t n);

/* The member is this string. */
bool rv_member_is(const struct rv_json_node *row, const char *name, const char *text);
/* Two rows' members have one value. */
bool rv_member_same(const struct rv_json_node *a, const struct rv_json_node *b, const char *name);
/* The string member, NUL-terminated and of the trial's; "" where it is none. */
const char *rv_member_text(struct rv_trial *trial, const struct rv_json_node *row, const char *name);
bool rv_is_hex64(struct rv_span text);

/* Exactly one intent and one outcome of this class, or with `phases` 1 the outcome alone; noted.
 * Returns the outcome. */
const struct rv_json_node *rv_expect_attempt(struct rv_trial *trial, const char *ledger, const char *outcome);

#endif

/*
 * Inputs with the right answers, built in from t/vectors (see its README.md), so that an installed
 * program has them.  vectors.c is made by lib/conform/vectors.sh when the package is built.
 */
#ifndef RV_CONFORM_VECTORS_H
#define RV_CONFORM_VECTORS_H

#include <stdbool.h>

#include "lib/base/text.h"

extern const struct rv_span rv_vectors_json;
extern const struct rv_span rv_vectors_keys;
extern const struct rv_span rv_vectors_ledger_repair;
extern const struct rv_span rv_vectors_ledger_scan;
extern const struct rv_span rv_vectors_numbers;

/* Take the next line, without its newline, from the front of `rest`; false at the end. */
bool rv_vectors_next(struct rv_span *rest, struct rv_span *line);

#endif

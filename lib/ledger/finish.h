/*
 * Finishing what interrupted repairs left (lib/ledger/torn.h), under the append lock.  The tail is rv_mend_tail()'s
 * business, and comes first: what is appended here would make it a line.
 */
#ifndef RV_LEDGER_FINISH_H
#define RV_LEDGER_FINISH_H

#include "lib/base/error.h"
#include "lib/ledger/mend.h"

/* Reads the whole ledger if there are copies.  *result: its last line that was finished, and the stray copies. */
int rv_finish_leftovers(const struct rv_mend *mend, struct rv_repair_result *result, struct rv_error *err);

#endif

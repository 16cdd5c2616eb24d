/*
 * Does an attempt without an outcome still run (contract, section 4)?  Its writer holds one byte of
 * the ledger under a lock for as long as it lives; any process of the same kernel can see that.
 */
#ifndef RV_LEDGER_LIVENESS_H
#define RV_LEDGER_LIVENESS_H

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/ledger/line.h"
#include "lib/ledger/source.h"

enum rv_state { RV_STATE_ORPHAN, RV_STATE_RUNNING, RV_STATE_UNKNOWN, RV_STATES };

/* "orphan", "running", "unknown" */
const char *rv_state_name(enum rv_state state);

/* `boot_id` is this kernel's, `now_ms` the wall clock. */
int rv_liveness_judge(struct rv_source *source, const struct rv_row *intent, struct rv_span boot_id, int64_t now_ms,
		      enum rv_state *state, struct rv_error *err);

#endif

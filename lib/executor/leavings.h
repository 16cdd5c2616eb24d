/*
 * What a dispatch leaves behind and has removed: its workdir, and what an engine ran for it.  Both are asked of
 * its slot, so that they happen also if this process dies at the next instruction.  Private to dispatch.c.
 */
#ifndef RV_EXECUTOR_LEAVINGS_H
#define RV_EXECUTOR_LEAVINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/executor/dispatch.h"

#define RV_LEAVINGS_UNDO_MS 22000 /* how long an engine's answer is waited for: beyond what the slot's worker gives it */

/* Ask for the workdir's removal; what an engine's run left is undone after it. */
void rv_leavings_remove(struct rv_dispatch *dispatch);
/* Ask that what the engine ran be undone, now: `undo` is RV_UNDO_NONE or RV_UNDO_FAILED when the answer has come. */
void rv_leavings_undo(struct rv_dispatch *dispatch);
/* After each turn: what takes too long is a warning. */
void rv_leavings_check(struct rv_dispatch *dispatch);
/* The loop failed: remove it here, at once. */
void rv_leavings_force(struct rv_dispatch *dispatch);
/* When to check at the latest; INT64_MAX: nothing is waited for. */
int64_t rv_leavings_deadline(const struct rv_dispatch *dispatch);

#endif

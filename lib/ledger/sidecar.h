/*
 * The sidecar <path>.repair-lock, by which the engine's writers keep each other from repairing at
 * once: made with O_EXCL, a token inside, stale after ten seconds in either clock direction.
 *
 * It speaks to them only.  Among this project's programs the append lock decides, and a sidecar is
 * touched under that lock alone: so whoever holds the lock and finds a sidecar with a token of
 * ours knows that its maker is dead, and need not wait.
 */
#ifndef RV_LEDGER_SIDECAR_H
#define RV_LEDGER_SIDECAR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

struct rv_sidecar {
	char *path; /* owned; NULL while not held */
	char token[48];
};

#define RV_SIDECAR_INIT { .path = NULL, .token = "" }

/* Under the append lock of `ledger_path`.  RV_E_BUSY past the monotonic deadline. */
int rv_sidecar_take(struct rv_sidecar *sidecar, const char *ledger_path, int64_t deadline_ms, struct rv_error *err);
/* Before every destructive step: still ours?  Keeps it fresh.  RV_E_BUSY where it was stolen. */
int rv_sidecar_check(const struct rv_sidecar *sidecar, struct rv_error *err);
/* Remove it if it is still ours; not held: nothing. */
void rv_sidecar_release(struct rv_sidecar *sidecar);
/* Forget it and leave it there: what it was taken for is not finished. */
void rv_sidecar_leave(struct rv_sidecar *sidecar);

/* Is there one at all (any maker)?  And one that a dead repair of ours left (ask under the lock)? */
bool rv_sidecar_exists(const char *ledger_path);
bool rv_sidecar_is_ours(const char *ledger_path);

#endif

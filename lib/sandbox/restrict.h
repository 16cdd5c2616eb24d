/*
 * The steps by which a process gives up what it could do, in the order they must be taken.  Each returns -1
 * with errno; no heap.  Private to lib/sandbox.
 */
#ifndef RV_SANDBOX_RESTRICT_H
#define RV_SANDBOX_RESTRICT_H

#include "lib/sandbox/policy.h"

/* No new privileges; the bounding set, and all capabilities, gone: with CAP_SYS_ADMIN a read-only bind could be
 * undone. */
int rv_restrict_privileges(void);
/* The capabilities alone: its last part. */
int rv_restrict_capabilities(void);

/* Soft and hard alike, once, and only down: EINVAL where the caller's own hard limit is lower already, since
 * what was asked for cannot be had. */
int rv_restrict_limits(const uint64_t limits[RV_LIMITS]);
int rv_restrict_measure(uint64_t soft[RV_LIMITS], uint64_t hard[RV_LIMITS]);

/* The policy's limits with the run's own where it asks for them. */
void rv_restrict_choose(const struct rv_instance *instance, uint64_t limits[RV_LIMITS]);

#endif

/*
 * The files that a sandboxed tool is held by: the ledger, the manifest, the approvals.  Where --rw shows one of them,
 * the tool can forge its own rows, or its own leave, and the sandbox sees to nothing (contract, section 3).
 */
#ifndef RV_EXECUTOR_GUARD_H
#define RV_EXECUTOR_GUARD_H

#include "lib/base/error.h"

struct rv_service_options;

/* Is one of them, or a link that it is named by, at or below what --rw shows?  Then RV_E_CONFIG, with both names. */
int rv_guard_check(const struct rv_service_options *options, struct rv_error *err);

#endif

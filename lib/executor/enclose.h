/*
 * `--sandbox kernel` as a way to start tools (lib/executor/isolation.h): the only place that knows both the slots
 * and lib/sandbox.  What was asked for is enforced, or refused before anything is written: a slot without the
 * sandbox does not come up.
 */
#ifndef RV_EXECUTOR_ENCLOSE_H
#define RV_EXECUTOR_ENCLOSE_H

#include "lib/executor/isolation.h"
#include "lib/process/slot.h"
#include "lib/sandbox/kernel.h"

struct rv_enclose {
	struct rv_kernel kernel;
	struct rv_enclosure enclosure;
};

/* Before the slots are started: what was asked for is checked, and the slots' enclosure is set.  Lists are
 * NULL-terminated or NULL.  RV_E_CONFIG.  Released in either case, once the slots are stopped. */
int rv_enclose_open(struct rv_enclose *enclose, struct rv_slots *slots, const char *const *readable,
		    const char *const *writable, bool net, const char *workdir_base, struct rv_error *err);
void rv_enclose_release(struct rv_enclose *enclose);

/* isolation_data is the struct rv_enclose. */
extern const struct rv_isolation rv_isolation_kernel;

#endif

/*
 * Can this host enforce a policy?  Found by doing it: this program itself is the runtime of a run that asks for its
 * version, behind the whole boundary, down to the exec.  A host that lets unshare(2) succeed and denies the mounts is
 * seen so, and only so.
 */
#ifndef RV_CONFINE_HOSTPROBE_H
#define RV_CONFINE_HOSTPROBE_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/sandbox/policy.h"

/* RV_E_HOST: what failed, why, and what an administrator changes. */
int rv_hostprobe_policy(const struct rv_policy *policy, struct rv_error *err);

/* The same before a run, which is itself the proof that a program runs behind it: everything but the exec
 * (rv_boundary_rehearse), at a fraction of the cost.  `filter` is the policy's, compiled; *pid is a process
 * to wait for some time, -1: none. */
int rv_hostprobe_rehearse(const struct rv_policy *policy, const struct rv_filter_program *filter, pid_t *pid,
			  struct rv_error *err);

/* A line {"name","ok","why","remedy"} a facility and a profile.  `cgroup`: as for a run (service.h).  *good: linux/1 holds. */
int rv_hostprobe_add_json(struct rv_buffer *out, const char *cgroup, bool *good, struct rv_error *err);

#endif

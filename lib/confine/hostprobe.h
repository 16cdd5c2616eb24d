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
 * (rv_boundary_rehearse), at a fraction of the cost.  It goes on in a thread of its own between these two calls, which
 * spends its time in the kernel: what the caller does meanwhile decides nothing before the answer is there.  `filter` is
 * the policy's, compiled, and stays until the answer. */
struct rv_rehearsal;

/* Begin; *rehearsal is for the next call alone.  RV_E_HOST, and then it is NULL: that is the answer. */
int rv_hostprobe_begin(const struct rv_policy *policy, const struct rv_filter_program *filter, struct rv_rehearsal **rehearsal,
		       struct rv_error *err);

/* Wait for the answer, take it, release.  *pid is a process to wait for some time, -1: none.  RV_E_HOST. */
int rv_hostprobe_answer(struct rv_rehearsal *rehearsal, pid_t *pid, struct rv_error *err);

/* A line {"name","ok","why","remedy"} a facility and a profile.  `cgroup`: as for a run (service.h).  *good: linux/1 holds. */
int rv_hostprobe_add_json(struct rv_buffer *out, const char *cgroup, bool *good, struct rv_error *err);

#endif

/*
 * What this host can enforce, found by doing it: a process is started in the namespaces, mounts, is
 * restricted, and executes.  A host that lets unshare(2) succeed and denies the mounts (AppArmor's
 * restriction of user namespaces) is seen so, and only so.
 */
#ifndef RV_SANDBOX_PROBE_H
#define RV_SANDBOX_PROBE_H

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/sandbox/policy.h"

/* One facility. */
struct rv_probe {
	const char *name; /* "user-namespace", "mounts", "seccomp", "landlock", "network-namespace", "procfs", ... */
	bool ok;
	int errnum;             /* of what was refused */
	char why[256];          /* what was found: "" where it is ok, or the ABI */
	const char *remedy;     /* what an administrator changes; "" where it is ok */
};

#define RV_PROBES_MAX 16

/* Try each facility on its own; returns how many were tried. */
int rv_probe_facilities(struct rv_probe probes[RV_PROBES_MAX]);

/* Everything that this policy needs, at once, down to the exec of a program behind it.  0, or -1 with
 * RV_E_CONFIG and a message that names the facility and its remedy. */
int rv_probe_policy(const struct rv_policy *policy, struct rv_error *err);

/* The same, as data for `--probe`. */
void rv_probe_profile(const struct rv_policy *policy, struct rv_probe *probe);

/* What can cap the memory of a whole run: a writable cgroup, or only a watch from outside. */
enum rv_memory_cap { RV_MEMORY_WATCH, RV_MEMORY_CGROUP_V2, RV_MEMORY_CGROUP_V1 };
enum rv_memory_cap rv_probe_memory(const char *cgroup /* --cgroup DIR, or NULL */);

#endif

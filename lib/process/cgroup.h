/*
 * Limits on a whole tree of processes: each attempt in a cgroup of its own, made before its intent and
 * removed after its end.  Version 2 below a directory that is delegated to us (--cgroup DIR), or version 1 as
 * root, beside this process's own groups: cgroups(7).
 *
 * Whether the limits can be had is found by doing it, once, with a child that goes into a group; what cannot
 * be had is refused with the remedy.  A janitor, a process of its own, removes what a killed rv-exec leaves,
 * and kills what is in it; should that be killed, too, the next start does it, told by the lock that an owner
 * holds on each of its groups.
 */
#ifndef RV_PROCESS_CGROUP_H
#define RV_PROCESS_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/process/spawn.h"

#define RV_CGROUP_TREES 2 /* version 1 has a tree for memory and another for pids */
#define RV_CGROUP_NAME 64

/* One place where groups are made. */
struct rv_cgroup_tree {
	int dir;        /* owned; -1 */
	bool memory;    /* what its groups limit */
	bool processes;
};

struct rv_cgroups {
	bool unified;   /* version 2 */
	struct rv_cgroup_tree trees[RV_CGROUP_TREES];
	int count;      /* 0: no groups are made */
	uint64_t max_memory;    /* bytes, UINT64_MAX: none */
	uint64_t max_processes;
	char prefix[32];        /* of this process's groups: "rv-exec-1a2b3c4d-" */
	struct rv_child janitor;
	int line;       /* owned: its end of file sets the janitor to work; -1 */
};

#define RV_CGROUPS_INIT { .trees = { { .dir = -1 }, { .dir = -1 } }, .janitor = RV_CHILD_INIT, .line = -1 }

/* `dir` NULL: version 1.  RV_E_CONFIG, with what to do about it.  Release it in either case. */
int rv_cgroups_open(struct rv_cgroups *groups, const char *dir, uint64_t max_memory, uint64_t max_processes,
		    struct rv_error *err);
void rv_cgroups_release(struct rv_cgroups *groups);

/* One attempt's group, as descriptors: in each tree the directory, and where a process writes "0" to go in. */
struct rv_cgroup {
	const struct rv_cgroups *groups; /* borrowed; NULL: there is none */
	char name[RV_CGROUP_NAME];
	int dirs[RV_CGROUP_TREES];
	int entries[RV_CGROUP_TREES];
};

#define RV_CGROUP_INIT { .groups = NULL, .name = "", .dirs = { -1, -1 }, .entries = { -1, -1 } }

/* What its processes ran into. */
struct rv_cgroup_facts {
	bool memory;    /* one at least was killed for want of memory */
	bool processes; /* a fork was refused */
	int64_t peak_bytes; /* -1: not known */
};

/* `id` tells it from others of this process.  RV_E_CONFIG; nothing is left then. */
int rv_cgroup_make(struct rv_cgroup *group, const struct rv_cgroups *groups, const char *id, struct rv_error *err);
/* Before it is removed. */
void rv_cgroup_measure(const struct rv_cgroup *group, struct rv_cgroup_facts *facts);
/* Kill what is in it and remove it; nothing where there is none.  false: it stays, for the janitor. */
bool rv_cgroup_remove(struct rv_cgroup *group);
/* Let go of it as it is, with whatever is in it: the janitor's, once this process has ended. */
void rv_cgroup_leave(struct rv_cgroup *group);

#endif

/* What init and the program behind the boundary share.  Private to lib/sandbox. */
#ifndef RV_SANDBOX_BEHIND_H
#define RV_SANDBOX_BEHIND_H

#include "lib/sandbox/boundary.h"

#define RV_SOURCES_MAX 512

struct rv_behind {
	const struct rv_boundary *boundary;
	struct rv_boundary_report report;
	bool rehearsed;                   /* there is no program: no call of it needs to be allowed */
	bool dropped;                     /* privileges: by init, for both */
	int stdio[3], record, go, status; /* lifted */
	int sources[RV_SOURCES_MAX];      /* O_PATH, while the root is made */
};

/* Say which step failed, with errno; what the process then exits with. */
int rv_behind_refuse(struct rv_behind *run, int step);

/* The soft limit of descriptors so high that the runtime has its number; the hard one is the caller's. */
int rv_behind_raise_descriptors(void);

/* Where a source is, inside. */
const char *rv_behind_target(const struct rv_mount *mount, const struct rv_source *source);

/* Init's first part: the sources are opened, the ids taken, the new root is made and entered.  The step that failed. */
int rv_behind_make_root(struct rv_behind *run);

/* Privileges, limits, Landlock, descriptors, seccomp, for good.  The step that failed. */
int rv_behind_give_up(struct rv_behind *run);

/* Behind everything: limits and effects, into the report. */
int rv_behind_measure(struct rv_behind *run);

/* The program's role: give everything up, show it, wait for the host's byte, exec. */
int rv_behind_program(struct rv_behind *run);

#endif

/*
 * The tool's side between clone and exec.  The child shares the worker's memory until it execs or exits
 * (CLONE_VM | CLONE_VFORK, as posix_spawn does: no page table is copied), so a step that fails is left
 * in `failure`, and a set-up failure is never taken for the tool's own status.  The worker stands still
 * meanwhile; should an exec hang (a dead network file system), the host's own backstop kills the worker,
 * and with it the namespace.  Private to lib/process.
 */
#ifndef RV_PROCESS_LAUNCH_H
#define RV_PROCESS_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/process/wire.h"

struct rv_enclosure;

struct rv_launch {
	const char *path; /* what is executed; argv[0] may differ */
	const char *cwd;
	char **argv;
	char **envp;
	int stdio[3];
	const int *groups;    /* where to write "0" to go into a cgroup */
	int group_count;
	int64_t cpu_seconds;  /* RLIMIT_CPU; 0: none */
	uint64_t data_bytes;  /* RLIMIT_DATA; UINT64_MAX: none */
	bool own_mounts; /* its own mount namespace, so that the slot's stays as it is */
	const struct rv_enclosure *enclosure; /* lib/process/slot.h; NULL: none */
	bool privileged; /* no no_new_privs: a setuid launcher */
	bool guarded_by_parent; /* PDEATHSIG: where no namespace does it */
	/* filled in */
	pid_t parent;
	int step;   /* enum rv_start_step that failed, RV_START_OK where the exec happened */
	int errnum;
};

/* Start it; the pid, which is to be reaped also where launch->step says that it failed.  -1 with errno
 * where there is no child at all. */
pid_t rv_launch(struct rv_launch *launch);

#endif

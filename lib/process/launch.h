/*
 * The tool's side between fork and exec.  A step that fails is reported as {step, errno} on a
 * CLOEXEC pipe, so that a set-up failure is never taken for the tool's own status; end of file
 * without a report means that the exec happened.  Private to lib/process.
 */
#ifndef RV_PROCESS_LAUNCH_H
#define RV_PROCESS_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/process/wire.h"

struct rv_launch {
	const char *path; /* what is executed; argv[0] may differ */
	const char *cwd;
	char **argv;
	char **envp;
	int stdio[3];
	bool own_mounts; /* its own mount namespace, so that the slot's stays as it is */
	bool guarded_by_parent; /* PDEATHSIG: where no namespace does it */
};

struct rv_launch_report {
	int32_t step;
	int32_t errnum;
};

/* fork; the child never returns.  *report is the reading end, non-blocking.  -1 with errno. */
pid_t rv_launch(const struct rv_launch *launch, int *report);

/* The report: 1 exec happened, 0 not known yet, -1 failed and *failure is set. */
int rv_launch_report(int report, struct rv_launch_report *failure);

#endif

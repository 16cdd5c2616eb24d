#include "lib/process/inherited.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IO_PRIORITY_OF_PROCESS 1 /* IOPRIO_WHO_PROCESS: glibc names neither the call nor its words (ioprio_get(2)) */

void rv_inherited_read(struct rv_inherited *inherited, int oom_score)
{
	long unread = 0;

	memset(inherited, 0, sizeof *inherited);
	for (int i = 0; i < RLIM_NLIMITS; i++)
		unread |= getrlimit((__rlimit_resource_t)i, &inherited->limits[i]);
	unread |= syscall(SYS_sched_getattr, 0, inherited->scheduling, (unsigned)sizeof inherited->scheduling, 0U);
	unread |= sched_getaffinity(0, sizeof inherited->processors, &inherited->processors);
	inherited->io_priority = (int)syscall(SYS_ioprio_get, IO_PRIORITY_OF_PROCESS, 0);
	inherited->timer_slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	if (oom_score >= 0)
		unread |= pread(oom_score, inherited->oom_score, sizeof inherited->oom_score, 0);
	(void)unread;
}

/* Processors also come and go by themselves, which is no tool's doing; and they can be asked for again. */
bool rv_inherited_differs(const struct rv_inherited *then, int oom_score)
{
	struct rv_inherited now;

	rv_inherited_read(&now, oom_score);
	if (!CPU_EQUAL(&now.processors, &then->processors)) {
		if (sched_setaffinity(0, sizeof then->processors, &then->processors) != 0)
			return true;
		now.processors = then->processors;
	}
	return memcmp(&now, then, sizeof now) != 0;
}

#include "lib/process/slice.h"

#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RESET_ON_FORK 0x01U /* SCHED_FLAG_RESET_ON_FORK */
#define SLICE_NS 100000U    /* the shortest that the kernel grants */

/* struct sched_attr, which glibc has no name for yet (sched_setattr(2)). */
struct attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime; /* for SCHED_OTHER: the slice */
	uint64_t deadline;
	uint64_t period;
};

void rv_slice_shorten(void)
{
	struct attributes attributes;
	long refused = 0;

	memset(&attributes, 0, sizeof attributes);
	attributes.size = sizeof attributes;
	attributes.policy = SCHED_OTHER;
	attributes.flags = RESET_ON_FORK;
	attributes.nice = getpriority(PRIO_PROCESS, 0);
	attributes.runtime = SLICE_NS;
	/* Whoever asked for another policy knows better; a negative niceness would not reach the tools. */
	if (sched_getscheduler(0) == SCHED_OTHER && attributes.nice >= 0)
		refused = syscall(SYS_sched_setattr, 0, &attributes, 0U);
	(void)refused;
}

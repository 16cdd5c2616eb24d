/*
 * What a tool inherits of the worker that starts it, and what an earlier tool of the same user, or of root, may have set
 * there: neither a signal nor a trace reaches the worker, but prlimit(2), sched_setattr(2), sched_setaffinity(2),
 * ioprio_set(2) and the files oom_score_adj and timerslack_ns of proc(5) ask for no more.  Private to lib/process.
 */
#ifndef RV_PROCESS_INHERITED_H
#define RV_PROCESS_INHERITED_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

struct rv_inherited {
	struct rlimit limits[RLIM_NLIMITS];
	uint64_t scheduling[16]; /* struct sched_attr: policy, priority, niceness, and what a later kernel adds */
	cpu_set_t processors;
	int io_priority;
	int timer_slack_ns;
	char oom_score[16]; /* as the file says it */
};

/* Of this process; `oom_score` is /proc/self/oom_score_adj, open, or -1.  What cannot be read is the same each time. */
void rv_inherited_read(struct rv_inherited *inherited, int oom_score);

/* Of this process, too; its processors are set again where they can be. */
bool rv_inherited_differs(const struct rv_inherited *then, int oom_score);

#endif

/*
 * The boundary without a program: what a host cannot do fails here as it would before one, and nothing has been
 * written yet.  One process, pid 1 of its namespaces, is init and program in turn; it maps its own id, since its
 * parent sleeps until it is gone.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/idmap.h"
#include "lib/sandbox/vfork.h"
#include "lib/sandbox/behind.h"

struct rehearsal {
	struct rv_behind behind;
	uid_t uid; /* the caller's, which have no name inside before they are mapped */
	gid_t gid;
};

static int map_own_ids(const struct rehearsal *rehearsal)
{
	const struct rv_instance *instance = &rehearsal->behind.boundary->instance;
	const struct rv_idmap map = { .inside_uid = instance->uid, .outside_uid = rehearsal->uid,
				      .inside_gid = instance->gid, .outside_gid = rehearsal->gid };
	struct rv_error err = RV_ERROR_INIT;

	if (rv_idmap_write(0, &map, &err) == 0)
		return 0;
	errno = err.errnum;
	return -1;
}

static int go_through(struct rehearsal *rehearsal)
{
	struct rv_behind *behind = &rehearsal->behind;
	const struct rv_boundary *boundary = behind->boundary;
	int step;

	/* Its own copy: what the caller, or the runs beside this one, have open would fill the limit that is set below. */
	if (syscall(SYS_close_range, 3U, UINT_MAX, 0U) != 0)
		return RV_BOUNDARY_DESCRIPTORS;
	if ((boundary->instance.policy->namespaces & CLONE_NEWUSER) != 0 && map_own_ids(rehearsal) != 0)
		return RV_BOUNDARY_IDS;
	if (boundary->instance.policy->namespaces != 0) {
		step = rv_behind_make_root(behind);
		if (step != RV_BOUNDARY_READY)
			return step;
	}
	if (rv_behind_raise_descriptors() != 0)
		return RV_BOUNDARY_RUNTIME;
	if (chdir(boundary->cwd) != 0)
		return RV_BOUNDARY_CWD;
	step = rv_behind_give_up(behind);
	if (step != RV_BOUNDARY_READY)
		return step;
	return rv_behind_measure(behind) != 0 ? RV_BOUNDARY_LIMITS : RV_BOUNDARY_READY;
}

static int rehearse(void *data)
{
	struct rehearsal *rehearsal = data;
	struct rv_boundary_report *report = &rehearsal->behind.report;

	report->step = go_through(rehearsal);
	report->errnum = report->step != RV_BOUNDARY_READY ? errno : 0;
	report->size = sizeof *report; /* last: it came to its end */
	return 0;
}

int rv_boundary_rehearse(const struct rv_boundary *boundary, struct rv_boundary_report *report, pid_t *pid)
{
	struct rehearsal *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int errnum;

	*pid = -1;
	if (shared == MAP_FAILED)
		return -1;
	*shared = (struct rehearsal){ .behind = { .boundary = boundary, .rehearsed = true }, .uid = geteuid(), .gid = getegid() };
	shared->behind.report.detail = -1;
	shared->behind.report.landlock_abi = boundary->instance.landlock_abi;
	*pid = rv_vfork(boundary->instance.policy->namespaces, rehearse, shared);
	errnum = errno;
	if (*pid > 0 && shared->behind.report.size == 0) { /* a sanitizer's build does not wait; or it was ended */
		siginfo_t info;

		(void)waitid(P_PID, (id_t)*pid, &info, WEXITED | WNOWAIT);
	}
	*report = shared->behind.report;
	(void)munmap(shared, sizeof *shared);
	errno = errnum;
	return *pid > 0 ? 0 : -1;
}

/*
 * Two roles.  Init is pid 1 of the namespaces, since as pid 1 a runtime's own abort and the signals that end
 * a program would do nothing; it mounts, starts the program, and says how it ended on a descriptor that the
 * program never has.  The program gives up everything, shows that it has, and waits for the host's byte.
 */
#include "lib/sandbox/boundary.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/close_range.h>

#include "lib/base/cleanup.h"
#include "lib/base/idmap.h"
#include "lib/sandbox/vfork.h"
#include "lib/sandbox/behind.h"
#include "lib/sandbox/mounts.h"
#include "lib/sandbox/restrict.h"

#define INSIDE_ID 1000
#define ROOTS_ID 65534 /* for root: an id that owns nothing */
#define LIFTED 10      /* above all numbers that the program has */

const char *rv_boundary_step_name(int step)
{
	static const char *const names[] = {
		[RV_BOUNDARY_READY] = "none", [RV_BOUNDARY_GUARD] = "guard", [RV_BOUNDARY_SOURCE] = "source",
		[RV_BOUNDARY_IDS] = "ids", [RV_BOUNDARY_ROOT] = "root", [RV_BOUNDARY_MOUNT] = "mount",
		[RV_BOUNDARY_PIVOT] = "pivot", [RV_BOUNDARY_FORK] = "fork", [RV_BOUNDARY_STDIO] = "stdio",
		[RV_BOUNDARY_RUNTIME] = "runtime", [RV_BOUNDARY_CWD] = "cwd", [RV_BOUNDARY_PRIVILEGES] = "privileges",
		[RV_BOUNDARY_LIMITS] = "limits", [RV_BOUNDARY_LANDLOCK] = "landlock",
		[RV_BOUNDARY_DESCRIPTORS] = "descriptors", [RV_BOUNDARY_SECCOMP] = "seccomp",
	};

	return step >= 0 && (size_t)step < sizeof names / sizeof names[0] ? names[step] : "unknown";
}

/* ---- the host's part ---- */

static bool has_user_namespace(const struct rv_boundary *boundary)
{
	return (boundary->instance.policy->namespaces & CLONE_NEWUSER) != 0;
}

void rv_boundary_ids(struct rv_boundary *boundary)
{
	bool root = geteuid() == 0;
	bool mapped = has_user_namespace(boundary);

	boundary->outside_uid = root && mapped ? ROOTS_ID : geteuid();
	boundary->outside_gid = root && mapped ? ROOTS_ID : getegid();
	boundary->instance.uid = mapped ? INSIDE_ID : boundary->outside_uid;
	boundary->instance.gid = mapped ? INSIDE_ID : boundary->outside_gid;
}

int rv_boundary_map(pid_t child, void *data, struct rv_error *err)
{
	const struct rv_boundary *boundary = data;
	const struct rv_idmap map = {
		.inside_uid = boundary->instance.uid,
		.outside_uid = boundary->outside_uid,
		.inside_gid = boundary->instance.gid,
		.outside_gid = boundary->outside_gid,
		/* root may map any id without it, and its child has groups to let go of */
		.keep_setgroups = geteuid() == 0,
	};

	return has_user_namespace(boundary) ? rv_idmap_write(child, &map, err) : 0;
}

/* ---- both roles ---- */

/* Lift what is ours above all numbers in use, and close everything else: a copy of the host's own ends would
 * hide its end. */
static int take_descriptors(struct rv_behind *run)
{
	const struct rv_boundary *boundary = run->boundary;
	const int given[6] = { boundary->stdio[0], boundary->stdio[1], boundary->stdio[2],
			       boundary->record,   boundary->go,       boundary->status };
	int *const kept[6] = { &run->stdio[0], &run->stdio[1], &run->stdio[2], &run->record, &run->go, &run->status };
	int first = LIFTED;

	for (int i = 0; i < 6; i++) {
		if (given[i] >= first)
			first = given[i] + 1;
	}
	run->record = boundary->record; /* so that a failure here can be said */
	for (int i = 0; i < 6; i++) {
		int lifted = given[i] < 0 ? -1 : fcntl(given[i], F_DUPFD_CLOEXEC, first);

		if (given[i] >= 0 && lifted < 0)
			return -1;
		*kept[i] = lifted;
	}
	return 0;
}

static int close_strays(const struct rv_behind *run)
{
	const int kept[6] = { run->stdio[0], run->stdio[1], run->stdio[2], run->record, run->go, run->status };
	unsigned from = 0;

	for (;;) { /* the lowest of ours at or above `from`; close what is below it */
		int next = INT_MAX;

		for (int i = 0; i < 6; i++) {
			if (kept[i] >= 0 && (unsigned)kept[i] >= from && kept[i] < next)
				next = kept[i];
		}
		if (next == INT_MAX)
			return (int)syscall(SYS_close_range, from, UINT_MAX, 0U);
		if ((unsigned)next > from && syscall(SYS_close_range, from, (unsigned)next - 1, 0U) != 0)
			return -1;
		from = (unsigned)next + 1;
	}
}

/* ---- init ---- */

/* Before anything is mounted over the paths that lead to them. */
static int open_sources(struct rv_behind *run)
{
	const struct rv_instance *instance = &run->boundary->instance;

	if (instance->source_count > RV_SOURCES_MAX) {
		errno = E2BIG;
		return -1;
	}
	for (size_t i = 0; i < instance->source_count; i++) {
		run->report.detail = (int32_t)i;
		run->sources[i] = instance->sources[i].link != NULL ? -1 : rv_mounts_open_source(&instance->sources[i]);
		if (run->sources[i] < 0 && instance->sources[i].link == NULL)
			return -1;
	}
	run->report.detail = -1;
	return 0;
}

static int take_ids(const struct rv_boundary *boundary)
{
	const struct rv_instance *instance = &boundary->instance;

	/* The calls themselves: the library's would wait for the host's other threads, which this copy does not have. */
	if (syscall(SYS_setgroups, 0, NULL) != 0 && errno != EPERM) /* an ordinary user's: setgroups is denied */
		return -1;
	if (syscall(SYS_setresgid, instance->gid, instance->gid, instance->gid) != 0)
		return -1;
	return (int)syscall(SYS_setresuid, instance->uid, instance->uid, instance->uid);
}

static int mount_sources(struct rv_behind *run, int root, const struct rv_mount *mount)
{
	const struct rv_instance *instance = &run->boundary->instance;

	for (size_t i = 0; i < instance->source_count; i++) {
		const struct rv_source *source = &instance->sources[i];
		const char *target = rv_behind_target(mount, source);
		rv_auto_fd int tree = -1;

		if (strcmp(source->name, mount->name) != 0)
			continue;
		run->report.detail = (int32_t)i;
		if (mount->kind == RV_MOUNT_ALIAS) {
			if (rv_mounts_link(root, target, source->link) != 0)
				return -1;
			continue;
		}
		tree = rv_mounts_clone(run->sources[i], mount->flags);
		if (tree < 0 || rv_mounts_attach(root, target, tree) != 0)
			return -1;
	}
	run->report.detail = -1;
	return 0;
}

static int mount_row(struct rv_behind *run, int root, const struct rv_mount *mount)
{
	rv_auto_fd int tree = -1;

	switch (mount->kind) {
	case RV_MOUNT_SOURCE:
	case RV_MOUNT_ALIAS:
		return mount_sources(run, root, mount);
	case RV_MOUNT_EMPTY:
		return rv_mounts_directory(root, mount->target);
	case RV_MOUNT_TMPFS:
	case RV_MOUNT_PROC:
		tree = rv_mounts_make(mount->kind == RV_MOUNT_PROC ? "proc" : "tmpfs", mount->source, mount->flags);
		return tree < 0 ? -1 : rv_mounts_attach(root, mount->target, tree);
	case RV_MOUNT_HOST:
	case RV_MOUNT_LINK:
	case RV_MOUNT_TEXT:
		break;
	}
	errno = EINVAL; /* a profile of rv-confine takes nothing from the host by its own choice */
	return -1;
}

int rv_behind_make_root(struct rv_behind *run)
{
	const struct rv_policy *policy = run->boundary->instance.policy;
	int root;

	if (open_sources(run) != 0)
		return RV_BOUNDARY_SOURCE;
	if (has_user_namespace(run->boundary) && take_ids(run->boundary) != 0)
		return RV_BOUNDARY_IDS;
	root = rv_mounts_private() != 0 ? -1 : rv_mounts_root("mode=0755,size=1m,nr_inodes=8k");
	if (root < 0)
		return RV_BOUNDARY_ROOT;
	for (size_t i = 0; i < policy->mount_count; i++) {
		if (mount_row(run, root, &policy->mounts[i]) != 0)
			return RV_BOUNDARY_MOUNT;
	}
	if ((policy->hostname != NULL && sethostname(policy->hostname, strlen(policy->hostname)) != 0) ||
	    (run->rehearsed ? rv_mounts_pivot(root) : rv_mounts_enter(root)) != 0)
		return RV_BOUNDARY_PIVOT;
	return RV_BOUNDARY_READY;
}

/* Only this: wait, say how it ended, end. */
static int watch_program(struct rv_behind *run, pid_t program)
{
	int status = 0;
	pid_t got;

	for (int i = 0; i < 3; i++)
		(void)close(run->stdio[i]);
	(void)close(run->record);
	(void)close(run->go);
	do
		got = waitpid(program, &status, 0);
	while (got < 0 && errno == EINTR);
	if (got != program || write(run->status, &status, sizeof status) != (ssize_t)sizeof status)
		return RV_BOUNDARY_REFUSED;
	return 0;
}

/* The program's own: it shares init's memory until its exec. */
struct start {
	struct rv_behind run;
};

static int program_main(void *data)
{
	struct start *start = data;

	return rv_behind_program(&start->run);
}

static int run_init(struct rv_behind *run)
{
	int step = rv_behind_make_root(run);
	struct start start;
	pid_t program;

	if (step != RV_BOUNDARY_READY)
		return rv_behind_refuse(run, step);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
		return rv_behind_refuse(run, RV_BOUNDARY_GUARD);
	if (rv_restrict_privileges() != 0) /* once for both, and nothing behind this needs any */
		return rv_behind_refuse(run, RV_BOUNDARY_PRIVILEGES);
	run->dropped = true;
	start.run = *run;
	program = rv_vfork(0, program_main, &start);
	if (program < 0)
		return rv_behind_refuse(run, RV_BOUNDARY_FORK);
	return watch_program(run, program);
}

int rv_boundary_main(void *data)
{
	struct rv_behind run = { .boundary = data };

	run.report.size = sizeof run.report;
	run.report.detail = -1;
	run.report.landlock_abi = run.boundary->instance.landlock_abi;
	if (take_descriptors(&run) != 0 || close_strays(&run) != 0)
		return rv_behind_refuse(&run, RV_BOUNDARY_DESCRIPTORS);
	(void)setsid();
	if (run.boundary->instance.policy->namespaces == 0)
		return rv_behind_program(&run);
	return run_init(&run);
}

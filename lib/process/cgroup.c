#include "lib/process/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/text.h"
#include "lib/process/cgroup_tree.h"

#define TRIES 5

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/* ---- the limits ---- */

static int set_number(int dir, const char *file, uint64_t value, struct rv_error *err)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	return rv_cgroup_file_write(dir, file, text, err);
}

/* Version 1 counts swap in another file, which is there only where swap is accounted for. */
static int limit_memory(int dir, bool unified, uint64_t bytes, struct rv_error *err)
{
	struct rv_error ignored = RV_ERROR_INIT;

	if (!unified) {
		if (set_number(dir, "memory.limit_in_bytes", bytes, err) != 0)
			return -1;
		return faccessat(dir, "memory.memsw.limit_in_bytes", F_OK, 0) != 0
			       ? 0
			       : set_number(dir, "memory.memsw.limit_in_bytes", bytes, err);
	}
	if (set_number(dir, "memory.max", bytes, err) != 0)
		return -1;
	if (faccessat(dir, "memory.swap.max", F_OK, 0) == 0 && set_number(dir, "memory.swap.max", 0, err) != 0)
		return -1;
	(void)rv_cgroup_file_write(dir, "memory.oom.group", "1", &ignored); /* the tree is one; since Linux 4.19 */
	return 0;
}

static int set_limits(const struct rv_cgroups *groups, const struct rv_cgroup_tree *tree, int dir, struct rv_error *err)
{
	if (tree->memory && groups->max_memory != UINT64_MAX &&
	    limit_memory(dir, groups->unified, groups->max_memory, err) != 0)
		return rv_error_wrap(err, "--max-memory");
	if (tree->processes && groups->max_processes != UINT64_MAX &&
	    set_number(dir, "pids.max", groups->max_processes, err) != 0)
		return rv_error_wrap(err, "--max-processes");
	return 0;
}

/* ---- one group ---- */

static int make_in(struct rv_cgroup *group, int i, struct rv_error *err)
{
	const struct rv_cgroups *groups = group->groups;
	const struct rv_cgroup_tree *tree = &groups->trees[i];

	if (mkdirat(tree->dir, group->name, 0755) != 0)
		return rv_error_set(err, RV_E_CONFIG, errno, "cgroup %s", group->name);
	group->dirs[i] = openat(tree->dir, group->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* who holds this lock is alive: see rv_cgroup_sweep() */
	if (group->dirs[i] < 0 || flock(group->dirs[i], LOCK_SH | LOCK_NB) != 0)
		return rv_error_set(err, RV_E_CONFIG, errno, "cgroup %s", group->name);
	group->entries[i] = openat(group->dirs[i], "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (group->entries[i] < 0)
		return rv_error_set(err, RV_E_CONFIG, errno, "cgroup.procs");
	return set_limits(groups, tree, group->dirs[i], err);
}

static int make_all(struct rv_cgroup *group, const struct rv_cgroups *groups, const char *id, struct rv_error *err)
{
	*group = (struct rv_cgroup)RV_CGROUP_INIT;
	if (groups->count == 0)
		return 0;
	group->groups = groups;
	(void)snprintf(group->name, sizeof group->name, "%s%.31s", groups->prefix, id);
	for (int i = 0; i < groups->count; i++) {
		if (make_in(group, i, err) != 0) {
			(void)rv_cgroup_remove(group);
			err->code = RV_E_CONFIG;
			return -1;
		}
	}
	return 0;
}

/* Another's sweep may look into a group before its owner has the lock. */
int rv_cgroup_make(struct rv_cgroup *group, const struct rv_cgroups *groups, const char *id, struct rv_error *err)
{
	for (int i = 0; i < TRIES; i++) {
		rv_error_clear(err);
		if (make_all(group, groups, id, err) == 0)
			return 0;
		if (err->errnum != ENOENT && err->errnum != ENODEV && err->errnum != EWOULDBLOCK)
			break;
	}
	return -1;
}

bool rv_cgroup_remove(struct rv_cgroup *group)
{
	bool gone = true;

	if (group->groups == NULL)
		return true;
	for (int i = 0; i < group->groups->count; i++) {
		const struct rv_cgroup_tree *tree = &group->groups->trees[i];

		gone = rv_cgroup_end(tree->dir, group->name) && gone;
	}
	rv_cgroup_leave(group);
	return gone;
}

void rv_cgroup_leave(struct rv_cgroup *group)
{
	for (int i = 0; i < RV_CGROUP_TREES; i++) {
		close_fd(&group->entries[i]);
		close_fd(&group->dirs[i]);
	}
	group->groups = NULL;
}

void rv_cgroup_measure(const struct rv_cgroup *group, struct rv_cgroup_facts *facts)
{
	*facts = (struct rv_cgroup_facts){ .peak_bytes = -1 };
	for (int i = 0; group->groups != NULL && i < group->groups->count; i++) {
		const struct rv_cgroup_tree *tree = &group->groups->trees[i];
		bool unified = group->groups->unified;
		int dir = group->dirs[i];

		if (tree->memory) {
			const char *events = unified ? "memory.events" : "memory.oom_control";

			facts->memory = rv_cgroup_file_count(dir, events, "oom_kill ") > 0;
			facts->peak_bytes =
				rv_cgroup_file_count(dir, unified ? "memory.peak" : "memory.max_usage_in_bytes", "");
		}
		if (tree->processes)
			facts->processes = rv_cgroup_file_count(dir, "pids.events", "max ") > 0;
	}
}

/* ---- all of them ---- */

int rv_cgroups_open(struct rv_cgroups *groups, const char *dir, uint64_t max_memory, uint64_t max_processes,
		    struct rv_error *err)
{
	*groups = (struct rv_cgroups)RV_CGROUPS_INIT;
	groups->max_memory = max_memory;
	groups->max_processes = max_processes;
	if (dir == NULL && max_memory == UINT64_MAX && max_processes == UINT64_MAX)
		return 0;
	if (rv_cgroup_find(groups, dir, err) != 0)
		return -1;
	for (int i = 0; i < groups->count; i++)
		rv_cgroup_sweep(groups->trees[i].dir, "rv-exec-", true);
	if (rv_cgroup_try(groups, err) != 0)
		return -1;
	return rv_cgroup_start_janitor(groups, err);
}

void rv_cgroups_release(struct rv_cgroups *groups)
{
	for (int i = 0; i < groups->count; i++)
		close_fd(&groups->trees[i].dir);
	groups->count = 0;
	close_fd(&groups->line); /* the janitor looks once more, and goes by itself */
	if (groups->janitor.pid > 0)
		close_fd(&groups->janitor.pidfd);
	groups->janitor = (struct rv_child)RV_CHILD_INIT;
}

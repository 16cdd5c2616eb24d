/*
 * floor-confine RUNTIME DIRECTORY: what a run behind the boundary cannot be had without: the same namespaces, id maps,
 * mounts, limits, Landlock rules and filter, an init and the exec, around RUNTIME with two binds of DIRECTORY.  Nothing is
 * hashed, tried, filled, verified, reported or removed.  With -l a run for each line of standard input, and a line
 * for each: the floor of a stream.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/idmap.h"
#include "lib/process/spawn.h"
#include "lib/sandbox/behind.h"
#include "lib/sandbox/landlock.h"
#include "lib/sandbox/mounts.h"
#include "lib/sandbox/restrict.h"
#include "lib/sandbox/vfork.h"

#define EXEC 60 /* below the limit of descriptors: a floor has nothing to rule out */

struct run {
	struct rv_boundary boundary; /* first, for rv_boundary_map(): its ids alone */
	char *runtime;
	const char *directory;
	struct rv_filter_program filter;
};

static void need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "floor-confine: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static int open_source(const char *path)
{
	const struct rv_source source = { .path = path };
	int fd = rv_mounts_open_source(&source);

	need(fd >= 0, path);
	return fd;
}

static void bind_to(int root, int source, const char *target, unsigned flags)
{
	int tree = rv_mounts_clone(source, flags);

	need(rv_mounts_attach(root, target, tree) == 0, target);
	(void)close(tree);
}

static void let_read(int ruleset, int abi, const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	need(rv_landlock_allow(ruleset, abi, fd, RV_FS_EXECUTE | RV_FS_READ_FILE | RV_FS_READ_DIR) == 0, path);
	(void)close(fd);
}

static int program(void *data)
{
	static const uint64_t limits[RV_LIMITS] = { 10, 64, 0, 0, (uint64_t)1 << 30 };
	struct run *run = data;
	char *argv[] = { run->runtime, NULL }, *envp[] = { NULL };
	int abi = rv_landlock_abi(), ruleset = rv_landlock_new(abi, rv_policy_linux.scopes);

	let_read(ruleset, abi, run->runtime);
	let_read(ruleset, abi, "/program");
	let_read(ruleset, abi, "/input");
	need(rv_restrict_limits(limits) == 0 && rv_landlock_restrict(ruleset) == 0, "limits");
	need(dup3(open(run->runtime, O_PATH | O_CLOEXEC), EXEC, O_CLOEXEC) == EXEC, run->runtime);
	need(rv_filter_load_program(run->filter.code, run->filter.len) == 0, "filter");
	(void)syscall(SYS_execveat, EXEC, "", argv, envp, AT_EMPTY_PATH);
	_exit(1);
}

static int init(void *data)
{
	struct run *run = data;
	const struct rv_instance *ids = &run->boundary.instance;
	/* as who starts it: whom it becomes may not come to them */
	int runtime = open_source(run->runtime), directory = open_source(run->directory);
	int root, status;
	pid_t pid;

	(void)syscall(SYS_setgroups, 0, NULL);
	need(syscall(SYS_setresgid, ids->gid, ids->gid, ids->gid) == 0 &&
	     syscall(SYS_setresuid, ids->uid, ids->uid, ids->uid) == 0 && rv_mounts_private() == 0, "ids");
	root = rv_mounts_root("mode=0755,size=1m,nr_inodes=8k");
	bind_to(root, runtime, run->runtime, RV_MOUNT_RDONLY | RV_MOUNT_NOSUID | RV_MOUNT_NODEV);
	bind_to(root, directory, "/program", RV_MOUNT_RDONLY | RV_MOUNT_NOSUID | RV_MOUNT_NODEV | RV_MOUNT_NOEXEC);
	bind_to(root, directory, "/input", RV_MOUNT_RDONLY | RV_MOUNT_NOSUID | RV_MOUNT_NODEV | RV_MOUNT_NOEXEC);
	need(rv_mounts_enter(root) == 0 && rv_restrict_privileges() == 0, "root");
	pid = rv_vfork(0, program, run);
	need(pid > 0 && waitpid(pid, &status, 0) == pid, "the program");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void once(struct run *run)
{
	struct rv_spawn_plan plan = { .namespaces = rv_policy_linux.namespaces, .parent_setup = rv_boundary_map, .child = init,
				      .data = run };
	struct rv_child child = RV_CHILD_INIT;
	struct rv_error err = RV_ERROR_INIT;
	int status;

	need(rv_spawn(&plan, &child, &err) == 0, "clone");
	need(waitpid(child.pid, &status, 0) == child.pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, "init");
	(void)close(child.pidfd);
}

int main(int argc, char **argv)
{
	bool lines = argc > 1 && strcmp(argv[1], "-l") == 0;
	struct run run = { .boundary = { .instance = { .policy = &rv_policy_linux } } };
	char line[4096];

	if (argc != (lines ? 4 : 3))
		return 2;
	run.runtime = argv[argc - 2];
	run.directory = argv[argc - 1];
	rv_boundary_ids(&run.boundary);
	run.filter.values = (struct rv_filter_values){ .self = RV_BOUNDARY_PROGRAM, .exec = EXEC };
	run.filter.len = rv_filter_compile(rv_policy_linux.filter, &run.filter.values, run.filter.code);
	need(run.filter.len > 0, "filter");
	if (!lines)
		once(&run);
	while (lines && fgets(line, sizeof line, stdin) != NULL) {
		if (strchr(line, '\n') == NULL)
			continue; /* of a longer line */
		once(&run);
		need(puts("done") >= 0 && fflush(stdout) == 0, "standard output");
	}
	return 0;
}

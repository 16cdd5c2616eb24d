#include "lib/sandbox/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/sandbox/mounts.h"
#include "lib/sandbox/restrict.h"

#define STACK_SIZE ((size_t)256 * 1024)
#define TMP "/tmp"

/* ---- what was asked for ---- */

static bool is_below(const char *path, const char *top)
{
	return rv_path_is_within(path, top) && strcmp(path, top) != 0;
}

/* Without "." and "..", "//" and a slash at the end; what is relative, or has such parts, is resolved. */
static char *plain_path(const char *path)
{
	size_t len = strlen(path);
	bool plain = path[0] == '/' && len > 1 && path[len - 1] != '/' && len < PATH_MAX && strstr(path, "//") == NULL &&
		     strstr(path, "/./") == NULL && strstr(path, "/../") == NULL && strcmp(path + len - 2, "/.") != 0 &&
		     (len < 3 || strcmp(path + len - 3, "/..") != 0);

	return plain ? strdup(path) : realpath(path, NULL);
}

/* What the sandbox is for, or has as its own; the path may be a link to it. */
static int check_path(const char *option, const char *path, const char *target, struct rv_error *err)
{
	static const char *const own[] = { "/proc", "/dev" };
	rv_auto_free char *real = realpath(target, NULL);

	if (real == NULL)
		return rv_error_set(err, RV_E_CONFIG, errno, "%s %s", option, path);
	if (strcmp(target, "/") == 0 || strcmp(real, "/") == 0)
		return rv_error_set(err, RV_E_CONFIG, 0, "%s %s: that would be no sandbox", option, path);
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
		if (rv_path_is_within(target, own[i]) || rv_path_is_within(real, own[i]))
			return rv_error_set(err, RV_E_CONFIG, 0, "%s %s: the sandbox has a %s of its own", option, path, own[i]);
	}
	return 0;
}

static int add_path(struct rv_kernel *kernel, const char *option, const char *path, bool writable, struct rv_error *err)
{
	struct rv_kernel_path *grown = realloc(kernel->paths, (kernel->path_count + 1) * sizeof *grown);
	rv_auto_free char *target = NULL;
	size_t at;

	if (grown == NULL)
		return rv_error_nomem(err);
	kernel->paths = grown;
	target = plain_path(path);
	if (target == NULL || access(target, F_OK) != 0)
		return rv_error_set(err, RV_E_CONFIG, errno, "%s %s", option, path);
	if (check_path(option, path, target, err) != 0)
		return -1;
	/* parents before what is below them, or they would hide it */
	for (at = kernel->path_count; at > 0 && strlen(grown[at - 1].target) > strlen(target); at--)
		grown[at] = grown[at - 1];
	grown[at] = (struct rv_kernel_path){ .writable = writable, .fd = -1 };
	grown[at].fresh = rv_path_is_within(target, TMP) || is_below(target, kernel->base);
	grown[at].target = rv_steal_ptr(&target);
	kernel->path_count++;
	return 0;
}

static int add_paths(struct rv_kernel *kernel, const char *option, const char *const *paths, bool writable,
		     struct rv_error *err)
{
	for (size_t i = 0; paths != NULL && paths[i] != NULL; i++) {
		if (add_path(kernel, option, paths[i], writable, err) != 0)
			return -1;
	}
	return 0;
}

/* Its workdirs are mounted below it: it must hide nothing of the sandbox's own. */
static int check_base(const struct rv_policy *policy, const char *base, struct rv_error *err)
{
	for (size_t i = 0; i < policy->mount_count; i++) {
		const char *target = policy->mounts[i].target;

		if (target != NULL && policy->mounts[i].kind != RV_MOUNT_SOURCE && strcmp(base, TMP) != 0 &&
		    rv_path_is_within(target, base))
			return rv_error_set(err, RV_E_CONFIG, 0,
					    "--workdir-base %s: the sandbox's own %s is there (give a directory of its own)", base,
					    target);
	}
	return 0;
}

static const struct rv_mount *row_named(const struct rv_policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->mount_count; i++) {
		if (strcmp(policy->mounts[i].name, name) == 0)
			return &policy->mounts[i];
	}
	return NULL;
}

int rv_kernel_init(struct rv_kernel *kernel, const struct rv_policy *policy, const char *const *readable,
		   const char *const *writable, bool net, const char *workdir_base, struct rv_error *err)
{
	*kernel = (struct rv_kernel){ .policy = policy, .base = workdir_base, .net = net, .mounts = -1 };
	kernel->readable = row_named(policy, "readable");
	kernel->writable = row_named(policy, "writable");
	kernel->workdir = row_named(policy, "workdir");
	kernel->tmp = row_named(policy, "tmp");
	if (kernel->readable == NULL || kernel->writable == NULL || kernel->workdir == NULL || kernel->tmp == NULL)
		return rv_error_set(err, RV_E_CONFIG, 0, "%s is no policy for tools", policy->name);
	(void)snprintf(kernel->passwd, sizeof kernel->passwd, "tool:x:%u:%u::/tmp:/bin/sh\n", (unsigned)geteuid(),
		       (unsigned)getegid());
	(void)snprintf(kernel->group, sizeof kernel->group, "tool:x:%u:\n", (unsigned)getegid());
	if (add_paths(kernel, "--ro", readable, false, err) != 0 || add_paths(kernel, "--rw", writable, true, err) != 0)
		return -1;
	return check_base(policy, workdir_base, err);
}

void rv_kernel_release(struct rv_kernel *kernel)
{
	for (size_t i = 0; i < kernel->path_count; i++)
		free(kernel->paths[i].target);
	free(kernel->paths);
	free(kernel->code);
	*kernel = (struct rv_kernel){ .policy = NULL, .mounts = -1 };
}

bool rv_kernel_shows(const struct rv_kernel *kernel, const char *path)
{
	for (size_t i = 0; i < kernel->policy->mount_count; i++) {
		const struct rv_mount *mount = &kernel->policy->mounts[i];

		if (mount->kind == RV_MOUNT_HOST && rv_path_is_within(path, mount->target))
			return true;
	}
	for (size_t i = 0; i < kernel->path_count; i++) {
		if (rv_path_is_within(path, kernel->paths[i].target))
			return true;
	}
	return false;
}

/* ---- in the worker: the root, in a mount namespace of its own ---- */

struct build {
	struct rv_kernel *kernel;
	const char *what; /* being done */
	int errnum;
};

static const struct rv_mount *row_of(const struct rv_kernel *kernel, const struct rv_kernel_path *path)
{
	return path->writable ? kernel->writable : kernel->readable;
}

static int bind_host(int root, const struct rv_mount *mount)
{
	int follow = (mount->flags & RV_MOUNT_FOLLOW) != 0 ? 0 : O_NOFOLLOW;
	rv_auto_fd int fd = open(mount->source, O_PATH | O_CLOEXEC | follow);
	rv_auto_fd int tree = -1;
	char text[PATH_MAX];
	ssize_t len;

	if (fd < 0)
		return errno == ENOENT && (mount->flags & RV_MOUNT_OPTIONAL) != 0 ? 0 : -1;
	len = readlinkat(fd, "", text, sizeof text - 1);
	if (len > 0) { /* /bin and its kin: usr/bin */
		text[len] = '\0';
		return rv_mounts_link(root, mount->target, text);
	}
	tree = rv_mounts_clone(fd, mount->flags | RV_MOUNTS_RECURSIVE);
	return tree < 0 ? -1 : rv_mounts_attach(root, mount->target, tree);
}

/* Nothing is to be seen of what the host has there, if anything. */
static int cover(int root, const struct rv_mount *mount)
{
	rv_auto_fd int there = rv_mounts_inside(root, mount->target);
	rv_auto_fd int tree = -1;

	if (there < 0)
		return errno == ENOENT ? 0 : -1;
	tree = rv_mounts_make("tmpfs", "mode=0755,size=4k,nr_inodes=2", mount->flags);
	return tree < 0 ? -1 : rv_mounts_attach(root, mount->target, tree);
}

static int build_row(const struct rv_kernel *kernel, int root, const struct rv_mount *mount)
{
	rv_auto_fd int tree = -1;

	if ((mount->flags & RV_MOUNT_NET) != 0 && !kernel->net)
		return 0;
	switch (mount->kind) {
	case RV_MOUNT_HOST:
		return bind_host(root, mount);
	case RV_MOUNT_EMPTY:
		return (mount->flags & RV_MOUNT_OPTIONAL) != 0 ? cover(root, mount) : rv_mounts_directory(root, mount->target);
	case RV_MOUNT_LINK:
		return rv_mounts_link(root, mount->target, mount->source);
	case RV_MOUNT_TEXT:
		return rv_mounts_text(root, mount->target, strcmp(mount->name, "passwd") == 0 ? kernel->passwd : kernel->group);
	case RV_MOUNT_PROC:
		tree = rv_mounts_make("proc", mount->source, mount->flags);
		return tree < 0 ? -1 : rv_mounts_attach(root, mount->target, tree);
	case RV_MOUNT_TMPFS:  /* anew for each dispatch */
	case RV_MOUNT_SOURCE:
	case RV_MOUNT_ALIAS:
		break;
	}
	return 0;
}

/* Opened anew: what was opened in another mount namespace cannot be copied in this one. */
static int build_path(const struct rv_kernel *kernel, int root, const struct rv_kernel_path *path)
{
	rv_auto_fd int fd = open(path->target, O_PATH | O_CLOEXEC);
	rv_auto_fd int tree = fd < 0 ? -1 : rv_mounts_clone(fd, row_of(kernel, path)->flags | RV_MOUNTS_RECURSIVE);

	return tree < 0 ? -1 : rv_mounts_attach(root, path->target, tree);
}

/* Returns whether all went well; else build->what is where it did not. */
static bool build_root(struct build *build)
{
	struct rv_kernel *kernel = build->kernel;
	const struct rv_policy *policy = kernel->policy;
	rv_auto_fd int root = -1;

	build->what = "a mount namespace";
	if (unshare(CLONE_NEWNS) != 0 || rv_mounts_private() != 0)
		return false;
	build->what = "mounting a tmpfs";
	root = rv_mounts_root("mode=0755,size=1m,nr_inodes=4k");
	if (root < 0)
		return false;
	for (size_t i = 0; i < policy->mount_count; i++) {
		build->what = policy->mounts[i].name;
		if (build_row(kernel, root, &policy->mounts[i]) != 0)
			return false;
	}
	for (size_t i = 0; i < kernel->path_count; i++) {
		build->what = kernel->paths[i].target;
		if (!kernel->paths[i].fresh && build_path(kernel, root, &kernel->paths[i]) != 0)
			return false;
	}
	build->what = kernel->base;
	if (!rv_path_is_within(kernel->base, TMP) && rv_mounts_directory(root, kernel->base) != 0) /* the root takes none later */
		return false;
	build->what = "entering the new root";
	if (rv_mounts_enter(root) != 0)
		return false;
	kernel->mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	return kernel->mounts >= 0;
}

static int builder_main(void *data)
{
	struct build *build = data;

	build->errnum = build_root(build) ? 0 : errno;
	_exit(0);
}

/* By a child that shares this process's memory and descriptors and has its own file system state: the worker
 * itself stays in the host's, where the workdirs are. */
static int build_in_child(struct rv_kernel *kernel, struct rv_error *err)
{
	struct build build = { .kernel = kernel, .what = "starting a process", .errnum = EAGAIN };
	rv_auto_free char *stack = aligned_alloc(16, STACK_SIZE);
	pid_t pid;

	if (stack == NULL)
		return rv_error_nomem(err);
	pid = clone(builder_main, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &build);
	if (pid < 0)
		build.errnum = errno;
	else
		(void)waitpid(pid, NULL, 0);
	if (build.errnum != 0)
		return rv_error_set(err, RV_E_CONFIG, build.errnum,
				    "--sandbox kernel: %s (mounts in a namespace must be allowed: see "
				    "kernel.apparmor_restrict_unprivileged_userns, and in a container its seccomp profile and "
				    "masked /proc)",
				    build.what);
	return 0;
}

static int compile(struct rv_kernel *kernel, struct rv_error *err)
{
	static const struct rv_filter_values none = { 0, 0 };

	kernel->code = calloc(RV_FILTER_MAX, sizeof *kernel->code);
	if (kernel->code == NULL)
		return rv_error_nomem(err);
	kernel->code_len = rv_filter_compile(kernel->policy->filter, &none, kernel->code);
	if (kernel->code_len < 0)
		return rv_error_set(err, RV_E_CONFIG, errno, "--sandbox kernel: the filter");
	return 0;
}

static int open_paths(struct rv_kernel *kernel, struct rv_error *err)
{
	for (size_t i = 0; i < kernel->path_count; i++) {
		struct rv_kernel_path *path = &kernel->paths[i];

		path->fd = open(path->target, O_PATH | O_CLOEXEC);
		if (path->fd < 0)
			return rv_error_set(err, RV_E_CONFIG, errno, "%s %s", path->writable ? "--rw" : "--ro", path->target);
	}
	return 0;
}

int rv_kernel_prepare(void *data, struct rv_error *err)
{
	struct rv_kernel *kernel = data;
	const struct rv_policy *policy = kernel->policy;
	/* IPC objects would outlive a dispatch: that namespace is each tool's own */
	uint64_t once = policy->namespaces & (CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWCGROUP);

	kernel->abi = rv_landlock_abi();
	if (kernel->abi == 0)
		return rv_error_set(err, RV_E_CONFIG, errno,
				    "--sandbox kernel: Landlock is off in this kernel (add landlock to lsm= at boot)");
	if (unshare((int)once) != 0)
		return rv_error_set(err, RV_E_CONFIG, errno,
				    "--sandbox kernel: network, UTS and cgroup namespaces (see user.max_net_namespaces, "
				    "user.max_uts_namespaces and user.max_cgroup_namespaces)");
	if (policy->hostname != NULL && sethostname(policy->hostname, strlen(policy->hostname)) != 0)
		return rv_error_set(err, RV_E_CONFIG, errno, "--sandbox kernel: sethostname");
	if (open_paths(kernel, err) != 0 || compile(kernel, err) != 0)
		return -1;
	return build_in_child(kernel, err);
}

/* ---- in a tool's process ---- */

#define VOLATILE_MAX 64

/* Detached copies of what each dispatch mounts anew, made while its sources can be seen. */
struct fresh {
	int trees[VOLATILE_MAX];
	size_t count;
	int workdir;
};

static int clone_fresh(const struct rv_kernel *kernel, const char *workdir, struct fresh *fresh)
{
	rv_auto_fd int fd = open(workdir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	fresh->workdir = fd < 0 ? -1 : rv_mounts_clone(fd, kernel->workdir->flags);
	if (fresh->workdir < 0)
		return -1;
	fresh->count = 0;
	for (size_t i = 0; i < kernel->path_count; i++) {
		const struct rv_kernel_path *path = &kernel->paths[i];

		if (!path->fresh)
			continue;
		if (fresh->count == VOLATILE_MAX) {
			errno = E2BIG;
			return -1;
		}
		fresh->trees[fresh->count] = rv_mounts_clone(path->fd, row_of(kernel, path)->flags | RV_MOUNTS_RECURSIVE);
		if (fresh->trees[fresh->count++] < 0)
			return -1;
	}
	return 0;
}

/* The workdir's place: one that the base has inside, as /tmp has or as a path that was asked for shows it; else in a
 * tmpfs over the base, which is empty in the root.  A new one for each dispatch: a tool sees no name of another's. */
static int cover_base(const struct rv_kernel *kernel, int root, const char *workdir)
{
	rv_auto_fd int there = rv_mounts_inside(root, workdir);
	rv_auto_fd int cover = -1;

	if (there >= 0 || rv_path_is_within(kernel->base, TMP))
		return 0;
	cover = rv_mounts_make("tmpfs", "mode=0755,size=64k,nr_inodes=4k", RV_MOUNT_NOSUID | RV_MOUNT_NODEV);
	return cover < 0 ? -1 : rv_mounts_attach(root, kernel->base, cover);
}

static int mount_fresh(const struct rv_kernel *kernel, const char *workdir, const struct fresh *fresh)
{
	const struct rv_mount *tmp = kernel->tmp;
	rv_auto_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	rv_auto_fd int tree = rv_mounts_make("tmpfs", tmp->source, tmp->flags);
	size_t next = 0;

	if (root < 0 || tree < 0 || rv_mounts_attach(root, tmp->target, tree) != 0 || cover_base(kernel, root, workdir) != 0)
		return -1;
	for (size_t i = 0; i < kernel->path_count; i++) {
		if (kernel->paths[i].fresh && rv_mounts_attach(root, kernel->paths[i].target, fresh->trees[next++]) != 0)
			return -1;
	}
	return rv_mounts_attach(root, workdir, fresh->workdir);
}

static int allow(int ruleset, int abi, const char *path, uint64_t rights)
{
	rv_auto_fd int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -1; /* an optional one, which the host has not: nothing is allowed */
	return rv_landlock_allow(ruleset, abi, fd, rights);
}

static int restrict_files(const struct rv_kernel *kernel, const char *workdir)
{
	const struct rv_policy *policy = kernel->policy;
	rv_auto_fd int ruleset = rv_landlock_new(kernel->abi, policy->scopes);

	if (ruleset < 0)
		return -1;
	for (size_t i = 0; i < policy->mount_count; i++) {
		const struct rv_mount *row = &policy->mounts[i];

		if (row->rights != 0 && row->target != NULL && allow(ruleset, kernel->abi, row->target, row->rights) != 0)
			return -1;
	}
	for (size_t i = 0; i < kernel->path_count; i++) {
		uint64_t rights = row_of(kernel, &kernel->paths[i])->rights;

		if (rights != 0 && allow(ruleset, kernel->abi, kernel->paths[i].target, rights) != 0)
			return -1;
	}
	if (allow(ruleset, kernel->abi, workdir, kernel->workdir->rights) != 0)
		return -1;
	return rv_landlock_restrict(ruleset);
}

int rv_kernel_enter(void *data, const char *workdir)
{
	const struct rv_kernel *kernel = data;
	struct sock_fprog program = { .len = (unsigned short)kernel->code_len, .filter = kernel->code };
	struct fresh fresh;

	if (clone_fresh(kernel, workdir, &fresh) != 0)
		return -1;
	if (setns(kernel->mounts, CLONE_NEWNS) != 0 || unshare(CLONE_NEWNS | CLONE_NEWIPC) != 0)
		return -1;
	if (mount_fresh(kernel, workdir, &fresh) != 0 || rv_restrict_privileges() != 0)
		return -1;
	if (rv_restrict_limits(kernel->policy->limits) != 0 || restrict_files(kernel, workdir) != 0)
		return -1;
	/* what is still open is closed by the exec */
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &program);
}

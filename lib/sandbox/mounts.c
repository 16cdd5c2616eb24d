#include "lib/sandbox/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "lib/base/cleanup.h"

int rv_mounts_open_source(const struct rv_source *source)
{
	rv_auto_fd int fd = open(source->path, O_PATH | O_CLOEXEC);
	struct stat info;

	if (fd < 0 || fstat(fd, &info) != 0)
		return -1;
	if (source->checked && (info.st_dev != source->device || info.st_ino != source->inode)) {
		errno = EXDEV;
		return -1;
	}
	return rv_steal_fd(&fd);
}

static uint64_t attributes_of(unsigned flags)
{
	uint64_t attributes = 0;

	if ((flags & RV_MOUNT_RDONLY) != 0)
		attributes |= MOUNT_ATTR_RDONLY;
	if ((flags & RV_MOUNT_NOSUID) != 0)
		attributes |= MOUNT_ATTR_NOSUID;
	if ((flags & RV_MOUNT_NODEV) != 0)
		attributes |= MOUNT_ATTR_NODEV;
	if ((flags & RV_MOUNT_NOEXEC) != 0)
		attributes |= MOUNT_ATTR_NOEXEC;
	return attributes;
}

int rv_mounts_clone(int fd, unsigned flags)
{
	unsigned below = (flags & RV_MOUNTS_RECURSIVE) != 0 ? AT_RECURSIVE : 0;
	struct mount_attr attr = { .attr_set = attributes_of(flags), .propagation = MS_PRIVATE };
	rv_auto_fd int tree = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | below);

	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH | below, &attr, sizeof attr) != 0)
		return -1;
	return rv_steal_fd(&tree);
}

/* "name=value,name" as fsconfig(2) wants it: one at a time. */
static int configure(int context, const char *data)
{
	char copy[256];
	char *next = copy;

	if (strlen(data) >= sizeof copy) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(copy, data, strlen(data) + 1);
	while (next != NULL && *next != '\0') {
		char *name = strsep(&next, ",");
		char *value = strchr(name, '=');
		int set;

		if (value != NULL)
			*value++ = '\0';
		set = fsconfig(context, value != NULL ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, name, value, 0);
		if (set != 0)
			return -1;
	}
	return 0;
}

int rv_mounts_make(const char *type, const char *data, unsigned flags)
{
	rv_auto_fd int context = fsopen(type, FSOPEN_CLOEXEC);

	if (context < 0 || (data != NULL && configure(context, data) != 0) ||
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
		return -1;
	return fsmount(context, FSMOUNT_CLOEXEC, (unsigned)attributes_of(flags));
}

static int open_inside(int root, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

int rv_mounts_inside(int root, const char *target)
{
	return open_inside(root, target, O_PATH);
}

/* In one step, where it is there: -1 is no error. */
static int open_whole_parent(int root, const char *target, char *prefix, const char **name)
{
	const char *slash = strrchr(target, '/');
	size_t len = slash == target ? 1 : (size_t)(slash - target);

	if (slash[1] == '\0')
		return -1;
	memcpy(prefix, target, len);
	prefix[len] = '\0';
	*name = slash + 1;
	return open_inside(root, prefix, O_PATH | O_DIRECTORY);
}

/* The directory that `target` stands in, made where it is missing; *name is its last component. */
static int open_parent(int root, const char *target, const char **name)
{
	char prefix[PATH_MAX];
	rv_auto_fd int parent = -1;
	const char *at = target;

	if (strlen(target) >= sizeof prefix || target[0] != '/') {
		errno = EINVAL;
		return -1;
	}
	parent = open_whole_parent(root, target, prefix, name);
	if (parent >= 0)
		return rv_steal_fd(&parent);
	parent = open_inside(root, "/", O_PATH | O_DIRECTORY);
	for (;;) {
		const char *slash;
		int next;

		at += strspn(at, "/");
		slash = strchr(at, '/');
		if (parent < 0 || slash == NULL || slash[strspn(slash, "/")] == '\0')
			break;
		memcpy(prefix, target, (size_t)(slash - target));
		prefix[slash - target] = '\0';
		next = open_inside(root, prefix, O_PATH | O_DIRECTORY);
		if (next < 0 && errno == ENOENT && mkdirat(parent, strrchr(prefix, '/') + 1, 0755) == 0)
			next = open_inside(root, prefix, O_PATH | O_DIRECTORY);
		(void)close(parent);
		parent = next;
		at = slash;
	}
	*name = at;
	return rv_steal_fd(&parent);
}

int rv_mounts_directory(int root, const char *target)
{
	const char *name;
	rv_auto_fd int parent = open_parent(root, target, &name);

	if (parent < 0)
		return -1;
	return mkdirat(parent, name, 0755) == 0 || errno == EEXIST ? 0 : -1;
}

int rv_mounts_link(int root, const char *target, const char *text)
{
	const char *name;
	rv_auto_fd int parent = open_parent(root, target, &name);

	return parent < 0 ? -1 : symlinkat(text, parent, name);
}

int rv_mounts_text(int root, const char *target, const char *text)
{
	const char *name;
	rv_auto_fd int parent = open_parent(root, target, &name);
	rv_auto_fd int fd = parent < 0 ? -1 : openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	size_t len = strlen(text);

	if (fd < 0)
		return -1;
	return write(fd, text, len) == (ssize_t)len ? 0 : -1;
}

/* What a tree is mounted on: what is there already, or something of its kind. */
static int make_place(int root, const char *target, int tree)
{
	struct stat info;
	const char *name;
	rv_auto_fd int parent = -1;
	rv_auto_fd int file = -1;
	int place = rv_mounts_inside(root, target);

	if (place >= 0 || errno != ENOENT)
		return place;
	parent = open_parent(root, target, &name);
	if (parent < 0 || fstat(tree, &info) != 0)
		return -1;
	if (S_ISDIR(info.st_mode)) {
		if (mkdirat(parent, name, 0755) != 0)
			return -1;
	} else {
		file = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
		if (file < 0)
			return -1;
	}
	return rv_mounts_inside(root, target);
}

int rv_mounts_attach(int root, const char *target, int tree)
{
	rv_auto_fd int place = make_place(root, target, tree);

	if (place < 0)
		return -1;
	return move_mount(tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

int rv_mounts_private(void)
{
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

int rv_mounts_root(const char *data)
{
	rv_auto_fd int root = rv_mounts_make("tmpfs", data, RV_MOUNT_NOSUID | RV_MOUNT_NODEV);

	if (root < 0 || move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0)
		return -1;
	return rv_steal_fd(&root);
}

int rv_mounts_pivot(int root)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	if (mount_setattr(root, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0 || fchdir(root) != 0)
		return -1;
	return (int)syscall(SYS_pivot_root, ".", ".");
}

int rv_mounts_enter(int root)
{
	/* the old root lands on top of the new one, and is the first to go: pivot_root(2) */
	if (rv_mounts_pivot(root) != 0 || umount2(".", MNT_DETACH) != 0)
		return -1;
	return chdir("/");
}

/* Where groups can be made: proc(5), /proc/PID/cgroup and mountinfo; cgroups(7). */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/text.h"
#include "lib/process/cgroup_tree.h"

#define REMEDY                                                                                                  \
	"give --cgroup a delegated cgroup v2 directory that holds no process itself, with this program in a group " \
	"beside or below it (systemd: Delegate=yes), or run as root where cgroup v1 is mounted"

static bool has_word(const char *list, const char *separators, const char *word)
{
	size_t len = strlen(word);

	while (*list != '\0') {
		size_t span = strcspn(list, separators);

		if (span == len && strncmp(list, word, len) == 0)
			return true;
		list += span;
		list += strspn(list, separators);
	}
	return false;
}

/* ---- version 2 ---- */

static bool file_has_word(int dir, const char *file, const char *word)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_error ignored = RV_ERROR_INIT;
	rv_auto_fd int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && rv_io_read_all(fd, &text, &ignored) == 0 && rv_buffer_string(&text) != NULL &&
	       has_word(text.data, " \n", word);
}

static int enable(int dir, const char *where, const char *controller, const char *option, struct rv_error *err)
{
	char text[32];

	if (file_has_word(dir, "cgroup.subtree_control", controller))
		return 0;
	(void)snprintf(text, sizeof text, "+%s", controller);
	if (!file_has_word(dir, "cgroup.controllers", controller))
		return rv_error_set(err, RV_E_CONFIG, 0, "%s: the controller %s is not in %s/cgroup.controllers: %s", option,
				    controller, where, REMEDY);
	if (rv_cgroup_file_write(dir, "cgroup.subtree_control", text, err) != 0)
		return rv_error_wrap(err, "%s: %s (%s)", option, where, REMEDY);
	return 0;
}

static int find_unified(struct rv_cgroups *groups, const char *where, struct rv_error *err)
{
	struct rv_cgroup_tree *tree = &groups->trees[0];
	struct statfs fs;

	tree->dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree->dir < 0)
		return rv_error_set(err, RV_E_CONFIG, errno, "--cgroup %s", where);
	groups->count = 1;
	groups->unified = true;
	if (fstatfs(tree->dir, &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
		return rv_error_set(err, RV_E_CONFIG, 0, "--cgroup %s: no directory of cgroup v2: %s", where, REMEDY);
	tree->memory = groups->max_memory != UINT64_MAX;
	tree->processes = groups->max_processes != UINT64_MAX;
	if (tree->memory && enable(tree->dir, where, "memory", "--max-memory", err) != 0)
		return -1;
	return tree->processes ? enable(tree->dir, where, "pids", "--max-processes", err) : 0;
}

/* ---- version 1 ---- */

/* This process's group in a controller's tree: "4:memory:/a/b". */
static bool own_group(const char *controller, char *path, size_t size)
{
	rv_auto_file FILE *file = fopen("/proc/self/cgroup", "re");
	char line[4608];

	while (file != NULL && fgets(line, sizeof line, file) != NULL) {
		char *names = strchr(line, ':');
		char *group = names != NULL ? strchr(names + 1, ':') : NULL;

		if (group == NULL)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		if (has_word(names + 1, ",", controller))
			return snprintf(path, size, "%s", group) < (int)size;
	}
	return false;
}

/* "ID PARENT DEV ROOT POINT OPTIONS ... - TYPE SOURCE SUPER": where the controller's tree is mounted, with the
 * group that the mount's own root is. */
static bool mount_of(const char *controller, char *root, char *point, size_t size)
{
	rv_auto_file FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[8192];

	while (file != NULL && fgets(line, sizeof line, file) != NULL) {
		char *behind = strstr(line, " - cgroup ");
		char *options = behind != NULL ? strchr(behind + 10, ' ') : NULL;
		char format[48];

		if (options == NULL || !has_word(options, " ,\n", controller))
			continue;
		(void)snprintf(format, sizeof format, "%%*s %%*s %%*s %%%zus %%%zus", size - 1, size - 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		if (sscanf(line, format, root, point) == 2)
			return true;
#pragma GCC diagnostic pop
	}
	return false;
}

static int open_own(const char *controller, struct rv_error *err)
{
	char root[4096], point[4096], group[4096], path[8200];
	const char *below = group;
	int fd;

	if (!mount_of(controller, root, point, sizeof root) || !own_group(controller, group, sizeof group))
		return rv_error_set(err, RV_E_CONFIG, 0, "no cgroup v1 tree of the controller %s is mounted here", controller);
	/* in a container the mount's root is some group, and what /proc says may or may not count from it */
	if (strcmp(root, "/") != 0 && strncmp(group, root, strlen(root)) == 0)
		below = group + strlen(root);
	(void)snprintf(path, sizeof path, "%s%s", point, below);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		fd = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : rv_error_set(err, RV_E_CONFIG, errno, "%s", path);
}

static int add_old(struct rv_cgroups *groups, const char *controller, const char *option, struct rv_error *err)
{
	struct rv_cgroup_tree *tree = &groups->trees[groups->count];

	tree->dir = open_own(controller, err);
	if (tree->dir < 0)
		return rv_error_wrap(err, "%s (%s)", option, REMEDY);
	groups->count++;
	return 0;
}

static int find_old(struct rv_cgroups *groups, struct rv_error *err)
{
	if (groups->max_memory != UINT64_MAX) {
		if (add_old(groups, "memory", "--max-memory", err) != 0)
			return -1;
		groups->trees[groups->count - 1].memory = true;
	}
	if (groups->max_processes != UINT64_MAX) {
		if (add_old(groups, "pids", "--max-processes", err) != 0)
			return -1;
		groups->trees[groups->count - 1].processes = true;
	}
	return 0;
}

int rv_cgroup_find(struct rv_cgroups *groups, const char *dir, struct rv_error *err)
{
	unsigned char raw[4];

	if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
		return rv_error_set(err, RV_E_IO, errno, "getrandom");
	(void)snprintf(groups->prefix, sizeof groups->prefix, "rv-exec-%02x%02x%02x%02x-", raw[0], raw[1], raw[2], raw[3]);
	return dir != NULL ? find_unified(groups, dir, err) : find_old(groups, err);
}

/* ---- found by doing it ---- */

static int go_in(void *data)
{
	const struct rv_cgroup *group = data;

	for (int i = 0; i < RV_CGROUP_TREES; i++) {
		if (group->entries[i] >= 0 && write(group->entries[i], "0", 1) != 1)
			return errno < 128 ? errno : 127;
	}
	return 0;
}

int rv_cgroup_try(const struct rv_cgroups *groups, struct rv_error *err)
{
	struct rv_cgroup group;
	struct rv_spawn_plan plan = { .child = go_in, .data = &group };
	struct rv_child child = RV_CHILD_INIT;
	int status = 0;
	int result;

	if (rv_cgroup_make(&group, groups, "try", err) != 0)
		return rv_error_wrap(err, "limits of a tree of processes (%s)", REMEDY);
	result = rv_spawn(&plan, &child, err);
	if (result == 0) {
		(void)waitpid(child.pid, &status, 0);
		(void)close(child.pidfd);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			result = rv_error_set(err, RV_E_CONFIG, WIFEXITED(status) ? WEXITSTATUS(status) : 0,
					      "no process can be put into the cgroup %s (%s)", group.name, REMEDY);
	}
	(void)rv_cgroup_remove(&group);
	err->code = result != 0 ? RV_E_CONFIG : err->code;
	return result;
}

#include "lib/base/idmap.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"

static int write_proc(pid_t pid, const char *name, const char *text, struct rv_error *err)
{
	char path[64];
	rv_auto_fd int fd = -1;

	if (pid == 0) /* the caller's number is another one in a PID namespace of its own */
		(void)snprintf(path, sizeof path, "/proc/self/%s", name);
	else
		(void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	fd = rv_io_open(path, O_WRONLY, 0, err);
	if (fd < 0 || rv_io_write_all(fd, text, strlen(text), err) != 0) {
		err->code = RV_E_CONFIG;
		return rv_error_wrap(err, "user namespace: %s", name);
	}
	return 0;
}

static int write_map(pid_t pid, const char *name, unsigned inside, unsigned outside, struct rv_error *err)
{
	char map[64];

	(void)snprintf(map, sizeof map, "%u %u 1\n", inside, outside);
	return write_proc(pid, name, map, err);
}

int rv_idmap_write(pid_t child, const struct rv_idmap *map, struct rv_error *err)
{
	if (!map->keep_setgroups && write_proc(child, "setgroups", "deny", err) != 0)
		return -1;
	if (write_map(child, "uid_map", map->inside_uid, map->outside_uid, err) != 0)
		return -1;
	return write_map(child, "gid_map", map->inside_gid, map->outside_gid, err);
}

#include "lib/executor/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

static int make_absolute(struct rv_buffer *path, const char *name, size_t len, struct rv_error *err)
{
	rv_buffer_clear(path);
	if (name[0] != '/') {
		rv_auto_free char *cwd = getcwd(NULL, 0);

		if (cwd == NULL)
			return rv_error_set(err, RV_E_CONFIG, errno, "the current directory");
		rv_buffer_add_string(path, cwd);
		rv_buffer_add_byte(path, '/');
	}
	rv_buffer_add(path, name, len);
	return rv_buffer_check(path, err);
}

/* 0 an executable regular file, else errno. */
static int runnable(const char *path)
{
	struct stat info;

	if (stat(path, &info) != 0)
		return errno;
	if (S_ISDIR(info.st_mode))
		return EISDIR;
	if (!S_ISREG(info.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0)
		return EACCES;
	return 0;
}

/* Look through PATH; the first file that can be run, else why the first that was found cannot. */
static int search(struct rv_buffer *path, const char *name, const char *dirs, struct rv_error *err)
{
	int why = ENOENT;

	for (;;) {
		size_t len = strcspn(dirs, ":");
		int cannot;

		if (make_absolute(path, len > 0 ? dirs : ".", len > 0 ? len : 1, err) != 0)
			return -1;
		rv_buffer_add_byte(path, '/');
		rv_buffer_add_string(path, name);
		if (rv_buffer_string(path) == NULL)
			return rv_buffer_check(path, err);
		cannot = runnable(path->data);
		if (cannot == 0)
			return 0;
		if (why == ENOENT && cannot != ENOENT && cannot != ENOTDIR)
			why = cannot;
		if (dirs[len] == '\0')
			break;
		dirs += len + 1;
	}
	if (why == ENOENT)
		return rv_error_set(err, RV_E_SPAWN_MISSING, 0, "%s: not found in PATH", name);
	return rv_error_set(err, RV_E_SPAWN, why, "%s: found in PATH", name);
}

int rv_command_find(struct rv_buffer *path, const char *name, struct rv_error *err)
{
	const char *dirs = getenv("PATH");

	if (name[0] == '\0')
		return rv_error_set(err, RV_E_CONFIG, 0, "the command is an empty string");
	if (strchr(name, '/') == NULL)
		return search(path, name, dirs != NULL ? dirs : "/usr/bin:/bin", err);
	if (make_absolute(path, name, strlen(name), err) != 0)
		return -1;
	return rv_buffer_string(path) != NULL ? 0 : rv_buffer_check(path, err);
}

int rv_command_failed(const char *path, int errnum, struct rv_error *err)
{
	struct stat info;

	if (errnum == ENOEXEC)
		return rv_error_set(err, RV_E_SPAWN, 0, "%s: neither a binary of this machine nor a script with '#!'; "
							"no shell is tried", path);
	if (errnum == ENOENT && stat(path, &info) == 0)
		return rv_error_set(err, RV_E_SPAWN, 0, "%s: its interpreter does not exist", path);
	if (errnum == ENOENT || errnum == ENOTDIR)
		return rv_error_set(err, RV_E_SPAWN_MISSING, 0, "%s: no such file", path);
	if (errnum == EACCES && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
		return rv_error_set(err, RV_E_SPAWN, EISDIR, "%s", path);
	if (errnum == E2BIG)
		return rv_error_set(err, RV_E_SPAWN, E2BIG, "%s: arguments and environment", path);
	return rv_error_set(err, RV_E_SPAWN, errnum, "%s", path);
}

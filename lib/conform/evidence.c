/* The files of a trial: what tools leave as evidence, and what checks put in their way. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/conform/trial.h"

char *rv_trial_path(struct rv_trial *trial, const char *name)
{
	return rv_trial_printf(trial, "%s/%s", trial->dir, name);
}

bool rv_trial_exists(const char *path)
{
	struct stat info;

	return lstat(path, &info) == 0;
}

struct rv_buffer *rv_trial_read(struct rv_trial *trial, const char *path)
{
	struct rv_buffer *content = rv_trial_buffer(trial);
	struct rv_error err = RV_ERROR_INIT;

	if (content == NULL || rv_io_read_file(path, content, &err) != 0 || rv_buffer_string(content) == NULL)
		return NULL;
	return content;
}

bool rv_trial_write(struct rv_trial *trial, const char *path, struct rv_span bytes, unsigned mode)
{
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_fd int fd = rv_io_open(path, O_WRONLY | O_CREAT | O_TRUNC, (mode_t)mode, &err);

	if (fd < 0 || rv_io_write_all(fd, bytes.data, bytes.len, &err) != 0)
		return rv_trial_failed(trial, &err);
	return rv_expect(trial, fchmod(fd, (mode_t)mode) == 0, "chmod %s: %s", path, strerror(errno));
}

bool rv_trial_await(struct rv_trial *trial, const char *path, struct rv_command *command)
{
	while (!rv_trial_exists(path)) {
		if (command != NULL && rv_command_wait(command, rv_clock_mono_ms() + 5) == 1)
			return rv_trial_exists(path);
		if (command == NULL)
			rv_clock_pause_ms(5);
		if (rv_clock_mono_ms() >= trial->deadline_ms)
			return false;
	}
	return true;
}

int rv_trial_entries(const char *path)
{
	rv_auto_dir DIR *dir = opendir(path);
	const struct dirent *entry;
	int count = 0;

	if (dir == NULL)
		return -1;
	while ((entry = readdir(dir)) != NULL)
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	return count;
}

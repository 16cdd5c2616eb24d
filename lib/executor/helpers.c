#include "lib/executor/helpers.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/executor/container.h"
#include "lib/process/descend.h"

#define NAME_LEN (sizeof RV_CONTAINER_NAME - 1 + 36)

struct query {
	const char *name; /* NULL: any of rv-exec's */
	unsigned which;
	struct rv_buffer *names; /* those that were met; may be NULL */
};

static bool is_a_name(const struct query *query, const char *word)
{
	if (query->name != NULL)
		return strcmp(word, query->name) == 0;
	return strlen(word) == NAME_LEN && strncmp(word, RV_CONTAINER_NAME, sizeof RV_CONTAINER_NAME - 1) == 0;
}

/* Two words of an argv, one behind the other; the text ends with a NUL. */
static bool says(const struct query *query, const char *words, size_t len)
{
	const char *end = words + len;

	for (const char *word = words; word < end; word += strlen(word) + 1) {
		const char *next = word + strlen(word) + 1;
		bool flag = ((query->which & RV_HELPERS_CLIENTS) != 0 && strcmp(word, "--name") == 0) ||
			    ((query->which & RV_HELPERS_HOLDERS) != 0 && strcmp(word, "-n") == 0);

		if (!flag || next >= end || !is_a_name(query, next))
			continue;
		if (query->names != NULL) {
			rv_buffer_add_string(query->names, next);
			rv_buffer_add_byte(query->names, '\n');
		}
		return true;
	}
	return false;
}

static bool is_meant(int proc, const char *pid, void *what)
{
	rv_auto_buffer struct rv_buffer words = RV_BUFFER_INIT;
	struct rv_error ignored = RV_ERROR_INIT;
	char path[40];
	struct stat info;
	rv_auto_fd int fd = -1;

	(void)snprintf(path, sizeof path, "%.16s/cmdline", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &info) != 0 || info.st_uid != geteuid())
		return false;
	if (rv_io_read_all(fd, &words, &ignored) != 0 || words.len == 0 || rv_buffer_string(&words) == NULL)
		return false;
	return says(what, words.data, words.len);
}

int rv_helpers_signal(const char *name, enum rv_helpers which, int signal_number)
{
	struct query query = { .name = name, .which = (unsigned)which };

	return rv_descend_signal_meant(signal_number, (query.which & RV_HELPERS_HOLDERS) != 0, is_meant, &query);
}

int rv_helpers_list(struct rv_buffer *names)
{
	struct query query = { .which = RV_HELPERS_CLIENTS | RV_HELPERS_HOLDERS, .names = names };

	return rv_descend_signal_meant(0, true, is_meant, &query) < 0 ? -1 : 0;
}

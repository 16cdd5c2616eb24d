#include "lib/conform/argv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

void rv_argv_add_span(struct rv_argv *argv, struct rv_span word)
{
	char *copy = malloc(word.len + 1);

	if (copy != NULL && argv->count + 1 >= argv->room) {
		size_t room = argv->room == 0 ? 64 : argv->room * 2;
		char **grown = realloc(argv->words, room * sizeof *grown);

		argv->room = grown != NULL ? room : argv->room;
		argv->words = grown != NULL ? grown : argv->words;
	}
	if (copy == NULL || argv->count + 1 >= argv->room) {
		free(copy);
		argv->failed = true;
		return;
	}
	if (word.len > 0)
		memcpy(copy, word.data, word.len);
	copy[word.len] = '\0';
	argv->failed = argv->failed || strlen(copy) != word.len;
	argv->words[argv->count++] = copy;
	argv->words[argv->count] = NULL;
}

void rv_argv_add(struct rv_argv *argv, const char *word)
{
	rv_argv_add_span(argv, rv_span_of(word));
}

void rv_argv_release(struct rv_argv *argv)
{
	for (size_t i = 0; i < argv->count; i++)
		free(argv->words[i]);
	free(argv->words);
}

int rv_argv_find(struct rv_buffer *path, const char *program, struct rv_error *err)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self);
	const char *slash = n > 0 && (size_t)n < sizeof self ? memrchr(self, '/', (size_t)n) : NULL;

	rv_buffer_clear(path);
	if (slash != NULL) {
		rv_buffer_add(path, self, (size_t)(slash + 1 - self));
		rv_buffer_add_string(path, program);
		if (rv_buffer_string(path) != NULL && access(path->data, X_OK) == 0)
			return 0;
		rv_buffer_clear(path);
	}
	rv_buffer_add_string(path, program);
	return rv_buffer_string(path) != NULL ? 0 : rv_error_nomem(err);
}

int rv_argv_become(struct rv_argv *argv, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer path = RV_BUFFER_INIT;

	if (argv->failed)
		return rv_error_nomem(err);
	if (rv_argv_find(&path, argv->words[0], err) != 0)
		return -1;
	(void)execvp(path.data, argv->words);
	return rv_error_set(err, RV_E_IO, errno, "%s", path.data);
}

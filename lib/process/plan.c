#include "lib/process/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/buffer.h"
#include "lib/base/io.h"

static uint32_t add_words(struct rv_buffer *out, char *const *words)
{
	uint32_t count = 0;

	for (; words != NULL && words[count] != NULL; count++)
		rv_buffer_add(out, words[count], strlen(words[count]) + 1);
	return count;
}

int rv_plan_add(struct rv_buffer *bytes, const struct rv_plan_text *text, struct rv_plan_size *size, struct rv_error *err)
{
	rv_buffer_add(bytes, text->path, strlen(text->path) + 1);
	rv_buffer_add(bytes, text->cwd, strlen(text->cwd) + 1);
	size->argc = add_words(bytes, text->argv);
	size->envc = add_words(bytes, text->envp);
	size->undoc = add_words(bytes, text->undo);
	size->length = bytes->len;
	return rv_buffer_check(bytes, err);
}

void rv_plan_wipe(struct rv_buffer *bytes)
{
	if (bytes->data != NULL)
		explicit_bzero(bytes->data, bytes->len);
	rv_buffer_release(bytes);
}

int rv_plan_store(const struct rv_buffer *bytes, struct rv_error *err)
{
	int fd = memfd_create("rv-plan", MFD_CLOEXEC);

	if (fd < 0)
		return rv_error_set(err, RV_E_IO, errno, "memfd_create");
	if (rv_io_pwrite_all(fd, bytes->data, bytes->len, 0, err) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

/* The next word, or NULL past the end: the host is trusted, a cut message is not. */
static char *next_word(char **at, const char *end)
{
	char *word = *at;
	char *nul = word < end ? memchr(word, '\0', (size_t)(end - word)) : NULL;

	if (nul == NULL)
		return NULL;
	*at = nul + 1;
	return word;
}

static int take_words(char **at, const char *end, char **words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		words[i] = next_word(at, end);
		if (words[i] == NULL)
			return -1;
	}
	words[count] = NULL;
	return 0;
}

static int take_bytes(const char *bytes, int fd, char *to, uint64_t length)
{
	struct rv_error ignored = RV_ERROR_INIT;

	if (bytes == NULL)
		return rv_io_pread_all(fd, to, length, 0, &ignored);
	memcpy(to, bytes, length);
	return 0;
}

int rv_plan_read(const char *bytes, int fd, const struct rv_plan_size *size, struct rv_plan_view *view)
{
	size_t words = ((size_t)size->argc + size->envc + size->undoc + 3) * sizeof(char *);
	char *at;
	const char *end;

	view->memory = malloc(words + size->length);
	if (view->memory == NULL)
		return -1;
	view->argv = view->memory;
	view->envp = view->argv + size->argc + 1;
	view->undo = view->envp + size->envc + 1;
	at = (char *)view->memory + words;
	end = at + size->length;
	if (take_bytes(bytes, fd, at, size->length) == 0) {
		view->path = next_word(&at, end);
		view->cwd = next_word(&at, end);
		if (view->path != NULL && view->cwd != NULL && take_words(&at, end, view->argv, size->argc) == 0 &&
		    take_words(&at, end, view->envp, size->envc) == 0 &&
		    take_words(&at, end, view->undo, size->undoc) == 0)
			return 0;
	}
	free(view->memory);
	view->memory = NULL;
	errno = EPROTO;
	return -1;
}

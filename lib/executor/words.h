/*
 * A list of words that grows and is then an argv or an envp.  May hold credentials: they are wiped when it goes.
 */
#ifndef RV_EXECUTOR_WORDS_H
#define RV_EXECUTOR_WORDS_H

#include <stddef.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"

struct rv_words {
	struct rv_buffer text; /* each word and its NUL */
	size_t count;
	char **list;           /* owned array into text, NULL-terminated; NULL until rv_words_list() */
};

#define RV_WORDS_INIT { RV_BUFFER_INIT, 0, NULL }

void rv_words_add(struct rv_words *words, const char *word);
void rv_words_add_all(struct rv_words *words, const char *const *list); /* NULL is an empty one */
/* A word in which each `{workdir}` is replaced. */
void rv_words_add_with(struct rv_words *words, const char *word, const char *workdir);
void rv_words_printf(struct rv_words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The words as they stand; good until one more is added.  NULL: RV_E_NOMEM. */
char **rv_words_list(struct rv_words *words, struct rv_error *err);
void rv_words_release(struct rv_words *words);

#endif

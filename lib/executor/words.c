#include "lib/executor/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKDIR "{workdir}"

void rv_words_add(struct rv_words *words, const char *word)
{
	rv_buffer_add(&words->text, word, strlen(word) + 1);
	words->count++;
}

void rv_words_add_all(struct rv_words *words, const char *const *list)
{
	for (size_t i = 0; list != NULL && list[i] != NULL; i++)
		rv_words_add(words, list[i]);
}

void rv_words_add_with(struct rv_words *words, const char *word, const char *workdir)
{
	const char *found;

	while ((found = strstr(word, WORKDIR)) != NULL) {
		rv_buffer_add(&words->text, word, (size_t)(found - word));
		rv_buffer_add_string(&words->text, workdir);
		word = found + sizeof WORKDIR - 1;
	}
	rv_words_add(words, word);
}

void rv_words_printf(struct rv_words *words, const char *format, ...)
{
	char word[512];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(word, sizeof word, format, args);
	va_end(args);
	if (len >= 0 && (size_t)len < sizeof word)
		rv_words_add(words, word);
	else
		words->text.failed = true; /* never a word that is cut */
}

char **rv_words_list(struct rv_words *words, struct rv_error *err)
{
	char **grown;
	char *at = words->text.data;

	if (rv_buffer_check(&words->text, err) != 0)
		return NULL;
	grown = realloc(words->list, (words->count + 1) * sizeof *grown);
	if (grown == NULL) {
		(void)rv_error_nomem(err);
		return NULL;
	}
	words->list = grown;
	for (size_t i = 0; i < words->count; i++) {
		grown[i] = at;
		at += strlen(at) + 1;
	}
	grown[words->count] = NULL;
	return grown;
}

void rv_words_release(struct rv_words *words)
{
	if (words->text.data != NULL)
		explicit_bzero(words->text.data, words->text.len);
	rv_buffer_release(&words->text);
	free(words->list);
	*words = (struct rv_words)RV_WORDS_INIT;
}

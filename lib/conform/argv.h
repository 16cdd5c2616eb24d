/*
 * A command line under construction, and becoming (exec) the program of this package that it names.  It remembers its
 * first failure, so that words are added without a question after each.
 */
#ifndef RV_CONFORM_ARGV_H
#define RV_CONFORM_ARGV_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

struct rv_argv {
	char **words; /* owned, each owned, NULL-terminated */
	size_t count;
	bool failed; /* no memory, or a word that no command line can carry */
	/* private */
	size_t room;
};

#define RV_ARGV_INIT { .words = NULL, .count = 0, .failed = false, .room = 0 }

/* The words are copied. */
void rv_argv_add_span(struct rv_argv *argv, struct rv_span word);
void rv_argv_add(struct rv_argv *argv, const char *word);
void rv_argv_release(struct rv_argv *argv);

/* Become the program that is the first word, as rv_argv_find() finds it.  Returns where that failed: -1, RV_E_NOMEM
 * where a word had failed, RV_E_IO. */
int rv_argv_become(struct rv_argv *argv, struct rv_error *err);

/* The absolute path of a program of this package: beside this one, else the bare name, for PATH. */
int rv_argv_find(struct rv_buffer *path, const char *program, struct rv_error *err);

#endif

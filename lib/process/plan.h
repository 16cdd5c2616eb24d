/*
 * What is run, as bytes that the host fills and the worker reads: in a message, or of any size in a
 * memfd, nothing in a file system.  Layout: path, cwd, argv, envp, undo, each NUL-terminated.  Private to
 * lib/process.
 */
#ifndef RV_PROCESS_PLAN_H
#define RV_PROCESS_PLAN_H

#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"

struct rv_plan_text {
	const char *path;
	const char *cwd; /* "" for the worker's own: never the case for a tool */
	char *const *argv;
	char *const *envp;
	char *const *undo; /* or NULL: nothing undoes it */
};

struct rv_plan_size {
	uint64_t length;
	uint32_t argc;
	uint32_t envc;
	uint32_t undoc;
};

/* Append the text's bytes; counts for the message.  They hold credentials: rv_plan_wipe() them. */
int rv_plan_add(struct rv_buffer *bytes, const struct rv_plan_text *text, struct rv_plan_size *size, struct rv_error *err);
void rv_plan_wipe(struct rv_buffer *bytes); /* and release */

/* A new memfd (CLOEXEC) that holds them. */
int rv_plan_store(const struct rv_buffer *bytes, struct rv_error *err);

/* Read it back, from `bytes` or, where that is NULL, from a memfd: one allocation in *memory, freed by
 * the caller, which the pointers lead into.  -1 with errno. */
struct rv_plan_view {
	void *memory;
	char *path;
	char *cwd;
	char **argv;
	char **envp;
	char **undo; /* empty: nothing undoes it */
};

int rv_plan_read(const char *bytes, int fd, const struct rv_plan_size *size, struct rv_plan_view *view);

#endif

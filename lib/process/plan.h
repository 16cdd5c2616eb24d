/*
 * What is run, as bytes in a memfd that the host fills and the worker maps: any size of argument
 * and environment, one descriptor, nothing in a file system.  Layout: path, cwd, argv, envp, each
 * NUL-terminated.  Private to lib/process.
 */
#ifndef RV_PROCESS_PLAN_H
#define RV_PROCESS_PLAN_H

#include <stdint.h>

#include "lib/base/error.h"

struct rv_plan_text {
	const char *path;
	const char *cwd; /* "" for the worker's own: never the case for a tool */
	char *const *argv;
	char *const *envp;
};

/* A new memfd (CLOEXEC) with the text; counts and length for the message. */
int rv_plan_write(const struct rv_plan_text *text, uint64_t *length, uint32_t *argc, uint32_t *envc,
		  struct rv_error *err);

/* Read it back: one allocation in *memory, freed by the caller, which the pointers lead into.
 * -1 with errno. */
struct rv_plan_view {
	void *memory;
	char *path;
	char *cwd;
	char **argv;
	char **envp;
};

int rv_plan_read(int fd, uint64_t length, uint32_t argc, uint32_t envc, struct rv_plan_view *view);

#endif

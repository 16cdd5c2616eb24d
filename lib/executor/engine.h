/*
 * Asking a container engine something by its own client (docker, podman, or what speaks their command line), and
 * waiting for the answer: before the first dispatch, in a child of a slot's worker, and for --reap.
 */
#ifndef RV_EXECUTOR_ENGINE_H
#define RV_EXECUTOR_ENGINE_H

#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"

/* Borrowed. */
struct rv_engine {
	char *const *words; /* the client and its own flags, NULL-terminated; words[0] an absolute path */
	char *const *envp;  /* what the client may read */
};

/* Run the client with `args` (NULL-terminated).  Its exit status, its stdout in `out` and the end of its stderr in
 * `complaint`, NUL-terminated and trimmed (both cleared before).  -1: it cannot be started, was killed, or did not
 * end within wait_ms and was killed then (RV_E_CONFIG, RV_E_IO). */
int rv_engine_ask(const struct rv_engine *engine, const char *const *args, int64_t wait_ms, struct rv_buffer *out,
		  struct rv_buffer *complaint, struct rv_error *err);

/* Is a container of that name there?  1, 0, or -1 where the engine does not say by the deadline (monotonic, ms). */
int rv_engine_has(const struct rv_engine *engine, const char *name, int64_t deadline, struct rv_error *err);

#endif

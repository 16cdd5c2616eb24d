/* One run from options, and the identities that a caller pins. */
#ifndef RV_CONFINE_ONCE_H
#define RV_CONFINE_ONCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/confine/service.h"

/* As they were said; all borrowed. */
struct rv_confine_once {
	const char *runtime;
	const char *const *trees;
	size_t tree_count;
	const char *program;
	const char *entry;
	const char *input;  /* NULL: an empty snapshot */
	const char *pins;   /* NULL: none, and then unpinned */
	bool unpinned;
	const char *profile;
	char *const *args;
	size_t arg_count;
	struct rv_bounds bounds;
	const char *stdout_file, *stderr_file; /* NULL: none */
};

/* The result's line is appended to `out`, and its exit status set.  -1: RV_E_REQUEST for an invalid request, RV_E_IO;
 * what was observed is in `out` even then, where only a file of the output could not be written. */
int rv_confine_run_once(struct rv_confine *confine, const struct rv_confine_once *once, struct rv_buffer *out, int *status,
			struct rv_error *err);

/* Identities, each one JSON value without a newline.  A relative path is taken from the working directory. */
int rv_confine_describe_runtime(struct rv_buffer *out, const char *path, const char *const *trees, size_t tree_count,
				bool allow_home, struct rv_error *err);
int rv_confine_describe_profile(struct rv_buffer *out, const char *name, struct rv_error *err);
int rv_confine_describe_snapshot(struct rv_buffer *out, const char *path, struct rv_error *err);
/* A size of an option as a bound: what does not fit is out of every bound's range. */
int64_t rv_confine_bound_of(uint64_t size);

#endif

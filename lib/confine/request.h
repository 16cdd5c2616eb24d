/*
 * What a run is asked to be, checked before anything is touched (seed, invariant 1): a line of a stream, or
 * what rv-confine's options say.  Every refusal is RV_E_REQUEST, "invalid confined run request: ...".
 */
#ifndef RV_CONFINE_REQUEST_H
#define RV_CONFINE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/confine/runtime.h"
#include "lib/confine/snapshot.h"

struct rv_pins {
	char runtime[RV_DIGEST_TEXT];
	char profile[RV_DIGEST_TEXT];
	char program[RV_DIGEST_TEXT];
	char input[RV_DIGEST_TEXT];
};

struct rv_bounds {
	int64_t timeout_ms;
	int64_t max_output;
	int64_t cpu_seconds;
	int64_t max_descriptors;
	int64_t max_data;
	int64_t max_memory; /* 0: none */
};

struct rv_confine_request {
	struct rv_buffer id; /* as JSON; empty: none */
	char *runtime;       /* owned, as all here */
	char **trees;
	size_t tree_count;
	char *profile;       /* a name */
	bool pinned;         /* else the pins are not compared, and empty */
	struct rv_pins pins;
	struct rv_snapshot program, input;
	char *entry;
	char **args;         /* NULL-terminated */
	size_t arg_count;
	struct rv_bounds bounds;
};

#define RV_BOUNDS_DEFAULT                                                                                        \
	{                                                                                                        \
		.timeout_ms = RV_CONFINE_TIMEOUT_MS, .max_output = RV_CONFINE_OUTPUT,                            \
		.cpu_seconds = RV_CONFINE_CPU_S, .max_descriptors = RV_CONFINE_DESCRIPTORS,                      \
		.max_data = RV_CONFINE_DATA, .max_memory = 0                                                     \
	}

void rv_confine_request_init(struct rv_confine_request *request);
void rv_confine_request_release(struct rv_confine_request *request);

/* One line of a stream.  RV_E_IO where a directory or an archive cannot be read, RV_E_ABORTED
 * where `cancel` (-1: none) became readable while one was.  `id` is set, where there is one, also
 * for a refusal. */
int rv_confine_request_parse(struct rv_confine_request *request, const char *line, size_t len, bool allow_home, const char *root,
			     int cancel, struct rv_error *err);

/* What does not depend on where a request came from: bounds, entry, arguments, digests, the runtime's paths.  The
 * snapshots are sealed. */
int rv_confine_request_check(const struct rv_confine_request *request, bool allow_home, const char *root, struct rv_error *err);

/* {"runtime","profile","program","input"}, each "sha256:HEX", and nothing else. */
int rv_pins_read(struct rv_pins *pins, const char *path, struct rv_error *err);

/* The runtime's part, borrowed. */
struct rv_runtime_spec rv_confine_request_runtime(const struct rv_confine_request *request, bool allow_home, const char *root);

#endif

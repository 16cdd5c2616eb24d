/*
 * Invocation lines -> key lines (contract, section 2, --stream).  An answer is
 * {"id"?,"idempotencyKey","argsHash","derivation"}, or {"id"?,"ok":false,"error":{"code","message"},
 * "line"} for a line that is refused.
 */
#ifndef RV_EXECUTOR_KEYS_H
#define RV_EXECUTOR_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

struct rv_key_stream {
	int fd;              /* the lines */
	unsigned threads;    /* at least 1 */
	unsigned json_flags; /* of lib/json/json.h */
	unsigned key_flags;  /* of lib/executor/key.h */
	/* Takes the answers, whole lines in the order of their questions (lib/base/pump.h). */
	int (*write)(const void *bytes, size_t len);
};

/* All lines.  0, 1 where write ended it, -1 where the system failed; *refused if any line was. */
int rv_key_stream_run(const struct rv_key_stream *stream, bool *refused, struct rv_error *err);

#endif

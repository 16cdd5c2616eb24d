/*
 * Lines in, answers out, in order, with one thread or several.
 *
 * Each thread takes its turn at reading a batch of whole lines, answers them on its own, and
 * takes its turn at writing.  A read takes what is there and the answers go out before anybody
 * waits for more, so that a caller who writes one line and waits for its answer gets it.  Memory
 * is bounded by a batch a thread, that is by a block or by the longest line.
 *
 * The last line may lack its newline.  Empty lines are lines.
 */
#ifndef RV_BASE_PUMP_H
#define RV_BASE_PUMP_H

#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

struct rv_pump {
	int fd;           /* read to its end */
	unsigned threads; /* at least 1; the caller's is one of them */
	void *context;

	/* What one thread has for itself: made and freed on that thread. */
	void *(*worker_new)(void *context, struct rv_error *err);
	void (*worker_free)(void *worker);
	/* Append to `out` what answers a line (without its newline); numbers start at 1.  -1 ends the
	 * pump, when what was answered before is written. */
	int (*answer)(void *worker, struct rv_span line, uint64_t number, struct rv_buffer *out, struct rv_error *err);
	/* Write; never two at a time.  Non-zero ends the pump, and is the writer's to say. */
	int (*write)(void *context, const void *bytes, size_t len);
};

/* 0 at the end of input, 1 where write ended it, -1 on an error. */
int rv_pump_run(const struct rv_pump *pump, struct rv_error *err);

#endif

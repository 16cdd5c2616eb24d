/*
 * Requests in, results out: `rv-confine --stream`.  As many runs at once as there are jobs, a bounded number of finished
 * ones that wait for their turn.  A bad line gets its own answer with its number, and the rest goes on.
 *
 * A cancellation stops what runs, answers what was read already, and reads no more.
 */
#ifndef RV_CONFINE_STREAM_H
#define RV_CONFINE_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/confine/service.h"

struct rv_confine_stream {
	struct rv_confine *confine;
	size_t jobs;
	bool unordered;
	int in;     /* borrowed */
	/* Never two at a time; non-zero: nobody reads any more, and nothing is written after it. */
	int (*write)(const void *bytes, size_t len);
	void (*gone)(void); /* called once then: to cancel what runs */
};

/* 0 with the exit status of the worst line, or -1 where the system failed. */
int rv_confine_stream_run(const struct rv_confine_stream *stream, int *worst, struct rv_error *err);

#endif

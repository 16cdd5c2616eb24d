/*
 * Rows on their way to where they are kept.  What the dispatches of one turn of the loop have to say goes
 * out together: into a file in one write, and with `power` under one sync; while it lasts the next rows
 * gather.  A dispatch is told when its row is confirmed, or why it is not, and only then goes on.
 */
#ifndef RV_EXECUTOR_BATCH_H
#define RV_EXECUTOR_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/executor/sink.h"

struct rv_batch {
	struct rv_sink *sink;     /* borrowed; NULL: rows are confirmed without being kept */
	struct rv_buffer rows;    /* the bytes, one row behind another */
	struct rv_sink_row *waiting; /* owned array, whose rows these are; `bytes` is set when they go */
	size_t count;
	size_t room;
	int64_t since_ms;         /* monotonic: when the first of them was queued, */
	int64_t last_ms;          /* and when the last was */
	int64_t cost_ms;          /* what the sink took for the last ones: a sync, say */
};

#define RV_BATCH_INIT { .sink = NULL, .rows = RV_BUFFER_INIT, .waiting = NULL, .count = 0, .room = 0 }

/* Queue a row (may be empty: nothing to keep, but the turn is waited for). */
int rv_batch_add(struct rv_batch *batch, struct rv_dispatch *dispatch, const struct rv_buffer *row,
		 struct rv_error *err);

/* Hand over what is queued, and what that brings up, until nothing is; each dispatch gets its
 * rv_dispatch_written(), then or in a later flush. */
void rv_batch_flush(struct rv_batch *batch);
/* The same without the loop, until every row is answered for. */
void rv_batch_drain(struct rv_batch *batch);
/* After a turn of the loop, for one of `running` dispatches: flush, or wait for the rows of the others where
 * the sink is slow and they are better handed over together. */
void rv_batch_turn(struct rv_batch *batch, size_t running);
/* When the next turn has to be over at the latest: monotonic ms, 0 at once, INT64_MAX never. */
int64_t rv_batch_deadline(const struct rv_batch *batch, size_t running);
void rv_batch_release(struct rv_batch *batch);

#endif

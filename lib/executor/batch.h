/*
 * Rows on their way to the ledger.  What the dispatches of one turn of the loop have to say goes out in
 * one write, and with `power` under one sync: while it lasts the next rows gather.  A dispatch is told
 * when its row is confirmed, or why it is not, and only then goes on.
 */
#ifndef RV_EXECUTOR_BATCH_H
#define RV_EXECUTOR_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"

struct rv_dispatch;
struct rv_ledger;

struct rv_batch {
	struct rv_ledger *ledger; /* borrowed; NULL: rows are confirmed without being written */
	struct rv_buffer rows;
	struct rv_dispatch **waiting; /* owned array, whose rows these are */
	size_t count;
	size_t room;
};

#define RV_BATCH_INIT { .ledger = NULL, .rows = RV_BUFFER_INIT, .waiting = NULL, .count = 0, .room = 0 }

/* Queue a row (may be empty: nothing to write, but the turn is waited for). */
int rv_batch_add(struct rv_batch *batch, struct rv_dispatch *dispatch, const struct rv_buffer *row,
		 struct rv_error *err);

/* Write what is queued, and what that brings up, until nothing is; each dispatch gets its
 * rv_dispatch_written().  Whether there was anything. */
bool rv_batch_flush(struct rv_batch *batch);
void rv_batch_release(struct rv_batch *batch);

#endif

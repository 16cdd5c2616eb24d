#include "lib/executor/batch.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/executor/dispatch.h"

#define LINGER_MIN_MS 2  /* what is quicker is not worth waiting for */
#define LINGER_MAX_MS 20
#define ENOUGH 32        /* rows that may share a sync without others being waited for longer than it takes */
#define PATIENCE 5       /* so many times as long they are, while more and more come */

int rv_batch_add(struct rv_batch *batch, struct rv_dispatch *dispatch, const struct rv_buffer *row,
		 struct rv_error *err)
{
	size_t before = batch->rows.len;

	if (batch->count == batch->room) {
		size_t room = batch->room == 0 ? 16 : batch->room * 2;
		struct rv_sink_row *grown = realloc(batch->waiting, room * sizeof *grown);

		if (grown == NULL)
			return rv_error_nomem(err);
		batch->waiting = grown;
		batch->room = room;
	}
	rv_buffer_add(&batch->rows, row->data, row->len);
	if (rv_buffer_check(&batch->rows, err) != 0) { /* the others' rows stand */
		batch->rows.failed = false;
		batch->rows.len = before;
		return -1;
	}
	batch->last_ms = rv_clock_mono_ms();
	if (batch->count == 0)
		batch->since_ms = batch->last_ms;
	batch->waiting[batch->count++] = (struct rv_sink_row){ .dispatch = dispatch, .bytes = NULL, .len = row->len };
	return 0;
}

/* Those with something to keep are moved to the front; the others have what they waited for. */
static size_t confirm_empty(struct rv_batch *now)
{
	const char *at = now->rows.data;
	size_t kept = 0;

	for (size_t i = 0; i < now->count; i++) {
		struct rv_sink_row row = now->waiting[i];

		if (row.len == 0 || now->sink == NULL) {
			rv_dispatch_written(row.dispatch, NULL);
			continue;
		}
		row.bytes = at;
		at += row.len;
		now->waiting[kept++] = row;
	}
	return kept;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Group commit: where the sink is slow (a sync of milliseconds) and some that are running have no row in here
 * yet, the rows are kept for about as long as that takes, so that more share it; and longer where they are few
 * and go on coming, as on a busy machine.  Until when, monotonic ms; 0: they are not kept. */
static int64_t kept_until(const struct rv_batch *batch, size_t running)
{
	int64_t wait_ms = least(batch->cost_ms, LINGER_MAX_MS);

	if (batch->count >= running || wait_ms < LINGER_MIN_MS || batch->sink->check != NULL) /* it answers later */
		return 0;
	if (batch->count >= ENOUGH)
		return batch->since_ms + wait_ms;
	return least(batch->last_ms + wait_ms, batch->since_ms + PATIENCE * wait_ms);
}

static int64_t hand_over(const struct rv_batch *now, size_t count)
{
	int64_t start_ms = rv_clock_mono_ms();

	now->sink->take(now->sink, now->waiting, count);
	return rv_clock_mono_ms() - start_ms;
}

void rv_batch_flush(struct rv_batch *batch)
{
	do {
		while (batch->count > 0) {
			struct rv_batch now = *batch;
			size_t count;

			*batch = (struct rv_batch)RV_BATCH_INIT; /* what is queued meanwhile is the next one */
			batch->sink = now.sink;
			batch->cost_ms = now.cost_ms;
			count = confirm_empty(&now);
			if (count > 0)
				batch->cost_ms = hand_over(&now, count);
			rv_batch_release(&now);
		}
		if (batch->sink != NULL && batch->sink->check != NULL)
			batch->sink->check(batch->sink);
	} while (batch->count > 0);
}

void rv_batch_drain(struct rv_batch *batch)
{
	do
		rv_batch_flush(batch);
	while (batch->sink != NULL && batch->sink->wait != NULL && batch->sink->wait(batch->sink));
}

void rv_batch_turn(struct rv_batch *batch, size_t running)
{
	if (batch->count == 0 || rv_clock_mono_ms() >= kept_until(batch, running))
		rv_batch_flush(batch);
}

int64_t rv_batch_deadline(const struct rv_batch *batch, size_t running)
{
	int64_t rows = batch->count > 0 ? kept_until(batch, running) : INT64_MAX;

	return batch->sink != NULL && batch->sink->deadline != NULL ? least(rows, batch->sink->deadline(batch->sink)) : rows;
}

void rv_batch_release(struct rv_batch *batch)
{
	rv_buffer_release(&batch->rows);
	free(batch->waiting);
	batch->waiting = NULL;
	batch->count = 0;
	batch->room = 0;
}

#include "lib/executor/batch.h"

#include <stdlib.h>

#include "lib/executor/dispatch.h"
#include "lib/ledger/append.h"

int rv_batch_add(struct rv_batch *batch, struct rv_dispatch *dispatch, const struct rv_buffer *row,
		 struct rv_error *err)
{
	size_t before = batch->rows.len;

	if (batch->count == batch->room) {
		size_t room = batch->room == 0 ? 16 : batch->room * 2;
		struct rv_dispatch **grown = realloc(batch->waiting, room * sizeof(struct rv_dispatch *));

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
	batch->waiting[batch->count++] = dispatch;
	return 0;
}

bool rv_batch_flush(struct rv_batch *batch)
{
	bool any = false;

	while (batch->count > 0) {
		struct rv_batch now = *batch;
		struct rv_error err = RV_ERROR_INIT;
		int written = 0;

		any = true;
		*batch = (struct rv_batch)RV_BATCH_INIT; /* what is queued meanwhile is the next one */
		batch->ledger = now.ledger;
		if (now.ledger != NULL && now.rows.len > 0)
			written = rv_ledger_append(now.ledger, now.rows.data, now.rows.len, &err);
		for (size_t i = 0; i < now.count; i++)
			rv_dispatch_written(now.waiting[i], written == 0 ? NULL : &err);
		rv_batch_release(&now);
	}
	return any;
}

void rv_batch_release(struct rv_batch *batch)
{
	rv_buffer_release(&batch->rows);
	free(batch->waiting);
	batch->waiting = NULL;
	batch->count = 0;
	batch->room = 0;
}

#include "lib/executor/sink.h"

#include "lib/executor/attempt.h"
#include "lib/executor/dispatch.h"
#include "lib/ledger/append.h"

/* --refuse-orphan: two callers of one key must not both find no attempt of it, and then both write theirs. */
static bool is_guarded(const struct rv_sink_row *row)
{
	return row->dispatch->executor->refuse_orphan != NULL && row->dispatch->stage == RV_STAGE_INTENT;
}

static int ask(void *context, struct rv_error *err)
{
	return rv_attempt_orphan_again(context, err);
}

/* How many of the rows go out in one write: all up to one that has a question of its own. */
static size_t count_together(const struct rv_sink_row *rows, size_t count)
{
	size_t together = 1;

	while (!is_guarded(&rows[0]) && together < count && !is_guarded(&rows[together]))
		together++;
	return together;
}

static void write_together(struct rv_ledger *ledger, const struct rv_sink_row *rows, size_t count)
{
	const struct rv_sink_row *last = &rows[count - 1];
	size_t len = (size_t)(last->bytes + last->len - rows[0].bytes);
	struct rv_ledger_guard guard = { .ask = ask, .context = rows[0].dispatch };
	struct rv_error err = RV_ERROR_INIT;
	int written = rv_ledger_append_if(ledger, is_guarded(&rows[0]) ? &guard : NULL, rows[0].bytes, len, &err);

	for (size_t i = 0; i < count; i++)
		rv_dispatch_written(rows[i].dispatch, written == 0 ? NULL : &err);
}

static void take(struct rv_sink *sink, const struct rv_sink_row *rows, size_t count)
{
	struct rv_file_sink *file = (struct rv_file_sink *)sink;

	while (count > 0) {
		size_t together = count_together(rows, count);

		write_together(file->ledger, rows, together);
		rows += together;
		count -= together;
	}
}

void rv_file_sink_init(struct rv_file_sink *file, struct rv_ledger *ledger)
{
	*file = (struct rv_file_sink){ .sink = { .take = take }, .ledger = ledger };
}

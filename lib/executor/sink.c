#include "lib/executor/sink.h"

#include "lib/executor/dispatch.h"
#include "lib/ledger/append.h"

static void take(struct rv_sink *sink, const struct rv_sink_row *rows, size_t count)
{
	struct rv_file_sink *file = (struct rv_file_sink *)sink;
	const struct rv_sink_row *last = &rows[count - 1];
	size_t len = (size_t)(last->bytes + last->len - rows[0].bytes);
	struct rv_error err = RV_ERROR_INIT;
	int written = rv_ledger_append(file->ledger, rows[0].bytes, len, &err);

	for (size_t i = 0; i < count; i++)
		rv_dispatch_written(rows[i].dispatch, written == 0 ? NULL : &err);
}

void rv_file_sink_init(struct rv_file_sink *file, struct rv_ledger *ledger)
{
	*file = (struct rv_file_sink){ .sink = { .take = take }, .ledger = ledger };
}

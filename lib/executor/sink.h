/*
 * Where rows go.  Two things are one: a ledger file, which answers at once, and a co-process in front of
 * any store (lib/executor/store.h), which answers in later turns of the loop.  Above it is the batch
 * (lib/executor/batch.h), which knows neither.
 */
#ifndef RV_EXECUTOR_SINK_H
#define RV_EXECUTOR_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_dispatch;
struct rv_ledger;

/* One whole row with its newline, and the dispatch that waits for it. */
struct rv_sink_row {
	struct rv_dispatch *dispatch;
	const char *bytes; /* borrowed during take(); the rows of one take() lie one behind another */
	size_t len;        /* not 0 */
};

struct rv_sink {
	/* Take rows over.  Each is confirmed or refused by rv_dispatch_written(), in order: before this
	 * returns, or in a later check().  What that brings up is queued in the batch, never taken here. */
	void (*take)(struct rv_sink *sink, const struct rv_sink_row *rows, size_t count);

	/* Of a sink that does not answer at once; else NULL. */
	void (*check)(struct rv_sink *sink);              /* after each turn: what was answered, or was not in time */
	int64_t (*deadline)(const struct rv_sink *sink);  /* monotonic ms: when to check at the latest */
	bool (*wait)(struct rv_sink *sink);               /* without the loop, until there is something to check;
							   * false: nothing is in flight */
};

struct rv_file_sink {
	struct rv_sink sink; /* first */
	struct rv_ledger *ledger; /* borrowed */
};

/* All rows of a take() in one write, and under one sync; but an intent under --refuse-orphan in one of its own. */
void rv_file_sink_init(struct rv_file_sink *file, struct rv_ledger *ledger);

#endif

/*
 * A scan of ledgers by name, as rv-ledger-scan shows it: read, judged, and with the state of every
 * attempt that has no outcome.  What is kept of a row is its place; rv_view_row() reads it again.
 */
#ifndef RV_LEDGER_VIEW_H
#define RV_LEDGER_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/ledger/liveness.h"
#include "lib/ledger/scan.h"
#include "lib/ledger/source.h"

struct rv_orphan {
	size_t intent; /* index into the scan's intents */
	enum rv_state state;
	bool decided;
};

struct rv_view {
	struct rv_scan scan; /* file numbers are those of `sources` */
	struct rv_source *sources;
	size_t source_count;
	struct rv_orphan *orphans;
	size_t orphan_count;
	int64_t now_ms; /* of the judgement */
	/* private */
	struct rv_reader *reader;
	struct rv_buffer line;
};

struct rv_view_options {
	bool keep_all;    /* all rows can be asked for, and not only the open intents */
	unsigned threads; /* to read with */
	void (*progress)(void *context, uint64_t done, uint64_t total); /* as lib/ledger/gather.h has it, or NULL */
	void *context;
};

/* RV_E_IO where a file cannot be read, or changes all the while.  Damage is no error here: see
 * view->scan.damage. */
int rv_view_open(struct rv_view *view, const char *const *paths, size_t count, const struct rv_view_options *options,
		 struct rv_error *err);
void rv_view_close(struct rv_view *view);

/* The row at a place; borrowed until the next call. */
int rv_view_row(struct rv_view *view, const struct rv_place *place, struct rv_row *row, struct rv_error *err);
/* The start of a line, for people: at most 120 characters (UTF-16 units, as the engine counts), valid
 * UTF-8. */
int rv_view_preview(struct rv_view *view, const struct rv_place *place, struct rv_buffer *out, struct rv_error *err);

#endif

/* Inside the reports: a piece of output on its way to the sink. */
#ifndef RV_LEDGER_OUTPUT_H
#define RV_LEDGER_OUTPUT_H

#include "lib/base/buffer.h"
#include "lib/ledger/report.h"

struct rv_output {
	struct rv_view *view;
	const struct rv_filter *filter;
	const struct rv_sink *sink;
	struct rv_buffer text;
};

struct rv_output rv_output_of(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink);
/* Hand on what has gathered, once it is worth a write. */
int rv_output_flush(struct rv_output *output, struct rv_error *err);
/* Hand on the rest if `result` is 0, and release; returns what became of it. */
int rv_output_end(struct rv_output *output, int result, struct rv_error *err);
/* `,"at":{"file","line","offset"}` */
void rv_output_add_at(struct rv_output *output, const struct rv_place *place);

/* The orphan's row, if it is to be shown. */
int rv_report_shown_orphan(struct rv_view *view, const struct rv_filter *filter, const struct rv_orphan *orphan,
			   struct rv_row *row, bool *shown, struct rv_error *err);

#endif

/*
 * What rv-ledger-scan prints (contract, section 4).  Each writer gives its text to a sink piece by
 * piece, so that a report as large as its ledger needs no memory of that size.
 */
#ifndef RV_LEDGER_REPORT_H
#define RV_LEDGER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/ledger/approvals.h"
#include "lib/ledger/decisions.h"
#include "lib/ledger/filter.h"
#include "lib/ledger/view.h"

struct rv_sink {
	int (*write)(void *context, const char *bytes, size_t len); /* -1 ends the writing: said elsewhere */
	void *context;
};

/* What the exit status and the words for people are about. */
struct rv_report_counts {
	uint64_t shown[RV_STATES];  /* attempts without an outcome that pass the filter, by state */
	uint64_t hidden;            /* those outside it that are `orphan` or `unknown` */
};

int rv_report_count(struct rv_view *view, const struct rv_filter *filter, struct rv_report_counts *counts,
		    struct rv_error *err);

int rv_report_orphans(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink,
		      struct rv_error *err);
int rv_report_table(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink,
		    struct rv_error *err);
/* With `decisions`, which may be NULL, those of them that are about something there: `decided`. */
int rv_report_whole(struct rv_view *view, const struct rv_filter *filter, const struct rv_decisions *decisions,
		    const struct rv_sink *sink, struct rv_error *err);
int rv_report_keys(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink,
		   struct rv_error *err);
/* Each attempt that no approval authorises, then each approval with its attempts; *unapproved counts
 * the former. */
int rv_report_approvals(struct rv_view *view, const struct rv_filter *filter, struct rv_approvals *approvals,
			const struct rv_sink *sink, uint64_t *unapproved, struct rv_error *err);
/* With an empty filter it does without the places of all rows. */
int rv_report_summary(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink,
		      struct rv_error *err);

#endif

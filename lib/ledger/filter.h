/* Which rows a scan shows (contract, section 4): OR within a kind, AND between kinds. */
#ifndef RV_LEDGER_FILTER_H
#define RV_LEDGER_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/ledger/line.h"
#include "lib/ledger/liveness.h"

/* Any of these texts; none given means all. */
struct rv_filter_texts {
	const char *const *items;
	size_t count;
};

struct rv_filter {
	struct rv_filter_texts tools, run_ids, keys, attempts;
	unsigned states; /* bits 1 << enum rv_state; 0 means all */
	bool has_since, has_until, has_min_age;
	int64_t since, until; /* ms, inclusive */
	int64_t min_age;      /* ms */
};

bool rv_filter_is_empty(const struct rv_filter *filter);
bool rv_filter_matches_row(const struct rv_filter *filter, const struct rv_row *row, int64_t now_ms);
/* The same, and the state of an attempt without an outcome. */
bool rv_filter_matches_orphan(const struct rv_filter *filter, const struct rv_row *row, enum rv_state state,
			      int64_t now_ms);

#endif

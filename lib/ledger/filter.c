#include "lib/ledger/filter.h"

static bool is_one_of(const struct rv_filter_texts *texts, struct rv_span value)
{
	for (size_t i = 0; i < texts->count; i++) {
		if (rv_span_equal(value, rv_span_of(texts->items[i])))
			return true;
	}
	return texts->count == 0;
}

bool rv_filter_is_empty(const struct rv_filter *filter)
{
	return filter->tools.count == 0 && filter->run_ids.count == 0 && filter->keys.count == 0 &&
	       filter->attempts.count == 0 && filter->states == 0 && !filter->has_since && !filter->has_until &&
	       !filter->has_min_age;
}

bool rv_filter_matches_row(const struct rv_filter *filter, const struct rv_row *row, int64_t now_ms)
{
	if (!is_one_of(&filter->tools, row->tool) || !is_one_of(&filter->run_ids, row->run_id) ||
	    !is_one_of(&filter->keys, row->key))
		return false;
	if (filter->attempts.count > 0 && (row->attempt_id.data == NULL || !is_one_of(&filter->attempts, row->attempt_id)))
		return false;
	if (filter->has_since && row->started_at < (double)filter->since)
		return false;
	if (filter->has_until && row->started_at > (double)filter->until)
		return false;
	return !filter->has_min_age || (double)now_ms - row->started_at >= (double)filter->min_age;
}

bool rv_filter_matches_orphan(const struct rv_filter *filter, const struct rv_row *row, enum rv_state state,
			      int64_t now_ms)
{
	return (filter->states == 0 || (filter->states & 1u << state) != 0) && rv_filter_matches_row(filter, row, now_ms);
}

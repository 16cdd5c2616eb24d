#include <stdlib.h>

#include "lib/json/write.h"
#include "lib/ledger/attempts.h"
#include "lib/ledger/names.h"
#include "lib/ledger/output.h"

/* What is known of one idempotency key. */
struct key {
	struct rv_place first; /* the row that brought it */
	uint64_t attempts;
	uint64_t outcomes[RV_OUTCOME_CLASSES];
	uint64_t states[RV_STATES];
	double first_started, last_started;
};

struct keys {
	struct rv_pairs *pairs; /* an entry's number is the key's */
	struct key *items;
	size_t count;
};

/* The key's entry, by first appearance: as the identity of a row, its bytes are compared exactly. */
static struct key *key_of(struct keys *keys, const struct rv_row *row, const struct rv_place *place, struct rv_error *err)
{
	struct rv_row identity = { .attempt_id = row->key };
	struct key *key;
	uint32_t entry;

	if (rv_pairs_mark(keys->pairs, &identity, RV_PAIR_INTENT, &entry, err) != 0)
		return NULL;
	if (entry < keys->count)
		return &keys->items[entry];
	if ((keys->count & (keys->count - 1)) == 0) {
		size_t cap = keys->count == 0 ? 1 : keys->count * 2;
		struct key *items = realloc(keys->items, cap * sizeof *items);

		if (items == NULL) {
			(void)rv_error_nomem(err);
			return NULL;
		}
		keys->items = items;
	}
	key = &keys->items[keys->count++];
	*key = (struct key){ .first = *place, .first_started = row->started_at, .last_started = row->started_at };
	return key;
}

static void count_row(struct key *key, const struct rv_scan *scan, const struct rv_place *place, const struct rv_row *row)
{
	if (row->started_at < key->first_started)
		key->first_started = row->started_at;
	if (row->started_at > key->last_started)
		key->last_started = row->started_at;
	if (row->phase == RV_PHASE_INTENT) {
		key->attempts++;
	} else {
		key->attempts += rv_scan_is_alone(scan, place);
		key->outcomes[row->outcome]++;
	}
}

static int count_rows(struct keys *keys, struct rv_output *output, struct rv_error *err)
{
	struct rv_attempts attempts = { .view = output->view };
	const struct rv_place *place;

	while ((place = rv_attempts_next(&attempts)) != NULL) {
		struct rv_row row;
		struct key *key;

		if (rv_view_row(output->view, place, &row, err) != 0)
			return -1;
		if (!rv_filter_matches_row(output->filter, &row, output->view->now_ms))
			continue;
		key = key_of(keys, &row, place, err);
		if (key == NULL)
			return -1;
		count_row(key, &output->view->scan, place, &row);
	}
	return 0;
}

static int count_orphans(struct keys *keys, struct rv_output *output, struct rv_error *err)
{
	struct rv_view *view = output->view;

	for (size_t i = 0; i < view->orphan_count; i++) {
		const struct rv_orphan *orphan = &view->orphans[i];
		struct rv_row row;
		struct key *key;
		bool shown;

		if (rv_report_shown_orphan(view, output->filter, orphan, &row, &shown, err) != 0)
			return -1;
		if (!shown)
			continue;
		key = key_of(keys, &row, &view->scan.intents.items[orphan->intent], err);
		if (key == NULL)
			return -1;
		key->states[orphan->state]++;
	}
	return 0;
}

static int add_key(struct rv_output *output, const struct key *key, struct rv_error *err)
{
	struct rv_buffer *out = &output->text;
	struct rv_row row;

	if (rv_view_row(output->view, &key->first, &row, err) != 0)
		return -1;
	rv_buffer_add_byte(out, '{');
	rv_json_member_span(out, RV_NAME_KEY, row.key);
	rv_json_member_span(out, RV_NAME_RUN_ID, row.run_id);
	rv_json_member_span(out, RV_NAME_TOOL, row.tool);
	rv_json_member_span(out, RV_NAME_ARGS_HASH, row.args_hash);
	rv_json_member_int(out, "attempts", (int64_t)key->attempts);
	rv_json_add_name(out, "outcomes");
	rv_buffer_add_byte(out, '{');
	rv_json_member_int(out, "ok", (int64_t)key->outcomes[RV_OUTCOME_OK]);
	rv_json_member_int(out, "error", (int64_t)key->outcomes[RV_OUTCOME_ERROR]);
	rv_json_member_int(out, "timeout", (int64_t)key->outcomes[RV_OUTCOME_TIMEOUT]);
	rv_buffer_add_byte(out, '}');
	rv_json_member_int(out, "orphans", (int64_t)(key->states[RV_STATE_ORPHAN] + key->states[RV_STATE_UNKNOWN]));
	rv_json_member_int(out, "running", (int64_t)key->states[RV_STATE_RUNNING]);
	rv_json_add_name(out, "firstStartedAt");
	rv_json_add_number(out, key->first_started);
	rv_json_add_name(out, "lastStartedAt");
	rv_json_add_number(out, key->last_started);
	rv_buffer_add_string(out, "}\n");
	return rv_output_flush(output, err);
}

static int add_keys(struct rv_output *output, struct keys *keys, struct rv_error *err)
{
	if (count_rows(keys, output, err) != 0 || count_orphans(keys, output, err) != 0)
		return -1;
	for (size_t i = 0; i < keys->count; i++) {
		const struct key *key = &keys->items[i];
		uint64_t open = key->states[RV_STATE_ORPHAN] + key->states[RV_STATE_UNKNOWN] + key->states[RV_STATE_RUNNING];

		/* A filter by state is about attempts without an outcome: keys without one are not asked for. */
		if ((output->filter->states == 0 || open > 0) && add_key(output, key, err) != 0)
			return -1;
	}
	return 0;
}

int rv_report_keys(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink,
		   struct rv_error *err)
{
	struct rv_output output = rv_output_of(view, filter, sink);
	struct keys keys = { .pairs = rv_pairs_new(err) };
	int result = keys.pairs == NULL ? -1 : add_keys(&output, &keys, err);

	rv_pairs_free(keys.pairs);
	free(keys.items);
	return rv_output_end(&output, result, err);
}

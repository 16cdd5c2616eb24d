#include "lib/ledger/decisions.h"

#include <stdlib.h>
#include <string.h>

#include "lib/ledger/names.h"
#include "lib/ledger/records.h"

#define NO_ENTRY UINT32_MAX

static struct rv_decision *add_decision(struct rv_decisions *decisions, const struct rv_json_node *record,
					struct rv_error *err)
{
	struct rv_decision *items = realloc(decisions->items, (decisions->count + 1) * sizeof *items);
	struct rv_decision *decision;

	if (items == NULL) {
		(void)rv_error_nomem(err);
		return NULL;
	}
	decisions->items = items;
	decision = &items[decisions->count];
	*decision = (struct rv_decision){ .entry = NO_ENTRY, .text = decisions->texts.len };
	if (rv_json_stringify(record, &decisions->texts, err) != 0 || rv_buffer_check(&decisions->texts, err) != 0)
		return NULL;
	decision->len = decisions->texts.len - decision->text;
	decisions->count++;
	return decision;
}

static bool is_sha256(struct rv_span text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '\0' || strchr("0123456789abcdef", text.data[i]) == NULL)
			return false;
	}
	return text.len == RV_SHA256_HEX - 1;
}

/* The attempt that a record names, as a row that pairs with it; false where it names none. */
static bool named_attempt(const struct rv_json_node *record, struct rv_row *row)
{
	const struct rv_json_node *attempt = rv_json_get(record, RV_NAME_ATTEMPT_ID);
	const struct rv_json_node *key = rv_json_get(record, RV_NAME_KEY);
	const struct rv_json_node *started = rv_json_get(record, RV_NAME_STARTED_AT);

	*row = (struct rv_row){ .phase = RV_PHASE_INTENT };
	if (attempt != NULL) {
		if (!rv_json_is_string(attempt))
			return false;
		row->attempt_id = rv_json_string(attempt);
		if (row->attempt_id.data == NULL)
			row->attempt_id = RV_SPAN("");
		return true;
	}
	if (!rv_json_is_string(key) || started == NULL || rv_json_type(started) != RV_JSON_NUMBER)
		return false;
	row->key = rv_json_string(key);
	row->started_at = rv_json_number(started);
	return true;
}

static const char *use_record(void *context, const struct rv_json_node *record, int *failed, struct rv_error *err)
{
	static const char *const needed[] = { "who", "why", "at", "receipt" };
	struct rv_decisions *decisions = context;
	const struct rv_json_node *sha256 = rv_json_get(record, RV_NAME_SHA256);
	struct rv_decision *decision;
	struct rv_row row;
	bool attempt = named_attempt(record, &row);

	for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
		if (!rv_record_has_text(record, needed[i]))
			return "a decision needs who, why, at and receipt, each a string that is not empty";
	}
	if ((sha256 != NULL) == attempt)
		return "a decision names one attempt (attemptId, or idempotencyKey and startedAt), or one sha256";
	if (sha256 != NULL && (!rv_json_is_string(sha256) || !is_sha256(rv_json_string(sha256))))
		return "sha256 is not 64 hexadecimal digits";
	decision = add_decision(decisions, record, err);
	if (decision == NULL)
		*failed = -1;
	else if (attempt)
		*failed = rv_pairs_mark(decisions->attempts, &row, RV_PAIR_INTENT, &decision->entry, err);
	else
		memcpy(decision->sha256, rv_json_string(sha256).data, RV_SHA256_HEX - 1);
	return NULL;
}

int rv_decisions_load(struct rv_decisions *decisions, const char *path, struct rv_error *err)
{
	struct rv_record_user user = { .use = use_record, .context = decisions };

	memset(decisions, 0, sizeof *decisions);
	rv_buffer_init(&decisions->texts, 0);
	decisions->attempts = rv_pairs_new(err);
	if (decisions->attempts != NULL && rv_records_read(path, &user, err) == 0)
		return 0;
	rv_decisions_release(decisions);
	return -1;
}

void rv_decisions_release(struct rv_decisions *decisions)
{
	rv_pairs_free(decisions->attempts);
	free(decisions->items);
	rv_buffer_release(&decisions->texts);
	memset(decisions, 0, sizeof *decisions);
}

static void use_entry(struct rv_decisions *decisions, uint32_t entry)
{
	for (size_t i = 0; i < decisions->count; i++)
		decisions->items[i].used |= decisions->items[i].entry == entry;
}

static bool decides_damage(struct rv_decisions *decisions, const struct rv_damage *damage)
{
	char hex[RV_SHA256_HEX];
	bool found = false;

	rv_hex(damage->sha256, RV_SHA256_SIZE, hex);
	for (size_t i = 0; i < decisions->count; i++) {
		if (strcmp(decisions->items[i].sha256, hex) == 0)
			decisions->items[i].used = found = true;
	}
	return found;
}

int rv_decisions_apply(struct rv_decisions *decisions, struct rv_view *view, struct rv_error *err)
{
	for (size_t i = 0; i < view->scan.damage_count; i++)
		view->scan.damage[i].decided = decides_damage(decisions, &view->scan.damage[i]);
	for (size_t i = 0; i < view->orphan_count; i++) {
		struct rv_orphan *orphan = &view->orphans[i];
		struct rv_row row;
		uint32_t entry;

		if (orphan->state == RV_STATE_RUNNING)
			continue;
		if (rv_view_row(view, &view->scan.intents.items[orphan->intent], &row, err) != 0)
			return -1;
		orphan->decided = rv_pairs_find(decisions->attempts, &row, &entry);
		if (orphan->decided)
			use_entry(decisions, entry);
	}
	return 0;
}

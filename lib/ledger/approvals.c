#include "lib/ledger/approvals.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/ledger/names.h"
#include "lib/ledger/records.h"

/* A triple as the identity of a row: each part behind its length, so that no two triples are one text. */
static int make_identity(struct rv_span run_id, struct rv_span tool, struct rv_span args_hash, struct rv_buffer *text,
			 struct rv_row *row, struct rv_error *err)
{
	const struct rv_span parts[] = { run_id, tool, args_hash };

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		rv_buffer_add(text, &parts[i].len, sizeof parts[i].len);
		rv_buffer_add(text, parts[i].data, parts[i].len);
	}
	*row = (struct rv_row){ .phase = RV_PHASE_INTENT, .attempt_id = { text->data, text->len } };
	return rv_buffer_check(text, err);
}

static int add_approval(struct rv_approvals *approvals, const struct rv_json_node *record, uint32_t entry,
			struct rv_error *err)
{
	const struct rv_json_node *decision = rv_json_get(record, "decision");
	struct rv_approval *approval;

	if (entry == approvals->count) {
		struct rv_approval *items = realloc(approvals->items, (approvals->count + 1) * sizeof *items);

		if (items == NULL)
			return rv_error_nomem(err);
		approvals->items = items;
		approvals->count++;
	}
	approval = &approvals->items[entry];
	*approval = (struct rv_approval){ .text = approvals->texts.len };
	approval->approved = decision == NULL || (rv_json_is_string(decision) &&
						  rv_span_equal(rv_json_string(decision), RV_SPAN("approved")));
	if (rv_json_stringify(record, &approvals->texts, err) != 0)
		return -1;
	approval->len = approvals->texts.len - approval->text;
	return rv_buffer_check(&approvals->texts, err);
}

static const char *use_record(void *context, const struct rv_json_node *record, int *failed, struct rv_error *err)
{
	struct rv_approvals *approvals = context;
	const struct rv_json_node *run_id = rv_json_get(record, RV_NAME_RUN_ID);
	const struct rv_json_node *tool = rv_json_get(record, RV_NAME_TOOL);
	const struct rv_json_node *args_hash = rv_json_get(record, RV_NAME_ARGS_HASH);
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_row row;
	uint32_t entry;

	if (!rv_json_is_string(run_id) || !rv_json_is_string(tool) || !rv_json_is_string(args_hash))
		return "an approval has runId, tool and argsHash, each a string";
	*failed = make_identity(rv_json_string(run_id), rv_json_string(tool), rv_json_string(args_hash), &text, &row, err);
	if (*failed == 0)
		*failed = rv_pairs_mark(approvals->triples, &row, RV_PAIR_INTENT, &entry, err);
	if (*failed == 0)
		*failed = add_approval(approvals, record, entry, err);
	return NULL;
}

int rv_approvals_load(struct rv_approvals *approvals, const char *path, struct rv_error *err)
{
	struct rv_record_user user = { .use = use_record, .context = approvals };

	memset(approvals, 0, sizeof *approvals);
	rv_buffer_init(&approvals->texts, 0);
	approvals->triples = rv_pairs_new(err);
	if (approvals->triples != NULL && rv_records_read(path, &user, err) == 0)
		return 0;
	rv_approvals_release(approvals);
	return -1;
}

void rv_approvals_release(struct rv_approvals *approvals)
{
	rv_pairs_free(approvals->triples);
	free(approvals->items);
	rv_buffer_release(&approvals->texts);
	memset(approvals, 0, sizeof *approvals);
}

int rv_approvals_find(const struct rv_approvals *approvals, struct rv_span run_id, struct rv_span tool,
		      struct rv_span args_hash, struct rv_approval **found, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_row row;
	uint32_t entry;

	*found = NULL;
	if (make_identity(run_id, tool, args_hash, &text, &row, err) != 0)
		return -1;
	if (rv_pairs_find(approvals->triples, &row, &entry) && approvals->items[entry].approved)
		*found = &approvals->items[entry];
	return 0;
}

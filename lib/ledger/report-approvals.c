#include "lib/json/write.h"
#include "lib/ledger/attempts.h"
#include "lib/ledger/output.h"

static int add_unapproved(struct rv_output *output, const struct rv_place *place, const struct rv_row *row,
			  struct rv_error *err)
{
	struct rv_buffer *out = &output->text;

	rv_buffer_add_string(out, "{\"kind\":\"unapproved\",");
	if (rv_row_add_members(row, true, out, err) != 0)
		return -1;
	rv_output_add_at(output, place);
	rv_buffer_add_string(out, "}\n");
	return rv_output_flush(output, err);
}

/* An attempt is an intent, or an outcome that no intent pairs with. */
static int check_attempts(struct rv_output *output, struct rv_approvals *approvals, uint64_t *unapproved,
			  struct rv_error *err)
{
	struct rv_attempts attempts = { .view = output->view };
	const struct rv_place *place;

	while ((place = rv_attempts_next(&attempts)) != NULL) {
		struct rv_approval *approval;
		struct rv_row row;

		if (rv_view_row(output->view, place, &row, err) != 0)
			return -1;
		if (row.phase == RV_PHASE_OUTCOME && !rv_scan_is_alone(&output->view->scan, place))
			continue;
		if (!rv_filter_matches_row(output->filter, &row, output->view->now_ms))
			continue;
		if (rv_approvals_find(approvals, row.run_id, row.tool, row.args_hash, &approval, err) != 0)
			return -1;
		if (approval != NULL) {
			approval->attempts++;
			continue;
		}
		(*unapproved)++;
		if (add_unapproved(output, place, &row, err) != 0)
			return -1;
	}
	return 0;
}

/* The record, an object as JSON.stringify wrote it, between our own two members. */
static int add_approval(struct rv_output *output, const struct rv_approvals *approvals, const struct rv_approval *approval,
			struct rv_error *err)
{
	struct rv_buffer *out = &output->text;

	rv_buffer_add_string(out, "{\"kind\":\"approval\",");
	rv_buffer_add(out, approvals->texts.data + approval->text + 1, approval->len - 2);
	rv_json_member_int(out, "attempts", (int64_t)approval->attempts);
	rv_buffer_add_string(out, "}\n");
	return rv_output_flush(output, err);
}

static int add_all(struct rv_output *output, struct rv_approvals *approvals, uint64_t *unapproved, struct rv_error *err)
{
	if (check_attempts(output, approvals, unapproved, err) != 0)
		return -1;
	for (size_t i = 0; i < approvals->count; i++) {
		if (approvals->items[i].approved && add_approval(output, approvals, &approvals->items[i], err) != 0)
			return -1;
	}
	return 0;
}

int rv_report_approvals(struct rv_view *view, const struct rv_filter *filter, struct rv_approvals *approvals,
			const struct rv_sink *sink, uint64_t *unapproved, struct rv_error *err)
{
	struct rv_output output = rv_output_of(view, filter, sink);

	*unapproved = 0;
	return rv_output_end(&output, add_all(&output, approvals, unapproved, err), err);
}

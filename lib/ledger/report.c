#include "lib/ledger/report.h"

#include "lib/base/cleanup.h"
#include "lib/json/write.h"
#include "lib/ledger/names.h"
#include "lib/ledger/output.h"

int rv_report_shown_orphan(struct rv_view *view, const struct rv_filter *filter, const struct rv_orphan *orphan,
			struct rv_row *row, bool *shown, struct rv_error *err)
{
	*shown = false;
	if (orphan->decided)
		return 0;
	if (rv_view_row(view, &view->scan.intents.items[orphan->intent], row, err) != 0)
		return -1;
	*shown = rv_filter_matches_orphan(filter, row, orphan->state, view->now_ms);
	return 0;
}

int rv_report_count(struct rv_view *view, const struct rv_filter *filter, struct rv_report_counts *counts,
		    struct rv_error *err)
{
	*counts = (struct rv_report_counts){ .hidden = 0 };
	for (size_t i = 0; i < view->orphan_count; i++) {
		const struct rv_orphan *orphan = &view->orphans[i];
		struct rv_row row;
		bool shown;

		if (rv_report_shown_orphan(view, filter, orphan, &row, &shown, err) != 0)
			return -1;
		if (shown)
			counts->shown[orphan->state]++;
		else if (!orphan->decided && orphan->state != RV_STATE_RUNNING)
			counts->hidden++;
	}
	return 0;
}

static int add_orphan(struct rv_output *output, const struct rv_orphan *orphan, const struct rv_row *row,
		      struct rv_error *err)
{
	const struct rv_place *place = &output->view->scan.intents.items[orphan->intent];
	struct rv_buffer *out = &output->text;

	rv_buffer_add_byte(out, '{');
	if (rv_row_add_members(row, true, out, err) != 0)
		return -1;
	rv_output_add_at(output, place);
	rv_json_member_string(out, "state", rv_state_name(orphan->state));
	rv_buffer_add_string(out, "}\n");
	return rv_output_flush(output, err);
}

static int add_orphans(struct rv_output *output, struct rv_error *err)
{
	for (size_t i = 0; i < output->view->orphan_count; i++) {
		struct rv_row row;
		bool shown;

		if (rv_report_shown_orphan(output->view, output->filter, &output->view->orphans[i], &row, &shown, err) != 0)
			return -1;
		if (shown && add_orphan(output, &output->view->orphans[i], &row, err) != 0)
			return -1;
	}
	return 0;
}

int rv_report_orphans(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink,
		      struct rv_error *err)
{
	struct rv_output output = rv_output_of(view, filter, sink);

	return rv_output_end(&output, add_orphans(&output, err), err);
}

/* A comma between elements: after anything but the bracket that opened the array. */
static void begin_element(struct rv_buffer *out, size_t *count)
{
	if ((*count)++ > 0)
		rv_buffer_add_byte(out, ',');
	rv_buffer_add_byte(out, '{');
}

static void begin_array(struct rv_output *output, const char *name)
{
	rv_json_add_name(&output->text, name);
	rv_buffer_add_byte(&output->text, '[');
}

static int end_array(struct rv_output *output, struct rv_error *err)
{
	rv_buffer_add_byte(&output->text, ']');
	return rv_buffer_check(&output->text, err);
}

static void add_file(struct rv_output *output, const struct rv_place *place)
{
	if (output->view->source_count > 1)
		rv_json_member_string(&output->text, "file", output->view->sources[place->file].path);
}

static int add_rows(struct rv_output *output, const char *name, const struct rv_places *places, struct rv_error *err)
{
	size_t count = 0;

	begin_array(output, name);
	for (size_t i = 0; i < places->count; i++) {
		const struct rv_place *place = &places->items[i];
		struct rv_row row;

		if (rv_view_row(output->view, place, &row, err) != 0)
			return -1;
		if (row.phase != RV_PHASE_TORN && !rv_filter_matches_row(output->filter, &row, output->view->now_ms))
			continue;
		begin_element(&output->text, &count);
		if (rv_row_add_members(&row, false, &output->text, err) != 0)
			return -1;
		if (row.phase == RV_PHASE_TORN)
			add_file(output, place);
		rv_buffer_add_byte(&output->text, '}');
		if (rv_output_flush(output, err) != 0)
			return -1;
	}
	return end_array(output, err);
}

static int add_orphaned(struct rv_output *output, struct rv_error *err)
{
	size_t count = 0;

	begin_array(output, "orphanedIntents");
	for (size_t i = 0; i < output->view->orphan_count; i++) {
		struct rv_row row;
		bool shown;

		if (rv_report_shown_orphan(output->view, output->filter, &output->view->orphans[i], &row, &shown, err) != 0)
			return -1;
		if (!shown)
			continue;
		begin_element(&output->text, &count);
		if (rv_row_add_members(&row, false, &output->text, err) != 0)
			return -1;
		rv_buffer_add_byte(&output->text, '}');
		if (rv_output_flush(output, err) != 0)
			return -1;
	}
	return end_array(output, err);
}

static int add_preview(struct rv_output *output, const struct rv_place *place, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer preview = RV_BUFFER_INIT;

	if (rv_view_preview(output->view, place, &preview, err) != 0)
		return -1;
	rv_json_member_span(&output->text, "preview", (struct rv_span){ preview.data, preview.len });
	return 0;
}

static int add_corrupt(struct rv_output *output, struct rv_error *err)
{
	const struct rv_scan *scan = &output->view->scan;
	size_t count = 0;

	begin_array(output, "corrupt");
	for (size_t i = 0; i < scan->damage_count; i++) {
		const struct rv_place *place = &scan->damage[i].place;
		char hex[RV_SHA256_HEX];

		rv_hex(scan->damage[i].sha256, RV_SHA256_SIZE, hex);
		begin_element(&output->text, &count);
		add_file(output, place);
		rv_json_member_int(&output->text, "line", (int64_t)place->line);
		rv_json_member_int(&output->text, "offset", (int64_t)place->offset);
		rv_json_member_string(&output->text, RV_NAME_SHA256, hex);
		if (add_preview(output, place, err) != 0)
			return -1;
		rv_buffer_add_byte(&output->text, '}');
		if (rv_output_flush(output, err) != 0)
			return -1;
	}
	return end_array(output, err);
}

/* One file's tail is an object, as the engine has it; those of several files are a list. */
static int add_tails(struct rv_output *output, struct rv_error *err)
{
	size_t files = output->view->source_count;
	size_t count = 0;

	if (files > 1)
		begin_array(output, "tornTails");
	for (size_t i = 0; i < files; i++) {
		const struct rv_scan_tail *tail = rv_scan_tail(&output->view->scan, (uint32_t)i);

		if (!tail->present)
			continue;
		if (files == 1)
			rv_json_add_name(&output->text, "tornTail");
		begin_element(&output->text, &count);
		add_file(output, &tail->place);
		if (add_preview(output, &tail->place, err) != 0)
			return -1;
		rv_buffer_add_byte(&output->text, '}');
	}
	return files > 1 ? end_array(output, err) : 0;
}

static void add_decided(struct rv_output *output, const struct rv_decisions *decisions)
{
	bool first = true;

	begin_array(output, "decided");
	for (size_t i = 0; i < decisions->count; i++) {
		const struct rv_decision *decision = &decisions->items[i];

		if (!decision->used)
			continue;
		if (!first)
			rv_buffer_add_byte(&output->text, ',');
		rv_buffer_add(&output->text, decisions->texts.data + decision->text, decision->len);
		first = false;
	}
	rv_buffer_add_byte(&output->text, ']');
}

static int add_whole(struct rv_output *output, const struct rv_decisions *decisions, struct rv_error *err)
{
	const struct rv_scan *scan = &output->view->scan;

	rv_buffer_add_byte(&output->text, '{');
	if (add_rows(output, "intents", &scan->intents, err) != 0 ||
	    add_rows(output, "outcomes", &scan->outcomes, err) != 0 || add_orphaned(output, err) != 0 ||
	    add_corrupt(output, err) != 0 || add_rows(output, "tornArtifacts", &scan->torn, err) != 0 ||
	    add_tails(output, err) != 0)
		return -1;
	if (decisions != NULL)
		add_decided(output, decisions);
	rv_buffer_add_string(&output->text, "}\n");
	return 0;
}

int rv_report_whole(struct rv_view *view, const struct rv_filter *filter, const struct rv_decisions *decisions,
		    const struct rv_sink *sink, struct rv_error *err)
{
	struct rv_output output = rv_output_of(view, filter, sink);

	return rv_output_end(&output, add_whole(&output, decisions, err), err);
}

static int count_rows(struct rv_view *view, const struct rv_filter *filter, const struct rv_places *places,
		      uint64_t *rows, uint64_t *alone, struct rv_error *err)
{
	for (size_t i = 0; i < places->count; i++) {
		struct rv_row row;

		if (rv_view_row(view, &places->items[i], &row, err) != 0)
			return -1;
		if (!rv_filter_matches_row(filter, &row, view->now_ms))
			continue;
		(*rows)++;
		*alone += rv_scan_is_alone(&view->scan, &places->items[i]);
	}
	return 0;
}

/* Nothing is left out, so that no row has to be read again, nor to be kept. */
static void count_all(const struct rv_scan *scan, uint64_t *intents, uint64_t *outcomes, uint64_t *alone)
{
	*intents = scan->intent_count;
	*outcomes = scan->outcome_count;
	for (size_t i = 0; i < scan->outcomes.count; i++)
		*alone += rv_scan_is_alone(scan, &scan->outcomes.items[i]);
}

static uint64_t count_tails(const struct rv_view *view)
{
	uint64_t count = 0;

	for (size_t i = 0; i < view->source_count; i++)
		count += rv_scan_tail(&view->scan, (uint32_t)i)->present;
	return count;
}

static int add_summary(struct rv_output *output, struct rv_error *err)
{
	struct rv_view *view = output->view;
	struct rv_report_counts counts;
	struct rv_buffer *out = &output->text;
	uint64_t intents = 0, outcomes = 0, alone = 0;

	if (rv_filter_is_empty(output->filter))
		count_all(&view->scan, &intents, &outcomes, &alone);
	else if (count_rows(view, output->filter, &view->scan.intents, &intents, &alone, err) != 0 ||
		 count_rows(view, output->filter, &view->scan.outcomes, &outcomes, &alone, err) != 0)
		return -1;
	if (rv_report_count(view, output->filter, &counts, err) != 0)
		return -1;
	rv_buffer_add_byte(out, '{');
	rv_json_member_int(out, "files", (int64_t)view->source_count);
	rv_json_member_int(out, "rows", (int64_t)(intents + outcomes + view->scan.torn_count));
	rv_json_member_int(out, "intents", (int64_t)intents);
	rv_json_member_int(out, "outcomes", (int64_t)outcomes);
	rv_json_member_int(out, "attempts", (int64_t)(intents + alone));
	rv_json_member_int(out, "orphans", (int64_t)counts.shown[RV_STATE_ORPHAN]);
	rv_json_member_int(out, "running", (int64_t)counts.shown[RV_STATE_RUNNING]);
	rv_json_member_int(out, "unknown", (int64_t)counts.shown[RV_STATE_UNKNOWN]);
	rv_json_member_int(out, "corrupt", (int64_t)view->scan.damage_count);
	rv_json_member_int(out, "tornArtifacts", (int64_t)view->scan.torn_count);
	rv_json_member_int(out, "tornTails", (int64_t)count_tails(view));
	rv_buffer_add_string(out, "}\n");
	return 0;
}

int rv_report_summary(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink,
		      struct rv_error *err)
{
	struct rv_output output = rv_output_of(view, filter, sink);

	return rv_output_end(&output, add_summary(&output, err), err);
}

#include "lib/ledger/report.h"

#include "lib/base/cleanup.h"
#include "lib/json/write.h"
#include "lib/ledger/names.h"

#define FLUSH_BYTES 65536

/* A piece of output on its way to the sink. */
struct writer {
	struct rv_view *view;
	const struct rv_filter *filter;
	const struct rv_sink *sink;
	struct rv_buffer text;
};

static struct writer writer_of(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink)
{
	return (struct writer){ .view = view, .filter = filter, .sink = sink, .text = RV_BUFFER_INIT };
}

static int flush(struct writer *writer, size_t least, struct rv_error *err)
{
	if (rv_buffer_check(&writer->text, err) != 0)
		return -1;
	if (writer->text.len < least || writer->text.len == 0)
		return 0;
	if (writer->sink->write(writer->sink->context, writer->text.data, writer->text.len) != 0)
		return rv_error_set(err, RV_E_IO, 0, "output");
	rv_buffer_clear(&writer->text);
	return 0;
}

static int end(struct writer *writer, int result, struct rv_error *err)
{
	if (result == 0)
		result = flush(writer, 0, err);
	rv_buffer_release(&writer->text);
	return result;
}

/* The orphan's row, if it is to be shown. */
static int shown_orphan(struct rv_view *view, const struct rv_filter *filter, const struct rv_orphan *orphan,
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

		if (shown_orphan(view, filter, orphan, &row, &shown, err) != 0)
			return -1;
		if (shown)
			counts->shown[orphan->state]++;
		else if (!orphan->decided && orphan->state != RV_STATE_RUNNING)
			counts->hidden++;
	}
	return 0;
}

static int add_orphan(struct writer *writer, const struct rv_orphan *orphan, const struct rv_row *row,
		      struct rv_error *err)
{
	const struct rv_place *place = &writer->view->scan.intents.items[orphan->intent];
	struct rv_buffer *out = &writer->text;

	rv_buffer_add_byte(out, '{');
	if (rv_row_add_members(row, true, out, err) != 0)
		return -1;
	rv_json_add_name(out, "at");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "file", writer->view->sources[place->file].path);
	rv_json_member_int(out, "line", (int64_t)place->line);
	rv_json_member_int(out, "offset", (int64_t)place->offset);
	rv_buffer_add_byte(out, '}');
	rv_json_member_string(out, "state", rv_state_name(orphan->state));
	rv_buffer_add_string(out, "}\n");
	return flush(writer, FLUSH_BYTES, err);
}

static int add_orphans(struct writer *writer, struct rv_error *err)
{
	for (size_t i = 0; i < writer->view->orphan_count; i++) {
		struct rv_row row;
		bool shown;

		if (shown_orphan(writer->view, writer->filter, &writer->view->orphans[i], &row, &shown, err) != 0)
			return -1;
		if (shown && add_orphan(writer, &writer->view->orphans[i], &row, err) != 0)
			return -1;
	}
	return 0;
}

int rv_report_orphans(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink,
		      struct rv_error *err)
{
	struct writer writer = writer_of(view, filter, sink);

	return end(&writer, add_orphans(&writer, err), err);
}

/* A comma between elements: after anything but the bracket that opened the array. */
static void begin_element(struct rv_buffer *out, size_t *count)
{
	if ((*count)++ > 0)
		rv_buffer_add_byte(out, ',');
	rv_buffer_add_byte(out, '{');
}

static void begin_array(struct writer *writer, const char *name)
{
	rv_json_add_name(&writer->text, name);
	rv_buffer_add_byte(&writer->text, '[');
}

static int end_array(struct writer *writer, struct rv_error *err)
{
	rv_buffer_add_byte(&writer->text, ']');
	return rv_buffer_check(&writer->text, err);
}

static void add_file(struct writer *writer, const struct rv_place *place)
{
	if (writer->view->source_count > 1)
		rv_json_member_string(&writer->text, "file", writer->view->sources[place->file].path);
}

static int add_rows(struct writer *writer, const char *name, const struct rv_places *places, struct rv_error *err)
{
	size_t count = 0;

	begin_array(writer, name);
	for (size_t i = 0; i < places->count; i++) {
		const struct rv_place *place = &places->items[i];
		struct rv_row row;

		if (rv_view_row(writer->view, place, &row, err) != 0)
			return -1;
		if (row.phase != RV_PHASE_TORN && !rv_filter_matches_row(writer->filter, &row, writer->view->now_ms))
			continue;
		begin_element(&writer->text, &count);
		if (rv_row_add_members(&row, false, &writer->text, err) != 0)
			return -1;
		if (row.phase == RV_PHASE_TORN)
			add_file(writer, place);
		rv_buffer_add_byte(&writer->text, '}');
		if (flush(writer, FLUSH_BYTES, err) != 0)
			return -1;
	}
	return end_array(writer, err);
}

static int add_orphaned(struct writer *writer, struct rv_error *err)
{
	size_t count = 0;

	begin_array(writer, "orphanedIntents");
	for (size_t i = 0; i < writer->view->orphan_count; i++) {
		struct rv_row row;
		bool shown;

		if (shown_orphan(writer->view, writer->filter, &writer->view->orphans[i], &row, &shown, err) != 0)
			return -1;
		if (!shown)
			continue;
		begin_element(&writer->text, &count);
		if (rv_row_add_members(&row, false, &writer->text, err) != 0)
			return -1;
		rv_buffer_add_byte(&writer->text, '}');
		if (flush(writer, FLUSH_BYTES, err) != 0)
			return -1;
	}
	return end_array(writer, err);
}

static int add_preview(struct writer *writer, const struct rv_place *place, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer preview = RV_BUFFER_INIT;

	if (rv_view_preview(writer->view, place, &preview, err) != 0)
		return -1;
	rv_json_member_span(&writer->text, "preview", (struct rv_span){ preview.data, preview.len });
	return 0;
}

static int add_corrupt(struct writer *writer, struct rv_error *err)
{
	const struct rv_scan *scan = &writer->view->scan;
	size_t count = 0;

	begin_array(writer, "corrupt");
	for (size_t i = 0; i < scan->damage_count; i++) {
		const struct rv_place *place = &scan->damage[i].place;
		char hex[RV_SHA256_HEX];

		rv_hex(scan->damage[i].sha256, RV_SHA256_SIZE, hex);
		begin_element(&writer->text, &count);
		add_file(writer, place);
		rv_json_member_int(&writer->text, "line", (int64_t)place->line);
		rv_json_member_int(&writer->text, "offset", (int64_t)place->offset);
		rv_json_member_string(&writer->text, RV_NAME_SHA256, hex);
		if (add_preview(writer, place, err) != 0)
			return -1;
		rv_buffer_add_byte(&writer->text, '}');
		if (flush(writer, FLUSH_BYTES, err) != 0)
			return -1;
	}
	return end_array(writer, err);
}

/* One file's tail is an object, as the engine has it; those of several files are a list. */
static int add_tails(struct writer *writer, struct rv_error *err)
{
	size_t files = writer->view->source_count;
	size_t count = 0;

	if (files > 1)
		begin_array(writer, "tornTails");
	for (size_t i = 0; i < files; i++) {
		const struct rv_scan_tail *tail = rv_scan_tail(&writer->view->scan, (uint32_t)i);

		if (!tail->present)
			continue;
		if (files == 1)
			rv_json_add_name(&writer->text, "tornTail");
		begin_element(&writer->text, &count);
		add_file(writer, &tail->place);
		if (add_preview(writer, &tail->place, err) != 0)
			return -1;
		rv_buffer_add_byte(&writer->text, '}');
	}
	return files > 1 ? end_array(writer, err) : 0;
}

static int add_whole(struct writer *writer, struct rv_error *err)
{
	const struct rv_scan *scan = &writer->view->scan;

	rv_buffer_add_byte(&writer->text, '{');
	if (add_rows(writer, "intents", &scan->intents, err) != 0 ||
	    add_rows(writer, "outcomes", &scan->outcomes, err) != 0 || add_orphaned(writer, err) != 0 ||
	    add_corrupt(writer, err) != 0 || add_rows(writer, "tornArtifacts", &scan->torn, err) != 0 ||
	    add_tails(writer, err) != 0)
		return -1;
	rv_buffer_add_string(&writer->text, "}\n");
	return 0;
}

int rv_report_whole(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink,
		    struct rv_error *err)
{
	struct writer writer = writer_of(view, filter, sink);

	return end(&writer, add_whole(&writer, err), err);
}

static int count_rows(struct rv_view *view, const struct rv_filter *filter, const struct rv_places *places,
		      uint64_t *rows, uint64_t *alone, struct rv_error *err)
{
	for (size_t i = 0; i < places->count; i++) {
		struct rv_row row;

		if (!rv_filter_is_empty(filter)) {
			if (rv_view_row(view, &places->items[i], &row, err) != 0)
				return -1;
			if (!rv_filter_matches_row(filter, &row, view->now_ms))
				continue;
		}
		(*rows)++;
		*alone += rv_scan_is_alone(&view->scan, &places->items[i]);
	}
	return 0;
}

static uint64_t count_tails(const struct rv_view *view)
{
	uint64_t count = 0;

	for (size_t i = 0; i < view->source_count; i++)
		count += rv_scan_tail(&view->scan, (uint32_t)i)->present;
	return count;
}

static int add_summary(struct writer *writer, struct rv_error *err)
{
	struct rv_view *view = writer->view;
	struct rv_report_counts counts;
	struct rv_buffer *out = &writer->text;
	uint64_t intents = 0, outcomes = 0, alone = 0;

	if (count_rows(view, writer->filter, &view->scan.intents, &intents, &alone, err) != 0 ||
	    count_rows(view, writer->filter, &view->scan.outcomes, &outcomes, &alone, err) != 0 ||
	    rv_report_count(view, writer->filter, &counts, err) != 0)
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
	struct writer writer = writer_of(view, filter, sink);

	return end(&writer, add_summary(&writer, err), err);
}

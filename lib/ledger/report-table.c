#include "lib/ledger/report.h"

#include <string.h>

#include "lib/base/cleanup.h"

enum column { STATE, AGE, TOOL, RUN, KEY, ATTEMPT, AT, COLUMNS };

static const char *const titles[COLUMNS] = { "STATE", "AGE", "TOOL", "RUN", "KEY", "ATTEMPT", "AT" };

struct line {
	struct rv_buffer cells[COLUMNS];
};

static void line_release(struct line *line)
{
	for (int i = 0; i < COLUMNS; i++)
		rv_buffer_release(&line->cells[i]);
}

static void add_age(struct rv_buffer *out, double ms)
{
	static const struct {
		double ms;
		char letter;
	} units[] = { { 86400000, 'd' }, { 3600000, 'h' }, { 60000, 'm' }, { 1000, 's' } };
	size_t unit = 0;

	if (!(ms >= 0 && ms < 1e15)) { /* dated in the future, or no time at all */
		rv_buffer_add_byte(out, '-');
		return;
	}
	while (unit < 3 && ms < 2 * units[unit].ms)
		unit++;
	rv_buffer_printf(out, "%lld%c", (long long)(ms / units[unit].ms), units[unit].letter);
}

static void add_text(struct rv_buffer *out, struct rv_span text)
{
	if (text.len == 0)
		rv_buffer_add_byte(out, '-');
	else
		rv_text_add_escaped(out, text.data, text.len);
}

static void fill(struct line *line, const struct rv_view *view, const struct rv_orphan *orphan, const struct rv_row *row)
{
	const struct rv_place *place = &view->scan.intents.items[orphan->intent];

	for (int i = 0; i < COLUMNS; i++)
		rv_buffer_init(&line->cells[i], 0);
	rv_buffer_add_string(&line->cells[STATE], rv_state_name(orphan->state));
	add_age(&line->cells[AGE], (double)view->now_ms - row->started_at);
	add_text(&line->cells[TOOL], row->tool);
	add_text(&line->cells[RUN], row->run_id);
	add_text(&line->cells[KEY], row->key);
	add_text(&line->cells[ATTEMPT], row->attempt_id);
	add_text(&line->cells[AT], rv_span_of(view->sources[place->file].path));
	rv_buffer_printf(&line->cells[AT], ":%llu", (unsigned long long)place->line);
}

/* Characters, as a terminal with narrow ones shows them. */
static size_t width_of(const struct rv_buffer *cell)
{
	size_t width = 0;

	for (size_t i = 0; i < cell->len; i++)
		width += ((unsigned char)cell->data[i] & 0xC0) != 0x80;
	return width;
}

struct table {
	struct rv_view *view;
	const struct rv_filter *filter;
	const struct rv_sink *sink;
	size_t widths[COLUMNS];
	size_t lines;
};

static int measure(struct table *table, const struct line *line, struct rv_error *err)
{
	for (int i = 0; i < COLUMNS; i++) {
		size_t width = width_of(&line->cells[i]);

		if (rv_buffer_check(&line->cells[i], err) != 0)
			return -1;
		if (width > table->widths[i])
			table->widths[i] = width;
	}
	table->lines++;
	return 0;
}

static int print(struct table *table, const struct line *line, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;

	for (int i = 0; i < COLUMNS; i++) {
		rv_buffer_add(&out, line->cells[i].data, line->cells[i].len);
		if (i + 1 < COLUMNS)
			rv_buffer_printf(&out, "%*s", (int)(table->widths[i] - width_of(&line->cells[i]) + 2), "");
	}
	rv_buffer_add_byte(&out, '\n');
	if (rv_buffer_check(&out, err) != 0)
		return -1;
	if (table->sink->write(table->sink->context, out.data, out.len) != 0)
		return rv_error_set(err, RV_E_IO, 0, "output");
	return 0;
}

static int each(struct table *table, int (*use)(struct table *, const struct line *, struct rv_error *),
		struct rv_error *err)
{
	struct rv_view *view = table->view;

	for (size_t i = 0; i < view->orphan_count; i++) {
		const struct rv_orphan *orphan = &view->orphans[i];
		struct line line;
		struct rv_row row;
		int result;

		if (rv_view_row(view, &view->scan.intents.items[orphan->intent], &row, err) != 0)
			return -1;
		if (orphan->decided || !rv_filter_matches_orphan(table->filter, &row, orphan->state, view->now_ms))
			continue;
		fill(&line, view, orphan, &row);
		result = use(table, &line, err);
		line_release(&line);
		if (result != 0)
			return -1;
	}
	return 0;
}

static void fill_titles(struct line *line)
{
	for (int i = 0; i < COLUMNS; i++) {
		rv_buffer_init(&line->cells[i], 0);
		rv_buffer_add_string(&line->cells[i], titles[i]);
	}
}

/* Twice over the orphans, so that no column needs them all in memory. */
int rv_report_table(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink,
		    struct rv_error *err)
{
	struct table table = { .view = view, .filter = filter, .sink = sink };
	struct line head;
	int result;

	if (each(&table, measure, err) != 0)
		return -1;
	if (table.lines == 0)
		return 0;
	fill_titles(&head);
	result = measure(&table, &head, err);
	if (result == 0)
		result = print(&table, &head, err);
	line_release(&head);
	return result == 0 ? each(&table, print, err) : -1;
}

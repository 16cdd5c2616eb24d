#include "lib/ledger/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/ledger/append.h"
#include "lib/ledger/damage.h"
#include "lib/ledger/gather.h"
#include "lib/ledger/row.h"

#define REREADS 20 /* a repair is over in two seconds, or its ledger is damaged */
#define PREVIEW_UNITS 120

static int read_on(struct rv_view *view, struct rv_error *err)
{
	for (size_t i = 0; i < view->source_count; i++) {
		if (rv_scan_read(&view->scan, (uint32_t)i, view->sources[i].fd, err) != 0)
			return rv_error_wrap(err, "%s", view->sources[i].path);
	}
	return 0;
}

static int gather(struct rv_view *view, const struct rv_view_options *options, struct rv_error *err)
{
	rv_auto_free int *fds = calloc(view->source_count, sizeof *fds);
	struct rv_gather gathering = { .fds = fds, .count = view->source_count, .threads = options->threads,
				       .progress = options->progress, .context = options->context };
	size_t failed;

	if (fds == NULL)
		return rv_error_nomem(err);
	for (size_t i = 0; i < view->source_count; i++)
		fds[i] = view->sources[i].fd;
	if (rv_scan_gather(&view->scan, &gathering, &failed, err) != 0)
		return rv_error_wrap(err, "%s", view->sources[failed].path);
	return 0;
}

static int scan_once(struct rv_view *view, const struct rv_view_options *options, struct rv_error *err)
{
	rv_scan_release(&view->scan);
	if (rv_scan_init(&view->scan, options->keep_all, err) != 0)
		return -1;
	for (size_t i = 0; i < view->source_count; i++) {
		uint32_t file;

		if (rv_scan_add_file(&view->scan, &file, err) != 0)
			return -1;
	}
	return gather(view, options, err);
}

static int open_sources(struct rv_view *view, const char *const *paths, size_t count, struct rv_error *err)
{
	view->sources = calloc(count, sizeof *view->sources);
	if (view->sources == NULL)
		return rv_error_nomem(err);
	for (; view->source_count < count; view->source_count++) {
		struct rv_source *source = &view->sources[view->source_count];

		if (rv_source_open(source, paths[view->source_count], err) != 0) {
			rv_source_close(source);
			return -1;
		}
	}
	return 0;
}

static int add_orphan(struct rv_view *view, size_t intent, size_t *cap, struct rv_error *err)
{
	if (view->orphan_count == *cap) {
		size_t want = *cap == 0 ? 64 : *cap * 2;
		struct rv_orphan *grown = realloc(view->orphans, want * sizeof *grown);

		if (grown == NULL)
			return rv_error_nomem(err);
		view->orphans = grown;
		*cap = want;
	}
	view->orphans[view->orphan_count++] = (struct rv_orphan){ .intent = intent };
	return 0;
}

static int judge_orphans(struct rv_view *view, struct rv_error *err)
{
	const struct rv_places *intents = &view->scan.intents;
	char boot_id[37];
	size_t cap = 0;

	if (rv_boot_id(boot_id, err) != 0)
		return -1;
	view->now_ms = rv_clock_wall_ms();
	for (size_t i = 0; i < intents->count; i++) {
		struct rv_row row;

		if (!rv_scan_is_open(&view->scan, &intents->items[i]))
			continue;
		if (add_orphan(view, i, &cap, err) != 0 || rv_view_row(view, &intents->items[i], &row, err) != 0)
			return -1;
		if (rv_liveness_judge(&view->sources[intents->items[i].file], &row, rv_span_of(boot_id), view->now_ms,
				      &view->orphans[view->orphan_count - 1].state, err) != 0)
			return -1;
	}
	return 0;
}

static int has_grown(const struct rv_view *view, bool *grown, struct rv_error *err)
{
	*grown = false;
	for (size_t i = 0; i < view->source_count; i++) {
		struct rv_place at = rv_scan_position(&view->scan, (uint32_t)i);
		uint64_t size;

		if (rv_source_size(&view->sources[i], &size, err) != 0)
			return -1;
		if (size < at.offset + at.len)
			return rv_error_set(err, RV_E_IO, 0, "%s: became shorter while it was read", view->sources[i].path);
		*grown = *grown || size > at.offset + at.len;
	}
	return 0;
}

/* An attempt that was found without its lock may have ended in the moment between: its outcome, which
 * is written before the lock is given up, is then in the ledger by now. */
static int settle(struct rv_view *view, struct rv_error *err)
{
	size_t kept = 0;
	bool grown;

	if (view->orphan_count == 0)
		return 0;
	if (has_grown(view, &grown, err) != 0)
		return -1;
	if (!grown)
		return 0;
	rv_scan_settle(&view->scan);
	if (read_on(view, err) != 0)
		return -1;
	for (size_t i = 0; i < view->orphan_count; i++) {
		if (rv_scan_is_open(&view->scan, &view->scan.intents.items[view->orphans[i].intent]))
			view->orphans[kept++] = view->orphans[i];
	}
	view->orphan_count = kept;
	return 0;
}

static int scan_and_judge(struct rv_view *view, const struct rv_view_options *options, struct rv_error *err)
{
	view->orphan_count = 0;
	free(view->orphans);
	view->orphans = NULL;
	for (size_t i = 0; i < view->source_count; i++)
		view->sources[i].live = -1;
	if (scan_once(view, options, err) != 0 || judge_orphans(view, err) != 0)
		return -1;
	return settle(view, err);
}

static int is_certain(const struct rv_view *view, bool *certain, struct rv_error *err)
{
	size_t failed;

	if (rv_damage_is_certain(&view->scan, view->sources, view->source_count, certain, &failed, err) != 0)
		return rv_error_wrap(err, "%s", view->sources[failed].path);
	return 0;
}

/* What is not certain is read again before it is believed. */
int rv_view_open(struct rv_view *view, const char *const *paths, size_t count, const struct rv_view_options *options,
		 struct rv_error *err)
{
	memset(view, 0, sizeof *view);
	rv_buffer_init(&view->line, 0);
	view->reader = rv_reader_new(err);
	if (view->reader == NULL || open_sources(view, paths, count, err) != 0) {
		rv_view_close(view);
		return -1;
	}
	for (int reads = 0;; reads++) {
		bool certain;

		if (scan_and_judge(view, options, err) != 0 || is_certain(view, &certain, err) != 0) {
			rv_view_close(view);
			return -1;
		}
		if (!view->scan.moved && (reads == REREADS || certain))
			return 0;
		if (reads == REREADS) {
			rv_view_close(view);
			return rv_error_set(err, RV_E_IO, 0, "a ledger changes all the while");
		}
		rv_clock_pause_ms(RV_REREAD_MS);
	}
}

void rv_view_close(struct rv_view *view)
{
	for (size_t i = 0; i < view->source_count; i++)
		rv_source_close(&view->sources[i]);
	free(view->sources);
	free(view->orphans);
	rv_scan_release(&view->scan);
	rv_reader_free(view->reader);
	rv_buffer_release(&view->line);
	memset(view, 0, sizeof *view);
}

int rv_view_row(struct rv_view *view, const struct rv_place *place, struct rv_row *row, struct rv_error *err)
{
	const struct rv_source *source = &view->sources[place->file];
	enum rv_line kind;
	const char *reason;

	rv_buffer_clear(&view->line);
	if (rv_source_read(source, place->offset, place->len, &view->line, err) != 0)
		return -1;
	if (rv_line_read(view->reader, (struct rv_span){ view->line.data, view->line.len }, &kind, row, &reason, err) != 0)
		return -1;
	if (kind != RV_LINE_ROW)
		return rv_error_set(err, RV_E_IO, 0, "%s: changed while it was read", source->path);
	return 0;
}

/* The longest start of UTF-8 text with at most so many UTF-16 units. */
static size_t cut_units(const char *text, size_t len, size_t units)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];
		size_t width = byte >= 0xF0 ? 2 : (byte & 0xC0) == 0x80 ? 0 : 1;

		if (width > units)
			return i;
		units -= width;
	}
	return len;
}

int rv_view_preview(struct rv_view *view, const struct rv_place *place, struct rv_buffer *out, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	uint64_t len = place->len < 4 * PREVIEW_UNITS ? place->len : 4 * PREVIEW_UNITS;

	rv_buffer_clear(&view->line);
	if (rv_source_read(&view->sources[place->file], place->offset, len, &view->line, err) != 0)
		return -1;
	rv_text_add_lossy(&text, view->line.data, view->line.len);
	if (rv_buffer_check(&text, err) != 0)
		return -1;
	rv_buffer_add(out, text.data, cut_units(text.data, text.len, PREVIEW_UNITS));
	return rv_buffer_check(out, err);
}

static int find_open(struct rv_view *view, const char *path, struct rv_span key, bool *found,
		     struct rv_buffer *attempt_id, struct rv_error *err)
{
	const struct rv_damage *damage = view->scan.damage;

	if (view->scan.damage_count > 0)
		return rv_error_set(err, RV_E_CORRUPT, 0, "%s:%llu: byte %llu: %s", path,
				    (unsigned long long)damage->place.line, (unsigned long long)damage->place.offset,
				    damage->reason);
	for (size_t i = 0; i < view->orphan_count && !*found; i++) {
		struct rv_row row;

		if (rv_view_row(view, &view->scan.intents.items[view->orphans[i].intent], &row, err) != 0)
			return -1;
		*found = rv_span_equal(row.key, key);
		if (*found && row.attempt_id.data != NULL)
			rv_buffer_add(attempt_id, row.attempt_id.data, row.attempt_id.len);
	}
	return rv_buffer_check(attempt_id, err);
}

int rv_ledger_find_orphan(const char *path, struct rv_span key, bool *found, struct rv_buffer *attempt_id,
			  struct rv_error *err)
{
	static const struct rv_view_options options = { .keep_all = false, .threads = 1 };
	struct rv_view view;
	int result;

	*found = false;
	if (rv_view_open(&view, &path, 1, &options, err) != 0) {
		if (err->code != RV_E_IO || err->errnum != ENOENT)
			return -1;
		rv_error_clear(err);
		return 0;
	}
	result = find_open(&view, path, key, found, attempt_id, err);
	rv_view_close(&view);
	return result;
}

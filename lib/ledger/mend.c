#include "lib/ledger/mend.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/ledger/copy.h"
#include "lib/ledger/leftover.h"
#include "lib/ledger/patch.h"
#include "lib/ledger/row.h"
#include "lib/ledger/torn.h"

#define LEASE_POLL_MS 10
#define TRIES 8 /* a fragment that grows under a repair again and again */

static struct rv_span span_of(const struct rv_buffer *buf)
{
	return (struct rv_span){ buf->data != NULL ? buf->data : "", buf->len };
}

void rv_fragment_release(struct rv_fragment *fragment)
{
	rv_buffer_release(&fragment->bytes);
	rv_buffer_release(&fragment->found);
}

void rv_repair_result_set(struct rv_repair_result *result, enum rv_repair_action action, const struct rv_fragment *fragment)
{
	result->action = action;
	result->offset = fragment->start;
	result->bytes = fragment->bytes.len;
	memcpy(result->sha256, fragment->sha256, sizeof result->sha256);
}

int rv_mending_begin(struct rv_mending *mending, const struct rv_mend *mend, struct rv_error *err)
{
	*mending = (struct rv_mending){ .mend = mend, .sidecar = RV_SIDECAR_INIT, .reader = NULL };
	mending->reader = rv_reader_new(err);
	if (mending->reader == NULL)
		return -1;
	return rv_sidecar_take(&mending->sidecar, mend->path, mend->deadline_ms, err);
}

void rv_mending_end(struct rv_mending *mending, bool failed)
{
	if (failed && mending->begun)
		rv_sidecar_leave(&mending->sidecar);
	rv_sidecar_release(&mending->sidecar);
	rv_reader_free(mending->reader);
	mending->reader = NULL;
}

/* What stands in the fragment's place as a row; with its newline. */
static int add_row(const struct rv_fragment *fragment, struct rv_buffer *out, struct rv_error *err)
{
	if (!fragment->whole)
		return rv_row_add_torn(out, span_of(&fragment->bytes), rv_clock_wall_ms(), err);
	rv_buffer_add(out, span_of(&fragment->bytes).data, fragment->bytes.len);
	rv_buffer_add_byte(out, '\n');
	return rv_buffer_check(out, err);
}

static int blank(struct rv_mending *mending, uint64_t at, size_t len, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer spaces = RV_BUFFER_INIT;
	char *room = rv_buffer_reserve(&spaces, len);

	if (room == NULL)
		return rv_buffer_check(&spaces, err);
	memset(room, ' ', len);
	rv_buffer_commit(&spaces, len);
	if (rv_sidecar_check(&mending->sidecar, err) != 0)
		return -1;
	mending->begun = true;
	return rv_patch_overwrite(mending->mend->fd, span_of(&spaces), at, err);
}

int rv_mend_blank(struct rv_mending *mending, const struct rv_fragment *fragment, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer now = RV_BUFFER_INIT;

	if (rv_patch_read(mending->mend->fd, fragment->start, fragment->start + fragment->found.len, &now, err) != 0)
		return -1;
	if (!rv_span_equal(span_of(&now), span_of(&fragment->found)))
		return rv_error_set(err, RV_E_BUSY, 0, "the torn bytes were changed by another writer");
	return blank(mending, fragment->start, fragment->found.len, err);
}

/* What became of the fragment's line by the time that our row was appended behind it. */
enum fate {
	FATE_TORN,  /* the fragment still, alone or with a whole row of another writer glued to it */
	FATE_WHOLE, /* a row: it was a write in progress, or it was repaired */
	FATE_GROWN  /* more bytes, which make no row */
};

static int judge_fate(struct rv_mending *mending, const struct rv_fragment *fragment, struct rv_span line,
		      enum fate *fate, struct rv_error *err)
{
	struct rv_span found = span_of(&fragment->found);
	enum rv_tail kind = RV_TAIL_WHOLE;

	*fate = fragment->whole ? FATE_WHOLE : FATE_TORN;
	if (rv_span_equal(line, found))
		return 0;
	*fate = FATE_WHOLE;
	if (rv_text_trim(line).len == 0)
		return 0;
	if (rv_tail_judge(mending->reader, line, &kind, err) != 0)
		return -1;
	if (kind != RV_TAIL_TORN)
		return 0;
	*fate = FATE_GROWN;
	if (line.len < found.len || memcmp(line.data, found.data, found.len) != 0)
		return 0;
	line = (struct rv_span){ line.data + found.len, line.len - found.len };
	if (rv_tail_judge(mending->reader, line, &kind, err) != 0)
		return -1;
	if (kind != RV_TAIL_TORN)
		*fate = FATE_TORN;
	return 0;
}

/* The fragment is more than was thought: all of its line now. */
static int regrow(struct rv_mending *mending, struct rv_fragment *fragment, struct rv_span line, struct rv_error *err)
{
	char old[RV_SHA256_HEX];

	memcpy(old, fragment->sha256, sizeof old);
	rv_buffer_clear(&fragment->bytes);
	rv_buffer_clear(&fragment->found);
	rv_buffer_add(&fragment->bytes, line.data, line.len);
	rv_buffer_add(&fragment->found, line.data, line.len);
	fragment->whole = false;
	if (rv_buffer_check(&fragment->bytes, err) != 0 || rv_buffer_check(&fragment->found, err) != 0)
		return -1;
	if (rv_copy_keep(mending->mend->real, span_of(&fragment->bytes), fragment->sha256, err) < 0)
		return -1;
	return strcmp(old, fragment->sha256) == 0 ? 0 : rv_copy_drop(mending->mend->real, old, err);
}

/* A newline first, since the fragment may still be the end of the file; a blank line is nothing. */
static int append_rows(struct rv_mending *mending, const struct rv_fragment *fragment, size_t times, uint64_t *landed,
		       size_t *len, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer rows = RV_BUFFER_INIT;
	int fd = mending->mend->fd;
	uint64_t size;

	rv_buffer_add_byte(&rows, '\n');
	for (size_t i = 0; i < times; i++) {
		if (add_row(fragment, &rows, err) != 0)
			return -1;
	}
	if (rv_patch_size(fd, &size, err) != 0)
		return -1;
	if (rv_patch_reserve(fd, size, rows.len, err) != 0 || rv_sidecar_check(&mending->sidecar, err) != 0)
		return -1;
	mending->begun = true;
	if (rv_patch_append(fd, span_of(&rows), landed, err) != 0)
		return -1;
	*len = rows.len;
	return rv_patch_sync(fd, err);
}

int rv_mend_append_rows(struct rv_mending *mending, const struct rv_fragment *fragment, size_t times, struct rv_error *err)
{
	uint64_t landed;
	size_t len;

	return append_rows(mending, fragment, times, &landed, &len, err);
}

/* Append what replaces the fragment, then blank it; *moved is false where it had become whole meanwhile. */
static int by_append(struct rv_mending *mending, struct rv_fragment *fragment, bool *moved, struct rv_error *err)
{
	for (int tries = 0; tries < TRIES; tries++) {
		rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
		uint64_t landed;
		enum fate fate;
		size_t len;

		if (append_rows(mending, fragment, 1, &landed, &len, err) != 0)
			return -1;
		if (rv_patch_read_line(mending->mend->fd, fragment->start, landed, &line, err) != 0)
			return -1;
		if (judge_fate(mending, fragment, span_of(&line), &fate, err) != 0)
			return -1;
		*moved = fate == FATE_TORN;
		if (fate == FATE_TORN)
			return rv_mend_blank(mending, fragment, err);
		/* Our row is not wanted after all: its place becomes a blank line. */
		if (blank(mending, landed + 1, len - 2, err) != 0)
			return -1;
		if (fate == FATE_WHOLE)
			return 0;
		if (regrow(mending, fragment, span_of(&line), err) != 0)
			return -1;
	}
	return rv_error_set(err, RV_E_BUSY, 0, "the torn bytes grew during the repair, %d times", TRIES);
}

static bool get_lease(const struct rv_mend *mend)
{
	int64_t deadline = rv_clock_mono_ms() + mend->lease_ms;
	struct rv_error ignored = RV_ERROR_INIT; /* no lease to be had here: the other route */

	for (;;) {
		int got = rv_io_lease(mend->fd, &ignored);

		if (got != 0)
			return got == 1;
		if (rv_clock_left_ms(deadline) == 0)
			return false;
		rv_clock_pause_ms(LEASE_POLL_MS);
	}
}

/* Under the lease.  *done stays false where the file is not as it was, or somebody waits for the
 * lease's end: the kernel takes a lease away from who is stopped for long. */
static int write_in_place(struct rv_mending *mending, const struct rv_fragment *fragment, bool *done, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer now = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer row = RV_BUFFER_INIT;
	int fd = mending->mend->fd;
	uint64_t size;

	if (rv_patch_size(fd, &size, err) != 0 || add_row(fragment, &row, err) != 0)
		return -1;
	if (size != fragment->start + fragment->found.len || row.len < fragment->found.len)
		return 0;
	if (rv_patch_read(fd, fragment->start, size, &now, err) != 0)
		return -1;
	if (!rv_span_equal(span_of(&now), span_of(&fragment->found)))
		return 0;
	if (rv_patch_reserve(fd, fragment->start, row.len, err) != 0 || rv_sidecar_check(&mending->sidecar, err) != 0)
		return -1;
	if (!rv_io_lease_is_quiet(fd))
		return 0;
	*done = true;
	mending->begun = true;
	return rv_patch_overwrite(fd, span_of(&row), fragment->start, err);
}

static int in_place(struct rv_mending *mending, const struct rv_fragment *fragment, bool *done, struct rv_error *err)
{
	struct rv_error ignored = RV_ERROR_INIT;
	int result;

	*done = false;
	if (!get_lease(mending->mend))
		return 0;
	result = write_in_place(mending, fragment, done, err);
	(void)rv_io_lease_end(mending->mend->fd, &ignored); /* it ends with the description too */
	return result;
}

/* A copy that was there before may be of another line with the same bytes, which was torn earlier. */
static int drop_copy(struct rv_mending *mending, const struct rv_fragment *fragment, int kept, struct rv_repair_result *result,
		     struct rv_error *err)
{
	result->older_copy = kept > 0;
	return kept > 0 ? 0 : rv_copy_drop(mending->mend->real, fragment->sha256, err);
}

/* Room for this many rows, and a newline before them. */
static int reserve_rows(const struct rv_mending *mending, const struct rv_fragment *fragment, size_t times,
			struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer row = RV_BUFFER_INIT;
	uint64_t size;

	if (add_row(fragment, &row, err) != 0 || rv_patch_size(mending->mend->fd, &size, err) != 0)
		return -1;
	return rv_patch_reserve(mending->mend->fd, size, 2 + row.len * times, err);
}

/*
 * Other lines were torn with the same bytes, and are not repaired.  Were this tail's row written now, it could be
 * taken for the row of one of them, which are all before it.  So the tail is made a line like those, and
 * rv_finish_leftovers() finishes them all.
 */
static int join(struct rv_mending *mending, struct rv_fragment *fragment, size_t lines, struct rv_repair_result *result,
		struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
	int fd = mending->mend->fd;
	uint64_t landed;
	enum fate fate;

	if (reserve_rows(mending, fragment, lines + 1, err) != 0 || rv_sidecar_check(&mending->sidecar, err) != 0)
		return -1;
	mending->begun = true;
	if (rv_patch_append(fd, RV_SPAN("\n"), &landed, err) != 0 || rv_patch_sync(fd, err) != 0 ||
	    rv_patch_read_line(fd, fragment->start, landed, &line, err) != 0 ||
	    judge_fate(mending, fragment, span_of(&line), &fate, err) != 0)
		return -1;
	if (fate == FATE_WHOLE)
		return 0;
	rv_repair_result_set(result, RV_REPAIR_QUARANTINED, fragment);
	/* More bytes, which make no row, are a fragment of their own. */
	return fate == FATE_TORN || rv_copy_keep(mending->mend->real, span_of(&line), fragment->sha256, err) >= 0 ? 0 : -1;
}

static int quarantine(struct rv_mending *mending, struct rv_fragment *fragment, struct rv_repair_result *result,
		      struct rv_error *err)
{
	const char *real = mending->mend->real;
	int kept = rv_copy_keep(real, span_of(&fragment->bytes), fragment->sha256, err);
	size_t lines = 0;
	bool done;

	if (kept < 0)
		return -1;
	/* A tail that is partly a row is no line torn like others, but the row of one, whose append was cut. */
	if (kept > 0 && rv_span_equal(span_of(&fragment->found), span_of(&fragment->bytes)) &&
	    rv_leftovers_count(mending->mend, fragment->sha256, &lines, err) != 0)
		return -1;
	result->older_copy = kept > 0;
	if (lines > 0)
		return join(mending, fragment, lines, result, err);
	if (in_place(mending, fragment, &done, err) != 0)
		return -1;
	if (!done && by_append(mending, fragment, &done, err) != 0)
		return -1;
	if (done)
		rv_repair_result_set(result, RV_REPAIR_QUARANTINED, fragment);
	return drop_copy(mending, fragment, kept, result, err);
}

/* A whole row that lacks its newline gets it by an append, which needs no lease.  If another writer's
 * row was glued to it in that instant, it is moved from before that row. */
static int terminate(struct rv_mending *mending, struct rv_fragment *fragment, bool misshapen,
		     struct rv_repair_result *result, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
	int fd = mending->mend->fd, kept;
	enum rv_tail kind;
	uint64_t landed;
	bool moved;

	if (rv_sidecar_check(&mending->sidecar, err) != 0 || rv_patch_append(fd, RV_SPAN("\n"), &landed, err) != 0)
		return -1;
	rv_repair_result_set(result, RV_REPAIR_TERMINATED, fragment);
	result->misshapen = misshapen;
	if (rv_patch_sync(fd, err) != 0)
		return -1;
	if (landed == fragment->start + fragment->bytes.len)
		return 0;
	if (rv_patch_read_line(fd, fragment->start, landed, &line, err) != 0 ||
	    rv_tail_judge(mending->reader, span_of(&line), &kind, err) != 0)
		return -1;
	if (kind != RV_TAIL_TORN)
		return 0;
	fragment->whole = true;
	kept = rv_copy_keep(mending->mend->real, span_of(&fragment->bytes), fragment->sha256, err);
	if (kept < 0 || by_append(mending, fragment, &moved, err) != 0)
		return -1;
	return drop_copy(mending, fragment, kept, result, err);
}

static int hash_fragment(struct rv_fragment *fragment, struct rv_error *err)
{
	struct rv_sha256 *sha = rv_sha256_new(err);
	int result = sha == NULL ? -1
				 : rv_sha256_hex(sha, fragment->bytes.data, fragment->bytes.len, fragment->sha256, err);

	rv_sha256_free(sha);
	return result;
}

static int mend_fragment(struct rv_mending *mending, struct rv_fragment *fragment, struct rv_repair_result *result,
			 struct rv_error *err)
{
	enum rv_tail kind;

	if (rv_tail_judge(mending->reader, span_of(&fragment->found), &kind, err) != 0)
		return -1;
	rv_buffer_add(&fragment->bytes, span_of(&fragment->found).data, fragment->found.len);
	if (rv_buffer_check(&fragment->bytes, err) != 0)
		return -1;
	if (kind == RV_TAIL_TORN)
		return rv_leftovers_recognise(mending, fragment, err) == 0 ? quarantine(mending, fragment, result, err) : -1;
	if (hash_fragment(fragment, err) != 0)
		return -1;
	return terminate(mending, fragment, kind == RV_TAIL_MISSHAPEN, result, err);
}

int rv_mend_tail(const struct rv_mend *mend, struct rv_repair_result *result, struct rv_error *err)
{
	struct rv_fragment fragment = { .start = 0, .bytes = RV_BUFFER_INIT, .found = RV_BUFFER_INIT };
	struct rv_mending mending;
	uint64_t size;
	int status;

	if (rv_patch_size(mend->fd, &size, err) != 0)
		return -1;
	status = rv_patch_read_tail(mend->fd, size, &fragment.start, &fragment.found, err);
	if (status == 0 && fragment.found.len > 0) {
		/* Read before the sidecar is taken: from here on, whatever another writer glues to
		 * these bytes can be told from them. */
		status = rv_mending_begin(&mending, mend, err);
		if (status == 0)
			status = mend_fragment(&mending, &fragment, result, err);
		rv_mending_end(&mending, status != 0 || result->older_copy);
	}
	rv_fragment_release(&fragment);
	return status;
}

#include "lib/ledger/liveness.h"

#include "lib/base/io.h"
#include "lib/ledger/lock.h"

/* The clock of a file system may lag behind the one that dated the row. */
#define BIRTH_SLACK_MS 2000

const char *rv_state_name(enum rv_state state)
{
	static const char *const names[RV_STATES] = { "orphan", "running", "unknown" };

	return names[state];
}

/* A file that was born after the row was written is a copy: the lock is on another file. */
static bool is_copy(const struct rv_source *source, const struct rv_row *intent)
{
	return source->born_ms >= 0 && (double)source->born_ms > intent->started_at + BIRTH_SLACK_MS;
}

/* 1 held, 0 not, -1 error.  That nobody holds any such lock is asked once, since where nothing
 * runs every orphan of a long ledger has the same answer. */
static int is_held(struct rv_source *source, int64_t lock, struct rv_error *err)
{
	if (source->live < 0)
		source->live = rv_io_lock_probe(source->fd, RV_LIVENESS_START, RV_LIVENESS_LEN, err);
	if (source->live <= 0)
		return source->live;
	return rv_io_lock_probe(source->fd, lock, 1, err);
}

int rv_liveness_judge(struct rv_source *source, const struct rv_row *intent, struct rv_span boot_id, int64_t now_ms,
		      enum rv_state *state, struct rv_error *err)
{
	struct rv_row_writer writer = rv_row_writer_of(intent);
	int held;

	*state = RV_STATE_UNKNOWN;
	if (source->streamed)
		return 0;
	if (!writer.present) {
		*state = RV_STATE_ORPHAN;
		return 0;
	}
	if (source->remote || !writer.valid || !rv_span_equal(writer.boot_id, boot_id) || is_copy(source, intent) ||
	    writer.lock < RV_LIVENESS_START || writer.lock - RV_LIVENESS_START >= RV_LIVENESS_LEN)
		return 0;
	held = is_held(source, writer.lock, err);
	if (held < 0)
		return rv_error_wrap(err, "%s", source->path);
	*state = held == 1 && now_ms <= writer.until ? RV_STATE_RUNNING : RV_STATE_ORPHAN;
	return 0;
}

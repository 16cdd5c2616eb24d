/*
 * One line of a ledger, read: strict UTF-8, JSON, the shape of its phase (contract, section 4).
 * Reading is the engine's: one leading byte order mark is passed over, a line that is blank by
 * JavaScript's trim is nothing, the last duplicate of a member counts.
 *
 * A row's spans are borrowed from the reader, or from the line, until its next line.  They are all
 * that pairing, filters and counts need; the node is there for what is rare.
 */
#ifndef RV_LEDGER_LINE_H
#define RV_LEDGER_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

enum rv_phase { RV_PHASE_INTENT, RV_PHASE_OUTCOME, RV_PHASE_TORN };
enum rv_outcome_class { RV_OUTCOME_OK, RV_OUTCOME_ERROR, RV_OUTCOME_TIMEOUT, RV_OUTCOME_CLASSES };

enum rv_line {
	RV_LINE_BLANK,
	RV_LINE_ROW,
	RV_LINE_UNREADABLE, /* not strict UTF-8, or not JSON: where unterminated, a torn tail */
	RV_LINE_MISSHAPEN   /* JSON, but of no phase's shape */
};

struct rv_json_node;

struct rv_row {
	enum rv_phase phase;
	struct rv_span key, run_id, tool, args_hash;
	struct rv_span attempt_id;     /* data is NULL where the row has none */
	double started_at;             /* any JSON number, also an infinite one */
	enum rv_outcome_class outcome; /* of an outcome */
	struct rv_span bytes_base64;   /* of a torn row; data is NULL where it has none */
	const struct rv_json_node *node;
};

/* The writer member of an intent, as far as liveness needs it. */
struct rv_row_writer {
	bool present;
	bool valid; /* the members below are there, with their types */
	struct rv_span boot_id;
	int64_t lock;
	int64_t until;
};

struct rv_reader;

struct rv_reader *rv_reader_new(struct rv_error *err);
void rv_reader_free(struct rv_reader *reader); /* NULL is fine */

/* What the line (without its newline) is, into *kind; for the last two kinds *reason is static
 * text.  -1 is a failure of the system only (memory). */
int rv_line_read(struct rv_reader *reader, struct rv_span line, enum rv_line *kind, struct rv_row *row,
		 const char **reason, struct rv_error *err);

/* "ok", "error" or "timeout". */
bool rv_outcome_class_of(struct rv_span name, enum rv_outcome_class *outcome);

struct rv_row_writer rv_row_writer_of(const struct rv_row *row);

/* A row's members, without braces, as JSON.stringify would write them: without `phase`, and where
 * `orphan` is set without `at` and `state` (the caller adds its own). */
int rv_row_add_members(const struct rv_row *row, bool orphan, struct rv_buffer *out, struct rv_error *err);

#endif

/*
 * A row as rv-exec writes it (contract, section 3; rv-ledger(5)).  Bytes <-> struct; reading is
 * lib/ledger/line.h's.  Strings are borrowed, WTF-8.
 */
#ifndef RV_LEDGER_ROW_H
#define RV_LEDGER_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/text.h"

/* The nine members that an attempt's intent and outcome share, in the order they are written. */
struct rv_attempt {
	struct rv_span idempotency_key;
	struct rv_span run_id;
	struct rv_span span_id;
	struct rv_span tool;
	struct rv_span args_hash;
	struct rv_span executor;
	struct rv_span workdir;
	int64_t started_at; /* wall clock, ms */
	struct rv_span attempt_id;
};

/* Who writes an attempt: where its liveness lock is and until when it can be true. */
struct rv_writer {
	char host[65];     /* uname(2) nodename: for people */
	char boot_id[37];  /* /proc/sys/kernel/random/boot_id: one kernel, the reach of a lock */
	int64_t pid;       /* for people: it means nothing in another container */
	int64_t start_time; /* of the process, wall clock ms: for people */
	int64_t lock;      /* the offset of the byte held, or -1 (not written) */
	int64_t until;     /* wall clock ms by which the attempt must have ended */
};

struct rv_outcome {
	int64_t duration_ms;
	const char *outcome; /* "ok", "error" or "timeout" */
	int exit_code;       /* -1: null */
	const char *signal;  /* "SIGKILL", or NULL: null */
};

/* Append one whole row with its newline. */
void rv_row_add_intent(struct rv_buffer *out, const struct rv_attempt *attempt, const char *sandbox,
		       const char *containment, const struct rv_writer *writer);
void rv_row_add_outcome(struct rv_buffer *out, const struct rv_attempt *attempt, const struct rv_outcome *outcome);
/* The quarantine row of torn bytes; `recovered_at` wall clock ms. */
int rv_row_add_torn(struct rv_buffer *out, struct rv_span torn, int64_t recovered_at, struct rv_error *err);
/* All of it that depends on the torn bytes alone: up to the digits of recoveredAt. */
int rv_row_add_torn_head(struct rv_buffer *out, struct rv_span torn, struct rv_error *err);

/* The id of this boot of this kernel, which is the reach of a lock. */
int rv_boot_id(char boot_id[37], struct rv_error *err);

/* Fill everything but lock and until for this process. */
int rv_writer_init(struct rv_writer *writer, struct rv_error *err);

#endif

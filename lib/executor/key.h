/*
 * The stable idempotency key of a logical call, byte for byte what the engine derives (contract,
 * section 2), and the run file that keeps a run's identity across a crash.
 *
 * Derivation 1: SHA-256 of the canonical form of {runId, agentSeq, ordinal, tool, args};
 * derivation 2: of {derivation: 2, runId, genesis, agentSeq, ordinal, tool, args}.
 */
#ifndef RV_EXECUTOR_KEY_H
#define RV_EXECUTOR_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/digest/digest.h"
#include "lib/json/json.h"

/* Borrowed, WTF-8. */
struct rv_key_input {
	int derivation;         /* 1 or 2 */
	struct rv_span run_id;
	struct rv_span genesis; /* derivation 2; may be empty, which is a value */
	int64_t agent_seq;      /* 0 to 2^53-1 */
	int64_t ordinal;
	struct rv_span tool;
	struct rv_span args;    /* canonical bytes (rv_json_canonical) */
};

/* 64 lowercase hex digits. */
int rv_key_derive(struct rv_sha256 *sha, const struct rv_key_input *input, char key[RV_SHA256_HEX],
		  struct rv_error *err);

/* The same with a buffer of the caller's, for many keys in a row. */
int rv_key_derive_with(struct rv_sha256 *sha, struct rv_buffer *scratch, const struct rv_key_input *input,
		       char key[RV_SHA256_HEX], struct rv_error *err);

enum rv_key_flags {
	RV_KEY_RECORDED = 1 << 0 /* of a recorded run: no derivation is 1, and a genesis beside 1 is ignored */
};

/* runId, genesis, execKeyDerivation, agentSeq and ordinal out of `object`, borrowed from its document;
 * tool and args stay as they are.  RV_E_REQUEST; RV_E_DERIVATION where it is not certain which
 * derivation is meant, or not known. */
int rv_key_read(const struct rv_json_node *object, unsigned flags, struct rv_key_input *input, struct rv_error *err);

/* The run's part alone, as a recorded run. */
int rv_key_read_run(const struct rv_json_node *object, struct rv_key_input *input, struct rv_error *err);

/* A run's identity: {"runId","genesis","execKeyDerivation":2}. */
struct rv_run_file {
	struct rv_buffer run_id;
	struct rv_buffer genesis;
	bool has_genesis;
	int derivation; /* an absent one is 1 */
};

/* Read; never writes.  RV_E_IO: no such file; RV_E_DERIVATION; RV_E_REQUEST: no run file. */
int rv_run_file_read(struct rv_run_file *run, const char *path, struct rv_error *err);
void rv_run_file_release(struct rv_run_file *run);

/* Create `path` (never over another, whole or not at all, 0600, synced with its directory) with a fresh genesis;
 * run_id NULL: a random UUID. */
int rv_run_file_create(const char *path, const char *run_id, struct rv_error *err);

#endif

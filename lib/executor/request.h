/*
 * A request line (contract, section 6):
 *
 *   {"id"?,"tool","args","executor"?,"spec"?:{"command","args"},
 *    "ctx":{"runId","spanId"?,"agentType"?,"idempotencyKey"}}
 *
 * For the key `ctx` may hold a call's coordinates as rv-key reads them; both, and different, is refused.
 * spec.command stands for COMMAND and its ARGs; without it spec.args follow them; under a manifest there is
 * no spec.  Members that are not known are passed over.
 */
#ifndef RV_EXECUTOR_REQUEST_H
#define RV_EXECUTOR_REQUEST_H

#include <stdbool.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/digest/digest.h"
#include "lib/executor/dispatch.h"
#include "lib/executor/rules.h"
#include "lib/json/json.h"

/* What reading takes, once for all requests: its memory is warm for each next line. */
struct rv_request_reader {
	struct rv_json_doc *doc;
	struct rv_sha256 *sha;
};

/* One request, reused for one line after another.  `call` borrows from it. */
struct rv_request {
	struct rv_buffer texts;  /* its strings */
	struct rv_buffer id;     /* raw JSON, empty if there is none: also of a refused request */
	struct rv_buffer args;   /* canonical */
	struct rv_buffer words;  /* argv's strings, each with its NUL */
	char **argv;             /* owned array */
	char key[RV_SHA256_HEX];
	char args_hash[RV_SHA256_HEX];
	char span_id[17];
	struct rv_call call;
};

int rv_request_reader_init(struct rv_request_reader *reader, struct rv_error *err);
void rv_request_reader_release(struct rv_request_reader *reader);

void rv_request_init(struct rv_request *request);
void rv_request_release(struct rv_request *request);

/* Read a line.  RV_E_REQUEST, RV_E_NUMBER, RV_E_DERIVATION; RV_E_CONFIG for what the rules do not let run. */
int rv_request_read(struct rv_request *request, const struct rv_request_reader *reader, struct rv_span line,
		    unsigned json_flags, const struct rv_rules *rules, struct rv_error *err);
/* Its dispatch is over: memory beyond an ordinary line's goes back. */
void rv_request_clear(struct rv_request *request);

#endif

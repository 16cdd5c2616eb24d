/* The reply line (contract, section 6): one JSON object for one request, whatever became of it. */
#ifndef RV_EXECUTOR_REPLY_H
#define RV_EXECUTOR_REPLY_H

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/executor/dispatch.h"

/* Append the reply of a dispatch that is done, with its newline. */
void rv_reply_add(struct rv_buffer *out, const struct rv_dispatch *dispatch);

/* Append the reply to input that never became a dispatch: with `config` and `aborted` the call was read, and is told
 * as any other; else only its id.  What of it is not known has no data.  `line`: its number in the stream, 0: there is
 * no stream. */
void rv_reply_add_refusal(struct rv_buffer *out, const struct rv_call *call, uint64_t line, const struct rv_error *err);

#endif

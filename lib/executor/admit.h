/*
 * What a finished run means: the one decision between a result and an error.  The reason for an end
 * is taken as it was decided: a tool that exits 124, or kills itself, is `exit` and never `timeout`.
 */
#ifndef RV_EXECUTOR_ADMIT_H
#define RV_EXECUTOR_ADMIT_H

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/executor/environment.h"
#include "lib/process/supervise.h"

struct rv_executor;
struct rv_call;

#define RV_STDERR_CHARACTERS 500 /* of a tool's stderr in the message of `exit` */

/* 0 and the result's compact JSON in `out` (it may be the very memory of run->out, which is then empty), or -1 with timeout, aborted, output-cap, spawn, exit or protocol. */
int rv_admit_tool(struct rv_run_result *run, const struct rv_executor *executor, const struct rv_call *call,
		  struct rv_buffer *out, struct rv_error *err);

/* Credentials: one JSON object of strings, set into `env`; anything else is RV_E_CONFIG (RV_E_ABORTED
 * where the caller ended it).  No value is ever in the message. */
int rv_admit_credentials(const struct rv_run_result *run, struct rv_environment *env, struct rv_error *err);

#define RV_HOW_TEXT 64

/* How a process ended by itself, or by somebody's signal: "exited with status 3", "was killed by SIGKILL". */
void rv_admit_how(const struct rv_run_result *run, char how[RV_HOW_TEXT]);

/* Append the last `characters` of `tail` (`cut`: it is itself cut at the front), invalid bytes and NUL as
 * U+FFFD. */
void rv_admit_add_tail(struct rv_buffer *out, struct rv_span tail, bool cut, size_t characters);

#endif

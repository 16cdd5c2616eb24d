/* The parts of a dispatch's attempt: what is set up before the intent, and its two rows.  Private to
 * lib/executor/dispatch.c, which has the order, and to lib/executor/sink.c. */
#ifndef RV_EXECUTOR_ATTEMPT_H
#define RV_EXECUTOR_ATTEMPT_H

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/executor/dispatch.h"

/* What no environment and no command line can carry, and what the isolation cannot enforce, is refused before
 * anything is written. */
int rv_attempt_check(const struct rv_executor *executor, const struct rv_call *call, struct rv_error *err);
/* --allow-env and --setenv; later the credentials; and the identity last, so that nothing overrides it. */
int rv_attempt_environment(struct rv_dispatch *dispatch, struct rv_error *err);
int rv_attempt_identity(struct rv_dispatch *dispatch, struct rv_error *err);
/* What authorises a tool that needs it. */
int rv_attempt_permit(const struct rv_dispatch *dispatch, struct rv_error *err);
/* --refuse-orphan, before anything is set up; and once more under the append lock, where it is certain. */
int rv_attempt_orphan(struct rv_dispatch *dispatch, struct rv_error *err);
int rv_attempt_orphan_again(struct rv_dispatch *dispatch, struct rv_error *err);
/* The cgroup that the tool will run in, where its limits need one. */
int rv_attempt_group(struct rv_dispatch *dispatch, struct rv_error *err);
/* How a run's plan bounds its processes. */
void rv_attempt_limit(const struct rv_dispatch *dispatch, struct rv_run_plan *plan);
/* After the run: which limit its processes ran into, and what an `exit` then says; the cgroup is gone. */
void rv_attempt_unlimit(struct rv_dispatch *dispatch);
/* Announced to the slot, then made. */
int rv_attempt_workdir(struct rv_dispatch *dispatch, struct rv_error *err);
/* Hold the liveness byte and append the intent's row; nothing where none is to be written. */
int rv_attempt_intent(struct rv_dispatch *dispatch, struct rv_buffer *row, struct rv_error *err);
int rv_attempt_outcome(const struct rv_dispatch *dispatch, struct rv_buffer *row, struct rv_error *err);

#endif

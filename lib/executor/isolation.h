/*
 * How a tool is started: the one table between a dispatch, which has the order, and the ways to run a
 * program that is not trusted.  A way is a constant table of verbs; what a command line made of it is in
 * executor->isolation_data, its own.
 *
 *   check   before the intent and before the workdir: what cannot be enforced is refused (RV_E_CONFIG, with
 *           the remedy in the message).  Asked for each dispatch, so it only looks at what is known.
 *   start   after the intent: change the plan, which is that of a plain subprocess, into what is to be run.
 *           What it points to lives in dispatch->argv and ->envp, or longer.  A failure is the error of the attempt.
 *   after   a run of the dispatch has ended (the first one is what `start` planned).  RV_AFTER_AGAIN: another
 *           run was started, come back after it; RV_AFTER_RESULT: *result, changed if need be, is the tool's
 *           own end and is admitted as any; RV_AFTER_FAILED: *err is how the attempt ended, and *result
 *           says only whether a tool ran.
 *
 * A verb that is NULL has nothing to add.
 */
#ifndef RV_EXECUTOR_ISOLATION_H
#define RV_EXECUTOR_ISOLATION_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/process/supervise.h"

struct rv_executor;
struct rv_call;
struct rv_dispatch;

enum rv_after { RV_AFTER_RESULT, RV_AFTER_AGAIN, RV_AFTER_FAILED };

struct rv_isolation {
	bool on_host;            /* runs in the host's slot, outside any namespace: launchers, clients of engines */
	bool finds_commands;     /* the command is looked for where it is run, and not here */
	const char *own_limits;  /* NULL: --max-cpu and its kin hold; else the options that limit a tool instead */
	const char *containment; /* what holds the tool then; NULL: what the slot says of itself */
	int64_t after_ms;        /* beyond its deadline: how long its questions and removals may take at most */
	int (*check)(const struct rv_executor *executor, const struct rv_call *call, struct rv_error *err);
	int (*start)(struct rv_dispatch *dispatch, struct rv_run_plan *plan, struct rv_error *err);
	enum rv_after (*after)(struct rv_dispatch *dispatch, struct rv_run_result *result, struct rv_error *err);
};

/* A plain subprocess: nothing is added. */
extern const struct rv_isolation rv_isolation_none;

/* "pid-namespace", "subreaper", or what the way says. */
const char *rv_isolation_containment(const struct rv_dispatch *dispatch);

#endif

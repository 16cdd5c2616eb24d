/*
 * What crashed runs left (contract, section 6, --reap): workdirs of orphans, and containers of attempts that are
 * over, by the ledger, the liveness lock and the container's name.  Never one that may be running: an attempt whose
 * lock is held, or cannot be judged from here, keeps what it has.  A ledger can be lied in, so nothing is removed
 * for a row's word alone: a workdir must be a directory of the caller's own, directly in the base, with the name
 * that rv-exec gives.
 */
#ifndef RV_EXECUTOR_REAP_H
#define RV_EXECUTOR_REAP_H

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/base/text.h"

struct rv_reap_options {
	const char *ledger;
	const char *workdir_base; /* NULL: $TMPDIR or /tmp */
	const char *engine;       /* words by POSIX quoting; asked only where the ledger has containers */
	const char *const *launcher_env;
	/* One JSON line, with its newline, for each thing that was removed or kept. */
	int (*print)(const void *bytes, size_t len);
};

/* *needs_someone: something was kept that nobody is known to use.  RV_E_CORRUPT for a ledger that cannot be trusted:
 * nothing is removed then.  RV_E_IO. */
int rv_reap_run(const struct rv_reap_options *options, bool *needs_someone, struct rv_error *err);

/* Is this, a path's last part, a name that a workdir has? */
bool rv_reap_is_workdir_name(struct rv_span name);

#endif

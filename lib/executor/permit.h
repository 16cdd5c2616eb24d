/*
 * --approvals: what a tool that needs an approval may do, as the file has it now.  Asked right before the
 * intent of each such call, and read again where the file has changed: appended to, replaced, or gone.  So an
 * approval counts as soon as it stands there, and a withdrawn one no longer does.
 *
 * Nothing of a bad file counts, also where only its last line is not whole yet; the next call looks again.
 * rv-ledger-scan --approvals reads and finds with the same code (lib/ledger/approvals.h).
 */
#ifndef RV_EXECUTOR_PERMIT_H
#define RV_EXECUTOR_PERMIT_H

#include <stdbool.h>
#include <sys/stat.h>

#include "lib/base/error.h"
#include "lib/executor/dispatch.h"
#include "lib/ledger/approvals.h"

struct rv_permits {
	const char *path; /* borrowed */
	struct rv_approvals approvals;
	bool loaded;      /* they are those of `seen` */
	bool recent;      /* it had just been changed then: a second change may not show */
	struct stat seen;
};

/* Read it a first time.  RV_E_REQUEST: it is refused; RV_E_IO: it cannot be read.  Release it in either case. */
int rv_permits_open(struct rv_permits *permits, const char *path, struct rv_error *err);
void rv_permits_release(struct rv_permits *permits); /* zeroed is fine */

/* May this call run?  `permits` NULL: there is no file.  RV_E_CONFIG: no; RV_E_REQUEST: the file is refused. */
int rv_permits_check(struct rv_permits *permits, const struct rv_call *call, struct rv_error *err);

#endif

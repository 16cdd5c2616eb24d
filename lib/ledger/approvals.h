/*
 * Approvals (contract, section 4): who may run which tool with which arguments in which run.  The last row of
 * a (runId, tool, argsHash) counts; a `decision` other than "approved" authorises nothing.
 */
#ifndef RV_LEDGER_APPROVALS_H
#define RV_LEDGER_APPROVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/ledger/pair.h"

struct rv_approval {
	bool approved;
	size_t text, len;  /* its last record, in `texts` */
	uint64_t attempts; /* counted by the caller */
};

struct rv_approvals {
	struct rv_pairs *triples; /* an entry's number is the approval's */
	struct rv_approval *items;
	size_t count;
	struct rv_buffer texts;
};

/* RV_E_REQUEST: the file is refused. */
int rv_approvals_load(struct rv_approvals *approvals, const char *path, struct rv_error *err);
void rv_approvals_release(struct rv_approvals *approvals); /* zeroed is fine */

/* *found is the approval that authorises the triple, or NULL. */
int rv_approvals_find(const struct rv_approvals *approvals, struct rv_span run_id, struct rv_span tool,
		      struct rv_span args_hash, struct rv_approval **found, struct rv_error *err);

#endif

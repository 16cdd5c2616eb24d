/* The service of rv-ledger-repair (contract, section 5): judge a whole ledger, then mend its tail and what an
 * interrupted repair left; or only say what would be done. */
#ifndef RV_LEDGER_REPAIR_H
#define RV_LEDGER_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/ledger/mend.h"
#include "lib/ledger/scan.h"

struct rv_repair_options {
	bool check;      /* write nothing */
	int64_t wait_ms; /* for the locks and the lease */
};

struct rv_repair {
	struct rv_repair_result result; /* with `check`: what would be done */
	uint64_t line;                  /* of the torn bytes */
	struct rv_scan scan;            /* its damage is the interior damage that refuses the repair */
};

/* RV_E_CORRUPT: interior damage, named in repair->scan, and nothing was changed.  RV_E_BUSY: locks not got in
 * time.  RV_E_IO.  Release in every case. */
int rv_repair_run(struct rv_repair *repair, const char *path, const struct rv_repair_options *options,
		  struct rv_error *err);
void rv_repair_release(struct rv_repair *repair);

/* "none", "terminated", "quarantined" */
const char *rv_repair_action_name(enum rv_repair_action action);

#endif

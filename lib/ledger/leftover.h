/* Which damage is an interrupted repair's, told by the copies beside the ledger (lib/ledger/torn.h). */
#ifndef RV_LEDGER_LEFTOVER_H
#define RV_LEDGER_LEFTOVER_H

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/ledger/copy.h"
#include "lib/ledger/scan.h"

struct rv_leftover {
	size_t copy;   /* index into the copies */
	size_t damage; /* index into the scan's damage */
	size_t extent; /* bytes of the damaged line that are the interrupted repair's */
};

struct rv_leftovers {
	struct rv_leftover *items; /* at most one for each copy */
	size_t count;
};

/* `fd` reads the one scanned ledger. */
int rv_leftovers_match(struct rv_leftovers *leftovers, int fd, struct rv_scan *scan, const struct rv_copies *copies,
		       struct rv_error *err);
void rv_leftovers_release(struct rv_leftovers *leftovers);

#endif

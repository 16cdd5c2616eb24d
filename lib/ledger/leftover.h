/* Which damage is an interrupted repair's, told by the copies beside the ledger (lib/ledger/torn.h). */
#ifndef RV_LEDGER_LEFTOVER_H
#define RV_LEDGER_LEFTOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/ledger/copy.h"
#include "lib/ledger/mend.h"
#include "lib/ledger/scan.h"

struct rv_leftover {
	size_t copy;   /* index into the copies */
	size_t damage; /* index into the scan's damage */
	size_t extent; /* bytes of the damaged line that are the interrupted repair's */
	size_t rows;   /* private to the finishing: rows at or behind it that hold its copy's bytes */
};

struct rv_leftovers {
	struct rv_leftover *items; /* a line once; a copy as often as lines were torn with the same bytes */
	size_t count;
	bool *taken; /* private: of each damage */
};

/* `fd` reads the one scanned ledger. */
int rv_leftovers_match(struct rv_leftovers *leftovers, int fd, struct rv_scan *scan, const struct rv_copies *copies,
		       struct rv_error *err);
void rv_leftovers_release(struct rv_leftovers *leftovers);

bool rv_leftovers_has(const struct rv_leftovers *leftovers, size_t copy);

/* A scan of the one ledger, with the places of all rows.  Release it in every case. */
int rv_leftovers_scan(struct rv_scan *scan, int fd, struct rv_error *err);

/* How many lines of this ledger, its tail aside, were torn with the bytes of the copy with this hash; reads all of it. */
int rv_leftovers_count(const struct rv_mend *mend, const char *sha256, size_t *lines, struct rv_error *err);

/* The tail that was found: fragment->bytes become those of a copy, if the tail is what an interrupted repair left of
 * them.  Copies that were never finished are removed. */
int rv_leftovers_recognise(struct rv_mending *mending, struct rv_fragment *fragment, struct rv_error *err);

#endif

/*
 * When damage that a scan read is believed.  A repair that is under way makes lines which look like damage, and an
 * append one that is not whole; neither is seen by a reader, who takes no lock.  So two looks follow the reading, in
 * this order: does anybody repair or append, and are the damaged bytes still what was read?  Who was at it during
 * the reading is at it still, and is seen by the first look; or was over before that look, and then its bytes are
 * others by the second.  Where either look says no, all is read again, RV_REREAD_MS later.
 */
#ifndef RV_LEDGER_DAMAGE_H
#define RV_LEDGER_DAMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/ledger/scan.h"
#include "lib/ledger/source.h"

#define RV_REREAD_MS 100

/* Both looks, right after the reading.  `sources`: the scan's files, by their numbers, of which `path`, `fd` and
 * `streamed` are used.  -1: RV_E_IO of sources[*failed]. */
int rv_damage_is_certain(const struct rv_scan *scan, const struct rv_source *sources, size_t count, bool *certain,
			 size_t *failed, struct rv_error *err);

#endif

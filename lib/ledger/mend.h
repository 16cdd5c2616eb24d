/*
 * The mechanics of a repair, under the append lock (contract, section 3).  The two routes, and what an
 * interrupted one leaves, are told in lib/ledger/torn.h.
 *
 * Who may be there at the same time: this project's writers wait for the append lock.  An engine's
 * writer that repairs waits for the sidecar.  An engine's writer that only appends takes no lock: the
 * lease keeps it out where it can be had; where it cannot, since somebody has the ledger open for
 * hours, appending is the only write that is safe beside it.  So a row is appended first, and
 * nothing is overwritten but the torn bytes themselves, once they are in two other places.
 */
#ifndef RV_LEDGER_MEND_H
#define RV_LEDGER_MEND_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/digest/digest.h"
#include "lib/ledger/line.h"
#include "lib/ledger/sidecar.h"

struct rv_mend {
	int fd;              /* O_RDWR | O_APPEND, our one description of the file */
	const char *path;    /* as given: the engine's writers put their sidecar beside that */
	const char *real;    /* without links: ours put their copies beside that */
	int64_t deadline_ms; /* monotonic, for the sidecar */
	int64_t lease_ms;    /* how long to try for the lease before the row is appended */
};

enum rv_repair_action { RV_REPAIR_NONE, RV_REPAIR_TERMINATED, RV_REPAIR_QUARANTINED };

struct rv_repair_result {
	enum rv_repair_action action;
	bool misshapen;  /* terminated, and of a wrong shape: damage from now on */
	bool older_copy; /* of these bytes was there before: rv_finish_leftovers() says what of, and drops it; where it is
			  * of another line, this tail has only its newline yet, and is finished with that line */
	uint64_t offset; /* of the torn bytes, before the repair */
	uint64_t bytes;
	char sha256[RV_SHA256_HEX];
	unsigned stray_copies; /* copies of whole rows that this ledger does not hold: left alone */
};

/* Repair the tail if it is torn. */
int rv_mend_tail(const struct rv_mend *mend, struct rv_repair_result *result, struct rv_error *err);

/* Between the files of the mechanics. */
struct rv_fragment {
	uint64_t start;
	struct rv_buffer bytes; /* as they were torn */
	struct rv_buffer found; /* as they stand in the ledger now */
	bool whole;             /* a whole row, to which another was glued: it is moved, not quarantined */
	char sha256[RV_SHA256_HEX];
};

struct rv_mending {
	const struct rv_mend *mend;
	struct rv_sidecar sidecar;
	struct rv_reader *reader;
	bool begun; /* the ledger was written to: where the rest fails, another has to finish it */
};

int rv_mending_begin(struct rv_mending *mending, const struct rv_mend *mend, struct rv_error *err);
/* `failed`: where the ledger was written to, the sidecar stays as after a crash, so that the next append finishes. */
void rv_mending_end(struct rv_mending *mending, bool failed);
/* Append what replaces the fragment so many times, in one write, synced. */
int rv_mend_append_rows(struct rv_mending *mending, const struct rv_fragment *fragment, size_t times, struct rv_error *err);
/* Overwrite the fragment with spaces: its bytes are elsewhere, synced. */
int rv_mend_blank(struct rv_mending *mending, const struct rv_fragment *fragment, struct rv_error *err);
void rv_fragment_release(struct rv_fragment *fragment);
void rv_repair_result_set(struct rv_repair_result *result, enum rv_repair_action action, const struct rv_fragment *fragment);

#endif

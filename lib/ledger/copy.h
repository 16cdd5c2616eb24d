/* The synced copies <path>.torn.<sha256> of torn bytes, which a repair keeps while it works and a
 * later one finds where it was interrupted (lib/ledger/torn.h). */
#ifndef RV_LEDGER_COPY_H
#define RV_LEDGER_COPY_H

#include <stddef.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/digest/digest.h"

struct rv_copy {
	char sha256[RV_SHA256_HEX];
	struct rv_buffer bytes;
};

struct rv_copies {
	struct rv_copy *items;
	size_t count;
};

/* Make the copy (0600, synced with its directory): 0; 1 where one with the same bytes was there already, and is
 * taken; or -1.  `sha256` is filled. */
int rv_copy_keep(const char *ledger_path, struct rv_span bytes, char sha256[RV_SHA256_HEX], struct rv_error *err);
int rv_copy_drop(const char *ledger_path, const char *sha256, struct rv_error *err);

/* All copies beside a ledger whose bytes have the hash of their name.  One whose bytes do not was
 * never finished, so that its repair wrote nothing yet: with `drop_partial` it is removed. */
int rv_copies_list(struct rv_copies *copies, const char *ledger_path, bool drop_partial, struct rv_error *err);
void rv_copies_release(struct rv_copies *copies);

#endif

/*
 * Appending to a ledger that others append to, read and repair at the same time (contract,
 * section 3).  A row is confirmed when rv_ledger_append() returns 0; a failure is RV_E_LEDGER
 * and is not sticky: its fragment stays for the next repair, the next append may succeed.
 */
#ifndef RV_LEDGER_APPEND_H
#define RV_LEDGER_APPEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

struct rv_ledger;

struct rv_ledger_options {
	bool power;      /* --durability power: fdatasync before an append returns */
	bool unsafe_fs;  /* --ledger-unsafe-fs: take a network or FUSE file system all the same */
	int64_t wait_ms; /* for the append lock, and for a repair that an append needs; then RV_E_LEDGER */
};

/* Open or create (0600 less umask; with `power` the directory is synced) the ledger at `path`.
 * RV_E_LEDGER: cannot be written, not a regular file, a file system that cannot be relied on. */
int rv_ledger_open(struct rv_ledger **out, const char *path, const struct rv_ledger_options *options,
		   struct rv_error *err);
void rv_ledger_close(struct rv_ledger *ledger); /* NULL is fine; drops every lock */

/* One or more whole rows, each with its newline, in one write under the append lock; a torn tail
 * is repaired first.  A ledger that was renamed away is created anew at its path. */
int rv_ledger_append(struct rv_ledger *ledger, const void *rows, size_t len, struct rv_error *err);

/* The same, but only if `guard` returns 0: it is asked under the append lock, so that no writer that takes it adds
 * a row between what the guard saw and these rows. */
struct rv_ledger_guard {
	int (*ask)(void *context, struct rv_error *err);
	void *context;
};

int rv_ledger_append_if(struct rv_ledger *ledger, const struct rv_ledger_guard *guard, const void *rows, size_t len,
			struct rv_error *err);

/* Hold one byte beyond any end of file, [2^52, 2^53), under an OFD write lock for as long as an
 * attempt lives: its offset goes into the intent's writer.lock.  Call it before the intent's append;
 * both go to one file also across a rename (the append then takes the lock over to the new file). */
int rv_ledger_hold(struct rv_ledger *ledger, int64_t *lock, struct rv_error *err);
void rv_ledger_drop(struct rv_ledger *ledger, int64_t lock);

/* Is there an attempt of this key without an outcome?  *found with its attempt id (for the message);
 * a ledger that does not exist has none; a corrupt one is RV_E_CORRUPT. */
int rv_ledger_find_orphan(const char *path, struct rv_span key, bool *found, struct rv_buffer *attempt_id,
			  struct rv_error *err);

#endif

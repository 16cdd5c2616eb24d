/*
 * Rows kept by any store, through a co-process (--ledger-exec; contract, section 6).  It gets each row as
 * a line and answers each with a line, in order: `ok`, or what went wrong.  Many rows may be in flight.
 *
 * A row is confirmed by its `ok` alone.  A row is refused where the answer is anything else, where none
 * comes within the deadline (a late one is taken for what it is and confirms nobody else's row), and
 * where the store has gone.  It has gone for good when it ends, closes its output, or says more than it was
 * asked: then no later answer could be told to whose row it belongs.
 *
 * A refused row may be in the store all the same; a row that had not begun to leave is not sent any more.
 */
#ifndef RV_EXECUTOR_STORE_H
#define RV_EXECUTOR_STORE_H

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/executor/sink.h"
#include "lib/process/loop.h"
#include "lib/process/spawn.h"

struct rv_store;

/* Start it.  `path` and `argv` are borrowed for this call, `name` (for messages) for as long as the store
 * is open; wait_ms: for an answer, and at the end for its own end.  RV_E_LEDGER. */
int rv_store_open(struct rv_store **out, struct rv_loop *loop, const char *path, char *const *argv, const char *name,
		  int64_t wait_ms, struct rv_error *err);
struct rv_sink *rv_store_sink(struct rv_store *store);
const struct rv_child *rv_store_child(const struct rv_store *store);

/* All rows are answered for: end of file, and wait for its end.  -1 (RV_E_LEDGER): it had to be killed,
 * or failed, and no row was refused for it: what it confirmed may not be kept.  NULL is fine. */
int rv_store_close(struct rv_store *store, struct rv_error *err);

#endif

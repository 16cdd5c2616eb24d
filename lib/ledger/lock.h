/*
 * The two kinds of OFD locks on a ledger.  The append lock is on the bytes that a file can have, the
 * liveness bytes lie beyond any end of file and below 2^53, so that they are exact in JSON.
 */
#ifndef RV_LEDGER_LOCK_H
#define RV_LEDGER_LOCK_H

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/io.h"

#define RV_APPEND_LEN     ((int64_t)1 << 52)
#define RV_LIVENESS_START ((int64_t)1 << 52)
#define RV_LIVENESS_LEN   ((int64_t)1 << 52)

/* RV_E_BUSY past the monotonic deadline. */
static inline int rv_append_lock(int fd, int64_t deadline_ms, struct rv_error *err)
{
	return rv_io_lock(fd, 0, RV_APPEND_LEN, deadline_ms, err);
}

static inline void rv_append_unlock(int fd)
{
	struct rv_error ignored = RV_ERROR_INIT; /* it has no way to fail, and would end with the description */

	(void)rv_io_unlock(fd, 0, RV_APPEND_LEN, &ignored);
}

#endif

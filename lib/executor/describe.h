/* What an executor is, as data (contract, section 6, --describe): one JSON line. */
#ifndef RV_EXECUTOR_DESCRIBE_H
#define RV_EXECUTOR_DESCRIBE_H

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/executor/service.h"

/* Open a service as a call would, and append what it is; no call is made.  The error is that of a call. */
int rv_describe(struct rv_buffer *out, const struct rv_service_options *options, char *const *command,
		struct rv_error *err);

#endif

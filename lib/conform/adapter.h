/*
 * Who is held to the promises: a command that speaks the adapter contract of rv-conformance(7), and
 * what it declares.  Without one it is this very program as `rv-conform --adapter`.
 */
#ifndef RV_CONFORM_ADAPTER_H
#define RV_CONFORM_ADAPTER_H

#include "lib/base/buffer.h"
#include "lib/base/error.h"

#define RV_ADAPTER_WORDS 64 /* of its command line, at most */

struct rv_adapter {
	const char *const *argv;    /* NULL-terminated */
	struct rv_buffer name;      /* as it calls itself, or its first word */
	unsigned capabilities;      /* enum rv_capability */
	struct rv_buffer unknown;   /* names that it declares and this program does not know, ", "-joined */
};

/* Asks it for its capabilities.  RV_E_IO: it cannot be run, or its answer makes no sense. */
int rv_adapter_open(struct rv_adapter *adapter, const char *const *argv, struct rv_error *err);
void rv_adapter_release(struct rv_adapter *adapter);

#endif

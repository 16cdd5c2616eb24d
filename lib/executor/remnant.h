/*
 * What a client that was killed within a create left with the OCI runtime (runc, crun): a state directory and control
 * groups of a container that the engine takes for one that the runtime never had, and forgets without a word to it.
 * The engine is asked for the container's id and for the runtime, while it still knows both; nothing is taken from a
 * process's words or from a directory, which others can make.  An engine that has no words for it (docker) starts its
 * containers in a service, which no end of a client ends.
 */
#ifndef RV_EXECUTOR_REMNANT_H
#define RV_EXECUTOR_REMNANT_H

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/executor/engine.h"

struct rv_remnant {
	char id[65];
	char runtime[256]; /* as the engine names it */
};

/* Before the engine removes the container: may the runtime have what the engine does not know of?  1, 0, or -1 where the
 * engine does not say.  Each of its answers is waited for until the deadline at most (monotonic, ms). */
int rv_remnant_ask(struct rv_remnant *remnant, const struct rv_engine *engine, const char *name, int64_t deadline,
		   struct rv_error *err);
/* Nobody makes it any more: have the runtime delete it.  0: it has nothing of it. */
int rv_remnant_delete(const struct rv_remnant *remnant, const struct rv_engine *engine, int64_t deadline, struct rv_error *err);

#endif

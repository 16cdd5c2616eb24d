/*
 * The tags that a call may name (contract, section 6) and what each stands for: `subprocess`, and what the
 * command line registers.  A tag that is not here is refused; `inprocess` is the engine's own and always is.
 */
#ifndef RV_EXECUTOR_REGISTRY_H
#define RV_EXECUTOR_REGISTRY_H

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/executor/dispatch.h"

struct rv_registry {
	struct rv_executor *executors; /* owned; names and isolations are borrowed */
	size_t count;
	const char *chosen; /* the tag of a call that names none */
};

/* A copy of `common`, which has what is the same for all tags, under a name of its own.  NULL: RV_E_CONFIG
 * for a tag that is there already, that is `inprocess` or no name at all; RV_E_NOMEM.  What it returns is
 * good until the next one is added. */
struct rv_executor *rv_registry_add(struct rv_registry *registry, const struct rv_executor *common, const char *tag,
				    struct rv_error *err);
/* `tag` with data NULL: the call names none.  RV_E_CONFIG and NULL where it is not registered. */
const struct rv_executor *rv_registry_find(const struct rv_registry *registry, struct rv_span tag, struct rv_error *err);
void rv_registry_release(struct rv_registry *registry);

#endif

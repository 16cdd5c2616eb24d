/*
 * A run as the boundary wants it (lib/sandbox/boundary.h): sources, paths inside, arguments, environment, the canary.
 * How a runtime is started is a table of dialects: a runtime named `node` writes the admission record itself, from a
 * preload that tries the canary once more; one named `python...` gets -I -S -B; another gets the entry as its first
 * argument.
 */
#ifndef RV_CONFINE_LAUNCH_H
#define RV_CONFINE_LAUNCH_H

#include <stddef.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/confine/namespace.h"
#include "lib/confine/request.h"
#include "lib/confine/runtime.h"
#include "lib/process/cgroup.h"
#include "lib/sandbox/boundary.h"

#define RV_LAUNCH_ADMITTED "sf-confined/1 admitted\n"
#define RV_LAUNCH_REFUSED "sf-confined/1 refused\n"

struct rv_launch_plan {
	struct rv_boundary boundary; /* leads into the rest */
	struct rv_source *sources;   /* owned, as all below */
	char **texts;                /* everything that was composed */
	size_t text_count;
	char **argv;
	char **envp;
	struct rv_buffer instance;   /* what was applied to this run, rendered */
	const struct rv_cgroup *group; /* borrowed: what the process goes into before anything else; NULL: none */
	char instantiated[RV_DIGEST_TEXT];
};

/* Everything but the descriptors.  The request, the runtime and the namespace are borrowed until the release. */
int rv_launch_prepare(struct rv_launch_plan *plan, const struct rv_policy *policy, const struct rv_confine_request *request,
		      const struct rv_runtime *runtime, const struct rv_namespace *ns, struct rv_error *err);
void rv_launch_release(struct rv_launch_plan *plan);

/* The five limits that a boundary sets. */
void rv_launch_set_limits(struct rv_instance *instance, const struct rv_bounds *bounds);

/* The dialects, as a member "launch" of a profile. */
void rv_launch_add_json(struct rv_buffer *out);

#endif

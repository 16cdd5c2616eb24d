/*
 * What may run, and how a call comes to its command: the command line's COMMAND, a request's own `spec`,
 * or a manifest, which then is the only way.  A call is completed here, alike for one shot and stream.
 */
#ifndef RV_EXECUTOR_RULES_H
#define RV_EXECUTOR_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/executor/dispatch.h"
#include "lib/executor/manifest.h"
#include "lib/executor/registry.h"

struct rv_rules {
	char *const *command; /* COMMAND and its ARGs, NULL-terminated; NULL: none */
	int64_t timeout_ms;   /* of a tool for which nothing else is said */
	bool has_manifest;
	struct rv_manifest manifest;
};

/* RV_E_CONFIG, RV_E_IO.  Release it in either case. */
int rv_rules_open(struct rv_rules *rules, const char *manifest, int64_t timeout_ms, char *const *command,
		  struct rv_error *err);
void rv_rules_release(struct rv_rules *rules); /* zeroed is fine */

/* Each executor that the manifest names is looked at before any tool runs.  RV_E_CONFIG. */
int rv_rules_check_tags(const struct rv_rules *rules, const struct rv_registry *registry, struct rv_error *err);

/* Complete a call that has its tool and, where the caller asked for one, its executor: timeout, approval, and
 * under a manifest also executor and command.  RV_E_CONFIG for what may not run. */
int rv_rules_apply(const struct rv_rules *rules, struct rv_call *call, struct rv_error *err);

#endif

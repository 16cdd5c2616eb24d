/*
 * What the command line says of isolation, made into the tags that calls may name: `subprocess` with its sandbox,
 * `container`, and one for each --executor TAG='LAUNCHER ...'.
 */
#ifndef RV_EXECUTOR_ISOLATE_H
#define RV_EXECUTOR_ISOLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/executor/container.h"
#include "lib/executor/enclose.h"
#include "lib/executor/launcher.h"
#include "lib/executor/registry.h"

enum rv_sandbox { RV_SANDBOX_NONE, RV_SANDBOX_BWRAP, RV_SANDBOX_KERNEL };

/* Borrowed; NULL is "not given", lists are NULL-terminated. */
struct rv_isolate_options {
	int sandbox; /* enum rv_sandbox */
	const char *sandbox_argv;
	const char *const *launcher_env;
	const char *const *executors; /* "TAG=LAUNCHER ...", or the TAG of calls that name none */
	const char *const *ro;        /* --sandbox bwrap: shown read-only, and writable */
	const char *const *rw;
	struct rv_container_options container;
	bool one_shot; /* an image that is given is meant */
};

struct rv_isolate {
	struct rv_environment envp; /* of launchers and clients */
	struct rv_launcher *launchers; /* owned */
	char **tags;                   /* owned strings */
	size_t launcher_count;
	struct rv_container container;
	/* set before it is opened: what the slots of plain subprocesses enclose them in */
	const struct rv_enclose *enclose;
	bool net;
};

/* Options that contradict each other, as RV_E_USAGE. */
int rv_isolate_check(const struct rv_isolate_options *options, struct rv_error *err);
/* Is anything to run outside the slots' namespaces? */
bool rv_isolate_needs_host(const struct rv_isolate_options *options);
/* Does something of a call stay behind its answer, to be put away by an engine while the next may run? */
bool rv_isolate_leaves(const struct rv_isolate_options *options);
/* Register the tags.  RV_E_CONFIG where what was asked for is not to be had here. */
int rv_isolate_open(struct rv_isolate *isolate, const struct rv_isolate_options *options, struct rv_registry *registry,
		    const struct rv_executor *common, struct rv_error *err);
void rv_isolate_release(struct rv_isolate *isolate); /* zeroed is fine */

#endif

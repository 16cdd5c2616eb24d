/*
 * What may run (contract, section 6, --manifest): one JSON object,
 *
 *   {name: {"command","args"?,"executor"?,"timeout"?,"needsApproval"?,"risk"?}}
 *
 * The trusted side's word, read once and checked whole: a file that changes later changes nothing, and one
 * bad entry refuses all of it.  A name that stands twice, an unknown member, an empty word are bad entries:
 * what is misread here runs.
 */
#ifndef RV_EXECUTOR_MANIFEST_H
#define RV_EXECUTOR_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/text.h"

/* Owned by its manifest. */
struct rv_manifest_tool {
	struct rv_span name;
	char **argv;             /* the command and its args, NULL-terminated; one allocation */
	struct rv_span executor; /* data NULL: not said */
	int64_t timeout_ms;      /* 0: not said */
	bool needs_approval;
	struct rv_span risk;     /* a label for people; data NULL: not said */
};

struct rv_manifest {
	struct rv_json_doc *doc; /* the names and labels are its */
	struct rv_manifest_tool *tools; /* as written */
	size_t count;
};

/* RV_E_CONFIG: a bad file, with the tool's name; RV_E_IO: it cannot be read. */
int rv_manifest_load(struct rv_manifest *manifest, const char *path, struct rv_error *err);
void rv_manifest_release(struct rv_manifest *manifest); /* zeroed is fine */

/* NULL: it may not run. */
const struct rv_manifest_tool *rv_manifest_find(const struct rv_manifest *manifest, struct rv_span name);

#endif

/*
 * What this host lets rv-exec do (contract, section 6, --probe), found by doing it: a line per facility and
 * profile.  To add one, add its row to the table in lib/executor/probe.c.
 */
#ifndef RV_EXECUTOR_PROBE_H
#define RV_EXECUTOR_PROBE_H

#include <stdbool.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"

/* What was found. */
struct rv_finding {
	bool ok;
	char why[512];      /* what was seen; "" where there is nothing to say */
	const char *remedy; /* what to change; "" where it is ok */
};

/* A row of the table: `find` fills in a finding that is zeroed but for remedy "". */
struct rv_facility {
	const char *name;
	void (*find)(const char *cgroup, struct rv_finding *finding);
};

/* Ends with a name of NULL. */
extern const struct rv_facility rv_facilities[];

/* Append {"name","ok","why","remedy"} for each facility, a line each; `cgroup` is --cgroup, or NULL.
 * *holds: does the default (its row is named "default")? */
int rv_probe_all(struct rv_buffer *out, const char *cgroup, bool *holds, struct rv_error *err);

#endif

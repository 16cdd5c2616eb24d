/*
 * What comes on descriptor 3: the launcher's report, then the admission record.  Only these ends mean anything:
 *
 *     record, end of file               admitted
 *     record, "exec ERRNO\n", end       refused: the runtime could not be executed
 *     refusal, end of file              refused: the preload, or the host, would not have it
 *     end of file                       absent
 *     anything else, or no end of file  malformed
 *
 * Private to lib/confine.
 */
#ifndef RV_CONFINE_CONTROL_H
#define RV_CONFINE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/confine/collect.h"
#include "lib/confine/limits.h"

struct rv_control {
	char bytes[sizeof(struct rv_boundary_report) + RV_CONFINE_CONTROL_MAX + 2];
	size_t len;     /* of what is kept; more than fits is malformed */
	bool over;
	bool ended;     /* end of file */
	bool refused;   /* the host did not send the go byte */
	int exec_errno; /* found by rv_control_admission() */
};

void rv_control_add(struct rv_control *control, const char *bytes, size_t len);
/* Is the report whole?  Then it is copied. */
bool rv_control_report(const struct rv_control *control, struct rv_boundary_report *report);
/* Can what came no longer become anything good? */
bool rv_control_is_malformed(const struct rv_control *control);
enum rv_admission rv_control_admission(struct rv_control *control);

#endif

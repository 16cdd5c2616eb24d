/*
 * Diagnostic events: counted, materialised, launched, admitted, collected.  Each is one JSON line on the standard input of
 * a program that is run to its end before the run goes on, which is how faults are injected at a known instant.
 * Whatever it does or returns changes no result by itself.
 */
#ifndef RV_CONFINE_EVENT_H
#define RV_CONFINE_EVENT_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/base/error.h"
#include "lib/confine/namespace.h"

struct rv_events {
	char *const *command;             /* NULL: nobody listens */
	void (*say)(const char *message); /* a program that failed; NULL: nobody */
	int64_t deadline_ms;              /* monotonic, of the run; 0: none yet */
};

void rv_event_counted(const struct rv_events *events, const char *root, long retained);
/* materialised, collected */
void rv_event_namespace(const struct rv_events *events, const char *event, const char *ns);
/* launched (with the profile's text as it was applied), admitted (without) */
void rv_event_process(const struct rv_events *events, const char *event, const char *ns, pid_t pid, const char *profile);

#endif

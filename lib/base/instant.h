/* An instant as people and programs write it, in milliseconds since 1970-01-01T00:00:00Z. */
#ifndef RV_BASE_INSTANT_H
#define RV_BASE_INSTANT_H

#include <stdint.h>

#include "lib/base/error.h"

/* Bare milliseconds, or RFC 3339 (`2026-11-30T01:02:03.456Z`, with an offset or `Z`).  RV_E_USAGE. */
int rv_instant_parse(const char *text, int64_t *ms, struct rv_error *err);

#endif

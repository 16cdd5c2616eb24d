/* A program of this project's that is no command, and that another one of it starts (libexec/). */
#ifndef RV_BASE_HELPER_H
#define RV_BASE_HELPER_H

#include "lib/base/buffer.h"
#include "lib/base/error.h"

/* Its path, NUL-terminated, appended to `path`: beside the running program in a build (libexec/NAME), else where it was
 * installed.  RV_E_CONFIG. */
int rv_helper_find(struct rv_buffer *path, const char *name, struct rv_error *err);

#endif

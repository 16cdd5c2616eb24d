/*
 * What a command's name means: a name with a slash is taken as it is (from the caller's directory,
 * made absolute, since the tool starts in another one); a bare name is looked up in PATH as execvp(3)
 * does, but no shell is ever tried.
 */
#ifndef RV_EXECUTOR_COMMAND_H
#define RV_EXECUTOR_COMMAND_H

#include "lib/base/buffer.h"
#include "lib/base/error.h"

/* The absolute path of `name`, NUL-terminated, into `path`.  RV_E_SPAWN_MISSING: no such file;
 * RV_E_SPAWN: found, and not executable; RV_E_CONFIG: an empty name, or no directory to stand in. */
int rv_command_find(struct rv_buffer *path, const char *name, struct rv_error *err);

/* Why an exec of `path` failed with `errnum`, in words, as RV_E_SPAWN or RV_E_SPAWN_MISSING. */
int rv_command_failed(const char *path, int errnum, struct rv_error *err);

#endif

/*
 * A tool's environment: replaced and never inherited.  Later settings win; a name is there once.
 */
#ifndef RV_EXECUTOR_ENVIRONMENT_H
#define RV_EXECUTOR_ENVIRONMENT_H

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/text.h"

struct rv_environment {
	char **entries; /* owned "NAME=VALUE" strings, NULL-terminated: an envp */
	size_t count;
	size_t room;
};

#define RV_ENVIRONMENT_INIT { NULL, 0, 0 }

/* Set or replace.  RV_E_CONFIG: an empty name, '=' in the name, NUL in either. */
int rv_environment_set(struct rv_environment *env, struct rv_span name, struct rv_span value, struct rv_error *err);
/* "NAME=VALUE". */
int rv_environment_put(struct rv_environment *env, const char *assignment, struct rv_error *err);
/* Copy a variable of this process; one that is absent is left out. */
int rv_environment_allow(struct rv_environment *env, const char *name, struct rv_error *err);
void rv_environment_release(struct rv_environment *env); /* values are wiped */

#endif

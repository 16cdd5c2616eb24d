/*
 * A tool inside a sandbox that another program makes: LAUNCHER ... rv-inner COMMAND ARG...  Two environments: the
 * launcher has its own (what --launcher-env names), the tool's reaches it behind the launcher's back, at the front
 * of its standard input (libexec/rv-inner.c).
 *
 * A launcher runs outside the slot's PID namespace and may gain privileges (firejail is setuid); the tool may not.
 * What rv-inner has not said to have started was never run: that is the launcher's own failure, `spawn`.
 */
#ifndef RV_EXECUTOR_LAUNCHER_H
#define RV_EXECUTOR_LAUNCHER_H

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/executor/environment.h"
#include "lib/executor/isolation.h"
#include "lib/executor/words.h"

struct rv_launcher {
	struct rv_words words;     /* with {workdir} in them */
	struct rv_buffer path;     /* of its program */
	struct rv_buffer inner;    /* of rv-inner, as the sandbox sees it */
	struct rv_buffer name;     /* "argv:firejail": the sandbox in rows and replies */
	char *const *envp;         /* borrowed: the launcher's environment */
	bool hides;                /* only what `shown` names can be executed in it */
	struct rv_words shown;
};

extern const struct rv_isolation rv_isolation_launcher; /* isolation_data is a struct rv_launcher */

/* 'WORDS' by POSIX quoting.  RV_E_CONFIG: no words, or the program is not there. */
int rv_launcher_open(struct rv_launcher *launcher, const char *words, char *const *envp, struct rv_error *err);
/* The preset: no network, the system read-only, a /tmp of its own, and what else is to be shown (NULL-terminated,
 * absolute; RV_E_CONFIG where one does not exist). */
int rv_launcher_open_bwrap(struct rv_launcher *launcher, const char *const *ro, const char *const *rw,
			   char *const *envp, struct rv_error *err);
void rv_launcher_release(struct rv_launcher *launcher); /* zeroed is fine */

/* What a launcher, or an engine's client, may read of this process's environment: the names that they need, and
 * `more` (NULL-terminated). */
int rv_launcher_environment(struct rv_environment *env, const char *const *more, struct rv_error *err);
extern const char *const rv_launcher_names[]; /* NULL-terminated */

#endif

/*
 * A program of the host's own beside this process for as long as it is wanted: bytes to its standard
 * input, bytes from its standard output.
 *
 * It has this process's environment, directory and standard error, no other descriptor, default
 * dispositions, an empty signal mask, and a session of its own: what a terminal sends to those in front
 * (^C, a hangup) is not for it.  It is not killed when this process dies: it sees end of file, and what
 * is in its pipe by then was said.
 */
#ifndef RV_PROCESS_COPROCESS_H
#define RV_PROCESS_COPROCESS_H

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/process/spawn.h"

struct rv_coprocess {
	struct rv_child child;
	int in;     /* owned, non-blocking: its standard input; -1: closed */
	int out;    /* owned, non-blocking: its standard output; -1: closed */
	int status; /* as waitpid(2) gives it, once it has ended */
	bool ended; /* and is reaped */
};

#define RV_COPROCESS_INIT { .child = RV_CHILD_INIT, .in = -1, .out = -1, .status = 0, .ended = false }

/* RV_E_SPAWN, with errno in err->errnum, where `path` cannot be executed; nothing is left then. */
int rv_coprocess_start(struct rv_coprocess *coprocess, const char *path, char *const *argv, struct rv_error *err);

/* Has it ended?  Waits up to wait_ms for that, and reaps it. */
bool rv_coprocess_has_ended(struct rv_coprocess *coprocess, int wait_ms);

void rv_coprocess_close_in(struct rv_coprocess *coprocess);

/* SIGKILL for it and its process group, and the end of both pipes. */
void rv_coprocess_kill(struct rv_coprocess *coprocess);

/* Append how it ended: "exited with status 3", "was killed by SIGKILL". */
void rv_coprocess_describe(const struct rv_coprocess *coprocess, char *text, size_t size);

#endif

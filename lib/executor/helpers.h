/*
 * The processes on this host that a container's engine has for it: its client, which somebody killed rv-exec without,
 * and what holds the container (podman's conmon, with the runtime's init below it).  A client that dies between the
 * create and the start leaves an engine without a daemon with a container that it believes was never run: it removes
 * that and leaves these processes.  So they are looked for by what their command line says, and for nothing but the
 * container's name, which has the attempt's random id.
 *
 * Only processes of the caller's own are touched, each held and looked at again before its signal.  What a remote
 * engine or a daemon has is its own to end, and is not seen.
 */
#ifndef RV_EXECUTOR_HELPERS_H
#define RV_EXECUTOR_HELPERS_H

#include "lib/base/buffer.h"

enum rv_helpers {
	RV_HELPERS_CLIENTS = 1, /* the words --name NAME */
	RV_HELPERS_HOLDERS = 2  /* the words -n NAME */
};

/* Send `signal_number` (0: none) to those of this container, and to all that descends from holders: what a client has
 * begun below it, a create say, it would leave in the middle.  How many lived; -1 if /proc cannot be read. */
int rv_helpers_signal(const char *name, enum rv_helpers which, int signal_number);

/* The names of rv-exec's containers that any of both is there for, a line each, a name perhaps more than once.
 * -1: /proc cannot be read. */
int rv_helpers_list(struct rv_buffer *names);

#endif

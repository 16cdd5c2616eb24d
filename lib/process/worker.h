/* A slot's worker: see worker.c.  Private to lib/process. */
#ifndef RV_PROCESS_WORKER_H
#define RV_PROCESS_WORKER_H

#include <stdbool.h>

struct rv_wire_page;
struct rv_enclosure;
#include "lib/process/slot.h"

struct rv_worker_setup {
	int socket;      /* the worker's end */
	struct rv_wire_page *page; /* shared with the host */
	bool namespaces; /* made with CLONE_NEWPID: say so only if this is pid 1 */
	bool mounts;     /* made with CLONE_NEWNS: mount a procfs of its own */
	const struct rv_enclosure *enclosure; /* lib/process/slot.h; NULL: none */
	rv_undo *undo;   /* NULL: nothing is ever to be undone */
};

/* Runs until the host is gone; the return value is an exit status. */
int rv_worker_main(void *setup);

#endif

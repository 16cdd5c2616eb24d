/*
 * A look from outside at how much memory the program has: its resident pages.  A watch sees what is there when it
 * looks, and stops what it has seen; it is no wall.  Private to lib/confine.
 */
#ifndef RV_CONFINE_MEMORY_H
#define RV_CONFINE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rv_memory_watch {
	pid_t program; /* 0: not found yet */
	bool blind;    /* /proc did not show it while it was alive */
};

/* Resident bytes of the program; 0 where there is nothing to see.  `spawned` is what the host spawned: init, whose only
 * child is the program, or the program itself. */
int64_t rv_memory_look(struct rv_memory_watch *watch, pid_t spawned, bool init);

#endif

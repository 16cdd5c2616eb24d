/*
 * The mount namespace that the tools of a worker run in, where they are root and may mount.  A namespace made for
 * each tool costs more than all else that is done for one; this one is shared by tool after tool for as long as
 * none of them has changed it, and is thrown away when one has: the next is a copy of the one that no tool was in.
 *
 * Two looks tell.  The kernel counts what is mounted, unmounted, moved or remounted (poll(2) of
 * /proc/self/mountinfo); how mounts propagate it does not count, and that is compared.  Private to lib/process.
 */
#ifndef RV_PROCESS_MOUNTS_H
#define RV_PROCESS_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

struct rv_mounts {
	int pristine;  /* owned: the namespace that no tool is in; -1: none is kept */
	int info;      /* owned: the mounts of the one that tools run in; -1: it is to be made anew first */
	char *text;    /* owned: what `info` said when it was new; NULL: it could not be kept, so every tool has its own */
	size_t len;
};

#define RV_MOUNTS_INIT { .pristine = -1, .info = -1, .text = NULL, .len = 0 }

/* Go into a namespace for tools.  False: there can be none (no procfs), and nothing has changed. */
bool rv_mounts_begin(struct rv_mounts *mounts);

/* Are they kept at all?  If not, each tool must make its own namespace. */
bool rv_mounts_kept(const struct rv_mounts *mounts);

/* Behind a tool, when all that it started is dead: leave what it has mounted.  The second, for what nobody waits
 * for, also looks at what the kernel does not count. */
void rv_mounts_leave(struct rv_mounts *mounts);
void rv_mounts_compare(struct rv_mounts *mounts);

/* Before a tool: -1 with errno where what an earlier one left could not be left behind. */
int rv_mounts_ready(struct rv_mounts *mounts);

#endif

/*
 * A child that shares the caller's memory, while the calling thread sleeps until the child has exec'ed or ended: no
 * page table is copied, which is most of what a fork costs.
 */
#ifndef RV_SANDBOX_VFORK_H
#define RV_SANDBOX_VFORK_H

#include <stdint.h>
#include <sys/types.h>

/* `child` runs on a stack of its own, in new namespaces where CLONE_NEW* are given, and _exits with what it returns.
 * What it writes to memory is the caller's too (not so in a sanitizer's build, which cannot follow: there it is a
 * fork; results go into memory that is mapped as shared).  It must use nothing that needs another thread of the
 * caller.  It is not reaped here.  -1 with errno. */
pid_t rv_vfork(uint64_t namespaces, int (*child)(void *data), void *data);

#endif

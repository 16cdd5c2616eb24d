/*
 * The one way a process is started into namespaces of its own.  The child waits at a gate until
 * the parent has done its part (id maps can only be written from outside), then runs `child` and
 * _exits with what it returns.  clone3(2) with CLONE_PIDFD, or clone(2) where clone3 is ENOSYS
 * (Docker's default seccomp profile).  The child shares no memory with the parent and must use
 * nothing that needs another thread of it.
 */
#ifndef RV_PROCESS_SPAWN_H
#define RV_PROCESS_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/base/error.h"

struct rv_spawn_plan {
	uint64_t namespaces;                                   /* CLONE_NEW* flags, 0 for none */
	int (*parent_setup)(pid_t child, void *data, struct rv_error *err); /* may be NULL */
	int (*child)(void *data);
	void *data;
};

struct rv_child {
	pid_t pid;
	int pidfd; /* owned; becomes readable when the child is a zombie */
};

#define RV_CHILD_INIT { .pid = -1, .pidfd = -1 }

/* RV_E_CONFIG with errno in err->errnum where the host does not let it be; RV_E_IO otherwise. */
int rv_spawn(const struct rv_spawn_plan *plan, struct rv_child *child, struct rv_error *err);

/* SIGKILL (only while unreaped, through the pidfd), wait up to wait_ms, reap.  Returns 1 when gone and
 * *status is set (if not NULL), 0 when it is still there, and then it stays the caller's. */
int rv_child_kill(struct rv_child *child, int wait_ms, int *status);

/* For a one-id user namespace: setgroups denied, uid and gid mapped to themselves
 * (user_namespaces(7)).  `data` is not used; a parent_setup. */
int rv_spawn_map_self(pid_t child, void *data, struct rv_error *err);

#endif

/* The maps of a child's user namespace, written by its parent: user_namespaces(7). */
#ifndef RV_BASE_IDMAP_H
#define RV_BASE_IDMAP_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/error.h"

/* One id each: inside, and which one of the host's it is. */
struct rv_idmap {
	uid_t inside_uid, outside_uid;
	gid_t inside_gid, outside_gid;
	bool keep_setgroups; /* for a root that lets its child drop the groups; nobody else may map then */
};

/* Of `child`, or of the caller itself (0).  RV_E_CONFIG: the host does not allow it. */
int rv_idmap_write(pid_t child, const struct rv_idmap *map, struct rv_error *err);

#endif

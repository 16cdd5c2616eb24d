/* The parts of lib/process/cgroup.h: where groups can be made, what is in their files, and their end. */
#ifndef RV_PROCESS_CGROUP_TREE_H
#define RV_PROCESS_CGROUP_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/process/cgroup.h"

/* RV_E_CONFIG. */
int rv_cgroup_file_write(int dir, const char *file, const char *text, struct rv_error *err);
/* The number behind `key` at the start of a line; -1 where there is none. */
int64_t rv_cgroup_file_count(int dir, const char *file, const char *key);

/* Fill in the trees, with their controllers.  RV_E_CONFIG. */
int rv_cgroup_find(struct rv_cgroups *groups, const char *dir, struct rv_error *err);
/* Make a group and let a child go into it. */
int rv_cgroup_try(const struct rv_cgroups *groups, struct rv_error *err);

/* Kill what is in a group and remove it: true when it is gone. */
bool rv_cgroup_end(int parent, const char *name);
/* The same for all whose names begin so; `unowned`: only those whose owner is dead. */
void rv_cgroup_sweep(int parent, const char *prefix, bool unowned);

int rv_cgroup_start_janitor(struct rv_cgroups *groups, struct rv_error *err);

#endif

/*
 * Where names lead: a path made canonical, with every symbolic link on the way kept as an alias, so that the
 * same names can be made again inside.  Private to lib/confine.
 */
#ifndef RV_CONFINE_NAMES_H
#define RV_CONFINE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

struct rv_alias {
	char *path;   /* of the link, its directory canonical */
	char *target; /* its text */
};

struct rv_aliases {
	struct rv_alias *items;
	size_t count, room;
};

void rv_aliases_release(struct rv_aliases *aliases);
/* Known once however often it is met. */
int rv_aliases_add(struct rv_aliases *aliases, const char *path, const char *target, struct rv_error *err);
void rv_aliases_sort(struct rv_aliases *aliases);

/* The canonical path of an absolute one, the links on the way added.  `canonical` holds PATH_MAX bytes.
 * RV_E_RUNTIME with the errno where it leads nowhere. */
int rv_names_resolve(struct rv_aliases *aliases, const char *path, char *canonical, struct rv_error *err);

/* Absolute, no empty segment, no "." and "..", no slash at the end. */
bool rv_names_are_normal(const char *path);
/* Is `path` the directory, or in it? */
bool rv_names_is_below(const char *path, const char *directory);

#endif

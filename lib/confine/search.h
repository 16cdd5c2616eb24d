/* Where a dynamic linker looks.  Private to lib/confine. */
#ifndef RV_CONFINE_SEARCH_H
#define RV_CONFINE_SEARCH_H

#include "lib/confine/closure.h"

/* The linker's own directories, read from its bytes, into the closure.  RV_E_RUNTIME where they are not there. */
int rv_search_read_directories(struct rv_closure *closure, int fd, const char *path, struct rv_error *err);

/* Look for the library that object `loader` needs.  1 found (an open descriptor, and its path in `found`, PATH_MAX
 * bytes), 0 not there, -1 error. */
int rv_search(const struct rv_closure *closure, size_t loader, const char *name, char *found, int *fd,
	      struct rv_error *err);

#endif

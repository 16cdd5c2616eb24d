/*
 * What a run's identity says of the host: this program's own bytes, the kernel, the system.  Private to lib/confine.
 */
#ifndef RV_CONFINE_HOST_H
#define RV_CONFINE_HOST_H

#include "lib/base/error.h"
#include "lib/confine/hash.h"

struct rv_host {
	struct rv_hash_file launcher; /* /proc/self/exe, by its path */
	char *release;
	char *machine;
	char *os_id;      /* NULL: /etc/os-release does not say; owned, as all here */
	char *os_version;
};

/* RV_E_HOST where the launcher is not a regular file of root or of the caller that nobody else can write. */
int rv_host_describe(struct rv_host *host, struct rv_error *err);
/* The first part of it: the launcher alone. */
int rv_host_find_launcher(struct rv_host *host, struct rv_error *err);
void rv_host_release(struct rv_host *host);

/* Does the kernel give files that begin so (or are named so) to an interpreter instead (binfmt_misc)?  RV_E_RUNTIME
 * names the entry. */
int rv_host_check_binfmt(int fd, const char *path, struct rv_error *err);

#endif

/*
 * What a receipt of rv-conform vouches for: the digests of runtimes and profiles that its confine suite ran on.  Private to
 * lib/confine.
 */
#ifndef RV_CONFINE_PROVEN_H
#define RV_CONFINE_PROVEN_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/confine/snapshot.h"

struct rv_proven {
	bool given; /* there is a receipt: what it does not name is not run */
	char (*runtimes)[RV_DIGEST_TEXT]; /* owned */
	size_t runtime_count;
	char (*profiles)[RV_DIGEST_TEXT];
	size_t profile_count;
};

/* RV_E_REQUEST where the file is no receipt, or one of a run that failed. */
int rv_proven_read(struct rv_proven *proven, const char *path, struct rv_error *err);
void rv_proven_release(struct rv_proven *proven);
bool rv_proven_has_runtime(const struct rv_proven *proven, const char *digest);
bool rv_proven_has_profile(const struct rv_proven *proven, const char *digest);

#endif

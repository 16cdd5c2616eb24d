#include "lib/executor/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/executor/service.h"

/* Where a name stands, which need not be there yet; NULL: its directory is not there either. */
static char *place_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	rv_auto_free char *parent = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
	rv_auto_free char *real = parent != NULL ? realpath(parent, NULL) : NULL;
	char *place = NULL;

	if (real == NULL || asprintf(&place, "%s/%s", strcmp(real, "/") == 0 ? "" : real, slash == NULL ? path : slash + 1) < 0)
		return NULL;
	return place;
}

static int check_file(const char *option, const char *path, const char *const *writable, struct rv_error *err)
{
	rv_auto_free char *place = NULL;  /* who can write there can put another in its place */
	rv_auto_free char *target = NULL; /* and here in it */

	if (path == NULL)
		return 0;
	place = place_of(path);
	target = realpath(path, NULL);
	for (size_t i = 0; writable != NULL && writable[i] != NULL; i++) {
		rv_auto_free char *top = realpath(writable[i], NULL);

		if (top != NULL && ((place != NULL && rv_path_is_within(place, top)) || (target != NULL && rv_path_is_within(target, top))))
			return rv_error_set(err, RV_E_CONFIG, 0, "--rw %s: %s %s is there, and the tool could write in it: keep it elsewhere",
					    writable[i], option, path);
	}
	return 0;
}

int rv_guard_check(const struct rv_service_options *options, struct rv_error *err)
{
	if (check_file("--ledger", options->ledger, options->rw, err) != 0 ||
	    check_file("--manifest", options->manifest, options->rw, err) != 0)
		return -1;
	return check_file("--approvals", options->approvals, options->rw, err);
}

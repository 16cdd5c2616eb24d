#include "lib/base/helper.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

int rv_helper_find(struct rv_buffer *path, const char *name, struct rv_error *err)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;

	if (len > 0) {
		self[len] = '\0';
		slash = strrchr(self, '/');
		if (slash != NULL)
			*slash = '\0';
		rv_buffer_printf(path, "%s/libexec/%s", self, name);
		if (rv_buffer_string(path) != NULL && access(path->data, X_OK) == 0)
			return 0;
		rv_buffer_clear(path);
	}
	rv_buffer_printf(path, "%s/%s", RV_LIBEXECDIR, name);
	if (rv_buffer_string(path) != NULL && access(path->data, X_OK) == 0)
		return 0;
	return rv_error_set(err, RV_E_CONFIG, errno, "the helper %s/%s", RV_LIBEXECDIR, name);
}

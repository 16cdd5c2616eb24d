#include "lib/executor/permit.h"

#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"

#define RECENT_MS 2000 /* more than the coarsest time stamp of a local file system, and a clock's jitter */

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Two changes within one tick of the file system's clock leave one time stamp. */
static bool is_recent(const struct stat *info)
{
	int64_t age = rv_clock_wall_ms() - (int64_t)info->st_ctim.tv_sec * 1000;

	return age < RECENT_MS;
}

static void forget(struct rv_permits *permits)
{
	if (permits->loaded)
		rv_approvals_release(&permits->approvals);
	permits->loaded = false;
}

/* The look at the file comes before the reading: what changes in between is seen as a change the next time. */
static int refresh(struct rv_permits *permits, struct rv_error *err)
{
	struct stat now;

	if (stat(permits->path, &now) != 0) {
		int saved = errno;

		forget(permits);
		return rv_error_set(err, RV_E_IO, saved, "%s", permits->path);
	}
	if (permits->loaded && !permits->recent && is_same(&now, &permits->seen))
		return 0;
	forget(permits);
	if (!S_ISREG(now.st_mode)) /* it could not be read again */
		return rv_error_set(err, RV_E_REQUEST, 0, "%s: not a regular file", permits->path);
	permits->seen = now;
	permits->recent = is_recent(&now);
	if (rv_approvals_load(&permits->approvals, permits->path, err) != 0)
		return -1;
	permits->loaded = true;
	return 0;
}

int rv_permits_open(struct rv_permits *permits, const char *path, struct rv_error *err)
{
	memset(permits, 0, sizeof *permits);
	permits->path = path;
	return refresh(permits, err) == 0 ? 0 : rv_error_wrap(err, "--approvals");
}

void rv_permits_release(struct rv_permits *permits)
{
	forget(permits);
}

int rv_permits_check(struct rv_permits *permits, const struct rv_call *call, struct rv_error *err)
{
	struct rv_approval *found = NULL;

	if (permits == NULL)
		return rv_error_set(err, RV_E_CONFIG, 0, "tool %.*s needs an approval, and no --approvals was given",
				    (int)call->tool.len, call->tool.data);
	if (refresh(permits, err) != 0) {
		if (err->code == RV_E_IO) /* nothing authorises the call any more */
			err->code = RV_E_CONFIG;
		return rv_error_wrap(err, "--approvals");
	}
	if (rv_approvals_find(&permits->approvals, call->run_id, call->tool, call->args_hash, &found, err) != 0)
		return -1;
	if (found != NULL)
		return 0;
	return rv_error_set(err, RV_E_CONFIG, 0, "tool %.*s needs an approval, and %s has none for run %.*s and argsHash %.*s",
			    (int)call->tool.len, call->tool.data, permits->path, (int)call->run_id.len, call->run_id.data,
			    (int)call->args_hash.len, call->args_hash.data);
}

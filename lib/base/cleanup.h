/*
 * Cleanup attributes: a local that owns something releases it on every way out.
 * `rv_steal_fd(&fd)` and `rv_steal_ptr(&p)` hand the thing on and leave nothing behind.
 */
#ifndef RV_BASE_CLEANUP_H
#define RV_BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void rv_cleanup_fd(const int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		(void)close(*fd);
		errno = saved;
	}
}

static inline void rv_cleanup_free(void *slot)
{
	int saved = errno;

	free(*(void **)slot);
	errno = saved;
}

static inline void rv_cleanup_file(FILE **file)
{
	if (*file != NULL)
		(void)fclose(*file);
}

static inline void rv_cleanup_dir(DIR **dir)
{
	if (*dir != NULL)
		(void)closedir(*dir);
}

#define rv_auto_fd   __attribute__((cleanup(rv_cleanup_fd)))
#define rv_auto_free __attribute__((cleanup(rv_cleanup_free)))
#define rv_auto_file __attribute__((cleanup(rv_cleanup_file)))
#define rv_auto_dir  __attribute__((cleanup(rv_cleanup_dir)))
#define rv_auto_buffer __attribute__((cleanup(rv_buffer_release))) /* needs lib/base/buffer.h */

static inline int rv_steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void *rv_steal_void(void **slot)
{
	void *taken = *slot;

	*slot = NULL;
	return taken;
}

#define rv_steal_ptr(slot) ((__typeof__(*(slot)))rv_steal_void((void **)(slot)))

#endif

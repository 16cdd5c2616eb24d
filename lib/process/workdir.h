/*
 * The fresh working directory of one dispatch: `BASE/rulvar-exec-<tool>-XXXXXX`, 0700, with the
 * tool's name reduced to safe characters.
 */
#ifndef RV_PROCESS_WORKDIR_H
#define RV_PROCESS_WORKDIR_H

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

/* Put a fresh candidate name, NUL-terminated, into `path` (cleared before).  Nothing is created. */
int rv_workdir_name(struct rv_buffer *path, const char *base, struct rv_span tool, const char random[7],
		    struct rv_error *err);

/*
 * Remove the directory and all that is in it, following no link and crossing no mount, with a
 * constant number of descriptors and no recursion: sub-directories are renamed up to the top, each once,
 * and emptied there in that order, so depth and path length do not matter.  Directories without permissions are given
 * them first.  A file or a link in its place is unlinked.  Goes on past what it cannot remove; then -1 (RV_E_IO) with the first reason.
 */
int rv_workdir_remove(const char *path, struct rv_error *err);

#endif

/*
 * A root of one's own, piece by piece, by descriptors: nothing here follows a link out of the new root, and
 * nothing is mounted where it could be seen half done.  Each returns -1 with errno.  No heap.
 * Private to lib/sandbox.
 */
#ifndef RV_SANDBOX_MOUNTS_H
#define RV_SANDBOX_MOUNTS_H

#include <sys/types.h>

#include "lib/sandbox/policy.h"

#define RV_MOUNTS_RECURSIVE (1U << 16) /* with what is mounted below: where the caller named a tree of its own */

/* O_PATH, and the very file that the host saw (EXDEV otherwise). */
int rv_mounts_open_source(const struct rv_source *source);

/* A detached copy of the mount at `fd` (O_PATH, opened in this mount namespace) with these RV_MOUNT_* flags. */
int rv_mounts_clone(int fd, unsigned flags);

/* A detached new file system; `data` "size=1m,mode=0755" or NULL. */
int rv_mounts_make(const char *type, const char *data, unsigned flags);

/* Attach `tree` at `target` of the root `root` (a descriptor of it), making the directories on the way there and
 * the place itself, a directory or an empty file as the tree is.  Links are followed inside the root alone. */
int rv_mounts_attach(int root, const char *target, int tree);

/* A directory, a link, a file with this text, in the root itself. */
int rv_mounts_directory(int root, const char *target);
int rv_mounts_link(int root, const char *target, const char *text);
int rv_mounts_text(int root, const char *target, const char *text);

/* O_PATH of what is at `target` inside the root, links followed inside it alone. */
int rv_mounts_inside(int root, const char *target);

/* Nothing mounted here reaches another namespace. */
int rv_mounts_private(void);

/* A new root (a tmpfs, attached over "/"): its descriptor. */
int rv_mounts_root(const char *data);

/* Make it read-only and pivot into it; the old root is still on top. */
int rv_mounts_pivot(int root);
/* The same, let the old root go; the working directory is "/" of the new one. */
int rv_mounts_enter(int root);

#endif

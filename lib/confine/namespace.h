/*
 * The private directory of one run on the host: a slot of the root, claimed, filled, verified and taken away again, and
 * never touched where it is not what it was (seed, invariants 3, 4 and 12).
 *
 *     ROOT/slot-N/program/...   input/...   home/   canary
 *
 * What was made is recorded entry by entry: device, inode, owner, size, digest.  A verification compares all of it
 * and the exact listing of every directory.  A removal verifies first, unlinks only what is recorded, children
 * first, and stops at the first surprise.
 */
#ifndef RV_CONFINE_NAMESPACE_H
#define RV_CONFINE_NAMESPACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/base/error.h"
#include "lib/confine/snapshot.h"

struct rv_ns_entry;

struct rv_namespace {
	int root;              /* borrowed */
	uid_t self;            /* the caller */
	char path[PATH_MAX];   /* of the slot; "" before it is claimed */
	const char *name;      /* its name in the root: the end of path */
	struct rv_ns_entry *entries; /* the slot first, parents before children */
	size_t count, room;
	size_t parent; /* the directory that was found last */
};

/* Is this text a root's: absolute, normal, of A-Z a-z 0-9 . _ @ + / - ?  RV_E_USAGE. */
int rv_root_check_name(const char *path, struct rv_error *err);
/* Open it: a directory, canonical, the caller's own, closed to everybody else.  RV_E_CONFIG (setup-failed). */
int rv_root_open(const char *path, int *root, struct rv_error *err);
/* How many names are in it, whatever they are; -1 error. */
long rv_root_count(int root, struct rv_error *err);

/* Take the first free slot of `slots`: 1 taken, 0 none is free, -1 error. */
int rv_namespace_claim(struct rv_namespace *ns, int root, const char *root_path, int slots, struct rv_error *err);
/* Write both snapshots, home and canary.  program, input, home and what is in them belong to uid and gid. */
int rv_namespace_fill(struct rv_namespace *ns, const struct rv_snapshot *program, const struct rv_snapshot *input,
		      uid_t uid, gid_t gid, struct rv_error *err);
/* What a directory of the slot (program, input, home) is. */
bool rv_namespace_identify(const struct rv_namespace *ns, const char *name, dev_t *device, ino_t *inode);
/* -1 names the first difference. */
int rv_namespace_verify(const struct rv_namespace *ns, struct rv_error *err);
/* Take away what was verified just now.  *durable: the root was synced afterwards.  On -1 what is left stays. */
int rv_namespace_unlink(struct rv_namespace *ns, bool *durable, struct rv_error *err);
void rv_namespace_release(struct rv_namespace *ns); /* the record; nothing on disk */

#endif

/*
 * A snapshot: named bytes, held in memory, read once.  Digest and slot come from the same bytes.
 *
 * Paths are relative, of A-Z a-z 0-9 . _ - in at most 16 segments and 256 characters, none of them "." or
 * "..".  No two paths, nor two directories on the way, are the same but for case; no file is also a directory.
 * At most 4,096 files and 64 MiB.  Empty directories and modes are no part of it; links, devices and the
 * like are refused and never followed (seed, "snapshotDigest"; contract, section 7).
 *
 * The digest is `sha256:` over "sf-confined-snapshot/1\n" and a line "path\tsize\tsha256hex\n" a file, in the
 * order of paths.
 */
#ifndef RV_CONFINE_SNAPSHOT_H
#define RV_CONFINE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/arena.h"
#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/confine/limits.h"
#include "lib/digest/digest.h"

#define RV_DIGEST_TEXT 72 /* "sha256:", 64 digits, a NUL */

struct rv_snapshot_file {
	const char *path;    /* the snapshot's */
	const char *content; /* the snapshot's; NULL where size is 0 */
	char *own;           /* the same where it is large: owned */
	size_t size;
	char sha256[RV_SHA256_HEX];
};

struct rv_snapshot {
	struct rv_snapshot_file *files; /* in the order of paths once sealed */
	size_t count, room;
	size_t bytes;
	struct rv_arena arena;       /* paths, and small files' bytes: a page for each would cost more than what is in it */
	char digest[RV_DIGEST_TEXT]; /* "" until sealed */
	int cancel;                  /* becomes readable when an archive is to be read no more; -1: never */
};

#define RV_SNAPSHOT_INIT { .files = NULL, .count = 0, .room = 0, .bytes = 0, .arena = RV_ARENA_INIT, .digest = "", .cancel = -1 }

void rv_snapshot_release(struct rv_snapshot *snapshot);

/* All refusals are RV_E_REQUEST and name the path, escaped. */

/* Take a file.  The buffer is empty then, and may be used again. */
int rv_snapshot_add(struct rv_snapshot *snapshot, struct rv_span path, struct rv_buffer *content, struct rv_error *err);
/* No more files: order, duplicates, clashes, digests. */
int rv_snapshot_seal(struct rv_snapshot *snapshot, struct rv_error *err);

/* A directory, or an archive of any kind that libarchive reads by itself; sealed.  The name itself must not be
 * a link.  An archive is read in another process (unpack.h).  RV_E_IO where it cannot be read, RV_E_ABORTED where it
 * was cancelled. */
int rv_snapshot_read(struct rv_snapshot *snapshot, const char *path, struct rv_error *err);
/* The same, where it is said which of the two it is. */
int rv_snapshot_read_kind(struct rv_snapshot *snapshot, const char *path, bool directory, struct rv_error *err);

/* NULL where no file has this path. */
const struct rv_snapshot_file *rv_snapshot_find(const struct rv_snapshot *snapshot, const char *path);

/* {"digest","files":[{"path","size","sha256"}]} */
void rv_snapshot_add_json(const struct rv_snapshot *snapshot, struct rv_buffer *out);

/* Is this text "sha256:" and 64 lowercase digits? */
bool rv_digest_is_valid(struct rv_span text);

/* For the readers: may another file of this size come?  And is this a path that a snapshot can hold? */
int rv_snapshot_check_room(const struct rv_snapshot *snapshot, size_t size, struct rv_error *err);
int rv_snapshot_check_path(struct rv_span path, struct rv_error *err);
int rv_snapshot_read_directory(struct rv_snapshot *snapshot, int fd, struct rv_error *err);
int rv_snapshot_read_archive(struct rv_snapshot *snapshot, int fd, struct rv_error *err);

#endif

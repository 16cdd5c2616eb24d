/*
 * SHA-256 of many files over all cores.  One file's digest is one plain SHA-256, so the largest file bounds the
 * time: files are taken largest first.  Private to lib/confine.
 */
#ifndef RV_CONFINE_HASH_H
#define RV_CONFINE_HASH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "lib/base/error.h"
#include "lib/digest/digest.h"

/* What a file was when it was first seen; another at its path, or one that changed meanwhile, is an error. */
struct rv_hash_file {
	char *path; /* owned by whose list it is */
	dev_t device;
	ino_t inode;
	mode_t mode;
	uint64_t size;
	struct timespec modified, changed;
	char sha256[RV_SHA256_HEX];
};

/* Stat `path`, which must be a regular file and no link, and keep a copy of the name.  RV_E_RUNTIME. */
int rv_hash_see(struct rv_hash_file *file, const char *path, struct rv_error *err);

/* The same file as `before` by all that a stat shows, and the kernel lets nobody write to it since it is being executed
 * (ETXTBSY, found by asking; where a kernel does not keep that, it is hashed): what was hashed by the program that
 * it is, is still so. */
bool rv_hash_is_running(const struct rv_hash_file *file, const struct rv_hash_file *before);

/* Fill in sha256 of each.  RV_E_RUNTIME names the first that could not be read or was not what was seen. */
int rv_hash_files(struct rv_hash_file *const *files, size_t count, struct rv_error *err);

#endif

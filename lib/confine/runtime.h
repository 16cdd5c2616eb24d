/*
 * A runtime's identity (contract, section 7): the program, its linker and libraries, its trees, this program's own
 * bytes, the kernel and the system.
 *
 *   {"digest","path","files":[{"path","size","sha256"}],"aliases":[{"path","target"}],"trees":[{"path","digest"}],
 *    "launcher":{"path","sha256"},"kernel":{"release","machine"},"os":{"id","versionId"}}
 *
 * digest is `sha256:` of the canonical form of the rest.  Nothing of the runtime is executed to find it out.
 */
#ifndef RV_CONFINE_RUNTIME_H
#define RV_CONFINE_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/confine/closure.h"
#include "lib/confine/host.h"
#include "lib/confine/tree.h"

/* All borrowed. */
struct rv_runtime_spec {
	const char *path;         /* absolute and normal */
	const char *const *trees; /* the same */
	size_t tree_count;
	bool allow_home_trees;
	const char *root;         /* where the slots are; NULL: not known */
	const struct rv_hash_file *launcher; /* as this process hashed it before; NULL */
};

struct rv_runtime {
	struct rv_aliases aliases;
	struct rv_closure closure; /* files[0] is the program; sorted by path only in the identity */
	struct rv_tree *trees;
	size_t tree_count;
	struct rv_host host;
	char *path;                 /* as it was asked for */
	char stamp[RV_SHA256_HEX];  /* of device, inode, size, mode and times of everything */
	char digest[RV_DIGEST_TEXT];
	struct rv_buffer json;
};

/* What needs no reading of the file system: RV_E_REQUEST. */
int rv_runtime_check_spec(const struct rv_runtime_spec *spec, struct rv_error *err);

/* Nothing of a runtime lies where the snapshots go inside, by the names that were asked for or, where `runtime` is not
 * NULL, by those that they lead to and over: a snapshot would hide it, and stand for it.  RV_E_REQUEST. */
int rv_runtime_check_places(const struct rv_runtime_spec *spec, const struct rv_runtime *runtime, struct rv_error *err);

/* Find everything and stamp it, without hashing.  RV_E_REQUEST (a tree that may not be), RV_E_HOST, RV_E_RUNTIME. */
int rv_runtime_look(struct rv_runtime *runtime, const struct rv_runtime_spec *spec, struct rv_error *err);
/* And hash it, over all cores. */
int rv_runtime_describe(struct rv_runtime *runtime, const struct rv_runtime_spec *spec, struct rv_error *err);
void rv_runtime_release(struct rv_runtime *runtime);

/* Is its file named so, by the name that was asked for or by its canonical one? */
bool rv_runtime_is_named(const struct rv_runtime *runtime, const char *prefix, bool whole);

#endif

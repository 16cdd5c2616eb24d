/* The files of a place and their digests, in the order of their paths: what a receipt holds on to. */
#ifndef RV_CONFORM_TREE_H
#define RV_CONFORM_TREE_H

#include <stddef.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/digest/digest.h"
#include "lib/json/json.h"

struct rv_tree_file {
	char *path; /* owned; below the root */
	char sha256[RV_SHA256_HEX];
};

struct rv_tree {
	char *root; /* owned, absolute */
	struct rv_tree_file *files; /* owned */
	size_t count;
};

/* The rv-* programs of a directory. */
int rv_tree_programs(struct rv_tree *tree, const char *dir, struct rv_error *err);
/* A source tree of this project: cmd, lib, man, scripts, t, .ci, and what builds and describes them; not
 * what a build in the tree has left there. */
int rv_tree_source(struct rv_tree *tree, const char *dir, struct rv_error *err);
void rv_tree_release(struct rv_tree *tree);

/* {"root","files":[{"path","sha256"}]}.  RV_E_IO: a name that is not UTF-8. */
int rv_tree_add(struct rv_buffer *out, const struct rv_tree *tree, struct rv_error *err);
/* Append a line for each difference to what was recorded in that shape. */
void rv_tree_compare(struct rv_buffer *out, const struct rv_tree *now, const struct rv_json_node *recorded);

/* JSON has no way to write down a name that is not UTF-8, and with another one it would name what is not there.  RV_E_IO. */
int rv_tree_nameable(const char *name, struct rv_error *err);

/* The digest of one file. */
int rv_tree_digest(const char *path, char sha256[RV_SHA256_HEX], struct rv_error *err);

#endif

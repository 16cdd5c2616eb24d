/*
 * A runtime tree: a directory of the host's that a runtime reads, such as python's library.  Its digest covers
 * every path, size, mode and content, links by their text:
 *
 *     sf-confined-tree/1\n
 *     d\tMODE\tPATH\n    f\tMODE\tSIZE\tSHA256\tPATH\n    l\tTEXT\tPATH\n      in the order of paths
 *
 * A link that leads out of all trees and of the closure leads nowhere inside.  Private to lib/confine.
 */
#ifndef RV_CONFINE_TREE_H
#define RV_CONFINE_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/confine/hash.h"
#include "lib/confine/snapshot.h"

struct rv_tree_entry {
	struct rv_hash_file file; /* of anything but a file: path, mode, and what it is */
	char *text;               /* of a link; owned */
};

struct rv_tree {
	char *path; /* canonical; owned */
	struct rv_tree_entry *entries;
	size_t count, room;
	char digest[RV_DIGEST_TEXT];
};

#define RV_TREE_ENTRIES_MAX 200000

/* List it: every entry seen, nothing hashed yet.  RV_E_RUNTIME for anything but files, directories and links, and for
 * names with control bytes. */
int rv_tree_list(struct rv_tree *tree, const char *canonical, struct rv_error *err);
/* Once its files are hashed. */
int rv_tree_digest(struct rv_tree *tree, struct rv_error *err);
void rv_tree_release(struct rv_tree *tree);

/* May this (canonical) directory be a tree at all?  RV_E_REQUEST.  `root` is where the slots are; NULL: not known. */
int rv_tree_check_place(const char *canonical, bool allow_home, const char *root, struct rv_error *err);

#endif

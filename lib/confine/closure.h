/*
 * All that the dynamic linker would load for a program, found as it would find it, from the ELF files alone:
 * PT_INTERP, DT_NEEDED of everything, DT_RPATH and DT_RUNPATH with $ORIGIN, the directories built into the linker
 * itself with their glibc-hwcaps folders.  There is no cache behind the boundary, and none is asked.
 * Private to lib/confine.
 */
#ifndef RV_CONFINE_CLOSURE_H
#define RV_CONFINE_CLOSURE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/confine/elf.h"
#include "lib/confine/hash.h"
#include "lib/confine/names.h"

/* Something loaded. */
struct rv_object {
	struct rv_elf elf;
	char *found;   /* as the linker's search found it: $ORIGIN is its directory; owned */
	char *request; /* the name that was asked for; owned; NULL for the program */
	size_t loader; /* the object that needs it; itself for the program */
};

struct rv_closure {
	struct rv_hash_file *files; /* canonical paths, in the order found */
	size_t count, room;
	struct rv_aliases *aliases; /* borrowed */
	struct rv_object *objects;
	size_t object_count, object_room;
	bool musl;
	char **directories; /* the linker's own, owned */
	size_t directory_count;
};

/* The program at an absolute path and what it needs.  RV_E_RUNTIME where anything is missing. */
int rv_closure_find(struct rv_closure *closure, const char *program, struct rv_aliases *aliases, struct rv_error *err);

/* A library that the program may load later (of a runtime tree), already open: what it needs is taken too; what is
 * missing is no error, since loading it would fail inside just so. */
int rv_closure_add_module(struct rv_closure *closure, int fd, const char *path, struct rv_error *err);

void rv_closure_release(struct rv_closure *closure);

#endif

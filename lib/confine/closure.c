#include "lib/confine/closure.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/confine/search.h"

#define OBJECTS_MAX 4096

/* The file at a canonical path, known once. */
static int add_file(struct rv_closure *closure, const char *canonical, struct rv_error *err)
{
	for (size_t i = 0; i < closure->count; i++) {
		if (strcmp(closure->files[i].path, canonical) == 0)
			return 0;
	}
	if (closure->count == closure->room) {
		size_t room = closure->room == 0 ? 16 : 2 * closure->room;
		struct rv_hash_file *files = realloc(closure->files, room * sizeof *files);

		if (files == NULL)
			return rv_error_nomem(err);
		closure->files = files;
		closure->room = room;
	}
	if (rv_hash_see(&closure->files[closure->count], canonical, err) != 0)
		return -1;
	closure->count++;
	return 0;
}

/* A new object; with `add`, its file and its aliases too. */
static int load(struct rv_closure *closure, int fd, const char *found, const char *request, size_t loader, bool add,
		struct rv_error *err)
{
	struct rv_object *object;
	char canonical[PATH_MAX];

	if (closure->object_count == OBJECTS_MAX)
		return rv_error_set(err, RV_E_RUNTIME, 0, "more than %d libraries", OBJECTS_MAX);
	if (closure->object_count == closure->object_room) {
		size_t room = closure->object_room == 0 ? 16 : 2 * closure->object_room;
		struct rv_object *objects = realloc(closure->objects, room * sizeof *objects);

		if (objects == NULL)
			return rv_error_nomem(err);
		closure->objects = objects;
		closure->object_room = room;
	}
	if (add && (rv_names_resolve(closure->aliases, found, canonical, err) != 0 || add_file(closure, canonical, err) != 0))
		return -1;
	object = &closure->objects[closure->object_count];
	*object = (struct rv_object){ .loader = loader };
	if (rv_elf_open(&object->elf, fd, found, err) != 0)
		return -1;
	closure->object_count++;
	object->found = strdup(found);
	object->request = request != NULL ? strdup(request) : NULL;
	if (object->found == NULL || (request != NULL && object->request == NULL))
		return rv_error_nomem(err);
	return 0;
}

/* musl's linker is its libc, under all of these names. */
static bool is_musl_itself(const char *name)
{
	static const char *const names[] = { "libc.", "libpthread.", "librt.", "libm.", "libdl.", "libutil.", "libxnet." };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

static bool is_loaded(const struct rv_closure *closure, const char *name)
{
	if (closure->musl && is_musl_itself(name))
		return true;
	for (size_t i = 0; i < closure->object_count; i++) {
		const struct rv_object *object = &closure->objects[i];

		if ((object->request != NULL && strcmp(object->request, name) == 0) ||
		    (object->elf.soname != NULL && strcmp(object->elf.soname, name) == 0) ||
		    strcmp(object->found, name) == 0)
			return true;
	}
	return false;
}

/* What the objects from `first` on need, breadth first, as the linker takes them. */
static int load_needed(struct rv_closure *closure, size_t first, bool must, struct rv_error *err)
{
	for (size_t i = first; i < closure->object_count; i++) {
		for (size_t j = 0; j < closure->objects[i].elf.needed_count; j++) {
			/* The text belongs to the object's own memory, which stays where the array does not. */
			const char *name = closure->objects[i].elf.needed[j];
			rv_auto_fd int fd = -1;
			char found[PATH_MAX];
			int got;

			if (is_loaded(closure, name))
				continue;
			got = rv_search(closure, i, name, found, &fd, err);
			if (got < 0 || (got == 0 && must))
				return got < 0 ? -1
					       : rv_error_set(err, RV_E_RUNTIME, 0, "%s needs %s, which is nowhere",
							      closure->objects[i].found, name);
			if (got == 1 && load(closure, fd, found, name, i, true, err) != 0)
				return -1;
		}
	}
	return 0;
}

static int load_linker(struct rv_closure *closure, struct rv_error *err)
{
	const char *interp = closure->objects[0].elf.interp, *name = strrchr(interp, '/') + 1;
	rv_auto_fd int fd = open(interp, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return rv_error_set(err, RV_E_RUNTIME, errno, "%s", interp);
	closure->musl = strncmp(name, "ld-musl-", 8) == 0;
	if (load(closure, fd, interp, interp, 0, true, err) != 0)
		return -1;
	if (closure->objects[1].elf.interp != NULL || closure->objects[1].elf.needed_count > 0)
		return rv_error_set(err, RV_E_RUNTIME, 0, "%s is no dynamic linker", interp);
	return rv_search_read_directories(closure, fd, interp, err);
}

int rv_closure_find(struct rv_closure *closure, const char *program, struct rv_aliases *aliases, struct rv_error *err)
{
	rv_auto_fd int fd = -1;
	char canonical[PATH_MAX];

	*closure = (struct rv_closure){ .aliases = aliases };
	if (rv_names_resolve(aliases, program, canonical, err) != 0)
		return -1;
	fd = open(canonical, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return rv_error_set(err, RV_E_RUNTIME, errno, "%s", program);
	if (load(closure, fd, canonical, NULL, 0, true, err) != 0)
		return -1;
	if (!closure->objects[0].elf.executable)
		return rv_error_set(err, RV_E_RUNTIME, 0, "%s is no program", program);
	if (access(canonical, X_OK) != 0)
		return rv_error_set(err, RV_E_RUNTIME, errno, "%s", program);
	if (closure->objects[0].elf.interp == NULL) {
		if (closure->objects[0].elf.needed_count > 0)
			return rv_error_set(err, RV_E_RUNTIME, 0, "%s needs libraries and names no linker", program);
		return 0;
	}
	if (load_linker(closure, err) != 0)
		return -1;
	return load_needed(closure, 0, true, err);
}

int rv_closure_add_module(struct rv_closure *closure, int fd, const char *path, struct rv_error *err)
{
	struct rv_error why = RV_ERROR_INIT;
	size_t first = closure->object_count;

	if (closure->objects[0].elf.interp == NULL || is_loaded(closure, path))
		return 0;
	if (load(closure, fd, path, path, 0, false, &why) != 0) {
		if (why.code != RV_E_NOMEM)
			return 0; /* its bytes are in the tree's digest, and it cannot be loaded inside either */
		*err = why;
		return -1;
	}
	return load_needed(closure, first, false, err);
}

void rv_closure_release(struct rv_closure *closure)
{
	for (size_t i = 0; i < closure->object_count; i++) {
		rv_elf_close(&closure->objects[i].elf);
		free(closure->objects[i].found);
		free(closure->objects[i].request);
	}
	free(closure->objects);
	for (size_t i = 0; i < closure->count; i++)
		free(closure->files[i].path);
	free(closure->files);
	for (size_t i = 0; i < closure->directory_count; i++)
		free(closure->directories[i]);
	free(closure->directories);
	*closure = (struct rv_closure){ .files = NULL };
}

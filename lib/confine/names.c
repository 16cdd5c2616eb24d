#include "lib/confine/names.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#define LINKS_MAX 40 /* as the kernel has it */

void rv_aliases_release(struct rv_aliases *aliases)
{
	for (size_t i = 0; i < aliases->count; i++) {
		free(aliases->items[i].path);
		free(aliases->items[i].target);
	}
	free(aliases->items);
	*aliases = (struct rv_aliases){ .items = NULL };
}

int rv_aliases_add(struct rv_aliases *aliases, const char *path, const char *target, struct rv_error *err)
{
	struct rv_alias *alias;

	for (size_t i = 0; i < aliases->count; i++) {
		if (strcmp(aliases->items[i].path, path) == 0)
			return 0;
	}
	if (aliases->count == aliases->room) {
		size_t room = aliases->room == 0 ? 16 : 2 * aliases->room;
		struct rv_alias *items = realloc(aliases->items, room * sizeof *items);

		if (items == NULL)
			return rv_error_nomem(err);
		aliases->items = items;
		aliases->room = room;
	}
	alias = &aliases->items[aliases->count];
	alias->path = strdup(path);
	alias->target = strdup(target);
	aliases->count++;
	return alias->path != NULL && alias->target != NULL ? 0 : rv_error_nomem(err);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct rv_alias *)a)->path, ((const struct rv_alias *)b)->path);
}

void rv_aliases_sort(struct rv_aliases *aliases)
{
	if (aliases->count > 0)
		qsort(aliases->items, aliases->count, sizeof *aliases->items, compare);
}

/* A path on its way: what is canonical already, and what is still to be walked. */
struct walk {
	char done[PATH_MAX];
	size_t done_len;
	char rest[2 * PATH_MAX];
	unsigned links;
};

static int fail(const char *path, int errnum, struct rv_error *err)
{
	return rv_error_set(err, RV_E_RUNTIME, errnum, "%s", path);
}

/* Cut the next segment off `rest`; its length, 0 at the end. */
static size_t next_segment(struct walk *walk, char segment[NAME_MAX + 1])
{
	size_t skip = strspn(walk->rest, "/"), len = strcspn(walk->rest + skip, "/");

	if (len > NAME_MAX)
		return len;
	memcpy(segment, walk->rest + skip, len);
	segment[len] = '\0';
	memmove(walk->rest, walk->rest + skip + len, strlen(walk->rest + skip + len) + 1);
	return len;
}

static void go_up(struct walk *walk)
{
	char *slash = strrchr(walk->done, '/');

	if (slash != NULL)
		*slash = '\0';
	walk->done_len = strlen(walk->done);
}

static int follow(struct walk *walk, struct rv_aliases *aliases, size_t parent, struct rv_error *err)
{
	char text[PATH_MAX];
	ssize_t n = readlink(walk->done, text, sizeof text - 1);
	size_t rest = strlen(walk->rest);

	if (n <= 0)
		return fail(walk->done, errno, err);
	if (++walk->links > LINKS_MAX || rest + (size_t)n + 2 > sizeof walk->rest)
		return fail(walk->done, ELOOP, err);
	text[n] = '\0';
	if (rv_aliases_add(aliases, walk->done, text, err) != 0)
		return -1;
	memmove(walk->rest + n + 1, walk->rest, rest + 1);
	memcpy(walk->rest, text, (size_t)n);
	walk->rest[n] = '/';
	walk->done_len = text[0] == '/' ? 0 : parent;
	walk->done[walk->done_len] = '\0';
	return 0;
}

static int enter(struct walk *walk, struct rv_aliases *aliases, const char *segment, size_t len, struct rv_error *err)
{
	size_t parent = walk->done_len;
	struct stat st;

	if (parent + len + 2 > sizeof walk->done)
		return fail(walk->done, ENAMETOOLONG, err);
	walk->done[parent] = '/';
	memcpy(walk->done + parent + 1, segment, len + 1);
	walk->done_len = parent + 1 + len;
	if (lstat(walk->done, &st) != 0)
		return fail(walk->done, errno, err);
	return S_ISLNK(st.st_mode) ? follow(walk, aliases, parent, err) : 0;
}

int rv_names_resolve(struct rv_aliases *aliases, const char *path, char *canonical, struct rv_error *err)
{
	rv_auto_free struct walk *walk = calloc(1, sizeof *walk);
	char segment[NAME_MAX + 1];
	size_t len;

	if (walk == NULL)
		return rv_error_nomem(err);
	if (path[0] != '/' || strlen(path) >= PATH_MAX)
		return fail(path, path[0] != '/' ? EINVAL : ENAMETOOLONG, err);
	memcpy(walk->rest, path, strlen(path) + 1);
	while ((len = next_segment(walk, segment)) > 0) {
		if (len > NAME_MAX)
			return fail(path, ENAMETOOLONG, err);
		if (strcmp(segment, ".") == 0)
			continue;
		if (strcmp(segment, "..") == 0)
			go_up(walk);
		else if (enter(walk, aliases, segment, len, err) != 0)
			return -1;
	}
	memcpy(canonical, walk->done_len > 0 ? walk->done : "/", walk->done_len > 0 ? walk->done_len + 1 : 2);
	return 0;
}

bool rv_names_are_normal(const char *path)
{
	if (path[0] != '/')
		return false;
	while (*path != '\0') {
		size_t len = strcspn(path + 1, "/");

		if (len == 0 || (path[1] == '.' && (len == 1 || (len == 2 && path[2] == '.'))))
			return false;
		path += 1 + len;
	}
	return true;
}

bool rv_names_is_below(const char *path, const char *directory)
{
	size_t len = strlen(directory);

	if (strcmp(directory, "/") == 0)
		return true;
	return strncmp(path, directory, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

#include "lib/confine/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/confine/names.h"

static int add(struct rv_tree *tree, const char *path, const struct stat *st, const char *text, struct rv_error *err)
{
	struct rv_tree_entry *entry;

	if (tree->count == RV_TREE_ENTRIES_MAX)
		return rv_error_set(err, RV_E_RUNTIME, 0, "%s: more than %d entries", tree->path, RV_TREE_ENTRIES_MAX);
	if (tree->count == tree->room) {
		size_t room = tree->room == 0 ? 256 : 2 * tree->room;
		struct rv_tree_entry *entries = realloc(tree->entries, room * sizeof *entries);

		if (entries == NULL)
			return rv_error_nomem(err);
		tree->entries = entries;
		tree->room = room;
	}
	entry = &tree->entries[tree->count];
	*entry = (struct rv_tree_entry){ .text = NULL };
	entry->file = (struct rv_hash_file){ .device = st->st_dev, .inode = st->st_ino, .mode = st->st_mode,
					     .size = (uint64_t)st->st_size, .modified = st->st_mtim, .changed = st->st_ctim };
	entry->file.path = strdup(path);
	entry->text = text != NULL ? strdup(text) : NULL;
	tree->count++;
	return entry->file.path != NULL && (text == NULL || entry->text != NULL) ? 0 : rv_error_nomem(err);
}

/* The lines of the digest are text: tabs and newlines would make two trees one. */
static bool is_clean(const char *text)
{
	for (const char *at = text; *at != '\0'; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return false;
	}
	return true;
}

static int take(struct rv_tree *tree, int directory, const char *path, const char *name, struct rv_error *err)
{
	char text[PATH_MAX];
	ssize_t n = 0;
	struct stat st;

	if (!is_clean(name))
		return rv_error_set(err, RV_E_RUNTIME, 0, "below %s: a name with control bytes", tree->path);
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return rv_error_set(err, RV_E_RUNTIME, errno, "%s", path);
	if (!S_ISLNK(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return rv_error_set(err, RV_E_RUNTIME, 0, "%s: neither a file, a directory nor a link", path);
	if (S_ISLNK(st.st_mode))
		n = readlinkat(directory, name, text, sizeof text - 1);
	if (n < 0)
		return rv_error_set(err, RV_E_RUNTIME, errno, "%s", path);
	text[n] = '\0';
	if (!is_clean(text))
		return rv_error_set(err, RV_E_RUNTIME, 0, "%s: a link with control bytes", path);
	return add(tree, path, &st, S_ISLNK(st.st_mode) ? text : NULL, err);
}

static int list_directory(struct rv_tree *tree, const char *path, struct rv_error *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	rv_auto_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	char child[PATH_MAX];
	size_t len = strlen(path);

	if (dir == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return rv_error_set(err, RV_E_RUNTIME, errno, "%s", path);
	}
	memcpy(child, path, len);
	child[len] = '/';
	while ((errno = 0, entry = readdir(dir)) != NULL) {
		size_t name = strlen(entry->d_name);

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (len + name + 2 > sizeof child)
			return rv_error_set(err, RV_E_RUNTIME, ENAMETOOLONG, "below %s", path);
		memcpy(child + len + 1, entry->d_name, name + 1);
		if (take(tree, dirfd(dir), child, entry->d_name, err) != 0)
			return -1;
	}
	return errno == 0 ? 0 : rv_error_set(err, RV_E_RUNTIME, errno, "%s", path);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct rv_tree_entry *)a)->file.path, ((const struct rv_tree_entry *)b)->file.path);
}

int rv_tree_list(struct rv_tree *tree, const char *canonical, struct rv_error *err)
{
	struct stat st;

	*tree = (struct rv_tree){ .path = strdup(canonical) };
	if (tree->path == NULL)
		return rv_error_nomem(err);
	if (lstat(canonical, &st) != 0)
		return rv_error_set(err, RV_E_RUNTIME, errno, "%s", canonical);
	if (!S_ISDIR(st.st_mode))
		return rv_error_set(err, RV_E_RUNTIME, 0, "%s: not a directory", canonical);
	if (add(tree, canonical, &st, NULL, err) != 0)
		return -1;
	for (size_t i = 0; i < tree->count; i++) { /* the list grows: what is found is listed in its turn */
		if (S_ISDIR(tree->entries[i].file.mode) && list_directory(tree, tree->entries[i].file.path, err) != 0)
			return -1;
	}
	qsort(tree->entries, tree->count, sizeof *tree->entries, compare);
	return 0;
}

int rv_tree_digest(struct rv_tree *tree, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_sha256 *sha;
	size_t skip = strlen(tree->path);
	int result;

	rv_buffer_add_string(&text, "sf-confined-tree/1\n");
	for (size_t i = 0; i < tree->count; i++) {
		const struct rv_tree_entry *entry = &tree->entries[i];
		unsigned mode = entry->file.mode & 07777U;
		const char *path = entry->file.path + skip;

		if (entry->text != NULL)
			rv_buffer_printf(&text, "l\t%s\t%s\n", entry->text, path);
		else if (S_ISDIR(entry->file.mode))
			rv_buffer_printf(&text, "d\t%04o\t%s\n", mode, path);
		else
			rv_buffer_printf(&text, "f\t%04o\t%llu\t%s\t%s\n", mode, (unsigned long long)entry->file.size,
					 entry->file.sha256, path);
	}
	if (rv_buffer_check(&text, err) != 0)
		return -1;
	memcpy(tree->digest, "sha256:", 7);
	sha = rv_sha256_new(err);
	result = sha != NULL ? rv_sha256_hex(sha, text.data, text.len, tree->digest + 7, err) : -1;
	rv_sha256_free(sha);
	return result;
}

void rv_tree_release(struct rv_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++) {
		free(tree->entries[i].file.path);
		free(tree->entries[i].text);
	}
	free(tree->entries);
	free(tree->path);
	*tree = (struct rv_tree){ .path = NULL };
}

int rv_tree_check_place(const char *canonical, bool allow_home, const char *root, struct rv_error *err)
{
	static const char *const never[] = { "/etc", "/proc", "/sys", "/dev", "/run" };
	static const char *const homes[] = { "/root", "/home" };

	if (strcmp(canonical, "/") == 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "a runtime tree is not /");
	for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
		if (rv_names_is_below(canonical, never[i]))
			return rv_error_set(err, RV_E_REQUEST, 0, "a runtime tree does not lie in %s: %s", never[i], canonical);
	}
	for (size_t i = 0; i < sizeof homes / sizeof homes[0] && !allow_home; i++) {
		if (rv_names_is_below(canonical, homes[i]))
			return rv_error_set(err, RV_E_REQUEST, 0,
					    "a runtime tree does not lie in %s unless --allow-home-tree says so: %s", homes[i],
					    canonical);
	}
	if (root != NULL && (rv_names_is_below(canonical, root) || rv_names_is_below(root, canonical)))
		return rv_error_set(err, RV_E_REQUEST, 0, "a runtime tree neither lies in the root nor holds it: %s", canonical);
	return 0;
}

#include "lib/conform/tree.h"

#include <errno.h>
#include <fts.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/text.h"
#include "lib/json/write.h"

int rv_tree_digest(const char *path, char sha256[RV_SHA256_HEX], struct rv_error *err)
{
	struct rv_buffer content = RV_BUFFER_INIT;
	struct rv_sha256 *sha = rv_sha256_new(err);
	int result = -1;

	if (sha != NULL && rv_io_read_file(path, &content, err) == 0)
		result = rv_sha256_hex(sha, content.data != NULL ? content.data : "", content.len, sha256, err);
	rv_sha256_free(sha);
	rv_buffer_release(&content);
	return result;
}

/* ---- which files ---- */

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && strcmp(text + len - n, end) == 0;
}

static bool is_in(const char *name, const char *const *list)
{
	for (size_t i = 0; list[i] != NULL; i++) {
		if (strcmp(name, list[i]) == 0)
			return true;
	}
	return false;
}

static bool is_program(const FTSENT *entry)
{
	return entry->fts_level == 1 && entry->fts_info == FTS_F && strncmp(entry->fts_name, "rv-", 3) == 0 &&
	       (entry->fts_statp->st_mode & 0111) != 0;
}

static bool enters_source(const FTSENT *entry)
{
	static const char *const rooms[] = { "cmd", "lib", "man", "scripts", "t", ".ci", NULL };

	if (entry->fts_level == 1)
		return is_in(entry->fts_name, rooms);
	return entry->fts_name[0] != '.';
}

/* What is built stands beside the source that it is built of. */
static bool is_built(const FTSENT *entry)
{
	static const char *const ends[] = { ".o", ".a", ".log", ".trs", "~", NULL };
	struct rv_buffer source = RV_BUFFER_INIT;
	bool built = false;

	for (size_t i = 0; ends[i] != NULL; i++)
		built = built || ends_with(entry->fts_name, ends[i]);
	rv_buffer_add_string(&source, entry->fts_path);
	rv_buffer_add_string(&source, ".c");
	built = built || (rv_buffer_string(&source) != NULL && access(source.data, F_OK) == 0);
	rv_buffer_release(&source);
	return built;
}

static bool is_source(const FTSENT *entry)
{
	static const char *const names[] = { "COPYING", "NEWS", "configure.ac", "Makefile.am", NULL };

	if (entry->fts_info != FTS_F)
		return false;
	if (entry->fts_level == 1)
		return is_in(entry->fts_name, names) || ends_with(entry->fts_name, ".md");
	return !is_built(entry);
}

static bool enters_nothing(const FTSENT *entry)
{
	(void)entry;
	return false;
}

/* ---- the walk ---- */

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct rv_tree_file *)a)->path, ((const struct rv_tree_file *)b)->path);
}

static int add_file(struct rv_tree *tree, const FTSENT *entry, struct rv_error *err)
{
	struct rv_tree_file *grown = realloc(tree->files, (tree->count + 1) * sizeof *grown);
	struct rv_tree_file *file;

	if (grown == NULL)
		return rv_error_nomem(err);
	tree->files = grown;
	file = &grown[tree->count];
	file->path = strdup(entry->fts_path + strlen(tree->root) + 1);
	if (file->path == NULL)
		return rv_error_nomem(err);
	tree->count++;
	return rv_tree_digest(entry->fts_accpath, file->sha256, err);
}

static int walk(struct rv_tree *tree, const char *dir, bool (*enters)(const FTSENT *entry),
		bool (*takes)(const FTSENT *entry), struct rv_error *err)
{
	char *roots[2] = { NULL, NULL };
	FTS *fts;
	FTSENT *entry;
	int result = 0;

	memset(tree, 0, sizeof *tree);
	tree->root = realpath(dir, NULL);
	if (tree->root == NULL)
		return rv_error_set(err, RV_E_IO, errno, "%s", dir);
	roots[0] = tree->root;
	fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (fts == NULL)
		return rv_error_set(err, RV_E_IO, errno, "%s", tree->root);
	while (result == 0 && (entry = fts_read(fts)) != NULL) {
		if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
			result = rv_error_set(err, RV_E_IO, entry->fts_errno, "%s", entry->fts_path);
		else if (entry->fts_info == FTS_D && entry->fts_level > 0 && !enters(entry))
			(void)fts_set(fts, entry, FTS_SKIP);
		else if (entry->fts_level > 0 && takes(entry))
			result = add_file(tree, entry, err);
	}
	(void)fts_close(fts);
	if (tree->count > 1)
		qsort(tree->files, tree->count, sizeof *tree->files, by_path);
	return result;
}

int rv_tree_programs(struct rv_tree *tree, const char *dir, struct rv_error *err)
{
	return walk(tree, dir, enters_nothing, is_program, err);
}

int rv_tree_source(struct rv_tree *tree, const char *dir, struct rv_error *err)
{
	if (walk(tree, dir, enters_source, is_source, err) != 0)
		return -1;
	return tree->count > 0 ? 0 : rv_error_set(err, RV_E_IO, 0, "%s is no source tree", dir);
}

void rv_tree_release(struct rv_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++)
		free(tree->files[i].path);
	free(tree->files);
	free(tree->root);
	memset(tree, 0, sizeof *tree);
}

/* ---- as JSON, and against it ---- */

int rv_tree_nameable(const char *name, struct rv_error *err)
{
	return rv_text_is_utf8(name, strlen(name)) ? 0 :
	       rv_error_set(err, RV_E_IO, 0, "%s is not UTF-8: no receipt can name it", name);
}

int rv_tree_add(struct rv_buffer *out, const struct rv_tree *tree, struct rv_error *err)
{
	if (rv_tree_nameable(tree->root, err) != 0)
		return -1;
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "root", tree->root);
	rv_json_add_name(out, "files");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < tree->count; i++) {
		if (rv_tree_nameable(tree->files[i].path, err) != 0)
			return -1;
		rv_buffer_add_string(out, i > 0 ? ",{" : "{");
		rv_json_member_string(out, "path", tree->files[i].path);
		rv_json_member_string(out, "sha256", tree->files[i].sha256);
		rv_buffer_add_byte(out, '}');
	}
	rv_buffer_add_string(out, "]}");
	return 0;
}

static void say(struct rv_buffer *out, const struct rv_tree *tree, struct rv_span path, const char *what)
{
	rv_text_add_escaped(out, tree->root, strlen(tree->root));
	rv_buffer_add_byte(out, '/');
	rv_text_add_escaped(out, path.data, path.len);
	rv_buffer_printf(out, ": %s\n", what);
}

static struct rv_span member_text(const struct rv_json_node *object, const char *name)
{
	const struct rv_json_node *member = rv_json_get(object, name);

	return rv_json_is_string(member) ? rv_json_string(member) : RV_SPAN("");
}

static const struct rv_json_node *find(const struct rv_json_node *files, const char *path)
{
	const struct rv_json_node *file = files != NULL ? rv_json_first(files) : NULL;

	while (file != NULL && !rv_span_equal(member_text(file, "path"), rv_span_of(path)))
		file = rv_json_next(file);
	return file;
}

void rv_tree_compare(struct rv_buffer *out, const struct rv_tree *now, const struct rv_json_node *recorded)
{
	const struct rv_json_node *files = rv_json_get(recorded, "files");
	const struct rv_json_node *file = files != NULL ? rv_json_first(files) : NULL;

	for (size_t i = 0; i < now->count; i++) {
		const struct rv_json_node *was = find(files, now->files[i].path);

		if (was == NULL)
			say(out, now, rv_span_of(now->files[i].path), "is not in the receipt");
		else if (!rv_span_equal(member_text(was, "sha256"), rv_span_of(now->files[i].sha256)))
			say(out, now, rv_span_of(now->files[i].path), "differs");
	}
	for (; file != NULL; file = rv_json_next(file)) {
		struct rv_span path = member_text(file, "path");
		bool there = false;

		for (size_t i = 0; i < now->count && !there; i++)
			there = rv_span_equal(path, rv_span_of(now->files[i].path));
		if (!there)
			say(out, now, path, "is missing");
	}
}

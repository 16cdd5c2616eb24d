#include "lib/confine/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/json/json.h"
#include "lib/json/write.h"

int rv_runtime_check_spec(const struct rv_runtime_spec *spec, struct rv_error *err)
{
	if (!rv_names_are_normal(spec->path) || strlen(spec->path) >= PATH_MAX)
		return rv_error_set(err, RV_E_REQUEST, 0, "the runtime's path is not absolute and normal");
	if (spec->tree_count > RV_CONFINE_TREES_MAX)
		return rv_error_set(err, RV_E_REQUEST, 0, "more than %d runtime trees", RV_CONFINE_TREES_MAX);
	for (size_t i = 0; i < spec->tree_count; i++) {
		if (!rv_names_are_normal(spec->trees[i]) && strcmp(spec->trees[i], "/") != 0)
			return rv_error_set(err, RV_E_REQUEST, 0, "a runtime tree's path is not absolute and normal");
		if (rv_tree_check_place(spec->trees[i], spec->allow_home_trees, spec->root, err) != 0)
			return -1;
	}
	return 0;
}

static int check_place(const char *path, struct rv_error *err)
{
	if (rv_names_is_below(path, "/program") || rv_names_is_below(path, "/input"))
		return rv_error_set(err, RV_E_REQUEST, 0, "a runtime does not lie where the snapshots go: %s", path);
	return 0;
}

int rv_runtime_check_places(const struct rv_runtime_spec *spec, const struct rv_runtime *runtime, struct rv_error *err)
{
	int result = check_place(spec->path, err);

	for (size_t i = 0; result == 0 && i < spec->tree_count; i++)
		result = check_place(spec->trees[i], err);
	for (size_t i = 0; runtime != NULL && result == 0 && i < runtime->closure.count; i++)
		result = check_place(runtime->closure.files[i].path, err);
	for (size_t i = 0; runtime != NULL && result == 0 && i < runtime->aliases.count; i++)
		result = check_place(runtime->aliases.items[i].path, err);
	for (size_t i = 0; runtime != NULL && result == 0 && i < runtime->tree_count; i++)
		result = check_place(runtime->trees[i].path, err);
	return result;
}

/* The extension modules of a tree need libraries too. */
static int add_modules(struct rv_runtime *runtime, const struct rv_tree *tree, struct rv_error *err)
{
	for (size_t i = 0; i < tree->count; i++) {
		const struct rv_tree_entry *entry = &tree->entries[i];
		rv_auto_fd int fd = -1;

		if (!S_ISREG(entry->file.mode))
			continue;
		fd = open(entry->file.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
		if (fd < 0)
			return rv_error_set(err, RV_E_RUNTIME, errno, "%s", entry->file.path);
		if (rv_elf_is_ours(fd) && rv_closure_add_module(&runtime->closure, fd, entry->file.path, err) != 0)
			return -1;
	}
	return 0;
}

static int look_at_tree(struct rv_runtime *runtime, const struct rv_runtime_spec *spec, const char *path,
			struct rv_error *err)
{
	char canonical[PATH_MAX];

	if (rv_names_resolve(&runtime->aliases, path, canonical, err) != 0 ||
	    rv_tree_check_place(canonical, spec->allow_home_trees, spec->root, err) != 0)
		return -1;
	for (size_t i = 0; i < runtime->tree_count; i++) {
		if (rv_names_is_below(canonical, runtime->trees[i].path) || rv_names_is_below(runtime->trees[i].path, canonical))
			return rv_error_set(err, RV_E_REQUEST, 0, "one runtime tree lies in another: %s", canonical);
	}
	return rv_tree_list(&runtime->trees[runtime->tree_count++], canonical, err);
}

static void stamp_file(struct rv_buffer *text, const struct rv_hash_file *file)
{
	rv_buffer_printf(text, "%llu %llu %o %llu %lld.%09ld %lld.%09ld %s\n", (unsigned long long)file->device,
			 (unsigned long long)file->inode, file->mode, (unsigned long long)file->size,
			 (long long)file->modified.tv_sec, file->modified.tv_nsec, (long long)file->changed.tv_sec,
			 file->changed.tv_nsec, file->path);
}

static int stamp(struct rv_runtime *runtime, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_sha256 *sha;
	int result;

	stamp_file(&text, &runtime->host.launcher);
	for (size_t i = 0; i < runtime->closure.count; i++)
		stamp_file(&text, &runtime->closure.files[i]);
	for (size_t i = 0; i < runtime->tree_count; i++) {
		for (size_t j = 0; j < runtime->trees[i].count; j++) {
			stamp_file(&text, &runtime->trees[i].entries[j].file);
			if (runtime->trees[i].entries[j].text != NULL)
				rv_buffer_printf(&text, "%s\n", runtime->trees[i].entries[j].text);
		}
	}
	for (size_t i = 0; i < runtime->aliases.count; i++)
		rv_buffer_printf(&text, "%s\n%s\n", runtime->aliases.items[i].path, runtime->aliases.items[i].target);
	if (rv_buffer_check(&text, err) != 0)
		return -1;
	sha = rv_sha256_new(err);
	result = sha != NULL ? rv_sha256_hex(sha, text.data, text.len, runtime->stamp, err) : -1;
	rv_sha256_free(sha);
	return result;
}

static int check_program(const struct rv_runtime *runtime, struct rv_error *err)
{
	const char *path = runtime->closure.files[0].path;
	rv_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return rv_error_set(err, RV_E_RUNTIME, errno, "%s", path);
	return rv_host_check_binfmt(fd, path, err);
}

int rv_runtime_look(struct rv_runtime *runtime, const struct rv_runtime_spec *spec, struct rv_error *err)
{
	*runtime = (struct rv_runtime){ .json = RV_BUFFER_INIT };
	if (rv_runtime_check_spec(spec, err) != 0 || rv_host_describe(&runtime->host, err) != 0)
		return -1;
	runtime->path = strdup(spec->path);
	runtime->trees = calloc(spec->tree_count + 1, sizeof *runtime->trees);
	if (runtime->path == NULL || runtime->trees == NULL)
		return rv_error_nomem(err);
	if (rv_closure_find(&runtime->closure, spec->path, &runtime->aliases, err) != 0 || check_program(runtime, err) != 0)
		return -1;
	for (size_t i = 0; i < spec->tree_count; i++) {
		if (look_at_tree(runtime, spec, spec->trees[i], err) != 0)
			return -1;
	}
	for (size_t i = 0; i < runtime->tree_count; i++) {
		if (add_modules(runtime, &runtime->trees[i], err) != 0)
			return -1;
	}
	rv_aliases_sort(&runtime->aliases);
	return stamp(runtime, err);
}

static int hash(struct rv_runtime *runtime, const struct rv_hash_file *launcher, struct rv_error *err)
{
	rv_auto_free struct rv_hash_file **files = NULL;
	size_t room = runtime->closure.count + 1, count = 0;

	for (size_t i = 0; i < runtime->tree_count; i++)
		room += runtime->trees[i].count;
	files = calloc(room, sizeof *files);
	if (files == NULL)
		return rv_error_nomem(err);
	if (launcher != NULL && rv_hash_is_running(&runtime->host.launcher, launcher))
		memcpy(runtime->host.launcher.sha256, launcher->sha256, sizeof launcher->sha256);
	else
		files[count++] = &runtime->host.launcher;
	for (size_t i = 0; i < runtime->closure.count; i++)
		files[count++] = &runtime->closure.files[i];
	for (size_t i = 0; i < runtime->tree_count; i++) {
		for (size_t j = 0; j < runtime->trees[i].count; j++) {
			if (S_ISREG(runtime->trees[i].entries[j].file.mode))
				files[count++] = &runtime->trees[i].entries[j].file;
		}
	}
	if (rv_hash_files(files, count, err) != 0)
		return -1;
	for (size_t i = 0; i < runtime->tree_count; i++) {
		if (rv_tree_digest(&runtime->trees[i], err) != 0)
			return -1;
	}
	return 0;
}

static int compare_files(const void *a, const void *b)
{
	return strcmp((*(const struct rv_hash_file *const *)a)->path, (*(const struct rv_hash_file *const *)b)->path);
}

static int add_files(struct rv_buffer *out, const struct rv_closure *closure, struct rv_error *err)
{
	rv_auto_free const struct rv_hash_file **files = calloc(closure->count + 1, sizeof *files);

	if (files == NULL)
		return rv_error_nomem(err);
	for (size_t i = 0; i < closure->count; i++)
		files[i] = &closure->files[i];
	qsort(files, closure->count, sizeof *files, compare_files);
	rv_json_add_name(out, "files");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < closure->count; i++) {
		rv_buffer_add_string(out, i > 0 ? ",{" : "{");
		rv_json_member_string(out, "path", files[i]->path);
		rv_json_member_int(out, "size", (int64_t)files[i]->size);
		rv_json_member_string(out, "sha256", files[i]->sha256);
		rv_buffer_add_byte(out, '}');
	}
	rv_buffer_add_byte(out, ']');
	return 0;
}

/* An array of objects with two texts each. */
static void add_pair(struct rv_buffer *out, size_t index, const char *one, const char *one_text, const char *two,
		     const char *two_text)
{
	rv_buffer_add_string(out, index > 0 ? ",{" : "{");
	rv_json_member_string(out, one, one_text);
	rv_json_member_string_or_null(out, two, two_text);
	rv_buffer_add_byte(out, '}');
}

static void add_host(struct rv_buffer *out, const struct rv_host *host)
{
	rv_json_add_name(out, "launcher");
	add_pair(out, 0, "path", host->launcher.path, "sha256", host->launcher.sha256);
	rv_json_add_name(out, "kernel");
	add_pair(out, 0, "release", host->release, "machine", host->machine);
	rv_json_add_name(out, "os");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string_or_null(out, "id", host->os_id);
	rv_json_member_string_or_null(out, "versionId", host->os_version);
	rv_buffer_add_byte(out, '}');
}

/* Everything but the digest, without the opening brace. */
static int add_rest(struct rv_buffer *out, const struct rv_runtime *runtime, struct rv_error *err)
{
	rv_json_member_string(out, "path", runtime->path);
	if (add_files(out, &runtime->closure, err) != 0)
		return -1;
	rv_json_add_name(out, "aliases");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < runtime->aliases.count; i++)
		add_pair(out, i, "path", runtime->aliases.items[i].path, "target", runtime->aliases.items[i].target);
	rv_buffer_add_byte(out, ']');
	rv_json_add_name(out, "trees");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < runtime->tree_count; i++)
		add_pair(out, i, "path", runtime->trees[i].path, "digest", runtime->trees[i].digest);
	rv_buffer_add_byte(out, ']');
	add_host(out, &runtime->host);
	rv_buffer_add_byte(out, '}');
	return rv_buffer_check(out, err);
}

static int digest(struct rv_runtime *runtime, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer rest = RV_BUFFER_INIT, canonical = RV_BUFFER_INIT;
	struct rv_json_doc *doc = rv_json_doc_new(err);
	struct rv_sha256 *sha = rv_sha256_new(err);
	const struct rv_json_node *root = NULL;
	int result = -1;

	rv_buffer_add_byte(&rest, '{');
	if (doc != NULL && sha != NULL && add_rest(&rest, runtime, err) == 0)
		root = rv_json_parse(doc, rest.data, rest.len, RV_JSON_DEFAULT, err);
	memcpy(runtime->digest, "sha256:", 7);
	if (root != NULL && rv_json_canonical(root, &canonical, err) == 0 && rv_buffer_check(&canonical, err) == 0)
		result = rv_sha256_hex(sha, canonical.data, canonical.len, runtime->digest + 7, err);
	rv_sha256_free(sha);
	rv_json_doc_free(doc);
	if (result != 0)
		return -1;
	rv_buffer_add_byte(&runtime->json, '{');
	rv_json_member_string(&runtime->json, "digest", runtime->digest);
	return add_rest(&runtime->json, runtime, err);
}

int rv_runtime_describe(struct rv_runtime *runtime, const struct rv_runtime_spec *spec, struct rv_error *err)
{
	if (rv_runtime_look(runtime, spec, err) != 0 || hash(runtime, spec->launcher, err) != 0)
		return -1;
	return digest(runtime, err);
}

void rv_runtime_release(struct rv_runtime *runtime)
{
	rv_closure_release(&runtime->closure);
	rv_aliases_release(&runtime->aliases);
	for (size_t i = 0; i < runtime->tree_count; i++)
		rv_tree_release(&runtime->trees[i]);
	free(runtime->trees);
	rv_host_release(&runtime->host);
	free(runtime->path);
	rv_buffer_release(&runtime->json);
	*runtime = (struct rv_runtime){ .json = RV_BUFFER_INIT };
}

static bool base_is(const char *path, const char *name, bool whole)
{
	const char *base = strrchr(path, '/') + 1;

	return whole ? strcmp(base, name) == 0 : strncmp(base, name, strlen(name)) == 0;
}

bool rv_runtime_is_named(const struct rv_runtime *runtime, const char *prefix, bool whole)
{
	return base_is(runtime->path, prefix, whole) ||
	       (runtime->closure.count > 0 && base_is(runtime->closure.files[0].path, prefix, whole));
}

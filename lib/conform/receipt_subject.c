/* What a receipt is about: the adapter's files, the programs beside this one, a source tree; as JSON, and against it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/conform/receipt.h"
#include "lib/conform/tree.h"
#include "lib/json/json.h"
#include "lib/json/write.h"

void rv_receipt_add_element(struct rv_buffer *out, const char *text)
{
	if (out->len > 0)
		rv_buffer_add_byte(out, ',');
	rv_json_add_string(out, text, strlen(text));
}

/* ---- the adapter ---- */

/* The file that execvp(3) runs for a bare name; NULL: none. */
static char *in_path(const char *name)
{
	const char *at = getenv("PATH");

	for (at = at != NULL ? at : "/bin:/usr/bin"; *at != '\0'; at += *at == ':') {
		int len = (int)strcspn(at, ":");
		rv_auto_free char *path = NULL;
		struct stat info;

		if (asprintf(&path, "%.*s%s%s", len, at, len > 0 ? "/" : "", name) < 0) {
			path = NULL;
			return NULL;
		}
		if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0)
			return realpath(path, NULL);
		at += len;
	}
	return NULL;
}

/* A word of the adapter's command line that names a file is a part of what was tested; the first is what is run. */
static int add_word(struct rv_buffer *files, const char *word, bool first, struct rv_error *err)
{
	char digest[RV_SHA256_HEX];
	rv_auto_free char *path = first && strchr(word, '/') == NULL ? in_path(word) : realpath(word, NULL);
	struct stat info;

	if (rv_tree_nameable(word, err) != 0)
		return -1;
	if (path == NULL || stat(path, &info) != 0 || !S_ISREG(info.st_mode))
		return first ? rv_error_set(err, RV_E_IO, ENOENT, "%s", word) : 0;
	if (rv_tree_nameable(path, err) != 0 || rv_tree_digest(path, digest, err) != 0)
		return -1;
	rv_buffer_add_string(files, files->len > 0 ? ",{" : "{");
	rv_json_member_string(files, "path", path);
	rv_json_member_string(files, "sha256", digest);
	rv_buffer_add_byte(files, '}');
	return 0;
}

static int add_adapter(struct rv_buffer *out, const struct rv_adapter *adapter, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer words = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer files = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer name = RV_BUFFER_INIT;

	for (size_t i = 0; adapter->argv[i] != NULL; i++) {
		rv_receipt_add_element(&words, adapter->argv[i]);
		if (add_word(&files, adapter->argv[i], i == 0, err) != 0)
			return -1;
	}
	rv_json_add_name(out, "adapter");
	rv_buffer_add_byte(out, '{');
	rv_text_add_lossy(&name, adapter->name.data, adapter->name.len);
	rv_json_member_span(out, "name", (struct rv_span){ name.data, name.len });
	rv_buffer_printf(out, ",\"argv\":[");
	rv_buffer_add(out, words.data, words.len);
	rv_buffer_add_string(out, "],\"files\":[");
	rv_buffer_add(out, files.data, files.len);
	rv_buffer_add_string(out, "]}");
	return 0;
}

/* ---- the trees ---- */

/* The directory of this very program. */
static int own_directory(char *dir, size_t size, struct rv_error *err)
{
	ssize_t n = readlink("/proc/self/exe", dir, size - 1);
	char *slash;

	if (n < 0)
		return rv_error_set(err, RV_E_IO, errno, "/proc/self/exe");
	dir[n] = '\0';
	slash = strrchr(dir, '/');
	if (slash != NULL)
		*slash = '\0';
	return 0;
}

static int add_trees(struct rv_buffer *out, const char *source, struct rv_error *err)
{
	struct rv_tree tree = { NULL, NULL, 0 };
	char dir[4096];
	int result = own_directory(dir, sizeof dir, err);

	if (result == 0)
		result = rv_tree_programs(&tree, dir, err);
	if (result == 0) {
		rv_json_add_name(out, "programs");
		result = rv_tree_add(out, &tree, err);
	}
	rv_tree_release(&tree);
	if (result != 0)
		return result;
	if (source == NULL) {
		rv_json_member_null(out, "source");
		return 0;
	}
	result = rv_tree_source(&tree, source, err);
	if (result == 0) {
		rv_json_add_name(out, "source");
		result = rv_tree_add(out, &tree, err);
	}
	rv_tree_release(&tree);
	return result;
}

int rv_receipt_add_subject(struct rv_buffer *out, const struct rv_adapter *adapter, const char *source, struct rv_error *err)
{
	return add_adapter(out, adapter, err) == 0 ? add_trees(out, source, err) : -1;
}

/* ---- against it ---- */

static const char *text_of(struct rv_buffer *copy, const struct rv_json_node *object, const char *name)
{
	const struct rv_json_node *member = rv_json_get(object, name);

	rv_buffer_clear(copy);
	if (rv_json_is_string(member))
		rv_buffer_add(copy, rv_json_string(member).data, rv_json_string(member).len);
	return rv_buffer_string(copy) != NULL ? copy->data : "";
}

static void say(struct rv_buffer *out, const char *path, const char *what)
{
	rv_text_add_escaped(out, path, strlen(path));
	rv_buffer_printf(out, ": %s\n", what);
}

/* One {"path","sha256"}. */
void rv_receipt_check_file(struct rv_buffer *out, const struct rv_json_node *file)
{
	rv_auto_buffer struct rv_buffer path = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer want = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	char digest[RV_SHA256_HEX];

	(void)text_of(&path, file, "path");
	(void)text_of(&want, file, "sha256");
	if (path.len == 0)
		say(out, "the receipt", "a file without a path");
	else if (rv_tree_digest(path.data, digest, &err) != 0)
		say(out, path.data, err.errnum == ENOENT ? "is missing" : err.message);
	else if (want.len != 64 || strcmp(want.data, digest) != 0)
		say(out, path.data, "differs");
}

static int check_tree(struct rv_buffer *out, const struct rv_json_node *recorded,
		      int (*read)(struct rv_tree *tree, const char *dir, struct rv_error *err), struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer root = RV_BUFFER_INIT;
	struct rv_tree tree = { NULL, NULL, 0 };
	int result;

	if (recorded == NULL || rv_json_type(recorded) != RV_JSON_OBJECT)
		return 0;
	result = read(&tree, text_of(&root, recorded, "root"), err);
	if (result == 0)
		rv_tree_compare(out, &tree, recorded);
	else if (err->errnum == ENOENT && access(root.data, F_OK) != 0) {
		say(out, root.data, "is missing");
		rv_error_clear(err);
		result = 0;
	}
	rv_tree_release(&tree);
	return result;
}

int rv_receipt_check_subject(struct rv_buffer *out, const struct rv_json_node *root, struct rv_error *err)
{
	const struct rv_json_node *file = rv_json_first(rv_json_get(rv_json_get(root, "adapter"), "files"));

	for (; file != NULL; file = rv_json_next(file))
		rv_receipt_check_file(out, file);
	return check_tree(out, rv_json_get(root, "programs"), rv_tree_programs, err) != 0 ? -1 :
	       check_tree(out, rv_json_get(root, "source"), rv_tree_source, err);
}

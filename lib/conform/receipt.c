#include "lib/conform/receipt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/text.h"
#include "lib/conform/tree.h"
#include "lib/json/json.h"
#include "lib/json/write.h"

#define KIND "rv-conform-receipt"

/* Parse a receipt; the caller frees *doc. */
static const struct rv_json_node *read_receipt(const char *path, struct rv_json_doc **doc, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	const struct rv_json_node *root = NULL;
	const struct rv_json_node *kind;

	*doc = rv_json_doc_new(err);
	if (*doc == NULL || rv_io_read_file(path, &text, err) != 0)
		return NULL;
	root = rv_json_parse(*doc, text.data != NULL ? text.data : "", text.len, RV_JSON_DEFAULT, err);
	kind = root != NULL ? rv_json_get(root, "kind") : NULL;
	if (rv_json_is_string(kind) && rv_span_equal(rv_json_string(kind), RV_SPAN(KIND)))
		return root;
	if (root != NULL)
		(void)rv_error_set(err, RV_E_IO, 0, "no receipt of rv-conform");
	err->code = RV_E_IO;
	(void)rv_error_wrap(err, "%s", path);
	return NULL;
}

/* ---- during the run ---- */

int rv_receipt_begin(struct rv_receipt *receipt, const char *path, const char *previous, struct rv_error *err)
{
	struct rv_json_doc *doc = NULL;
	char digest[RV_SHA256_HEX];
	struct stat info;
	int result = 0;

	receipt->path = path;
	receipt->previous = previous;
	if (lstat(path, &info) == 0)
		return rv_error_set(err, RV_E_IO, EEXIST, "%s", path);
	if (previous == NULL)
		return 0;
	if (read_receipt(previous, &doc, err) == NULL || rv_tree_digest(previous, digest, err) != 0)
		result = -1;
	else
		rv_buffer_add_string(&receipt->earlier, digest);
	rv_json_doc_free(doc);
	return result;
}

static void add_element(struct rv_buffer *out, const char *text)
{
	if (out->len > 0)
		rv_buffer_add_byte(out, ',');
	rv_json_add_string(out, text, strlen(text));
}

void rv_receipt_add(struct rv_receipt *receipt, const struct rv_result *result)
{
	const struct rv_record *record = result->record;
	rv_auto_buffer struct rv_buffer reason = RV_BUFFER_INIT;

	receipt->passed += result->verdict == RV_PASS;
	receipt->failed += result->verdict == RV_FAIL;
	receipt->skipped += result->verdict == RV_SKIP;
	if (strcmp(result->suite->name, "confine") == 0) {
		receipt->confined += result->verdict == RV_PASS;
		receipt->unconfined += result->verdict != RV_PASS;
	}
	if (receipt->path == NULL)
		return;
	if (result->verdict == RV_FAIL)
		add_element(&receipt->failures, result->check->id);
	if (result->verdict != RV_SKIP)
		return;
	rv_text_add_lossy(&reason, record->saw.text, record->saw.len);
	rv_buffer_add_string(&receipt->skips, receipt->skips.len > 0 ? ",{" : "{");
	rv_json_member_string(&receipt->skips, "id", result->check->id);
	rv_json_member_span(&receipt->skips, "reason", (struct rv_span){ reason.data, reason.len });
	rv_buffer_add_byte(&receipt->skips, '}');
}

/* ---- writing ---- */

static void add_time(struct rv_buffer *out)
{
	time_t now = time(NULL);
	struct tm utc;
	char text[32];

	if (gmtime_r(&now, &utc) != NULL && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc) > 0)
		rv_json_member_string(out, "at", text);
}

static void add_kernel(struct rv_buffer *out)
{
	struct utsname name;

	if (uname(&name) != 0)
		return;
	rv_json_add_name(out, "kernel");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "release", name.release);
	rv_json_member_string(out, "machine", name.machine);
	rv_buffer_add_byte(out, '}');
}

/* A word of the adapter's command line that names a file is a part of what was tested. */
static int add_word(struct rv_buffer *files, const char *word, struct rv_error *err)
{
	char digest[RV_SHA256_HEX];
	rv_auto_free char *path = realpath(word, NULL);
	struct stat info;

	if (path == NULL || stat(path, &info) != 0 || !S_ISREG(info.st_mode))
		return 0;
	if (rv_tree_digest(path, digest, err) != 0)
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

	for (size_t i = 0; adapter->argv[i] != NULL; i++) {
		add_element(&words, adapter->argv[i]);
		if (add_word(&files, adapter->argv[i], err) != 0)
			return -1;
	}
	rv_json_add_name(out, "adapter");
	rv_buffer_add_byte(out, '{');
	rv_json_member_span(out, "name", (struct rv_span){ adapter->name.data, adapter->name.len });
	rv_buffer_printf(out, ",\"argv\":[");
	rv_buffer_add(out, words.data, words.len);
	rv_buffer_add_string(out, "],\"files\":[");
	rv_buffer_add(out, files.data, files.len);
	rv_buffer_add_string(out, "]}");
	return 0;
}

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
		rv_tree_add(out, &tree);
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
		rv_tree_add(out, &tree);
	}
	rv_tree_release(&tree);
	return result;
}

static void add_counts(struct rv_buffer *out, const struct rv_receipt *receipt)
{
	rv_json_add_name(out, "counts");
	rv_buffer_add_byte(out, '{');
	rv_json_member_int(out, "passed", (int64_t)receipt->passed);
	rv_json_member_int(out, "failed", (int64_t)receipt->failed);
	rv_json_member_int(out, "skipped", (int64_t)receipt->skipped);
	rv_buffer_add_string(out, "},\"failures\":[");
	rv_buffer_add(out, receipt->failures.data, receipt->failures.len);
	rv_buffer_add_string(out, "],\"skips\":[");
	rv_buffer_add(out, receipt->skips.data, receipt->skips.len);
	rv_buffer_add_byte(out, ']');
}

static void add_previous(struct rv_buffer *out, struct rv_receipt *receipt)
{
	const char *digest = rv_buffer_string(&receipt->earlier);

	if (receipt->previous == NULL) {
		rv_json_member_null(out, "previous");
		return;
	}
	rv_json_add_name(out, "previous");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "path", receipt->previous);
	rv_json_member_string(out, "sha256", digest != NULL ? digest : "");
	rv_buffer_add_byte(out, '}');
}

static int create(const char *path, const struct rv_buffer *text, struct rv_error *err)
{
	rv_auto_fd int fd = rv_io_open(path, O_WRONLY | O_CREAT | O_EXCL, 0644, err);

	if (fd < 0)
		return -1;
	if (rv_io_write_all(fd, text->data, text->len, err) == 0 && fsync(fd) == 0)
		return rv_io_sync_parent(path, err);
	if (err->code == RV_E_NONE)
		(void)rv_error_set(err, RV_E_IO, errno, "fsync");
	(void)unlink(path); /* half a receipt is none */
	return rv_error_wrap(err, "%s", path);
}

int rv_receipt_write(struct rv_receipt *receipt, const struct rv_adapter *adapter, const char *source,
		     struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;

	rv_buffer_add_byte(&out, '{');
	rv_json_member_string(&out, "kind", KIND);
	rv_json_member_int(&out, "version", 1);
	add_time(&out);
	rv_json_member_string(&out, "tool", "rv-conform " RV_VERSION);
	if (add_adapter(&out, adapter, err) != 0)
		return -1;
	add_kernel(&out);
	add_counts(&out, receipt);
	if (add_trees(&out, source, err) != 0)
		return -1;
	if (rv_receipt_add_proven(&out, receipt, adapter, err) != 0)
		return -1;
	add_previous(&out, receipt);
	rv_buffer_add_string(&out, "}\n");
	return rv_buffer_check(&out, err) == 0 ? create(receipt->path, &out, err) : -1;
}

void rv_receipt_release(struct rv_receipt *receipt)
{
	rv_buffer_release(&receipt->earlier);
	rv_buffer_release(&receipt->failures);
	rv_buffer_release(&receipt->skips);
}

/* ---- checking ---- */

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
static void check_file(struct rv_buffer *out, const struct rv_json_node *file)
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

static void check_kernel(struct rv_buffer *out, const struct rv_json_node *kernel)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct utsname name;

	if (uname(&name) != 0)
		return;
	if (strcmp(text_of(&text, kernel, "release"), name.release) != 0)
		rv_buffer_printf(out, "kernel: %s, and the receipt has %s\n", name.release, text.len > 0 ? text.data : "none");
	if (strcmp(text_of(&text, kernel, "machine"), name.machine) != 0)
		rv_buffer_printf(out, "machine: %s, and the receipt has %s\n", name.machine, text.len > 0 ? text.data : "none");
}

int rv_receipt_check(const char *path, struct rv_buffer *out, struct rv_error *err)
{
	struct rv_json_doc *doc = NULL;
	const struct rv_json_node *root = read_receipt(path, &doc, err);
	const struct rv_json_node *files = rv_json_get(rv_json_get(root, "adapter"), "files");
	const struct rv_json_node *previous = rv_json_get(root, "previous");
	int result = root != NULL ? 0 : -1;

	if (result == 0 && files != NULL) {
		for (const struct rv_json_node *file = rv_json_first(files); file != NULL; file = rv_json_next(file))
			check_file(out, file);
	}
	if (result == 0)
		result = check_tree(out, rv_json_get(root, "programs"), rv_tree_programs, err);
	if (result == 0)
		result = check_tree(out, rv_json_get(root, "source"), rv_tree_source, err);
	if (result == 0)
		check_kernel(out, rv_json_get(root, "kernel"));
	if (result == 0)
		result = rv_receipt_check_proven(out, root, err);
	if (result == 0 && previous != NULL && rv_json_type(previous) == RV_JSON_OBJECT)
		check_file(out, previous);
	rv_json_doc_free(doc);
	return result == 0 ? rv_buffer_check(out, err) : result;
}

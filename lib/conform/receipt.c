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

/* ---- its shape ---- */

static bool is_of(const struct rv_json_node *node, enum rv_json_type type)
{
	return node != NULL && rv_json_type(node) == type;
}

static int64_t count_of(const struct rv_json_node *object, const char *name)
{
	const struct rv_json_node *member = rv_json_get(object, name);
	int64_t count = -1;

	return is_of(member, RV_JSON_NUMBER) && rv_json_integer(member, &count) ? count : -1;
}

static int64_t length_of(const struct rv_json_node *object, const char *name)
{
	const struct rv_json_node *array = rv_json_get(object, name);
	int64_t length = 0;

	if (!is_of(array, RV_JSON_ARRAY))
		return -1;
	for (const struct rv_json_node *item = rv_json_first(array); item != NULL; item = rv_json_next(item))
		length++;
	return length;
}

/* The first member that is not what a whole run writes; NULL: it is whole.  What names nothing would hold for ever. */
static const char *misshapen(const struct rv_json_node *root)
{
	const struct rv_json_node *counts = rv_json_get(root, "counts");
	const struct rv_json_node *source = rv_json_get(root, "source");
	const struct rv_json_node *previous = rv_json_get(root, "previous");

	if (count_of(root, "version") != 1)
		return "version";
	if (length_of(rv_json_get(root, "adapter"), "files") < 1)
		return "adapter";
	if (length_of(rv_json_get(root, "programs"), "files") < 1)
		return "programs";
	if (!is_of(source, RV_JSON_NULL) && length_of(source, "files") < 1)
		return "source";
	if (!is_of(rv_json_get(root, "kernel"), RV_JSON_OBJECT))
		return "kernel";
	if (!is_of(counts, RV_JSON_OBJECT) || count_of(counts, "passed") < 0)
		return "counts";
	if (count_of(counts, "failed") < 0 || count_of(counts, "failed") != length_of(root, "failures"))
		return "failures";
	if (count_of(counts, "skipped") < 0 || count_of(counts, "skipped") != length_of(root, "skips"))
		return "skips";
	if (length_of(root, "runtimes") < 0 || length_of(root, "profiles") != length_of(root, "runtimes"))
		return "runtimes";
	return is_of(previous, RV_JSON_NULL) || is_of(previous, RV_JSON_OBJECT) ? NULL : "previous";
}

/* Parse a receipt; the caller frees *doc. */
static const struct rv_json_node *read_receipt(const char *path, struct rv_json_doc **doc, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	const struct rv_json_node *root = NULL;
	const struct rv_json_node *kind;
	const char *missing;

	*doc = rv_json_doc_new(err);
	if (*doc == NULL || rv_io_read_file(path, &text, err) != 0)
		return NULL;
	root = rv_json_parse(*doc, text.data != NULL ? text.data : "", text.len, RV_JSON_DEFAULT, err);
	kind = root != NULL ? rv_json_get(root, "kind") : NULL;
	if (!rv_json_is_string(kind) || !rv_span_equal(rv_json_string(kind), RV_SPAN(KIND)))
		missing = "kind";
	else
		missing = misshapen(root);
	if (missing == NULL)
		return root;
	if (root != NULL)
		(void)rv_error_set(err, RV_E_IO, 0, "no receipt of rv-conform (%s)", missing);
	err->code = RV_E_IO;
	(void)rv_error_wrap(err, "%s", path);
	return NULL;
}

/* ---- during the run ---- */

static int take_previous(struct rv_receipt *receipt, const char *previous, struct rv_error *err)
{
	struct rv_json_doc *doc = NULL;
	char digest[RV_SHA256_HEX];
	int result = -1;

	receipt->previous = realpath(previous, NULL);
	if (receipt->previous == NULL)
		return rv_error_set(err, RV_E_IO, errno, "%s", previous);
	if (read_receipt(receipt->previous, &doc, err) != NULL && rv_tree_digest(receipt->previous, digest, err) == 0) {
		rv_buffer_add_string(&receipt->earlier, digest);
		result = 0;
	}
	rv_json_doc_free(doc);
	return result;
}

int rv_receipt_begin(struct rv_receipt *receipt, const char *path, const char *previous, const struct rv_adapter *adapter,
		     const char *source, struct rv_error *err)
{
	struct stat info;

	receipt->path = path;
	receipt->adapter = adapter;
	if (lstat(path, &info) == 0)
		return rv_error_set(err, RV_E_IO, EEXIST, "%s", path);
	if (previous != NULL && take_previous(receipt, previous, err) != 0)
		return -1;
	rv_buffer_add_byte(&receipt->subject, '{');
	if (rv_receipt_add_subject(&receipt->subject, adapter, source, err) != 0)
		return -1;
	return rv_buffer_check(&receipt->subject, err);
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
		rv_receipt_add_element(&receipt->failures, result->check->id);
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

/* What was held to the battery is still what it was at the start. */
static int is_the_same(const struct rv_receipt *receipt, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT, changes = RV_BUFFER_INIT;
	struct rv_json_doc *doc = rv_json_doc_new(err);
	const struct rv_json_node *root;
	int result = -1;

	rv_buffer_add(&text, receipt->subject.data, receipt->subject.len);
	rv_buffer_add_byte(&text, '}');
	root = doc != NULL && rv_buffer_check(&text, err) == 0 ? rv_json_parse(doc, text.data, text.len, RV_JSON_DEFAULT, err) : NULL;
	if (root != NULL)
		result = rv_receipt_check_subject(&changes, root, err);
	if (result == 0 && changes.len > 0)
		result = rv_error_set(err, RV_E_IO, 0, "no receipt, for what was tested changed meanwhile: %.*s",
				      (int)strcspn(rv_buffer_string(&changes) != NULL ? changes.data : "", "\n"), changes.data);
	rv_json_doc_free(doc);
	return result;
}

/* A suite that was not run for want of an image is no skip of any check's, and must not look like a pass. */
static void add_left_out(struct rv_buffer *out, bool with_image)
{
	rv_json_add_name(out, "leftOut");
	rv_buffer_add_byte(out, '[');
	for (const struct rv_suite *suite = rv_suites; suite->name != NULL; suite++) {
		if (!suite->wants_image || with_image)
			continue;
		rv_buffer_add_string(out, out->data != NULL && out->data[out->len - 1] == '}' ? ",{" : "{");
		rv_json_member_string(out, "suite", suite->name);
		rv_json_member_string(out, "reason", "no --image was given");
		rv_buffer_add_byte(out, '}');
	}
	rv_buffer_add_byte(out, ']');
}

int rv_receipt_write(struct rv_receipt *receipt, bool with_image, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;

	if (is_the_same(receipt, err) != 0)
		return -1;
	rv_buffer_add_byte(&out, '{');
	rv_json_member_string(&out, "kind", KIND);
	rv_json_member_int(&out, "version", 1);
	add_time(&out);
	rv_json_member_string(&out, "tool", "rv-conform " RV_VERSION);
	rv_buffer_add_byte(&out, ',');
	rv_buffer_add(&out, receipt->subject.data + 1, receipt->subject.len - 1);
	add_kernel(&out);
	add_counts(&out, receipt);
	add_left_out(&out, with_image);
	if (rv_receipt_add_proven(&out, receipt, receipt->adapter, err) != 0)
		return -1;
	add_previous(&out, receipt);
	rv_buffer_add_string(&out, "}\n");
	return rv_buffer_check(&out, err) == 0 ? create(receipt->path, &out, err) : -1;
}

void rv_receipt_release(struct rv_receipt *receipt)
{
	rv_buffer_release(&receipt->earlier);
	rv_buffer_release(&receipt->subject);
	free(receipt->previous);
	rv_buffer_release(&receipt->failures);
	rv_buffer_release(&receipt->skips);
}

/* ---- checking ---- */

static bool is_text(struct rv_span *text, const struct rv_json_node *object, const char *name)
{
	const struct rv_json_node *member = rv_json_get(object, name);

	*text = rv_json_is_string(member) ? rv_json_string(member) : RV_SPAN("none");
	return rv_json_is_string(member);
}

static void check_name(struct rv_buffer *out, const struct rv_json_node *kernel, const char *member, const char *what, const char *now)
{
	struct rv_span text;

	if (is_text(&text, kernel, member) && rv_span_equal(text, rv_span_of(now)))
		return;
	rv_buffer_printf(out, "%s: %s, and the receipt has ", what, now);
	rv_text_add_escaped(out, text.data, text.len);
	rv_buffer_add_byte(out, '\n');
}

static void check_kernel(struct rv_buffer *out, const struct rv_json_node *kernel)
{
	struct utsname name;

	if (uname(&name) != 0)
		return;
	check_name(out, kernel, "release", "kernel", name.release);
	check_name(out, kernel, "machine", "machine", name.machine);
}

int rv_receipt_check(const char *path, struct rv_buffer *out, struct rv_error *err)
{
	struct rv_json_doc *doc = NULL;
	const struct rv_json_node *root = read_receipt(path, &doc, err);
	const struct rv_json_node *previous = root != NULL ? rv_json_get(root, "previous") : NULL;
	int result = root != NULL ? rv_receipt_check_subject(out, root, err) : -1;

	if (result == 0)
		check_kernel(out, rv_json_get(root, "kernel"));
	if (result == 0)
		result = rv_receipt_check_proven(out, root, err);
	if (result == 0 && rv_json_type(previous) == RV_JSON_OBJECT)
		rv_receipt_check_file(out, previous);
	rv_json_doc_free(doc);
	return result == 0 ? rv_buffer_check(out, err) : result;
}

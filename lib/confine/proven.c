#include "lib/confine/proven.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/json/json.h"

#define RECEIPT_MAX ((size_t)64 << 20)

/* "runtimes" and "profiles" are arrays of digests, or of objects with a digest. */
static int take(const struct rv_json_node *array, const char *name, char (**digests)[RV_DIGEST_TEXT], size_t *count,
		struct rv_error *err)
{
	size_t length = 0;

	if (array == NULL || rv_json_type(array) != RV_JSON_ARRAY)
		return rv_error_set(err, RV_E_REQUEST, 0, "it has no \"%s\"", name);
	for (const struct rv_json_node *at = rv_json_first(array); at != NULL; at = rv_json_next(at))
		length++;
	*digests = calloc(length + 1, sizeof **digests);
	if (*digests == NULL)
		return rv_error_nomem(err);
	for (const struct rv_json_node *at = rv_json_first(array); at != NULL; at = rv_json_next(at)) {
		const struct rv_json_node *digest = rv_json_is_string(at) ? at : rv_json_get(at, "digest");
		struct rv_span text = rv_json_is_string(digest) ? rv_json_string(digest) : RV_SPAN("");

		if (!rv_digest_is_valid(text))
			return rv_error_set(err, RV_E_REQUEST, 0, "its \"%s\" are not all digests", name);
		memcpy((*digests)[(*count)++], text.data, text.len);
	}
	return 0;
}

static int read_receipt(struct rv_proven *proven, const struct rv_json_node *root, struct rv_error *err)
{
	const struct rv_json_node *kind = rv_json_get(root, "kind");
	const struct rv_json_node *failed = rv_json_get(rv_json_get(root, "counts"), "failed");
	int64_t failures = -1;

	if (!rv_json_is_string(kind) || !rv_span_equal(rv_json_string(kind), RV_SPAN("rv-conform-receipt")))
		return rv_error_set(err, RV_E_REQUEST, 0, "not a receipt of rv-conform");
	if (failed == NULL || rv_json_type(failed) != RV_JSON_NUMBER || !rv_json_integer(failed, &failures) || failures != 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "it is of a run with failures, and vouches for nothing");
	if (take(rv_json_get(root, "runtimes"), "runtimes", &proven->runtimes, &proven->runtime_count, err) != 0)
		return -1;
	return take(rv_json_get(root, "profiles"), "profiles", &proven->profiles, &proven->profile_count, err);
}

int rv_proven_read(struct rv_proven *proven, const char *path, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = { .max = RECEIPT_MAX };
	const struct rv_json_node *root = NULL;
	struct rv_json_doc *doc;
	int result = -1;

	proven->given = true;
	if (rv_io_read_file(path, &text, err) != 0)
		return -1;
	doc = rv_json_doc_new(err);
	if (doc != NULL)
		root = rv_json_parse(doc, text.data, text.len, RV_JSON_STRICT, err);
	if (root != NULL)
		result = read_receipt(proven, root, err);
	rv_json_doc_free(doc);
	return result == 0 ? 0 : rv_error_wrap(err, "receipt %s", path);
}

void rv_proven_release(struct rv_proven *proven)
{
	free(proven->runtimes);
	free(proven->profiles);
	*proven = (struct rv_proven){ .given = false };
}

static bool has(char (*digests)[RV_DIGEST_TEXT], size_t count, const char *digest)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(digests[i], digest) == 0)
			return true;
	}
	return false;
}

bool rv_proven_has_runtime(const struct rv_proven *proven, const char *digest)
{
	return has(proven->runtimes, proven->runtime_count, digest);
}

bool rv_proven_has_profile(const struct rv_proven *proven, const char *digest)
{
	return has(proven->profiles, proven->profile_count, digest);
}

/*
 * Whatever comes in: what is accepted has a canonical form that is accepted, is its own canonical
 * form, and is the same for the text without its white space and for each way to write it again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
	if (!good)
		abort();
}

/* The canonical form of a text that must be JSON; false where a number overflows. */
static bool canonical_of(const char *bytes, size_t len, struct rv_buffer *out)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_json_doc *doc = rv_json_doc_new(&err);
	const struct rv_json_node *root;
	bool good;

	require(doc != NULL);
	root = rv_json_parse(doc, bytes, len, RV_JSON_DEFAULT, &err);
	require(root != NULL);
	good = rv_json_canonical(root, out, &err) == 0;
	require(good || err.code == RV_E_NUMBER);
	rv_json_doc_free(doc);
	return good;
}

static void require_same_form(const struct rv_buffer *text, const struct rv_buffer *want)
{
	struct rv_buffer got = RV_BUFFER_INIT;

	require(canonical_of(text->data, text->len, &got));
	require(got.len == want->len && memcmp(got.data, want->data, got.len) == 0);
	rv_buffer_release(&got);
}

static void check_accepted(const char *bytes, size_t len, struct rv_json_doc *doc, const struct rv_json_node *root)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_buffer canonical = RV_BUFFER_INIT;
	struct rv_buffer other = RV_BUFFER_INIT;

	if (rv_json_canonical(root, &canonical, &err) == 0) {
		require_same_form(&canonical, &canonical);
		require(rv_text_is_utf8(canonical.data, canonical.len));
		rv_json_add_compact(&other, bytes, len);
		require_same_form(&other, &canonical);
		rv_buffer_clear(&other);
		rv_json_add_source(&other, doc, root);
		require_same_form(&other, &canonical);
		rv_buffer_clear(&other);
		require(rv_json_stringify(root, &other, &err) == 0);
		require_same_form(&other, &canonical);
	} else {
		require(err.code == RV_E_NUMBER);
	}
	rv_buffer_release(&canonical);
	rv_buffer_release(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_json_doc *doc = rv_json_doc_new(&err);
	const struct rv_json_node *root;
	bool accepted;

	require(doc != NULL);
	root = rv_json_parse(doc, bytes, size, RV_JSON_DEFAULT, &err);
	accepted = root != NULL;
	if (accepted)
		check_accepted(bytes, size, doc, root);
	else
		require(err.code == RV_E_REQUEST && rv_text_is_utf8(err.message, strlen(err.message)));
	require(!(rv_json_parse(doc, bytes, size, RV_JSON_STRICT, &err) != NULL && !accepted));
	rv_json_doc_free(doc);
	return 0;
}

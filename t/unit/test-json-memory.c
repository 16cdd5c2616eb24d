/*
 * Out of memory is an ordinary error: every allocation that lib/json makes for a document fails
 * once, and each time there is an error, no crash, and the document is usable afterwards.
 * The linker puts these in the place of malloc, calloc and realloc (see Makefile.am).
 */
#include <string.h>

#include "lib/json/json.h"
#include "t/unit/tap.h"

static long countdown; /* the allocation that fails; 0: none */
static bool failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static bool fails(void)
{
	if (countdown == 0 || --countdown > 0)
		return false;
	failed = true;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return fails() ? NULL : __real_realloc(memory, size);
}

/* Everything that allocates: 0, or -1 with the error. */
static int exercise(struct rv_json_doc *doc, const struct rv_buffer *text, struct rv_error *err)
{
	struct rv_buffer out = RV_BUFFER_INIT;
	const struct rv_json_node *root = rv_json_parse(doc, text->data, text->len, RV_JSON_STRICT, err);
	int result = root != NULL ? 0 : -1;

	if (result == 0)
		result = rv_json_canonical(root, &out, err);
	if (result == 0)
		result = rv_json_stringify(root, &out, err);
	if (result == 0) {
		rv_json_add_source(&out, doc, root);
		result = rv_buffer_check(&out, err);
	}
	rv_buffer_release(&out);
	return result;
}

static void check(const char *name, const struct rv_buffer *text)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_json_doc *doc = rv_json_doc_new(&err);
	bool good = doc != NULL;
	long n = 0;

	failed = true;
	while (good && failed) {
		int result;

		failed = false;
		countdown = ++n;
		result = exercise(doc, text, &err);
		countdown = 0;
		good = failed ? result == -1 && err.code == RV_E_NOMEM : result == 0;
		rv_error_clear(&err);
		good = good && exercise(doc, text, &err) == 0;
		rv_json_doc_free(doc); /* so that the next one has no memory of its own */
		doc = rv_json_doc_new(&err);
	}
	rv_json_doc_free(doc);
	tap_ok(good && n > 3, "%s: each of %ld allocations failed once", name, n - 1);
}

static void repeat(struct rv_buffer *text, const char *piece, int count)
{
	while (count-- > 0)
		rv_buffer_add_string(text, piece);
}

static void check_repeated(const char *name, const char *open, const char *middle, const char *close, int count)
{
	struct rv_buffer text = RV_BUFFER_INIT;

	repeat(&text, open, count);
	rv_buffer_add_string(&text, middle);
	repeat(&text, close, count);
	check(name, &text);
	rv_buffer_release(&text);
}

int main(void)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_buffer text = RV_BUFFER_INIT;

	check_repeated("small", "", "{\"b\":[1,\"\\n\"],\"a\":null}", "", 1);
	check_repeated("deep arrays", "[", "", "]", 20000);
	check_repeated("deep objects", "{\"a\\n\":", "1.5", "}", 20000);
	rv_buffer_add_byte(&text, '{');
	for (int i = 0; i < 20000; i++)
		rv_buffer_printf(&text, "\"%d\":\"\\u00e9\",", i * 7 % 20011);
	rv_buffer_add_string(&text, "\"\":0}");
	check("a wide object", &text);
	rv_buffer_clear(&text);
	rv_buffer_add_byte(&text, '"');
	repeat(&text, "\\\"0123456789", 100000);
	rv_buffer_add_byte(&text, '"');
	check("a long string with escapes", &text);
	rv_buffer_clear(&text);
	rv_buffer_add_string(&text, "[\"");
	repeat(&text, "0123456789", 1000);
	rv_buffer_add_string(&text, "\",\"\\n\",{\"");
	repeat(&text, "0123456789", 1000);
	rv_buffer_add_string(&text, "\":1}]");
	check("long strings without", &text);
	rv_buffer_release(&text);
	countdown = 1;
	tap_ok(rv_json_doc_new(&err) == NULL && err.code == RV_E_NOMEM, "a document");
	countdown = 0;
	return tap_end();
}

/* lib/json against t/vectors, and what vectors cannot hold: depth, width, memory, strictness. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/digest/digest.h"
#include "lib/json/json.h"
#include "lib/json/parse.h"
#include "lib/json/write.h"
#include "t/unit/tap.h"

static struct rv_error err;
static struct rv_json_doc *doc;

static bool read_vectors(const char *name, struct rv_buffer *text)
{
	char path[4096];

	(void)snprintf(path, sizeof path, "%s/t/vectors/%s", tap_source(), name);
	return tap_ok(rv_io_read_file(path, text, &err) == 0, "%s is there", name);
}

/* The next line of `text` without its newline. */
static bool next_line(const struct rv_buffer *text, size_t *at, struct rv_span *line)
{
	const char *end;

	if (*at >= text->len)
		return false;
	end = memchr(text->data + *at, '\n', text->len - *at);
	line->data = text->data + *at;
	line->len = end != NULL ? (size_t)(end - line->data) : text->len - *at;
	*at += line->len + 1;
	return true;
}

static bool is(const struct rv_buffer *got, struct rv_span want)
{
	return !got->failed && got->len == want.len && (want.len == 0 || memcmp(got->data, want.data, want.len) == 0);
}

static bool is_text(const struct rv_buffer *got, const char *want)
{
	return is(got, rv_span_of(want));
}

static const struct rv_json_node *parse(const char *text)
{
	return rv_json_parse(doc, text, strlen(text), RV_JSON_DEFAULT, &err);
}

/* A null for want: canonical form must refuse a number. */
static bool check_document(struct rv_span input, bool accept, const struct rv_json_node *want)
{
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	const struct rv_json_node *root = rv_json_parse(doc, input.data, input.len, RV_JSON_DEFAULT, &err);

	if (root == NULL)
		return !accept && err.code == RV_E_REQUEST;
	if (!accept)
		return false;
	if (!rv_json_is_string(want))
		return rv_json_canonical(root, &out, &err) != 0 && err.code == RV_E_NUMBER;
	return rv_json_canonical(root, &out, &err) == 0 && is(&out, rv_json_string(want));
}

static void test_documents(void)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_json_doc *vector = rv_json_doc_new(&err);
	struct rv_span line;
	size_t at = 0;
	int number = 0;

	if (!read_vectors("json.jsonl", &text))
		return;
	while (next_line(&text, &at, &line)) {
		rv_auto_buffer struct rv_buffer input = RV_BUFFER_INIT;
		rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
		const struct rv_json_node *root = rv_json_parse(vector, line.data, line.len, RV_JSON_DEFAULT, &err);
		struct rv_span encoded = root != NULL ? rv_json_string(rv_json_get(root, "inputBase64")) : RV_SPAN("?");
		const struct rv_json_node *want = root != NULL ? rv_json_get(root, "canonical") : NULL;
		bool good = root != NULL && rv_base64_decode(&input, encoded.data, encoded.len, &err) == 0 &&
			    check_document((struct rv_span){ input.data, input.len },
					   rv_json_type(rv_json_get(root, "accept")) == RV_JSON_TRUE,
					   want);

		/* The last one is 5000 arrays and nothing in them: its form is not recorded. */
		if (++number == 203)
			good = rv_json_parse(doc, input.data, input.len, RV_JSON_DEFAULT, &err) != NULL &&
			       rv_json_canonical(rv_json_parse(doc, input.data, input.len, RV_JSON_DEFAULT, &err), &out,
						 &err) == 0 &&
			       is(&out, (struct rv_span){ input.data, input.len });
		tap_ok(good, "json.jsonl line %d", number);
	}
	tap_ok(number == 203, "all 203 documents were seen");
	rv_json_doc_free(vector);
}

static bool check_key(const struct rv_json_node *root, struct rv_sha256 *sha)
{
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	struct rv_span args = rv_json_string(rv_json_get(root, "argsText"));
	const struct rv_json_node *want = rv_json_get(root, "canonicalArgs");
	const struct rv_json_node *node = rv_json_parse(doc, args.data, args.len, RV_JSON_DEFAULT, &err);
	char hex[RV_SHA256_HEX];

	if (node == NULL)
		return false;
	if (!rv_json_is_string(want))
		return rv_json_canonical(node, &out, &err) != 0 && err.code == RV_E_NUMBER;
	return rv_json_canonical(node, &out, &err) == 0 && is(&out, rv_json_string(want)) &&
	       rv_sha256_hex(sha, out.data, out.len, hex, &err) == 0 &&
	       rv_span_equal(rv_span_of(hex), rv_json_string(rv_json_get(root, "argsHash")));
}

static void test_args(void)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_json_doc *vector = rv_json_doc_new(&err);
	struct rv_sha256 *sha = rv_sha256_new(&err);
	struct rv_span line;
	size_t at = 0;
	int number = 0;

	if (!read_vectors("keys.jsonl", &text))
		return;
	while (next_line(&text, &at, &line)) {
		const struct rv_json_node *root = rv_json_parse(vector, line.data, line.len, RV_JSON_DEFAULT, &err);

		tap_ok(root != NULL && check_key(root, sha), "keys.jsonl line %d, its arguments", ++number);
	}
	tap_ok(number == 300, "all 300 were seen");
	rv_sha256_free(sha);
	rv_json_doc_free(vector);
}

static double double_of_bits(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

static bool check_number(double value, struct rv_span want)
{
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer again = RV_BUFFER_INIT;
	const struct rv_json_node *node;

	rv_json_add_number(&out, value);
	if (!is(&out, want))
		return false;
	node = rv_json_parse(doc, out.data, out.len, RV_JSON_DEFAULT, &err);
	if (node == NULL || rv_json_number(node) != value)
		return false;
	return rv_json_canonical(node, &again, &err) == 0 && is(&again, want);
}

static void test_numbers(void)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_span line;
	size_t at = 0;
	int number = 0;
	int bad = 0;

	if (!read_vectors("numbers.txt", &text))
		return;
	while (next_line(&text, &at, &line)) {
		uint64_t bits = strtoull(line.data, NULL, 16);
		struct rv_span want = { line.data + 17, line.len - 17 };

		number++;
		if (!check_number(double_of_bits(bits), want)) {
			tap_note("line %d: %016" PRIx64, number, bits);
			bad++;
		}
	}
	tap_ok(bad == 0 && number == 6100, "numbers.txt: %d numbers, %d wrong", number, bad);
}

/* Every double that is written reads back as itself, and with no fewer digits does. */
static void test_random_numbers(void)
{
	uint64_t state = 88172645463325252ULL;
	int bad = 0;

	for (int i = 0; i < 200000; i++) {
		rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
		double value;
		char *end;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		value = double_of_bits(state);
		if (i % 2 != 0)
			value = (double)(state >> 11) * 0x1p-53 * pow(10, (double)(i % 12) - 4);
		if (!isfinite(value))
			continue;
		rv_json_add_number(&out, value);
		if (rv_buffer_string(&out) == NULL || strtod(out.data, &end) != value || *end != '\0')
			bad++;
	}
	tap_ok(bad == 0, "200,000 random doubles read back, %d do not", bad);
}

static bool deep(size_t depth, const char *open, const char *close, const char *middle)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer canonical = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer stringified = RV_BUFFER_INIT;
	struct rv_span want;
	const struct rv_json_node *root;

	for (size_t i = 0; i < depth; i++)
		rv_buffer_add_string(&text, open);
	rv_buffer_add_string(&text, middle);
	for (size_t i = 0; i < depth; i++)
		rv_buffer_add_string(&text, close);
	root = rv_json_parse(doc, text.data, text.len, RV_JSON_STRICT, &err);
	want = (struct rv_span){ text.data, text.len };
	return root != NULL && rv_json_canonical(root, &canonical, &err) == 0 && is(&canonical, want) &&
	       rv_json_stringify(root, &stringified, &err) == 0 && is(&stringified, want);
}

static void test_depth(void)
{
	static const size_t edges[] = { 1,   23,  24,  25,  126, 127, 128, 129, 255,
					256, 257, 383, 384, 511, 512, 513, 1000 };
	bool good = true;

	for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
		good = good && deep(edges[i], "[", "]", "1");
	tap_ok(good, "depths where a stack grows");
	tap_ok(deep(1000000, "[", "]", ""), "1,000,000 arrays deep");
	tap_ok(deep(1000000, "{\"a\":", "}", "null"), "1,000,000 objects deep");
	tap_ok(deep(1, "", "", "[1,2]"), "the document is small again afterwards");
}

static void test_width(void)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	const struct rv_json_node *root;

	rv_buffer_add_byte(&text, '{');
	for (int i = 0; i < 1000000; i++) /* half of the names twice, in an order that is no order */
		rv_buffer_printf(&text, "\"k%lld\":%d,", i * 7919LL % 500000, i);
	rv_buffer_add_string(&text, "\"a\":1,\"a\":2}");
	root = rv_json_parse(doc, text.data, text.len, RV_JSON_DEFAULT, &err);
	tap_ok(root != NULL && rv_json_canonical(root, &out, &err) == 0 && out.len > 0 &&
		       memcmp(out.data, "{\"a\":2,\"k0\":500000,\"k1\":", 23) == 0,
	       "a million members: ordered, the last of each name");
	rv_buffer_clear(&out);
	tap_ok(root != NULL && rv_json_stringify(root, &out, &err) == 0 &&
		       memcmp(out.data, "{\"k0\":500000,\"k7919\":500001,", 27) == 0,
	       "a million members as the engine has them");
	tap_ok(rv_json_parse(doc, text.data, text.len, RV_JSON_STRICT, &err) == NULL, "and refused where strict");
}

static void check_stringify(const char *text, const char *want)
{
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	const struct rv_json_node *root = parse(text);

	tap_ok(root != NULL && rv_json_stringify(root, &out, &err) == 0 && is_text(&out, want), "stringify: %s", want);
}

static void test_stringify(void)
{
	check_stringify("{\"b\":1,\"a\":2,\"b\":3}", "{\"b\":3,\"a\":2}");
	check_stringify("{\"b\":1,\"10\":2,\"9\":[ ],\"01\":0,\"4294967294\":1,\"4294967295\":2,\"-1\":0}",
			"{\"9\":[],\"10\":2,\"4294967294\":1,\"b\":1,\"01\":0,\"4294967295\":2,\"-1\":0}");
	check_stringify("[1e400,-1e400,-0,1E2,0.10]", "[null,null,0,100,0.1]");
	check_stringify("{\"__proto__\":1,\"\":{}}", "{\"__proto__\":1,\"\":{}}");
}

static void check_source(const char *text, const char *want)
{
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer compact = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer whole = RV_BUFFER_INIT;
	const struct rv_json_node *root;

	rv_buffer_printf(&whole, "{ \"x\\u0041\" : 1 , \"id\" : %s }", text);
	root = rv_json_parse(doc, whole.data, whole.len, RV_JSON_DEFAULT, &err);
	if (root != NULL)
		rv_json_add_source(&out, doc, rv_json_get(root, "id"));
	tap_ok(root != NULL && is_text(&out, want), "source inside an object: %s", want);
	rv_buffer_clear(&out);
	root = parse(text);
	if (root != NULL)
		rv_json_add_source(&out, doc, root);
	rv_json_add_compact(&compact, text, strlen(text));
	tap_ok(root != NULL && is_text(&out, want) && compact.len > 0, "source alone: %s", want);
}

static void test_source(void)
{
	static const char *const same[] = { "null", "true", "false", "-0.0e-5", "12345678901234567890", "\"\"", "\"a\"",
					    "\"\\u0041\\\"\\\\\"", "\"\\\\\"", "[\"\\n\\\"\",{\"a\":1,\"a\":2}]", "{}",
					    "\"\\ud83d\\ude00\"" };

	for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
		check_source(same[i], same[i]);
	check_source("[ 1 , { \"a b\" :\t\"c \\\" d\" } ]", "[1,{\"a b\":\"c \\\" d\"}]");
	check_source("\"\\\"\\uD800\\\"\"", "\"\\\"\\ud800\\\"\"");
	check_source("[\"\\udfFF\", \"\\\\\\uDbff\"]", "[\"\\udfff\",\"\\\\\\udbff\"]");
}

static void check_strict(const char *text, enum rv_code code)
{
	const struct rv_json_node *root = rv_json_parse(doc, text, strlen(text), RV_JSON_STRICT, &err);

	tap_ok(code == RV_E_NONE ? root != NULL : root == NULL && err.code == code, "strict: %s", text);
	tap_ok(parse(text) != NULL, "not strict: %s", text);
}

static void test_strict(void)
{
	check_strict("{\"a\":1,\"b\":{\"a\":1}}", RV_E_NONE);
	check_strict("{\"a\":1,\"\\u0061\":2}", RV_E_REQUEST);
	check_strict("[{\"a\":1,\"b\":2,\"c\":{\"x\":0,\"y\":1,\"x\":0}}]", RV_E_REQUEST);
	check_strict("\"\\ud83d\\ude00\"", RV_E_NONE);
	check_strict("\"\\ude00\\ud83d\"", RV_E_REQUEST);
	check_strict("{\"\\udfff\":1}", RV_E_REQUEST);
	check_strict("9007199254740992", RV_E_NONE);
	check_strict("9007199254740993", RV_E_NUMBER);
	check_strict("[-9007199254740993]", RV_E_NUMBER);
	check_strict("18446744073709551616", RV_E_NONE);
	check_strict("18446744073709552000", RV_E_NUMBER);
	check_strict("0.1", RV_E_NONE);
	check_strict("1e23", RV_E_NONE);
}

static void check_integer(const char *text, bool good, int64_t want)
{
	int64_t value = 42;
	bool got = rv_json_integer(parse(text), &value);

	tap_ok(got == good && (!good || value == want), "integer: %s", text);
}

static void test_integers(void)
{
	check_integer("0", true, 0);
	check_integer("-0", true, 0);
	check_integer("-0.0", true, 0);
	check_integer("1.0", true, 1);
	check_integer("1e3", true, 1000);
	check_integer("10e-1", true, 1);
	check_integer("0.99999999999999999999", true, 1);
	check_integer("9007199254740991", true, INT64_C(9007199254740991));
	check_integer("-9007199254740991", true, -INT64_C(9007199254740991));
	check_integer("9007199254740992", false, 0);
	check_integer("9007199254740991.4", true, INT64_C(9007199254740991));
	check_integer("9007199254740991.5", false, 0);
	check_integer("1.5", false, 0);
	check_integer("1e400", false, 0);
	check_integer("\"1\"", false, 0);
}

static void check_refusal(const char *text, size_t len, size_t offset)
{
	char want[64];

	(void)snprintf(want, sizeof want, "byte %zu", offset);
	tap_ok(rv_json_parse(doc, text, len, RV_JSON_DEFAULT, &err) == NULL && err.code == RV_E_REQUEST &&
		       strstr(err.message, want) != NULL && rv_text_is_utf8(err.message, strlen(err.message)),
	       "refused with its offset: %s", err.message);
}

#define REFUSED(text, offset) check_refusal(text, sizeof(text) - 1, offset)

static void test_refusals(void)
{
	REFUSED("", 0);
	REFUSED("  ", 2);
	REFUSED("[1,", 3);
	REFUSED("{}\"abc", 2);
	REFUSED("[\"\xC0\xAF\"]", 2);
	REFUSED("[\"\xED\xA0\x80\"]", 2);
	REFUSED("[\f]", 1);
	REFUSED("\"\\ud800\\ud800\" \x01", 15);
	REFUSED("\xEF\xBB\xBF{}", 0);
	REFUSED("1 2", 2);
	REFUSED("1 \"a\\\"b\" ", 2);
	REFUSED("[1 true]", 3);
	REFUSED("{}{}", 2);
	REFUSED("[1\0]", 2);
	tap_ok(rv_json_parse(doc, "\xEF\xBB\xBF{}", 5, RV_JSON_BOM, &err) != NULL, "one byte order mark where allowed");
	tap_ok(rv_json_parse(doc, "\xEF\xBB\xBF\xEF\xBB\xBF{}", 8, RV_JSON_BOM, &err) == NULL, "but not two");
}

static void test_strings(void)
{
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer big = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer want = RV_BUFFER_INIT;

	rv_json_add_string(&out, "a\0\b\t\n\v\f\r\x1f\"\\/\x7f", 13);
	tap_ok(is_text(&out, "\"a\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/\x7f\""), "every kind of escape");
	rv_buffer_clear(&out);
	rv_json_add_string(&out, "\xE2\x80\xA8\xED\xBF\xBF\xED\x9F\xBF\xFFz\xC3", 12);
	tap_ok(is_text(&out, "\"\xE2\x80\xA8\\udfff\xED\x9F\xBF\xEF\xBF\xBDz\xEF\xBF\xBD\""),
	       "surrogates, and bytes that are none");
	rv_buffer_clear(&out);
	for (int i = 0; i < 5000; i++) {
		rv_buffer_add_string(&big, i % 3 == 0 ? "\xED\xA0\x80" : i % 3 == 1 ? "\xF0\x9F\x98\x80" : "\n");
		rv_buffer_add_string(&want, i % 3 == 0 ? "\\ud800" : i % 3 == 1 ? "\xF0\x9F\x98\x80" : "\\n");
	}
	rv_json_add_string(&out, big.data, big.len);
	tap_ok(out.len == want.len + 2 && memcmp(out.data + 1, want.data, want.len) == 0, "a long one in pieces");
}

/* A cap on the output is an ordinary error, at every size. */
static void test_caps(void)
{
	const char *text = "{\"b\":[1,2.5,\"x\\u0000y\"],\"a\":{\"c\":null}}";
	const struct rv_json_node *root = parse(text);
	bool good = root != NULL;

	for (size_t max = 1; good && max < 38; max++) {
		struct rv_buffer out;

		rv_buffer_init(&out, max);
		good = rv_json_canonical(root, &out, &err) != 0 && err.code == RV_E_NOMEM && out.len <= max;
		rv_buffer_release(&out);
	}
	tap_ok(good, "a full buffer is said");
}

/* ---- long strings, which yajl does not read ---- */

static unsigned next_random(unsigned *state, unsigned below)
{
	*state = *state * 1103515245U + 12345U;
	return (*state >> 16) % below;
}

static void add_filled(struct rv_buffer *text, unsigned *state)
{
	static const char *const odd[] = { "\\n", "\\\"", "\\\\", "\\u0041", "\\ud800", "\\ud83d\\ude00", "\xC3\xA9",
					   "\xF0\x9F\x98\x80", "\t", "\x01", "\\x", "\xFF", "\xED\xA0\x80", "\"", "{", "\\" };
	static const unsigned lengths[] = { 0, 1, 1022, 1023, 1024, 1025, 4000, 9000 };
	unsigned len = lengths[next_random(state, 8)];
	unsigned fill = next_random(state, 3);

	rv_buffer_add_byte(text, '"');
	for (unsigned i = 0; i < len; i++)
		rv_buffer_add(text, fill == 0 ? "\xC3\xBC" : "x", fill == 0 ? 2 : 1);
	if (next_random(state, 4) == 0) /* from the front: what is well-formed comes more often */
		rv_buffer_add_string(text, odd[next_random(state, next_random(state, 5) == 0 ? 16 : 8)]);
	for (unsigned i = next_random(state, 3); i > 0; i--)
		rv_buffer_add_byte(text, 'y');
	rv_buffer_add_byte(text, '"');
}

static void add_long_document(struct rv_buffer *text, unsigned *state)
{
	static const char *const between[] = { "0", "-1.5e3", "[]", "{}", "null", "9007199254740993", " [1 , 2]\n", "tru", "]", "" };

	rv_buffer_add_string(text, " {\"a\" : ");
	for (unsigned i = 1 + next_random(state, 6); i > 0; i--) {
		add_filled(text, state);
		rv_buffer_add_byte(text, ',');
		add_filled(text, state);
		rv_buffer_add_string(text, ":[ ");
		rv_buffer_add_string(text, between[next_random(state, next_random(state, 8) == 0 ? 10 : 7)]);
		rv_buffer_add_byte(text, ',');
		add_filled(text, state);
		rv_buffer_add_string(text, ", {\"k\": ");
		add_filled(text, state);
		rv_buffer_add_string(text, " }],\"b\":");
	}
	add_filled(text, state);
	rv_buffer_add_string(text, next_random(state, 20) == 0 ? "} \"" : "} ");
}

/* All that can be asked of a document, or the refusal. */
static void describe(struct rv_json_doc *of, const struct rv_buffer *text, unsigned flags, struct rv_buffer *out)
{
	struct rv_error reason = RV_ERROR_INIT;
	const struct rv_json_node *root = rv_json_parse(of, text->data, text->len, flags, &reason);

	if (root == NULL) {
		rv_buffer_printf(out, "%d %s", (int)reason.code, reason.message);
		return;
	}
	if (rv_json_canonical(root, out, &reason) != 0)
		rv_buffer_printf(out, "%s", reason.message);
	rv_json_add_source(out, of, root);
	for (const struct rv_json_node *at = rv_json_first(root); at != NULL; at = rv_json_next(at)) {
		struct rv_span name = rv_json_name(at);

		rv_buffer_add(out, name.data, name.len);
		rv_json_add_source(out, of, at);
		for (const struct rv_json_node *in = rv_json_first(at); in != NULL; in = rv_json_next(in))
			rv_json_add_source(out, of, in);
	}
}

static void test_long_strings(void)
{
	struct rv_json_doc *whole = rv_json_doc_new(&err);
	unsigned state = 1;
	int same = 0;
	int abridged = 0;
	int refused = 0;
	int count = 3000;

	if (!tap_ok(whole != NULL, "another document"))
		return;
	whole->whole = true;
	for (int i = 0; i < count; i++) {
		rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
		rv_auto_buffer struct rv_buffer got = RV_BUFFER_INIT;
		rv_auto_buffer struct rv_buffer want = RV_BUFFER_INIT;
		unsigned flags = i % 2 == 0 ? RV_JSON_DEFAULT : RV_JSON_STRICT;

		add_long_document(&text, &state);
		describe(doc, &text, flags, &got);
		describe(whole, &text, flags, &want);
		same += got.len == want.len && memcmp(got.data, want.data, want.len) == 0;
		abridged += doc->read != doc->text;
		refused += got.len < 300;
	}
	tap_ok(same == count, "with long strings left out and read: the same of %d", count);
	tap_ok(abridged > count / 5 && refused > count / 20 && refused < count * 4 / 5, "%d were abridged, %d refused", abridged, refused);
	rv_json_doc_free(whole);
}

/* Each byte is looked at a few times, and not once for each escape before it. */
static void test_many_escapes(void)
{
	static const char *const pieces[] = { "\\n", "\\\"", "\\\\", "\\u0041\xC3\xA9" };
	clock_t before = clock();

	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;

		rv_buffer_add_byte(&text, '"');
		for (int n = 0; n < 600000; n++)
			rv_buffer_add_string(&text, pieces[i]);
		rv_buffer_add_byte(&text, '"');
		tap_ok(rv_json_parse(doc, text.data, text.len, RV_JSON_DEFAULT, &err) != NULL, "600,000 times %s", pieces[i]);
	}
	tap_ok(clock() - before < 3 * CLOCKS_PER_SEC, "in time: %.2f s", (double)(clock() - before) / CLOCKS_PER_SEC);
}

int main(void)
{
	doc = rv_json_doc_new(&err);
	if (!tap_ok(doc != NULL, "a document"))
		return tap_end();
	test_documents();
	test_args();
	test_numbers();
	test_random_numbers();
	test_depth();
	test_width();
	test_stringify();
	test_source();
	test_strict();
	test_long_strings();
	test_many_escapes();
	test_integers();
	test_refusals();
	test_strings();
	test_caps();
	rv_json_doc_free(doc);
	return tap_end();
}

/* What passes over bytes by the vector, beside what looks at one after another: the quick look at JSON beside the
 * parser, on the vectors, on what is one byte away from them, and on texts made up; runs of plain bytes, escapes and
 * UTF-8 with something in every place of a vector. */
#include <stdint.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/plain.h"
#include "lib/base/text.h"
#include "lib/digest/digest.h"
#include "lib/json/json.h"
#include "lib/json/write.h"
#include "t/unit/tap.h"

#define LONGEST 150 /* bytes: more than two turns of the longest step, wherever they begin */

static struct rv_error err;
static struct rv_json_doc *doc;
static uint64_t seed;

static size_t random_below(size_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (size_t)(seed % limit);
}

/* ---- the quick look ---- */

/* Whatever the look is sure of, the parser says too; and of a compact text nothing changes. */
static bool agrees(const char *text, size_t len, size_t *sure)
{
	rv_auto_buffer struct rv_buffer compact = RV_BUFFER_INIT;
	enum rv_json_shape shape = rv_json_skim(text, len);
	bool same;

	if (shape == RV_JSON_UNSURE)
		return true;
	(*sure)++;
	if (rv_json_parse(doc, text, len, RV_JSON_DEFAULT, &err) == NULL)
		return false;
	rv_json_add_compact(&compact, text, len);
	same = compact.len == len && memcmp(compact.data, text, len) == 0;
	return same == (shape == RV_JSON_COMPACT);
}

static void show(const char *text, size_t len)
{
	rv_auto_buffer struct rv_buffer escaped = RV_BUFFER_INIT;

	rv_text_add_escaped(&escaped, text, len);
	tap_note("%.*s", (int)escaped.len, escaped.data != NULL ? escaped.data : "");
}

/* Bytes that mean something in JSON, and some that do not belong there. */
static char odd_byte(void)
{
	static const char bytes[] = "\"\\/{}[]:,0123456789-+.eEtrufalsn bD89Cc \n\t\r\v\f\x01\x1f\x7f\x80\xbf\xc3\xa9\xed\xa0\xf0\x9f\xff";

	return bytes[random_below(sizeof bytes)]; /* the NUL too */
}

/* The text, and a number of texts that are near it. */
static bool vary(const char *text, size_t len, size_t *sure)
{
	rv_auto_free char *copy = malloc(len + 1);
	bool good = copy != NULL && agrees(text, len, sure);

	for (int i = 0; i < 40 && good && len > 0; i++) {
		size_t at = random_below(len);
		size_t tail = len - at;
		size_t now = len;

		memcpy(copy, text, len);
		switch (random_below(4)) {
		case 0:
			now = at;
			break;
		case 1:
			memmove(copy + at + 1, copy + at, tail);
			copy[at] = odd_byte();
			now++;
			break;
		case 2:
			memmove(copy + at, copy + at + 1, tail - 1);
			now--;
			break;
		default:
			copy[at] = odd_byte();
		}
		good = agrees(copy, now, sure);
		if (!good)
			show(copy, now);
	}
	return good;
}

static void test_vectors(void)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_json_doc *vector = rv_json_doc_new(&err);
	char path[4096];
	size_t sure = 0;
	size_t lines = 0;
	bool good = true;

	(void)snprintf(path, sizeof path, "%s/t/vectors/json.jsonl", tap_source());
	if (!tap_ok(vector != NULL && rv_io_read_file(path, &text, &err) == 0, "the vectors are there"))
		return;
	for (size_t at = 0; at < text.len && good;) {
		const char *end = memchr(text.data + at, '\n', text.len - at);
		size_t len = end != NULL ? (size_t)(end - text.data) - at : text.len - at;
		rv_auto_buffer struct rv_buffer input = RV_BUFFER_INIT;
		struct rv_span encoded = rv_json_string(rv_json_get(rv_json_parse(vector, text.data + at, len, RV_JSON_DEFAULT, &err),
								    "inputBase64"));

		good = rv_base64_decode(&input, encoded.data, encoded.len, &err) == 0 &&
		       vary(input.data != NULL ? input.data : "", input.len, &sure);
		lines++;
		at += len + 1;
	}
	tap_ok(good && lines > 100 && sure > lines, "the look and the parser agree on the vectors and near them");
	tap_note("%zu vectors, sure of %zu texts (seed %llu)", lines, sure, (unsigned long long)seed);
	rv_json_doc_free(vector);
}

static void add_random_string(struct rv_buffer *out)
{
	static const char *const pieces[] = {
		"plain text of more than sixteen bytes", "a", " ", "\\n", "\\\"", "\\\\", "\\/", "\\u00e9", "\\ud83d\\ude00", "\\ud800",
		"\\udc00", "\\ud800\\ud800\\udc00", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xEF\xBB\xBF", "\x7f", "\\u12g4", "\\x", "\t",
	};

	rv_buffer_add_byte(out, '"');
	for (size_t n = random_below(8); n > 0; n--) /* what is wrong is at the end of the list, and rare */
		rv_buffer_add_string(out, pieces[random_below(random_below(6) == 0 ? 20 : 9)]);
	rv_buffer_add_byte(out, '"');
}

static void add_random_value(struct rv_buffer *out, unsigned depth)
{
	static const char *const scalars[] = { "0", "-0", "12", "1.50", "-1e+9", "2E-7", "1e400", "true", "false", "null", "01", "1.", "+1", "nul" };
	static const char *const spaces[] = { "", "", "", " ", "\n", "\t \r", "\v" };
	size_t kind = random_below(depth < 5 ? 6 : 3);
	bool object = kind == 4;

	if (kind == 0) {
		rv_buffer_add_string(out, scalars[random_below(random_below(20) == 0 ? 14 : 10)]);
	} else if (kind < 3) {
		add_random_string(out);
	} else {
		size_t count = random_below(5);

		rv_buffer_add_byte(out, object ? '{' : '[');
		for (size_t i = 0; i < count; i++) {
			rv_buffer_add_string(out, i > 0 ? "," : "");
			if (object) {
				add_random_string(out);
				rv_buffer_add_byte(out, ':');
			}
			rv_buffer_add_string(out, random_below(6) == 0 ? spaces[random_below(random_below(9) == 0 ? 7 : 6)] : "");
			add_random_value(out, depth + 1); /* NOLINT(misc-no-recursion): of five levels */
		}
		rv_buffer_add_byte(out, object ? '}' : ']');
	}
}

static void test_random(void)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	size_t sure = 0;
	bool good = true;

	for (int i = 0; i < 4000 && good; i++) {
		rv_buffer_clear(&text);
		add_random_value(&text, 0);
		good = vary(text.data, text.len, &sure);
		if (!good)
			show(text.data, text.len);
	}
	tap_ok(good && sure > 4000, "and on texts made up");
	tap_note("sure of %zu", sure);
}

static void test_shapes(void)
{
	static const struct {
		const char *text;
		enum rv_json_shape shape;
	} cases[] = {
		{ "1", RV_JSON_COMPACT },
		{ "{\"a\":[1,-2.5e-7,true,false,null,\"\\u00e9\\ud83d\\ude00\xE2\x82\xAC\",{}],\"b\":[]}", RV_JSON_COMPACT },
		{ "{\"a\": 1}", RV_JSON_SPACED },
		{ " 1", RV_JSON_SPACED },
		{ "1\n", RV_JSON_SPACED },
		{ "[ ]", RV_JSON_SPACED },
		{ "\"a b\"", RV_JSON_COMPACT },
		{ "", RV_JSON_UNSURE },
		{ "\"\\ud800\"", RV_JSON_UNSURE },
		{ "\"\xED\xA0\x80\"", RV_JSON_UNSURE },
		{ "\xEF\xBB\xBF" "1", RV_JSON_UNSURE },
		{ "1 2", RV_JSON_UNSURE },
		{ "[1,]", RV_JSON_UNSURE },
		{ "{\"a\":1,}", RV_JSON_UNSURE },
		{ "[1", RV_JSON_UNSURE },
		{ "]", RV_JSON_UNSURE },
		{ "[1}", RV_JSON_UNSURE },
		{ "\"", RV_JSON_UNSURE },
		{ "\"\\", RV_JSON_UNSURE },
		{ "\"\\u12", RV_JSON_UNSURE },
		{ "\"\\ud83d\\u0041\"", RV_JSON_UNSURE },
		{ "\"\\udc00\\udc00\"", RV_JSON_UNSURE },
		{ "[[{\"a\":[{}]},[1]],2]", RV_JSON_COMPACT },
	};
	char deep[4096];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		tap_ok(rv_json_skim(cases[i].text, strlen(cases[i].text)) == cases[i].shape, "shape %zu", i);
	for (size_t depth = 1023; depth <= 1026; depth++) {
		memset(deep, '[', depth);
		memset(deep + depth, ']', depth);
		tap_ok(rv_json_skim(deep, 2 * depth) == (depth <= 1024 ? RV_JSON_COMPACT : RV_JSON_UNSURE), "%zu deep", depth);
	}
	memset(deep, '[', 512);
	memset(deep + 512, '{', 512);
	tap_ok(rv_json_skim(deep, 1024) == RV_JSON_UNSURE, "an end inside");
}

/* ---- runs of bytes ---- */

static size_t plain_one_by_one(const char *text, size_t len)
{
	size_t at = 0;

	while (at < len && (unsigned char)text[at] >= 0x20 && (unsigned char)text[at] < 0x80 && text[at] != '"' && text[at] != '\\')
		at++;
	return at;
}

/* Each byte in each place of a text of each length. */
static void test_plain(void)
{
	char text[LONGEST];
	bool good = true;

	for (size_t len = 0; len < LONGEST; len += len < 70 ? 1 : 13) {
		for (size_t at = 0; at < len; at++) {
			for (int byte = 0; byte < 256; byte++) {
				memset(text, 'x', sizeof text);
				text[at] = (char)byte;
				good = good && rv_plain_prefix(text, len) == plain_one_by_one(text, len);
			}
		}
	}
	tap_ok(good, "plain bytes");
}

static void add_one_by_one(struct rv_buffer *out, const char *text, size_t len)
{
	rv_buffer_add_byte(out, '"');
	for (size_t i = 0; i < len; i++) {
		const char *letter = text[i] != '\0' ? strchr("\bb\tt\nn\ff\rr\"\"\\\\", text[i]) : NULL;

		if (letter != NULL && strchr("\b\t\n\f\r\"\\", text[i]) != NULL)
			rv_buffer_printf(out, "\\%c", letter[1]);
		else if ((unsigned char)text[i] < 0x20)
			rv_buffer_printf(out, "\\u%04x", (unsigned)(unsigned char)text[i]);
		else
			rv_buffer_add(out, text + i, 1);
	}
	rv_buffer_add_byte(out, '"');
}

/* Two characters that are not plain, anywhere in a text; written, read, and written again. */
static void test_strings(void)
{
	static const char *const marks[] = { "\n", "\"", "\\", "\x01", "\x1f", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\x7f", "/" };
	bool good = true;

	for (size_t first = 0; first < 80; first++) {
		for (size_t mark = 0; mark < 10 * 10; mark++) {
			rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT, want = RV_BUFFER_INIT, got = RV_BUFFER_INIT, again = RV_BUFFER_INIT;
			const struct rv_json_node *node;

			for (size_t i = 0; i < first; i++)
				rv_buffer_add_byte(&text, 'a');
			rv_buffer_add_string(&text, marks[mark % 10]);
			for (size_t i = 0; i < mark % 37; i++)
				rv_buffer_add_byte(&text, 'b');
			rv_buffer_add_string(&text, marks[mark / 10]);
			add_one_by_one(&want, text.data, text.len);
			rv_json_add_string(&got, text.data, text.len);
			node = rv_json_parse(doc, got.data, got.len, RV_JSON_DEFAULT, &err);
			good = good && got.len == want.len && memcmp(got.data, want.data, got.len) == 0 && node != NULL &&
			       rv_span_equal(rv_json_string(node), (struct rv_span){ text.data, text.len }) &&
			       rv_json_canonical(node, &again, &err) == 0 && again.len == got.len &&
			       memcmp(again.data, got.data, got.len) == 0 && rv_json_skim(got.data, got.len) == RV_JSON_COMPACT;
		}
	}
	tap_ok(good, "escapes in every place");
}

/* What the parser refuses, in every place of a vector. */
static void test_refused(void)
{
	static const char *const wrong[] = { "\x01", "\n", "\v", "\x80", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\\x", "\\u12g" };
	bool good = true;

	for (size_t at = 0; at < 80; at++) {
		for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
			rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;

			rv_buffer_add_byte(&text, '"');
			for (size_t n = 0; n < at; n++)
				rv_buffer_add_byte(&text, 'a');
			rv_buffer_add_string(&text, wrong[i]);
			rv_buffer_add_string(&text, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"");
			good = good && rv_json_parse(doc, text.data, text.len, RV_JSON_DEFAULT, &err) == NULL &&
			       rv_json_skim(text.data, text.len) == RV_JSON_UNSURE;
		}
	}
	tap_ok(good, "what is wrong, in every place");
}

/* What only the census of the parser's text sees: a control byte between tokens, and a lone surrogate. */
static void test_census(void)
{
	bool good = true;

	for (size_t at = 0; at < 80; at++) {
		rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT, out = RV_BUFFER_INIT;
		const struct rv_json_node *node;

		rv_buffer_printf(&text, "[%*s\v%40s1]", (int)at, "", "");
		good = good && rv_json_parse(doc, text.data, text.len, RV_JSON_DEFAULT, &err) == NULL;
		rv_buffer_clear(&text);
		rv_buffer_add_byte(&text, '"');
		for (size_t n = 0; n < at; n++)
			rv_buffer_add_byte(&text, 'a');
		rv_buffer_add_string(&text, "\\ud800bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"");
		node = rv_json_parse(doc, text.data, text.len, RV_JSON_DEFAULT, &err);
		good = good && node != NULL && rv_json_canonical(node, &out, &err) == 0 && out.len == text.len &&
		       memcmp(out.data, text.data, out.len) == 0;
	}
	tap_ok(good, "a control byte between tokens and a lone surrogate, in every place");
}

static void test_utf8(void)
{
	static const struct {
		const char *bytes;
		bool valid;
	} cases[] = {
		{ "\xC2\x80", true }, { "\xDF\xBF", true }, { "\xE0\xA0\x80", true }, { "\xEF\xBF\xBF", true }, { "\xF0\x90\x80\x80", true },
		{ "\xF4\x8F\xBF\xBF", true }, { "\xC1\xBF", false }, { "\xE0\x9F\xBF", false }, { "\xED\xA0\x80", false },
		{ "\xF4\x90\x80\x80", false }, { "\x80", false }, { "\xC2", false }, { "\xE2\x82", false }, { "\xFF", false },
	};
	bool good = true;

	for (size_t at = 0; at < 80; at++) {
		for (size_t behind = 0; behind < 40; behind += 3) {
			for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
				char text[LONGEST];
				size_t len = strlen(cases[i].bytes);

				memset(text, 'x', sizeof text);
				memcpy(text + at, cases[i].bytes, len);
				good = good && rv_text_utf8_prefix(text, at + len + behind) ==
						       (cases[i].valid ? at + len + behind : at);
			}
		}
	}
	tap_ok(good, "UTF-8 in every place");
}

int main(void)
{
	doc = rv_json_doc_new(&err);
	if (!tap_ok(doc != NULL && rv_random(&seed, sizeof seed, &err) == 0, "a document and a seed"))
		return tap_end();
	seed |= 1;
	tap_note("seed %llu", (unsigned long long)seed);
	test_vectors();
	test_random();
	test_shapes();
	test_plain();
	test_strings();
	test_refused();
	test_census();
	test_utf8();
	rv_json_doc_free(doc);
	return tap_end();
}

#include "lib/json/write.h"

#include <endian.h>
#include <string.h>

#include "lib/base/plain.h"
#include "lib/json/tree.h"

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)
#define LONGEST_ESCAPE 6
#define ONE_GO ((size_t)4096) /* bytes whose longest escapes are reserved at once */

/* Does a byte of `word` need a look: below 0x20, a quote, a backslash, above 0x7F?  May say yes
 * too often, never too seldom. */
static bool word_is_plain(uint64_t word)
{
	uint64_t quote = word ^ (ONES * '"');
	uint64_t backslash = word ^ (ONES * '\\');

	return ((word | (word - ONES * 0x20) | (quote - ONES) | (backslash - ONES)) & HIGHS) == 0;
}

/* Bytes of text[*at, end) that need no look, to `to`, which has a word of room more than they need. */
static char *put_plain(char *to, const char *text, size_t *at, size_t end)
{
	size_t i = *at;

#ifdef __SSE2__
	for (; end - i >= 16; i += 16, to += 16) {
		__m128i bytes = rv_plain_load(text + i);
		unsigned stops = rv_plain_stops(bytes);

		_mm_storeu_si128((__m128i *)(void *)to, bytes);
		if (stops != 0) {
			*at = i + (size_t)__builtin_ctz(stops);
			return to + __builtin_ctz(stops);
		}
	}
#endif
	for (; end - i >= sizeof(uint64_t); i += sizeof(uint64_t), to += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, text + i, sizeof word);
		if (!word_is_plain(word))
			break;
		memcpy(to, &word, sizeof word);
	}
	while (i < end && rv_plain_byte(text[i]))
		*to++ = text[i++];
	*at = i;
	return to;
}

static char *put_unit(char *to, unsigned unit)
{
	static const char digits[] = "0123456789abcdef";

	to[0] = '\\';
	to[1] = 'u';
	to[2] = digits[unit >> 12 & 15];
	to[3] = digits[unit >> 8 & 15];
	to[4] = digits[unit >> 4 & 15];
	to[5] = digits[unit & 15];
	return to + 6;
}

static char *put_escape(char *to, unsigned char c)
{
	static const char letters[] = { ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
					['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\' };

	if (letters[c] == 0)
		return put_unit(to, c);
	to[0] = '\\';
	to[1] = letters[c];
	return to + 2;
}

static bool is_surrogate(const unsigned char *at, size_t left)
{
	return left >= 3 && at[0] == 0xED && at[1] >= 0xA0 && at[1] <= 0xBF && at[2] >= 0x80 && at[2] <= 0xBF;
}

/* The bytes of a character that begins no strict UTF-8: a lone surrogate, or nothing.  Moves *at. */
static char *put_invalid(char *to, const unsigned char *text, size_t len, size_t *at)
{
	const unsigned char *c = text + *at;

	if (is_surrogate(c, len - *at)) {
		*at += 3;
		return put_unit(to, 0xD000U | (c[1] & 0x3FU) << 6 | (c[2] & 0x3FU));
	}
	*at += 1;
	memcpy(to, "\xEF\xBF\xBD", 3);
	return to + 3;
}

struct source {
	const char *text;
	size_t len;
	size_t at;
	size_t valid; /* up to here all is known to be WTF-8 */
};

/* Up to `end` at `to`, which has room; stops there or behind a character that reaches beyond it. */
static char *put_piece(char *to, struct source *from, size_t end)
{
	const unsigned char *bytes = (const unsigned char *)from->text;

	while (from->at < end) {
		unsigned char c;

		to = put_plain(to, from->text, &from->at, end);
		if (from->at >= end)
			break;
		c = bytes[from->at];
		if (c < 0x80) {
			to = put_escape(to, c);
			from->at++;
			continue;
		}
		if (from->at >= from->valid)
			from->valid = from->at + rv_text_utf8_prefix(from->text + from->at, from->len - from->at);
		if (from->at >= from->valid || is_surrogate(bytes + from->at, from->len - from->at)) {
			to = put_invalid(to, bytes, from->len, &from->at);
			continue;
		}
		do
			*to++ = from->text[from->at++];
		while (from->at < from->valid && from->at < end && bytes[from->at] >= 0x80 && bytes[from->at] != 0xED);
	}
	return to;
}

static void add_string(struct rv_buffer *out, struct source *from)
{
	if (from->len > ONE_GO)
		(void)rv_buffer_reserve(out, from->len + 2); /* at once, and not by doubling */
	do {
		size_t left = from->len - from->at;
		size_t piece = left < ONE_GO ? left : ONE_GO;
		char *room = rv_buffer_reserve(out, piece * LONGEST_ESCAPE + 2 + sizeof(uint64_t));
		char *to = room;

		if (room == NULL)
			return;
		if (from->at == 0)
			*to++ = '"';
		to = put_piece(to, from, from->at + piece);
		if (from->at >= from->len)
			*to++ = '"';
		rv_buffer_commit(out, (size_t)(to - room));
	} while (from->at < from->len);
}

void rv_json_add_string(struct rv_buffer *out, const char *text, size_t len)
{
	struct source from = { .text = text, .len = len, .at = 0, .valid = 0 };

	add_string(out, &from);
}

/* All of a short text that needs no look, in words, with the quotes; NULL where it does need one. */
static char *put_short(char *to, struct rv_span text)
{
	size_t at = 0;
	uint64_t word;

	*to++ = '"';
	for (; text.len - at >= sizeof word; at += sizeof word) {
		memcpy(&word, text.data + at, sizeof word);
		if (!word_is_plain(word))
			return NULL;
		memcpy(to + at, &word, sizeof word);
	}
	if (at < text.len) {
		uint64_t beyond = UINT64_MAX << 8 * (text.len - at);

		memcpy(&word, text.data + at, sizeof word); /* RV_SPARE: there is a word's room behind it */
		word = le64toh(word);
		if (!word_is_plain((word & ~beyond) | (ONES * ' ' & beyond)))
			return NULL;
		word = htole64(word);
		memcpy(to + at, &word, sizeof word);
	}
	to[text.len] = '"';
	return to + text.len + 1;
}

void rv_json_add_wtf8(struct rv_buffer *out, struct rv_span text)
{
	struct source from = { .text = text.data, .len = text.len, .at = 0, .valid = text.len };

	if (text.len <= ONE_GO) {
		char *room = rv_buffer_reserve(out, text.len + 2 + sizeof(uint64_t));
		char *end = room != NULL ? put_short(room, text) : NULL;

		if (end != NULL) {
			rv_buffer_commit(out, (size_t)(end - room));
			return;
		}
	}
	add_string(out, &from);
}

void rv_json_add_name(struct rv_buffer *out, const char *name)
{
	if (out->len > 0 && out->data[out->len - 1] != '{' && out->data[out->len - 1] != '[')
		rv_buffer_add_byte(out, ',');
	rv_buffer_add_byte(out, '"');
	rv_buffer_add_string(out, name);
	rv_buffer_add(out, "\":", 2);
}

void rv_json_member_string(struct rv_buffer *out, const char *name, const char *text)
{
	rv_json_member_span(out, name, rv_span_of(text));
}

void rv_json_member_span(struct rv_buffer *out, const char *name, struct rv_span text)
{
	rv_json_add_name(out, name);
	rv_json_add_string(out, text.data, text.len);
}

void rv_json_member_int(struct rv_buffer *out, const char *name, int64_t value)
{
	rv_json_add_name(out, name);
	rv_json_add_int(out, value);
}

void rv_json_member_bool(struct rv_buffer *out, const char *name, bool value)
{
	rv_json_add_name(out, name);
	rv_buffer_add_string(out, value ? "true" : "false");
}

void rv_json_member_null(struct rv_buffer *out, const char *name)
{
	rv_json_add_name(out, name);
	rv_buffer_add(out, "null", 4);
}

void rv_json_member_string_or_null(struct rv_buffer *out, const char *name, const char *text)
{
	if (text != NULL)
		rv_json_member_string(out, name, text);
	else
		rv_json_member_null(out, name);
}

void rv_json_member_raw(struct rv_buffer *out, const char *name, struct rv_span json)
{
	rv_json_add_name(out, name);
	rv_buffer_add(out, json.data, json.len);
}

void rv_json_add_int(struct rv_buffer *out, int64_t value)
{
	char digits[24];
	char *at = digits + sizeof digits;
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do {
		*--at = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (value < 0)
		*--at = '-';
	rv_buffer_add(out, at, (size_t)(digits + sizeof digits - at));
}

static bool is_json_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Bytes from within a string up to a lone surrogate, or up to and with the closing quote (*done). */
static size_t string_length(const char *text, size_t len, bool *done)
{
	size_t at = 0;

	*done = false;
	while (at < len && !*done) {
		at += rv_plain_prefix(text + at, len - at);
		if (at == len || is_surrogate((const unsigned char *)text + at, len - at))
			break;
		*done = text[at] == '"';
		at += text[at] == '\\' && len - at > 1 ? 2 : 1;
	}
	return at;
}

static size_t add_compact_string(struct rv_buffer *out, const char *text, size_t len)
{
	size_t at = 1;
	bool done = false;

	rv_buffer_add_byte(out, '"');
	while (at < len && !done) {
		size_t run = string_length(text + at, len - at, &done);
		char escape[LONGEST_ESCAPE];

		rv_buffer_add(out, text + at, run);
		at += run;
		if (at < len && !done) {
			(void)put_invalid(escape, (const unsigned char *)text, len, &at);
			rv_buffer_add(out, escape, sizeof escape);
		}
	}
	return at;
}

void rv_json_add_compact(struct rv_buffer *out, const char *bytes, size_t len)
{
	size_t at = 0;

	if (len >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
		at = 3;
	while (at < len) {
		size_t run = 0;

		while (at < len && is_json_space(bytes[at]))
			at++;
		while (at + run < len && bytes[at + run] != '"' && !is_json_space(bytes[at + run]))
			run++;
		rv_buffer_add(out, bytes + at, run);
		at += run;
		if (at < len && bytes[at] == '"')
			at += add_compact_string(out, bytes + at, len - at);
	}
}

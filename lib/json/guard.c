/*
 * The prepass.  yajl takes some texts that JSON.parse refuses, and changes lone surrogates:
 *  - bytes that are no strict UTF-8;
 *  - VT and FF between tokens (inside a string they are refused as control bytes anyway, so
 *    that one rule does: neither may stand anywhere);
 *  - \ud800 without its second half becomes a question mark.  Here its three raw bytes take the
 *    place of the escape, which no strict UTF-8 contains, so nothing can collide with it.
 * (That yajl also takes a string that does not end, behind the value, is found when it is done.)
 */
#include "lib/json/tree.h"

#include <string.h>

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

struct census {
	uint64_t high;      /* non-zero: a byte of 0x80 or more */
	uint64_t control;   /* a byte below 0x20 */
	uint64_t backslash;
};

/* The high bit of each byte of `word` that is zero.  Exact for each byte: no carry crosses. */
static uint64_t zero_bytes(uint64_t word)
{
	return ~(((word & ~HIGHS) + ~HIGHS) | word | ~HIGHS);
}

static void count_word(struct census *census, uint64_t word)
{
	census->high |= word & HIGHS;
	census->control |= zero_bytes(word & (ONES * 0xE0));
	census->backslash |= zero_bytes(word ^ (ONES * '\\'));
}

static void take_census(const char *text, size_t len, struct census *census)
{
	uint64_t word;
	size_t at = 0;

	memset(census, 0, sizeof *census);
	for (; len - at >= sizeof word; at += sizeof word) {
		memcpy(&word, text + at, sizeof word);
		count_word(census, word);
	}
	if (at < len) {
		word = ONES * ' ';
		memcpy(&word, text + at, len - at);
		count_word(census, word);
	}
}

static void refuse(struct rv_guard *guard, size_t offset, const char *reason)
{
	guard->reason = reason;
	guard->offset = offset;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The code unit of the \uXXXX at `at`, or -1. */
static int unit_at(const char *text, size_t len, size_t at)
{
	int unit = 0;

	if (len - at < 6 || text[at] != '\\' || text[at + 1] != 'u')
		return -1;
	for (size_t i = 2; i < 6; i++) {
		int digit = hex_value(text[at + i]);

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

/* The walk over escapes: reads at `in`, writes at `out` <= in once something became shorter. */
struct walk {
	char *text;
	size_t len;
	size_t in;
	size_t out;
};

static void copy(struct walk *walk, size_t count)
{
	if (walk->in != walk->out)
		memmove(walk->text + walk->out, walk->text + walk->in, count);
	walk->in += count;
	walk->out += count;
}

static void copy_escape(struct walk *walk, struct rv_guard *guard)
{
	size_t left = walk->len - walk->in;
	int unit = unit_at(walk->text, walk->len, walk->in);

	if (unit < 0xD800 || unit > 0xDFFF) {
		copy(walk, left < 2 ? left : 2);
		return;
	}
	if (unit < 0xDC00) {
		int low = unit_at(walk->text, walk->len, walk->in + 6);

		if (low >= 0xDC00 && low <= 0xDFFF) {
			copy(walk, 12);
			return;
		}
	}
	if (!guard->lone) {
		guard->lone = true;
		guard->first_lone = walk->in;
	}
	walk->text[walk->out++] = (char)0xED;
	walk->text[walk->out++] = (char)(0x80 | (unit >> 6 & 0x3F));
	walk->text[walk->out++] = (char)(0x80 | (unit & 0x3F));
	walk->in += 6;
}

/* Outside of strings there is no backslash in what yajl accepts, so strings need not be told apart. */
static void walk_escapes(char *text, struct rv_guard *guard)
{
	struct walk walk = { .text = text, .len = guard->len, .in = 0, .out = 0 };

	while (walk.in < walk.len) {
		const char *next = memchr(text + walk.in, '\\', walk.len - walk.in);

		copy(&walk, next != NULL ? (size_t)(next - text) - walk.in : walk.len - walk.in);
		if (next != NULL)
			copy_escape(&walk, guard);
	}
	guard->len = walk.out;
}

void rv_guard_text(char *text, size_t len, struct rv_guard *guard)
{
	struct census census;

	*guard = (struct rv_guard){ .len = len };
	take_census(text, len, &census);
	if (census.high != 0) {
		size_t good = rv_text_utf8_prefix(text, len);

		if (good != len) {
			refuse(guard, good, "a byte that is not UTF-8");
			return;
		}
	}
	if (census.control != 0) {
		for (size_t i = 0; i < len; i++) {
			if (text[i] == '\v' || text[i] == '\f') {
				refuse(guard, i, "a control byte");
				return;
			}
		}
	}
	guard->escapes = census.backslash != 0;
	if (guard->escapes)
		walk_escapes(text, guard);
}

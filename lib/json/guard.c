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
#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

/* All that a vector can tell of; what is left at the end is less than one.  How many bytes it was. */
static size_t take_vectors(const char *text, size_t len, struct census *census)
{
	size_t at = 0;

#ifdef __SSE2__
	__m128i high = _mm_setzero_si128();
	__m128i control = high;
	__m128i backslash = high;

	for (; len - at >= 16; at += 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(text + at));

		high = _mm_or_si128(high, bytes);
		control = _mm_or_si128(control, _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes));
		backslash = _mm_or_si128(backslash, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
	}
	census->high = (unsigned)_mm_movemask_epi8(high);
	census->control = (unsigned)_mm_movemask_epi8(control);
	census->backslash = (unsigned)_mm_movemask_epi8(backslash);
#else
	(void)text;
	(void)len;
	(void)census;
#endif
	return at;
}

static void take_census(const char *text, size_t len, struct census *census)
{
	uint64_t word;
	size_t at;

	memset(census, 0, sizeof *census);
	at = take_vectors(text, len, census);
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

int rv_json_unit_at(const char *text, size_t len, size_t at)
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
	int unit = rv_json_unit_at(walk->text, walk->len, walk->in);

	if (unit < 0xD800 || unit > 0xDFFF) {
		copy(walk, left < 2 ? left : 2);
		return;
	}
	if (unit < 0xDC00) {
		int low = rv_json_unit_at(walk->text, walk->len, walk->in + 6);

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

bool rv_guard_has_control(const char *text, size_t len)
{
	struct census census;

	take_census(text, len, &census);
	return census.control != 0;
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

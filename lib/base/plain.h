/*
 * Plain bytes of a JSON string: printable ASCII but for the quote and the backslash, and DEL.  Nearly all that is
 * read and written here is long runs of them, and nothing is to be done about any of them: so they are passed over
 * by the vector.
 */
#ifndef RV_BASE_PLAIN_H
#define RV_BASE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static inline bool rv_plain_byte(char c)
{
	return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

#ifdef __SSE2__
/* Which bytes are not plain: all bits of theirs are set.  Signed: below the space are the controls, and all that is
 * not ASCII. */
static inline __m128i rv_plain_others(__m128i bytes)
{
	__m128i stop = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));

	return _mm_or_si128(stop, _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)));
}

/* The same, a bit for each byte, the first is the lowest. */
static inline unsigned rv_plain_stops(__m128i bytes)
{
	return (unsigned)_mm_movemask_epi8(rv_plain_others(bytes));
}

static inline __m128i rv_plain_load(const char *at)
{
	return _mm_loadu_si128((const __m128i *)(const void *)at);
}
#endif

/* How many bytes at the beginning of a text are plain. */
static inline size_t rv_plain_prefix(const char *text, size_t len)
{
	size_t at = 0;

#ifdef __SSE2__
	for (; len - at >= 64; at += 64) {
		__m128i low = _mm_or_si128(rv_plain_others(rv_plain_load(text + at)), rv_plain_others(rv_plain_load(text + at + 16)));
		__m128i high = _mm_or_si128(rv_plain_others(rv_plain_load(text + at + 32)), rv_plain_others(rv_plain_load(text + at + 48)));

		if (_mm_movemask_epi8(_mm_or_si128(low, high)) != 0)
			break;
	}
	for (; len - at >= 16; at += 16) {
		unsigned stops = rv_plain_stops(rv_plain_load(text + at));

		if (stops != 0)
			return at + (size_t)__builtin_ctz(stops);
	}
#endif
	while (at < len && rv_plain_byte(text[at]))
		at++;
	return at;
}

#endif

#include "lib/base/text.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

struct rv_span rv_span_of(const char *text)
{
	return (struct rv_span){ text, strlen(text) };
}

bool rv_span_equal(struct rv_span a, struct rv_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* One character at `at` with `left` > 0 bytes: its length if valid, else 0 with `*bad` the
 * length of the maximal subpart that a decoder replaces by one U+FFFD (Unicode 3.9, U+FFFD
 * substitution; WHATWG Encoding). */
static size_t utf8_step(const unsigned char *at, size_t left, uint32_t *point, size_t *bad)
{
	unsigned char low = 0x80;
	unsigned char high = 0xBF;
	size_t more;
	uint32_t value;

	*bad = 1;
	if (at[0] < 0x80) {
		*point = at[0];
		return 1;
	}
	if (at[0] < 0xC2 || at[0] > 0xF4)
		return 0;
	more = at[0] >= 0xF0 ? 3 : at[0] >= 0xE0 ? 2 : 1;
	value = at[0] & (0x3FU >> more);
	if (at[0] == 0xE0)
		low = 0xA0;
	else if (at[0] == 0xED)
		high = 0x9F;
	else if (at[0] == 0xF0)
		low = 0x90;
	else if (at[0] == 0xF4)
		high = 0x8F;
	for (size_t i = 1; i <= more; i++) {
		if (i == left || at[i] < low || at[i] > high) {
			*bad = i;
			return 0;
		}
		value = value << 6 | (at[i] & 0x3FU);
		low = 0x80;
		high = 0xBF;
	}
	*point = value;
	return more + 1;
}

/* The length of a character of two or three bytes whose lead puts no limit on the second; else 0. */
static inline size_t common_length(const unsigned char *at, size_t left)
{
	if (at[0] >= 0xC2 && at[0] < 0xE0 && left >= 2 && (at[1] & 0xC0) == 0x80)
		return 2;
	if (at[0] > 0xE0 && at[0] < 0xF0 && at[0] != 0xED && left >= 3 && (at[1] & 0xC0) == 0x80 &&
	    (at[2] & 0xC0) == 0x80)
		return 3;
	return 0;
}

/* Bytes of ASCII; where there are no vectors only whole words of them, and what is left is looked at one by one. */
static inline size_t ascii_length(const unsigned char *bytes, size_t len)
{
	size_t at = 0;
	uint64_t word;

#ifdef __SSE2__
	for (; len - at >= 16; at += 16) {
		unsigned high = (unsigned)_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)(const void *)(bytes + at)));

		if (high != 0)
			return at + (size_t)__builtin_ctz(high);
	}
#endif
	for (; len - at >= sizeof word; at += sizeof word) {
		memcpy(&word, bytes + at, sizeof word);
		if ((word & UINT64_C(0x8080808080808080)) != 0)
			break;
	}
	return at;
}

size_t rv_text_utf8_prefix(const char *text, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t at = 0;

	while (at < len) {
		uint32_t point;
		size_t bad;
		size_t n;

		at += ascii_length(bytes + at, len - at);
		if (at == len)
			break;
		n = common_length(bytes + at, len - at);
		if (n == 0)
			n = utf8_step(bytes + at, len - at, &point, &bad);
		if (n == 0)
			break;
		at += n;
	}
	return at;
}

bool rv_text_is_utf8(const char *text, size_t len)
{
	return rv_text_utf8_prefix(text, len) == len;
}

void rv_text_add_lossy(struct rv_buffer *out, const char *text, size_t len)
{
	while (len > 0) {
		size_t good = rv_text_utf8_prefix(text, len);
		uint32_t point;
		size_t bad;

		rv_buffer_add(out, text, good);
		text += good;
		len -= good;
		if (len == 0)
			break;
		(void)utf8_step((const unsigned char *)text, len, &point, &bad);
		rv_buffer_add_string(out, "\xEF\xBF\xBD");
		text += bad;
		len -= bad;
	}
}

/* ECMA-262 WhiteSpace and LineTerminator: TAB VT FF SP NBSP ZWNBSP and category Zs; LF CR LS PS. */
static bool is_js_space(uint32_t point)
{
	if (point <= 0x20)
		return point == 0x20 || (point >= 0x09 && point <= 0x0D);
	return point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028 ||
	       point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000 || point == 0xFEFF;
}

struct rv_span rv_text_trim(struct rv_span text)
{
	uint32_t point;
	size_t bad;

	while (text.len > 0) {
		size_t n = utf8_step((const unsigned char *)text.data, text.len, &point, &bad);

		if (n == 0 || !is_js_space(point))
			break;
		text.data += n;
		text.len -= n;
	}
	while (text.len > 0) {
		size_t back = 1;
		size_t n;

		while (back < 4 && back < text.len && ((unsigned char)text.data[text.len - back] & 0xC0) == 0x80)
			back++;
		n = utf8_step((const unsigned char *)text.data + text.len - back, back, &point, &bad);
		if (n != back || !is_js_space(point))
			break;
		text.len -= back;
	}
	return text;
}

/* What changes a terminal's state or the order in which text is read. */
static bool is_terminal_control(uint32_t point)
{
	return (point >= 0x80 && point < 0xA0) || point == 0x2028 || point == 0x2029 ||
	       (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
}

void rv_text_add_escaped(struct rv_buffer *out, const char *text, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t at = 0;

	while (at < len) {
		uint32_t point;
		size_t bad;
		size_t n = utf8_step(bytes + at, len - at, &point, &bad);

		if (n == 0) {
			for (size_t i = 0; i < bad; i++)
				rv_buffer_printf(out, "\\x%02x", bytes[at + i]);
			at += bad;
			continue;
		}
		if (point == '\n')
			rv_buffer_add_string(out, "\\n");
		else if (point == '\t')
			rv_buffer_add_string(out, "\\t");
		else if (point == '\\')
			rv_buffer_add_string(out, "\\\\");
		else if (point < 0x20 || point == 0x7F)
			rv_buffer_printf(out, "\\x%02x", point);
		else if (is_terminal_control(point))
			rv_buffer_printf(out, "\\u{%x}", point);
		else
			rv_buffer_add(out, bytes + at, n);
		at += n;
	}
}

/* The end of a quoted part that starts behind its quote, its bytes copied to *out; NULL if it has none. */
static const char *copy_quoted(const char *in, char quote, char **out)
{
	while (*in != '\0' && *in != quote) {
		if (quote == '"' && *in == '\\' && in[1] != '\0' && strchr("$`\"\\\n", in[1]) != NULL) {
			in++;
			if (*in == '\n') { /* a continued line */
				in++;
				continue;
			}
		}
		*(*out)++ = *in++;
	}
	return *in == quote ? in + 1 : NULL;
}

/* One word from `in` to *out, NUL included; NULL where a quote is not closed. */
static const char *copy_word(const char *in, char **out)
{
	while (in != NULL && *in != '\0' && strchr(" \t\n", *in) == NULL) {
		if (*in == '\'' || *in == '"') {
			in = copy_quoted(in + 1, *in, out);
		} else if (*in == '\\' && in[1] == '\n') {
			in += 2;
		} else if (*in == '\\') {
			if (in[1] == '\0')
				return NULL;
			*(*out)++ = in[1];
			in += 2;
		} else {
			*(*out)++ = *in++;
		}
	}
	*(*out)++ = '\0';
	return in;
}

int rv_text_split(const char *text, char ***words, size_t *count, struct rv_error *err)
{
	size_t len = strlen(text);
	/* at most len/2+1 words, and their bytes with NULs fit in len+1 */
	size_t slots = len / 2 + 2;
	char **list = malloc(slots * sizeof *list + len + 2);
	char *out;
	size_t n = 0;

	*words = NULL;
	if (list == NULL)
		return rv_error_nomem(err);
	out = (char *)(list + slots);
	for (;;) {
		text += strspn(text, " \t\n");
		if (*text == '\0')
			break;
		list[n++] = out;
		text = copy_word(text, &out);
		if (text == NULL) {
			free(list);
			return rv_error_set(err, RV_E_USAGE, 0, "a quote is not closed");
		}
	}
	list[n] = NULL;
	*words = list;
	*count = n;
	return 0;
}

/* Digits at *text as a number up to max; the rest in *text. */
static int take_digits(const char **text, unsigned long long max, unsigned long long *value)
{
	const char *at = *text;
	unsigned long long sum = 0;

	if (*at < '0' || *at > '9')
		return -1;
	for (; *at >= '0' && *at <= '9'; at++) {
		unsigned long long digit = (unsigned long long)(*at - '0');

		if (sum > (max - digit) / 10)
			return -1;
		sum = sum * 10 + digit;
	}
	*text = at;
	*value = sum;
	return 0;
}

struct unit {
	const char *name;
	unsigned long long factor;
};

static int parse_unit(const char *text, const struct unit *units, size_t count, unsigned long long max,
		      unsigned long long *value)
{
	unsigned long long number;

	if (take_digits(&text, max, &number) != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(text, units[i].name) == 0) {
			if (number > max / units[i].factor)
				return -1;
			*value = number * units[i].factor;
			return 0;
		}
	}
	return -1;
}

int rv_text_duration(const char *text, long long *ms, struct rv_error *err)
{
	static const struct unit units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };
	unsigned long long value;

	/* a hundred years: beyond that a sum of instants could overflow */
	if (parse_unit(text, units, sizeof units / sizeof units[0], 3153600000000ULL, &value) != 0)
		return rv_error_set(err, RV_E_USAGE, 0, "not a duration (write 300ms, 10s, 2m or 1h): %s", text);
	*ms = (long long)value;
	return 0;
}

int rv_text_size(const char *text, unsigned long long *bytes, struct rv_error *err)
{
	static const struct unit units[] = { { "", 1 }, { "B", 1 }, { "KiB", 1ULL << 10 }, { "MiB", 1ULL << 20 },
					     { "GiB", 1ULL << 30 } };

	if (parse_unit(text, units, sizeof units / sizeof units[0], LLONG_MAX, bytes) != 0)
		return rv_error_set(err, RV_E_USAGE, 0, "not a size (write bytes, or KiB, MiB, GiB): %s", text);
	return 0;
}

int rv_text_integer(const char *text, long long min, long long max, long long *value, struct rv_error *err)
{
	const char *at = text;
	bool negative = min < 0 && *at == '-';
	unsigned long long number;

	if (negative)
		at++;
	if (take_digits(&at, LLONG_MAX, &number) == 0 && *at == '\0') {
		long long signed_value = negative ? -(long long)number : (long long)number;

		if (signed_value >= min && signed_value <= max) {
			*value = signed_value;
			return 0;
		}
	}
	return rv_error_set(err, RV_E_USAGE, 0, "not an integer from %lld to %lld: %s", min, max, text);
}

bool rv_path_is_within(const char *path, const char *top)
{
	size_t len = strlen(top);

	return len == 1 || (strncmp(path, top, len) == 0 && (path[len] == '/' || path[len] == '\0'));
}

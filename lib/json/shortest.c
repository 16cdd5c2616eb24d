/*
 * Number::toString (ECMA-262, 6.1.6.1.20): the shortest digits that read back as the same double,
 * and of those the nearest.
 *
 * Fifteen digits always survive a double, so a search starts there, and trailing zeros go
 * afterwards.  Two ways find the digits:
 *  - A double from 2^-16 up to 2^53, scaled to 17 digits, is a quotient of integers below 2^128;
 *    there the interval of everything that reads back as it is exact, and the nearest multiple of
 *    100, 10 or 1 within it are the digits.
 *  - printf(3) for all else, with its rounding checked by reading back.  Below a power of two the
 *    gap is half as wide, so the nearest decimal may read back as its neighbour while the next one
 *    up is right: it is tried too.
 */
#include "lib/json/write.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/json/tree.h"

#define MOST_DIGITS 17
#define LOWEST_SCALED 0x1p-16
#define HIGHEST_SCALED 0x1p53

/* 0.DIGITS times ten to the power of `point`. */
struct shortest {
	char digits[MOST_DIGITS + 1];
	int count;
	int point;
};

/* The digits and exponent out of "D<point>DDDeXX", whatever stands for the point. */
static void take_printed(const char *text, struct shortest *number)
{
	int exponent = 0;
	bool negative;

	number->count = 0;
	for (; *text != 'e' && *text != '\0'; text++) {
		if (*text >= '0' && *text <= '9' && number->count < MOST_DIGITS)
			number->digits[number->count++] = *text;
	}
	negative = text[0] == 'e' && text[1] == '-';
	for (; *text != '\0'; text++) {
		if (*text >= '0' && *text <= '9')
			exponent = exponent * 10 + (*text - '0');
	}
	number->point = (negative ? -exponent : exponent) + 1;
}

/* One more in the last digit, with carry: 999 becomes 100 and the point moves. */
static void increase(struct shortest *number)
{
	int at = number->count - 1;

	while (at >= 0 && number->digits[at] == '9')
		number->digits[at--] = '0';
	if (at >= 0) {
		number->digits[at]++;
	} else {
		number->digits[0] = '1';
		number->point++;
	}
}

static bool reads_back(const struct shortest *number, double value)
{
	char text[MOST_DIGITS + 16];
	int n = snprintf(text, sizeof text, "%.*se%d", number->count, number->digits, number->point - number->count);

	return rv_number_value((struct rv_span){ text, (size_t)n }) == value;
}

static void find_by_printing(double value, struct shortest *number)
{
	int ignored;
	bool lopsided = frexp(value, &ignored) == 0.5;

	for (int precision = value < DBL_MIN ? 1 : 15; precision <= MOST_DIGITS; precision++) {
		char text[64];

		(void)snprintf(text, sizeof text, "%.*e", precision - 1, value);
		take_printed(text, number);
		if (reads_back(number, value))
			break;
		if (lopsided) {
			increase(number);
			if (reads_back(number, value))
				break;
		}
	}
}

__extension__ typedef unsigned __int128 uint128;

/* value * 10^digits as scaled / 2^shift, in [10^16, 10^17). */
struct scaled {
	uint64_t mantissa; /* value = mantissa / 2^(shift - 1) / 2 */
	uint128 power;     /* 10^digits */
	int digits;
	int shift;
};

static void scale(double value, struct scaled *scaled)
{
	double limit = 1e16;
	int exponent;

	/* twice the integer mantissa, so that the ends of the interval are integers as well */
	scaled->mantissa = (uint64_t)ldexp(frexp(value, &exponent), 54);
	scaled->shift = 54 - exponent;
	scaled->power = 1;
	scaled->digits = 0;
	/* Below 1 the limits are rounded, so that right at a power of ten there may be a digit too
	 * many, which goes again, or one too few, and then printing has the last word. */
	while (value < limit && scaled->digits < 22) {
		limit /= 10;
		scaled->power *= 10;
		scaled->digits++;
	}
	while (((scaled->mantissa * scaled->power) >> scaled->shift) >= UINT64_C(100000000000000000)) {
		scaled->power /= 10;
		scaled->digits--;
	}
}

/* The multiple of `unit` nearest to `exact` / 2^shift, ties to even. */
static uint64_t nearest(uint128 exact, int shift, uint64_t unit)
{
	uint64_t whole = (uint64_t)(exact >> shift);
	uint64_t over = whole % unit;
	uint128 rest = exact - ((uint128)(whole - over) << shift);
	uint128 half = (uint128)unit << (shift - 1);
	uint64_t multiple = whole - over;

	if (rest > half || (rest == half && multiple / unit % 2 != 0))
		multiple += unit;
	return multiple;
}

static void put_digits(uint64_t multiple, int digits, struct shortest *number)
{
	char text[24];
	int n = snprintf(text, sizeof text, "%llu", (unsigned long long)multiple);

	number->count = n < MOST_DIGITS ? n : MOST_DIGITS;
	memcpy(number->digits, text, (size_t)number->count);
	number->point = n - digits;
}

static bool find_by_scaling(double value, struct shortest *number)
{
	static const uint64_t units[] = { 100, 10, 1 };
	struct scaled scaled;
	uint128 exact;
	bool even;

	if (value < LOWEST_SCALED || value >= HIGHEST_SCALED)
		return false;
	scale(value, &scaled);
	if (scaled.mantissa == UINT64_C(1) << 53)
		return false; /* a power of two: the interval is lopsided */
	exact = scaled.mantissa * scaled.power;
	even = scaled.mantissa % 4 == 0;
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		uint64_t multiple = nearest(exact, scaled.shift, units[i]);
		uint128 found = (uint128)multiple << scaled.shift;
		uint128 off = found > exact ? found - exact : exact - found;

		if (off < scaled.power || (even && off == scaled.power)) {
			put_digits(multiple, scaled.digits, number);
			return true;
		}
	}
	return false;
}

static void add_zeros(struct rv_buffer *out, int count)
{
	while (count-- > 0)
		rv_buffer_add_byte(out, '0');
}

static void add_formatted(struct rv_buffer *out, const struct shortest *number)
{
	const char *digits = number->digits;
	int count = number->count;
	int point = number->point;

	if (point >= count && point <= 21) {
		rv_buffer_add(out, digits, (size_t)count);
		add_zeros(out, point - count);
	} else if (point > 0 && point <= 21) {
		rv_buffer_add(out, digits, (size_t)point);
		rv_buffer_add_byte(out, '.');
		rv_buffer_add(out, digits + point, (size_t)(count - point));
	} else if (point > -6 && point <= 0) {
		rv_buffer_add(out, "0.", 2);
		add_zeros(out, -point);
		rv_buffer_add(out, digits, (size_t)count);
	} else {
		rv_buffer_add_byte(out, digits[0]);
		if (count > 1) {
			rv_buffer_add_byte(out, '.');
			rv_buffer_add(out, digits + 1, (size_t)count - 1);
		}
		rv_buffer_printf(out, "e%+d", point - 1);
	}
}

void rv_json_add_number(struct rv_buffer *out, double value)
{
	struct shortest number;

	if (!isfinite(value)) {
		rv_buffer_add(out, "null", 4);
		return;
	}
	if (fabs(value) < HIGHEST_SCALED && value == (double)(int64_t)value) {
		rv_json_add_int(out, (int64_t)value); /* -0 is 0 */
		return;
	}
	if (value < 0)
		rv_buffer_add_byte(out, '-');
	value = fabs(value);
	if (!find_by_scaling(value, &number))
		find_by_printing(value, &number);
	while (number.count > 1 && number.digits[number.count - 1] == '0')
		number.count--;
	add_formatted(out, &number);
}

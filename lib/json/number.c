/*
 * Numbers as ECMAScript reads and writes them, whatever the locale: no text with a decimal point
 * goes to strtod(3), none that printf(3) wrote is taken for one.
 *
 * Reading: the digits become an integer and a power of ten.  Where both are exact in a double one
 * operation rounds correctly (Clinger); else strtod gets "DIGITSeEXPONENT".
 */
#include "lib/json/tree.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json/write.h"

#define KEPT_DIGITS 800 /* more than any halfway point between doubles has (767) */
#define EXPONENT_LIMIT INT64_C(1000000000000000)

struct decimal {
	bool negative;
	char digits[KEPT_DIGITS + 2]; /* without leading zeros; a last 1 where more follow that are not 0 */
	size_t count;
	int64_t exponent; /* of ten, for the digits as an integer */
};

static void take_digit(struct decimal *decimal, char digit, bool fraction, bool *more)
{
	if (decimal->count == 0 && digit == '0') {
		decimal->exponent -= fraction;
	} else if (decimal->count < KEPT_DIGITS) {
		decimal->digits[decimal->count++] = digit;
		decimal->exponent -= fraction;
	} else {
		*more = *more || digit != '0';
		decimal->exponent += !fraction;
	}
}

static int64_t take_exponent(const char *at, const char *end)
{
	bool negative = at < end && *at == '-';
	int64_t value = 0;

	if (at < end && (*at == '-' || *at == '+'))
		at++;
	for (; at < end; at++) {
		if (value < EXPONENT_LIMIT)
			value = value * 10 + (*at - '0');
	}
	return negative ? -value : value;
}

/* `text` has JSON's grammar. */
static void decimal_of(struct rv_span text, struct decimal *decimal)
{
	const char *end = text.data + text.len;
	bool fraction = false;
	bool more = false;

	decimal->negative = false;
	decimal->count = 0;
	decimal->exponent = 0;
	for (const char *at = text.data; at < end; at++) {
		if (*at == '-') {
			decimal->negative = true;
		} else if (*at == '.') {
			fraction = true;
		} else if (*at == 'e' || *at == 'E') {
			decimal->exponent += take_exponent(at + 1, end);
			break;
		} else {
			take_digit(decimal, *at, fraction, &more);
		}
	}
	if (more) {
		decimal->digits[decimal->count++] = '1';
		decimal->exponent--;
	}
}

static bool value_exactly(const struct decimal *decimal, double *value)
{
	static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
					 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	uint64_t mantissa = 0;

	if (FLT_EVAL_METHOD != 0 || decimal->count > 18 || decimal->exponent > 22 || decimal->exponent < -22)
		return false;
	for (size_t i = 0; i < decimal->count; i++)
		mantissa = mantissa * 10 + (uint64_t)(decimal->digits[i] - '0');
	if (mantissa > (uint64_t)1 << 53)
		return false;
	if (decimal->exponent < 0)
		*value = (double)mantissa / powers[-decimal->exponent];
	else
		*value = (double)mantissa * powers[decimal->exponent];
	return true;
}

static double value_of(const struct decimal *decimal)
{
	char text[KEPT_DIGITS + 32];
	int64_t exponent = decimal->exponent;
	double value;

	if (decimal->count == 0) {
		value = 0;
	} else if (!value_exactly(decimal, &value)) {
		if (exponent > 99999)
			exponent = 99999;
		if (exponent < -99999)
			exponent = -99999;
		memcpy(text, decimal->digits, decimal->count);
		(void)snprintf(text + decimal->count, sizeof text - decimal->count, "e%d", (int)exponent);
		value = strtod(text, NULL);
	}
	return decimal->negative ? -value : value;
}

double rv_number_value(struct rv_span text)
{
	struct decimal decimal;

	decimal_of(text, &decimal);
	return value_of(&decimal);
}

bool rv_number_is_inexact_integer(struct rv_span text)
{
	char exact[DBL_MAX_10_EXP + 8];
	size_t sign = text.data[0] == '-' ? 1 : 0;
	double value;
	int n;

	if (text.len - sign <= 15)
		return false;
	for (size_t i = sign; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
	}
	value = fabs(rv_number_value(text));
	if (!isfinite(value))
		return true;
	n = snprintf(exact, sizeof exact, "%.0f", value);
	return n < 0 || (size_t)n != text.len - sign || memcmp(exact, text.data + sign, (size_t)n) != 0;
}

/* A text that is its own canonical form, as most are: at most 15 digits (which a double tells
 * apart, so no shorter text means the same), no exponent, no trailing zero in a fraction, and not
 * so small that ECMAScript would write an exponent. */
static bool is_canonical(struct rv_span text)
{
	const char *at = text.data;
	const char *end = text.data + text.len;
	const char *point = NULL;

	if (*at == '-')
		at++;
	if (end - at > 16)
		return false;
	for (const char *c = at; c < end; c++) {
		if (*c == '.')
			point = c;
		else if (*c < '0' || *c > '9')
			return false;
	}
	if (point == NULL)
		return end - at <= 15 && (*text.data != '-' || *at != '0');
	if (end[-1] == '0')
		return false;
	return *at != '0' || end - point <= 6 || memcmp(point, ".00000", 6) != 0 || point[6] != '0';
}

bool rv_number_add_canonical(struct rv_buffer *out, struct rv_span text)
{
	double value;

	if (is_canonical(text)) {
		rv_buffer_add(out, text.data, text.len);
		return true;
	}
	value = rv_number_value(text);
	if (!isfinite(value))
		return false;
	rv_json_add_number(out, value);
	return true;
}

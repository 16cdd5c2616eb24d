#include "lib/base/instant.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "lib/base/text.h"

/* Exactly `width` digits within [min, max]. */
static bool digits(const char **at, int width, int min, int max, int *value)
{
	*value = 0;
	for (int i = 0; i < width; i++, (*at)++) {
		if (!isdigit((unsigned char)**at))
			return false;
		*value = *value * 10 + (**at - '0');
	}
	return *value >= min && *value <= max;
}

static bool literal(const char **at, const char *letters)
{
	if (**at == '\0' || strchr(letters, **at) == NULL)
		return false;
	(*at)++;
	return true;
}

/* Days from 1970-01-01 in the proleptic Gregorian calendar, by years that begin in March. */
static int64_t days_of(int year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t year_of_era = y - era * 400;
	int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static int month_length(int year, int month)
{
	static const int lengths[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return month == 2 && leap ? 29 : lengths[month - 1];
}

/* The fraction as milliseconds, further digits dropped. */
static bool fraction(const char **at, int *ms)
{
	int scale = 100;

	*ms = 0;
	if (**at != '.')
		return true;
	(*at)++;
	if (!isdigit((unsigned char)**at))
		return false;
	for (; isdigit((unsigned char)**at); (*at)++, scale /= 10)
		*ms += (**at - '0') * scale;
	return true;
}

static bool offset(const char **at, int *minutes)
{
	int sign = **at == '-' ? -1 : 1;
	int hour, minute;

	*minutes = 0;
	if (literal(at, "Zz"))
		return true;
	if (!literal(at, "+-") || !digits(at, 2, 0, 23, &hour) || !literal(at, ":") || !digits(at, 2, 0, 59, &minute))
		return false;
	*minutes = sign * (hour * 60 + minute);
	return true;
}

static bool rfc3339(const char *at, int64_t *result)
{
	int year, month, day, hour, minute, second, ms, zone;

	if (!digits(&at, 4, 0, 9999, &year) || !literal(&at, "-") || !digits(&at, 2, 1, 12, &month) ||
	    !literal(&at, "-") || !digits(&at, 2, 1, month_length(year, month), &day) || !literal(&at, "Tt "))
		return false;
	if (!digits(&at, 2, 0, 23, &hour) || !literal(&at, ":") || !digits(&at, 2, 0, 59, &minute) ||
	    !literal(&at, ":") || !digits(&at, 2, 0, 60, &second) || !fraction(&at, &ms) || !offset(&at, &zone))
		return false;
	*result = ((days_of(year, month, day) * 24 + hour) * 60 + minute - zone) * 60000 + second * 1000 + ms;
	return *at == '\0';
}

int rv_instant_parse(const char *text, int64_t *ms, struct rv_error *err)
{
	long long value;

	if (rv_text_integer(text, LLONG_MIN, LLONG_MAX, &value, err) == 0) {
		*ms = value;
		return 0;
	}
	if (rfc3339(text, ms))
		return 0;
	return rv_error_set(err, RV_E_USAGE, 0, "no time: %s (milliseconds, or 2026-11-30T01:02:03Z)", text);
}

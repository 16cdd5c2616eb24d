/* Test Anything Protocol for the unit programs: count, say, and fail as a process too. */
#ifndef RV_UNIT_TAP_H
#define RV_UNIT_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_count;
static int tap_failures;

/* One test point; its name must not hold '#'. */
static inline bool tap_ok(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool tap_ok(bool good, const char *format, ...)
{
	va_list args;

	printf("%sok %d - ", good ? "" : "not ", ++tap_count);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	if (!good)
		tap_failures++;
	return good;
}

static inline void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void tap_note(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* The plan, behind the points; what main returns. */
static inline int tap_end(void)
{
	printf("1..%d\n", tap_count);
	return fflush(stdout) == 0 && tap_failures == 0 && tap_count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* A file of the source tree, or of the working directory. */
static inline const char *tap_source(void)
{
	const char *root = getenv("RV_SRC");

	return root != NULL ? root : ".";
}

#endif

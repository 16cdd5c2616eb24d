/* What JSON lets follow a backslash in a string. */
#ifndef RV_LEDGER_ESCAPE_H
#define RV_LEDGER_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool rv_is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The length of the escape whose backslash is at `at`, of which at most `left` bytes may be read, and none
 * behind one that does not belong to it; 0: it is none. */
static inline size_t rv_escape_len(const char *at, size_t left)
{
	static const char shorts[] = "\"\\/bfnrt";

	if (left < 2)
		return 0;
	if (at[1] != 'u')
		return memchr(shorts, at[1], sizeof shorts - 1) != NULL ? 2 : 0;
	return left >= 6 && rv_is_hex(at[2]) && rv_is_hex(at[3]) && rv_is_hex(at[4]) && rv_is_hex(at[5]) ? 6 : 0;
}

#endif

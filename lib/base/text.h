/*
 * Text from outside: strict UTF-8 (RFC 3629), JavaScript's white space
 * (String.prototype.trim), and what may reach a terminal.  Spans are bytes and a
 * length, may hold NUL, and are borrowed.
 */
#ifndef RV_BASE_TEXT_H
#define RV_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"

/* A borrowed run of bytes. */
struct rv_span {
	const char *data;
	size_t len;
};

#define RV_SPAN(literal) ((struct rv_span){ (literal), sizeof(literal) - 1 })

/* The same for a static table. */
#define RV_SPAN_INIT(literal) { (literal), sizeof(literal) - 1 }

struct rv_span rv_span_of(const char *text);
bool rv_span_equal(struct rv_span a, struct rv_span b);

/* Bytes of `text` that are whole, strict UTF-8: no overlong form, no surrogate,
 * nothing above U+10FFFF.  Equal to len when all of it is. */
size_t rv_text_utf8_prefix(const char *text, size_t len);
bool rv_text_is_utf8(const char *text, size_t len);

/* Append `text` with each maximal invalid part as U+FFFD, as the WHATWG decoder does. */
void rv_text_add_lossy(struct rv_buffer *out, const char *text, size_t len);

/* The span without leading and trailing ECMAScript white space and line terminators. */
struct rv_span rv_text_trim(struct rv_span text);

/* Append `text` so that no control byte (C0, DEL, C1) and no invalid byte reaches a
 * terminal: \n, \t, \\ and \xHH, and \u{HEX} for C1, line and bidi controls. */
void rv_text_add_escaped(struct rv_buffer *out, const char *text, size_t len);

/* Split words by POSIX quoting (blanks, '...', "...", backslash) with no expansion:
 * XCU 2.2.  `*words` is NULL-terminated, one allocation, freed with free(). */
int rv_text_split(const char *text, char ***words, size_t *count, struct rv_error *err);

/* A duration with its unit (`300ms`, `10s`, `2m`, `1h`) as milliseconds; a bare number is refused. */
int rv_text_duration(const char *text, long long *ms, struct rv_error *err);

/* A size in bytes: bare, or with B, KiB, MiB, GiB. */
int rv_text_size(const char *text, unsigned long long *bytes, struct rv_error *err);

/* A decimal integer of digits alone (an optional '-' where min < 0) within [min, max]. */
int rv_text_integer(const char *text, long long min, long long max, long long *value, struct rv_error *err);

/* Is an absolute path `top` itself, or below it?  By its words alone; neither ends with a slash, but for "/". */
bool rv_path_is_within(const char *path, const char *top);

#endif

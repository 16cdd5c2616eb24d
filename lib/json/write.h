/*
 * Writing JSON by hand, byte for byte as JSON.stringify would.  Strings are WTF-8; bytes
 * that are neither UTF-8 nor a lone surrogate are the caller's fault and become U+FFFD.
 * Failures are kept by the buffer (lib/base/buffer.h).
 */
#ifndef RV_JSON_WRITE_H
#define RV_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/text.h"

/* A quoted string: \b \t \n \f \r \" \\, other controls lowercase \u00xx, a lone surrogate
 * lowercase \udxxx, all else raw. */
void rv_json_add_string(struct rv_buffer *out, const char *text, size_t len);
/* A finite double as ECMAScript's Number::toString; -0 is 0; what is not finite is null. */
void rv_json_add_number(struct rv_buffer *out, double value);

void rv_json_add_int(struct rv_buffer *out, int64_t value);

/* Members: a comma where one is due (after anything but '{' '[' at the end of `out`), the
 * name, which is plain ASCII, a colon, the value. */
void rv_json_add_name(struct rv_buffer *out, const char *name);
void rv_json_member_string(struct rv_buffer *out, const char *name, const char *text);
void rv_json_member_span(struct rv_buffer *out, const char *name, struct rv_span text);
void rv_json_member_int(struct rv_buffer *out, const char *name, int64_t value);
void rv_json_member_bool(struct rv_buffer *out, const char *name, bool value);
void rv_json_member_null(struct rv_buffer *out, const char *name);
void rv_json_member_string_or_null(struct rv_buffer *out, const char *name, const char *text); /* NULL: null */
void rv_json_member_raw(struct rv_buffer *out, const char *name, struct rv_span json);

#endif

/*
 * A growable run of bytes with a hard cap.  A buffer remembers its first failure
 * (memory, or the cap), so a writer appends freely and asks once at the end:
 *
 *     if (rv_buffer_check(&line, err) != 0)
 *             return -1;
 *
 * After a failure every append is a no-op and `len` is what fitted before it.
 * `data` is not NUL-terminated except by rv_buffer_string().
 */
#ifndef RV_BASE_BUFFER_H
#define RV_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/error.h"

struct rv_buffer {
	char *data; /* owned; NULL while empty and unallocated */
	size_t len;
	size_t cap; /* never above max */
	size_t max; /* bytes; 0 means RV_BUFFER_MAX */
	bool failed;
};

#define RV_BUFFER_MAX ((size_t)1 << 40)
#define RV_BUFFER_INIT { .data = NULL, .len = 0, .cap = 0, .max = 0, .failed = false }

void rv_buffer_init(struct rv_buffer *buf, size_t max);
void rv_buffer_release(struct rv_buffer *buf); /* frees; the buffer is empty and usable again */
void rv_buffer_clear(struct rv_buffer *buf);   /* empties, keeps the memory, forgets a failure */
void rv_buffer_clear_to(struct rv_buffer *buf, size_t keep); /* the same, and gives memory of more than `keep` bytes back */

void rv_buffer_add_slowly(struct rv_buffer *buf, const void *bytes, size_t len);

/* Writers append a few bytes at a time, so what fits is added in place. */
static inline void rv_buffer_add(struct rv_buffer *buf, const void *bytes, size_t len)
{
	if (len != 0 && len <= buf->cap - buf->len && !buf->failed) {
		memcpy(buf->data + buf->len, bytes, len);
		buf->len += len;
	} else {
		rv_buffer_add_slowly(buf, bytes, len);
	}
}

static inline void rv_buffer_add_byte(struct rv_buffer *buf, char byte)
{
	rv_buffer_add(buf, &byte, 1);
}

void rv_buffer_add_string(struct rv_buffer *buf, const char *text);
void rv_buffer_printf(struct rv_buffer *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Room for `len` more bytes, to be filled by the caller and then counted with
 * rv_buffer_commit(); NULL after a failure. */
char *rv_buffer_reserve(struct rv_buffer *buf, size_t len);
void rv_buffer_commit(struct rv_buffer *buf, size_t len);

int rv_buffer_check(const struct rv_buffer *buf, struct rv_error *err);

/* The bytes with a NUL behind them (not counted), or NULL after a failure. */
const char *rv_buffer_string(struct rv_buffer *buf);

/* Hand the bytes, NUL-terminated, to the caller, who frees them; NULL after a failure. */
char *rv_buffer_steal(struct rv_buffer *buf, size_t *len);

#endif

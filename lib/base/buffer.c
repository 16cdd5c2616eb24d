#include "lib/base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rv_buffer_init(struct rv_buffer *buf, size_t max)
{
	*buf = (struct rv_buffer)RV_BUFFER_INIT;
	buf->max = max;
}

void rv_buffer_release(struct rv_buffer *buf)
{
	size_t max = buf->max;

	free(buf->data);
	rv_buffer_init(buf, max);
}

void rv_buffer_clear(struct rv_buffer *buf)
{
	buf->len = 0;
	buf->failed = false;
}

void rv_buffer_clear_to(struct rv_buffer *buf, size_t keep)
{
	if (buf->cap > keep)
		rv_buffer_release(buf);
	rv_buffer_clear(buf);
}

char *rv_buffer_reserve(struct rv_buffer *buf, size_t len)
{
	size_t max = buf->max != 0 ? buf->max : RV_BUFFER_MAX;

	if (buf->failed)
		return NULL;
	if (len > max || buf->len > max - len) {
		buf->failed = true;
		return NULL;
	}
	if (buf->cap - buf->len < len) {
		size_t want = buf->cap < 64 ? 64 : buf->cap;
		char *grown;

		while (want - buf->len < len)
			want *= 2; /* max is below 2^41: no overflow */
		if (want > max)
			want = max; /* still enough: see above */
		grown = realloc(buf->data, want);
		if (grown == NULL) {
			buf->failed = true;
			return NULL;
		}
		buf->data = grown;
		buf->cap = want;
	}
	return buf->data + buf->len;
}

void rv_buffer_commit(struct rv_buffer *buf, size_t len)
{
	buf->len += len;
}

void rv_buffer_add_slowly(struct rv_buffer *buf, const void *bytes, size_t len)
{
	char *room;

	if (len == 0)
		return;
	room = rv_buffer_reserve(buf, len);
	if (room != NULL) {
		memcpy(room, bytes, len);
		buf->len += len;
	}
}

void rv_buffer_add_string(struct rv_buffer *buf, const char *text)
{
	rv_buffer_add(buf, text, strlen(text));
}

void rv_buffer_printf(struct rv_buffer *buf, const char *format, ...)
{
	va_list args;
	va_list again;
	int n;

	va_start(args, format);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0) {
		buf->failed = true;
	} else {
		char *room = rv_buffer_reserve(buf, (size_t)n + 1);

		if (room != NULL) {
			(void)vsnprintf(room, (size_t)n + 1, format, again);
			buf->len += (size_t)n;
		}
	}
	va_end(again);
}

int rv_buffer_check(const struct rv_buffer *buf, struct rv_error *err)
{
	return buf->failed ? rv_error_nomem(err) : 0;
}

const char *rv_buffer_string(struct rv_buffer *buf)
{
	char *room = rv_buffer_reserve(buf, 1);

	if (room == NULL)
		return NULL;
	*room = '\0';
	return buf->data;
}

char *rv_buffer_steal(struct rv_buffer *buf, size_t *len)
{
	char *bytes;

	if (rv_buffer_string(buf) == NULL)
		return NULL;
	bytes = buf->data;
	if (len != NULL)
		*len = buf->len;
	buf->data = NULL;
	rv_buffer_release(buf);
	return bytes;
}

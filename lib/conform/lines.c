#include <string.h>

#include "lib/conform/vectors.h"

bool rv_vectors_next(struct rv_span *rest, struct rv_span *line)
{
	const char *end;

	if (rest->len == 0)
		return false;
	end = memchr(rest->data, '\n', rest->len);
	line->data = rest->data;
	line->len = end != NULL ? (size_t)(end - rest->data) : rest->len;
	rest->data += line->len + (end != NULL);
	rest->len -= line->len + (end != NULL);
	return true;
}

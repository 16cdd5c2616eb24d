#include "lib/confine/members.h"

#include <string.h>

#include "lib/base/buffer.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"

static const char *type_name(enum rv_json_type type)
{
	static const char *const names[] = {
		[RV_JSON_NULL] = "null",     [RV_JSON_FALSE] = "a boolean", [RV_JSON_TRUE] = "a boolean",
		[RV_JSON_NUMBER] = "a number", [RV_JSON_STRING] = "a string", [RV_JSON_ARRAY] = "an array",
		[RV_JSON_OBJECT] = "an object",
	};

	return names[type];
}

static int unknown(const char *where, struct rv_span name, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;

	rv_text_add_escaped(&text, name.data, name.len > 100 ? 100 : name.len);
	return rv_error_set(err, RV_E_REQUEST, 0, "%s: unknown member \"%s\"", where,
			    text.len > 0 ? rv_buffer_string(&text) : "");
}

int rv_members_read(const struct rv_json_node *object, const char *where, const struct rv_member *members, size_t count,
		    const struct rv_json_node **found, struct rv_error *err)
{
	if (rv_json_type(object) != RV_JSON_OBJECT)
		return rv_error_set(err, RV_E_REQUEST, 0, "%s: not an object", where);
	memset(found, 0, count * sizeof(struct rv_json_node *));
	for (const struct rv_json_node *at = rv_json_first(object); at != NULL; at = rv_json_next(at)) {
		struct rv_span name = rv_json_name(at);
		size_t i = 0;

		while (i < count && !rv_span_equal(name, rv_span_of(members[i].name)))
			i++;
		if (i == count)
			return unknown(where, name, err);
		if (found[i] != NULL)
			return rv_error_set(err, RV_E_REQUEST, 0, "%s: \"%s\" is there twice", where, members[i].name);
		if (rv_json_type(at) != members[i].type)
			return rv_error_set(err, RV_E_REQUEST, 0, "%s: \"%s\" is not %s", where, members[i].name,
					    type_name(members[i].type));
		found[i] = at;
	}
	for (size_t i = 0; i < count; i++) {
		if (members[i].required && found[i] == NULL)
			return rv_error_set(err, RV_E_REQUEST, 0, "%s: no \"%s\"", where, members[i].name);
	}
	return 0;
}

char *rv_members_text(const struct rv_json_node *node, const char *where, struct rv_error *err)
{
	struct rv_span text = rv_json_string(node);
	char *copy;

	if (memchr(text.data, '\0', text.len) != NULL || !rv_text_is_utf8(text.data, text.len)) {
		(void)rv_error_set(err, RV_E_REQUEST, 0, "%s: a NUL or a lone surrogate", where);
		return NULL;
	}
	copy = strndup(text.data, text.len);
	if (copy == NULL)
		(void)rv_error_nomem(err);
	return copy;
}

int rv_members_integer(const struct rv_json_node *node, const char *where, int64_t min, int64_t max, int64_t *value,
		       struct rv_error *err)
{
	if (!rv_json_integer(node, value) || *value < min || *value > max)
		return rv_error_set(err, RV_E_REQUEST, 0, "%s: not an integer from %lld to %lld", where, (long long)min,
				    (long long)max);
	return 0;
}

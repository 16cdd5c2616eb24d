#include "lib/json/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_INTEGER 9007199254740991.0 /* 2^53 - 1 */

struct rv_json_doc *rv_json_doc_new(struct rv_error *err)
{
	struct rv_json_doc *doc = calloc(1, sizeof *doc);

	if (doc == NULL)
		(void)rv_error_nomem(err);
	return doc;
}

void rv_json_doc_free(struct rv_json_doc *doc)
{
	if (doc == NULL)
		return;
	rv_arena_release(&doc->arena);
	free(doc);
}

enum rv_json_type rv_json_type(const struct rv_json_node *node)
{
	return rv_node_type(node);
}

bool rv_json_is_string(const struct rv_json_node *node)
{
	return node != NULL && rv_node_type(node) == RV_JSON_STRING;
}

struct rv_span rv_json_string(const struct rv_json_node *node)
{
	return node->v.text;
}

struct rv_span rv_json_number_text(const struct rv_json_node *node)
{
	return node->v.text;
}

double rv_json_number(const struct rv_json_node *node)
{
	return rv_number_value(node->v.text);
}

/* Up to 15 digits and nothing else: no double is needed. */
static bool short_integer(struct rv_span text, int64_t *value)
{
	size_t at = text.data[0] == '-' ? 1 : 0;
	int64_t sum = 0;

	if (text.len - at > 15)
		return false;
	for (size_t i = at; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		sum = sum * 10 + (text.data[i] - '0');
	}
	*value = at != 0 ? -sum : sum;
	return true;
}

bool rv_json_integer(const struct rv_json_node *node, int64_t *value)
{
	double number;

	if (node == NULL || rv_node_type(node) != RV_JSON_NUMBER)
		return false;
	if (short_integer(node->v.text, value))
		return true;
	number = rv_number_value(node->v.text);
	if (!(fabs(number) <= LARGEST_INTEGER))
		return false;
	*value = (int64_t)number;
	return (double)*value == number;
}

const struct rv_json_node *rv_json_get(const struct rv_json_node *object, const char *name)
{
	const struct rv_json_node *found = NULL;
	size_t len = strlen(name);

	if (object == NULL || rv_node_type(object) != RV_JSON_OBJECT)
		return NULL;
	for (const struct rv_json_node *at = object->v.list.first; at != NULL; at = at->next) {
		struct rv_span have = rv_node_name(at);

		if (have.len == len && memcmp(have.data, name, len) == 0)
			found = at;
	}
	return found;
}

void rv_json_pick(const struct rv_json_node *object, const struct rv_span *names, size_t count,
		  const struct rv_json_node **found)
{
	for (size_t i = 0; i < count; i++)
		found[i] = NULL;
	if (object == NULL || rv_node_type(object) != RV_JSON_OBJECT)
		return;
	for (const struct rv_json_node *at = object->v.list.first; at != NULL; at = at->next) {
		struct rv_span have = rv_node_name(at);

		for (size_t i = 0; i < count; i++) {
			if (have.len == names[i].len && (have.len == 0 || have.data[0] == names[i].data[0]) &&
			    memcmp(have.data, names[i].data, have.len) == 0) {
				found[i] = at;
				break;
			}
		}
	}
}

const struct rv_json_node *rv_json_first(const struct rv_json_node *container)
{
	enum rv_json_type type = rv_node_type(container);

	return type == RV_JSON_OBJECT || type == RV_JSON_ARRAY ? container->v.list.first : NULL;
}

const struct rv_json_node *rv_json_next(const struct rv_json_node *child)
{
	return child->next;
}

struct rv_span rv_json_name(const struct rv_json_node *member)
{
	if ((member->tag & RV_NODE_MEMBER) == 0)
		return (struct rv_span){ "", 0 };
	return rv_node_name(member);
}

/* Within a string a quote stands only behind an odd run of backslashes. */
const char *rv_json_string_start(const char *text, const char *end)
{
	const char *at = end - 1; /* the closing quote */

	while (at > text) {
		const char *before;

		at--;
		if (*at != '"')
			continue;
		before = at;
		while (before > text && before[-1] == '\\')
			before--;
		if ((at - before) % 2 == 0)
			return at;
	}
	return end - 1;
}

void rv_json_add_source(struct rv_buffer *out, const struct rv_json_doc *doc, const struct rv_json_node *node)
{
	const char *end = doc->text + (node->tag >> RV_NODE_OFFSET);

	switch (rv_node_type(node)) {
	case RV_JSON_NULL:
		rv_buffer_add(out, "null", 4);
		break;
	case RV_JSON_FALSE:
		rv_buffer_add(out, "false", 5);
		break;
	case RV_JSON_TRUE:
		rv_buffer_add(out, "true", 4);
		break;
	case RV_JSON_NUMBER:
		rv_buffer_add(out, node->v.text.data, node->v.text.len);
		break;
	case RV_JSON_STRING:
		if ((node->tag & RV_NODE_ESCAPED) != 0) {
			const char *start = rv_json_string_start(doc->text, end);

			rv_json_add_compact(out, start, (size_t)(end - start));
		} else {
			rv_json_add_compact(out, node->v.text.data - 1, node->v.text.len + 2);
		}
		break;
	case RV_JSON_ARRAY:
	case RV_JSON_OBJECT:
		rv_json_add_compact(out, node->v.list.u.source, (size_t)(end - node->v.list.u.source));
		break;
	}
}

/* yajl's events -> a tree in the arena. */
#include "lib/json/parse.h"

#include <string.h>

#include <yajl/yajl_parse.h>

static int no_memory(struct rv_json_doc *doc)
{
	doc->failure = RV_FAILED_MEMORY;
	return 0;
}

/* Up to where in the text yajl is. */
static size_t consumed(const struct rv_json_doc *doc)
{
	return yajl_get_bytes_consumed(doc->yajl) + doc->left_out;
}

/* A new node at the end of the open container, or the root. */
static struct rv_json_node *add_node(struct rv_json_doc *doc, enum rv_json_type type)
{
	struct rv_json_node *parent = doc->open;
	struct rv_json_node *node;
	uint64_t flags = 0;

	if (parent != NULL && rv_node_type(parent) == RV_JSON_OBJECT) {
		struct rv_json_member *member = rv_arena_alloc(&doc->arena, sizeof *member);

		if (member == NULL)
			return NULL;
		member->name = doc->name;
		node = &member->node;
		flags = RV_NODE_MEMBER;
	} else {
		node = rv_arena_alloc(&doc->arena, sizeof *node);
		if (node == NULL)
			return NULL;
	}
	node->tag = (uint64_t)type | flags;
	node->next = NULL;
	if (parent == NULL) {
		doc->root = node;
		doc->root_end = consumed(doc);
		return node;
	}
	if (parent->v.list.first == NULL)
		parent->v.list.first = node;
	else
		parent->v.list.u.last->next = node;
	parent->v.list.u.last = node;
	return node;
}

static int on_null(void *context)
{
	return add_node(context, RV_JSON_NULL) != NULL ? 1 : no_memory(context);
}

static int on_boolean(void *context, int value)
{
	return add_node(context, value != 0 ? RV_JSON_TRUE : RV_JSON_FALSE) != NULL ? 1 : no_memory(context);
}

static int on_number(void *context, const char *text, size_t len)
{
	struct rv_json_doc *doc = context;
	struct rv_json_node *node = add_node(doc, RV_JSON_NUMBER);

	if (node == NULL)
		return no_memory(doc);
	node->v.text = (struct rv_span){ text, len };
	if ((doc->flags & RV_JSON_STRICT) != 0 && rv_number_is_inexact_integer(node->v.text)) {
		doc->failure = RV_FAILED_INTEGER;
		doc->failed_at = (size_t)(text - doc->text);
		return 0;
	}
	return 1;
}

/* The span itself where it lies in what is read, else (*copied) a copy of yajl's buffer. */
static bool keep_string(struct rv_json_doc *doc, struct rv_span text, struct rv_span *kept, bool *copied)
{
	char *copy;

	*kept = text;
	*copied = false;
	if (rv_json_take_long(doc, kept) || (uintptr_t)text.data - (uintptr_t)doc->read < doc->read_len)
		return true;
	copy = rv_arena_alloc(&doc->arena, text.len + RV_SPARE);
	if (copy == NULL)
		return false;
	memcpy(copy, text.data, text.len);
	*kept = (struct rv_span){ copy, text.len };
	*copied = true;
	return true;
}

static int on_string(void *context, const unsigned char *bytes, size_t len)
{
	struct rv_json_doc *doc = context;
	struct rv_json_node *node;
	struct rv_span text;
	bool copied;

	if (!keep_string(doc, (struct rv_span){ (const char *)bytes, len }, &text, &copied))
		return no_memory(doc);
	node = add_node(doc, RV_JSON_STRING);
	if (node == NULL)
		return no_memory(doc);
	node->v.text = text;
	if (copied)
		node->tag |= (uint64_t)consumed(doc) << RV_NODE_OFFSET | RV_NODE_ESCAPED;
	return 1;
}

static int on_map_key(void *context, const unsigned char *bytes, size_t len)
{
	struct rv_json_doc *doc = context;
	bool copied;

	return keep_string(doc, (struct rv_span){ (const char *)bytes, len }, &doc->name, &copied) ? 1 : no_memory(doc);
}

static int open_container(struct rv_json_doc *doc, enum rv_json_type type)
{
	struct rv_json_node *node = add_node(doc, type);

	if (node == NULL || !rv_pool_prepare_push(doc))
		return no_memory(doc);
	node->tag |= (uint64_t)(consumed(doc) - 1) << RV_NODE_OFFSET;
	node->next = doc->open;
	node->v.list.first = NULL;
	node->v.list.u.last = NULL;
	doc->open = node;
	doc->depth++;
	return 1;
}

static int close_container(struct rv_json_doc *doc)
{
	struct rv_json_node *node = doc->open;
	size_t start = (size_t)(node->tag >> RV_NODE_OFFSET);
	size_t end = consumed(doc);

	doc->open = node->next;
	doc->depth--;
	if (doc->open == NULL)
		doc->root_end = end;
	node->next = NULL;
	node->v.list.u.source = doc->text + start;
	node->tag = (node->tag & (((uint64_t)1 << RV_NODE_OFFSET) - 1)) | (uint64_t)end << RV_NODE_OFFSET;
	if ((doc->flags & RV_JSON_STRICT) != 0 && rv_node_type(node) == RV_JSON_OBJECT) {
		switch (rv_members_check_distinct(node)) {
		case RV_DISTINCT:
			return 1;
		case RV_DUPLICATE:
			doc->failure = RV_FAILED_DUPLICATE;
			doc->failed_at = start;
			return 0;
		case RV_DISTINCT_NO_MEMORY:
			return no_memory(doc);
		}
	}
	return 1;
}

static int on_start_map(void *context)
{
	return open_container(context, RV_JSON_OBJECT);
}

static int on_start_array(void *context)
{
	return open_container(context, RV_JSON_ARRAY);
}

static int on_end(void *context)
{
	return close_container(context);
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_integer = NULL,
	.yajl_double = NULL,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_start_map,
	.yajl_map_key = on_map_key,
	.yajl_end_map = on_end,
	.yajl_start_array = on_start_array,
	.yajl_end_array = on_end,
};

static bool start_yajl(struct rv_json_doc *doc, size_t longest)
{
	yajl_alloc_funcs functions = { rv_pool_malloc, rv_pool_realloc, rv_pool_free, doc };

	if (!rv_pool_start(doc, longest))
		return false;
	doc->yajl = yajl_alloc(&callbacks, &functions, doc);
	if (doc->yajl == NULL)
		return false;
	(void)yajl_config(doc->yajl, yajl_dont_validate_strings, 1); /* the prepass did, and let WTF-8 in */
	return true;
}

/* An offset in the text as the caller wrote it: each lone surrogate was three bytes longer. */
static size_t written_offset(const struct rv_json_doc *doc, size_t offset)
{
	size_t shift = 0;

	for (size_t i = 0; doc->lone && i + 1 < offset; i++) {
		if ((unsigned char)doc->text[i] == 0xED && (unsigned char)doc->text[i + 1] >= 0xA0)
			shift += 3;
	}
	return doc->skipped + offset + shift;
}

/* yajl stops behind the token that it does not want. */
static size_t token_start(const struct rv_json_doc *doc, size_t end)
{
	size_t at = end;

	if (at == 0 || at > doc->len)
		return doc->len;
	if (doc->text[at - 1] == '"')
		return (size_t)(rv_json_string_start(doc->text, doc->text + at) - doc->text);
	while (at > 0 && strchr("+-.0123456789eEnultrfas", doc->text[at - 1]) != NULL && doc->text[at - 1] != '\0')
		at--;
	return at < end ? at : end - 1;
}

static int refuse_by_yajl(struct rv_json_doc *doc, size_t offset, struct rv_error *err)
{
	/* not verbose: that would echo the text */
	const char *message = (const char *)yajl_get_error(doc->yajl, 0, NULL, 0);
	const char *reason = message != NULL ? strstr(message, ": ") : NULL;

	if (reason != NULL && strncmp(message, "parse", 5) == 0 && strstr(reason, "EOF") == NULL)
		offset = token_start(doc, offset);
	else if (reason != NULL && strstr(reason, "invalid char in json") != NULL && offset > 0)
		offset--;
	reason = reason != NULL ? reason + 2 : "not a value";
	return rv_error_set(err, RV_E_REQUEST, 0, "not JSON at byte %zu: %.*s", written_offset(doc, offset),
			    (int)strcspn(reason, "\n"), reason);
}

static int refuse(struct rv_json_doc *doc, size_t offset, struct rv_error *err)
{
	switch (doc->failure) {
	case RV_FAILED_MEMORY:
		return rv_error_nomem(err);
	case RV_FAILED_DUPLICATE:
		return rv_error_set(err, RV_E_REQUEST, 0, "an object with two members of one name at byte %zu",
				    written_offset(doc, doc->failed_at));
	case RV_FAILED_INTEGER:
		return rv_error_set(err, RV_E_NUMBER, 0, "an integer that a double does not hold at byte %zu",
				    written_offset(doc, doc->failed_at));
	case RV_FAILED_NOT:
		break;
	}
	return refuse_by_yajl(doc, offset, err);
}

/* The copy that yajl reads: the text, and space behind it so that a number ends. */
static int prepare_text(struct rv_json_doc *doc, const char *bytes, size_t len, struct rv_guard *guard,
			struct rv_error *err)
{
	doc->skipped = 0;
	if ((doc->flags & RV_JSON_BOM) != 0 && len >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
		doc->skipped = 3;
	len -= doc->skipped;
	doc->text = len < SIZE_MAX / 8 ? rv_arena_alloc(&doc->arena, len + RV_TEXT_MARGIN) : NULL;
	if (doc->text == NULL)
		return rv_error_nomem(err);
	if (len > 0)
		memcpy(doc->text, bytes + doc->skipped, len);
	rv_guard_text(doc->text, len, guard);
	if (guard->reason != NULL)
		return rv_error_set(err, RV_E_REQUEST, 0, "not JSON at byte %zu: %s", doc->skipped + guard->offset,
				    guard->reason);
	if (guard->lone && (doc->flags & RV_JSON_STRICT) != 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "a lone surrogate at byte %zu",
				    doc->skipped + guard->first_lone);
	memset(doc->text + guard->len, ' ', RV_TEXT_MARGIN - 1);
	doc->text[guard->len + RV_TEXT_MARGIN - 1] = '\0';
	doc->len = guard->len;
	doc->lone = guard->lone;
	return 0;
}

/* yajl stops at the value's end and takes the beginning of a string behind it for nothing. */
static int check_rest(struct rv_json_doc *doc, struct rv_error *err)
{
	size_t at = doc->root_end + strspn(doc->text + doc->root_end, " \t\r\n");

	if (at >= doc->len)
		return 0;
	return rv_error_set(err, RV_E_REQUEST, 0, "not JSON at byte %zu: trailing garbage", written_offset(doc, at));
}

/* All of what yajl is to read.  0 where it takes it. */
static int read_all(struct rv_json_doc *doc, bool escapes, struct rv_error *err)
{
	doc->failure = RV_FAILED_NOT;
	doc->root = NULL;
	doc->open = NULL;
	doc->depth = 0;
	doc->long_next = 0;
	doc->left_out = 0;
	if (!start_yajl(doc, escapes ? doc->read_len : 0))
		return rv_error_nomem(err);
	if (yajl_parse(doc->yajl, (const unsigned char *)doc->read, doc->read_len + 1) != yajl_status_ok)
		return refuse(doc, consumed(doc), err);
	if (yajl_complete_parse(doc->yajl) != yajl_status_ok || doc->root == NULL)
		return refuse(doc, doc->len, err);
	return 0;
}

const struct rv_json_node *rv_json_parse(struct rv_json_doc *doc, const char *bytes, size_t len, unsigned flags,
					 struct rv_error *err)
{
	struct rv_guard guard;
	struct rv_error ignored = RV_ERROR_INIT;
	int abridged = 0;

	rv_arena_reset(&doc->arena);
	doc->flags = flags;
	if (prepare_text(doc, bytes, len, &guard, err) != 0)
		return NULL;
	doc->long_count = 0;
	if (doc->len >= RV_ABRIDGED && !doc->whole)
		abridged = rv_json_abridge(doc);
	if (abridged == 1 && read_all(doc, guard.escapes, &ignored) != 0)
		abridged = ignored.code == RV_E_NOMEM ? -1 : 0;
	if (abridged < 0) {
		(void)rv_error_nomem(err);
		return NULL;
	}
	if (abridged == 0) {
		doc->read = doc->text;
		doc->read_len = doc->len;
		if (read_all(doc, guard.escapes, err) != 0)
			return NULL;
	}
	return check_rest(doc, err) == 0 ? doc->root : NULL;
}

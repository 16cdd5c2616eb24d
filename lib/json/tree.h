/*
 * Inside the room: how a document lies in memory.
 *
 * An arena gives everything: the copy of the text that is parsed, yajl's own memory, the
 * nodes.  An array's element is a bare node; a member has its name right before the node, so
 * that an array of numbers does not pay for names.  `tag` packs the type, two flags and an
 * offset into the text: of the start while a container is open, of the end once it is closed
 * and of the end of a string with escapes.
 */
#ifndef RV_JSON_TREE_H
#define RV_JSON_TREE_H

#include "lib/base/arena.h"
#include "lib/json/json.h"

#define RV_NODE_TYPE    0x0FU
#define RV_NODE_MEMBER  0x10U /* a name lies before it */
#define RV_NODE_ESCAPED 0x20U /* a string that was written with escapes: its bytes are not in the text */
#define RV_NODE_OFFSET  8

struct rv_json_node {
	uint64_t tag;
	struct rv_json_node *next; /* sibling; the parent while a container is open */
	union {
		struct rv_span text; /* string: WTF-8; number: as written */
		struct {
			struct rv_json_node *first;
			union {
				struct rv_json_node *last; /* while open */
				const char *source;        /* closed: its first byte in the text */
			} u;
		} list;
	} v;
};

struct rv_json_member {
	struct rv_span name;
	struct rv_json_node node;
};

static inline enum rv_json_type rv_node_type(const struct rv_json_node *node)
{
	return (enum rv_json_type)(node->tag & RV_NODE_TYPE);
}

static inline struct rv_span rv_node_name(const struct rv_json_node *member)
{
	return ((const struct rv_json_member *)(const void *)((const char *)member -
							       offsetof(struct rv_json_member, node)))->name;
}

/* What the prepass found. */
struct rv_guard {
	size_t len;            /* of the text once lone surrogates stand as bytes */
	bool escapes;          /* there may be strings with escapes */
	bool lone;             /* a lone surrogate was there */
	size_t first_lone;     /* its offset */
	const char *reason;    /* NULL, or why the text is refused */
	size_t offset;         /* where */
};

/* The fix-ups that make yajl equal to JSON.parse, in place. */
void rv_guard_text(char *text, size_t len, struct rv_guard *guard);

/* Is a byte below 0x20 in it? */
bool rv_guard_has_control(const char *text, size_t len);

/* The code unit of the \uXXXX at `at` <= len, or -1. */
int rv_json_unit_at(const char *text, size_t len, size_t at);

/* Order by UTF-16 code unit of WTF-8 names: <0, 0, >0. */
int rv_name_compare(struct rv_span a, struct rv_span b);

/* A member on its way into some order. */
struct rv_item {
	const struct rv_json_node *node;
	uint64_t key; /* the sort's own */
	size_t place; /* among the members as written */
};

size_t rv_members_count(const struct rv_json_node *object);
void rv_members_list(const struct rv_json_node *object, struct rv_item *items);

/* Put members in the order of the canonical form, or of the engine's own objects, in O(n log n);
 * of duplicates the last value stays.  `spare` holds as many.  Returns how many there are then. */
size_t rv_items_order_canonical(struct rv_item *items, struct rv_item *spare, size_t count);
size_t rv_items_order_engine(struct rv_item *items, struct rv_item *spare, size_t count);

/* Behind each string of a document so many bytes may be read, so that whole words can be. */
#define RV_SPARE ((size_t)8)

/* rv_json_add_string() of a document's own string. */
void rv_json_add_wtf8(struct rv_buffer *out, struct rv_span text);

/* The value of a number's text, rounded to nearest even; +-HUGE_VAL where it overflows. */
double rv_number_value(struct rv_span text);
/* Is this an integer literal that a double does not hold? */
bool rv_number_is_inexact_integer(struct rv_span text);
/* Append the canonical form of a number's text; false where it overflows a double. */
bool rv_number_add_canonical(struct rv_buffer *out, struct rv_span text);

#endif

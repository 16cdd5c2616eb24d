/*
 * JSON as the engine sees it: accepts exactly what JSON.parse accepts, and reads it as
 * JSON.parse does.  This room is the only one that knows yajl.
 *
 * A document owns an arena; its nodes and spans are borrowed from it and live until
 * rv_json_doc_release() or the next parse into the same document (which reuses the memory:
 * parse many lines into one doc).  Strings are WTF-8: UTF-8 in which a lone surrogate stands
 * as its three raw bytes; they may hold NUL.  Nothing recurses on the input's depth.
 */
#ifndef RV_JSON_JSON_H
#define RV_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

enum rv_json_type {
	RV_JSON_NULL,
	RV_JSON_FALSE,
	RV_JSON_TRUE,
	RV_JSON_NUMBER,
	RV_JSON_STRING,
	RV_JSON_ARRAY,
	RV_JSON_OBJECT
};

struct rv_json_node;
struct rv_json_doc;

enum rv_json_flags {
	RV_JSON_DEFAULT = 0,
	RV_JSON_BOM = 1 << 0,    /* one leading byte order mark is passed over (ledger lines) */
	RV_JSON_STRICT = 1 << 1  /* refuse duplicate members, lone surrogates, integers a double does not hold */
};

struct rv_json_doc *rv_json_doc_new(struct rv_error *err);
void rv_json_doc_free(struct rv_json_doc *doc); /* NULL is fine */

/* Parse one whole document.  NULL on refusal: RV_E_REQUEST with a reason for people and its
 * byte offset (nothing of the input unescaped), RV_E_NUMBER for an integer that RV_JSON_STRICT
 * refuses, RV_E_NOMEM. */
const struct rv_json_node *rv_json_parse(struct rv_json_doc *doc, const char *bytes, size_t len, unsigned flags,
					 struct rv_error *err);

enum rv_json_type rv_json_type(const struct rv_json_node *node);
bool rv_json_is_string(const struct rv_json_node *node); /* false for NULL */
/* The WTF-8 bytes of a string node. */
struct rv_span rv_json_string(const struct rv_json_node *node);
/* A number node's text as written, and as a double (overflow: +-HUGE_VAL, as JSON.parse). */
struct rv_span rv_json_number_text(const struct rv_json_node *node);
double rv_json_number(const struct rv_json_node *node);
/* A number node that is an integer within +-(2^53-1) (also 1.0 or 1e3, -0 is 0). */
bool rv_json_integer(const struct rv_json_node *node, int64_t *value);

/* A member's value, the last of its name; NULL if absent or if node is NULL or no object. */
const struct rv_json_node *rv_json_get(const struct rv_json_node *object, const char *name);
/* The same for several names in one pass: found[i] is the value of names[i], or NULL. */
void rv_json_pick(const struct rv_json_node *object, const struct rv_span *names, size_t count,
		  const struct rv_json_node **found);
/* Children in the order written, duplicates included: first child, next sibling, and a member's name. */
const struct rv_json_node *rv_json_first(const struct rv_json_node *container);
const struct rv_json_node *rv_json_next(const struct rv_json_node *child);
struct rv_span rv_json_name(const struct rv_json_node *member);

/* The canonical form (RFC 8785 as the engine has it) of a node.  RV_E_NUMBER where a number
 * overflows a double. */
int rv_json_canonical(const struct rv_json_node *node, struct rv_buffer *out, struct rv_error *err);

/* JSON.stringify of a node: members in JavaScript's own property order (array indices first,
 * ascending, then as first written), last duplicate wins, an overflowing number is null. */
int rv_json_stringify(const struct rv_json_node *node, struct rv_buffer *out, struct rv_error *err);

/* A node as it was written, without the white space between tokens: duplicates, their order and
 * the spelling of numbers and escapes stay (a lone surrogate's escape comes out in lower case). */
void rv_json_add_source(struct rv_buffer *out, const struct rv_json_doc *doc, const struct rv_json_node *node);

/* What a quick look says, which builds nothing and refuses nothing.
 *   RV_JSON_COMPACT  rv_json_parse() accepts it, and rv_json_add_compact() adds just these bytes
 *   RV_JSON_SPACED   rv_json_parse() accepts it; there is white space between tokens, or around them
 *   RV_JSON_UNSURE   only rv_json_parse() can tell */
enum rv_json_shape { RV_JSON_UNSURE, RV_JSON_COMPACT, RV_JSON_SPACED };
enum rv_json_shape rv_json_skim(const char *text, size_t len);

/* `bytes`, which were accepted by rv_json_parse, without the white space between tokens. */
void rv_json_add_compact(struct rv_buffer *out, const char *bytes, size_t len);

#endif

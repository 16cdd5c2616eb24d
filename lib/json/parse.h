/* Inside the room: a document, and what a parse keeps while it goes on. */
#ifndef RV_JSON_PARSE_H
#define RV_JSON_PARSE_H

#include "lib/json/tree.h"

struct yajl_handle_t;

enum rv_failure { RV_FAILED_NOT, RV_FAILED_MEMORY, RV_FAILED_DUPLICATE, RV_FAILED_INTEGER };

struct rv_json_doc {
	struct rv_arena arena;
	unsigned flags;
	char *text;     /* what is parsed: the caller's bytes after the prepass */
	size_t len;
	size_t skipped; /* bytes of a byte order mark before it */
	bool lone;      /* the text holds lone surrogates as bytes */
	bool whole;     /* yajl reads all of it, always (what tests compare with) */

	char *read; /* what yajl reads: the text, or what is left of it without its long strings */
	size_t read_len;
	struct rv_span *longs; /* of the text, in their order; only where it is abridged */
	size_t long_count;
	size_t long_next; /* the first that yajl has not come to */
	size_t left_out;  /* bytes of the text up to where yajl is that it did not read */

	struct yajl_handle_t *yajl;
	char *pool_at; /* yajl's memory */
	char *pool_end;
	char *spare;       /* the next stack of states */
	size_t stack_size; /* of the stack once the spare is taken */

	struct rv_json_node *root;
	size_t root_end;           /* offset behind it */
	struct rv_json_node *open; /* the innermost container that is not closed */
	size_t depth;
	struct rv_span name; /* of the member whose value comes next */
	enum rv_failure failure;
	size_t failed_at;
};

#define RV_TEXT_MARGIN ((size_t)16) /* bytes behind the text, at least RV_SPARE */
#define RV_ABRIDGED ((size_t)8192)  /* shorter texts are read as they are */

/* Let yajl read a text without its long strings: 1.  0: it is to read the whole.  -1: no memory. */
int rv_json_abridge(struct rv_json_doc *doc);

/* A string as yajl gives it: true, and the string itself, where it stands for one that was left out. */
bool rv_json_take_long(struct rv_json_doc *doc, struct rv_span *text);

/* yajl's allocator over the arena: `context` is the document.  A parse starts with room for strings
 * with escapes of up to `longest` bytes; before each push of a state the parse asks
 * whether there is room for it. */
bool rv_pool_start(struct rv_json_doc *doc, size_t longest);
bool rv_pool_prepare_push(struct rv_json_doc *doc);
void *rv_pool_malloc(void *context, size_t size);
void *rv_pool_realloc(void *context, void *memory, size_t size);
void rv_pool_free(void *context, void *memory);

/* The opening quote of the string whose closing quote is right before `end`; that quote itself where
 * it has no other in `text`. */
const char *rv_json_string_start(const char *text, const char *end);

enum rv_distinct { RV_DISTINCT, RV_DUPLICATE, RV_DISTINCT_NO_MEMORY };

/* Has an object two members of one name? */
enum rv_distinct rv_members_check_distinct(const struct rv_json_node *object);

#endif

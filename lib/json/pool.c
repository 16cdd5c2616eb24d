/*
 * yajl's memory.  yajl does not check what its allocator returns, so it must never need memory
 * that is not there.  What it takes for a text is bounded before it starts (its structures, the
 * buffer for a string with escapes) and reserved as one pool; its stack of states grows
 * only right behind a container's event, which makes sure of the next piece first and cancels the
 * parse where there is none.
 */
#include "lib/json/parse.h"

#include <string.h>

#define STRUCTURES ((size_t)8192) /* handle, lexer, two buffers of 2048, the first stack, a message */
#define STACK_STEP ((size_t)128)  /* what yajl adds to its stack at once */

struct block {
	size_t size;
	_Alignas(16) char data[];
};

void *rv_pool_malloc(void *context, size_t size)
{
	struct rv_json_doc *doc = context;
	size_t whole = sizeof(struct block) + ((size + 15) & ~(size_t)15);
	struct block *block;

	if ((size_t)(doc->pool_end - doc->pool_at) < whole) {
		block = rv_arena_alloc(&doc->arena, whole); /* beyond the bound: not with the yajl this was made for */
		if (block == NULL)
			return NULL;
	} else {
		block = (struct block *)(void *)doc->pool_at;
		doc->pool_at += whole;
	}
	block->size = whole - sizeof *block;
	return block->data;
}

void rv_pool_free(void *context, void *memory)
{
	(void)context;
	(void)memory;
}

static struct block *block_of(void *memory)
{
	return (struct block *)(void *)((char *)memory - offsetof(struct block, data));
}

void *rv_pool_realloc(void *context, void *memory, size_t size)
{
	struct rv_json_doc *doc = context;
	struct block *block;
	char *moved;

	if (memory == NULL)
		return rv_pool_malloc(context, size);
	block = block_of(memory);
	if (size <= block->size)
		return memory;
	if (block->data + block->size == doc->pool_at && (size_t)(doc->pool_end - block->data) >= size + 15) {
		block->size = (size + 15) & ~(size_t)15;
		doc->pool_at = block->data + block->size;
		return memory;
	}
	if (doc->spare != NULL && block_of(doc->spare)->size >= size) {
		moved = doc->spare;
		doc->spare = NULL;
	} else {
		moved = rv_pool_malloc(context, size);
	}
	if (moved != NULL)
		memcpy(moved, memory, block->size);
	return moved;
}

bool rv_pool_prepare_push(struct rv_json_doc *doc)
{
	size_t used = doc->depth + 1; /* one for the document itself */
	size_t size;
	struct block *block;

	if (used % STACK_STEP != 0 || used + STACK_STEP <= doc->stack_size)
		return true;
	size = 2 * (used + STACK_STEP);
	block = rv_arena_alloc(&doc->arena, sizeof *block + size);
	if (block == NULL)
		return false;
	block->size = size;
	doc->spare = block->data;
	doc->stack_size = size;
	return true;
}

bool rv_pool_start(struct rv_json_doc *doc, size_t longest)
{
	/* yajl doubles a buffer of 2048 until it holds more than the string */
	size_t size = STRUCTURES + (longest == 0 ? 0 : 2 * (longest + 2) + 4096);

	doc->pool_at = rv_arena_alloc(&doc->arena, size);
	if (doc->pool_at == NULL)
		return false;
	doc->pool_end = doc->pool_at + size;
	doc->spare = NULL;
	doc->stack_size = STACK_STEP;
	return true;
}

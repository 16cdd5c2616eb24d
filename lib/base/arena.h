/* Memory that is given back all at once: many small pieces lie close together, and cost no call each. */
#ifndef RV_BASE_ARENA_H
#define RV_BASE_ARENA_H

#include <stddef.h>

struct rv_arena_chunk;

struct rv_arena {
	struct rv_arena_chunk *chunks; /* newest first */
	char *at;
	char *end;
	size_t total; /* bytes of all chunks */
};

#define RV_ARENA_INIT { .chunks = NULL, .at = NULL, .end = NULL, .total = 0 }

void *rv_arena_alloc(struct rv_arena *arena, size_t size); /* 16-byte aligned; NULL: no memory */
void rv_arena_reset(struct rv_arena *arena);               /* keeps what an ordinary next use needs */
void rv_arena_release(struct rv_arena *arena);

#endif

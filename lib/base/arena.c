#include "lib/base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define ALIGN ((size_t)16)
#define FIRST_CHUNK ((size_t)32 << 10)
#define LARGEST_STEP ((size_t)16 << 20)
#define KEPT ((size_t)8 << 20) /* more than this goes back to the system before the next use */

struct rv_arena_chunk {
	struct rv_arena_chunk *older;
	size_t size; /* of data */
	_Alignas(16) char data[];
};

static bool add_chunk(struct rv_arena *arena, size_t least)
{
	size_t size = arena->chunks == NULL ? FIRST_CHUNK : arena->chunks->size * 2;
	struct rv_arena_chunk *chunk;

	if (size > LARGEST_STEP)
		size = LARGEST_STEP;
	if (size < least)
		size = least;
	if (size > SIZE_MAX / 2 - sizeof *chunk)
		return false;
	chunk = malloc(sizeof *chunk + size);
	if (chunk == NULL)
		return false;
	chunk->older = arena->chunks;
	chunk->size = size;
	arena->chunks = chunk;
	arena->at = chunk->data;
	arena->end = chunk->data + size;
	arena->total += size;
	return true;
}

void *rv_arena_alloc(struct rv_arena *arena, size_t size)
{
	char *taken;

	if (size > SIZE_MAX / 4)
		return NULL;
	size = (size + ALIGN - 1) & ~(ALIGN - 1);
	if ((size_t)(arena->end - arena->at) < size && !add_chunk(arena, size))
		return NULL;
	taken = arena->at;
	arena->at += size;
	return taken;
}

static void free_chunks(struct rv_arena *arena)
{
	while (arena->chunks != NULL) {
		struct rv_arena_chunk *older = arena->chunks->older;

		free(arena->chunks);
		arena->chunks = older;
	}
	arena->at = NULL;
	arena->end = NULL;
	arena->total = 0;
}

void rv_arena_reset(struct rv_arena *arena)
{
	size_t total = arena->total;

	if (arena->chunks != NULL && arena->chunks->older == NULL && total <= KEPT) {
		arena->at = arena->chunks->data;
		return;
	}
	free_chunks(arena);
	/* Several chunks became one, so that lines of this size need no more; without memory for
	 * that the next allocation says so. */
	if (total != 0 && total <= KEPT)
		(void)add_chunk(arena, total);
}

void rv_arena_release(struct rv_arena *arena)
{
	free_chunks(arena);
}

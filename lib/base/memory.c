#include "lib/base/memory.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE ((size_t)2 << 20)
#define KEPT (32 << 20)
#define MAPPED (8 << 20) /* one piece of so much goes back at once */

/* Aligned, so that the first and the last of it are huge pages too; not by realloc(3), which would move
 * them to where they no longer fit. */
static void *large(size_t size)
{
	void *memory;

	if (size > (size_t)-1 - HUGE || posix_memalign(&memory, HUGE, size) != 0)
		return NULL;
	(void)madvise(memory, size & ~(HUGE - 1), MADV_HUGEPAGE); /* a hint: without it all is the same */
	return memory;
}

void *rv_memory_grow(void *old, size_t used, size_t size)
{
	void *memory;

	if (size < 2 * HUGE)
		return realloc(old, size);
	memory = large(size);
	if (memory == NULL)
		return NULL;
	if (used > 0)
		memcpy(memory, old, used);
	free(old);
	return memory;
}

void *rv_memory_zeroed(size_t size)
{
	void *memory;

	if (size < 2 * HUGE)
		return calloc(1, size);
	memory = large(size);
	if (memory != NULL)
		memset(memory, 0, size);
	return memory;
}

void rv_memory_keep(void)
{
#ifdef M_TRIM_THRESHOLD
	(void)mallopt(M_TRIM_THRESHOLD, KEPT);
	(void)mallopt(M_MMAP_THRESHOLD, MAPPED);
#endif
}

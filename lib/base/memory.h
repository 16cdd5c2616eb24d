/* Large arrays that are looked up all over: in huge pages where the kernel has them, which saves most
 * of their page faults and of the misses of the translation buffers. */
#ifndef RV_BASE_MEMORY_H
#define RV_BASE_MEMORY_H

#include <stddef.h>

/* realloc(3) of memory that was got from here, or of NULL, and of which `used` bytes matter; free(3)
 * gives it back.  NULL: no memory, and the old one is still there. */
void *rv_memory_grow(void *old, size_t used, size_t size);
/* The same, new and zeroed. */
void *rv_memory_zeroed(size_t size);

/* For a program that answers one request after another: freed memory, up to some 32 MiB of it, is kept for the next
 * one, and not given back to the kernel, which would have to zero it anew. */
void rv_memory_keep(void);

#endif

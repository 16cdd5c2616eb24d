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

#endif

/*
 * A ledger to be scanned: a regular file, or a stream (standard input, a FIFO), which is spooled into
 * a nameless temporary file first, so that both can be read by offset and read again.
 */
#ifndef RV_LEDGER_SOURCE_H
#define RV_LEDGER_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"

struct rv_source {
	const char *path; /* borrowed; "-" is standard input */
	int fd;
	bool remote;      /* on a file system where locks say nothing */
	bool streamed;    /* no lock and no time of birth says anything about its writers */
	int64_t born_ms;  /* wall clock; -1 where the file system does not say */
	int live;         /* does anybody hold a liveness lock?  -1 not asked yet */
};

int rv_source_open(struct rv_source *source, const char *path, struct rv_error *err);
void rv_source_close(struct rv_source *source);

int rv_source_size(const struct rv_source *source, uint64_t *size, struct rv_error *err);
/* Bytes [offset, offset+len), appended to `out`; RV_E_IO where they are not there any more. */
int rv_source_read(const struct rv_source *source, uint64_t offset, uint64_t len, struct rv_buffer *out,
		   struct rv_error *err);

/* Does somebody repair it, or append to it, right now? */
bool rv_source_is_busy(const struct rv_source *source);

#endif

/*
 * Reading and changing the bytes of a ledger, for a repair.  The descriptor is O_RDWR | O_APPEND and the
 * process's only one of the file; the append lock is held.
 */
#ifndef RV_LEDGER_PATCH_H
#define RV_LEDGER_PATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/digest/digest.h"

int rv_patch_size(int fd, uint64_t *size, struct rv_error *err);
/* Bytes [start, end), appended to `out`. */
int rv_patch_read(int fd, uint64_t start, uint64_t end, struct rv_buffer *out, struct rv_error *err);
/* Are the bytes at this place still those with this hash? */
int rv_patch_holds(int fd, uint64_t at, uint64_t len, const unsigned char sha256[RV_SHA256_SIZE], bool *holds,
		   struct rv_error *err);
/* The line at `start`, without its newline, which is before `size`; or all up to there. */
int rv_patch_read_line(int fd, uint64_t start, uint64_t size, struct rv_buffer *line, struct rv_error *err);
/* The unterminated bytes at the end of a file of `size` bytes. */
int rv_patch_read_tail(int fd, uint64_t size, uint64_t *start, struct rv_buffer *tail, struct rv_error *err);

/* Room on disk for [at, at+len) before the first byte is written: on a full disk a repair must fail
 * with nothing changed.  The file's size stays; where the file system cannot, nothing. */
int rv_patch_reserve(int fd, uint64_t at, size_t len, struct rv_error *err);
/* One write at the end, wherever that is by now: *landed says where it went. */
int rv_patch_append(int fd, struct rv_span bytes, uint64_t *landed, struct rv_error *err);
/* Write over what is there, and sync. */
int rv_patch_overwrite(int fd, struct rv_span bytes, uint64_t at, struct rv_error *err);
int rv_patch_sync(int fd, struct rv_error *err);

#endif

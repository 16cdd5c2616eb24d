/*
 * Whole reads and writes, syncs, locks and leases.  Every descriptor is CLOEXEC at
 * birth.  EINTR is retried everywhere.  Lock offsets and lengths are bytes.
 */
#ifndef RV_BASE_IO_H
#define RV_BASE_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"

/* Make sure that 0, 1 and 2 exist (on /dev/null, opened the wrong way round so that use
 * is an error and not a leak): first thing in main. */
int rv_io_standard_descriptors(void);

/* Make room for so many descriptors more, as far as the hard limit lets; beyond it open(2) says so. */
void rv_io_allow_descriptors(size_t count);

/* open(2) with O_CLOEXEC, and openat. */
int rv_io_open(const char *path, int flags, mode_t mode, struct rv_error *err);

/* All of `len`, or -1 with errno kept in err->errnum (RV_E_IO). */
int rv_io_write_all(int fd, const void *bytes, size_t len, struct rv_error *err);
int rv_io_pwrite_all(int fd, const void *bytes, size_t len, off_t at, struct rv_error *err);

/* Append everything up to end of file to `out` (its cap holds). */
int rv_io_read_all(int fd, struct rv_buffer *out, struct rv_error *err);
/* Up to `len` bytes, as read(2) and pread(2) give them: how many, 0 at end of file, -1 (RV_E_IO). */
ssize_t rv_io_read_some(int fd, void *bytes, size_t len, struct rv_error *err);
ssize_t rv_io_pread_some(int fd, void *bytes, size_t len, off_t at, struct rv_error *err);
/* Exactly `len` bytes from `at`, RV_E_IO if the file is shorter. */
int rv_io_pread_all(int fd, void *bytes, size_t len, off_t at, struct rv_error *err);
/* A whole file by name; "-" is standard input. */
int rv_io_read_file(const char *path, struct rv_buffer *out, struct rv_error *err);

/* A new file (O_EXCL, no link followed) with these bytes: where the file system can, it appears with all
 * of them or not at all, also after SIGKILL.  With `sync` they are on disk before it appears and its
 * directory afterwards.  1 made, 0 the name is taken, -1 error. */
int rv_io_create(const char *path, const void *bytes, size_t len, mode_t mode, bool sync, struct rv_error *err);

/* The directory that holds `path`, with O_RDONLY or O_PATH; -1 error. */
int rv_io_open_parent(const char *path, int flags, struct rv_error *err);
/* fsync it. */
int rv_io_sync_parent(const char *path, struct rv_error *err);

/* Open file description locks (fcntl(2), F_OFD_SETLK): exclusive, on [at, at+len).  They
 * vanish with the description, are not lost by another close, and need write access, so
 * that no reader can stop a writer.  deadline_ms is monotonic; past it RV_E_BUSY. */
int rv_io_lock(int fd, off_t at, off_t len, int64_t deadline_ms, struct rv_error *err);
int rv_io_unlock(int fd, off_t at, off_t len, struct rv_error *err);
/* Would such a lock conflict?  Needs no write access.  1 yes, 0 no, -1 error. */
int rv_io_lock_probe(int fd, off_t at, off_t len, struct rv_error *err);

/* A write lease (fcntl(2), F_SETLEASE): had only while nobody else has the file open, and
 * then every new open waits.  1 got, 0 others have it open, -1 error (RV_E_IO; not supported).
 * An open that waits is told by SIGURG, whose default is to be ignored, and not by SIGIO, which kills. */
int rv_io_lease(int fd, struct rv_error *err);
/* Is it held, and nobody waits for its end? */
bool rv_io_lease_is_quiet(int fd);
int rv_io_lease_end(int fd, struct rv_error *err);

/* Make a pipe hold what anybody's may, 1 MiB; where it may not be (pipe(7): the user has too many), or for what is
 * no pipe, nothing changes. */
void rv_io_enlarge_pipe(int fd);

#endif

/*
 * Reading ledgers into a scan: by one thread from where the scan stands, or all of several files from
 * their starts, with threads.
 *
 * The threads take pieces of files in order, read them with pread(2) (a mapping would kill the
 * program where a file shrinks) and judge their lines side by side; what they found goes into the
 * scan piece by piece in order, so that the answer is the same for every number of threads.
 */
#ifndef RV_LEDGER_GATHER_H
#define RV_LEDGER_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/ledger/scan.h"

#define RV_THREADS_MAX 256

struct rv_gather {
	const int *fds; /* by the scan's file numbers; their offsets are not used */
	size_t count;
	unsigned threads; /* 1 to RV_THREADS_MAX; the caller's is one of them */
	uint64_t piece;   /* bytes that a thread takes at a time; 0: what is fastest */
	/* How far it is, in bytes, now and then; never two calls at a time.  NULL: nobody asks. */
	void (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
};

/* Fold all that the files have, each with its tail.  RV_E_IO, also where a file became shorter meanwhile;
 * *failed is the file that an error is about. */
int rv_scan_gather(struct rv_scan *scan, const struct rv_gather *gather, size_t *failed, struct rv_error *err);

/* Fold a file by its descriptor, whose offset is not used, from where the scan stands to what is
 * the end now; rv_scan_read() with the tail. */
int rv_scan_pull(struct rv_scan *scan, uint32_t file, int fd, struct rv_error *err);
int rv_scan_read(struct rv_scan *scan, uint32_t file, int fd, struct rv_error *err);

#endif

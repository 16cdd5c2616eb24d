#include "lib/ledger/gather.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/ledger/patch.h"

#define CHUNK ((size_t)1 << 20)
#define PIECE ((size_t)256 << 10)  /* of a file at a time: with what is found in it, it stays in the caches */
#define BEYOND ((size_t)16 << 10)  /* of the last line of a piece, that is read with it */
#define KEPT ((size_t)4 << 20)     /* a piece that one long line made larger is given back */
#define PIECES_PER_THREAD 4        /* so that few wait for their turn to merge */

enum state { FREE, BUSY, READY };

/* A part of a file: the lines that begin in [start, end). */
struct piece {
	enum state state;
	size_t file;
	uint64_t start, end;
	uint64_t size;  /* of the file, as it was at first */
	uint64_t first; /* the offset of its first line */
	struct rv_buffer bytes;
	struct rv_lines lines;
	int result;
	struct rv_error err;
};

struct shared {
	struct rv_scan *scan;
	const struct rv_gather *gather;
	uint64_t *sizes; /* of the files */
	uint64_t total;
	uint64_t piece; /* bytes */

	pthread_mutex_t lock; /* the rest */
	pthread_cond_t changed;
	struct piece *ring;
	size_t ring_size;
	size_t next_file; /* the next piece to be read */
	uint64_t next_start;
	uint64_t begun, merged; /* pieces */
	bool merging;
	int result;
	size_t failed;
	uint64_t done;   /* bytes; the merger's */
	size_t finished; /* files, with their tails; the merger's */
	struct rv_error *err;
};

/* Bytes [from, from+len) of the file behind what `bytes` holds. */
static int read_on(struct piece *piece, int fd, uint64_t from, size_t len)
{
	char *room = rv_buffer_reserve(&piece->bytes, len + RV_LAYOUT_SLACK);
	size_t got = 0;

	if (room == NULL)
		return rv_buffer_check(&piece->bytes, &piece->err);
	while (got < len) {
		ssize_t n = rv_io_pread_some(fd, room + got, len - got, (off_t)(from + got), &piece->err);

		if (n < 0)
			return -1;
		if (n == 0)
			return rv_error_set(&piece->err, RV_E_IO, 0, "became shorter while it was read");
		got += (size_t)n;
	}
	rv_buffer_commit(&piece->bytes, len);
	memset(room + len, 0, RV_LAYOUT_SLACK);
	return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The offset in `bytes`, which begin at `base`, behind the first newline from `at` on; 0 where the file has none. */
static int find_end(struct piece *piece, int fd, uint64_t base, size_t at, size_t *end)
{
	*end = 0;
	for (;;) {
		const char *newline = memchr(piece->bytes.data + at, '\n', piece->bytes.len - at);
		uint64_t more = least(piece->size - base - piece->bytes.len, piece->bytes.len);

		if (newline != NULL) {
			*end = (size_t)(newline - piece->bytes.data) + 1;
			return 0;
		}
		if (more == 0)
			return 0;
		at = piece->bytes.len;
		if (read_on(piece, fd, base + at, (size_t)more) != 0)
			return -1;
	}
}

/* The lines that begin in the piece and end in the file are bytes [from, to).  The first begins behind
 * the newline that is right before `start` at the earliest, and the last ends with the first newline
 * that is right before `end` at the earliest. */
static int find_lines(struct piece *piece, int fd, uint64_t base, size_t *from, size_t *to)
{
	const char *newline;

	*from = *to = 0;
	if (piece->start > 0) {
		newline = memchr(piece->bytes.data, '\n', piece->bytes.len);
		if (newline == NULL || base + (uint64_t)(newline - piece->bytes.data) + 1 >= piece->end)
			return 0; /* all of it is in the midst of a line */
		*from = (size_t)(newline - piece->bytes.data) + 1;
	}
	if (find_end(piece, fd, base, (size_t)(piece->end - 1 - base), to) != 0)
		return -1;
	if (*to != 0)
		return 0;
	newline = memrchr(piece->bytes.data + *from, '\n', piece->bytes.len - *from);
	*to = newline == NULL ? *from : (size_t)(newline - piece->bytes.data) + 1;
	return 0;
}

static int read_piece(struct piece *piece, const struct rv_pairs *pairs, int fd)
{
	uint64_t base = piece->start == 0 ? 0 : piece->start - 1;
	size_t from, to;

	rv_buffer_clear(&piece->bytes);
	if (piece->bytes.cap > KEPT)
		rv_buffer_release(&piece->bytes);
	if (read_on(piece, fd, base, (size_t)(least(piece->end + least(BEYOND, piece->end - piece->start), piece->size) - base)) != 0 ||
	    find_lines(piece, fd, base, &from, &to) != 0)
		return -1;
	piece->first = base + from;
	return rv_lines_read(&piece->lines, pairs, piece->bytes.data + from, to - from, &piece->err);
}

/* Is there another piece?  It is the one at next_file and next_start then. */
static bool has_next(struct shared *shared)
{
	while (shared->next_file < shared->gather->count && shared->next_start >= shared->sizes[shared->next_file]) {
		shared->next_file++;
		shared->next_start = 0;
	}
	return shared->next_file < shared->gather->count;
}

static void begin_piece(struct shared *shared, struct piece *piece)
{
	piece->state = BUSY;
	piece->file = shared->next_file;
	piece->size = shared->sizes[piece->file];
	piece->start = shared->next_start;
	piece->end = least(piece->start + shared->piece, piece->size);
	shared->next_start = piece->end;
	shared->begun++;
}

/* Two reads of a file that do not fit together: it was changed between them. */
static bool is_joined(const struct shared *shared, const struct piece *piece)
{
	return piece->lines.count == 0 || rv_scan_position(shared->scan, (uint32_t)piece->file).offset == piece->first;
}

/* What a file has behind its pieces, before anything of the next one: rows are in order. */
static int finish_files(struct shared *shared, size_t count, size_t *failed, struct rv_error *err)
{
	for (; shared->finished < count; shared->finished++) {
		*failed = shared->finished;
		if (rv_scan_read(shared->scan, (uint32_t)shared->finished, shared->gather->fds[shared->finished], err) != 0)
			return -1;
	}
	return 0;
}

/* By what is read already, and a little more. */
static void expect_more(const struct shared *shared)
{
	double attempts = rv_pairs_count(shared->scan->pairs);

	rv_pairs_expect(shared->scan->pairs, attempts * 1.05 / (double)shared->done * (double)shared->total);
}

static int merge_piece(struct shared *shared, struct piece *piece)
{
	size_t file = piece->file;

	if (finish_files(shared, file, &piece->file, &piece->err) != 0)
		return -1;
	piece->file = file;
	if (piece->result != 0)
		return -1;
	if (!is_joined(shared, piece))
		shared->scan->moved = true;
	else if (rv_scan_merge(shared->scan, (uint32_t)piece->file, &piece->lines, &piece->err) != 0)
		return -1;
	shared->done += piece->end - piece->start;
	expect_more(shared);
	if (shared->gather->progress != NULL)
		shared->gather->progress(shared->gather->context, shared->done, shared->total);
	return 0;
}

/* The lock is held, but not while the piece is merged or read. */
static void merge_next(struct shared *shared, struct piece *piece)
{
	int result;

	shared->merging = true;
	(void)pthread_mutex_unlock(&shared->lock);
	result = merge_piece(shared, piece);
	(void)pthread_mutex_lock(&shared->lock);
	shared->merging = false;
	shared->merged++;
	piece->state = FREE;
	if (result != 0) {
		*shared->err = piece->err;
		shared->failed = piece->file;
		shared->result = -1;
	}
	(void)pthread_cond_broadcast(&shared->changed);
}

static void read_next(struct shared *shared, struct piece *piece)
{
	begin_piece(shared, piece);
	(void)pthread_mutex_unlock(&shared->lock);
	piece->result = read_piece(piece, shared->scan->pairs, shared->gather->fds[piece->file]);
	(void)pthread_mutex_lock(&shared->lock);
	piece->state = READY;
	(void)pthread_cond_broadcast(&shared->changed);
}

/* Merge what is due before reading more: what waits takes room. */
static void *work(void *argument)
{
	struct shared *shared = argument;

	(void)pthread_mutex_lock(&shared->lock);
	while (shared->result == 0) {
		struct piece *due = &shared->ring[shared->merged % shared->ring_size];
		struct piece *next = &shared->ring[shared->begun % shared->ring_size];

		if (!shared->merging && due->state == READY)
			merge_next(shared, due);
		else if (next->state == FREE && has_next(shared))
			read_next(shared, next);
		else if (shared->merged == shared->begun && !has_next(shared))
			break;
		else
			(void)pthread_cond_wait(&shared->changed, &shared->lock);
	}
	(void)pthread_mutex_unlock(&shared->lock);
	return NULL;
}

/* Thread count - 1 more threads; where one cannot be had, what is asked for cannot be done. */
static void work_with_others(struct shared *shared, pthread_t *others, unsigned count)
{
	unsigned started = 0;

	for (; started < count; started++) {
		int errnum = pthread_create(&others[started], NULL, work, shared);

		if (errnum == 0)
			continue;
		(void)pthread_mutex_lock(&shared->lock);
		if (shared->result == 0)
			shared->result = rv_error_set(shared->err, RV_E_IO, errnum, "a thread");
		(void)pthread_cond_broadcast(&shared->changed);
		(void)pthread_mutex_unlock(&shared->lock);
		break;
	}
	(void)work(shared);
	while (started > 0)
		(void)pthread_join(others[--started], NULL);
}

static int measure(struct shared *shared, uint64_t *pieces, struct rv_error *err)
{
	*pieces = 0;
	for (size_t i = 0; i < shared->gather->count; i++) {
		shared->failed = i;
		if (rv_patch_size(shared->gather->fds[i], &shared->sizes[i], err) != 0)
			return -1;
		shared->total += shared->sizes[i];
		*pieces += (shared->sizes[i] + shared->piece - 1) / shared->piece;
	}
	return 0;
}

static int make_ring(struct shared *shared, unsigned threads, struct rv_error *err)
{
	shared->ring_size = threads == 1 ? 1 : (size_t)threads * PIECES_PER_THREAD;
	shared->ring = calloc(shared->ring_size, sizeof *shared->ring);
	if (shared->ring == NULL)
		return rv_error_nomem(err);
	for (size_t i = 0; i < shared->ring_size; i++) {
		rv_buffer_init(&shared->ring[i].bytes, 0);
		rv_lines_init(&shared->ring[i].lines);
	}
	return 0;
}

static void release(struct shared *shared)
{
	for (size_t i = 0; shared->ring != NULL && i < shared->ring_size; i++) {
		rv_buffer_release(&shared->ring[i].bytes);
		rv_lines_release(&shared->ring[i].lines);
	}
	free(shared->ring);
	free(shared->sizes);
}

static int gather_with(struct shared *shared, struct rv_error *err)
{
	unsigned threads = shared->gather->threads;
	rv_auto_free pthread_t *others = calloc(threads, sizeof *others);
	uint64_t pieces;

	shared->sizes = calloc(shared->gather->count, sizeof *shared->sizes);
	if (others == NULL || shared->sizes == NULL)
		return rv_error_nomem(err);
	if (measure(shared, &pieces, err) != 0)
		return -1;
	if (pieces < threads)
		threads = pieces == 0 ? 1 : (unsigned)pieces;
	if (make_ring(shared, threads, err) != 0)
		return -1;
	work_with_others(shared, others, threads - 1);
	return shared->result == 0 ? finish_files(shared, shared->gather->count, &shared->failed, err) : -1;
}

int rv_scan_gather(struct rv_scan *scan, const struct rv_gather *gather, size_t *failed, struct rv_error *err)
{
	struct shared shared = {
		.scan = scan,
		.gather = gather,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
		.piece = gather->piece == 0 ? PIECE : gather->piece,
		.err = err,
	};
	int result = gather_with(&shared, err);

	*failed = shared.failed;
	release(&shared);
	return result;
}

int rv_scan_pull(struct rv_scan *scan, uint32_t file, int fd, struct rv_error *err)
{
	struct rv_place at = rv_scan_position(scan, file);
	uint64_t offset = at.offset + at.len;
	rv_auto_free char *chunk = malloc(CHUNK);

	if (chunk == NULL)
		return rv_error_nomem(err);
	for (;;) {
		ssize_t n = rv_io_pread_some(fd, chunk, CHUNK, (off_t)offset, err);

		if (n <= 0)
			return (int)n;
		if (rv_scan_feed(scan, file, chunk, (size_t)n, err) != 0)
			return -1;
		offset += (uint64_t)n;
	}
}

int rv_scan_read(struct rv_scan *scan, uint32_t file, int fd, struct rv_error *err)
{
	return rv_scan_pull(scan, file, fd, err) == 0 ? rv_scan_end(scan, file, err) : -1;
}

#include "lib/base/pump.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"

#define BLOCK ((size_t)256 << 10)
#define KEPT ((size_t)4 << 20) /* a batch buffer that one long line made larger is given back */

struct shared {
	const struct rv_pump *pump;

	pthread_mutex_t reading; /* the turn to read, and all up to next_line */
	struct rv_buffer rest;   /* the beginning of a line whose end was not read yet */
	bool ended;
	uint64_t read_batches;
	uint64_t next_line;

	pthread_mutex_t writing; /* the rest */
	pthread_cond_t written;
	uint64_t written_batches;
	bool stopped;
	int result;
	struct rv_error *err;
	int stop_fd; /* readable once stopped: ends a wait for input */
};

struct batch {
	struct rv_buffer in;
	struct rv_buffer out;
	uint64_t order;
	uint64_t first_line;
	int result;
	struct rv_error err;
};

/* 1 there is input (or its end), 0 stopped. */
static int wait_for_input(const struct shared *shared)
{
	struct pollfd fds[2] = {
		{ .fd = shared->pump->fd, .events = POLLIN },
		{ .fd = shared->stop_fd, .events = POLLIN },
	};

	if (shared->stop_fd < 0)
		return 1;
	while (poll(fds, 2, -1) < 0) {
		if (errno != EINTR)
			return 1; /* read(2) waits as well, if not for both */
	}
	return fds[1].revents == 0;
}

/* Bytes read into the batch, 0 at the end, -1 on an error. */
static ssize_t read_block(struct shared *shared, struct batch *batch)
{
	char *room = rv_buffer_reserve(&batch->in, BLOCK);
	ssize_t n;

	if (room == NULL)
		return rv_buffer_check(&batch->in, &batch->err);
	if (wait_for_input(shared) == 0)
		return 0;
	n = rv_io_read_some(shared->pump->fd, room, BLOCK, &batch->err);
	if (n > 0)
		rv_buffer_commit(&batch->in, (size_t)n);
	return n;
}

static uint64_t count_lines(const struct rv_buffer *in)
{
	const char *at = in->data;
	const char *end = in->data + in->len;
	uint64_t count = 0;

	while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		count++;
		at++;
	}
	return count;
}

/* Everything behind the last newline waits for the next batch. */
static int put_rest_back(struct shared *shared, struct batch *batch, size_t whole)
{
	rv_buffer_clear(&shared->rest);
	rv_buffer_add(&shared->rest, batch->in.data + whole, batch->in.len - whole);
	batch->in.len = whole;
	return rv_buffer_check(&shared->rest, &batch->err);
}

static int read_lines(struct shared *shared, struct batch *batch)
{
	size_t searched;

	rv_buffer_clear(&batch->in);
	rv_buffer_add(&batch->in, shared->rest.data, shared->rest.len);
	if (shared->rest.cap > KEPT)
		rv_buffer_release(&shared->rest);
	for (;;) {
		const char *last;
		ssize_t n;

		searched = batch->in.len;
		n = read_block(shared, batch);
		if (n <= 0) {
			shared->ended = true;
			if (n < 0)
				batch->in.len = 0; /* the beginning of a line is no line */
			return n < 0 ? -1 : 0;
		}
		last = memrchr(batch->in.data + searched, '\n', batch->in.len - searched);
		if (last != NULL)
			return put_rest_back(shared, batch, (size_t)(last - batch->in.data) + 1);
	}
}

/* The next batch in its turn; false when there is none. */
static bool take_batch(struct shared *shared, struct batch *batch)
{
	bool taken = false;

	if (batch->in.cap > KEPT)
		rv_buffer_release(&batch->in);
	if (batch->out.cap > KEPT)
		rv_buffer_release(&batch->out);
	rv_buffer_clear(&batch->out);
	(void)pthread_mutex_lock(&shared->reading);
	if (!shared->ended) {
		batch->result = read_lines(shared, batch);
		if (batch->result != 0)
			shared->ended = true;
		batch->order = shared->read_batches++;
		batch->first_line = shared->next_line;
		shared->next_line += count_lines(&batch->in);
		taken = true;
	}
	(void)pthread_mutex_unlock(&shared->reading);
	return taken;
}

static void answer_batch(const struct shared *shared, void *worker, struct batch *batch)
{
	const char *at = batch->in.data;
	const char *end = at != NULL ? at + batch->in.len : NULL;
	uint64_t number = batch->first_line;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct rv_span line = { at, newline != NULL ? (size_t)(newline - at) : (size_t)(end - at) };
		size_t before = batch->out.len;

		if (shared->pump->answer(worker, line, number++, &batch->out, &batch->err) != 0 ||
		    rv_buffer_check(&batch->out, &batch->err) != 0) {
			batch->out.len = before;
			batch->result = -1;
			return;
		}
		at = newline != NULL ? newline + 1 : end;
	}
}

static void stop(struct shared *shared, int result)
{
	uint64_t one = 1;

	shared->stopped = true;
	shared->result = result;
	if (shared->stop_fd >= 0 && write(shared->stop_fd, &one, sizeof one) < 0)
		return; /* its counter is full, so it is readable */
}

/* In its turn; false when the pump has stopped. */
static bool write_batch(struct shared *shared, struct batch *batch)
{
	bool go_on;

	(void)pthread_mutex_lock(&shared->writing);
	while (shared->written_batches != batch->order && !shared->stopped)
		(void)pthread_cond_wait(&shared->written, &shared->writing);
	if (!shared->stopped) {
		if (batch->out.len > 0 &&
		    shared->pump->write(shared->pump->context, batch->out.data, batch->out.len) != 0) {
			stop(shared, 1);
		} else if (batch->result != 0) {
			*shared->err = batch->err;
			stop(shared, -1);
		}
		shared->written_batches++;
		(void)pthread_cond_broadcast(&shared->written);
	}
	go_on = !shared->stopped;
	(void)pthread_mutex_unlock(&shared->writing);
	return go_on;
}

static void fail(struct shared *shared, const struct rv_error *err)
{
	(void)pthread_mutex_lock(&shared->writing);
	if (!shared->stopped) {
		*shared->err = *err;
		stop(shared, -1);
		(void)pthread_cond_broadcast(&shared->written);
	}
	(void)pthread_mutex_unlock(&shared->writing);
}

static void *work(void *argument)
{
	struct shared *shared = argument;
	struct batch batch = { .in = RV_BUFFER_INIT, .out = RV_BUFFER_INIT, .err = RV_ERROR_INIT };
	void *worker = shared->pump->worker_new(shared->pump->context, &batch.err);

	if (worker == NULL) {
		fail(shared, &batch.err);
		return NULL;
	}
	while (take_batch(shared, &batch)) {
		if (batch.result == 0)
			answer_batch(shared, worker, &batch);
		if (!write_batch(shared, &batch))
			break;
	}
	shared->pump->worker_free(worker);
	rv_buffer_release(&batch.in);
	rv_buffer_release(&batch.out);
	return NULL;
}

static void work_with_others(struct shared *shared, pthread_t *others, unsigned count)
{
	unsigned started = 0;

	while (started < count) {
		struct rv_error err = RV_ERROR_INIT;
		int errnum = pthread_create(&others[started], NULL, work, shared);

		if (errnum != 0) {
			(void)rv_error_set(&err, RV_E_IO, errnum, "a thread");
			fail(shared, &err);
			break;
		}
		started++;
	}
	(void)work(shared);
	while (started > 0)
		(void)pthread_join(others[--started], NULL);
}

int rv_pump_run(const struct rv_pump *pump, struct rv_error *err)
{
	struct shared shared = {
		.pump = pump,
		.reading = PTHREAD_MUTEX_INITIALIZER,
		.rest = RV_BUFFER_INIT,
		.next_line = 1,
		.writing = PTHREAD_MUTEX_INITIALIZER,
		.written = PTHREAD_COND_INITIALIZER,
		.err = err,
		.stop_fd = -1,
	};
	unsigned others = pump->threads - 1;
	rv_auto_free pthread_t *threads = calloc(others + 1, sizeof *threads);
	rv_auto_fd int stop_fd = -1;

	if (threads == NULL)
		return rv_error_nomem(err);
	if (others > 0) {
		stop_fd = eventfd(0, EFD_CLOEXEC);
		if (stop_fd < 0)
			return rv_error_set(err, RV_E_IO, errno, "eventfd");
		shared.stop_fd = stop_fd;
	}
	work_with_others(&shared, threads, others);
	rv_buffer_release(&shared.rest);
	return shared.result;
}

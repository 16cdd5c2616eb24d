#include "lib/confine/stream.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#define JOBS_MAX RV_CONFINE_MAX_RETAINED
#define AHEAD 16 /* answers a job may be ahead of the oldest that is not written */
#define CHUNK 65536

struct answer {
	struct answer *next;
	uint64_t number;
	struct rv_buffer text;
};

struct flow {
	const struct rv_confine_stream *stream;
	pthread_mutex_t reading, lock;
	pthread_cond_t room;
	/* under `reading` */
	struct rv_buffer input; /* what was read and not taken */
	size_t taken;           /* of it */
	bool ended;
	uint64_t lines;
	/* under `lock` */
	struct answer *answers; /* finished, by number */
	uint64_t written;       /* lines answered, without a gap */
	int worst;
	bool deaf;
	bool failed;
	struct rv_error err;
};

static void fail(struct flow *flow, const struct rv_error *err)
{
	(void)pthread_mutex_lock(&flow->lock);
	if (!flow->failed)
		flow->err = *err;
	flow->failed = true;
	(void)pthread_cond_broadcast(&flow->room);
	(void)pthread_mutex_unlock(&flow->lock);
}

/* ---- lines ---- */

static int read_more(struct flow *flow, struct rv_error *err)
{
	int cancel = flow->stream->confine->options.cancel;
	struct pollfd ready[] = { { .fd = flow->stream->in, .events = POLLIN }, { .fd = cancel, .events = POLLIN } };
	char *room;
	ssize_t n;

	if (flow->taken > 0) {
		memmove(flow->input.data, flow->input.data + flow->taken, flow->input.len - flow->taken);
		flow->input.len -= flow->taken;
		flow->taken = 0;
	}
	while (poll(ready, 2, -1) < 0 && errno == EINTR)
		;
	if (ready[1].revents != 0) {
		flow->ended = true;
		flow->input.len = 0; /* half a line is none */
		return 0;
	}
	room = rv_buffer_reserve(&flow->input, CHUNK);
	if (room == NULL)
		return rv_buffer_check(&flow->input, err);
	n = read(flow->stream->in, room, CHUNK);
	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0)
		return rv_error_set(err, RV_E_IO, errno, "standard input");
	rv_buffer_commit(&flow->input, (size_t)n);
	flow->ended = n == 0;
	return 0;
}

static int copy_line(struct flow *flow, size_t len, struct rv_buffer *line, struct rv_error *err)
{
	rv_buffer_add(line, flow->input.data + flow->taken, len);
	flow->taken += len;
	if (flow->taken < flow->input.len)
		flow->taken++; /* its newline */
	return rv_buffer_check(line, err) == 0 ? 1 : -1;
}

/* The next line: 1 one, 0 the end, -1 error. */
static int take_line(struct flow *flow, struct rv_buffer *line, struct rv_error *err)
{
	size_t seen = 0;

	for (;;) {
		size_t left = flow->input.len - flow->taken;
		const char *from = flow->input.data + flow->taken;
		const char *end = left > seen ? memchr(from + seen, '\n', left - seen) : NULL;

		if (end != NULL)
			return copy_line(flow, (size_t)(end - from), line, err);
		if (flow->ended)
			return left > 0 ? copy_line(flow, left, line, err) : 0;
		seen = left;
		if (read_more(flow, err) != 0)
			return -1;
	}
}

/* ---- answers ---- */

/* Not further ahead of the oldest answer than memory should hold. */
static bool may_go_on(struct flow *flow, uint64_t number)
{
	bool go;

	(void)pthread_mutex_lock(&flow->lock);
	while (!flow->stream->unordered && !flow->failed && !flow->deaf &&
	       number > flow->written + flow->stream->jobs * AHEAD)
		(void)pthread_cond_wait(&flow->room, &flow->lock);
	go = !flow->failed && !flow->deaf;
	(void)pthread_mutex_unlock(&flow->lock);
	return go;
}

static void write_one(struct flow *flow, const struct rv_buffer *text)
{
	if (flow->deaf || flow->stream->write(text->data, text->len) == 0)
		return;
	flow->deaf = true;
	if (flow->stream->gone != NULL)
		flow->stream->gone();
}

static void write_ready(struct flow *flow)
{
	while (flow->answers != NULL && (flow->stream->unordered || flow->answers->number == flow->written + 1)) {
		struct answer *first = flow->answers;

		flow->answers = first->next;
		write_one(flow, &first->text);
		flow->written++;
		rv_buffer_release(&first->text);
		free(first);
	}
	(void)pthread_cond_broadcast(&flow->room);
}

static void hand_in(struct flow *flow, struct answer *answer, int status)
{
	struct answer **link = &flow->answers;

	(void)pthread_mutex_lock(&flow->lock);
	if (status > flow->worst)
		flow->worst = status;
	while (*link != NULL && (*link)->number < answer->number)
		link = &(*link)->next;
	answer->next = *link;
	*link = answer;
	write_ready(flow);
	(void)pthread_mutex_unlock(&flow->lock);
}

static int answer_line(struct flow *flow, const struct rv_buffer *line, uint64_t number, struct rv_error *err)
{
	struct answer *answer = calloc(1, sizeof *answer);
	struct rv_confine_request request;
	struct rv_confine_result *result = calloc(1, sizeof *result);
	int status, composed;

	if (answer == NULL || result == NULL) {
		free(answer);
		free(result);
		return rv_error_nomem(err);
	}
	answer->number = number;
	rv_confine_answer(flow->stream->confine, &request, line->data != NULL ? line->data : "", line->len, result);
	composed = rv_confine_result_add_json(&answer->text, result, &request, number, err);
	status = rv_confine_exit(result);
	rv_confine_result_release(result);
	rv_confine_request_release(&request);
	free(result);
	if (composed != 0) {
		rv_buffer_release(&answer->text);
		free(answer);
		return -1;
	}
	hand_in(flow, answer, status);
	return 0;
}

static void *work(void *data)
{
	struct flow *flow = data;
	struct rv_error err = RV_ERROR_INIT;

	for (;;) {
		rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
		uint64_t number;
		int got;

		(void)pthread_mutex_lock(&flow->reading);
		number = flow->lines + 1;
		got = may_go_on(flow, number) ? take_line(flow, &line, &err) : 0;
		if (got > 0)
			flow->lines++;
		(void)pthread_mutex_unlock(&flow->reading);
		if (got == 0)
			return NULL;
		if (got < 0 || answer_line(flow, &line, number, &err) != 0) {
			fail(flow, &err);
			return NULL;
		}
	}
}

static void release(struct flow *flow)
{
	while (flow->answers != NULL) {
		struct answer *next = flow->answers->next;

		rv_buffer_release(&flow->answers->text);
		free(flow->answers);
		flow->answers = next;
	}
	rv_buffer_release(&flow->input);
	(void)pthread_cond_destroy(&flow->room);
	(void)pthread_mutex_destroy(&flow->lock);
	(void)pthread_mutex_destroy(&flow->reading);
}

/* A changed runtime takes back what stood on it. */
static int withdraw(struct flow *flow, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer ids = RV_BUFFER_INIT, line = RV_BUFFER_INIT;
	bool any;

	if (rv_confine_withdraw(flow->stream->confine, &ids, &any, err) != 0)
		return -1;
	if (!any)
		return 0;
	rv_buffer_add_string(&line, "{\"withdrawn\":[");
	rv_buffer_add(&line, ids.data, ids.len);
	rv_buffer_add_string(&line, "],\"reason\":\"runtime changed\"}\n");
	if (rv_buffer_check(&line, err) != 0)
		return -1;
	write_one(flow, &line);
	flow->worst = flow->worst > 4 ? flow->worst : 4;
	return 0;
}

int rv_confine_stream_run(const struct rv_confine_stream *stream, int *worst, struct rv_error *err)
{
	struct flow flow = { .stream = stream, .reading = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER,
			     .room = PTHREAD_COND_INITIALIZER, .input = RV_BUFFER_INIT, .err = RV_ERROR_INIT };
	pthread_t threads[JOBS_MAX];
	size_t started = 0;
	int result;

	if (rv_confine_open_groups(stream->confine, err) != 0)
		return -1;
	while (started + 1 < stream->jobs && started < JOBS_MAX &&
	       pthread_create(&threads[started], NULL, work, &flow) == 0)
		started++;
	(void)work(&flow);
	for (size_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	result = withdraw(&flow, err); /* also where the stream came to a bad end: what was answered stands on its runtimes */
	if (flow.failed) {
		*err = flow.err;
		result = -1;
	}
	*worst = flow.worst;
	release(&flow);
	return result;
}

#include "lib/executor/store.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buffer.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/executor/dispatch.h"
#include "lib/executor/flight.h"
#include "lib/process/coprocess.h"

#define READ_CHUNK ((size_t)64 * 1024)
#define ANSWER_MAX ((size_t)64 * 1024) /* bytes without a newline: no answer any more */
#define SAID_MAX 500                   /* bytes of an answer that go into a message */
#define LAST_MS 500 /* from the end of its output to its own end, for the message alone */

struct rv_store {
	struct rv_sink sink; /* first */
	struct rv_loop *loop;
	struct rv_coprocess process;
	const char *name;
	int64_t wait_ms;
	struct rv_watch in, out, end;
	struct rv_flight flight;
	struct rv_buffer answers;
	bool deaf;         /* it closed its input */
	int64_t silent_ms; /* it closed its output: until when its own end is waited for; 0: it has not */
	bool lost;         /* it has gone, `why` is what rows are refused with */
	bool told;         /* a row was refused with `why` */
	bool confirmed;    /* a row was */
	struct rv_error why;
};

/* It has gone for good; store->why says how. */
static void lose(struct rv_store *store)
{
	store->lost = true;
	rv_loop_remove(store->loop, &store->in);
	rv_loop_remove(store->loop, &store->out);
	rv_loop_remove(store->loop, &store->end);
	rv_coprocess_kill(&store->process);
	store->told = rv_flight_refuse_all(&store->flight, &store->why) || store->told;
}

static void lose_by(struct rv_store *store, const char *what)
{
	(void)rv_error_set(&store->why, RV_E_LEDGER, 0, "%s %s", store->name, what);
	lose(store);
}

/* ---- out: rows ---- */

static void write_rows(struct rv_store *store)
{
	if (!store->deaf)
		store->deaf = rv_flight_write(&store->flight, store->process.in) != 0;
}

/* Watched while something waits to leave. */
static void watch_input(struct rv_store *store)
{
	struct rv_error err = RV_ERROR_INIT;

	if (store->lost || store->deaf || !rv_flight_is_leaving(&store->flight))
		rv_loop_remove(store->loop, &store->in);
	else if (store->in.fd < 0 && rv_loop_add(store->loop, &store->in, store->process.in, EPOLLOUT, &err) != 0)
		lose_by(store, "cannot be written to any more");
}

static void on_writable(struct rv_watch *watch, uint32_t events)
{
	(void)events;
	write_rows(watch->owner);
}

/* ---- in: answers ---- */

/* One read; false: nothing more is to be had now. */
static bool read_answers(struct rv_store *store)
{
	char *room;
	ssize_t n;

	if (store->lost || store->silent_ms != 0)
		return false;
	room = rv_buffer_reserve(&store->answers, READ_CHUNK);
	n = room != NULL ? read(store->process.out, room, READ_CHUNK) : -1;
	if (n > 0) {
		rv_buffer_commit(&store->answers, (size_t)n);
		return true;
	}
	if (room != NULL && n < 0 && (errno == EINTR || errno == EAGAIN))
		return errno == EINTR;
	rv_loop_remove(store->loop, &store->out);
	store->silent_ms = rv_clock_mono_ms() + LAST_MS;
	return false;
}

static void on_readable(struct rv_watch *watch, uint32_t events)
{
	(void)events;
	(void)read_answers(watch->owner);
}

/* What it said before it ended counts: its output is read to the end. */
static void on_end(struct rv_watch *watch, uint32_t events)
{
	struct rv_store *store = watch->owner;

	(void)events;
	rv_loop_remove(store->loop, watch);
	while (store->answers.len < ANSWER_MAX && read_answers(store))
		;
	(void)rv_coprocess_has_ended(&store->process, 0);
}

static void take_answer(struct rv_store *store, struct rv_span line)
{
	struct rv_buffer said = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;

	if (rv_span_equal(line, RV_SPAN("ok"))) {
		store->confirmed = true;
		rv_flight_answer(&store->flight, NULL);
	} else {
		rv_text_add_lossy(&said, line.data, line.len < SAID_MAX ? line.len : SAID_MAX);
		(void)rv_error_set(&err, RV_E_LEDGER, 0, "%s answered: %.*s", store->name,
				   said.len > 0 ? (int)said.len : 11, said.len > 0 ? said.data : "(no words)");
		rv_flight_answer(&store->flight, &err);
		rv_buffer_release(&said);
	}
}

static size_t count_lines(const struct rv_buffer *text)
{
	size_t count = 0;
	const char *at = text->data, *end = at + text->len;

	while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		at++;
		count++;
	}
	return count;
}

/* More answers than rows that have left: none of them can be told to whose row it belongs, so none counts. */
static void take_answers(struct rv_store *store)
{
	size_t lines = count_lines(&store->answers), at = 0;

	if (lines > rv_flight_asked(&store->flight)) {
		lose_by(store, "answered what it was not asked");
		return;
	}
	for (; lines > 0; lines--) {
		const char *line = store->answers.data + at;
		const char *newline = memchr(line, '\n', store->answers.len - at);

		take_answer(store, (struct rv_span){ line, (size_t)(newline - line) });
		at += (size_t)(newline - line) + 1;
	}
	if (at > 0) {
		store->answers.len -= at;
		memmove(store->answers.data, store->answers.data + at, store->answers.len);
	}
	if (store->answers.len > ANSWER_MAX)
		lose_by(store, "gave an answer without end");
}

/* ---- deadlines and ends ---- */

static void expire(struct rv_store *store)
{
	int64_t now = rv_clock_mono_ms();
	struct rv_error err = RV_ERROR_INIT;

	if (rv_flight_deadline(&store->flight) > now)
		return;
	(void)rv_error_set(&err, RV_E_LEDGER, 0, "%s gave no answer within %lld ms", store->name, (long long)store->wait_ms);
	rv_flight_expire(&store->flight, now, &err);
}

static void check_end(struct rv_store *store)
{
	struct rv_error err = RV_ERROR_INIT;
	char how[64] = "closed its output";

	if (store->silent_ms != 0 || store->process.ended) {
		if (!rv_coprocess_has_ended(&store->process, 0) && rv_clock_left_ms(store->silent_ms) > 0)
			return;
		if (store->process.ended)
			rv_coprocess_describe(&store->process, how, sizeof how);
		lose_by(store, how);
	} else if (store->deaf && rv_flight_is_leaving(&store->flight)) {
		(void)rv_error_set(&err, RV_E_LEDGER, 0, "%s closed its input", store->name);
		store->told = rv_flight_refuse_leaving(&store->flight, &err) || store->told;
	}
}

static void check(struct rv_sink *sink)
{
	struct rv_store *store = (struct rv_store *)sink;

	if (store->lost)
		return;
	take_answers(store);
	if (!store->lost)
		check_end(store);
	if (!store->lost)
		expire(store);
	watch_input(store);
}

static int64_t deadline(const struct rv_sink *sink)
{
	const struct rv_store *store = (const struct rv_store *)sink;
	int64_t first = store->lost ? INT64_MAX : rv_flight_deadline(&store->flight);

	return !store->lost && store->silent_ms != 0 && store->silent_ms < first ? store->silent_ms : first;
}

static bool wait_for_it(struct rv_sink *sink)
{
	struct rv_store *store = (struct rv_store *)sink;
	int64_t until = deadline(sink);
	struct pollfd ready[2] = {
		{ .fd = store->silent_ms == 0 ? store->process.out : store->process.child.pidfd, .events = POLLIN },
		{ .fd = rv_flight_is_leaving(&store->flight) && !store->deaf ? store->process.in : -1, .events = POLLOUT },
	};

	if (store->lost || until == INT64_MAX)
		return false;
	(void)poll(ready, 2, rv_clock_left_ms(until));
	(void)read_answers(store);
	write_rows(store);
	return true;
}

/* ---- the whole ---- */

static void take(struct rv_sink *sink, const struct rv_sink_row *rows, size_t count)
{
	struct rv_store *store = (struct rv_store *)sink;
	struct rv_error err = RV_ERROR_INIT;

	if (!store->lost && rv_flight_is_empty(&store->flight)) { /* what it says before it is asked is no answer */
		(void)read_answers(store);
		take_answers(store);
	}
	if (!store->lost && rv_flight_reserve(&store->flight, count) != 0) {
		(void)rv_error_nomem(&err);
		for (size_t i = 0; i < count; i++)
			rv_dispatch_written(rows[i].dispatch, &err);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (store->lost) {
			store->told = true;
			rv_dispatch_written(rows[i].dispatch, &store->why);
		} else {
			rv_flight_add(&store->flight, &rows[i], rv_clock_mono_ms() + store->wait_ms);
		}
	}
	write_rows(store); /* check() comes behind */
}

int rv_store_open(struct rv_store **out, struct rv_loop *loop, const char *path, char *const *argv, const char *name,
		  int64_t wait_ms, struct rv_error *err)
{
	struct rv_store *store = calloc(1, sizeof *store);
	struct rv_error ignored = RV_ERROR_INIT;

	*out = NULL;
	if (store == NULL)
		return rv_error_nomem(err);
	store->sink = (struct rv_sink){ .take = take, .check = check, .deadline = deadline, .wait = wait_for_it };
	store->loop = loop;
	store->name = name;
	store->wait_ms = wait_ms;
	store->in = (struct rv_watch){ -1, on_writable, store };
	store->out = (struct rv_watch){ -1, on_readable, store };
	store->end = (struct rv_watch){ -1, on_end, store };
	if (rv_coprocess_start(&store->process, path, argv, err) == 0 &&
	    rv_loop_add(loop, &store->out, store->process.out, EPOLLIN, err) == 0 &&
	    rv_loop_add(loop, &store->end, store->process.child.pidfd, EPOLLIN, err) == 0) {
		*out = store;
		return 0;
	}
	store->told = true;
	(void)rv_store_close(store, &ignored);
	err->code = RV_E_LEDGER;
	return -1;
}

struct rv_sink *rv_store_sink(struct rv_store *store)
{
	return &store->sink;
}

const struct rv_child *rv_store_child(const struct rv_store *store)
{
	return &store->process.child;
}

/* Are these more words than late answers, to rows that were refused for want of one? */
static bool says_too_much(const struct rv_store *store)
{
	const struct rv_buffer *said = &store->answers;

	return said->len > 0 && (said->data[said->len - 1] != '\n' || count_lines(said) > rv_flight_asked(&store->flight));
}

/* It should have ended by itself, at its end of file, and well, and with no word more: with one, earlier
 * answers may have been taken for those of other rows. */
static int judge_end(const struct rv_store *store, struct rv_error *err)
{
	const char *doubt = store->confirmed ? ": what it confirmed may not be kept" : "";
	char how[64];

	if (store->told)
		return 0;
	if (!store->lost && says_too_much(store))
		return rv_error_set(err, RV_E_LEDGER, 0, "%s answered what it was not asked%s", store->name, doubt);
	if (!store->lost && store->process.ended && store->process.status == 0)
		return 0;
	if (store->lost)
		return rv_error_set(err, RV_E_LEDGER, 0, "%s before it was at its end%s", store->why.message, doubt);
	rv_coprocess_describe(&store->process, how, sizeof how);
	return rv_error_set(err, RV_E_LEDGER, 0, "%s %s%s", store->name, how, doubt);
}

int rv_store_close(struct rv_store *store, struct rv_error *err)
{
	int wait_ms, result;

	if (store == NULL)
		return 0;
	wait_ms = store->wait_ms < INT_MAX ? (int)store->wait_ms : INT_MAX;
	rv_loop_remove(store->loop, &store->in);
	rv_loop_remove(store->loop, &store->out);
	rv_loop_remove(store->loop, &store->end);
	rv_coprocess_close_in(&store->process);
	(void)rv_coprocess_has_ended(&store->process, wait_ms);
	(void)read_answers(store);
	result = judge_end(store, err);
	rv_coprocess_kill(&store->process);
	rv_flight_release(&store->flight);
	rv_buffer_release(&store->answers);
	free(store);
	return result;
}

#include "lib/executor/stream.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/memory.h"
#include "lib/executor/port.h"
#include "lib/executor/reply.h"
#include "lib/executor/request.h"

#define AHEAD 4                           /* lines in hand for each job: enough that no job waits for input */
#define AHEAD_MAX ((size_t)4 << 20)       /* bytes of arguments in them: beyond that one for each job that waits */
#define PENDING_MAX ((size_t)4 << 20)     /* bytes of replies that may wait for their reader */
#define LAST_MS 1000                      /* a reader that has stopped does not hold up an end by signal */

#define NO_JOB SIZE_MAX

enum state { FREE, WAITING, RUNNING, ANSWERED };

/* One request in hand. */
struct entry {
	enum state state;
	uint64_t number; /* of its line */
	struct rv_request request;
	const struct rv_executor *executor;
	struct rv_dispatch dispatch;
	struct rv_buffer reply;
	size_t job; /* RUNNING: whose slot it has; NO_JOB: the next one has it already */
	bool replied; /* its reply is made, its slot may still be removing its workdir */
};

struct stream {
	const struct rv_stream_options *options;
	struct rv_stream_result *result;
	struct rv_service service;
	struct rv_request_reader reader;
	struct rv_inlet in;
	struct rv_outlet out;
	struct entry *entries; /* owned */
	size_t count;
	struct entry **owners; /* of each job; NULL: it is free */
	uint64_t next;         /* the number of the line that is to be answered next, in order */
	bool ending;           /* no more is begun */
	int64_t last_ms;       /* ending: until when the last replies may wait for their reader; 0: not yet */
};

/* ---- replies ---- */

/* A line that is no request at all, or a call that is not done. */
static void count_failure(struct stream *stream, const struct rv_error *err)
{
	if (err->code == RV_E_REQUEST || err->code == RV_E_NUMBER || err->code == RV_E_DERIVATION)
		stream->result->refused = true;
	else
		stream->result->failed = true;
}

static void refuse(struct stream *stream, struct entry *entry, const struct rv_error *err)
{
	rv_buffer_clear(&entry->reply);
	rv_reply_add_refusal(&entry->reply, (struct rv_span){ entry->request.id.data, entry->request.id.len },
			     entry->number, err);
	entry->state = ANSWERED;
	count_failure(stream, err);
}

static void say_kept(const struct stream *stream, const struct rv_dispatch *dispatch)
{
	struct rv_error text = RV_ERROR_INIT;

	(void)rv_error_set(&text, RV_E_NONE, 0, "the workdir is kept: %s", dispatch->workdir.data);
	stream->options->say(text.message);
}

static void answer(struct stream *stream, struct entry *entry)
{
	const struct rv_dispatch *dispatch = &entry->dispatch;

	rv_buffer_clear(&entry->reply);
	rv_reply_add(&entry->reply, dispatch);
	entry->replied = true;
	if (dispatch->error.code != RV_E_NONE)
		count_failure(stream, &dispatch->error);
	if (dispatch->intended && dispatch->ran && dispatch->survivors != 0)
		stream->result->failed = true;
	if (dispatch->kept)
		say_kept(stream, dispatch);
	if (dispatch->warning.code != RV_E_NONE)
		stream->options->say(dispatch->warning.message);
}

/* In the order of the requests, or as they come. */
static void hand_out(struct stream *stream)
{
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < stream->count; i++) {
			struct entry *entry = &stream->entries[i];

			if (entry->state != ANSWERED && !(entry->state == RUNNING && entry->replied))
				continue;
			if (entry->reply.len == 0 || (!stream->options->unordered && entry->number != stream->next))
				continue;
			rv_outlet_add(&stream->out, &entry->reply);
			stream->next++;
			again = !stream->options->unordered;
		}
	}
	for (size_t i = 0; i < stream->count; i++) {
		if (stream->entries[i].state == ANSWERED && stream->entries[i].reply.len == 0)
			stream->entries[i].state = FREE;
	}
}

/* ---- requests ---- */

/* The first in line; of those that are free the one whose memory was used last. */
static struct entry *find(const struct stream *stream, enum state state)
{
	struct entry *found = NULL;

	for (size_t i = 0; i < stream->count; i++) {
		struct entry *entry = &stream->entries[i];

		if (entry->state == state &&
		    (found == NULL || (entry->number < found->number) != (state == FREE)))
			found = entry;
	}
	return found;
}

static void refuse_waiting(struct stream *stream, enum rv_code code, const char *why)
{
	struct rv_error err = RV_ERROR_INIT;
	struct entry *entry;

	(void)rv_error_set(&err, code, 0, "%s", why);
	while ((entry = find(stream, WAITING)) != NULL)
		refuse(stream, entry, &err);
}

/* Where the next line goes; NULL where none is to be taken: none whose reply would only wait for a reader who is
 * behind, though it has been read.  Large requests do not gather: so many that no job waits, and no more. */
static struct entry *room(const struct stream *stream)
{
	size_t waiting = 0;
	size_t ahead = 0;

	for (size_t i = 0; i < stream->count; i++) {
		if (stream->entries[i].state == WAITING) {
			waiting++;
			ahead += stream->entries[i].request.args.len;
		}
	}
	if (stream->out.errnum != 0 || rv_outlet_pending(&stream->out) >= PENDING_MAX)
		return NULL;
	return ahead < AHEAD_MAX || waiting == 0 ? find(stream, FREE) : NULL;
}

/* At an end by signal what has been read is answered, too, and no more is read. */
static void take_lines(struct stream *stream)
{
	struct rv_span line;
	struct entry *entry;

	while ((entry = room(stream)) != NULL && rv_inlet_line(&stream->in, &line)) {
		struct rv_error err = RV_ERROR_INIT;

		entry->number = stream->in.line;
		entry->replied = false;
		entry->state = WAITING;
		if (rv_request_read(&entry->request, &stream->reader, line, stream->options->json_flags, &stream->service.rules,
				    &err) != 0 ||
		    (entry->executor = rv_registry_find(&stream->service.registry, entry->request.call.executor, &err)) == NULL)
			refuse(stream, entry, &err);
	}
	if (stream->ending)
		refuse_waiting(stream, RV_E_ABORTED, "aborted by a signal to the caller before it was begun");
}

static void begin(struct stream *stream, size_t job, struct entry *entry)
{
	struct rv_job *slots = &stream->service.jobs[job];

	stream->owners[job] = entry;
	entry->state = RUNNING;
	entry->job = job;
	rv_dispatch_begin(&entry->dispatch, entry->executor, &entry->request.call, &slots->tool,
			  slots->has_host ? &slots->host : NULL);
}

static void begin_waiting(struct stream *stream)
{
	for (size_t job = 0; job < stream->service.job_count; job++) {
		struct entry *entry;

		if (stream->owners[job] != NULL || stream->service.jobs[job].lost)
			continue;
		entry = find(stream, WAITING);
		if (entry == NULL)
			return;
		begin(stream, job, entry);
	}
}

/* The outcome of one and the intent of the next in its slot go out in one write. */
static void hand_over(struct stream *stream)
{
	for (size_t job = 0; job < stream->service.job_count && !stream->ending; job++) {
		struct entry *entry = stream->owners[job];
		struct entry *next;

		if (entry == NULL || !rv_dispatch_leaves_slot(&entry->dispatch))
			continue;
		next = find(stream, WAITING);
		if (next == NULL)
			return;
		entry->job = NO_JOB;
		begin(stream, job, next);
	}
}

/* A slot that lost its worker, or has somebody in it who cannot be killed, takes no other dispatch. */
static void free_job(struct stream *stream, struct entry *entry)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_slot *tainted = entry->dispatch.ran && entry->dispatch.survivors != 0 ? entry->dispatch.slot : NULL;

	if (entry->job != NO_JOB) {
		if (rv_service_renew(&stream->service, &stream->service.jobs[entry->job], tainted, &err) != 0)
			stream->options->say(err.message);
		stream->owners[entry->job] = NULL;
	}
	rv_dispatch_release(&entry->dispatch);
	rv_request_clear(&entry->request);
	entry->state = ANSWERED;
}

static size_t count_running(const struct stream *stream)
{
	size_t running = 0;

	for (size_t job = 0; job < stream->service.job_count; job++)
		running += stream->owners[job] != NULL;
	return running;
}

static void check_running(struct stream *stream)
{
	for (size_t job = 0; job < stream->service.job_count; job++) {
		struct entry *entry = stream->owners[job];

		if (entry != NULL)
			rv_dispatch_check(&entry->dispatch);
	}
	hand_over(stream);
	rv_batch_turn(&stream->service.batch, count_running(stream));
	for (size_t i = 0; i < stream->count; i++) {
		struct entry *entry = &stream->entries[i];

		if (entry->state != RUNNING)
			continue;
		if (!entry->replied && rv_dispatch_answered(&entry->dispatch))
			answer(stream, entry);
		if (rv_dispatch_done(&entry->dispatch))
			free_job(stream, entry);
	}
}

/* ---- ends ---- */

static void abort_all(struct stream *stream)
{
	stream->ending = true;
	refuse_waiting(stream, RV_E_ABORTED, "aborted by a signal to the caller before it was begun");
	for (size_t job = 0; job < stream->service.job_count; job++) {
		if (stream->owners[job] != NULL)
			rv_dispatch_abort(&stream->owners[job]->dispatch);
	}
}

static void on_signal(void *owner)
{
	abort_all(owner);
}

static bool all_lost(const struct stream *stream)
{
	for (size_t job = 0; job < stream->service.job_count; job++) {
		if (!stream->service.jobs[job].lost)
			return false;
	}
	return true;
}

static bool is_idle(const struct stream *stream)
{
	for (size_t i = 0; i < stream->count; i++) {
		if (stream->entries[i].state != FREE)
			return false;
	}
	return rv_outlet_pending(&stream->out) == 0;
}

static bool is_running(const struct stream *stream)
{
	for (size_t i = 0; i < stream->count; i++) {
		if (stream->entries[i].state == RUNNING)
			return true;
	}
	return false;
}

/* All is answered and handed out; or it is an end by signal, and nobody takes the last replies. */
static bool is_over(struct stream *stream)
{
	if (!stream->ending)
		return is_idle(stream) && stream->in.ended && !rv_inlet_has_line(&stream->in);
	if (is_running(stream))
		return false;
	if (stream->last_ms == 0)
		stream->last_ms = rv_clock_mono_ms() + LAST_MS;
	return (is_idle(stream) && (stream->out.errnum != 0 || !rv_inlet_has_line(&stream->in))) ||
	       rv_clock_left_ms(stream->last_ms) == 0;
}

/* A slot that came free behind its answer wakes nobody: what waits for it is begun in the next turn. */
static bool can_begin(const struct stream *stream)
{
	if (stream->ending || find(stream, WAITING) == NULL)
		return false;
	for (size_t job = 0; job < stream->service.job_count; job++) {
		if (stream->owners[job] == NULL && !stream->service.jobs[job].lost)
			return true;
	}
	return false;
}

static int64_t deadline(struct stream *stream)
{
	int64_t first = rv_batch_deadline(&stream->service.batch, count_running(stream));

	if (stream->last_ms != 0 && stream->last_ms < first)
		first = stream->last_ms;
	if (can_begin(stream) || rv_inlet_is_ready(&stream->in) || (room(stream) != NULL && rv_inlet_has_line(&stream->in)))
		return 0;
	for (size_t job = 0; job < stream->service.job_count; job++) {
		if (stream->owners[job] != NULL) {
			int64_t mine = rv_dispatch_deadline(&stream->owners[job]->dispatch);

			first = mine < first ? mine : first;
		}
	}
	return first;
}

/* The loop itself failed: everything is killed, and every outcome is owed all the same. */
static void give_up(struct stream *stream, const struct rv_error *why)
{
	stream->ending = true;
	for (size_t job = 0; job < stream->service.job_count; job++) {
		if (stream->owners[job] != NULL)
			rv_dispatch_give_up(&stream->owners[job]->dispatch, why);
	}
	rv_batch_drain(&stream->service.batch);
	refuse_waiting(stream, RV_E_ABORTED, "aborted before it was begun");
}

static int turn(struct stream *stream, struct rv_error *err)
{
	bool more = !stream->ending && room(stream) != NULL && !rv_inlet_has_line(&stream->in);

	if (rv_inlet_want(&stream->in, more, err) != 0 ||
	    rv_loop_turn(&stream->service.loop, deadline(stream), err) != 0)
		return -1;
	if (rv_inlet_is_ready(&stream->in))
		rv_inlet_read(&stream->in);
	return 0;
}

/* What can be written without waiting is.  False: nobody reads the replies any more, and it ends now. */
static bool write_out(struct stream *stream, struct rv_error *err)
{
	if (rv_outlet_turn(&stream->out, err) != 0)
		give_up(stream, err);
	if (stream->out.errnum == 0 || stream->ending)
		return true;
	abort_all(stream);
	return false;
}

static void serve(struct stream *stream, struct rv_error *err)
{
	for (;;) {
		take_lines(stream);
		if (all_lost(stream))
			refuse_waiting(stream, RV_E_CONFIG, "no slot is left that a tool could run in");
		if (!stream->ending)
			begin_waiting(stream);
		check_running(stream);
		hand_out(stream);
		if (!write_out(stream, err))
			continue;
		if (is_over(stream))
			return;
		if (turn(stream, err) != 0)
			give_up(stream, err);
	}
}

/* ---- the whole ---- */

static int make_entries(struct stream *stream, struct rv_error *err)
{
	stream->count = stream->options->jobs * (AHEAD + 1);
	stream->entries = calloc(stream->count, sizeof *stream->entries);
	stream->owners = calloc(stream->options->jobs, sizeof *stream->owners);
	if (stream->entries == NULL || stream->owners == NULL) {
		stream->count = 0;
		return rv_error_nomem(err);
	}
	for (size_t i = 0; i < stream->count; i++) {
		rv_request_init(&stream->entries[i].request);
		rv_buffer_init(&stream->entries[i].reply, 0);
	}
	return rv_request_reader_init(&stream->reader, err);
}

static void release(struct stream *stream)
{
	for (size_t i = 0; i < stream->count; i++) {
		rv_request_release(&stream->entries[i].request);
		rv_buffer_release(&stream->entries[i].reply);
	}
	rv_request_reader_release(&stream->reader);
	free(stream->entries);
	free(stream->owners);
	rv_inlet_release(&stream->in);
	rv_outlet_release(&stream->out);
	rv_service_release(&stream->service);
}

static int finish(const struct stream *stream, struct rv_error *err)
{
	stream->result->signal_number = stream->service.signal_number;
	stream->result->reader_gone = stream->out.errnum == EPIPE;
	if (stream->out.errnum != 0 && stream->out.errnum != EPIPE)
		return rv_error_set(err, RV_E_IO, stream->out.errnum, "standard output");
	if (stream->in.errnum != 0)
		return rv_error_set(err, RV_E_IO, stream->in.errnum, "standard input");
	return err->code == RV_E_NONE ? 0 : -1;
}

int rv_stream_run(const struct rv_stream_options *options, struct rv_stream_result *result, struct rv_error *err)
{
	struct stream stream = { .options = options, .result = result, .next = 1 };
	struct rv_error warning = RV_ERROR_INIT;
	int status = -1;

	rv_memory_keep();
	*result = (struct rv_stream_result){ .refused = false };
	stream.in.watch.fd = -1;
	stream.out.watch.fd = -1;
	if (rv_service_start(&stream.service, &options->service, options->jobs, err) == 0) {
		rv_inlet_init(&stream.in, &stream.service.loop, options->in);
		rv_outlet_init(&stream.out, &stream.service.loop, options->out);
		if (make_entries(&stream, err) == 0 && rv_service_open(&stream.service, options->command, err) == 0 &&
		    rv_service_take_signals(&stream.service, on_signal, &stream, err) == 0) {
			serve(&stream, err);
			rv_service_end(&stream.service, &warning);
			if (warning.code != RV_E_NONE)
				options->say(warning.message);
			status = finish(&stream, err);
		}
	}
	release(&stream);
	return status;
}

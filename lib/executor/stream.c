#include "lib/executor/stream.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/memory.h"
#include "lib/executor/queue.h"

#define LAST_MS 1000 /* a reader that has stopped does not hold up an end by signal */

struct stream {
	const struct rv_stream_options *options;
	struct rv_stream_result *result;
	struct rv_service service;
	struct rv_queue queue;
	struct rv_entry **owners; /* of each job; NULL: it is free */
	bool ending;              /* no more is begun */
	int64_t last_ms;          /* ending: until when the last replies may wait for their reader; 0: not yet */
};

/* ---- jobs ---- */

/* At an end by signal what has been read is answered, too, and no more is read. */
static void take_lines(struct stream *stream)
{
	rv_queue_take(&stream->queue, &stream->service);
	if (stream->ending)
		rv_queue_refuse_waiting(&stream->queue, RV_E_ABORTED, "aborted by a signal to the caller before it was begun");
}

static void begin(struct stream *stream, size_t job, struct rv_entry *entry)
{
	struct rv_job *slots = &stream->service.jobs[job];

	stream->owners[job] = entry;
	entry->state = RV_ENTRY_RUNNING;
	entry->job = job;
	rv_dispatch_begin(&entry->dispatch, entry->executor, &entry->request.call, &slots->tool,
			  slots->has_host ? &slots->host : NULL);
}

/* It is answered, and what an engine ran for it is being put away: it takes a slot, and nobody's turn. */
static bool is_leaving(const struct rv_entry *entry)
{
	return entry->replied && rv_dispatch_is_undoing(&entry->dispatch);
}

static size_t count_running(const struct stream *stream)
{
	size_t running = 0;

	for (size_t job = 0; job < stream->service.job_count; job++)
		running += stream->owners[job] != NULL && !is_leaving(stream->owners[job]);
	return running;
}

static bool is_free(const struct stream *stream, size_t job)
{
	return stream->owners[job] == NULL && !stream->service.jobs[job].lost;
}

static void begin_waiting(struct stream *stream)
{
	size_t running = count_running(stream);

	for (size_t job = 0; job < stream->service.job_count && running < stream->options->jobs; job++) {
		struct rv_error err = RV_ERROR_INIT;
		struct rv_entry *entry;

		if (!is_free(stream, job))
			continue;
		entry = rv_queue_find(&stream->queue, RV_ENTRY_WAITING);
		if (entry == NULL)
			return;
		if (rv_service_look_after(&stream->service, &stream->service.jobs[job], &err) == 0) {
			begin(stream, job, entry);
			running++;
		} else {
			stream->options->say(err.message);
		}
	}
}

/* The outcome of one and the intent of the next in its slot go out in one write. */
static void hand_over(struct stream *stream)
{
	for (size_t job = 0; job < stream->service.job_count && !stream->ending; job++) {
		struct rv_entry *entry = stream->owners[job];
		struct rv_entry *next;

		if (entry == NULL || !rv_dispatch_leaves_slot(&entry->dispatch))
			continue;
		next = rv_queue_find(&stream->queue, RV_ENTRY_WAITING);
		if (next == NULL)
			return;
		entry->job = RV_NO_JOB;
		begin(stream, job, next);
	}
}

/* A slot that lost its worker, or whose worker was changed, or that has somebody in it who cannot be killed, takes no
 * other dispatch. */
static void free_job(struct stream *stream, struct rv_entry *entry)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_slot *tainted = entry->dispatch.ran && entry->dispatch.survivors != 0 ? entry->dispatch.slot : NULL;

	if (entry->job != RV_NO_JOB) {
		if (rv_service_renew(&stream->service, &stream->service.jobs[entry->job], tainted, &err) != 0)
			stream->options->say(err.message);
		stream->owners[entry->job] = NULL;
	}
	rv_dispatch_release(&entry->dispatch);
	rv_request_clear(&entry->request);
	entry->state = RV_ENTRY_ANSWERED;
}

static void check_running(struct stream *stream)
{
	for (size_t job = 0; job < stream->service.job_count; job++) {
		struct rv_entry *entry = stream->owners[job];

		if (entry != NULL)
			rv_dispatch_check(&entry->dispatch);
	}
	hand_over(stream);
	rv_batch_turn(&stream->service.batch, count_running(stream));
	for (size_t i = 0; i < stream->queue.count; i++) {
		struct rv_entry *entry = &stream->queue.entries[i];

		if (entry->state != RV_ENTRY_RUNNING)
			continue;
		if (!entry->replied && rv_dispatch_answered(&entry->dispatch))
			rv_queue_answer(&stream->queue, entry);
		if (rv_dispatch_done(&entry->dispatch))
			free_job(stream, entry);
	}
}

/* ---- ends ---- */

static void abort_all(struct stream *stream)
{
	stream->ending = true;
	rv_queue_refuse_waiting(&stream->queue, RV_E_ABORTED, "aborted by a signal to the caller before it was begun");
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

static bool is_running(const struct stream *stream)
{
	for (size_t i = 0; i < stream->queue.count; i++) {
		if (stream->queue.entries[i].state == RV_ENTRY_RUNNING)
			return true;
	}
	return false;
}

/* All is answered and handed out; or it is an end by signal, and nobody takes the last replies. */
static bool is_over(struct stream *stream)
{
	if (!stream->ending)
		return rv_queue_is_idle(&stream->queue) && stream->queue.in.ended && !rv_inlet_has_line(&stream->queue.in);
	if (is_running(stream))
		return false;
	if (stream->last_ms == 0)
		stream->last_ms = rv_clock_mono_ms() + LAST_MS;
	return (rv_queue_is_idle(&stream->queue) && (stream->queue.out.errnum != 0 || !rv_inlet_has_line(&stream->queue.in))) ||
	       rv_clock_left_ms(stream->last_ms) == 0;
}

/* A slot that came free, or was lost, behind its answer wakes nobody: what waits for it is begun, or refused, in the next
 * turn. */
static bool can_go_on(const struct stream *stream)
{
	if (stream->ending || rv_queue_find(&stream->queue, RV_ENTRY_WAITING) == NULL ||
	    count_running(stream) >= stream->options->jobs)
		return false;
	if (all_lost(stream))
		return true;
	for (size_t job = 0; job < stream->service.job_count; job++) {
		if (is_free(stream, job))
			return true;
	}
	return false;
}

static int64_t deadline(struct stream *stream)
{
	int64_t first = rv_batch_deadline(&stream->service.batch, count_running(stream));

	if (stream->last_ms != 0 && stream->last_ms < first)
		first = stream->last_ms;
	if (can_go_on(stream) || rv_inlet_is_ready(&stream->queue.in) ||
	    (rv_queue_has_room(&stream->queue) && rv_inlet_has_line(&stream->queue.in)))
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
	rv_queue_refuse_waiting(&stream->queue, RV_E_ABORTED, "aborted before it was begun");
}

static int turn(struct stream *stream, struct rv_error *err)
{
	bool more = !stream->ending && rv_queue_has_room(&stream->queue) && !rv_inlet_has_line(&stream->queue.in);

	if (rv_inlet_want(&stream->queue.in, more, err) != 0 ||
	    rv_loop_turn(&stream->service.loop, deadline(stream), err) != 0)
		return -1;
	if (rv_inlet_is_ready(&stream->queue.in))
		rv_inlet_read(&stream->queue.in);
	return 0;
}

/* What can be written without waiting is.  False: nobody reads the replies any more, and it ends now. */
static bool write_out(struct stream *stream, struct rv_error *err)
{
	if (rv_outlet_turn(&stream->queue.out, err) != 0)
		give_up(stream, err);
	if (stream->queue.out.errnum == 0 || stream->ending)
		return true;
	abort_all(stream);
	return false;
}

static void serve(struct stream *stream, struct rv_error *err)
{
	for (;;) {
		take_lines(stream);
		if (!stream->ending)
			begin_waiting(stream);
		check_running(stream);
		if (all_lost(stream)) /* behind what may have lost the last one: nothing would wake those that wait for it */
			rv_queue_refuse_waiting(&stream->queue, RV_E_CONFIG, "no slot is left that a tool could run in");
		rv_queue_hand_out(&stream->queue);
		if (!write_out(stream, err))
			continue;
		if (is_over(stream))
			return;
		if (turn(stream, err) != 0)
			give_up(stream, err);
	}
}

/* ---- the whole ---- */

static int open_queue(struct stream *stream, struct rv_error *err)
{
	if (rv_queue_open(&stream->queue, &stream->service.loop, err) != 0)
		return -1;
	stream->owners = calloc(stream->service.job_count, sizeof *stream->owners);
	return stream->owners != NULL ? 0 : rv_error_nomem(err);
}

static void release(struct stream *stream)
{
	rv_queue_release(&stream->queue);
	free(stream->owners);
	rv_service_release(&stream->service);
}

static int finish(const struct stream *stream, struct rv_error *err)
{
	stream->result->signal_number = stream->service.signal_number;
	stream->result->reader_gone = stream->queue.out.errnum == EPIPE;
	if (stream->queue.out.errnum != 0 && stream->queue.out.errnum != EPIPE)
		return rv_error_set(err, RV_E_IO, stream->queue.out.errnum, "standard output");
	if (stream->queue.in.errnum != 0)
		return rv_error_set(err, RV_E_IO, stream->queue.in.errnum, "standard input");
	return err->code == RV_E_NONE ? 0 : -1;
}

int rv_stream_run(const struct rv_stream_options *options, struct rv_stream_result *result, struct rv_error *err)
{
	struct stream stream = { .options = options, .result = result };
	struct rv_error warning = RV_ERROR_INIT;
	/* an engine that puts one container away need not hold up the next */
	size_t slots = rv_isolate_leaves(&options->service.isolate) ? 2 : 1;
	int status = -1;

	rv_memory_keep();
	*result = (struct rv_stream_result){ .refused = false };
	rv_queue_init(&stream.queue, options, result);
	if (rv_service_start(&stream.service, &options->service, options->jobs * slots, true, err) == 0) {
		if (open_queue(&stream, err) == 0 && rv_service_open(&stream.service, options->command, err) == 0 &&
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

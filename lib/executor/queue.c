#include "lib/executor/queue.h"

#include <stdlib.h>

#include "lib/executor/reply.h"

#define AHEAD 4                           /* lines in hand for each job: enough that no job waits for input */
#define AHEAD_MAX ((size_t)4 << 20)       /* bytes of arguments in them: beyond that one for each job that waits */
#define PENDING_MAX ((size_t)4 << 20)     /* bytes of replies that may wait for their reader */

void rv_queue_init(struct rv_queue *queue, const struct rv_stream_options *options, struct rv_stream_result *result)
{
	*queue = (struct rv_queue){ .options = options, .result = result, .next = 1 };
	queue->in.watch.fd = -1;
	queue->out.watch.fd = -1;
}

int rv_queue_open(struct rv_queue *queue, struct rv_loop *loop, struct rv_error *err)
{
	size_t count = queue->options->jobs * (AHEAD + 1);

	rv_inlet_init(&queue->in, loop, queue->options->in);
	rv_outlet_init(&queue->out, loop, queue->options->out);
	queue->entries = calloc(count, sizeof *queue->entries);
	if (queue->entries == NULL)
		return rv_error_nomem(err);
	queue->count = count;
	for (size_t i = 0; i < queue->count; i++) {
		rv_request_init(&queue->entries[i].request);
		rv_buffer_init(&queue->entries[i].reply, 0);
	}
	return rv_request_reader_init(&queue->reader, err);
}

void rv_queue_release(struct rv_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++) {
		rv_request_release(&queue->entries[i].request);
		rv_buffer_release(&queue->entries[i].reply);
	}
	rv_request_reader_release(&queue->reader);
	free(queue->entries);
	rv_inlet_release(&queue->in);
	rv_outlet_release(&queue->out);
}

/* ---- requests ---- */

struct rv_entry *rv_queue_find(const struct rv_queue *queue, enum rv_entry_state state)
{
	struct rv_entry *found = NULL;

	for (size_t i = 0; i < queue->count; i++) {
		struct rv_entry *entry = &queue->entries[i];

		if (entry->state == state &&
		    (found == NULL || (entry->number < found->number) != (state == RV_ENTRY_FREE)))
			found = entry;
	}
	return found;
}

/* Where the next line goes; NULL where none is to be taken. */
static struct rv_entry *room(const struct rv_queue *queue)
{
	size_t waiting = 0;
	size_t ahead = 0;

	for (size_t i = 0; i < queue->count; i++) {
		if (queue->entries[i].state == RV_ENTRY_WAITING) {
			waiting++;
			ahead += queue->entries[i].request.args.len;
		}
	}
	if (queue->out.errnum != 0 || rv_outlet_pending(&queue->out) >= PENDING_MAX)
		return NULL;
	return ahead < AHEAD_MAX || waiting == 0 ? rv_queue_find(queue, RV_ENTRY_FREE) : NULL;
}

bool rv_queue_has_room(const struct rv_queue *queue)
{
	return room(queue) != NULL;
}

/* A line that is no request at all, or a call that is not done. */
static void count_failure(struct rv_queue *queue, const struct rv_error *err)
{
	if (err->code == RV_E_REQUEST || err->code == RV_E_NUMBER || err->code == RV_E_DERIVATION)
		queue->result->refused = true;
	else
		queue->result->failed = true;
}

static void refuse(struct rv_queue *queue, struct rv_entry *entry, const struct rv_error *err)
{
	rv_buffer_clear(&entry->reply);
	rv_reply_add_refusal(&entry->reply, &entry->request.call, entry->number, err);
	entry->state = RV_ENTRY_ANSWERED;
	count_failure(queue, err);
}

void rv_queue_take(struct rv_queue *queue, const struct rv_service *service)
{
	struct rv_span line;
	struct rv_entry *entry;

	while ((entry = room(queue)) != NULL && rv_inlet_line(&queue->in, &line)) {
		struct rv_error err = RV_ERROR_INIT;

		entry->number = queue->in.line;
		entry->replied = false;
		entry->state = RV_ENTRY_WAITING;
		if (rv_request_read(&entry->request, &queue->reader, line, queue->options->json_flags, &service->rules,
				    &err) != 0 ||
		    (entry->executor = rv_registry_find(&service->registry, entry->request.call.executor, &err)) == NULL)
			refuse(queue, entry, &err);
	}
}

void rv_queue_refuse_waiting(struct rv_queue *queue, enum rv_code code, const char *why)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_entry *entry;

	(void)rv_error_set(&err, code, 0, "%s", why);
	while ((entry = rv_queue_find(queue, RV_ENTRY_WAITING)) != NULL)
		refuse(queue, entry, &err);
}

/* ---- replies ---- */

static void say_kept(const struct rv_queue *queue, const struct rv_dispatch *dispatch)
{
	struct rv_error text = RV_ERROR_INIT;

	(void)rv_error_set(&text, RV_E_NONE, 0, "the workdir is kept: %s", dispatch->workdir.data);
	queue->options->say(text.message);
}

void rv_queue_answer(struct rv_queue *queue, struct rv_entry *entry)
{
	const struct rv_dispatch *dispatch = &entry->dispatch;

	rv_buffer_clear(&entry->reply);
	rv_reply_add(&entry->reply, dispatch);
	entry->replied = true;
	if (dispatch->error.code != RV_E_NONE)
		count_failure(queue, &dispatch->error);
	if (dispatch->intended && dispatch->ran && dispatch->survivors != 0)
		queue->result->failed = true;
	if (dispatch->kept)
		say_kept(queue, dispatch);
	if (dispatch->warning.code != RV_E_NONE)
		queue->options->say(dispatch->warning.message);
}

void rv_queue_hand_out(struct rv_queue *queue)
{
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < queue->count; i++) {
			struct rv_entry *entry = &queue->entries[i];

			if (entry->state != RV_ENTRY_ANSWERED && !(entry->state == RV_ENTRY_RUNNING && entry->replied))
				continue;
			if (entry->reply.len == 0 || (!queue->options->unordered && entry->number != queue->next))
				continue;
			rv_outlet_add(&queue->out, &entry->reply);
			queue->next++;
			again = !queue->options->unordered;
		}
	}
	for (size_t i = 0; i < queue->count; i++) {
		if (queue->entries[i].state == RV_ENTRY_ANSWERED && queue->entries[i].reply.len == 0)
			queue->entries[i].state = RV_ENTRY_FREE;
	}
}

bool rv_queue_is_idle(const struct rv_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++) {
		if (queue->entries[i].state != RV_ENTRY_FREE)
			return false;
	}
	return rv_outlet_pending(&queue->out) == 0;
}

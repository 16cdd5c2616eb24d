/*
 * The requests that a stream has in hand, from the line that was read to the reply that was handed out: read ahead
 * within bounds, taken in the order of their lines, answered in that order or as they come.  It knows nothing of
 * jobs and slots: which request runs where is lib/executor/stream.c's.
 */
#ifndef RV_EXECUTOR_QUEUE_H
#define RV_EXECUTOR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/executor/dispatch.h"
#include "lib/executor/port.h"
#include "lib/executor/request.h"
#include "lib/executor/service.h"
#include "lib/executor/stream.h"

#define RV_NO_JOB SIZE_MAX

enum rv_entry_state { RV_ENTRY_FREE, RV_ENTRY_WAITING, RV_ENTRY_RUNNING, RV_ENTRY_ANSWERED };

/* One request in hand. */
struct rv_entry {
	enum rv_entry_state state;
	uint64_t number; /* of its line */
	struct rv_request request;
	const struct rv_executor *executor;
	struct rv_dispatch dispatch;
	struct rv_buffer reply;
	size_t job; /* RUNNING: whose slot it has; RV_NO_JOB: the next one has it already */
	bool replied; /* its reply is made, its slot may still be removing its workdir */
};

struct rv_queue {
	const struct rv_stream_options *options; /* borrowed */
	struct rv_stream_result *result;         /* borrowed: what was refused or failed is noted there */
	struct rv_inlet in;
	struct rv_outlet out;
	struct rv_entry *entries; /* owned */
	size_t count;
	/* private */
	struct rv_request_reader reader;
	uint64_t next; /* the number of the line that is to be answered next, in order */
};

/* Not yet on a loop, and empty: rv_queue_release() is allowed from here on. */
void rv_queue_init(struct rv_queue *queue, const struct rv_stream_options *options, struct rv_stream_result *result);
/* The descriptors of the options, watched by this loop; room for so many requests as the jobs need. */
int rv_queue_open(struct rv_queue *queue, struct rv_loop *loop, struct rv_error *err);
void rv_queue_release(struct rv_queue *queue);

/* The first in line; of those that are free the one whose memory was used last.  Borrowed; NULL: none. */
struct rv_entry *rv_queue_find(const struct rv_queue *queue, enum rv_entry_state state);
/* May a further line be taken?  None whose reply would only wait for a reader who is behind, though it has been
 * read.  Large requests do not gather: so many that no job waits, and no more. */
bool rv_queue_has_room(const struct rv_queue *queue);
/* Take the lines that have been read, while there is room: those that are requests wait, others are answered. */
void rv_queue_take(struct rv_queue *queue, const struct rv_service *service);

/* What waits is answered with this error. */
void rv_queue_refuse_waiting(struct rv_queue *queue, enum rv_code code, const char *why);
/* Make the reply of a dispatch that is answered. */
void rv_queue_answer(struct rv_queue *queue, struct rv_entry *entry);
/* Replies that are made go to the outlet, in the order of the requests or as they come. */
void rv_queue_hand_out(struct rv_queue *queue);

/* Nothing is in hand and nothing waits to be written. */
bool rv_queue_is_idle(const struct rv_queue *queue);

#endif

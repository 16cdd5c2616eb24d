/*
 * Rows in flight to a store that answers for each of them, in order (lib/executor/store.h): some wait to
 * leave, some have left, and some are refused already while their answer is still to come.
 */
#ifndef RV_EXECUTOR_FLIGHT_H
#define RV_EXECUTOR_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/executor/sink.h"

struct rv_flight_row {
	struct rv_dispatch *dispatch; /* NULL: refused already */
	char *bytes; /* owned */
	size_t len;
	size_t sent;
	int64_t deadline_ms; /* monotonic: for its answer */
};

struct rv_flight { /* zeros: empty */
	struct rv_flight_row *rows; /* owned: those from `first` on are not answered yet */
	size_t first, count, room;
	size_t next; /* the first that has not left whole; between first and count */
};

void rv_flight_release(struct rv_flight *flight); /* tells nobody */

bool rv_flight_is_empty(const struct rv_flight *flight);
bool rv_flight_is_leaving(const struct rv_flight *flight); /* does one wait to leave, or to leave whole? */
size_t rv_flight_asked(const struct rv_flight *flight);    /* rows that have left and are not answered */

/* Room for so many more; -1: no memory. */
int rv_flight_reserve(struct rv_flight *flight, size_t count);
/* A copy of the row, for which there is room; without memory for it it is refused. */
void rv_flight_add(struct rv_flight *flight, const struct rv_sink_row *row, int64_t deadline_ms);
/* As much as the pipe takes; -1: nobody reads it any more. */
int rv_flight_write(struct rv_flight *flight, int fd);

/* The first one's answer: confirmed (NULL), or refused. */
void rv_flight_answer(struct rv_flight *flight, const struct rv_error *failure);
/* Refuse and forget all, or those that have not left.  Was there any to be told? */
bool rv_flight_refuse_all(struct rv_flight *flight, const struct rv_error *why);
bool rv_flight_refuse_leaving(struct rv_flight *flight, const struct rv_error *why);

/* When the first answer is due, monotonic ms; INT64_MAX: none is. */
int64_t rv_flight_deadline(const struct rv_flight *flight);
/* Refuse those whose answer is due.  What has not begun to leave stays here. */
void rv_flight_expire(struct rv_flight *flight, int64_t now_ms, const struct rv_error *why);

#endif

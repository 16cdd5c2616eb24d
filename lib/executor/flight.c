#include "lib/executor/flight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "lib/executor/dispatch.h"

#define ROWS_A_WRITE 64

static void settle(struct rv_flight_row *row, const struct rv_error *failure)
{
	struct rv_dispatch *dispatch = row->dispatch;

	row->dispatch = NULL;
	if (dispatch != NULL)
		rv_dispatch_written(dispatch, failure);
}

static void forget_from(struct rv_flight *flight, size_t from)
{
	for (size_t i = from; i < flight->count; i++)
		free(flight->rows[i].bytes);
	flight->count = from;
	if (flight->next > from)
		flight->next = from;
}

void rv_flight_release(struct rv_flight *flight)
{
	forget_from(flight, flight->first);
	free(flight->rows);
	*flight = (struct rv_flight){ .rows = NULL };
}

bool rv_flight_is_empty(const struct rv_flight *flight)
{
	return flight->first == flight->count;
}

bool rv_flight_is_leaving(const struct rv_flight *flight)
{
	return flight->next < flight->count;
}

size_t rv_flight_asked(const struct rv_flight *flight)
{
	return flight->next - flight->first;
}

int rv_flight_reserve(struct rv_flight *flight, size_t count)
{
	size_t used = flight->count - flight->first;
	struct rv_flight_row *grown;

	if (flight->first > 0) {
		memmove(flight->rows, flight->rows + flight->first, used * sizeof *flight->rows);
		flight->next -= flight->first;
		flight->count = used;
		flight->first = 0;
	}
	if (used + count <= flight->room)
		return 0;
	grown = realloc(flight->rows, 2 * (used + count) * sizeof *grown);
	if (grown == NULL)
		return -1;
	flight->rows = grown;
	flight->room = 2 * (used + count);
	return 0;
}

void rv_flight_add(struct rv_flight *flight, const struct rv_sink_row *given, int64_t deadline_ms)
{
	struct rv_flight_row row = { .dispatch = given->dispatch, .bytes = malloc(given->len), .len = given->len,
				     .deadline_ms = deadline_ms };
	struct rv_error err = RV_ERROR_INIT;

	if (row.bytes == NULL) {
		(void)rv_error_nomem(&err);
		settle(&row, &err);
		return;
	}
	memcpy(row.bytes, given->bytes, given->len);
	flight->rows[flight->count++] = row;
}

/* So many bytes more have left. */
static void note_sent(struct rv_flight *flight, size_t len)
{
	while (len > 0) {
		struct rv_flight_row *row = &flight->rows[flight->next];
		size_t part = row->len - row->sent < len ? row->len - row->sent : len;

		row->sent += part;
		len -= part;
		flight->next += row->sent == row->len;
	}
}

int rv_flight_write(struct rv_flight *flight, int fd)
{
	while (rv_flight_is_leaving(flight)) {
		struct iovec parts[ROWS_A_WRITE];
		int count = 0;
		ssize_t n;

		for (size_t i = flight->next; i < flight->count && count < ROWS_A_WRITE; i++, count++) {
			const struct rv_flight_row *row = &flight->rows[i];

			parts[count] = (struct iovec){ row->bytes + row->sent, row->len - row->sent };
		}
		n = writev(fd, parts, count);
		if (n >= 0)
			note_sent(flight, (size_t)n);
		else if (errno != EINTR)
			return errno == EAGAIN ? 0 : -1;
	}
	return 0;
}

void rv_flight_answer(struct rv_flight *flight, const struct rv_error *failure)
{
	struct rv_flight_row *row = &flight->rows[flight->first++];

	settle(row, failure);
	free(row->bytes);
	if (rv_flight_is_empty(flight))
		flight->first = flight->next = flight->count = 0;
}

static bool refuse_from(struct rv_flight *flight, size_t from, const struct rv_error *why)
{
	bool told = false;

	for (size_t i = from; i < flight->count; i++) {
		told = told || flight->rows[i].dispatch != NULL;
		settle(&flight->rows[i], why);
	}
	forget_from(flight, from);
	return told;
}

bool rv_flight_refuse_all(struct rv_flight *flight, const struct rv_error *why)
{
	return refuse_from(flight, flight->first, why);
}

bool rv_flight_refuse_leaving(struct rv_flight *flight, const struct rv_error *why)
{
	return refuse_from(flight, flight->next, why);
}

int64_t rv_flight_deadline(const struct rv_flight *flight)
{
	for (size_t i = flight->first; i < flight->count; i++) {
		if (flight->rows[i].dispatch != NULL)
			return flight->rows[i].deadline_ms;
	}
	return INT64_MAX;
}

void rv_flight_expire(struct rv_flight *flight, int64_t now_ms, const struct rv_error *why)
{
	size_t kept = flight->next;

	for (size_t i = flight->first; i < flight->count && flight->rows[i].deadline_ms <= now_ms; i++)
		settle(&flight->rows[i], why);
	for (size_t i = flight->next; i < flight->count; i++) {
		struct rv_flight_row row = flight->rows[i];

		if (row.dispatch == NULL && row.sent == 0)
			free(row.bytes);
		else
			flight->rows[kept++] = row;
	}
	flight->count = kept;
}

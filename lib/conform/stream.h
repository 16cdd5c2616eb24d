/*
 * A stream of calls to the adapter: one configuration, calls sent while others are under way, and answers in any
 * order.  Every expectation of one call names it and shows its reply.
 *
 * Whatever comes on standard output that is not the one answer of a call that was sent is a failure of its own, seen
 * by rv_stream_await() and rv_stream_end().
 */
#ifndef RV_CONFORM_STREAM_H
#define RV_CONFORM_STREAM_H

#include "lib/conform/trial.h"

#define RV_STREAM_CALLS 128 /* of one stream, at most */

struct rv_stream_plan {
	int64_t jobs;
	int64_t timeout_ms;
	int64_t grace_ms;
	int64_t max_output;
	const char *ledger; /* NULL: none */
	const char *manifest;  /* NULL: none */
	const char *approvals; /* NULL: none */
};

struct rv_call {
	const char *id;
	int64_t sent_ms; /* monotonic */
	int64_t came_ms;
	struct rv_span line;              /* as it came */
	const struct rv_json_node *reply; /* NULL: not yet */
};

struct rv_stream {
	struct rv_trial *trial;
	struct rv_command *command;
	struct rv_call calls[RV_STREAM_CALLS];
	size_t count;
	size_t read; /* bytes of what it said that were looked at */
};

/* NULL noted. */
struct rv_stream *rv_stream_open(struct rv_trial *trial, const struct rv_stream_plan *plan);

/* A script as in lib/conform/ask.h, its words followed by `words`; or a program and its words.  NULL noted. */
const struct rv_call *rv_stream_script(struct rv_stream *stream, const char *id, const char *script,
				       const char *const *words);
const struct rv_call *rv_stream_program(struct rv_stream *stream, const char *id, const char *program,
					const char *const *words);
/* No command: a manifest says what is run. */
const struct rv_call *rv_stream_listed(struct rv_stream *stream, const char *id);

/* Carry on until it is answered or the instant comes: true where it is.  `noted`: false has said what is missing;
 * else the instant's coming is no failure, and everything else is. */
bool rv_stream_await(struct rv_stream *stream, const struct rv_call *call, int64_t until_ms, bool noted);

/* End of input, the adapter's end, one answer each. */
bool rv_stream_end(struct rv_stream *stream);

/* ---- expectations of one call ---- */

#define rv_expect_call(stream, call, held, ...) \
	((held) ? true : ((void)rv_unexpected_call(stream, call, __VA_ARGS__), false))
bool rv_unexpected_call(struct rv_stream *stream, const struct rv_call *call, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Its error's code; NULL: it is ok. */
bool rv_expect_code(struct rv_stream *stream, const struct rv_call *call, const char *code);
/* It is ok, with this JSON value. */
bool rv_expect_value(struct rv_stream *stream, const struct rv_call *call, const char *json);

#endif

/*
 * Requests in, replies out: `rv-exec --stream`.  One event loop for everything; as many dispatches at once
 * as there are jobs; a bounded number of lines read ahead, so that a slow reader slows the writer and
 * memory does not grow.  A bad line gets its own error reply with its line number, and the rest goes on.
 *
 * On end of file what is in hand is finished.  On TERM, INT or HUP what runs is aborted and written down,
 * and what waits is answered `aborted` without rows.  A reader of the replies that goes away is an abort.
 */
#ifndef RV_EXECUTOR_STREAM_H
#define RV_EXECUTOR_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/executor/service.h"

struct rv_stream_options {
	struct rv_service_options service;
	size_t jobs;
	bool unordered;        /* replies as they come, and not in the order of their requests */
	unsigned json_flags;
	char *const *command;  /* COMMAND and its ARGs, NULL-terminated */
	int in;                /* borrowed descriptors */
	int out;
	void (*say)(const char *message); /* a warning, for people */
};

struct rv_stream_result {
	bool refused;       /* a line never became a dispatch */
	bool failed;        /* a reply was not ok, or something may still run */
	int signal_number;  /* what ended it before its end: to die of */
	bool reader_gone;   /* nobody reads the replies any more */
};

/* 0, or -1 where the system failed; *result is set in either case. */
int rv_stream_run(const struct rv_stream_options *options, struct rv_stream_result *result, struct rv_error *err);

#endif

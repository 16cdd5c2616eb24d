/*
 * One run of the battery, whole: which checks, of whom, reported how and where.  What rv-conform(1)
 * does but for reading its command line and writing its standard output.
 */
#ifndef RV_CONFORM_SESSION_H
#define RV_CONFORM_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/conform/report.h"
#include "lib/conform/trial.h"

struct rv_session_plan {
	const char *suite;       /* NULL: all */
	const char *const *only; /* globs of ids, NULL-terminated; empty: all */
	const char *const *skip;
	const char *const *adapter; /* its argv; empty: the built-in one */
	enum rv_format format;
	const char *report; /* a file, its format by its name; NULL: none */
	bool strict_skips;
	bool colour;
	bool tap13;
	size_t jobs;
	int64_t timeout_ms;
	struct rv_container_place place; /* of the suites that need an image */
	const char *receipt;  /* a file to be created; NULL: none */
	const char *previous; /* the receipt before it; NULL: none */
	const char *source;   /* a source tree whose files the receipt names; NULL: none */
	/* standard output, and what is said meanwhile */
	void (*write)(const void *bytes, size_t len);
	void (*progress)(size_t done, size_t count, const char *id);
	void (*heed)(int fd); /* while this is readable a write need not wait for its reader; -1: no longer */
};

struct rv_session_result {
	struct rv_counts counts; /* as reported */
	int interrupted;         /* the signal that ended it early; 0 */
};

/* -1: it could not run, or its report or receipt could not be written.  RV_E_USAGE, RV_E_IO, RV_E_NOMEM. */
int rv_session_run(const struct rv_session_plan *plan, struct rv_session_result *result, struct rv_error *err);

/* The checks that would run, one a line: suite, id, title, tab-separated; JSON lines, with all that is known of
 * each, for RV_FORMAT_JSONL. */
int rv_session_list(const struct rv_session_plan *plan, struct rv_buffer *out, struct rv_error *err);

#endif

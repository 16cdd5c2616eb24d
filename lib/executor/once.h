/*
 * One dispatch from start to finish: what `rv-exec COMMAND` is.
 */
#ifndef RV_EXECUTOR_ONCE_H
#define RV_EXECUTOR_ONCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/executor/service.h"

/* What the command line says.  Strings are borrowed; NULL is "not given". */
struct rv_once {
	/* the call */
	const char *tool;
	const char *args;
	const char *args_file;
	const char *key;
	const char *run_file;
	const char *run_id;
	const char *genesis;
	int64_t derivation; /* 0: not given */
	int64_t agent_seq;
	int64_t ordinal;
	bool coordinates;   /* --agent-seq or --ordinal was given */
	const char *span_id;
	const char *agent_type;
	bool new_call;
	bool strict;
	char *const *argv;  /* COMMAND and its arguments, NULL-terminated */
	struct rv_service_options service;
};

struct rv_once_result {
	struct rv_error error;    /* RV_E_NONE: ok */
	struct rv_error warning;  /* said, and changes no result */
	struct rv_buffer result;  /* the result's JSON and a newline; empty unless ok */
	struct rv_buffer reply;   /* the reply line, always */
	struct rv_buffer kept;    /* the path of a workdir that stays; empty: none */
	bool attempted;           /* an intent stood, or would have: there is an outcome */
	int exit_code;            /* the tool's own, -1: none */
	int survivors;            /* of an attempt; -1: not known */
	int signal_number;        /* the signal that aborted it: to die of */
};

/* What is wrong with the combination of options, as RV_E_USAGE; 0 where nothing is. */
int rv_once_check(const struct rv_once *once, struct rv_error *err);

/* Never fails: what went wrong is in result->error.  Released by rv_once_release(). */
void rv_once_run(const struct rv_once *once, struct rv_once_result *result);
void rv_once_release(struct rv_once_result *result);

#endif

/*
 * One question to the adapter: a tool as shell text, a request, a configuration; and its answer.
 *
 * A script is run as `/bin/sh -c TEXT sh DIR NONCE PIDNS`: $1 is where evidence may be left, $2 the
 * trial's nonce (put it into the command line of whatever the tool starts), $3 the battery's own PID
 * namespace.  Before it stands a prelude: PATH is set (not exported), `say` prints its standard input as
 * a JSON string of base64, and `inside "$1"` ends a tool that was not given a workdir: it must stand
 * before whatever changes files by relative names, for the adapter may be a bad one.  `contained "$3"` ends
 * a tool that is not a child of pid 1 of another PID namespace than the battery's: it must stand before
 * whatever signals pid 1 or everybody.  Scripts use no more than POSIX sh and coreutils.
 */
#ifndef RV_CONFORM_ASK_H
#define RV_CONFORM_ASK_H

#include "lib/conform/trial.h"

/* Zero and NULL mean the default in parentheses. */
struct rv_ask {
	const char *script;             /* the tool as shell text, or (none of both beside a manifest): */
	const char *command;            /* a program */
	const char *const *words;       /* its arguments, NULL-terminated; may be NULL */
	struct rv_span tool_json;       /* the tool's name as JSON ("probe") */
	struct rv_span args;            /* JSON ({}) */
	const char *run_id;             /* (run-NONCE) */
	const char *key;                /* (key-NONCE); not sent if `coordinates` */
	const char *coordinates;        /* members of ctx, raw JSON: "\"genesis\":\"g\",..." */
	bool both;                      /* send the key beside the coordinates all the same */
	const char *const *allow_env;   /* names, NULL-terminated */
	const char *mint;               /* a credentials program as shell text, called with the same words */
	int64_t timeout_ms;             /* (10000) */
	int64_t grace_ms;               /* (1000) */
	int64_t max_output;             /* (1 MiB) */
	const char *ledger;             /* a path (none) */
	const char *manifest;           /* a path: it says what is run, and there is no command beside it (none) */
	const char *approvals;          /* a path (none) */
	const char *members;            /* more members of the request, raw JSON: "\"spec\":{...}" (none) */
	const char *const *set;         /* NAME=VALUE in the adapter's environment */
	const char *sandbox;            /* "kernel" (none) */
	const char *const *readable;    /* paths that the sandbox shows, NULL-terminated */
	const struct rv_container_place *container; /* run it in a container of this image */
	unsigned flags;                 /* enum rv_command_flags */
};

struct rv_answer {
	const struct rv_json_node *reply; /* NULL: not one JSON line */
	struct rv_span line;              /* as it came */
	int64_t took_ms;                  /* from the adapter's start to its end */
	const struct rv_command *command;
};

/* The words of a script for a list of JSON strings that is begun in `out`: "-c", the text with its prelude,
 * "sh", DIR, NONCE, PIDNS. */
void rv_ask_add_script(struct rv_buffer *out, const struct rv_trial *trial, const char *script);

/* Ask and wait; NULL noted only where the battery itself failed. */
struct rv_answer *rv_ask(struct rv_trial *trial, const struct rv_ask *ask);

/* Ask, and go on while the tool runs. */
struct rv_command *rv_ask_begin(struct rv_trial *trial, const struct rv_ask *ask);
struct rv_answer *rv_ask_end(struct rv_trial *trial, struct rv_command *command);

/* ---- expectations of answers; each notes the reply where it fails ---- */

#define rv_expect_reply(trial, answer, held, ...) \
	((held) ? true : ((void)rv_unexpected_reply(trial, answer, __VA_ARGS__), false))
bool rv_unexpected_reply(struct rv_trial *trial, const struct rv_answer *answer, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool rv_expect_ok(struct rv_trial *trial, const struct rv_answer *answer);
bool rv_expect_error(struct rv_trial *trial, const struct rv_answer *answer, const char *code);
/* The reply's result is this JSON value, compared in canonical form. */
bool rv_expect_result(struct rv_trial *trial, const struct rv_answer *answer, const char *json);
/* A script's last words, and its result then: only a tool that was run knows the nonce. */
#define RV_ASK_NONCE "printf '\"%s\"' \"$2\""
bool rv_expect_nonce(struct rv_trial *trial, const struct rv_answer *answer);
/* Answered within `ms` from the adapter's start. */
bool rv_expect_within(struct rv_trial *trial, const struct rv_answer *answer, int64_t ms);

const struct rv_json_node *rv_answer_result(const struct rv_answer *answer);
/* error.message, or empty. */
struct rv_span rv_answer_message(const struct rv_answer *answer);
/* What `say` said, decoded and NUL-terminated; noted and NULL where the result is no such string. */
const struct rv_buffer *rv_answer_said(struct rv_trial *trial, const struct rv_answer *answer);

/* `text` has this line. */
bool rv_has_line(const char *text, const char *line);

#endif

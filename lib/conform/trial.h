/*
 * A check at work: its private directory, the adapter it may ask, and its expectations.
 *
 * Expectations read as sentences and say what was seen where they do not hold:
 *
 *     return rv_expect_ok(trial, answer) && rv_expect(trial, n == 1, "%zu rows", n);
 *
 * Everything that a trial hands out lives until the trial ends.  Its time is `deadline_ms`; whatever
 * waits, waits no longer.
 */
#ifndef RV_CONFORM_TRIAL_H
#define RV_CONFORM_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/conform/check.h"
#include "lib/conform/command.h"
#include "lib/json/json.h"

#define RV_TRIAL_ABREAST 8 /* programs that a check may well run at once */
#define RV_NONCE 13 /* 12 decimal digits and a NUL */

/* Memory and children that go when the trial goes. */
struct rv_held;

/* Where containers come from: borrowed. */
struct rv_container_place {
	const char *image;  /* NULL: none was given */
	const char *engine; /* NULL: the executor's own default */
	const char *memory; /* NULL: the executor's own default */
	const char *const *engine_args; /* NULL-terminated; may be NULL */
};

struct rv_trial {
	const struct rv_check *check;
	const char *const *adapter; /* its argv */
	unsigned declared;   /* enum rv_capability: what it says it can */
	struct rv_record *record;
	struct rv_container_place place;
	int64_t deadline_ms; /* monotonic */
	const char *dir;     /* private, 0700; the evidence that tools leave */
	char *base;          /* DIR/base: where workdirs are made */
	char *ledger;        /* DIR/effects.jsonl; not there yet */
	char *secret;        /* NAME=VALUE in the adapter's environment: no tool may see it */
	char nonce[RV_NONCE]; /* in the command line of all that this trial starts */
	char pidns[32];      /* this PID namespace's name: "pid:[4026531836]" */
	struct rv_held *held;
};

/* false: could not be set up, and the record says so. */
bool rv_trial_begin(struct rv_trial *trial);
void rv_trial_end(struct rv_trial *trial); /* also names and kills what still runs */

/* ---- memory ---- */

/* Zeroed; NULL after noting that there is no memory. */
void *rv_trial_alloc(struct rv_trial *trial, size_t size);
char *rv_trial_printf(struct rv_trial *trial, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An empty buffer of the trial's. */
struct rv_buffer *rv_trial_buffer(struct rv_trial *trial);

/* ---- expectations ---- */

/* What is being done, for the report; replaces what was said before. */
void rv_did(struct rv_trial *trial, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* rv_expect(trial, held, format, ...) is `held`; where that is false, and nothing was noted before, what was
 * seen is noted.  The rest is evaluated only then.  A macro, so that what is expected is known behind it. */
#define rv_expect(trial, held, ...) ((held) ? true : ((void)rv_unexpected(trial, __VA_ARGS__), false))
/* Always false. */
bool rv_unexpected(struct rv_trial *trial, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Always false: this host does not allow the check. */
bool rv_skip(struct rv_trial *trial, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool rv_trial_failed(struct rv_trial *trial, const struct rv_error *err); /* always false */

/* ---- programs ---- */

/* Run to its end or to the trial's deadline; NULL noted. */
struct rv_command *rv_trial_run(struct rv_trial *trial, const struct rv_command_plan *plan);
struct rv_command *rv_trial_start(struct rv_trial *trial, const struct rv_command_plan *plan);
/* The adapter with further words (NULL-terminated) and input. */
struct rv_command *rv_trial_adapter(struct rv_trial *trial, const char *const *words, struct rv_span input);
/* The same, started; its input must live as long. */
struct rv_command *rv_trial_adapter_start(struct rv_trial *trial, const char *const *words, struct rv_span input);
/* The adapter as a stream, the secret in its environment: lib/conform/stream.h has what is said to it. */
struct rv_command *rv_trial_adapter_stream(struct rv_trial *trial);
/* Wait for it, to the trial's deadline, and kill it there; returns it. */
struct rv_command *rv_trial_finish(struct rv_trial *trial, struct rv_command *command);
/* Its exit status; -1 where it did not end by one. */
int rv_trial_status(const struct rv_command *command);

/* Parse; NULL where it is no JSON. */
const struct rv_json_node *rv_trial_parse(struct rv_trial *trial, const char *bytes, size_t len);

/* Processes whose command line holds the trial's nonce. */
size_t rv_trial_alive(const struct rv_trial *trial);
/* Wait until there is none: false at `ms`. */
bool rv_trial_all_gone(const struct rv_trial *trial, int ms);
/* The same, and of no other name either: once no program of this trial's own runs. */
bool rv_trial_none_left(const struct rv_trial *trial, int ms);

/* ---- files ---- */

/* A file's whole content, NUL-terminated; NULL where it cannot be read (nothing noted). */
struct rv_buffer *rv_trial_read(struct rv_trial *trial, const char *path);
bool rv_trial_write(struct rv_trial *trial, const char *path, struct rv_span bytes, unsigned mode);
/* DIR/name */
char *rv_trial_path(struct rv_trial *trial, const char *name);
bool rv_trial_exists(const char *path);
/* Wait for a file to appear: false where the command ended, or the deadline came, without it. */
bool rv_trial_await(struct rv_trial *trial, const char *path, struct rv_command *command);
/* Entries of a directory but . and ..; -1 where it cannot be read. */
int rv_trial_entries(const char *path);

#endif

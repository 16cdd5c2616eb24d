/*
 * Another program, run for what it says and how it ends: input written, output captured within a cap,
 * a deadline.  It is answered when the program itself ends, whoever else still holds its pipes.
 */
#ifndef RV_CONFORM_COMMAND_H
#define RV_CONFORM_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/process/spawn.h"

#define RV_COMMAND_OUTPUT_MAX ((size_t)64 << 20)

/* Unlike the caller's own: what a program must not let through to a tool. */
enum rv_command_flags {
	RV_COMMAND_BAD_SIGNALS = 1 << 0,     /* SIGTERM blocked, SIGPIPE and SIGINT ignored, SIGUSR1 blocked */
	RV_COMMAND_BAD_DESCRIPTORS = 1 << 1, /* 3 to 9, 37 and 120 open and inheritable */
	RV_COMMAND_BAD_UMASK = 1 << 2,       /* 077 */
	RV_COMMAND_MORE_INPUT = 1 << 3       /* none of the above: input may follow, until rv_command_close() */
};

struct rv_command_plan {
	const char *const *argv; /* argv[0] is looked up in PATH if it has no slash */
	const char *const *set;  /* NAME=VALUE over this process's environment, NULL-terminated; may be NULL */
	struct rv_span input;    /* borrowed until the command is finished */
	unsigned flags;
};

struct rv_command {
	struct rv_child child;
	int in, out, err; /* owned; -1 when closed */
	struct rv_span input;
	bool more; /* the input's end is not yet known */
	int64_t started_ms; /* monotonic */
	/* what it said and how it ended */
	struct rv_buffer said;
	struct rv_buffer complained;
	bool ended;     /* by itself: false after a kill at the deadline */
	int status;     /* as waitpid(2) gives it, where it ended */
	int64_t took_ms;
};

/* On -1 nothing runs. */
int rv_command_start(struct rv_command *command, const struct rv_command_plan *plan, struct rv_error *err);

/* Carry input and output until the program ends or the monotonic instant comes: 1 ended, 0 not yet. */
int rv_command_wait(struct rv_command *command, int64_t until_ms);
/* The same, but back as soon as anything has happened. */
int rv_command_turn(struct rv_command *command, int64_t until_ms);

/* More input, borrowed until it is written; and its end.  RV_COMMAND_MORE_INPUT, and all of it before written. */
void rv_command_send(struct rv_command *command, struct rv_span input);
void rv_command_close(struct rv_command *command);

/* A signal to the program alone, or to its whole process group. */
void rv_command_signal(const struct rv_command *command, int signal_number);
void rv_command_kill_group(struct rv_command *command);

/* Start, wait, kill its group at the deadline. */
int rv_command_run(struct rv_command *command, const struct rv_command_plan *plan, int64_t until_ms,
		   struct rv_error *err);

/* Kills what still runs. */
void rv_command_release(struct rv_command *command);

/* "exit status 3", "killed by SIGKILL", "still running": `text` of 40 bytes or more. */
const char *rv_command_how(const struct rv_command *command, char text[40]);

#endif

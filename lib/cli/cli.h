/*
 * What every program shares: its option table, its diagnostics and its exit status.
 * The only room of lib/ that prints or exits, and the only one with global state (the
 * program's name).
 *
 * One static table gives getopt_long's data, --help and, through --help, the shell
 * completions; t/ holds the man page to it.  Parsing stops at the first operand; -h, --help,
 * -V and --version are added to every table.
 */
#ifndef RV_CLI_CLI_H
#define RV_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"

/* Exit statuses (contract, section 1). */
enum rv_status {
	RV_EXIT_DONE = 0,
	RV_EXIT_NEEDS_SOMEONE = 1,
	RV_EXIT_USAGE = 2,
	RV_EXIT_REFUSED = 3,
	RV_EXIT_CORRUPT = 4,
	RV_EXIT_SYSTEM = 5,
	RV_EXIT_PROTOCOL = 120,
	RV_EXIT_OUTPUT_CAP = 121,
	RV_EXIT_LEDGER = 122,
	RV_EXIT_TIMEOUT = 124,
	RV_EXIT_CONFIG = 125,
	RV_EXIT_SPAWN = 126,
	RV_EXIT_SPAWN_MISSING = 127
};

/* The status of a program that ends with this error. */
int rv_status_of(enum rv_code code);

/* How an option's argument is read and where it goes (`offset` in the options struct). */
enum rv_option_kind {
	RV_OPT_FLAG,     /* bool */
	RV_OPT_STRING,   /* const char * */
	RV_OPT_LIST,     /* struct rv_strings: repeatable */
	RV_OPT_DURATION, /* int64_t, milliseconds */
	RV_OPT_SIZE,     /* uint64_t, bytes */
	RV_OPT_INTEGER,  /* int64_t within [min, max] */
	RV_OPT_CHOICE    /* int, the index in `choices` */
};

struct rv_strings {
	const char **items; /* borrowed strings, owned array: rv_strings_release() */
	size_t count;
};

void rv_strings_release(struct rv_strings *list);

struct rv_option {
	const char *name;     /* long name without dashes */
	char letter;          /* short name or 0 */
	enum rv_option_kind kind;
	size_t offset;        /* of the value in the program's options struct */
	size_t seen;          /* offset of a bool that says "was given", or RV_UNSEEN */
	const char *argument; /* as --help shows it: "FILE"; NULL for a flag */
	const char *help;     /* one sentence, no full stop; "\n" starts a new line */
	int64_t min, max;     /* RV_OPT_INTEGER */
	const char *choices;  /* RV_OPT_CHOICE: "a|b|c" */
};

#define RV_UNSEEN ((size_t)-1)

struct rv_program {
	const char *name;
	const char *const *usage;         /* NULL-terminated lines of the synopsis, without the name */
	const char *about;                /* one sentence */
	const struct rv_option *options;  /* in the order of --help */
	size_t count;
	const char *const *statuses;      /* NULL-terminated lines "0  done" for --help */
};

/* Parse into `values` (filled with defaults before).  Returns 0, or -1 with *status set where the
 * program must end (help and version were printed, or a usage error was said).  *operand is the
 * index of the first operand.  An option that takes one value and is given twice: the last wins. */
int rv_cli_parse(const struct rv_program *program, int argc, char **argv, void *values, int *operand, int *status);

/* First thing in main: standard descriptors, program name, the C locale's behaviour; children that can be waited for
 * (SIGCHLD may be ignored when we are started), and a umask that takes nothing from the owner. */
void rv_cli_start(const char *program);

/* "program: message" on stderr, one line, control bytes escaped. */
void rv_cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void rv_cli_say_error(const struct rv_error *err);
/* Say it and return its exit status. */
int rv_cli_fail(const struct rv_error *err);
/* A usage message with a pointer to --help; returns RV_EXIT_USAGE. */
int rv_cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Write to stdout at once, whole; a failure is said once and kept for rv_cli_end(). */
int rv_cli_write(const void *bytes, size_t len);
/* Once `cancel` is readable, and for as long, a write to stdout that makes no way for two seconds fails: a reader that
 * stopped does not keep whoever took the signals from ending.  -1: none, and a write waits for ever. */
void rv_cli_heed(int cancel);
/* The status that main returns: `status`, or 5 if a write to stdout failed. */
int rv_cli_end(int status);
/* The same as main's last act, for a program whose start and end are much of what it costs: nothing here is buffered, so
 * there is nothing for exit handlers to do but to free what the kernel frees at once.  (A sanitizer's are run: its leaks are
 * found there.) */
_Noreturn void rv_cli_leave(int status);

bool rv_cli_colour(int fd); /* a terminal, and NO_COLOR is not set to something */

#endif

/*
 * The one error value.  A fallible function takes `struct rv_error *err` as its
 * last parameter, owned by the caller and never NULL, and returns 0 or -1 (or a
 * pointer and NULL), so that a refusal reads as a sentence:
 *
 *     return rv_error_set(err, RV_E_IO, errno, "open %s", path);
 *
 * Nothing is allocated.  A message that does not fit is cut at a character.  Out
 * of memory is an ordinary error.  Only lib/cli turns a code into an exit status.
 */
#ifndef RV_BASE_ERROR_H
#define RV_BASE_ERROR_H

#include <stdarg.h>

/* In the order of the contract's table of statuses; names by rv_code_name(). */
enum rv_code {
	RV_E_NONE = 0,
	RV_E_USAGE,         /* the command line is wrong */
	RV_E_REQUEST,       /* input that never became a dispatch */
	RV_E_NUMBER,        /* a number that overflows a double */
	RV_E_DERIVATION,    /* a key derivation that is unknown or not stated */
	RV_E_CORRUPT,       /* a ledger that cannot be trusted: fail closed */
	RV_E_IO,            /* the system failed: I/O, no such file */
	RV_E_NOMEM,         /* the system failed: memory, or a hard cap reached */
	RV_E_BUSY,          /* a lock or a lease was not got within its deadline */
	RV_E_CONFIG,        /* a dispatch that may not or cannot be set up */
	RV_E_TIMEOUT,       /* the tool ran past its deadline */
	RV_E_ABORTED,       /* ended by the caller's signal */
	RV_E_OUTPUT_CAP,    /* more on stdout than was allowed */
	RV_E_EXIT,          /* the tool's own status was not 0 */
	RV_E_PROTOCOL,      /* stdout was not one JSON value */
	RV_E_SPAWN,         /* found, cannot be run */
	RV_E_SPAWN_MISSING, /* not found */
	RV_E_LEDGER,        /* a row could not be written */
	RV_E_HOST,          /* this host cannot enforce what a confined run needs */
	RV_E_RUNTIME        /* a runtime that cannot be identified whole */
};

#define RV_ERROR_MESSAGE_MAX 4096 /* bytes with the NUL: 500 characters of a tool's stderr fit */

struct rv_error {
	enum rv_code code;
	int errnum; /* errno of the cause, 0 for none */
	char message[RV_ERROR_MESSAGE_MAX]; /* UTF-8 as far as its parts are; not escaped for a terminal */
};

#define RV_ERROR_INIT { .code = RV_E_NONE, .errnum = 0, .message = "" }

/* Set `err` and return -1.  With errnum != 0, ": " and its strerror text follow. */
int rv_error_set(struct rv_error *err, enum rv_code code, int errnum, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Put context and ": " before the message of an error that is set; return -1. */
int rv_error_wrap(struct rv_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Out of memory, as an error; return -1. */
int rv_error_nomem(struct rv_error *err);

/* So that compilers and analyzers see the -1 too: without it every use after a checked failure
 * looks like one of something that was never set. */
#define rv_error_set(...) ((void)rv_error_set(__VA_ARGS__), -1)
#define rv_error_wrap(...) ((void)rv_error_wrap(__VA_ARGS__), -1)
#define rv_error_nomem(err) ((void)rv_error_nomem(err), -1)

void rv_error_clear(struct rv_error *err);

/* The code as it stands in a reply: "config", "spawn" (for both), "io", ... */
const char *rv_code_name(enum rv_code code);

#endif

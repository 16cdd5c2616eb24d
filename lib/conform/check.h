/*
 * What the battery is made of: promises as static data.  A suite is a table of checks; a check has a
 * stable id, says what is promised, where and why, and what an adapter must declare for it to apply.
 *
 * A check's function works on a trial (lib/conform/trial.h), in a process of its own.  It returns
 * true when the promise held; else the first failed expectation has said what was seen.
 */
#ifndef RV_CONFORM_CHECK_H
#define RV_CONFORM_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_trial;

/* What an adapter may declare; the names are those of rv_capability_name(). */
enum rv_capability {
	RV_CAN_LEDGER = 1 << 0,      /* writes a row for each attempt to config.ledger */
	RV_CAN_TWO_PHASE = 1 << 1,   /* and an intent before the effect */
	RV_CAN_CREDENTIALS = 1 << 2, /* runs config.credentials for each dispatch */
	RV_CAN_CONTAIN = 1 << 3,     /* nothing that a tool starts outlives the dispatch or the executor */
	RV_CAN_ABORT = 1 << 4,       /* SIGTERM ends a dispatch in good order */
	RV_CAN_KEY = 1 << 5,         /* derives the key from coordinates in ctx */
	RV_CAN_KEYS = 1 << 6,        /* ADAPTER --keys */
	RV_CAN_CANONICAL = 1 << 7,   /* ADAPTER --canonical */
	RV_CAN_SCAN = 1 << 8,        /* ADAPTER --scan */
	RV_CAN_REPAIR = 1 << 9,      /* ADAPTER --repair */
	RV_CAN_STREAM = 1 << 10,     /* ADAPTER --stream */
	RV_CAN_CONFINE = 1 << 11,    /* ADAPTER --confine */
	RV_CAN_KERNEL = 1 << 12,     /* config.sandbox "kernel", config.readable */
	RV_CAN_CONTAINER = 1 << 13,  /* request.executor "container", config.container */
	RV_CAN_MANIFEST = 1 << 14,   /* config.manifest */
	RV_CAN_APPROVALS = 1 << 15   /* config.approvals beside it */
};

#define RV_CAPABILITIES 16

/* "ledger", "two-phase", ...; `index` counts the bits from the lowest. */
const char *rv_capability_name(size_t index);

struct rv_check {
	const char *id;
	const char *title;
	const char *promise; /* one sentence: what must hold */
	const char *why;     /* one sentence: what goes wrong where it does not */
	const char *clause;  /* the page and section that promises it */
	unsigned needs;      /* enum rv_capability, or'ed */
	bool (*run)(struct rv_trial *trial);
	const void *data;    /* for a function that serves many rows, as trial->check->data */
};

/* Most rows have no `data`, and say so by leaving it out. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

struct rv_suite {
	const char *name;
	const char *about;
	const struct rv_check *const *tables; /* NULL-terminated; each ends with an id of NULL */
	bool wants_image; /* run only where an image is given: --image */
};

/* Ends with a name of NULL. */
extern const struct rv_suite rv_suites[];

/* The place to write down how a trial went: shared memory, so that it outlives the trial however that ends. */
enum rv_verdict { RV_UNDECIDED = 0, RV_PASS, RV_FAIL, RV_SKIP };

#define RV_NOTE_MAX 6144

struct rv_note {
	uint32_t len;
	char text[RV_NOTE_MAX]; /* bytes of any kind */
};

struct rv_record {
	enum rv_verdict verdict;
	struct rv_note did;
	struct rv_note saw;
	struct rv_note left; /* what was left running, and killed */
};

void rv_note_clear(struct rv_note *note);
void rv_note_add(struct rv_note *note, const void *bytes, size_t len); /* what does not fit is cut, and "..." says so */
void rv_note_printf(struct rv_note *note, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

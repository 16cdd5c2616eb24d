/*
 * A hostile tool in a stream of calls, with ordinary ones before, beside and behind it; and what must
 * become of it.  One function serves all: the row of the table of checks has the tool as its `data`.
 *
 * The two slots of the stream are used before the tool comes, and looked at by an ordinary tool each
 * behind it.  Beside it an ordinary one runs from before its start until after its end.  Held to: one
 * reply each, in time, with what is due; no survivor; containment as it was said before; an empty
 * workdir, no process beside, no descriptor too many, no signal blocked or ignored, and its own words
 * for whoever comes next; at the end no process, no workdir, both rows of every call, and what lies
 * outside the workdirs untouched.
 */
#ifndef RV_CONFORM_HOSTILE_H
#define RV_CONFORM_HOSTILE_H

#include "lib/conform/trial.h"

/* One of script, trick, program and placed.  Whatever is left running must carry the trial's nonce in its
 * command line, or descend from what does. */
struct rv_hostile {
	const char *script;  /* as in lib/conform/ask.h */
	const char *trick;   /* of lib/conform/trick.h */
	const char *program; /* with no words but `word` */
	const char *placed;  /* a file of this text is the program */
	unsigned mode;       /* its mode */
	size_t word;         /* so many letters as one argument (none) */
	const char *code;    /* the error that is due (none: it is ok) */
	const char *result;  /* the result that is due, canonical ("1", where it is ok) */
	bool any_end;        /* neither: it may well have ended itself */
	bool short_timeout;  /* the timeout is what ends it */
	bool apart;          /* it is let loose only in a PID namespace of its own */
};

/* A check's `run`. */
bool rv_hostile_run(struct rv_trial *trial);

/* A row of a table: the rest are members of the struct. */
#define RV_HOSTILE(name, title, promise, why, clause, needs, ...) \
	{ "hostile." name, title, promise, why, clause, RV_CAN_STREAM | (needs), rv_hostile_run, \
	  &(const struct rv_hostile){ __VA_ARGS__ } }

/* A check's `run`: all tools of the tables through one stream but those that only a timeout ends. */
bool rv_hostile_run_all(struct rv_trial *trial);

/* A check's `run`: what holds the tools of this executor on this host. */
bool rv_hostile_containment(struct rv_trial *trial);

#endif

/*
 * What is outside a sandbox, for attempts to reach it: a file, a directory, a process, sockets.  All of the trial's
 * own, and gone with it.
 */
#ifndef RV_CONFORM_OUTSIDE_H
#define RV_CONFORM_OUTSIDE_H

#include "lib/conform/trial.h"

#define RV_OUTSIDE_KEYS 10

struct rv_outside {
	const char *keys[RV_OUTSIDE_KEYS + 1]; /* rv-probe's KEY=VALUE words, NULL-terminated */
	const char *victim; /* a file that attempts change */
};

/* Sockets stay open until the trial's process ends.  false noted. */
bool rv_outside_open(struct rv_trial *trial, struct rv_outside *outside);
/* As it was, after attempts without a sandbox. */
bool rv_outside_restore(struct rv_trial *trial, const struct rv_outside *outside);

#endif

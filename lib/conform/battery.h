/*
 * The battery: the checks that were chosen, each in a process of its own with a directory and a
 * deadline of its own, several at once, reported in the order of the tables.
 *
 * Why a process for each: a hostile tool may hang, crash or kill what supervises it, and none of that
 * may reach another check.  The battery is a sub-reaper, so that what a check loses comes back to it
 * and is killed.
 */
#ifndef RV_CONFORM_BATTERY_H
#define RV_CONFORM_BATTERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/error.h"
#include "lib/conform/adapter.h"
#include "lib/conform/check.h"
#include "lib/conform/trial.h"

/* What was chosen, in the order of the tables. */
struct rv_choice {
	const struct rv_check *check;
	const struct rv_suite *suite;
};

struct rv_selection {
	struct rv_choice *items; /* owned */
	size_t count;
	bool filtered; /* something was left out */
};

/* `suite` NULL: all, and those that want an image only `with_image`.  Globs (fnmatch(3)) of ids; NULL-terminated, NULL: none.
 * RV_E_IO: one of `only` names no check of any suite, so that a mistyped one is no smaller battery. */
int rv_selection_make(struct rv_selection *selection, const char *suite, bool with_image, const char *const *only,
		      const char *const *skip, struct rv_error *err);
void rv_selection_release(struct rv_selection *selection);

struct rv_result {
	const struct rv_check *check;
	const struct rv_suite *suite;
	enum rv_verdict verdict; /* RV_PASS, RV_FAIL or RV_SKIP */
	int64_t took_ms;
	const struct rv_record *record; /* borrowed; what a skip's reason is stands in `saw` */
};

struct rv_inherited {
	pid_t *pids; /* owned: free(3) */
	size_t count;
};

struct rv_battery_plan {
	const struct rv_adapter *adapter;
	const struct rv_selection *selection;
	const struct rv_inherited *inherited;
	size_t jobs;
	int64_t timeout_ms; /* for each check */
	struct rv_container_place place;
	/* each result, in the order of the selection, as soon as all before it are known */
	void (*on_result)(void *data, const struct rv_result *result);
	/* something changed: so many are done, this one was just begun; NULL is fine */
	void (*on_progress)(void *data, size_t done, size_t count, const char *id);
	/* from now on the signals that end it are told by this descriptor, so that a wait in on_result can be ended by
	 * them, too; -1: no longer */
	void (*on_signals)(void *data, int fd);
	void *data;
};

/* 0, or -1: the battery itself could not go on.  *interrupted is the signal (TERM, INT, HUP; PIPE: nobody reads what
 * on_result writes) that ended it early, 0 if none: nothing of it runs then. */
int rv_battery_run(const struct rv_battery_plan *plan, int *interrupted, struct rv_error *err);

/* Whatever the programs that are started from now on lose is ours: this process is its sub-reaper.  `inherited` are then
 * the children that it has already (a shell that started some became this program by exec): those are not the battery's. */
int rv_battery_adopt(struct rv_inherited *inherited, struct rv_error *err);
/* Kill and reap all that descends from this process but those. */
void rv_battery_clear(const struct rv_inherited *inherited);

#endif

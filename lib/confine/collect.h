/*
 * One process from its spawn to what can be said of it (seed, invariants 5 to 10).  Nothing that the program prints
 * or returns decides anything here.
 *
 * The end of waiting: everything closed after the exit; RV_CONFINE_CLOSE_GRACE_MS after the exit;
 * RV_CONFINE_KILL_CONFIRM_MS after a stop.  What is then not gone is never signalled again.
 */
#ifndef RV_CONFINE_COLLECT_H
#define RV_CONFINE_COLLECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/confine/launch.h"
#include "lib/confine/request.h"

enum rv_admission { RV_ADMISSION_ABSENT, RV_ADMISSION_ADMITTED, RV_ADMISSION_REFUSED, RV_ADMISSION_MALFORMED };

enum rv_stop {
	RV_STOP_NONE,
	RV_STOP_TIMEOUT,
	RV_STOP_CANCELLED,
	RV_STOP_OUTPUT,
	RV_STOP_LIMITS,
	RV_STOP_CONTROL,
	RV_STOP_MEMORY
};

struct rv_facts {
	pid_t pid;            /* for people: a pid that is gone means nothing */
	enum rv_admission admission;
	bool reported;        /* the launcher's report came whole */
	struct rv_boundary_report report;
	int exec_errno;       /* of a refused exec; 0 */
	bool gone;            /* reaped */
	bool exit_known;      /* code or signal are what the kernel said */
	int exit_code;        /* -1: none */
	int exit_signal;      /* 0: none */
	bool lost_contact;    /* init is gone and did not say how the program ended */
	bool pipes_closed;
	enum rv_stop stopped; /* the first reason, and none after the exit but what the kernel ended it for */
	bool kill_sent;
	bool memory_by_group; /* the bound of memory was a cgroup's, and not a watch from outside */
	bool unwatched;       /* the memory could not be looked at */
	struct rv_buffer out, err;
	uint64_t output_bytes; /* received, kept or not */
	int64_t duration_ms;   /* from the spawn to the end of waiting */
};

/* Called in the middle, and waited for. */
struct rv_collect_hooks {
	void (*launched)(void *data, pid_t pid);
	void (*admitted)(void *data, pid_t pid);
	void *data;
};

/* -1: there is no process and never was.  `cancel` becomes readable when the run is to be stopped; -1 for none.
 * Everything in *facts is set in either case. */
int rv_collect(struct rv_facts *facts, struct rv_launch_plan *plan, const struct rv_bounds *bounds, int cancel,
	       const struct rv_collect_hooks *hooks, struct rv_error *err);
void rv_facts_release(struct rv_facts *facts);

bool rv_cancelled(int cancel);

/* Soft and hard alike, exactly what was asked for; core and file size 0. */
bool rv_bounds_are_measured(const struct rv_bounds *bounds, const struct rv_boundary_report *report);

#endif

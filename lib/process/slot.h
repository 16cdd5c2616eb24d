/*
 * A job slot: the persistent worker that runs one dispatch after another and leaves nothing behind.
 *
 * `pid-namespace`: the worker is pid 1 of a PID namespace (for an ordinary user also of a one-id user
 * namespace; with a procfs of its own where one can be mounted).  Nothing that a tool starts can
 * outlive a dispatch, nor the host: pid_namespaces(7).
 * `subreaper`: where the host forbids namespaces, and for what must not run in one.  Descendants are
 * walked; a tool that kills its worker may escape, and that is then said.
 *
 * Start slots before a secret is read: the id maps cannot be written once this process is undumpable.
 */
#ifndef RV_PROCESS_SLOT_H
#define RV_PROCESS_SLOT_H

#include <stdbool.h>
#include <sys/resource.h>

#include "lib/base/error.h"
#include "lib/process/spawn.h"

struct rv_wire_page;
/* Undo a run, by the words that its plan gave: in a child of the worker, whose exit status is what this
 * returns; 0 when it is certain that nothing is left.  All signals are blocked when it is called.  `killed`: what ran
 * did not end by itself with status 0, and may have left something in the middle. */
typedef int rv_undo(char *const *words, bool killed);

enum rv_containment { RV_CONTAIN_NAMESPACE, RV_CONTAIN_SUBREAPER };

/*
 * What else encloses the tools of contained slots: a sandbox, which this room does not know.  Both run in the
 * worker's copy of this process's memory, so `data` is the worker's own from its start.
 *
 *   prepare  once, in the worker, which is pid 1 and has its namespaces' capabilities: -1 where it cannot be, and
 *            then there is no slot (never a weaker one)
 *   enter    in each tool's process, when its session and descriptors are set and before it changes into its
 *            directory.  That process shares the worker's memory: no heap.  -1 with errno: RV_START_ENCLOSE
 */
struct rv_enclosure {
	int (*prepare)(void *data, struct rv_error *err);
	int (*enter)(void *data, const char *cwd);
	void *data;
};

/* All slots of this process: the lost children of one must not be looked for among the others, nor
 * below a program of the host's own. */
struct rv_slots {
	struct rv_slot *first;
	const struct rv_enclosure *enclosure; /* of the slots that are to be contained; borrowed; NULL: none */
	const struct rv_child *beside[2]; /* borrowed; NULL: there is no such program */
	rv_undo *undo; /* set before a slot is started; may be NULL */
};

struct rv_slot {
	struct rv_child worker;
	int socket; /* owned; -1 when not started or lost */
	struct rv_wire_page *page; /* owned; shared with the worker */
	bool removing; /* a discard or an undoing was asked for and not answered yet */
	enum rv_containment containment;
	bool changed; /* says the worker behind its last tool */
	struct rlimit limits[RLIM_NLIMITS]; /* the worker's, as they were at its start, */
	bool limits_known;                  /* where tools of other slots can reach it, too */
	struct rv_slots *all;
	struct rv_slot *next;
};

/* "pid-namespace" or "subreaper". */
const char *rv_containment_name(enum rv_containment containment);

/* Start the worker: in namespaces, or (wanted == RV_CONTAIN_SUBREAPER, or the host forbids them) as a
 * subreaper.  The reason why namespaces could not be had is in *why (RV_E_NONE if they could).  Where there is an
 * enclosure, nothing stands for namespaces: -1, RV_E_CONFIG. */
int rv_slot_start(struct rv_slot *slot, struct rv_slots *all, enum rv_containment wanted, struct rv_error *why,
		  struct rv_error *err);

/* End it: the worker sees end of file and goes; one that does not within wait_ms is killed.  One that
 * still removes a directory is left to finish that, and goes then. */
void rv_slot_stop(struct rv_slot *slot, int wait_ms);

/* The worker of `from` becomes that of `to`, which has none. */
void rv_slot_move(struct rv_slot *to, struct rv_slot *from);

/* Let it finish a removal and go by itself; this process knows it no longer. */
void rv_slot_leave(struct rv_slot *slot);

/* Is what a tool inherits of the worker no longer what it was (lib/process/inherited.h)?  Every later tool would have it,
 * or could not be started.  Such a slot is to be stopped.  Outside a namespace the limits alone are looked at. */
bool rv_slot_is_changed(const struct rv_slot *slot);

/* Announce a directory that is about to be made (the slot runs nothing); ask for one to be removed. */
int rv_slot_arm(const struct rv_slot *slot, const char *path, struct rv_error *err);
int rv_slot_discard(struct rv_slot *slot, const char *path, struct rv_error *err);

/* Wait up to wait_ms for the answer to a discard: 1 removed, 0 not yet, -1 cannot be (err), or the worker has ended:
 * then the slot is lost. */
int rv_slot_discarded(struct rv_slot *slot, int wait_ms, struct rv_error *err);

/* Ask that the last run be undone (its plan said how), and wait up to wait_ms for the answer: 1 it is certain
 * that nothing is left, 0 not yet, -1 it is not (err; or the worker has ended: then the slot is lost).  A host that dies, or leaves the slot, need not ask: what
 * is not undone by then the worker undoes. */
int rv_slot_undo(struct rv_slot *slot, struct rv_error *err);
int rv_slot_undone(struct rv_slot *slot, int wait_ms, struct rv_error *err);

/* Has the worker ended?  An idle one tells nobody: somebody killed it, or the system did for want of memory. */
bool rv_slot_has_ended(const struct rv_slot *slot);

/* The worker did not answer or is dead: kill it and what it may have left to this process.  Returns
 * the number of survivors, -1 if it is not known. */
int rv_slot_lost(struct rv_slot *slot);

#endif

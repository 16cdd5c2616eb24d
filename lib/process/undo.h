/* What undoes a run that is an engine's: kept by the worker, which outlives the host.  Private to lib/process. */
#ifndef RV_PROCESS_UNDO_H
#define RV_PROCESS_UNDO_H

#include "lib/process/plan.h"
#include "lib/process/slot.h"

struct rv_undoing {
	rv_undo *run;  /* NULL: nothing is ever undone */
	char **words;  /* into memory; NULL: there is nothing to undo */
	void *memory;  /* owned */
	bool killed;   /* the run did not end by itself with status 0 */
};

/* Take a plan's memory over where its run was `started` and has something to undo, else free it (and what is
 * kept stays: an engine is asked in between); what was run is wiped in either case, for credentials are in it. */
void rv_undoing_keep(struct rv_undoing *undoing, struct rv_plan_view *view, uint64_t length, bool started);
void rv_undoing_forget(struct rv_undoing *undoing);

/* Undo what there is and forget it.  `children` is a signalfd of SIGCHLD.  0, or errno. */
int rv_undoing_do(struct rv_undoing *undoing, int children);

#endif

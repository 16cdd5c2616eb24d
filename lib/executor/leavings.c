#include "lib/executor/leavings.h"

#include "lib/base/clock.h"
#include "lib/process/workdir.h"

#define REMOVAL_MS 1000 /* how long an answer waits for its workdir to be gone; the slot goes on */

/* The worker is gone, or could not: it was not the directory's fault. */
static void remove_here(struct rv_dispatch *dispatch)
{
	struct rv_error err = RV_ERROR_INIT;

	dispatch->has_workdir = false;
	if (rv_workdir_remove(dispatch->workdir.data, &err) != 0)
		dispatch->warning = err;
}

/* Never a comforting zero. */
static void undo_failed(struct rv_dispatch *dispatch, const struct rv_error *why)
{
	dispatch->undo = RV_UNDO_FAILED;
	dispatch->survivors = -1;
	dispatch->warning = *why;
	(void)rv_error_wrap(&dispatch->warning, "the container of attempt %s may be left (see --reap)", dispatch->attempt_id);
}

static void on_undone(struct rv_watch *watch, uint32_t events)
{
	struct rv_dispatch *dispatch = watch->owner;
	struct rv_error err = RV_ERROR_INIT;

	(void)events;
	rv_loop_remove(dispatch->executor->loop, watch);
	dispatch->undo = RV_UNDO_NONE;
	if (rv_slot_undone(dispatch->slot, 0, &err) != 1)
		undo_failed(dispatch, &err);
	else
		dispatch->survivors = dispatch->survivors_before; /* what the credentials program left is no engine's */
}

void rv_leavings_undo(struct rv_dispatch *dispatch)
{
	struct rv_error err = RV_ERROR_INIT;

	if (dispatch->undo != RV_UNDO_OWED)
		return;
	dispatch->undo = RV_UNDO_ASKED;
	dispatch->removal = (struct rv_watch){ -1, on_undone, dispatch };
	dispatch->undo_ms = rv_clock_mono_ms() + RV_LEAVINGS_UNDO_MS;
	if (dispatch->slot->socket < 0) {
		(void)rv_error_set(&err, RV_E_IO, 0, "the slot worker is gone");
		undo_failed(dispatch, &err);
	} else if (rv_slot_undo(dispatch->slot, &err) != 0 ||
		   rv_loop_add(dispatch->executor->loop, &dispatch->removal, dispatch->slot->socket, EPOLLIN, &err) != 0) {
		undo_failed(dispatch, &err);
	}
}

static void on_removed(struct rv_watch *watch, uint32_t events)
{
	struct rv_dispatch *dispatch = watch->owner;
	struct rv_error err = RV_ERROR_INIT;

	(void)events;
	rv_loop_remove(dispatch->executor->loop, watch);
	dispatch->has_workdir = false;
	if (dispatch->undo != RV_UNDO_FAILED)
		rv_error_clear(&dispatch->warning);
	if (rv_slot_discarded(dispatch->slot, 0, &err) != 1)
		remove_here(dispatch);
	rv_leavings_undo(dispatch);
}

void rv_leavings_remove(struct rv_dispatch *dispatch)
{
	struct rv_error err = RV_ERROR_INIT;

	if (!dispatch->has_workdir) {
		rv_leavings_undo(dispatch);
		return;
	}
	dispatch->removal = (struct rv_watch){ -1, on_removed, dispatch };
	dispatch->removal_ms = rv_clock_mono_ms() + REMOVAL_MS;
	if (dispatch->slot->socket < 0 || rv_slot_discard(dispatch->slot, dispatch->workdir.data, &err) != 0 ||
	    rv_loop_add(dispatch->executor->loop, &dispatch->removal, dispatch->slot->socket, EPOLLIN, &err) != 0) {
		if (rv_slot_has_ended(dispatch->slot))
			(void)rv_slot_lost(dispatch->slot);
		remove_here(dispatch);
		rv_leavings_undo(dispatch);
	}
}

void rv_leavings_check(struct rv_dispatch *dispatch)
{
	struct rv_error err = RV_ERROR_INIT;

	if (dispatch->undo == RV_UNDO_ASKED) {
		if (rv_clock_left_ms(dispatch->undo_ms) > 0)
			return;
		rv_loop_remove(dispatch->executor->loop, &dispatch->removal);
		(void)rv_slot_lost(dispatch->slot); /* it does not answer, and would later answer something else */
		(void)rv_error_set(&err, RV_E_IO, 0, "the engine does not answer");
		undo_failed(dispatch, &err);
	} else if (dispatch->has_workdir && dispatch->removal_ms != 0 && dispatch->warning.code == RV_E_NONE &&
		   rv_clock_left_ms(dispatch->removal_ms) == 0) {
		(void)rv_error_set(&dispatch->warning, RV_E_IO, 0, "%s is still being removed", dispatch->workdir.data);
	}
}

void rv_leavings_force(struct rv_dispatch *dispatch)
{
	rv_loop_remove(dispatch->executor->loop, &dispatch->removal);
	if (dispatch->undo == RV_UNDO_ASKED)
		dispatch->undo = RV_UNDO_FAILED;
	if (dispatch->has_workdir && dispatch->stage == RV_STAGE_DONE)
		remove_here(dispatch);
}

int64_t rv_leavings_deadline(const struct rv_dispatch *dispatch)
{
	if (dispatch->undo == RV_UNDO_ASKED)
		return dispatch->undo_ms;
	return dispatch->has_workdir && dispatch->removal_ms != 0 && dispatch->warning.code == RV_E_NONE
		       ? dispatch->removal_ms
		       : INT64_MAX;
}

#include "lib/ledger/attempts.h"

#include <stdbool.h>

static bool is_before(const struct rv_place *a, const struct rv_place *b)
{
	return a->file != b->file ? a->file < b->file : a->offset < b->offset;
}

/* Both lists are in order, but for what was read after the scan settled, which is at their end. */
const struct rv_place *rv_attempts_next(struct rv_attempts *attempts)
{
	const struct rv_places *intents = &attempts->view->scan.intents;
	const struct rv_places *outcomes = &attempts->view->scan.outcomes;
	bool more_intents = attempts->intent < intents->count;
	bool more_outcomes = attempts->outcome < outcomes->count;

	if (!more_intents && !more_outcomes)
		return NULL;
	if (more_intents && (!more_outcomes || is_before(&intents->items[attempts->intent],
							 &outcomes->items[attempts->outcome])))
		return &intents->items[attempts->intent++];
	return &outcomes->items[attempts->outcome++];
}

/*
 * An operator's decisions about orphans and damage (contract, section 4): each names its attempt, or the
 * hash of its corrupt line, and who decided, why, when, and by which receipt.
 */
#ifndef RV_LEDGER_DECISIONS_H
#define RV_LEDGER_DECISIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/digest/digest.h"
#include "lib/ledger/pair.h"
#include "lib/ledger/view.h"

struct rv_decision {
	uint32_t entry;  /* of its attempt; UINT32_MAX for a corrupt line */
	char sha256[RV_SHA256_HEX];
	size_t text, len; /* the record itself, in `texts` */
	bool used;        /* it is about something that is there */
};

struct rv_decisions {
	struct rv_pairs *attempts;
	struct rv_decision *items;
	size_t count;
	struct rv_buffer texts;
};

/* RV_E_REQUEST: the file is refused. */
int rv_decisions_load(struct rv_decisions *decisions, const char *path, struct rv_error *err);
void rv_decisions_release(struct rv_decisions *decisions); /* zeroed is fine */

/* Mark what is decided in a view.  An attempt that still runs is not decided by anybody. */
int rv_decisions_apply(struct rv_decisions *decisions, struct rv_view *view, struct rv_error *err);

#endif

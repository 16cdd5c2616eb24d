/*
 * A file of an operator's own records, JSON lines: decisions, approvals.  Unlike a ledger nothing
 * of it is forgiven: a line that is no record refuses the file.  Blank lines are passed over.
 */
#ifndef RV_LEDGER_RECORDS_H
#define RV_LEDGER_RECORDS_H

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/json/json.h"

/* What takes a record returns NULL, or why it is none (static); -1 into *failed is a failure of the
 * system, with err set. */
struct rv_record_user {
	const char *(*use)(void *context, const struct rv_json_node *record, int *failed, struct rv_error *err);
	void *context;
};

/* Use each record of a file ("-" is standard input) in order.  RV_E_REQUEST with the line of the first
 * that is none, RV_E_IO, RV_E_NOMEM. */
int rv_records_read(const char *path, const struct rv_record_user *user, struct rv_error *err);

/* A string member that is there and not empty. */
bool rv_record_has_text(const struct rv_json_node *record, const char *name);

#endif

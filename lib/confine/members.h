/* Reading a JSON object of which every member is known.  Private to lib/confine. */
#ifndef RV_CONFINE_MEMBERS_H
#define RV_CONFINE_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/json/json.h"

struct rv_member {
	const char *name;
	enum rv_json_type type;
	bool required;
};

/* found[i] is the value of members[i], NULL where it is absent and may be.  Refused (RV_E_REQUEST): what is no object,
 * an absent, mistyped, unknown or repeated member.  `where` is for messages: "program". */
int rv_members_read(const struct rv_json_node *object, const char *where, const struct rv_member *members, size_t count,
		    const struct rv_json_node **found, struct rv_error *err);

/* A copy of a string node, which holds no NUL and no lone surrogate.  NULL with err. */
char *rv_members_text(const struct rv_json_node *node, const char *where, struct rv_error *err);

/* An integer within [min, max]. */
int rv_members_integer(const struct rv_json_node *node, const char *where, int64_t min, int64_t max, int64_t *value,
		       struct rv_error *err);

#endif

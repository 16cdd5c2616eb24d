#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conform/battery.h"

static bool matches(const char *const *globs, const char *id)
{
	for (size_t i = 0; globs != NULL && globs[i] != NULL; i++) {
		if (fnmatch(globs[i], id, 0) == 0)
			return true;
	}
	return false;
}

static bool names_any(const char *glob)
{
	for (const struct rv_suite *suite = rv_suites; suite->name != NULL; suite++) {
		for (size_t t = 0; suite->tables[t] != NULL; t++) {
			for (const struct rv_check *check = suite->tables[t]; check->id != NULL; check++) {
				if (fnmatch(glob, check->id, 0) == 0)
					return true;
			}
		}
	}
	return false;
}

static size_t count_all(void)
{
	size_t count = 0;

	for (const struct rv_suite *suite = rv_suites; suite->name != NULL; suite++) {
		for (size_t t = 0; suite->tables[t] != NULL; t++) {
			for (const struct rv_check *check = suite->tables[t]; check->id != NULL; check++)
				count++;
		}
	}
	return count;
}

int rv_selection_make(struct rv_selection *selection, const char *name, bool with_image, const char *const *only,
		      const char *const *skip, struct rv_error *err)
{
	bool all = only == NULL || only[0] == NULL;
	size_t room = count_all();

	selection->items = calloc(room > 0 ? room : 1, sizeof *selection->items);
	selection->count = 0;
	if (selection->items == NULL)
		return rv_error_nomem(err);
	for (size_t i = 0; !all && only[i] != NULL; i++) {
		if (!names_any(only[i]))
			return rv_error_set(err, RV_E_IO, 0, "--only %s: no check is selected by it", only[i]);
	}
	for (const struct rv_suite *suite = rv_suites; suite->name != NULL; suite++) {
		if (name != NULL ? strcmp(name, suite->name) != 0 : suite->wants_image && !with_image)
			continue;
		for (size_t t = 0; suite->tables[t] != NULL; t++) {
			for (const struct rv_check *check = suite->tables[t]; check->id != NULL; check++) {
				if ((all || matches(only, check->id)) && !matches(skip, check->id))
					selection->items[selection->count++] = (struct rv_choice){ check, suite };
			}
		}
	}
	selection->filtered = selection->count < room;
	return 0;
}

void rv_selection_release(struct rv_selection *selection)
{
	free(selection->items);
	selection->items = NULL;
	selection->count = 0;
}

#include "lib/executor/registry.h"

#include <stdlib.h>
#include <string.h>

static struct rv_executor *look_up(const struct rv_registry *registry, struct rv_span tag)
{
	for (size_t i = 0; i < registry->count; i++) {
		if (rv_span_equal(tag, rv_span_of(registry->executors[i].name)))
			return &registry->executors[i];
	}
	return NULL;
}

static int refuse_inprocess(struct rv_error *err)
{
	return rv_error_set(err, RV_E_CONFIG, 0, "executor inprocess is the engine's own: nothing is run here");
}

struct rv_executor *rv_registry_add(struct rv_registry *registry, const struct rv_executor *common, const char *tag,
				    struct rv_error *err)
{
	struct rv_executor *grown;

	if (strcmp(tag, "inprocess") == 0) {
		(void)refuse_inprocess(err);
		return NULL;
	}
	if (tag[0] == '\0' || !rv_text_is_utf8(tag, strlen(tag)) || look_up(registry, rv_span_of(tag)) != NULL) {
		(void)rv_error_set(err, RV_E_CONFIG, 0, "executor '%s' is %s", tag,
				   look_up(registry, rv_span_of(tag)) != NULL ? "registered twice" : "no name");
		return NULL;
	}
	grown = realloc(registry->executors, (registry->count + 1) * sizeof *grown);
	if (grown == NULL) {
		(void)rv_error_nomem(err);
		return NULL;
	}
	registry->executors = grown;
	grown += registry->count++;
	*grown = *common;
	grown->name = tag;
	return grown;
}

const struct rv_executor *rv_registry_find(const struct rv_registry *registry, struct rv_span tag, struct rv_error *err)
{
	const struct rv_executor *found;

	if (tag.data == NULL)
		tag = rv_span_of(registry->chosen);
	found = look_up(registry, tag);
	if (found == NULL && rv_span_equal(tag, RV_SPAN("inprocess")))
		(void)refuse_inprocess(err);
	else if (found == NULL)
		(void)rv_error_set(err, RV_E_CONFIG, 0, "executor %.*s is not registered", (int)tag.len, tag.data);
	return found;
}

void rv_registry_release(struct rv_registry *registry)
{
	free(registry->executors);
	registry->executors = NULL;
	registry->count = 0;
}

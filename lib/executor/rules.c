#include "lib/executor/rules.h"

#include <string.h>

int rv_rules_open(struct rv_rules *rules, const char *manifest, int64_t timeout_ms, char *const *command,
		  struct rv_error *err)
{
	memset(rules, 0, sizeof *rules);
	rules->command = command[0] != NULL ? command : NULL;
	rules->timeout_ms = timeout_ms;
	rules->has_manifest = manifest != NULL;
	return manifest != NULL ? rv_manifest_load(&rules->manifest, manifest, err) : 0;
}

int rv_rules_check_tags(const struct rv_rules *rules, const struct rv_registry *registry, struct rv_error *err)
{
	for (size_t i = 0; i < rules->manifest.count; i++) {
		const struct rv_manifest_tool *tool = &rules->manifest.tools[i];

		if (tool->executor.data != NULL && rv_registry_find(registry, tool->executor, err) == NULL)
			return rv_error_wrap(err, "--manifest: tool %.*s", (int)tool->name.len, tool->name.data);
	}
	return 0;
}

void rv_rules_release(struct rv_rules *rules)
{
	rv_manifest_release(&rules->manifest);
}

static int take_tool(const struct rv_manifest *manifest, struct rv_call *call, struct rv_error *err)
{
	const struct rv_manifest_tool *tool = rv_manifest_find(manifest, call->tool);

	if (tool == NULL)
		return rv_error_set(err, RV_E_CONFIG, 0, "tool %.*s is not in the manifest", (int)call->tool.len,
				    call->tool.data);
	if (tool->executor.data != NULL && call->executor.data != NULL && !rv_span_equal(tool->executor, call->executor))
		return rv_error_set(err, RV_E_CONFIG, 0, "the manifest runs tool %.*s by executor %.*s, and not by %.*s",
				    (int)call->tool.len, call->tool.data, (int)tool->executor.len, tool->executor.data,
				    (int)call->executor.len, call->executor.data);
	if (tool->executor.data != NULL)
		call->executor = tool->executor;
	if (tool->timeout_ms != 0)
		call->timeout_ms = tool->timeout_ms;
	call->needs_approval = tool->needs_approval;
	call->command = tool->argv[0];
	call->argv = tool->argv;
	return 0;
}

int rv_rules_apply(const struct rv_rules *rules, struct rv_call *call, struct rv_error *err)
{
	call->timeout_ms = rules->timeout_ms;
	call->needs_approval = false;
	return rules->has_manifest ? take_tool(&rules->manifest, call, err) : 0;
}

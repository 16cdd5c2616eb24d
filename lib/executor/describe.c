#include "lib/executor/describe.h"

#include <stdlib.h>

#include "lib/json/write.h"

static void add_span_or_null(struct rv_buffer *out, const char *name, struct rv_span text)
{
	if (text.data != NULL)
		rv_json_member_span(out, name, text);
	else
		rv_json_member_null(out, name);
}

static void add_strings(struct rv_buffer *out, const char *name, const char *const *items)
{
	rv_json_add_name(out, name);
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; items[i] != NULL; i++) {
		struct rv_span item = rv_span_of(items[i]);

		if (i > 0)
			rv_buffer_add_byte(out, ',');
		rv_json_add_string(out, item.data, item.len);
	}
	rv_buffer_add_byte(out, ']');
}

static void add_tool(struct rv_buffer *out, const struct rv_manifest_tool *tool, const struct rv_service *service)
{
	if (out->len > 0 && out->data[out->len - 1] == '}')
		rv_buffer_add_byte(out, ',');
	rv_buffer_add_byte(out, '{');
	rv_json_member_span(out, "name", tool->name);
	rv_json_member_string(out, "command", tool->argv[0]);
	add_strings(out, "args", (const char *const *)(tool->argv + 1));
	add_span_or_null(out, "executor", tool->executor);
	rv_json_member_int(out, "timeoutMs", tool->timeout_ms != 0 ? tool->timeout_ms : service->rules.timeout_ms);
	rv_json_member_bool(out, "needsApproval", tool->needs_approval);
	add_span_or_null(out, "risk", tool->risk);
	rv_buffer_add_byte(out, '}');
}

/* Null where there is no manifest: anything may run. */
static void add_tools(struct rv_buffer *out, const struct rv_service *service)
{
	const struct rv_manifest *manifest = &service->rules.manifest;

	if (!service->rules.has_manifest) {
		rv_json_member_null(out, "tools");
		return;
	}
	rv_json_add_name(out, "tools");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < manifest->count; i++)
		add_tool(out, &manifest->tools[i], service);
	rv_buffer_add_byte(out, ']');
}

static void add_isolation(struct rv_buffer *out, const struct rv_executor *executor)
{
	rv_json_add_name(out, "isolation");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "flavor", executor->flavor);
	rv_json_member_string(out, "sandbox", executor->sandbox);
	rv_json_member_string(out, "network", executor->network);
	rv_json_member_bool(out, "readOnlyRoot", executor->read_only_root);
	rv_buffer_add_byte(out, '}');
}

static void add_all(struct rv_buffer *out, const struct rv_service *service, const struct rv_executor *executor)
{
	const struct rv_service_options *options = service->options;
	bool has_ledger = options->ledger != NULL || options->ledger_exec != NULL;
	const char *containment = executor->isolation->containment;

	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "kind", "tool-executor");
	rv_json_member_string(out, "name", executor->name);
	rv_json_member_string_or_null(out, "ledger", options->ledger != NULL ? options->ledger : options->ledger_exec);
	rv_json_member_string_or_null(out, "phases", !has_ledger ? NULL : options->outcomes_only ? "one" : "two");
	rv_json_member_string_or_null(out, "durability", !has_ledger ? NULL : options->power ? "power" : "process");
	add_strings(out, "allowEnv", options->allow_env);
	rv_json_member_bool(out, "credentials", options->credentials != NULL);
	rv_json_add_name(out, "bounds");
	rv_buffer_add_byte(out, '{');
	rv_json_member_int(out, "timeoutMs", options->timeout_ms);
	rv_json_member_int(out, "killGraceMs", executor->grace_ms);
	rv_json_member_int(out, "maxOutputBytes", (int64_t)executor->max_output);
	rv_buffer_add_byte(out, '}');
	add_isolation(out, executor);
	rv_json_member_string(out, "containment",
			      containment != NULL ? containment : rv_containment_name(service->jobs[0].tool.containment));
	add_tools(out, service);
	rv_buffer_add_string(out, "}\n");
}

int rv_describe(struct rv_buffer *out, const struct rv_service_options *options, char *const *command,
		struct rv_error *err)
{
	struct rv_service service;
	struct rv_service_options quiet = *options;
	const struct rv_executor *executor = NULL;
	int result = -1;

	quiet.ledger = NULL; /* nothing is written, so nothing is made */
	quiet.ledger_exec = NULL;
	if (rv_service_start(&service, &quiet, 1, false, err) == 0 && rv_service_open(&service, command, err) == 0)
		executor = rv_registry_find(&service.registry, (struct rv_span){ NULL, 0 }, err);
	if (executor != NULL) {
		service.options = options;
		add_all(out, &service, executor);
		result = rv_buffer_check(out, err);
	}
	rv_service_release(&service);
	return result;
}

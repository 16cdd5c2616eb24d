#include "lib/conform/adapter.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/conform/check.h"
#include "lib/conform/command.h"
#include "lib/json/json.h"

#define ANSWER_MS 15000

static void take_capability(struct rv_adapter *adapter, struct rv_span name)
{
	for (size_t i = 0; i < RV_CAPABILITIES; i++) {
		if (rv_span_equal(name, rv_span_of(rv_capability_name(i)))) {
			adapter->capabilities |= 1U << i;
			return;
		}
	}
	if (adapter->unknown.len > 0)
		rv_buffer_add_string(&adapter->unknown, ", ");
	rv_buffer_add(&adapter->unknown, name.data, name.len);
}

static int take_answer(struct rv_adapter *adapter, const struct rv_json_node *root, struct rv_error *err)
{
	const struct rv_json_node *name = rv_json_get(root, "name");
	const struct rv_json_node *list = rv_json_get(root, "capabilities");

	if (list == NULL || rv_json_type(list) != RV_JSON_ARRAY)
		return rv_error_set(err, RV_E_IO, 0, "its answer has no array \"capabilities\"");
	for (const struct rv_json_node *item = rv_json_first(list); item != NULL; item = rv_json_next(item)) {
		if (!rv_json_is_string(item))
			return rv_error_set(err, RV_E_IO, 0, "a capability is no string");
		take_capability(adapter, rv_json_string(item));
	}
	if (rv_json_is_string(name)) {
		struct rv_span text = rv_json_string(name);

		rv_buffer_add(&adapter->name, text.data, text.len);
	} else {
		rv_buffer_add_string(&adapter->name, adapter->argv[0]);
	}
	return rv_buffer_check(&adapter->name, err);
}

static int read_answer(struct rv_adapter *adapter, const struct rv_command *command, struct rv_error *err)
{
	struct rv_json_doc *doc;
	const struct rv_json_node *root;
	char how[40];
	int result;

	if (!command->ended || command->status != 0)
		return rv_error_set(err, RV_E_IO, 0, "%s: %.*s", rv_command_how(command, how),
				    (int)command->complained.len,
				    command->complained.len > 0 ? command->complained.data : "");
	doc = rv_json_doc_new(err);
	if (doc == NULL)
		return -1;
	root = rv_json_parse(doc, command->said.data != NULL ? command->said.data : "", command->said.len,
			     RV_JSON_DEFAULT, err);
	result = root != NULL ? take_answer(adapter, root, err) : -1;
	if (err->code != RV_E_NONE && err->code != RV_E_NOMEM)
		err->code = RV_E_IO;
	rv_json_doc_free(doc);
	return result;
}

int rv_adapter_open(struct rv_adapter *adapter, const char *const *argv, struct rv_error *err)
{
	const char *words[RV_ADAPTER_WORDS + 2];
	struct rv_command_plan plan = { .argv = words };
	struct rv_command command;
	size_t n = 0;
	int result;

	memset(adapter, 0, sizeof *adapter);
	adapter->argv = argv;
	while (n < RV_ADAPTER_WORDS && argv[n] != NULL) {
		words[n] = argv[n];
		n++;
	}
	if (argv[n] != NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "an adapter of more than %d words", RV_ADAPTER_WORDS);
	words[n] = "--capabilities";
	words[n + 1] = NULL;
	result = rv_command_run(&command, &plan, rv_clock_mono_ms() + ANSWER_MS, err);
	if (result == 0)
		result = read_answer(adapter, &command, err);
	rv_command_release(&command);
	return result == 0 ? 0 : rv_error_wrap(err, "%s --capabilities", argv[0]);
}

void rv_adapter_release(struct rv_adapter *adapter)
{
	rv_buffer_release(&adapter->name);
	rv_buffer_release(&adapter->unknown);
}

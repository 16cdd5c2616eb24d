#include "lib/executor/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/json/json.h"
#include "lib/json/names.h"

static int bad(const char *member, const char *what, struct rv_error *err)
{
	return rv_error_set(err, RV_E_CONFIG, 0, "%s is %s", member, what);
}

/* A string that can stand on a command line, and is not empty. */
static int read_word(const struct rv_json_node *node, const char *member, struct rv_span *word, struct rv_error *err)
{
	if (!rv_json_is_string(node))
		return bad(member, node == NULL ? "missing" : "not a string", err);
	*word = rv_json_string(node);
	if (word->len == 0)
		return bad(member, "empty", err);
	if (memchr(word->data, '\0', word->len) != NULL)
		return bad(member, "text with a NUL in it", err);
	return 0;
}

/* ---- the members ---- */

static int count_words(const struct rv_json_node *args, size_t *count, size_t *bytes, struct rv_error *err)
{
	if (args == NULL)
		return 0;
	if (rv_json_type(args) != RV_JSON_ARRAY)
		return bad(RV_NAME_ARGS, "not an array of strings", err);
	for (const struct rv_json_node *item = rv_json_first(args); item != NULL; item = rv_json_next(item)) {
		struct rv_span word;

		if (!rv_json_is_string(item))
			return bad(RV_NAME_ARGS, "not an array of strings", err);
		word = rv_json_string(item); /* an empty argument is an argument */
		if (word.len > 0 && memchr(word.data, '\0', word.len) != NULL)
			return bad(RV_NAME_ARGS, "an array with a NUL in it", err);
		(*count)++;
		*bytes += word.len + 1;
	}
	return 0;
}

static char *put_word(char *at, struct rv_span word, char **slot)
{
	*slot = at;
	if (word.len > 0)
		memcpy(at, word.data, word.len);
	at[word.len] = '\0';
	return at + word.len + 1;
}

static int read_command(const struct rv_json_node *entry, struct rv_manifest_tool *tool, struct rv_error *err)
{
	const struct rv_json_node *args = rv_json_get(entry, RV_NAME_ARGS);
	struct rv_span command;
	size_t count = 1;
	size_t bytes = 0;
	size_t i = 0;
	char *at;

	if (read_word(rv_json_get(entry, "command"), "command", &command, err) != 0 ||
	    count_words(args, &count, &bytes, err) != 0)
		return -1;
	tool->argv = malloc((count + 1) * sizeof *tool->argv + command.len + 1 + bytes);
	if (tool->argv == NULL)
		return rv_error_nomem(err);
	at = put_word((char *)(tool->argv + count + 1), command, &tool->argv[i++]);
	for (const struct rv_json_node *item = args != NULL ? rv_json_first(args) : NULL; item != NULL;
	     item = rv_json_next(item))
		at = put_word(at, rv_json_string(item), &tool->argv[i++]);
	tool->argv[i] = NULL;
	return 0;
}

static int read_timeout(const struct rv_json_node *node, struct rv_manifest_tool *tool, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_error why = RV_ERROR_INIT;
	struct rv_span word;
	long long ms = 0;

	if (node == NULL)
		return 0;
	if (read_word(node, "timeout", &word, err) != 0)
		return -1;
	rv_buffer_add(&text, word.data, word.len);
	if (rv_buffer_string(&text) == NULL)
		return rv_buffer_check(&text, err);
	if (rv_text_duration(text.data, &ms, &why) != 0)
		return rv_error_set(err, RV_E_CONFIG, 0, "timeout: %s", why.message);
	if (ms == 0)
		return bad("timeout", "zero", err);
	tool->timeout_ms = ms;
	return 0;
}

static int read_labels(const struct rv_json_node *entry, struct rv_manifest_tool *tool, struct rv_error *err)
{
	const struct rv_json_node *executor = rv_json_get(entry, "executor");
	const struct rv_json_node *risk = rv_json_get(entry, "risk");
	const struct rv_json_node *approval = rv_json_get(entry, "needsApproval");

	if ((executor != NULL && read_word(executor, "executor", &tool->executor, err) != 0) ||
	    (risk != NULL && read_word(risk, "risk", &tool->risk, err) != 0))
		return -1;
	if (approval != NULL && rv_json_type(approval) != RV_JSON_TRUE && rv_json_type(approval) != RV_JSON_FALSE)
		return bad("needsApproval", "neither true nor false", err);
	tool->needs_approval = approval != NULL && rv_json_type(approval) == RV_JSON_TRUE;
	return 0;
}

/* A member that is misspelt must not be a bound that is silently absent. */
static int check_members(const struct rv_json_node *entry, struct rv_error *err)
{
	static const struct rv_span known[] = {
		RV_SPAN_INIT("command"), RV_SPAN_INIT("args"), RV_SPAN_INIT("executor"),
		RV_SPAN_INIT("timeout"), RV_SPAN_INIT("needsApproval"), RV_SPAN_INIT("risk"),
	};

	for (const struct rv_json_node *member = rv_json_first(entry); member != NULL; member = rv_json_next(member)) {
		struct rv_span name = rv_json_name(member);
		bool found = false;

		for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
			found = found || rv_span_equal(name, known[i]);
		if (!found)
			return rv_error_set(err, RV_E_CONFIG, 0, "the member %.*s is not known", (int)name.len, name.data);
	}
	return 0;
}

static int read_tool(const struct rv_json_node *entry, struct rv_manifest_tool *tool, struct rv_error *err)
{
	tool->name = rv_json_name(entry);
	if (tool->name.len == 0)
		return rv_error_set(err, RV_E_CONFIG, 0, "a tool's name is empty");
	if (memchr(tool->name.data, '\0', tool->name.len) != NULL)
		return rv_error_set(err, RV_E_CONFIG, 0, "a tool's name holds a NUL");
	if (rv_json_type(entry) != RV_JSON_OBJECT)
		(void)rv_error_set(err, RV_E_CONFIG, 0, "not an object");
	else if (check_members(entry, err) == 0 && read_command(entry, tool, err) == 0 &&
		 read_timeout(rv_json_get(entry, "timeout"), tool, err) == 0 && read_labels(entry, tool, err) == 0)
		return 0;
	return rv_error_wrap(err, "tool %.*s", (int)tool->name.len, tool->name.data);
}

/* ---- the whole ---- */

static int read_tools(struct rv_manifest *manifest, const struct rv_json_node *root, struct rv_error *err)
{
	size_t count = 0;

	if (rv_json_type(root) != RV_JSON_OBJECT)
		return rv_error_set(err, RV_E_CONFIG, 0, "not one object of tools");
	for (const struct rv_json_node *entry = rv_json_first(root); entry != NULL; entry = rv_json_next(entry))
		count++;
	manifest->tools = calloc(count + 1, sizeof *manifest->tools);
	if (manifest->tools == NULL)
		return rv_error_nomem(err);
	for (const struct rv_json_node *entry = rv_json_first(root); entry != NULL; entry = rv_json_next(entry)) {
		if (read_tool(entry, &manifest->tools[manifest->count++], err) != 0)
			return -1;
	}
	return 0;
}

static int load(struct rv_manifest *manifest, const char *path, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	const struct rv_json_node *root;

	if (rv_io_read_file(path, &text, err) != 0)
		return -1;
	manifest->doc = rv_json_doc_new(err);
	if (manifest->doc == NULL)
		return -1;
	root = rv_json_parse(manifest->doc, text.data != NULL ? text.data : "", text.len, RV_JSON_STRICT, err);
	if (root != NULL)
		return read_tools(manifest, root, err);
	if (err->code != RV_E_NOMEM)
		err->code = RV_E_CONFIG;
	return -1;
}

int rv_manifest_load(struct rv_manifest *manifest, const char *path, struct rv_error *err)
{
	memset(manifest, 0, sizeof *manifest);
	if (load(manifest, path, err) == 0)
		return 0;
	rv_manifest_release(manifest);
	return err->code == RV_E_IO ? rv_error_wrap(err, "--manifest") : rv_error_wrap(err, "--manifest %s", path);
}

void rv_manifest_release(struct rv_manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++)
		free(manifest->tools[i].argv);
	free(manifest->tools);
	rv_json_doc_free(manifest->doc);
	memset(manifest, 0, sizeof *manifest);
}

const struct rv_manifest_tool *rv_manifest_find(const struct rv_manifest *manifest, struct rv_span name)
{
	for (size_t i = 0; i < manifest->count; i++) {
		if (rv_span_equal(manifest->tools[i].name, name))
			return &manifest->tools[i];
	}
	return NULL;
}

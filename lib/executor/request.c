#include "lib/executor/request.h"

#include <stdlib.h>
#include <string.h>

#include "lib/executor/key.h"
#include "lib/json/names.h"

#define KEPT ((size_t)2 << 20) /* bytes of each buffer that wait for the next request */

int rv_request_reader_init(struct rv_request_reader *reader, struct rv_error *err)
{
	reader->doc = rv_json_doc_new(err);
	reader->sha = reader->doc != NULL ? rv_sha256_new(err) : NULL;
	return reader->sha != NULL ? 0 : -1;
}

void rv_request_reader_release(struct rv_request_reader *reader)
{
	rv_json_doc_free(reader->doc);
	rv_sha256_free(reader->sha);
	memset(reader, 0, sizeof *reader);
}

void rv_request_init(struct rv_request *request)
{
	memset(request, 0, sizeof *request);
}

void rv_request_release(struct rv_request *request)
{
	rv_buffer_release(&request->texts);
	rv_buffer_release(&request->id);
	rv_buffer_release(&request->args);
	rv_buffer_release(&request->words);
	free(request->argv);
	memset(request, 0, sizeof *request);
}

static int need_string(const struct rv_json_node *object, const char *name, struct rv_span *out, struct rv_error *err)
{
	const struct rv_json_node *node = rv_json_get(object, name);

	if (!rv_json_is_string(node))
		return rv_error_set(err, RV_E_REQUEST, 0, "%s is %s", name, node == NULL ? "missing" : "not a string");
	*out = rv_json_string(node);
	return 0;
}

/* Absent is fine and leaves *out as it is. */
static int may_be_string(const struct rv_json_node *object, const char *name, struct rv_span *out, struct rv_error *err)
{
	return rv_json_get(object, name) == NULL ? 0 : need_string(object, name, out, err);
}

static int derive(struct rv_request *request, struct rv_sha256 *sha, const struct rv_json_node *ctx, struct rv_error *err)
{
	struct rv_key_input input;

	if (rv_key_read(ctx, 0, &input, err) != 0)
		return -1;
	input.tool = request->call.tool;
	input.args = request->call.args;
	return rv_key_derive(sha, &input, request->key, err);
}

static int find_key(struct rv_request *request, struct rv_sha256 *sha, const struct rv_json_node *ctx,
		    struct rv_error *err)
{
	bool coordinates = rv_json_get(ctx, RV_NAME_AGENT_SEQ) != NULL || rv_json_get(ctx, RV_NAME_ORDINAL) != NULL;
	struct rv_span given = { NULL, 0 };

	if (may_be_string(ctx, RV_NAME_IDEMPOTENCY_KEY, &given, err) != 0)
		return -1;
	if (given.data == NULL && !coordinates)
		return rv_error_set(err, RV_E_REQUEST, 0, "ctx holds neither %s nor a call's coordinates",
				    RV_NAME_IDEMPOTENCY_KEY);
	if (given.data != NULL && given.len == 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "%s is empty", RV_NAME_IDEMPOTENCY_KEY);
	if (coordinates && derive(request, sha, ctx, err) != 0)
		return -1;
	request->call.key = coordinates ? rv_span_of(request->key) : given;
	if (coordinates && given.data != NULL && !rv_span_equal(given, request->call.key))
		return rv_error_set(err, RV_E_REQUEST, 0, "%s is not the key of the call's coordinates",
				    RV_NAME_IDEMPOTENCY_KEY);
	return 0;
}

static int read_context(struct rv_request *request, struct rv_sha256 *sha, const struct rv_json_node *ctx,
			struct rv_error *err)
{
	struct rv_call *call = &request->call;
	unsigned char raw[8];

	if (ctx == NULL || rv_json_type(ctx) != RV_JSON_OBJECT)
		return rv_error_set(err, RV_E_REQUEST, 0, "ctx is %s", ctx == NULL ? "missing" : "not an object");
	if (rv_random(raw, sizeof raw, err) != 0)
		return -1;
	rv_hex(raw, sizeof raw, request->span_id);
	call->span_id = rv_span_of(request->span_id);
	if (need_string(ctx, RV_NAME_RUN_ID, &call->run_id, err) != 0 ||
	    may_be_string(ctx, "spanId", &call->span_id, err) != 0 ||
	    may_be_string(ctx, "agentType", &call->agent_type, err) != 0)
		return -1;
	return find_key(request, sha, ctx, err);
}

static int read_args(struct rv_request *request, struct rv_sha256 *sha, const struct rv_json_node *args,
		     struct rv_error *err)
{
	if (args == NULL)
		return rv_error_set(err, RV_E_REQUEST, 0, "%s is missing", RV_NAME_ARGS);
	if (rv_json_canonical(args, &request->args, err) != 0 || rv_buffer_check(&request->args, err) != 0)
		return rv_error_wrap(err, RV_NAME_ARGS);
	request->call.args = (struct rv_span){ request->args.data, request->args.len };
	if (rv_sha256_hex(sha, request->args.data, request->args.len, request->args_hash, err) != 0)
		return -1;
	request->call.args_hash = rv_span_of(request->args_hash);
	return 0;
}

/* ---- what is to be run ---- */

static int add_word(struct rv_request *request, struct rv_span word, size_t *count, struct rv_error *err)
{
	if (memchr(word.data, '\0', word.len) != NULL)
		return rv_error_set(err, RV_E_REQUEST, 0, "spec: a NUL in a word of the command");
	rv_buffer_add(&request->words, word.data, word.len);
	rv_buffer_add_byte(&request->words, '\0');
	(*count)++;
	return rv_buffer_check(&request->words, err);
}

static int add_spec_args(struct rv_request *request, const struct rv_json_node *args, size_t *count,
			 struct rv_error *err)
{
	if (args == NULL)
		return 0;
	if (rv_json_type(args) != RV_JSON_ARRAY)
		return rv_error_set(err, RV_E_REQUEST, 0, "spec.args is not an array of strings");
	for (const struct rv_json_node *item = rv_json_first(args); item != NULL; item = rv_json_next(item)) {
		if (!rv_json_is_string(item))
			return rv_error_set(err, RV_E_REQUEST, 0, "spec.args is not an array of strings");
		if (add_word(request, rv_json_string(item), count, err) != 0)
			return -1;
	}
	return 0;
}

/* Only when all words stand do they stay where they are. */
static int point_argv(struct rv_request *request, size_t count, struct rv_error *err)
{
	char **argv = realloc(request->argv, (count + 1) * sizeof *argv);
	char *at = request->words.data;

	if (argv == NULL)
		return rv_error_nomem(err);
	for (size_t i = 0; i < count; i++) {
		argv[i] = at;
		at += strlen(at) + 1;
	}
	argv[count] = NULL;
	request->argv = argv;
	request->call.argv = argv;
	request->call.command = argv[0];
	return 0;
}

static int read_command(struct rv_request *request, const struct rv_json_node *spec, char *const *command,
			struct rv_error *err)
{
	struct rv_span named = { NULL, 0 };
	size_t count = 0;

	if (spec != NULL && rv_json_type(spec) != RV_JSON_OBJECT)
		return rv_error_set(err, RV_E_REQUEST, 0, "spec is not an object");
	if (may_be_string(spec, "command", &named, err) != 0)
		return -1;
	if (named.data != NULL && add_word(request, named, &count, err) != 0)
		return -1;
	for (size_t i = 0; named.data == NULL && command != NULL && command[i] != NULL; i++) {
		if (add_word(request, rv_span_of(command[i]), &count, err) != 0)
			return -1;
	}
	if (count == 0)
		return rv_error_set(err, RV_E_CONFIG, 0, "the request names no command, and none was given");
	if (add_spec_args(request, rv_json_get(spec, RV_NAME_ARGS), &count, err) != 0)
		return -1;
	return point_argv(request, count, err);
}

/* Under a manifest no request says what is run. */
static int refuse_spec(const struct rv_json_node *spec, struct rv_error *err)
{
	if (spec == NULL)
		return 0;
	return rv_error_set(err, RV_E_CONFIG, 0, "spec: the manifest says what is run, and no request does");
}

/* The document is read into again for the next line: what the call says of it is kept here. */
static int keep_texts(struct rv_request *request, struct rv_error *err)
{
	struct rv_call *call = &request->call;
	struct rv_span *const kept[] = { &call->tool,    &call->key,        &call->run_id,
					 &call->span_id, &call->agent_type, &call->executor };
	size_t need = 1;

	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		need += kept[i]->len;
	if (rv_buffer_reserve(&request->texts, need) == NULL)
		return rv_buffer_check(&request->texts, err);
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
		const char *at = request->texts.data + request->texts.len;

		if (kept[i]->data == NULL)
			continue;
		rv_buffer_add(&request->texts, kept[i]->data, kept[i]->len);
		kept[i]->data = at;
	}
	return 0;
}

void rv_request_clear(struct rv_request *request)
{
	rv_buffer_clear_to(&request->texts, KEPT);
	rv_buffer_clear_to(&request->id, KEPT);
	rv_buffer_clear_to(&request->args, KEPT);
	rv_buffer_clear_to(&request->words, KEPT);
	request->call = (struct rv_call){ .id = RV_SPAN("") };
}

int rv_request_read(struct rv_request *request, const struct rv_request_reader *reader, struct rv_span line,
		    unsigned json_flags, const struct rv_rules *rules, struct rv_error *err)
{
	const struct rv_json_node *root;
	const struct rv_json_node *spec;
	const struct rv_json_node *id;

	rv_request_clear(request);
	root = rv_json_parse(reader->doc, line.len > 0 ? line.data : "", line.len, json_flags, err);
	if (root == NULL)
		return -1;
	if (rv_json_type(root) != RV_JSON_OBJECT)
		return rv_error_set(err, RV_E_REQUEST, 0, "not an object");
	id = rv_json_get(root, RV_NAME_ID);
	if (id != NULL)
		rv_json_add_source(&request->id, reader->doc, id);
	request->call.id = (struct rv_span){ request->id.data, request->id.len };
	if (rv_buffer_check(&request->id, err) != 0 || need_string(root, RV_NAME_TOOL, &request->call.tool, err) != 0)
		return -1;
	if (request->call.tool.len == 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "tool is empty");
	if (read_args(request, reader->sha, rv_json_get(root, RV_NAME_ARGS), err) != 0 ||
	    read_context(request, reader->sha, rv_json_get(root, "ctx"), err) != 0 ||
	    may_be_string(root, "executor", &request->call.executor, err) != 0)
		return -1;
	spec = rv_json_get(root, "spec");
	if ((rules->has_manifest && refuse_spec(spec, err) != 0) || rv_rules_apply(rules, &request->call, err) != 0)
		return -1;
	if (!rules->has_manifest && read_command(request, spec, rules->command, err) != 0)
		return -1;
	return keep_texts(request, err);
}

/* A request as a line of JSON, and pins as a file. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/confine/members.h"
#include "lib/confine/request.h"
#include "lib/digest/digest.h"

#define PINS_MAX ((size_t)65536)

static int take_digest(const struct rv_json_node *node, const char *where, char digest[RV_DIGEST_TEXT],
		       struct rv_error *err)
{
	struct rv_span text = rv_json_string(node);

	if (!rv_digest_is_valid(text))
		return rv_error_set(err, RV_E_REQUEST, 0, "%s: not \"sha256:\" and 64 lowercase digits", where);
	memcpy(digest, text.data, text.len);
	digest[text.len] = '\0';
	return 0;
}

static int take_texts(const struct rv_json_node *array, const char *where, char ***texts, size_t *count,
		      struct rv_error *err)
{
	size_t length = 0;

	for (const struct rv_json_node *at = rv_json_first(array); at != NULL; at = rv_json_next(at))
		length++;
	*texts = calloc(length + 1, sizeof **texts);
	if (*texts == NULL)
		return rv_error_nomem(err);
	for (const struct rv_json_node *at = rv_json_first(array); at != NULL; at = rv_json_next(at)) {
		if (!rv_json_is_string(at))
			return rv_error_set(err, RV_E_REQUEST, 0, "%s: not an array of strings", where);
		(*texts)[*count] = rv_members_text(at, where, err);
		if ((*texts)[*count] == NULL)
			return -1;
		(*count)++;
	}
	return 0;
}

static int take_runtime(struct rv_confine_request *request, const struct rv_json_node *node, struct rv_error *err)
{
	static const struct rv_member members[] = { { "path", RV_JSON_STRING, true },
						    { "trees", RV_JSON_ARRAY, false },
						    { "digest", RV_JSON_STRING, true } };
	const struct rv_json_node *found[3];

	if (rv_members_read(node, "runtime", members, 3, found, err) != 0)
		return -1;
	request->runtime = rv_members_text(found[0], "runtime.path", err);
	if (request->runtime == NULL || take_digest(found[2], "runtime.digest", request->pins.runtime, err) != 0)
		return -1;
	return found[1] == NULL ? 0 : take_texts(found[1], "runtime.trees", &request->trees, &request->tree_count, err);
}

static int take_profile(struct rv_confine_request *request, const struct rv_json_node *node, struct rv_error *err)
{
	static const struct rv_member members[] = { { "name", RV_JSON_STRING, false }, { "digest", RV_JSON_STRING, true } };
	const struct rv_json_node *found[2];

	if (rv_members_read(node, "profile", members, 2, found, err) != 0)
		return -1;
	request->profile = found[0] != NULL ? rv_members_text(found[0], "profile.name", err) : strdup("linux/1");
	if (request->profile == NULL)
		return err->code != RV_E_NONE ? -1 : rv_error_nomem(err);
	return take_digest(found[1], "profile.digest", request->pins.profile, err);
}

static int take_file(struct rv_snapshot *snapshot, const struct rv_json_node *node, const char *where,
		     struct rv_error *err)
{
	static const struct rv_member members[] = { { "path", RV_JSON_STRING, true },
						    { "contentBase64", RV_JSON_STRING, true } };
	const struct rv_json_node *found[2];
	rv_auto_buffer struct rv_buffer content = RV_BUFFER_INIT;
	struct rv_span text;

	if (rv_members_read(node, where, members, 2, found, err) != 0)
		return -1;
	text = rv_json_string(found[1]);
	if (rv_base64_decode(&content, text.data, text.len, err) != 0)
		return rv_error_wrap(err, "%s", where);
	return rv_snapshot_add(snapshot, rv_json_string(found[0]), &content, err);
}

static int take_files(struct rv_snapshot *snapshot, const struct rv_json_node *array, const char *where,
		      struct rv_error *err)
{
	for (const struct rv_json_node *at = rv_json_first(array); at != NULL; at = rv_json_next(at)) {
		if (take_file(snapshot, at, where, err) != 0)
			return -1;
	}
	return rv_snapshot_seal(snapshot, err) == 0 ? 0 : rv_error_wrap(err, "%s", where);
}

/* One of "files", "dir" and "archive". */
static int take_snapshot(struct rv_snapshot *snapshot, const struct rv_json_node *const found[3], const char *where,
			 struct rv_error *err)
{
	rv_auto_free char *path = NULL;

	if ((found[0] != NULL) + (found[1] != NULL) + (found[2] != NULL) != 1)
		return rv_error_set(err, RV_E_REQUEST, 0, "%s: not one of \"files\", \"dir\" and \"archive\"", where);
	if (found[0] != NULL)
		return take_files(snapshot, found[0], where, err);
	path = rv_members_text(found[1] != NULL ? found[1] : found[2], where, err);
	if (path == NULL)
		return -1;
	return rv_snapshot_read_kind(snapshot, path, found[1] != NULL, err) == 0 ? 0 : rv_error_wrap(err, "%s", where);
}

static int take_program(struct rv_confine_request *request, const struct rv_json_node *node, struct rv_error *err)
{
	static const struct rv_member members[] = {
		{ "files", RV_JSON_ARRAY, false }, { "dir", RV_JSON_STRING, false }, { "archive", RV_JSON_STRING, false },
		{ "digest", RV_JSON_STRING, true }, { "entry", RV_JSON_STRING, true }, { "args", RV_JSON_ARRAY, true },
	};
	const struct rv_json_node *found[6];

	if (rv_members_read(node, "program", members, 6, found, err) != 0 ||
	    take_digest(found[3], "program.digest", request->pins.program, err) != 0 ||
	    take_texts(found[5], "program.args", &request->args, &request->arg_count, err) != 0)
		return -1;
	request->entry = rv_members_text(found[4], "program.entry", err);
	return request->entry == NULL ? -1 : take_snapshot(&request->program, found, "program", err);
}

static int take_input(struct rv_confine_request *request, const struct rv_json_node *node, struct rv_error *err)
{
	static const struct rv_member members[] = {
		{ "files", RV_JSON_ARRAY, false }, { "dir", RV_JSON_STRING, false }, { "archive", RV_JSON_STRING, false },
		{ "digest", RV_JSON_STRING, true },
	};
	const struct rv_json_node *found[4];

	if (rv_members_read(node, "input", members, 4, found, err) != 0 ||
	    take_digest(found[3], "input.digest", request->pins.input, err) != 0)
		return -1;
	return take_snapshot(&request->input, found, "input", err);
}

enum { M_RUNTIME, M_PROFILE, M_PROGRAM, M_INPUT, M_TIMEOUT, M_OUTPUT, M_CPU, M_DESCRIPTORS, M_DATA, M_MEMORY, M_COUNT };

static const struct rv_member request_members[M_COUNT + 1] = {
	[M_RUNTIME] = { "runtime", RV_JSON_OBJECT, true },
	[M_PROFILE] = { "profile", RV_JSON_OBJECT, true },
	[M_PROGRAM] = { "program", RV_JSON_OBJECT, true },
	[M_INPUT] = { "input", RV_JSON_OBJECT, true },
	[M_TIMEOUT] = { "timeoutMs", RV_JSON_NUMBER, true },
	[M_OUTPUT] = { "maxOutputBytes", RV_JSON_NUMBER, true },
	[M_CPU] = { "cpuSeconds", RV_JSON_NUMBER, true },
	[M_DESCRIPTORS] = { "maxDescriptors", RV_JSON_NUMBER, true },
	[M_DATA] = { "maxDataBytes", RV_JSON_NUMBER, false },
	[M_MEMORY] = { "maxMemoryBytes", RV_JSON_NUMBER, false },
	[M_COUNT] = { "id", RV_JSON_STRING, false },
};

static int take_bounds(struct rv_bounds *bounds, const struct rv_json_node *const *found, struct rv_error *err)
{
	int64_t *const values[M_COUNT] = {
		[M_TIMEOUT] = &bounds->timeout_ms,  [M_OUTPUT] = &bounds->max_output,
		[M_CPU] = &bounds->cpu_seconds,     [M_DESCRIPTORS] = &bounds->max_descriptors,
		[M_DATA] = &bounds->max_data,       [M_MEMORY] = &bounds->max_memory,
	};

	for (size_t i = M_TIMEOUT; i < M_COUNT; i++) {
		/* Their ranges are rv_confine_request_check()'s: 1 here keeps maxMemoryBytes 0 from meaning none. */
		if (found[i] != NULL &&
		    rv_members_integer(found[i], request_members[i].name, 1, INT64_C(1) << 52, values[i], err) != 0)
			return -1;
	}
	return 0;
}

static int take_request(struct rv_confine_request *request, const struct rv_json_node *root, struct rv_error *err)
{
	struct rv_member members[M_COUNT + 1];
	const struct rv_json_node *found[M_COUNT + 1];
	const struct rv_json_node *id = rv_json_get(root, "id");

	memcpy(members, request_members, sizeof members);
	if (id != NULL && rv_json_type(id) == RV_JSON_NUMBER)
		members[M_COUNT].type = RV_JSON_NUMBER;
	if (rv_members_read(root, "request", members, M_COUNT + 1, found, err) != 0)
		return -1;
	request->pinned = true;
	if (take_bounds(&request->bounds, found, err) != 0 || take_runtime(request, found[M_RUNTIME], err) != 0 ||
	    take_profile(request, found[M_PROFILE], err) != 0 || take_program(request, found[M_PROGRAM], err) != 0)
		return -1;
	return take_input(request, found[M_INPUT], err);
}

static int keep_id(struct rv_confine_request *request, const struct rv_json_doc *doc, const struct rv_json_node *root,
		   struct rv_error *err)
{
	const struct rv_json_node *id = rv_json_type(root) == RV_JSON_OBJECT ? rv_json_get(root, "id") : NULL;

	if (id == NULL || (!rv_json_is_string(id) && rv_json_type(id) != RV_JSON_NUMBER))
		return 0;
	rv_json_add_source(&request->id, doc, id);
	return rv_buffer_check(&request->id, err);
}

int rv_confine_request_parse(struct rv_confine_request *request, const char *line, size_t len, bool allow_home, const char *root,
			     int cancel, struct rv_error *err)
{
	struct rv_json_doc *doc = rv_json_doc_new(err);
	const struct rv_json_node *node = NULL;
	struct rv_error strict = RV_ERROR_INIT;
	int result = -1;

	rv_confine_request_init(request);
	request->program.cancel = request->input.cancel = cancel;
	/* Twice, so that an id is known also where a duplicate elsewhere refuses the line. */
	if (doc != NULL)
		node = rv_json_parse(doc, line, len, RV_JSON_DEFAULT, err);
	if (node != NULL)
		result = keep_id(request, doc, node, err);
	if (result == 0) {
		node = rv_json_parse(doc, line, len, RV_JSON_STRICT, &strict);
		result = node != NULL ? take_request(request, node, err) : -1;
		if (node == NULL)
			*err = strict;
	}
	rv_json_doc_free(doc);
	if (result == 0)
		return rv_confine_request_check(request, allow_home, root, err);
	if (err->code == RV_E_NUMBER)
		err->code = RV_E_REQUEST;
	return err->code == RV_E_REQUEST ? rv_error_wrap(err, "invalid confined run request") : -1;
}

static int take_pins(struct rv_pins *pins, const struct rv_json_node *root, struct rv_error *err)
{
	static const struct rv_member members[] = { { "runtime", RV_JSON_STRING, true },
						    { "profile", RV_JSON_STRING, true },
						    { "program", RV_JSON_STRING, true },
						    { "input", RV_JSON_STRING, true } };
	char *const texts[] = { pins->runtime, pins->profile, pins->program, pins->input };
	const struct rv_json_node *found[4];

	if (rv_members_read(root, "pins", members, 4, found, err) != 0)
		return -1;
	for (size_t i = 0; i < 4; i++) {
		if (take_digest(found[i], members[i].name, texts[i], err) != 0)
			return -1;
	}
	return 0;
}

int rv_pins_read(struct rv_pins *pins, const char *path, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = { .max = PINS_MAX };
	struct rv_json_doc *doc;
	const struct rv_json_node *root = NULL;
	int result = -1;

	if (rv_io_read_file(path, &text, err) != 0)
		return -1;
	doc = rv_json_doc_new(err);
	if (doc != NULL)
		root = rv_json_parse(doc, text.data, text.len, RV_JSON_STRICT, err);
	if (root != NULL)
		result = take_pins(pins, root, err);
	rv_json_doc_free(doc);
	if (err->code == RV_E_NUMBER)
		err->code = RV_E_REQUEST;
	return result == 0 ? 0 : rv_error_wrap(err, "invalid confined run request: %s", path);
}

#include "lib/executor/keys.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "lib/base/pump.h"
#include "lib/executor/key.h"
#include "lib/json/json.h"
#include "lib/json/names.h"
#include "lib/json/write.h"

struct shared {
	const struct rv_key_stream *stream;
	atomic_bool refused;
};

/* What one thread has for itself. */
struct worker {
	struct shared *shared;
	struct rv_json_doc *doc;
	struct rv_sha256 *sha;
	struct rv_buffer args;    /* canonical */
	struct rv_buffer scratch;
};

/* What a line came to. */
struct answer {
	const struct rv_json_node *id;
	char key[RV_SHA256_HEX];
	char args_hash[RV_SHA256_HEX];
	int derivation;
};

static void worker_free(void *context)
{
	struct worker *worker = context;

	rv_json_doc_free(worker->doc);
	rv_sha256_free(worker->sha);
	rv_buffer_release(&worker->args);
	rv_buffer_release(&worker->scratch);
	free(worker);
}

static void *worker_new(void *context, struct rv_error *err)
{
	struct worker *worker = calloc(1, sizeof *worker);

	if (worker == NULL) {
		(void)rv_error_nomem(err);
		return NULL;
	}
	worker->shared = context;
	worker->doc = rv_json_doc_new(err);
	worker->sha = worker->doc != NULL ? rv_sha256_new(err) : NULL;
	if (worker->sha == NULL) {
		worker_free(worker);
		return NULL;
	}
	return worker;
}

static int derive(struct worker *worker, const struct rv_json_node *args, struct rv_key_input *input,
		  struct answer *answer, struct rv_error *err)
{
	rv_buffer_clear(&worker->args);
	if (rv_json_canonical(args, &worker->args, err) != 0)
		return rv_error_wrap(err, RV_NAME_ARGS);
	input->args = (struct rv_span){ worker->args.data, worker->args.len };
	answer->derivation = input->derivation;
	if (rv_sha256_hex(worker->sha, input->args.data, input->args.len, answer->args_hash, err) != 0)
		return -1;
	return rv_key_derive_with(worker->sha, &worker->scratch, input, answer->key, err);
}

static int answer_line(struct worker *worker, struct rv_span line, struct answer *answer, struct rv_error *err)
{
	enum { ID, TOOL, ARGS, MEMBERS };
	static const struct rv_span names[MEMBERS] = {
		[ID] = RV_SPAN_INIT(RV_NAME_ID),
		[TOOL] = RV_SPAN_INIT(RV_NAME_TOOL),
		[ARGS] = RV_SPAN_INIT(RV_NAME_ARGS),
	};
	unsigned flags = worker->shared->stream->json_flags;
	const struct rv_json_node *root = rv_json_parse(worker->doc, line.data, line.len, flags, err);
	const struct rv_json_node *found[MEMBERS];
	struct rv_key_input input;

	answer->id = NULL;
	if (root == NULL)
		return -1;
	if (rv_json_type(root) != RV_JSON_OBJECT)
		return rv_error_set(err, RV_E_REQUEST, 0, "not an object");
	rv_json_pick(root, names, MEMBERS, found);
	answer->id = found[ID];
	if (rv_key_read(root, worker->shared->stream->key_flags, &input, err) != 0)
		return -1;
	if (!rv_json_is_string(found[TOOL]))
		return rv_error_set(err, RV_E_REQUEST, 0, "%s is %s", RV_NAME_TOOL,
				    found[TOOL] == NULL ? "missing" : "not a string");
	input.tool = rv_json_string(found[TOOL]);
	if (found[ARGS] == NULL)
		return rv_error_set(err, RV_E_REQUEST, 0, "%s is missing", RV_NAME_ARGS);
	return derive(worker, found[ARGS], &input, answer, err);
}

#define ADD(out, literal) rv_buffer_add(out, literal, sizeof(literal) - 1)
#define NAME(name) "\"" name "\":"

static void add_id(const struct worker *worker, const struct answer *found, struct rv_buffer *out)
{
	rv_buffer_add_byte(out, '{');
	if (found->id == NULL)
		return;
	ADD(out, NAME(RV_NAME_ID));
	rv_json_add_source(out, worker->doc, found->id);
	rv_buffer_add_byte(out, ',');
}

static void add_key(const struct answer *found, struct rv_buffer *out)
{
	ADD(out, NAME(RV_NAME_IDEMPOTENCY_KEY) "\"");
	rv_buffer_add(out, found->key, RV_SHA256_HEX - 1);
	ADD(out, "\"," NAME(RV_NAME_ARGS_HASH) "\"");
	rv_buffer_add(out, found->args_hash, RV_SHA256_HEX - 1);
	ADD(out, "\"," NAME(RV_NAME_DERIVATION));
	rv_json_add_int(out, found->derivation);
	ADD(out, "}\n");
}

static void add_refusal(const struct rv_error *err, uint64_t number, struct rv_buffer *out)
{
	ADD(out, NAME(RV_NAME_OK) "false");
	rv_json_add_name(out, RV_NAME_ERROR);
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, RV_NAME_CODE, rv_code_name(err->code));
	rv_json_member_string(out, RV_NAME_MESSAGE, err->message);
	rv_buffer_add_byte(out, '}');
	rv_json_member_int(out, RV_NAME_LINE, (int64_t)number);
	rv_buffer_add(out, "}\n", 2);
}

/* -1 only where the system failed. */
static int answer(void *context, struct rv_span line, uint64_t number, struct rv_buffer *out, struct rv_error *err)
{
	struct worker *worker = context;
	struct answer found;
	int result = answer_line(worker, line, &found, err);

	if (result != 0 && err->code != RV_E_REQUEST && err->code != RV_E_NUMBER && err->code != RV_E_DERIVATION)
		return -1;
	add_id(worker, &found, out);
	if (result == 0) {
		add_key(&found, out);
	} else {
		add_refusal(err, number, out);
		worker->shared->refused = true;
	}
	return rv_buffer_check(out, err);
}

static int pass_on(void *context, const void *bytes, size_t len)
{
	const struct shared *shared = context;

	return shared->stream->write(bytes, len);
}

int rv_key_stream_run(const struct rv_key_stream *stream, bool *refused, struct rv_error *err)
{
	struct shared shared = { .stream = stream, .refused = false };
	struct rv_pump pump = {
		.fd = stream->fd,
		.threads = stream->threads,
		.context = &shared,
		.worker_new = worker_new,
		.worker_free = worker_free,
		.answer = answer,
		.write = pass_on,
	};
	int result = rv_pump_run(&pump, err);

	*refused = shared.refused;
	return result;
}

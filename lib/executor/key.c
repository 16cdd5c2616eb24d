#include "lib/executor/key.h"

#include "lib/json/names.h"
#include "lib/json/write.h"

#define LARGEST_INTEGER INT64_C(9007199254740991) /* 2^53 - 1 */

#define ADD(out, literal) rv_buffer_add(out, literal, sizeof(literal) - 1)
#define NAME(name) "\"" name "\":"

/* The canonical form is written by hand, its members in their order: agentSeq, args, derivation,
 * genesis, ordinal, runId, tool.  The arguments are hashed where they lie. */
static void add_head(struct rv_buffer *out, const struct rv_key_input *input)
{
	ADD(out, "{" NAME(RV_NAME_AGENT_SEQ));
	rv_json_add_int(out, input->agent_seq);
	ADD(out, "," NAME(RV_NAME_ARGS));
}

static void add_tail(struct rv_buffer *out, const struct rv_key_input *input)
{
	if (input->derivation == 2) {
		ADD(out, "," NAME(RV_NAME_DERIVATION) "2," NAME(RV_NAME_GENESIS));
		rv_json_add_string(out, input->genesis.data, input->genesis.len);
	}
	ADD(out, "," NAME(RV_NAME_ORDINAL));
	rv_json_add_int(out, input->ordinal);
	ADD(out, "," NAME(RV_NAME_RUN_ID));
	rv_json_add_string(out, input->run_id.data, input->run_id.len);
	ADD(out, "," NAME(RV_NAME_TOOL));
	rv_json_add_string(out, input->tool.data, input->tool.len);
	rv_buffer_add_byte(out, '}');
}

int rv_key_derive_with(struct rv_sha256 *sha, struct rv_buffer *scratch, const struct rv_key_input *input,
		       char key[RV_SHA256_HEX], struct rv_error *err)
{
	unsigned char digest[RV_SHA256_SIZE];
	size_t head;

	if (input->derivation != 1 && input->derivation != 2)
		return rv_error_set(err, RV_E_DERIVATION, 0, "unknown derivation %d", input->derivation);
	rv_buffer_clear(scratch);
	add_head(scratch, input);
	head = scratch->len;
	add_tail(scratch, input);
	if (rv_buffer_check(scratch, err) != 0 || rv_sha256_begin(sha, err) != 0 ||
	    rv_sha256_update(sha, scratch->data, head, err) != 0 ||
	    rv_sha256_update(sha, input->args.data, input->args.len, err) != 0 ||
	    rv_sha256_update(sha, scratch->data + head, scratch->len - head, err) != 0 ||
	    rv_sha256_end(sha, digest, err) != 0)
		return -1;
	rv_hex(digest, sizeof digest, key);
	return 0;
}

int rv_key_derive(struct rv_sha256 *sha, const struct rv_key_input *input, char key[RV_SHA256_HEX],
		  struct rv_error *err)
{
	struct rv_buffer scratch = RV_BUFFER_INIT;
	int result = rv_key_derive_with(sha, &scratch, input, key, err);

	rv_buffer_release(&scratch);
	return result;
}

enum { RUN_ID, GENESIS, DERIVATION, AGENT_SEQ, ORDINAL, MEMBERS };

static const struct rv_span names[MEMBERS] = {
	[RUN_ID] = RV_SPAN_INIT(RV_NAME_RUN_ID),         [GENESIS] = RV_SPAN_INIT(RV_NAME_GENESIS),
	[DERIVATION] = RV_SPAN_INIT(RV_NAME_EXEC_KEY_DERIVATION), [AGENT_SEQ] = RV_SPAN_INIT(RV_NAME_AGENT_SEQ),
	[ORDINAL] = RV_SPAN_INIT(RV_NAME_ORDINAL),
};

static int read_string(const struct rv_json_node *node, const char *name, struct rv_span *text, struct rv_error *err)
{
	if (node == NULL)
		return rv_error_set(err, RV_E_REQUEST, 0, "%s is missing", name);
	if (!rv_json_is_string(node))
		return rv_error_set(err, RV_E_REQUEST, 0, "%s is not a string", name);
	*text = rv_json_string(node);
	return 0;
}

static int read_count(const struct rv_json_node *node, const char *name, int64_t *value, struct rv_error *err)
{
	if (node == NULL)
		return rv_error_set(err, RV_E_REQUEST, 0, "%s is missing", name);
	if (!rv_json_integer(node, value) || *value < 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "%s is not an integer from 0 to %lld", name,
				    (long long)LARGEST_INTEGER);
	return 0;
}

static int read_derivation(const struct rv_json_node *node, bool genesis, bool recorded, int *derivation,
			   struct rv_error *err)
{
	int64_t value = 1;

	if (node == NULL && genesis && !recorded)
		return rv_error_set(err, RV_E_DERIVATION, 0,
				    "%s without %s: it is not certain which derivation is meant", RV_NAME_GENESIS,
				    RV_NAME_EXEC_KEY_DERIVATION);
	if (node != NULL && (!rv_json_integer(node, &value) || (value != 1 && value != 2)))
		return rv_error_set(err, RV_E_DERIVATION, 0, "%s is neither 1 nor 2", RV_NAME_EXEC_KEY_DERIVATION);
	if (value == 1 && genesis && !recorded)
		return rv_error_set(err, RV_E_DERIVATION, 0, "derivation 1 has no %s", RV_NAME_GENESIS);
	if (value == 2 && !genesis)
		return rv_error_set(err, RV_E_DERIVATION, 0, "derivation 2 needs a %s", RV_NAME_GENESIS);
	*derivation = (int)value;
	return 0;
}

static int read_run(const struct rv_json_node *const *found, unsigned flags, struct rv_key_input *input,
		    struct rv_error *err)
{
	bool recorded = (flags & RV_KEY_RECORDED) != 0;

	input->genesis = RV_SPAN("");
	if (read_string(found[RUN_ID], RV_NAME_RUN_ID, &input->run_id, err) != 0 ||
	    read_derivation(found[DERIVATION], found[GENESIS] != NULL, recorded, &input->derivation, err) != 0)
		return -1;
	if (input->derivation == 2)
		return read_string(found[GENESIS], RV_NAME_GENESIS, &input->genesis, err);
	return 0;
}

int rv_key_read(const struct rv_json_node *object, unsigned flags, struct rv_key_input *input, struct rv_error *err)
{
	const struct rv_json_node *found[MEMBERS];

	rv_json_pick(object, names, MEMBERS, found);
	if (read_run(found, flags, input, err) != 0 ||
	    read_count(found[AGENT_SEQ], RV_NAME_AGENT_SEQ, &input->agent_seq, err) != 0)
		return -1;
	return read_count(found[ORDINAL], RV_NAME_ORDINAL, &input->ordinal, err);
}

int rv_key_read_run(const struct rv_json_node *object, struct rv_key_input *input, struct rv_error *err)
{
	const struct rv_json_node *found[MEMBERS];

	rv_json_pick(object, names, MEMBERS, found);
	return read_run(found, RV_KEY_RECORDED, input, err);
}

/* The run file: written once, whole and synced, or not at all. */
#include <errno.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/executor/key.h"
#include "lib/json/names.h"
#include "lib/json/write.h"

#define GENESIS_BYTES 16
#define LARGEST_FILE ((size_t)1 << 20) /* three members: more is not a run file */

static int take(struct rv_run_file *run, const struct rv_key_input *input, struct rv_error *err)
{
	run->derivation = input->derivation;
	run->has_genesis = input->derivation == 2;
	rv_buffer_add(&run->run_id, input->run_id.data, input->run_id.len);
	rv_buffer_add(&run->genesis, input->genesis.data, input->genesis.len);
	if (rv_buffer_check(&run->run_id, err) != 0)
		return -1;
	return rv_buffer_check(&run->genesis, err);
}

static int parse(struct rv_run_file *run, const struct rv_buffer *text, struct rv_error *err)
{
	struct rv_json_doc *doc = rv_json_doc_new(err);
	const struct rv_json_node *root = NULL;
	struct rv_key_input input;
	int result = -1;

	if (doc != NULL)
		root = rv_json_parse(doc, text->data, text->len, RV_JSON_DEFAULT, err);
	if (root != NULL && rv_json_type(root) != RV_JSON_OBJECT)
		(void)rv_error_set(err, RV_E_REQUEST, 0, "not an object");
	else if (root != NULL && rv_key_read_run(root, &input, err) == 0)
		result = take(run, &input, err);
	rv_json_doc_free(doc);
	return result;
}

int rv_run_file_read(struct rv_run_file *run, const char *path, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = { .max = LARGEST_FILE };

	*run = (struct rv_run_file){ .run_id = RV_BUFFER_INIT, .genesis = RV_BUFFER_INIT };
	if (rv_io_read_file(path, &text, err) != 0)
		return -1;
	if (parse(run, &text, err) != 0) {
		rv_run_file_release(run);
		return rv_error_wrap(err, "run file %s", path);
	}
	return 0;
}

void rv_run_file_release(struct rv_run_file *run)
{
	rv_buffer_release(&run->run_id);
	rv_buffer_release(&run->genesis);
}

static int compose(struct rv_buffer *out, const char *run_id, struct rv_error *err)
{
	unsigned char random[GENESIS_BYTES];
	char genesis[2 * GENESIS_BYTES + 1];
	char uuid[RV_UUID_TEXT];

	if (run_id == NULL && rv_uuid(uuid, err) != 0)
		return -1;
	if (rv_random(random, sizeof random, err) != 0)
		return -1;
	rv_hex(random, sizeof random, genesis);
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, RV_NAME_RUN_ID, run_id != NULL ? run_id : uuid);
	rv_json_member_string(out, RV_NAME_GENESIS, genesis);
	rv_json_member_int(out, RV_NAME_EXEC_KEY_DERIVATION, 2);
	rv_buffer_add(out, "}\n", 2);
	return rv_buffer_check(out, err);
}

/* Whole from its first moment: half a run file, or an empty one, would stand in the way of the run for ever. */
int rv_run_file_create(const char *path, const char *run_id, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	int made;

	if (compose(&text, run_id, err) != 0)
		return -1;
	made = rv_io_create(path, text.data, text.len, 0600, true, err);
	if (made == 0)
		return rv_error_set(err, RV_E_IO, EEXIST, "create %s", path);
	return made < 0 ? rv_error_wrap(err, "run file %s", path) : 0;
}

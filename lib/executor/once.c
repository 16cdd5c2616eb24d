#include "lib/executor/once.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/io.h"
#include "lib/base/text.h"
#include "lib/executor/dispatch.h"
#include "lib/executor/key.h"
#include "lib/executor/reply.h"
#include "lib/json/json.h"

/* Everything that one run of the program holds. */
struct session {
	const struct rv_once *once;
	struct rv_service service;
	struct rv_call call;
	/* what the call borrows */
	struct rv_run_file run;
	struct rv_buffer args;
	char args_hash[RV_SHA256_HEX];
	char key[RV_SHA256_HEX];
	char run_id[RV_UUID_TEXT];
	char genesis[RV_UUID_TEXT];
	char span_id[17];
	struct rv_dispatch dispatch;
	bool dispatched;
};

/* ---- the command line's own sense ---- */

static bool is_text(const char *text)
{
	return text == NULL || rv_text_is_utf8(text, strlen(text));
}

static int check_identity(const struct rv_once *once, struct rv_error *err)
{
	bool named = once->run_id != NULL || once->genesis != NULL || once->derivation != 0;
	bool keyed = once->key != NULL || once->run_file != NULL || once->coordinates;

	if (once->key != NULL && (once->run_file != NULL || once->coordinates || once->genesis != NULL ||
				  once->derivation != 0))
		return rv_error_set(err, RV_E_USAGE, 0, "--key is the whole key: it goes with no coordinates");
	if (once->run_file != NULL && named)
		return rv_error_set(err, RV_E_USAGE, 0, "--run says run id, genesis and derivation: they cannot be given beside it");
	if (once->coordinates && once->run_file == NULL && once->run_id == NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "--agent-seq and --ordinal need --run or --run-id");
	if (once->derivation == 1 && once->genesis != NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "--genesis has no part in derivation 1");
	if (once->new_call && (keyed || named))
		return rv_error_set(err, RV_E_USAGE, 0, "--new-call is a call of its own: it goes with no key and no run");
	if (!keyed && named)
		return rv_error_set(err, RV_E_USAGE, 0, "--run-id alone makes no key: say --agent-seq and --ordinal, too");
	if (once->coordinates && once->run_file == NULL && once->derivation != 1 && once->genesis == NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "derivation 2 needs --genesis");
	if (!keyed && !once->new_call && (once->service.ledger != NULL || once->service.ledger_exec != NULL))
		return rv_error_set(err, RV_E_USAGE, 0, "with a ledger say which call this is: --run FILE or --key for one "
							"that may be retried, --new-call for one that never is");
	return 0;
}

int rv_once_check(const struct rv_once *once, struct rv_error *err)
{
	if (once->tool == NULL || once->tool[0] == '\0')
		return rv_error_set(err, RV_E_USAGE, 0, "--tool is missing");
	if (once->argv[0] == NULL && once->service.manifest == NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "the COMMAND is missing");
	if (once->args != NULL && once->args_file != NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "--args and --args-file are one too many");
	if (once->key != NULL && once->key[0] == '\0')
		return rv_error_set(err, RV_E_USAGE, 0, "--key is empty");
	if (rv_service_check(&once->service, once->argv, err) != 0)
		return -1;
	return check_identity(once, err);
}

/* ---- the call ---- */

static int read_args(struct session *session, struct rv_error *err)
{
	const struct rv_once *once = session->once;
	struct rv_buffer raw = RV_BUFFER_INIT;
	struct rv_json_doc *doc = rv_json_doc_new(err);
	const struct rv_json_node *root = NULL;
	int result = doc == NULL ? -1 : 0;

	if (result == 0 && once->args_file != NULL)
		result = rv_io_read_file(once->args_file, &raw, err);
	else if (result == 0)
		rv_buffer_add_string(&raw, once->args != NULL ? once->args : "{}");
	if (result == 0)
		result = rv_buffer_check(&raw, err);
	if (result == 0) {
		root = rv_json_parse(doc, raw.data != NULL ? raw.data : "", raw.len,
				     once->strict ? RV_JSON_STRICT : RV_JSON_DEFAULT, err);
		result = root == NULL ? rv_error_wrap(err, "the arguments") : rv_json_canonical(root, &session->args, err);
	}
	if (result == 0)
		result = rv_buffer_check(&session->args, err);
	rv_json_doc_free(doc);
	rv_buffer_release(&raw);
	return result;
}

static struct rv_span span_or_empty(const char *text)
{
	return text != NULL ? rv_span_of(text) : RV_SPAN("");
}

/* Run id and genesis: from the run file, from the command line, or fresh. */
static int find_run(struct session *session, struct rv_key_input *input, struct rv_error *err)
{
	const struct rv_once *once = session->once;

	if (once->run_file != NULL) {
		if (rv_run_file_read(&session->run, once->run_file, err) != 0)
			return -1;
		input->derivation = session->run.derivation;
		input->run_id = (struct rv_span){ session->run.run_id.data, session->run.run_id.len };
		input->genesis = (struct rv_span){ session->run.genesis.data, session->run.genesis.len };
		return 0;
	}
	input->derivation = once->derivation == 1 ? 1 : 2;
	if (once->run_id != NULL) {
		input->run_id = rv_span_of(once->run_id);
		input->genesis = span_or_empty(once->genesis);
		return 0;
	}
	if (rv_uuid(session->run_id, err) != 0 || rv_uuid(session->genesis, err) != 0)
		return -1;
	input->run_id = rv_span_of(session->run_id);
	input->genesis = rv_span_of(session->genesis);
	return 0;
}

static int derive(struct session *session, struct rv_error *err)
{
	const struct rv_once *once = session->once;
	struct rv_key_input input = {
		.agent_seq = once->agent_seq,
		.ordinal = once->ordinal,
		.tool = rv_span_of(once->tool),
		.args = { session->args.data, session->args.len },
	};
	struct rv_sha256 *sha = rv_sha256_new(err);
	int result = -1;

	if (sha != NULL && find_run(session, &input, err) == 0 &&
	    rv_sha256_hex(sha, input.args.data, input.args.len, session->args_hash, err) == 0)
		result = once->key != NULL ? 0 : rv_key_derive(sha, &input, session->key, err);
	rv_sha256_free(sha);
	session->call.run_id = input.run_id;
	session->call.key = rv_span_of(once->key != NULL ? once->key : session->key);
	session->call.args_hash = rv_span_of(session->args_hash);
	return result;
}

static int build_call(struct session *session, struct rv_error *err)
{
	const struct rv_once *once = session->once;
	struct rv_call *call = &session->call;
	unsigned char raw[8];

	if (!is_text(once->tool) || !is_text(once->run_id) || !is_text(once->genesis) || !is_text(once->key) ||
	    !is_text(once->span_id) || !is_text(once->agent_type))
		return rv_error_set(err, RV_E_REQUEST, 0, "a name on the command line is not valid UTF-8");
	if (read_args(session, err) != 0 || derive(session, err) != 0 || rv_random(raw, sizeof raw, err) != 0)
		return -1;
	rv_hex(raw, sizeof raw, session->span_id);
	call->id = RV_SPAN("");
	call->tool = rv_span_of(once->tool);
	call->args = (struct rv_span){ session->args.data, session->args.len };
	call->span_id = rv_span_of(once->span_id != NULL ? once->span_id : session->span_id);
	call->agent_type = once->agent_type != NULL ? rv_span_of(once->agent_type) : (struct rv_span){ NULL, 0 };
	call->command = once->argv[0];
	call->argv = once->argv;
	return 0;
}

/* ---- the whole ---- */

static void on_signal(void *owner)
{
	struct session *session = owner;

	if (session->dispatched)
		rv_dispatch_abort(&session->dispatch);
}

static int64_t deadline(const struct session *session)
{
	int64_t own = rv_dispatch_deadline(&session->dispatch), rows = rv_batch_deadline(&session->service.batch, 1);

	return own < rows ? own : rows;
}

static void turn_until_answered(struct session *session)
{
	struct rv_service *service = &session->service;
	struct rv_error err = RV_ERROR_INIT;

	rv_batch_turn(&service->batch, 1);
	/* an engine's leftovers are waited for: what a caller finds afterwards is what it has been told */
	while (!rv_dispatch_answered(&session->dispatch) || rv_dispatch_is_undoing(&session->dispatch)) {
		if (rv_loop_turn(&service->loop, deadline(session), &err) != 0) {
			rv_dispatch_give_up(&session->dispatch, &err);
			rv_batch_drain(&service->batch);
		} else {
			rv_dispatch_check(&session->dispatch);
			rv_batch_turn(&service->batch, 1);
		}
	}
}

static int run(struct session *session, struct rv_error *err)
{
	struct rv_service *service = &session->service;
	const struct rv_executor *executor;
	struct rv_job *job;

	if (rv_service_start(service, &session->once->service, 1, false, err) != 0 || build_call(session, err) != 0 ||
	    rv_service_open(service, session->once->argv, err) != 0 || rv_service_take_signals(service, on_signal, session, err) != 0)
		return -1;
	if (service->signal_number != 0)
		return rv_error_set(err, RV_E_ABORTED, 0, "aborted before anything was written or run");
	if (rv_rules_apply(&service->rules, &session->call, err) != 0)
		return -1;
	executor = rv_registry_find(&service->registry, session->call.executor, err);
	if (executor == NULL)
		return -1;
	job = &service->jobs[0];
	rv_dispatch_begin(&session->dispatch, executor, &session->call, &job->tool,
			  job->has_host ? &job->host : NULL);
	session->dispatched = true;
	turn_until_answered(session);
	return 0;
}

static void close_session(struct session *session)
{
	struct rv_service *service = &session->service;

	if (session->dispatched) {
		if (!rv_dispatch_done(&session->dispatch)) /* a slow removal goes on without us */
			rv_slot_leave(session->dispatch.slot);
		rv_dispatch_release(&session->dispatch);
	}
	rv_service_release(service);
	rv_run_file_release(&session->run);
	rv_buffer_release(&session->args);
}

static void take_result(const struct session *session, struct rv_once_result *result)
{
	const struct rv_dispatch *dispatch = &session->dispatch;

	result->error = dispatch->error;
	result->warning = dispatch->warning;
	result->attempted = dispatch->intended && dispatch->ran;
	result->exit_code = dispatch->exit_code;
	result->survivors = dispatch->survivors;
	rv_reply_add(&result->reply, dispatch);
	if (dispatch->kept)
		rv_buffer_add_string(&result->kept, dispatch->workdir.data);
	if (dispatch->error.code == RV_E_NONE) {
		rv_buffer_add(&result->result, dispatch->result.data, dispatch->result.len);
		rv_buffer_add_byte(&result->result, '\n');
	}
}

void rv_once_run(const struct rv_once *once, struct rv_once_result *result)
{
	struct session *session = calloc(1, sizeof *session);
	struct rv_error *err = &result->error;
	struct rv_error warning = RV_ERROR_INIT;

	memset(result, 0, sizeof *result);
	if (session == NULL) {
		(void)rv_error_nomem(err);
		return;
	}
	session->once = once;
	if (run(session, err) == 0)
		take_result(session, result);
	else
		rv_reply_add_refusal(&result->reply, &session->call, 0, err);
	result->signal_number = err->code == RV_E_ABORTED ? session->service.signal_number : 0;
	rv_service_end(&session->service, &warning);
	if (result->warning.code == RV_E_NONE)
		result->warning = warning;
	close_session(session);
	free(session);
}

void rv_once_release(struct rv_once_result *result)
{
	rv_buffer_release(&result->result);
	rv_buffer_release(&result->reply);
	rv_buffer_release(&result->kept);
}

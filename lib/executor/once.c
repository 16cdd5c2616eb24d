#include "lib/executor/once.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/text.h"
#include "lib/executor/command.h"
#include "lib/executor/dispatch.h"
#include "lib/executor/key.h"
#include "lib/executor/reply.h"
#include "lib/json/json.h"

/* Everything that one run of the program holds. */
struct session {
	const struct rv_once *once;
	struct rv_slots slots;
	struct rv_slot tool_slot;
	struct rv_slot host_slot;
	bool has_host_slot;
	struct rv_loop loop;
	struct rv_watch signals;
	int signal_fd;
	int signal_number; /* the first that came */
	struct rv_executor executor;
	struct rv_call call;
	/* what the call borrows */
	struct rv_run_file run;
	struct rv_buffer args;
	char args_hash[RV_SHA256_HEX];
	char key[RV_SHA256_HEX];
	char run_id[RV_UUID_TEXT];
	char genesis[RV_UUID_TEXT];
	char span_id[17];
	char **credentials;
	struct rv_buffer credentials_path;
	char *workdir_base;
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
	if (!keyed && !once->new_call && once->ledger != NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "with --ledger say which call this is: --run FILE or --key for one "
							"that may be retried, --new-call for one that never is");
	return 0;
}

int rv_once_check(const struct rv_once *once, struct rv_error *err)
{
	if (once->tool == NULL || once->tool[0] == '\0')
		return rv_error_set(err, RV_E_USAGE, 0, "--tool is missing");
	if (once->argv[0] == NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "the COMMAND is missing");
	if (once->args != NULL && once->args_file != NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "--args and --args-file are one too many");
	if (once->key != NULL && once->key[0] == '\0')
		return rv_error_set(err, RV_E_USAGE, 0, "--key is empty");
	if (once->ledger == NULL && (once->refuse_orphan || once->power || once->unsafe_fs || once->outcomes_only))
		return rv_error_set(err, RV_E_USAGE, 0, "--refuse-orphan, --durability, --ledger-phases and "
							"--ledger-unsafe-fs need --ledger");
	if (once->refuse_orphan && once->outcomes_only)
		return rv_error_set(err, RV_E_USAGE, 0, "--refuse-orphan needs intents: not with --ledger-phases one");
	if (once->timeout_ms == 0)
		return rv_error_set(err, RV_E_USAGE, 0, "--timeout is zero");
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

/* ---- the executor ---- */

static int open_stderr(struct session *session, struct rv_error *err)
{
	const char *where = session->once->tool_stderr;

	session->executor.stderr_fd = -1;
	if (strcmp(where, "tail") == 0)
		return 0;
	if (strcmp(where, "inherit") == 0)
		session->executor.stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		session->executor.stderr_fd = rv_io_open(where, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY, 0600, err);
	if (session->executor.stderr_fd >= 0)
		return 0;
	if (err->code == RV_E_NONE)
		(void)rv_error_set(err, RV_E_CONFIG, errno, "descriptor 2");
	err->code = RV_E_CONFIG;
	return rv_error_wrap(err, "--tool-stderr");
}

static int split_credentials(struct session *session, struct rv_error *err)
{
	size_t count = 0;

	if (session->once->credentials == NULL)
		return 0;
	if (rv_text_split(session->once->credentials, &session->credentials, &count, err) != 0 || count == 0 ||
	    rv_command_find(&session->credentials_path, session->credentials[0], err) != 0) {
		if (err->code == RV_E_NONE)
			(void)rv_error_set(err, RV_E_CONFIG, 0, "no program is named");
		err->code = RV_E_CONFIG;
		return rv_error_wrap(err, "--credentials");
	}
	session->executor.credentials = session->credentials;
	session->executor.credentials_path = session->credentials_path.data;
	return 0;
}

/* Rows name the workdir absolutely: whoever reads them stands elsewhere. */
static int find_base(struct session *session, struct rv_error *err)
{
	const char *base = session->once->workdir_base;
	struct stat info;

	if (base == NULL)
		base = getenv("TMPDIR");
	if (base == NULL || base[0] == '\0')
		base = "/tmp";
	session->workdir_base = realpath(base, NULL);
	if (session->workdir_base == NULL || stat(session->workdir_base, &info) != 0)
		return rv_error_set(err, RV_E_CONFIG, errno, "--workdir-base %s", base);
	if (!S_ISDIR(info.st_mode))
		return rv_error_set(err, RV_E_CONFIG, ENOTDIR, "--workdir-base %s", base);
	session->executor.workdir_base = session->workdir_base;
	return 0;
}

static int open_ledger(struct session *session, struct rv_error *err)
{
	const struct rv_once *once = session->once;
	struct rv_ledger_options options = {
		.power = once->power, .unsafe_fs = once->unsafe_fs, .wait_ms = once->ledger_wait_ms
	};

	if (once->ledger == NULL)
		return 0;
	session->executor.outcomes_only = once->outcomes_only;
	session->executor.refuse_orphan = once->refuse_orphan ? once->ledger : NULL;
	return rv_ledger_open(&session->executor.ledger, once->ledger, &options, err);
}

static int build_executor(struct session *session, struct rv_error *err)
{
	const struct rv_once *once = session->once;
	struct rv_executor *executor = &session->executor;

	executor->name = "subprocess";
	executor->sandbox = "none";
	executor->timeout_ms = once->timeout_ms;
	executor->grace_ms = once->grace_ms;
	executor->max_output = once->max_output;
	executor->allow_env = once->allow_env;
	executor->set_env = once->set_env;
	executor->credentials_timeout_ms = once->credentials_timeout_ms;
	executor->ledger_wait_ms = once->ledger_wait_ms;
	executor->loop = &session->loop;
	if (find_base(session, err) != 0 || split_credentials(session, err) != 0 || open_stderr(session, err) != 0)
		return -1;
	return open_ledger(session, err);
}

/* ---- signals ---- */

static void on_signal(struct rv_watch *watch, uint32_t events)
{
	struct session *session = watch->owner;
	struct signalfd_siginfo info;

	(void)events;
	while (read(watch->fd, &info, sizeof info) == (ssize_t)sizeof info) {
		if (session->signal_number == 0)
			session->signal_number = (int)info.ssi_signo;
		if (session->dispatched)
			rv_dispatch_abort(&session->dispatch);
	}
}

static void settle_signals(void)
{
	(void)signal(SIGPIPE, SIG_IGN); /* a tool that does not read its input is no reason to die */
	(void)signal(SIGCHLD, SIG_DFL); /* ignored, children would be reaped behind our back */
}

/* From here on an end is an abort that is written down.  Not before: while input is still being read a
 * signal simply ends the program.  One that was ignored when we were started (nohup) stays so. */
static void block_signals(sigset_t *ours)
{
	static const int ends[] = { SIGTERM, SIGINT, SIGHUP };

	(void)sigemptyset(ours);
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		struct sigaction now;

		if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			(void)sigaddset(ours, ends[i]);
	}
	(void)sigprocmask(SIG_BLOCK, ours, NULL);
}

static int watch_signals(struct session *session, const sigset_t *ours, struct rv_error *err)
{
	session->signal_fd = signalfd(-1, ours, SFD_CLOEXEC | SFD_NONBLOCK);
	if (session->signal_fd < 0)
		return rv_error_set(err, RV_E_IO, errno, "signalfd");
	session->signals = (struct rv_watch){ -1, on_signal, session };
	return rv_loop_add(&session->loop, &session->signals, session->signal_fd, EPOLLIN, err);
}

/* ---- the whole ---- */

/* The id maps of a user namespace can only be written while this process is dumpable, and secrets may
 * only be read when it is not: so slots come first. */
static int start_slots(struct session *session, struct rv_error *err)
{
	struct rv_error why = RV_ERROR_INIT;

	if (rv_slot_start(&session->tool_slot, &session->slots, RV_CONTAIN_NAMESPACE, &why, err) != 0)
		return -1;
	if (session->tool_slot.containment != RV_CONTAIN_NAMESPACE && session->once->require_containment) {
		*err = why;
		err->code = RV_E_CONFIG;
		return rv_error_wrap(err, "--require-containment");
	}
	if (session->once->credentials != NULL) {
		if (rv_slot_start(&session->host_slot, &session->slots, RV_CONTAIN_SUBREAPER, &why, err) != 0)
			return -1;
		session->has_host_slot = true;
	}
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return rv_error_set(err, RV_E_IO, errno, "prctl(PR_SET_DUMPABLE)");
	return 0;
}

static void turn_until_done(struct session *session)
{
	struct rv_error err = RV_ERROR_INIT;

	while (!rv_dispatch_done(&session->dispatch)) {
		if (rv_loop_turn(&session->loop, rv_dispatch_deadline(&session->dispatch), &err) != 0)
			rv_dispatch_give_up(&session->dispatch, &err);
		else
			rv_dispatch_check(&session->dispatch);
	}
}

static int run(struct session *session, struct rv_error *err)
{
	sigset_t ours;

	settle_signals();
	if (start_slots(session, err) != 0 || rv_loop_init(&session->loop, err) != 0 || build_call(session, err) != 0 ||
	    build_executor(session, err) != 0)
		return -1;
	block_signals(&ours);
	if (watch_signals(session, &ours, err) != 0)
		return -1;
	if (rv_loop_turn(&session->loop, 0, err) != 0) /* a signal so far: nothing was begun */
		return -1;
	if (session->signal_number != 0)
		return rv_error_set(err, RV_E_ABORTED, 0, "aborted before anything was written or run");
	rv_dispatch_begin(&session->dispatch, &session->executor, &session->call, &session->tool_slot,
			  session->has_host_slot ? &session->host_slot : NULL);
	session->dispatched = true;
	turn_until_done(session);
	return 0;
}

static void close_session(struct session *session)
{
	if (session->dispatched)
		rv_dispatch_release(&session->dispatch);
	if (session->executor.ledger != NULL)
		rv_ledger_close(session->executor.ledger);
	if (session->executor.stderr_fd > 2)
		(void)close(session->executor.stderr_fd);
	if (session->tool_slot.worker.pid > 0)
		rv_slot_stop(&session->tool_slot, 1000);
	if (session->has_host_slot)
		rv_slot_stop(&session->host_slot, 1000);
	if (session->signal_fd >= 0)
		(void)close(session->signal_fd);
	rv_loop_release(&session->loop);
	rv_run_file_release(&session->run);
	rv_buffer_release(&session->args);
	rv_buffer_release(&session->credentials_path);
	free(session->credentials);
	free(session->workdir_base);
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
	if (dispatch->error.code == RV_E_NONE) {
		rv_buffer_add(&result->result, dispatch->result.data, dispatch->result.len);
		rv_buffer_add_byte(&result->result, '\n');
	}
}

void rv_once_run(const struct rv_once *once, struct rv_once_result *result)
{
	struct session *session = calloc(1, sizeof *session);
	struct rv_error *err = &result->error;

	memset(result, 0, sizeof *result);
	if (session == NULL) {
		(void)rv_error_nomem(err);
		return;
	}
	session->once = once;
	session->loop.epoll = -1;
	session->signal_fd = -1;
	session->executor.stderr_fd = -1;
	if (run(session, err) == 0)
		take_result(session, result);
	else
		rv_reply_add_refusal(&result->reply, RV_SPAN(""), err);
	result->signal_number = err->code == RV_E_ABORTED ? session->signal_number : 0;
	close_session(session);
	free(session);
}

void rv_once_release(struct rv_once_result *result)
{
	rv_buffer_release(&result->result);
	rv_buffer_release(&result->reply);
}

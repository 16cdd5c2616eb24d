/* rv-exec(1): run a tool program out of process and answer for its effects. */
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/signals.h"
#include "lib/cli/cli.h"
#include "lib/executor/describe.h"
#include "lib/executor/once.h"
#include "lib/executor/probe.h"
#include "lib/executor/reap.h"
#include "lib/executor/stream.h"
#include "lib/json/json.h"

struct options {
	struct rv_once once;
	struct rv_strings allow_env;
	struct rv_strings set_env;
	struct rv_strings launcher_env;
	struct rv_strings executors;
	struct rv_strings ro;
	struct rv_strings rw;
	struct rv_strings engine_args;
	int durability;
	int phases;
	int keep;
	bool describe;
	bool probe;
	bool json;
	bool stream;
	bool unordered;
	bool reap;
	int64_t jobs;
	bool agent_seq_given;
	bool ordinal_given;
};

#define AT(member) offsetof(struct options, member)
#define ISOLATE once.service.isolate
#define MAX_SAFE 9007199254740991LL

static const struct rv_option options[] = {
	{ "tool", 0, RV_OPT_STRING, AT(once.tool), RV_UNSEEN, "NAME", "the tool's name, as the ledger and the tool see it", 0, 0, NULL },
	{ "args", 0, RV_OPT_STRING, AT(once.args), RV_UNSEEN, "JSON", "the call's arguments ({} if not given)", 0, 0, NULL },
	{ "args-file", 0, RV_OPT_STRING, AT(once.args_file), RV_UNSEEN, "FILE", "read the arguments from FILE (- is standard input)", 0, 0, NULL },
	{ "run", 0, RV_OPT_STRING, AT(once.run_file), RV_UNSEEN, "FILE", "take run id, genesis and derivation from FILE (rv-key --new-run)", 0, 0, NULL },
	{ "key", 0, RV_OPT_STRING, AT(once.key), RV_UNSEEN, "KEY", "the idempotency key itself, derived elsewhere", 0, 0, NULL },
	{ "derivation", 0, RV_OPT_INTEGER, AT(once.derivation), RV_UNSEEN, "1|2", "how the key is derived (2, which needs --genesis)", 1, 2, NULL },
	{ "run-id", 0, RV_OPT_STRING, AT(once.run_id), RV_UNSEEN, "ID", "the run that the call belongs to", 0, 0, NULL },
	{ "genesis", 0, RV_OPT_STRING, AT(once.genesis), RV_UNSEEN, "TOKEN", "the run's generation token", 0, 0, NULL },
	{ "agent-seq", 0, RV_OPT_INTEGER, AT(once.agent_seq), AT(agent_seq_given), "N", "the agent's journal entry (0)", 0, MAX_SAFE, NULL },
	{ "ordinal", 0, RV_OPT_INTEGER, AT(once.ordinal), AT(ordinal_given), "N", "the call's place in that agent's loop (0)", 0, MAX_SAFE, NULL },
	{ "new-call", 0, RV_OPT_FLAG, AT(once.new_call), RV_UNSEEN, NULL, "this call is its own logical call: a retry gets another key", 0, 0, NULL },
	{ "span-id", 0, RV_OPT_STRING, AT(once.span_id), RV_UNSEEN, "ID", "the tool span (16 random hex digits)", 0, 0, NULL },
	{ "agent-type", 0, RV_OPT_STRING, AT(once.agent_type), RV_UNSEEN, "NAME", "the calling agent's type, for the credentials program", 0, 0, NULL },
	{ "strict", 0, RV_OPT_FLAG, AT(once.strict), RV_UNSEEN, NULL, "refuse arguments that canonical form would silently merge", 0, 0, NULL },
	{ "timeout", 0, RV_OPT_DURATION, AT(once.service.timeout_ms), RV_UNSEEN, "DUR", "from the tool's start to its end (30s)", 0, 0, NULL },
	{ "kill-grace", 0, RV_OPT_DURATION, AT(once.service.grace_ms), AT(once.service.grace_given), "DUR", "between SIGTERM and SIGKILL (2s, in a container 5s)", 0, 0, NULL },
	{ "max-output", 0, RV_OPT_SIZE, AT(once.service.max_output), RV_UNSEEN, "SIZE", "most that stdout may hold (1MiB)", 0, 0, NULL },
	{ "max-cpu", 0, RV_OPT_DURATION, AT(once.service.limits.cpu_ms), RV_UNSEEN, "DUR", "CPU time of each process, in whole seconds", 0, 0, NULL },
	{ "max-data", 0, RV_OPT_SIZE, AT(once.service.limits.data), RV_UNSEEN, "SIZE", "private memory of each process", 0, 0, NULL },
	{ "max-memory", 0, RV_OPT_SIZE, AT(once.service.limits.memory), RV_UNSEEN, "SIZE", "memory of the whole tree, by a cgroup", 0, 0, NULL },
	{ "max-processes", 0, RV_OPT_INTEGER, AT(once.service.limits.processes), RV_UNSEEN, "N", "processes of the whole tree at once, by a cgroup", 1, 4194304, NULL },
	{ "cgroup", 0, RV_OPT_STRING, AT(once.service.limits.cgroup), RV_UNSEEN, "DIR", "a delegated cgroup v2 directory (root: cgroup v1)", 0, 0, NULL },
	{ "workdir-base", 0, RV_OPT_STRING, AT(once.service.workdir_base), RV_UNSEEN, "DIR", "where workdirs are made ($TMPDIR or /tmp)", 0, 0, NULL },
	{ "keep-workdir", 0, RV_OPT_CHOICE, AT(keep), RV_UNSEEN, NULL, "which workdirs stay, for a look (never)", 0, 0, "never|on-error" },
	{ "allow-env", 0, RV_OPT_LIST, AT(allow_env), RV_UNSEEN, "NAME", "let the tool see this variable; repeatable", 0, 0, NULL },
	{ "setenv", 0, RV_OPT_LIST, AT(set_env), RV_UNSEEN, "NAME=VALUE", "set a variable for the tool; repeatable", 0, 0, NULL },
	{ "credentials", 0, RV_OPT_STRING, AT(once.service.credentials), RV_UNSEEN, "'PROGRAM ...'", "mint the tool's credentials with this program, for each call", 0, 0, NULL },
	{ "credentials-timeout", 0, RV_OPT_DURATION, AT(once.service.credentials_timeout_ms), RV_UNSEEN, "DUR", "how long minting may take (10s)", 0, 0, NULL },
	{ "manifest", 0, RV_OPT_STRING, AT(once.service.manifest), RV_UNSEEN, "FILE", "what may run, by the tools' names: no COMMAND and no spec", 0, 0, NULL },
	{ "approvals", 0, RV_OPT_STRING, AT(once.service.approvals), RV_UNSEEN, "FILE", "what authorises the tools that need an approval", 0, 0, NULL },
	{ "tool-stderr", 0, RV_OPT_STRING, AT(once.service.tool_stderr), RV_UNSEEN, "tail|inherit|FILE", "keep its end for messages, pass it on, or append it to FILE", 0, 0, NULL },
	{ "require-containment", 0, RV_OPT_FLAG, AT(once.service.require_containment), RV_UNSEEN, NULL, "refuse to run where no PID namespace can be had", 0, 0, NULL },
	{ "sandbox", 0, RV_OPT_CHOICE, AT(ISOLATE.sandbox), RV_UNSEEN, NULL, "what a subprocess runs in (none)", 0, 0, "none|bwrap|kernel" },
	{ "net", 0, RV_OPT_FLAG, AT(once.service.net), RV_UNSEEN, NULL, "leave the sandbox the host's network", 0, 0, NULL },
	{ "sandbox-argv", 0, RV_OPT_STRING, AT(ISOLATE.sandbox_argv), RV_UNSEEN, "'WORDS'", "run a subprocess by this launcher; {workdir} is replaced", 0, 0, NULL },
	{ "ro", 0, RV_OPT_LIST, AT(ro), RV_UNSEEN, "PATH", "show PATH in the sandbox, read-only; repeatable", 0, 0, NULL },
	{ "rw", 0, RV_OPT_LIST, AT(rw), RV_UNSEEN, "PATH", "show PATH in the sandbox, writable; repeatable", 0, 0, NULL },
	{ "executor", 0, RV_OPT_LIST, AT(executors), RV_UNSEEN, "TAG|TAG='LAUNCHER ...'", "register a further executor, or name that of calls that name none", 0, 0, NULL },
	{ "launcher-env", 0, RV_OPT_LIST, AT(launcher_env), RV_UNSEEN, "NAME", "let launchers and engines' clients read this variable, too; repeatable", 0, 0, NULL },
	{ "image", 0, RV_OPT_STRING, AT(ISOLATE.container.image), RV_UNSEEN, "IMAGE", "register the executor 'container', which runs a tool in this image", 0, 0, NULL },
	{ "engine", 0, RV_OPT_STRING, AT(ISOLATE.container.engine), RV_UNSEEN, "'ENGINE ...'", "docker, podman or another client, and its global flags (docker)", 0, 0, NULL },
	{ "engine-arg", 0, RV_OPT_LIST, AT(engine_args), RV_UNSEEN, "ARG", "a further flag of the engine's 'run'; repeatable", 0, 0, NULL },
	{ "network", 0, RV_OPT_STRING, AT(ISOLATE.container.network), RV_UNSEEN, "NETWORK", "the container's network (none)", 0, 0, NULL },
	{ "memory", 0, RV_OPT_STRING, AT(ISOLATE.container.memory), RV_UNSEEN, "SIZE", "the container's memory, as its engine reads it (256m)", 0, 0, NULL },
	{ "cpus", 0, RV_OPT_STRING, AT(ISOLATE.container.cpus), RV_UNSEEN, "N", "how many processors the container may use (1.0)", 0, 0, NULL },
	{ "pids-limit", 0, RV_OPT_INTEGER, AT(ISOLATE.container.pids_limit), RV_UNSEEN, "N", "how many processes the container may have (128)", 1, 4194304, NULL },
	{ "writable-root", 0, RV_OPT_FLAG, AT(ISOLATE.container.writable_root), RV_UNSEEN, NULL, "let the tool write in the container's own root", 0, 0, NULL },
	{ "cap-drop", 0, RV_OPT_STRING, AT(ISOLATE.container.cap_drop), RV_UNSEEN, "CAPABILITY", "what the container's root may not (ALL)", 0, 0, NULL },
	{ "work-mount", 0, RV_OPT_STRING, AT(ISOLATE.container.work_mount), RV_UNSEEN, "DIR", "where the workdir is in the container (/work)", 0, 0, NULL },
	{ "pull", 0, RV_OPT_CHOICE, AT(ISOLATE.container.pull), RV_UNSEEN, NULL, "get the image before the first call (never)", 0, 0, "never|missing|always" },
	{ "ledger", 0, RV_OPT_STRING, AT(once.service.ledger), RV_UNSEEN, "FILE", "write an intent before the effect and an outcome after it", 0, 0, NULL },
	{ "ledger-exec", 0, RV_OPT_STRING, AT(once.service.ledger_exec), RV_UNSEEN, "'PROGRAM ...'", "give the rows to this program instead, which answers each with ok", 0, 0, NULL },
	{ "ledger-phases", 0, RV_OPT_CHOICE, AT(phases), RV_UNSEEN, NULL, "both rows, or outcomes alone (two)", 0, 0, "two|one" },
	{ "durability", 0, RV_OPT_CHOICE, AT(durability), RV_UNSEEN, NULL, "what a row survives: a crash of the process, or of the power", 0, 0, "process|power" },
	{ "ledger-wait", 0, RV_OPT_DURATION, AT(once.service.ledger_wait_ms), RV_UNSEEN, "DUR", "how long to wait for the ledger's lock, or its program's answer (10s)", 0, 0, NULL },
	{ "ledger-unsafe-fs", 0, RV_OPT_FLAG, AT(once.service.unsafe_fs), RV_UNSEEN, NULL, "take a ledger on a network or FUSE file system", 0, 0, NULL },
	{ "refuse-orphan", 0, RV_OPT_FLAG, AT(once.service.refuse_orphan), RV_UNSEEN, NULL, "refuse a key that has an attempt without an outcome", 0, 0, NULL },
	{ "stream", 0, RV_OPT_FLAG, AT(stream), RV_UNSEEN, NULL, "answer request lines from standard input, one reply line each", 0, 0, NULL },
	{ "jobs", 'j', RV_OPT_INTEGER, AT(jobs), RV_UNSEEN, "N", "dispatches at once, with --stream (1)", 1, 1024, NULL },
	{ "unordered", 0, RV_OPT_FLAG, AT(unordered), RV_UNSEEN, NULL, "replies as they come, with --stream", 0, 0, NULL },
	{ "describe", 0, RV_OPT_FLAG, AT(describe), RV_UNSEEN, NULL, "say what an executor with these options is, and run nothing", 0, 0, NULL },
	{ "probe", 0, RV_OPT_FLAG, AT(probe), RV_UNSEEN, NULL, "say what this host lets rv-exec do, found by doing it", 0, 0, NULL },
	{ "reap", 0, RV_OPT_FLAG, AT(reap), RV_UNSEEN, NULL, "remove containers and workdirs that crashed runs left, by --ledger", 0, 0, NULL },
	{ "json", 0, RV_OPT_FLAG, AT(json), RV_UNSEEN, NULL, "print the whole reply as one JSON line", 0, 0, NULL },
};

static const char *const usage[] = {
	"[options] --tool NAME [--args JSON | --args-file FILE] -- COMMAND [ARG...]",
	"[options] --manifest FILE --tool NAME [--args JSON | --args-file FILE]",
	"--stream [--jobs N] [--unordered] [options] [-- COMMAND [ARG...]]",
	"--describe [options]",
	"--probe [--cgroup DIR]",
	"--reap [--workdir-base DIR] [--engine 'ENGINE ...'] --ledger FILE",
	NULL,
};

static const char *const statuses[] = {
	"0    the tool's result is on stdout",
	"1    the tool failed by its own status (exit), or something of it may still run;\n"
	"       --stream: a reply is not ok",
	"2    the command line is wrong",
	"3    the input is refused (request, number, derivation); --stream: a line was",
	"5    the system failed",
	"120  stdout was not one JSON value (protocol)",
	"121  too much output (output-cap)",
	"122  a ledger row could not be written, or an orphan stands (ledger)",
	"124  the deadline passed (timeout)",
	"125  the dispatch could not be set up (config)",
	"126  the command was found and cannot be run (spawn)",
	"127  the command was not found (spawn)",
	"     aborted: rv-exec dies by the signal that it was sent",
	NULL,
};

static const struct rv_program program = {
	"rv-exec", usage, "Run a tool program out of process and answer for its effects.",
	options, sizeof options / sizeof options[0], statuses,
};

/* The lists as NULL-terminated arrays: realloc'ed by one more, so that nothing else has to count. */
static const char *const *terminated(struct rv_strings *list)
{
	const char **grown = realloc(list->items, (list->count + 1) * sizeof *grown);

	if (grown == NULL)
		return NULL;
	list->items = grown;
	grown[list->count] = NULL;
	return grown;
}

/* The outcome is written; the caller's shell must see the signal and not a status. */
static void die_of(int signal_number)
{
	sigset_t set;

	(void)signal(signal_number, SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, signal_number);
	(void)raise(signal_number);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void print(const struct options *values, const struct rv_once_result *result)
{
	(void)signal(SIGPIPE, SIG_DFL); /* all rows are written: a reader that went away ends us quietly */
	rv_cli_heed(rv_signals_watch());  /* and one that stopped does not keep a signal from it */
	if (values->json)
		(void)rv_cli_write(result->reply.data, result->reply.len);
	else if (result->result.len > 0)
		(void)rv_cli_write(result->result.data, result->result.len);
}

static int report(const struct options *values, const struct rv_once_result *result)
{
	int status = RV_EXIT_DONE;

	print(values, result);
	if (result->kept.len > 0)
		rv_cli_say("the workdir is kept: %.*s", (int)result->kept.len, result->kept.data);
	if (result->warning.code != RV_E_NONE)
		rv_cli_say_error(&result->warning);
	if (result->error.code != RV_E_NONE) {
		rv_cli_say("%s: %s", rv_code_name(result->error.code), result->error.message);
		status = rv_status_of(result->error.code);
	}
	if (result->attempted && result->survivors != 0) {
		if (result->survivors > 0)
			rv_cli_say("%d processes that the tool started could not be killed", result->survivors);
		else
			rv_cli_say("processes that the tool started may still run: their number is not known");
		if (status == RV_EXIT_DONE)
			status = RV_EXIT_NEEDS_SOMEONE;
	}
	return status;
}

static void say(const char *message)
{
	rv_cli_say("%s", message);
}

/* What one call alone can be asked for says nothing to a stream, whose requests say it themselves. */
static int check_stream(const struct options *values, struct rv_error *err)
{
	const struct rv_once *once = &values->once;

	if (once->tool != NULL || once->args != NULL || once->args_file != NULL || once->key != NULL ||
	    once->run_file != NULL || once->run_id != NULL || once->genesis != NULL || once->derivation != 0 ||
	    once->coordinates || once->new_call || once->span_id != NULL || once->agent_type != NULL || values->json)
		return rv_error_set(err, RV_E_USAGE, 0, "with --stream the requests say the tool, its arguments and its "
							"key, and every reply is JSON");
	return rv_service_check(&once->service, once->argv, err);
}

static int run_stream(const struct options *values)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_stream_result result;
	struct rv_stream_options stream = {
		.service = values->once.service,
		.jobs = (size_t)values->jobs,
		.unordered = values->unordered,
		.json_flags = values->once.strict ? RV_JSON_STRICT : RV_JSON_DEFAULT,
		.command = values->once.argv,
		.in = STDIN_FILENO,
		.out = STDOUT_FILENO,
		.say = say,
	};
	int status;

	if (check_stream(values, &err) != 0)
		return rv_cli_usage("%s", err.message);
	if (rv_stream_run(&stream, &result, &err) != 0)
		status = rv_cli_fail(&err);
	else
		status = result.refused ? RV_EXIT_REFUSED : result.failed ? RV_EXIT_NEEDS_SOMEONE : RV_EXIT_DONE;
	if (result.signal_number != 0)
		die_of(result.signal_number);
	if (result.reader_gone)
		die_of(SIGPIPE); /* quietly: all rows are written */
	return status;
}

static int run_once(const struct options *values)
{
	struct rv_once_result result;
	struct rv_error err = RV_ERROR_INIT;
	int status;

	if (values->unordered || values->jobs != 1)
		return rv_cli_usage("--jobs and --unordered need --stream");
	if (rv_once_check(&values->once, &err) != 0)
		return rv_cli_usage("%s", err.message);
	rv_once_run(&values->once, &result);
	status = rv_cli_end(report(values, &result));
	if (result.signal_number != 0)
		die_of(result.signal_number);
	rv_once_release(&result);
	return status;
}

static int run_reap(const struct options *values)
{
	const struct rv_service_options *service = &values->once.service;
	const struct rv_reap_options reap = {
		.ledger = service->ledger, .workdir_base = service->workdir_base, .engine = service->isolate.container.engine,
		.launcher_env = service->isolate.launcher_env, .print = rv_cli_write,
	};
	struct rv_error err = RV_ERROR_INIT;
	bool needs_someone = false;

	if (reap.ledger == NULL || values->stream || values->once.tool != NULL || values->once.argv[0] != NULL)
		return rv_cli_usage("--reap needs --ledger, and runs nothing");
	if (rv_reap_run(&reap, &needs_someone, &err) != 0)
		return rv_cli_end(rv_cli_fail(&err));
	return rv_cli_end(needs_someone ? RV_EXIT_NEEDS_SOMEONE : RV_EXIT_DONE);
}

static int run_describe(const struct options *values)
{
	struct rv_buffer out = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	int status = RV_EXIT_DONE;

	if (rv_service_check(&values->once.service, values->once.argv, &err) != 0)
		return rv_cli_usage("%s", err.message);
	if (rv_describe(&out, &values->once.service, values->once.argv, &err) != 0)
		status = rv_cli_fail(&err);
	else
		(void)rv_cli_write(out.data, out.len);
	rv_buffer_release(&out);
	return rv_cli_end(status);
}

static int run_probe(const struct options *values)
{
	struct rv_buffer out = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	bool holds = false;
	int status;

	if (rv_probe_all(&out, values->once.service.limits.cgroup, &holds, &err) != 0) {
		status = rv_cli_fail(&err);
	} else {
		(void)rv_cli_write(out.data, out.len);
		status = holds ? RV_EXIT_DONE : RV_EXIT_NEEDS_SOMEONE;
	}
	rv_buffer_release(&out);
	return rv_cli_end(status);
}

static int run_wrong(const struct options *values)
{
	(void)values;
	return rv_cli_usage("--stream, --describe, --probe and --reap are one too many");
}

static int (*choose(const struct options *values))(const struct options *)
{
	if (values->stream + values->describe + values->probe + values->reap > 1)
		return run_wrong;
	if (values->reap)
		return run_reap;
	return values->stream ? run_stream : values->describe ? run_describe : values->probe ? run_probe : run_once;
}

/* Every list, and where its array goes. */
struct list {
	struct rv_strings *from;
	const char *const **to;
};

#define LISTS 7

static void list_all(struct options *values, struct list lists[LISTS])
{
	struct rv_service_options *service = &values->once.service;
	const struct list all[LISTS] = {
		{ &values->allow_env, &service->allow_env },
		{ &values->set_env, &service->set_env },
		{ &values->launcher_env, &service->isolate.launcher_env },
		{ &values->executors, &service->isolate.executors },
		{ &values->ro, &service->ro },
		{ &values->rw, &service->rw },
		{ &values->engine_args, &service->isolate.container.engine_args },
	};

	memcpy(lists, all, sizeof all);
}

static int run(struct options *values)
{
	struct rv_error err = RV_ERROR_INIT;
	struct list lists[LISTS];
	int status = 0;

	list_all(values, lists);
	for (size_t i = 0; i < LISTS; i++) {
		*lists[i].to = terminated(lists[i].from);
		if (*lists[i].to == NULL) {
			(void)rv_error_nomem(&err);
			status = rv_cli_fail(&err);
		}
	}
	values->once.service.isolate.one_shot = !values->stream;
	values->once.service.isolate.ro = values->once.service.ro;
	values->once.service.isolate.rw = values->once.service.rw;
	if (status == 0)
		status = choose(values)(values);
	for (size_t i = 0; i < LISTS; i++)
		rv_strings_release(lists[i].from);
	return status;
}

int main(int argc, char **argv)
{
	struct options values = { .once.service = {
		.timeout_ms = 30000, .grace_ms = 2000, .max_output = 1U << 20, .credentials_timeout_ms = 10000,
		.ledger_wait_ms = 10000, .tool_stderr = "tail", .limits = RV_LIMITS_NONE,
		.isolate.container = {
			.engine = "docker", .network = "none", .memory = "256m", .cpus = "1.0", .pids_limit = 128,
			.cap_drop = "ALL", .work_mount = "/work",
		},
	}, .jobs = 1 };
	int operand;
	int status;

	rv_cli_start("rv-exec");
	if (rv_cli_parse(&program, argc, argv, &values, &operand, &status) != 0)
		return status;
	values.once.argv = argv + operand;
	values.once.service.keep_on_error = values.keep == 1;
	values.once.service.kernel = values.once.service.isolate.sandbox == RV_SANDBOX_KERNEL;
	values.once.service.power = values.durability == 1;
	values.once.service.outcomes_only = values.phases == 1;
	values.once.coordinates = values.agent_seq_given || values.ordinal_given;
	return run(&values);
}

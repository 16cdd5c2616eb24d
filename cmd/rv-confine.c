/* rv-confine(1): run one bounded program against read-only snapshots and report what was observed. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/signals.h"
#include "lib/cli/cli.h"
#include "lib/confine/hostprobe.h"
#include "lib/confine/once.h"
#include "lib/confine/stream.h"
#include "lib/json/write.h"

struct options {
	struct rv_confine_once once;
	struct rv_strings trees;
	const char *describe_runtime;
	bool describe_profile;
	const char *snapshot;
	bool probe;
	int profile;
	const char *root;
	int64_t max_retained;
	const char *receipt;
	const char *cgroup;
	const char *on_event;
	int verify;
	bool allow_home;
	bool stream;
	int64_t jobs;
	bool jobs_given;
	bool unordered;
	uint64_t max_output, max_data, max_memory;
	bool limits_given, memory_given;
};

#define AT(member) offsetof(struct options, member)

static const char profiles[] = "linux/1|linux/1+proc|landlock/1";

static const struct rv_option table[] = {
	{ "runtime", 0, RV_OPT_STRING, AT(once.runtime), RV_UNSEEN, "PATH", "the ELF program that runs the entry", 0, 0, NULL },
	{ "runtime-tree", 0, RV_OPT_LIST, AT(trees), RV_UNSEEN, "DIR", "a directory that the runtime reads; repeatable", 0, 0, NULL },
	{ "allow-home-tree", 0, RV_OPT_FLAG, AT(allow_home), RV_UNSEEN, NULL, "let a runtime tree lie in /home or /root", 0, 0, NULL },
	{ "program", 0, RV_OPT_STRING, AT(once.program), RV_UNSEEN, "DIR|ARCHIVE", "the snapshot that holds the entry", 0, 0, NULL },
	{ "entry", 0, RV_OPT_STRING, AT(once.entry), RV_UNSEEN, "FILE", "the program's file that is run", 0, 0, NULL },
	{ "input", 0, RV_OPT_STRING, AT(once.input), RV_UNSEEN, "DIR|ARCHIVE", "the snapshot that is the working directory; empty if not given", 0, 0, NULL },
	{ "pins", 0, RV_OPT_STRING, AT(once.pins), RV_UNSEEN, "FILE", "the four digests that must be met", 0, 0, NULL },
	{ "unpinned", 0, RV_OPT_FLAG, AT(once.unpinned), RV_UNSEEN, NULL, "take runtime, profile and snapshots as they are", 0, 0, NULL },
	{ "profile", 0, RV_OPT_CHOICE, AT(profile), RV_UNSEEN, NULL, "the boundary (linux/1)", 0, 0, profiles },
	{ "timeout", 0, RV_OPT_DURATION, AT(once.bounds.timeout_ms), AT(limits_given), "DUR", "from the spawn to the end (30s)", 0, 0, NULL },
	{ "max-output", 0, RV_OPT_SIZE, AT(max_output), AT(limits_given), "SIZE", "of stdout and stderr together (1MiB)", 0, 0, NULL },
	{ "cpu-seconds", 0, RV_OPT_INTEGER, AT(once.bounds.cpu_seconds), AT(limits_given), "N", "processor time (30)", 1, RV_CONFINE_CPU_MAX_S, NULL },
	{ "max-descriptors", 0, RV_OPT_INTEGER, AT(once.bounds.max_descriptors), AT(limits_given), "N", "open descriptors (64)", RV_CONFINE_DESCRIPTORS_MIN, RV_CONFINE_DESCRIPTORS_MAX, NULL },
	{ "max-data", 0, RV_OPT_SIZE, AT(max_data), AT(limits_given), "SIZE", "RLIMIT_DATA, which is no cap on hostile memory (1GiB)", 0, 0, NULL },
	{ "max-memory", 0, RV_OPT_SIZE, AT(max_memory), AT(memory_given), "SIZE", "stop a program that takes more, by a cgroup or a watch", 0, 0, NULL },
	{ "cgroup", 0, RV_OPT_STRING, AT(cgroup), RV_UNSEEN, "DIR", "a delegated cgroup v2 directory for that (root: cgroup v1)", 0, 0, NULL },
	{ "root", 0, RV_OPT_STRING, AT(root), RV_UNSEEN, "DIR", "where the slots are: canonical, the caller's, 0700\n(a private one under $TMPDIR)", 0, 0, NULL },
	{ "max-retained", 0, RV_OPT_INTEGER, AT(max_retained), RV_UNSEEN, "N", "slots under the root (8)", 1, RV_CONFINE_MAX_RETAINED, NULL },
	{ "receipt", 0, RV_OPT_STRING, AT(receipt), RV_UNSEEN, "FILE", "run only runtimes and profiles that this receipt of\nrv-conform names", 0, 0, NULL },
	{ "stdout", 0, RV_OPT_STRING, AT(once.stdout_file), RV_UNSEEN, "FILE", "write the program's stdout there too, as it is", 0, 0, NULL },
	{ "stderr", 0, RV_OPT_STRING, AT(once.stderr_file), RV_UNSEEN, "FILE", "write the program's stderr there too, as it is", 0, 0, NULL },
	{ "on-event", 0, RV_OPT_STRING, AT(on_event), RV_UNSEEN, "'PROGRAM ...'", "run this program at each diagnostic event", 0, 0, NULL },
	{ "stream", 0, RV_OPT_FLAG, AT(stream), RV_UNSEEN, NULL, "read requests from standard input, one a line", 0, 0, NULL },
	{ "jobs", 0, RV_OPT_INTEGER, AT(jobs), AT(jobs_given), "N", "so many runs of a stream at once (1)", 1, RV_CONFINE_MAX_RETAINED, NULL },
	{ "unordered", 0, RV_OPT_FLAG, AT(unordered), RV_UNSEEN, NULL, "print results as they come", 0, 0, NULL },
	{ "verify", 0, RV_OPT_CHOICE, AT(verify), RV_UNSEEN, NULL, "how a stream's runtimes are verified around each run (digest)", 0, 0, "digest|identity" },
	{ "describe-runtime", 0, RV_OPT_STRING, AT(describe_runtime), RV_UNSEEN, "PATH", "print a runtime's identity", 0, 0, NULL },
	{ "describe-profile", 0, RV_OPT_FLAG, AT(describe_profile), RV_UNSEEN, NULL, "print a profile's identity", 0, 0, NULL },
	{ "snapshot", 0, RV_OPT_STRING, AT(snapshot), RV_UNSEEN, "DIR|ARCHIVE", "print a snapshot's identity", 0, 0, NULL },
	{ "probe", 0, RV_OPT_FLAG, AT(probe), RV_UNSEEN, NULL, "print what this host can enforce, found by doing it", 0, 0, NULL },
};

static const char *const usage[] = {
	"--describe-runtime PATH [--runtime-tree DIR]...",
	"--describe-profile [--profile NAME]",
	"--snapshot DIR|ARCHIVE",
	"--probe",
	"[--root DIR] --runtime PATH [--runtime-tree DIR]... --program DIR|ARCHIVE\n"
	"                  --entry FILE [--input DIR|ARCHIVE] (--pins FILE | --unpinned) [limits]\n"
	"                  [-- ARG...]",
	"--stream [--jobs N] [--unordered] [--root DIR]",
	NULL,
};

static const char *const statuses[] = {
	"0  observed and attributable, whatever the program's own exit; described",
	"1  observed, not attributable",
	"2  the command line is wrong; an invalid request",
	"3  not started",
	"4  unresolved: not known, never to be read as ended",
	"5  the system failed: no such file, no memory, a failed write; --probe: linux/1\n"
	"   cannot be had here",
	NULL,
};

static const struct rv_program program = {
	.name = "rv-confine",
	.usage = usage,
	.about = "Run one bounded program against read-only snapshots and report what was observed.",
	.options = table,
	.count = sizeof table / sizeof table[0],
	.statuses = statuses,
};

static const char *profile_name(const struct options *o)
{
	static const char *const names[] = { "linux/1", "linux/1+proc", "landlock/1" };

	return names[o->profile];
}

static int fail(const struct rv_error *err)
{
	int status = rv_cli_fail(err);

	return err->code == RV_E_REQUEST ? RV_EXIT_USAGE : status;
}

static void say(const char *message)
{
	rv_cli_say("%s", message);
}

/* Print what was composed, or the error as data too where somebody reads it. */
static int print(struct rv_buffer *out, const struct rv_error *err)
{
	int status = err->code != RV_E_NONE ? fail(err) : RV_EXIT_DONE;

	if (status != RV_EXIT_DONE) {
		rv_buffer_clear(out);
		rv_buffer_add_string(out, "{\"ok\":false,\"error\":{");
		rv_json_member_string(out, "code", rv_code_name(err->code));
		rv_json_member_string(out, "message", err->message);
		rv_buffer_add_string(out, "}}");
	}
	if (status == RV_EXIT_DONE || err->code == RV_E_HOST || err->code == RV_E_RUNTIME) {
		rv_buffer_add_byte(out, '\n');
		(void)rv_cli_write(out->data, out->len);
	}
	return status;
}

static int describe(const struct options *o)
{
	struct rv_buffer out = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	int status;

	if (o->describe_runtime != NULL)
		(void)rv_confine_describe_runtime(&out, o->describe_runtime, o->trees.items, o->trees.count, o->allow_home, &err);
	else if (o->describe_profile)
		(void)rv_confine_describe_profile(&out, profile_name(o), &err);
	else
		(void)rv_confine_describe_snapshot(&out, o->snapshot, &err);
	status = print(&out, &err);
	rv_buffer_release(&out);
	return status;
}

static int probe(const struct options *o)
{
	struct rv_buffer out = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	bool good = false;
	int status;

	if (rv_hostprobe_add_json(&out, o->cgroup, &good, &err) == 0) {
		(void)rv_cli_write(out.data, out.len);
		status = good ? RV_EXIT_DONE : RV_EXIT_SYSTEM;
	} else {
		status = fail(&err);
	}
	rv_buffer_release(&out);
	return status;
}

static void cancel_all(void)
{
	(void)kill(getpid(), SIGTERM); /* blocked: it is only seen; ignored: what runs goes on to its own end */
}

static int run_stream(const struct options *o, struct rv_confine *confine)
{
	struct rv_confine_stream stream = { .confine = confine, .jobs = (size_t)o->jobs, .unordered = o->unordered,
					    .in = STDIN_FILENO, .write = rv_cli_write, .gone = cancel_all };
	struct rv_error err = RV_ERROR_INIT;
	int worst = 0;

	if (rv_confine_stream_run(&stream, &worst, &err) == 0)
		return worst;
	return fail(&err);
}

static int run_once(const struct options *o, struct rv_confine *confine)
{
	struct rv_buffer out = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	int status;

	if (rv_confine_run_once(confine, &o->once, &out, &status, &err) != 0)
		status = fail(&err);
	if (out.len > 0)
		(void)rv_cli_write(out.data, out.len);
	rv_buffer_release(&out);
	return status;
}

static int run(const struct options *o)
{
	struct rv_confine_options options = {
		.root = o->root, .max_retained = (int)o->max_retained, .by_identity = o->verify == 1,
		.allow_home_trees = o->allow_home, .receipt = o->receipt,
		.cgroup = o->cgroup, .say = say, .find = rv_policy_find,
	};
	struct rv_confine confine;
	struct rv_error err = RV_ERROR_INIT;
	char **words = NULL;
	size_t count = 0;
	const char *left = NULL;
	int status;

	if (o->on_event != NULL && (rv_text_split(o->on_event, &words, &count, &err) != 0 || count == 0))
		return rv_cli_usage("--on-event names no program");
	options.event_command = words;
	(void)signal(SIGPIPE, SIG_IGN); /* a reader that goes away is a cancellation, and leaves nothing behind */
	options.cancel = rv_signals_watch();
	if (options.cancel < 0) { /* blocked they are, and nobody would see them */
		(void)rv_error_set(&err, RV_E_IO, errno, "signalfd");
		free(words);
		return fail(&err);
	}
	rv_cli_heed(options.cancel);
	if (rv_confine_start(&confine, &options, &err) != 0)
		status = fail(&err);
	else
		status = o->stream ? run_stream(o, &confine) : run_once(o, &confine);
	rv_confine_end(&confine, &left);
	if (left != NULL)
		rv_cli_say("something stays in %s", left);
	rv_confine_release(&confine);
	free(words);
	return status;
}

/* What only some forms take. */
static int check_forms(const struct options *o, int operands)
{
	bool one = o->once.runtime != NULL || o->once.program != NULL || o->once.entry != NULL || o->once.input != NULL ||
		   o->once.pins != NULL || o->once.unpinned || o->limits_given || o->memory_given || o->once.stdout_file != NULL ||
		   o->once.stderr_file != NULL;
	int forms = (o->describe_runtime != NULL) + o->describe_profile + (o->snapshot != NULL) + o->probe + o->stream;

	if (forms > 1)
		return rv_cli_usage("--describe-runtime, --describe-profile, --snapshot, --probe and --stream exclude each other");
	if (forms == 1 && (one || operands > 0))
		return rv_cli_usage("the options and the operands of one run do not go with another form");
	if ((o->jobs_given || o->unordered || o->verify == 1) && !o->stream)
		return rv_cli_usage("--jobs, --unordered and --verify identity need --stream");
	if (o->trees.count > 0 && forms == 1 && o->describe_runtime == NULL)
		return rv_cli_usage("--runtime-tree does not go with this form");
	if (o->cgroup != NULL && forms == 1 && !o->stream && !o->probe)
		return rv_cli_usage("--cgroup does not go with this form");
	if (o->jobs > o->max_retained)
		return rv_cli_usage("--jobs is above --max-retained: a run without a slot is refused");
	return RV_EXIT_DONE;
}

static int check_once(const struct options *o)
{
	if (o->once.runtime == NULL || o->once.program == NULL || o->once.entry == NULL)
		return rv_cli_usage("a run needs --runtime, --program and --entry");
	if ((o->once.pins != NULL) == o->once.unpinned)
		return rv_cli_usage("a run needs one of --pins and --unpinned");
	return RV_EXIT_DONE;
}

static int start(struct options *o, int operands, char *const *operand)
{
	struct rv_error err = RV_ERROR_INIT;
	int status = check_forms(o, operands);

	if (status != RV_EXIT_DONE)
		return status;
	if (o->describe_runtime != NULL || o->describe_profile || o->snapshot != NULL)
		return describe(o);
	if (o->probe)
		return probe(o);
	if (o->root != NULL && rv_root_check_name(o->root, &err) != 0)
		return rv_cli_usage("--root: %s", err.message);
	status = o->stream ? RV_EXIT_DONE : check_once(o);
	o->once.profile = profile_name(o);
	o->once.trees = o->trees.items;
	o->once.tree_count = o->trees.count;
	o->once.args = operand;
	o->once.arg_count = (size_t)operands;
	o->once.bounds.max_output = rv_confine_bound_of(o->max_output);
	o->once.bounds.max_data = rv_confine_bound_of(o->max_data);
	/* none is not what 0 asks for */
	o->once.bounds.max_memory = o->memory_given && o->max_memory == 0 ? -1 : rv_confine_bound_of(o->max_memory);
	return status == RV_EXIT_DONE ? run(o) : status;
}

int main(int argc, char **argv)
{
	struct options options = { .once = { .bounds = RV_BOUNDS_DEFAULT }, .max_retained = RV_CONFINE_RETAINED, .jobs = 1,
				   .max_output = RV_CONFINE_OUTPUT, .max_data = RV_CONFINE_DATA };
	int operand = 0, status = 0;

	rv_cli_start("rv-confine");
	if (rv_cli_parse(&program, argc, argv, &options, &operand, &status) == 0)
		status = start(&options, argc - operand, argv + operand);
	rv_strings_release(&options.trees);
	rv_cli_leave(status);
}

/* rv-conform(1): hold an executor to its promises. */
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/cli/cli.h"
#include "lib/cli/progress.h"
#include "lib/conform/builtin.h"
#include "lib/conform/receipt.h"
#include "lib/conform/session.h"
#include "lib/conform/trick.h"

struct options {
	struct rv_session_plan plan;
	struct rv_strings only;
	struct rv_strings skip;
	struct rv_strings engine_args;
	int suite;
	int format;
	int64_t jobs;
	bool list;
	bool adapter;
	const char *trick;
	const char *check_receipt;
};

#define AT(member) offsetof(struct options, member)

static const struct rv_option options[] = {
	{ "suite", 0, RV_OPT_CHOICE, AT(suite), RV_UNSEEN, NULL, "the checks of one suite (all)", 0, 0, "executor|ledger|key|kernel|container|confine|all" },
	{ "format", 0, RV_OPT_CHOICE, AT(format), RV_UNSEEN, NULL, "how results are written (pretty)", 0, 0, "pretty|tap|junit|jsonl" },
	{ "report", 0, RV_OPT_STRING, AT(plan.report), RV_UNSEEN, "FILE", "write them also to FILE: .tap, .xml (JUnit) or .jsonl", 0, 0, NULL },
	{ "only", 0, RV_OPT_LIST, AT(only), RV_UNSEEN, "GLOB", "only checks whose id matches; repeatable", 0, 0, NULL },
	{ "skip", 0, RV_OPT_LIST, AT(skip), RV_UNSEEN, "GLOB", "leave out checks whose id matches; repeatable", 0, 0, NULL },
	{ "list", 0, RV_OPT_FLAG, AT(list), RV_UNSEEN, NULL, "print the checks and run none", 0, 0, NULL },
	{ "image", 0, RV_OPT_STRING, AT(plan.place.image), RV_UNSEEN, "IMAGE", "run the suite container in this image, which has a shell and its usual tools", 0, 0, NULL },
	{ "engine", 0, RV_OPT_STRING, AT(plan.place.engine), RV_UNSEEN, "'ENGINE ...'", "the engine's client, and its global flags", 0, 0, NULL },
	{ "engine-arg", 0, RV_OPT_LIST, AT(engine_args), RV_UNSEEN, "ARG", "a further flag of the engine's 'run'; repeatable", 0, 0, NULL },
	{ "jobs", 'j', RV_OPT_INTEGER, AT(jobs), RV_UNSEEN, "N", "so many checks at a time (4)", 1, 64, NULL },
	{ "timeout", 0, RV_OPT_DURATION, AT(plan.timeout_ms), RV_UNSEEN, "DUR", "the most that one check may take (30s)", 0, 0, NULL },
	{ "strict-skips", 0, RV_OPT_FLAG, AT(plan.strict_skips), RV_UNSEEN, NULL, "a skipped check is a failed one", 0, 0, NULL },
	{ "receipt", 0, RV_OPT_STRING, AT(plan.receipt), RV_UNSEEN, "FILE", "create FILE: what was held to the battery, and how it went", 0, 0, NULL },
	{ "previous", 0, RV_OPT_STRING, AT(plan.previous), RV_UNSEEN, "FILE", "chain the receipt to the one before it", 0, 0, NULL },
	{ "source", 0, RV_OPT_STRING, AT(plan.source), RV_UNSEEN, "DIR", "put the files of this source tree into the receipt, too", 0, 0, NULL },
	{ "check-receipt", 0, RV_OPT_STRING, AT(check_receipt), RV_UNSEEN, "FILE", "name each difference between a receipt and what is there", 0, 0, NULL },
	{ "adapter", 0, RV_OPT_FLAG, AT(adapter), RV_UNSEEN, NULL, "be the adapter of rv-exec: answer one line of standard input", 0, 0, NULL },
	{ "trick", 0, RV_OPT_STRING, AT(trick), RV_UNSEEN, "NAME", "be the tool of a check, where no shell can be it", 0, 0, NULL },
};

static const char *const usage[] = {
	"[options] [-- ADAPTER [ARG...]]",
	"--list [--suite SUITE] [--only GLOB]... [--skip GLOB]...",
	"--check-receipt FILE",
	"--adapter [-- QUESTION [ARG...]]",
	"--trick NAME -- DIR NONCE PIDNS",
	NULL,
};

static const char *const statuses[] = {
	"0  every check that was run passed",
	"1  a check failed, or a receipt differs",
	"2  the command line is wrong",
	"3  --adapter: the request is refused",
	"5  the battery could not run, or had nothing to run",
	NULL,
};

static const struct rv_program program = {
	"rv-conform", usage, "Hold an executor to its promises.", options, sizeof options / sizeof options[0], statuses,
};

static void write_out(const void *bytes, size_t len)
{
	rv_cli_progress_clear();
	(void)rv_cli_write(bytes, len);
}

/* A list as a NULL-terminated array. */
static const char *const *terminated(struct rv_strings *list)
{
	const char **grown = realloc(list->items, (list->count + 1) * sizeof *grown);

	if (grown == NULL)
		return NULL;
	list->items = grown;
	grown[list->count] = NULL;
	return grown;
}

static int fail(const struct rv_error *err)
{
	return err->code == RV_E_USAGE ? rv_cli_usage("%s", err->message) : rv_cli_fail(err);
}

/* Print what a service appended, and end with its status. */
static int print(struct rv_buffer *out, int result, const struct rv_error *err)
{
	if (result == 0 && out->len > 0)
		(void)rv_cli_write(out->data, out->len);
	return result == 0 ? RV_EXIT_DONE : fail(err);
}

static int answer(char *const *words)
{
	struct rv_buffer out = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	int status = print(&out, rv_builtin_answer(words, &out, &err), &err);

	rv_buffer_release(&out);
	return status;
}

/* The words of a script: DIR NONCE PIDNS. */
static int trick(const char *name, char *const *words, int count)
{
	if (count != 3)
		return rv_cli_usage("--trick takes DIR NONCE PIDNS");
	return rv_trick(name, words[0], words[2]);
}

static int list(const struct rv_session_plan *plan)
{
	struct rv_buffer out = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	int status = print(&out, rv_session_list(plan, &out, &err), &err);

	rv_buffer_release(&out);
	return status;
}

static int check_receipt(const char *path)
{
	struct rv_buffer out = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	int status = print(&out, rv_receipt_check(path, &out, &err), &err);

	if (status == RV_EXIT_DONE && out.len > 0)
		status = RV_EXIT_NEEDS_SOMEONE;
	rv_buffer_release(&out);
	return status;
}

static int run(const struct rv_session_plan *plan)
{
	struct rv_session_result result;
	struct rv_error err = RV_ERROR_INIT;
	int status = rv_session_run(plan, &result, &err);

	rv_cli_progress_clear();
	if (status != 0)
		return fail(&err);
	if (result.interrupted != 0) {
		if (result.interrupted != SIGPIPE)
			rv_cli_say("interrupted: %zu checks were done", result.counts.passed + result.counts.failed + result.counts.skipped);
		(void)signal(result.interrupted, SIG_DFL);
		(void)raise(result.interrupted);
	}
	return result.counts.failed > 0 ? RV_EXIT_NEEDS_SOMEONE : RV_EXIT_DONE;
}

int main(int argc, char **argv)
{
	struct options values = { .suite = 6, .jobs = 4, .plan = { .timeout_ms = 30000 } };
	static const char *const suites[] = { "executor", "ledger", "key", "kernel", "container", "confine", NULL };
	int operand;
	int status;

	rv_cli_start("rv-conform");
	if (rv_cli_parse(&program, argc, argv, &values, &operand, &status) != 0)
		return status;
	if (values.adapter)
		return rv_cli_end(answer(argv + operand));
	if (values.trick != NULL)
		return trick(values.trick, argv + operand, argc - operand);
	values.plan.suite = suites[values.suite];
	values.plan.only = terminated(&values.only);
	values.plan.skip = terminated(&values.skip);
	values.plan.place.engine_args = terminated(&values.engine_args);
	if (values.plan.only == NULL || values.plan.skip == NULL || values.plan.place.engine_args == NULL) {
		struct rv_error err = RV_ERROR_INIT;

		(void)rv_error_nomem(&err);
		return rv_cli_fail(&err);
	}
	values.plan.format = (enum rv_format)values.format;
	values.plan.jobs = (size_t)values.jobs;
	values.plan.colour = rv_cli_colour(STDOUT_FILENO);
	values.plan.tap13 = getenv("HARNESS_ACTIVE") != NULL;
	values.plan.adapter = (const char *const *)(argv + operand);
	values.plan.write = write_out;
	values.plan.progress = rv_cli_progress;
	values.plan.heed = rv_cli_heed;
	if (values.check_receipt != NULL)
		status = check_receipt(values.check_receipt);
	else
		status = values.list ? list(&values.plan) : run(&values.plan);
	rv_strings_release(&values.only);
	rv_strings_release(&values.skip);
	rv_strings_release(&values.engine_args);
	return rv_cli_end(status);
}

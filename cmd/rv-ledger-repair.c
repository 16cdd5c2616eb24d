/* rv-ledger-repair(1): mend the torn last line of a ledger. */
#include <signal.h>
#include <stddef.h>

#include "lib/cli/cli.h"
#include "lib/json/write.h"
#include "lib/ledger/repair.h"

#define WAIT_MS 15000

static const struct rv_option options[] = {
	{ "check", 0, RV_OPT_FLAG, offsetof(struct rv_repair_options, check), RV_UNSEEN, NULL, "write nothing, and tell what would be done", 0, 0, NULL },
	{ "wait", 0, RV_OPT_DURATION, offsetof(struct rv_repair_options, wait_ms), RV_UNSEEN, "DUR", "how long to wait for other writers (15s)", 0, 0, NULL },
};

static const char *const usage[] = {
	"[--check] [--wait DUR] FILE ...",
	NULL,
};

static const char *const statuses[] = {
	"0  nothing needs a repair, any more",
	"1  with --check: a repair is needed",
	"2  the command line is wrong",
	"4  a file is damaged elsewhere than at its end, and was left as it is",
	"5  the system failed: no such file, the locks were not got in time, a failed write",
	NULL,
};

static const struct rv_program program = {
	.name = "rv-ledger-repair",
	.usage = usage,
	.about = "Mend the torn last line of a ledger.",
	.options = options,
	.count = sizeof options / sizeof options[0],
	.statuses = statuses,
};

static void add_result(struct rv_buffer *out, const char *path, const struct rv_repair *repair)
{
	const struct rv_repair_result *result = &repair->result;

	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "file", path);
	rv_json_member_string(out, "action", rv_repair_action_name(result->action));
	if (result->action == RV_REPAIR_NONE) {
		rv_json_member_null(out, "line");
		rv_json_member_null(out, "offset");
		rv_json_member_null(out, "bytes");
		rv_json_member_null(out, "sha256");
	} else {
		rv_json_member_int(out, "line", (int64_t)repair->line);
		rv_json_member_int(out, "offset", (int64_t)result->offset);
		rv_json_member_int(out, "bytes", (int64_t)result->bytes);
		rv_json_member_string(out, "sha256", result->sha256);
	}
	rv_buffer_add_string(out, "}\n");
}

static int print_result(const char *path, const struct rv_repair *repair, bool check)
{
	struct rv_buffer line = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	int status = check && repair->result.action != RV_REPAIR_NONE ? RV_EXIT_NEEDS_SOMEONE : RV_EXIT_DONE;

	add_result(&line, path, repair);
	if (rv_buffer_check(&line, &err) != 0)
		status = rv_cli_fail(&err);
	else
		(void)rv_cli_write(line.data, line.len);
	rv_buffer_release(&line);
	if (repair->result.misshapen)
		rv_cli_say("%s:%llu: byte %llu: JSON, but no row of a ledger: with its newline it is damage", path,
			   (unsigned long long)repair->line, (unsigned long long)repair->result.offset);
	if (repair->result.stray_copies > 0)
		rv_cli_say("%s: %u copies of rows beside it (.torn.*) that it does not hold were left", path,
			   repair->result.stray_copies);
	return status;
}

static void say_damage(const char *path, const struct rv_scan *scan)
{
	for (size_t i = 0; i < scan->damage_count; i++) {
		const struct rv_damage *damage = &scan->damage[i];
		char hex[RV_SHA256_HEX];

		rv_hex(damage->sha256, RV_SHA256_SIZE, hex);
		rv_cli_say("%s:%llu: byte %llu: sha256 %s: %s", path, (unsigned long long)damage->place.line,
			   (unsigned long long)damage->place.offset, hex, damage->reason);
	}
}

static int repair_file(const char *path, const struct rv_repair_options *values)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_repair repair;
	int status;

	if (rv_repair_run(&repair, path, values, &err) == 0) {
		status = print_result(path, &repair, values->check);
	} else {
		if (err.code == RV_E_CORRUPT)
			say_damage(path, &repair.scan);
		status = rv_cli_fail(&err);
	}
	rv_repair_release(&repair);
	return status;
}

int main(int argc, char **argv)
{
	struct rv_repair_options values = { .check = false, .wait_ms = WAIT_MS };
	int operand, status, worst = RV_EXIT_DONE;

	rv_cli_start("rv-ledger-repair");
	(void)signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is then a failed write, and not a death in the middle */
	if (rv_cli_parse(&program, argc, argv, &values, &operand, &status) != 0)
		return rv_cli_end(status);
	if (operand == argc)
		return rv_cli_end(rv_cli_usage("no ledger was named"));
	for (int i = operand; i < argc; i++) {
		status = repair_file(argv[i], &values);
		worst = status > worst ? status : worst;
	}
	return rv_cli_end(worst);
}

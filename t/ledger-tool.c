/*
 * What tests do to a ledger through the library, and as a stranger:
 *
 *   append FILE             one append of the rows on stdin
 *   live FILE UNTIL         an intent whose lock is held until stdin ends; prints its attemptId
 *   lock FILE               hold the append lock until stdin ends; prints "locked"
 *   hold-open FILE          have it open for reading until stdin ends; prints "open"
 *   flood FILE APPENDS ROWS  so many appends of so many rows each; prints the rows a second
 *   engine FILE COUNT       append COUNT rows as the engine does: open, write, close, no lock; prints each id
 *   engine-at FILE SIGN STOP COUNT   the same as soon as the file SIGN is there; nothing if STOP is first
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/digest/digest.h"
#include "lib/ledger/append.h"
#include "lib/ledger/lock.h"
#include "lib/ledger/row.h"

static int fail(const struct rv_error *err)
{
	fprintf(stderr, "ledger-tool: %s: %s\n", rv_code_name(err->code), err->message);
	return EXIT_FAILURE;
}

static struct rv_ledger_options options_of(void)
{
	const char *wait = getenv("LEDGER_WAIT_MS");

	return (struct rv_ledger_options){ .power = getenv("LEDGER_POWER") != NULL, .unsafe_fs = false,
					   .wait_ms = wait != NULL ? strtol(wait, NULL, 10) : 10000 };
}

static void wait_for_end(void)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

static void say(const char *text)
{
	puts(text);
	(void)fflush(stdout);
}

static int append(const char *path)
{
	struct rv_ledger_options options = options_of();
	rv_auto_buffer struct rv_buffer rows = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_ledger *ledger;
	int result;

	if (rv_io_read_all(STDIN_FILENO, &rows, &err) != 0 || rv_ledger_open(&ledger, path, &options, &err) != 0)
		return fail(&err);
	result = rv_ledger_append(ledger, rows.data, rows.len, &err);
	rv_ledger_close(ledger);
	return result == 0 ? EXIT_SUCCESS : fail(&err);
}

static struct rv_attempt attempt_of(const char *id)
{
	return (struct rv_attempt){
		.idempotency_key = RV_SPAN("key"), .run_id = RV_SPAN("run"), .span_id = RV_SPAN("span"),
		.tool = RV_SPAN("tool"), .args_hash = RV_SPAN("hash"), .executor = RV_SPAN("subprocess"),
		.workdir = RV_SPAN("/w"), .started_at = rv_clock_wall_ms(), .attempt_id = rv_span_of(id),
	};
}

static int live(const char *path, const char *until)
{
	struct rv_ledger_options options = options_of();
	rv_auto_buffer struct rv_buffer row = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_ledger *ledger;
	struct rv_attempt attempt;
	struct rv_writer writer;
	char id[RV_UUID_TEXT];

	if (rv_uuid(id, &err) != 0 || rv_writer_init(&writer, &err) != 0 || rv_ledger_open(&ledger, path, &options, &err) != 0 ||
	    rv_ledger_hold(ledger, &writer.lock, &err) != 0)
		return fail(&err);
	attempt = attempt_of(id);
	writer.until = attempt.started_at + strtol(until, NULL, 10);
	rv_row_add_intent(&row, &attempt, "none", "pid-namespace", &writer);
	if (rv_buffer_check(&row, &err) != 0 || rv_ledger_append(ledger, row.data, row.len, &err) != 0)
		return fail(&err);
	say(id);
	wait_for_end();
	rv_buffer_clear(&row);
	rv_row_add_outcome(&row, &attempt, &(struct rv_outcome){ .duration_ms = 1, .outcome = "ok", .exit_code = 0, .signal = NULL });
	if (rv_buffer_check(&row, &err) != 0 || rv_ledger_append(ledger, row.data, row.len, &err) != 0)
		return fail(&err);
	rv_ledger_close(ledger);
	return EXIT_SUCCESS;
}

static int hold(const char *path, int flags, bool lock)
{
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_fd int fd = rv_io_open(path, flags, 0, &err);

	if (fd < 0 || (lock && rv_append_lock(fd, rv_clock_mono_ms() + 5000, &err) != 0))
		return fail(&err);
	say(lock ? "locked" : "open");
	wait_for_end();
	return EXIT_SUCCESS;
}

static int flood(const char *path, long appends, long rows)
{
	struct rv_ledger_options options = options_of();
	rv_auto_buffer struct rv_buffer batch = RV_BUFFER_INIT;
	struct rv_attempt attempt = attempt_of("00000000-0000-4000-8000-000000000000");
	struct rv_error err = RV_ERROR_INIT;
	struct rv_ledger *ledger;
	int64_t start;

	for (long i = 0; i < rows; i++)
		rv_row_add_outcome(&batch, &attempt, &(struct rv_outcome){ .outcome = "ok", .exit_code = 0 });
	if (rv_buffer_check(&batch, &err) != 0 || rv_ledger_open(&ledger, path, &options, &err) != 0)
		return fail(&err);
	start = rv_clock_mono_us();
	for (long i = 0; i < appends; i++) {
		if (rv_ledger_append(ledger, batch.data, batch.len, &err) != 0)
			return fail(&err);
	}
	printf("%.0f\n", (double)(appends * rows) * 1e6 / (double)(rv_clock_mono_us() - start + 1));
	rv_ledger_close(ledger);
	return EXIT_SUCCESS;
}

static int engine(const char *path, long count)
{
	for (long i = 0; i < count; i++) {
		rv_auto_buffer struct rv_buffer row = RV_BUFFER_INIT;
		struct rv_error err = RV_ERROR_INIT;
		char id[64];
		struct rv_attempt attempt;
		rv_auto_fd int fd = rv_io_open(path, O_WRONLY | O_APPEND, 0, &err);

		(void)snprintf(id, sizeof id, "engine-%d-%ld", (int)getpid(), i);
		attempt = attempt_of(id);
		rv_row_add_outcome(&row, &attempt, &(struct rv_outcome){ .outcome = "ok", .exit_code = 0 });
		if (fd < 0 || rv_io_write_all(fd, row.data, row.len, &err) != 0)
			return fail(&err);
		say(id);
	}
	return EXIT_SUCCESS;
}

/* In the middle of a repair: its copy of the torn bytes is the sign. */
static int engine_at(const char *path, const char *sign, const char *stop, long count)
{
	while (access(sign, F_OK) != 0) {
		if (access(stop, F_OK) == 0)
			return EXIT_SUCCESS;
		(void)usleep(100);
	}
	return engine(path, count);
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "engine-at") == 0)
		return engine_at(argv[2], argv[3], argv[4], strtol(argv[5], NULL, 10));
	if (argc == 3 && strcmp(argv[1], "append") == 0)
		return append(argv[2]);
	if (argc == 4 && strcmp(argv[1], "live") == 0)
		return live(argv[2], argv[3]);
	if (argc == 3 && strcmp(argv[1], "lock") == 0)
		return hold(argv[2], O_RDWR, true);
	if (argc == 3 && strcmp(argv[1], "hold-open") == 0)
		return hold(argv[2], O_RDONLY, false);
	if (argc == 5 && strcmp(argv[1], "flood") == 0)
		return flood(argv[2], strtol(argv[3], NULL, 10), strtol(argv[4], NULL, 10));
	if (argc == 4 && strcmp(argv[1], "engine") == 0)
		return engine(argv[2], strtol(argv[3], NULL, 10));
	fprintf(stderr, "ledger-tool: append, live, lock, hold-open, flood, engine\n");
	return 2;
}

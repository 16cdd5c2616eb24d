/* A ledger on a network file system, which fstatfs(2) stands in for here: nothing is appended to it, and no lock
 * on it says that an attempt runs. */
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/ledger/append.h"
#include "lib/ledger/row.h"
#include "lib/ledger/view.h"
#include "t/unit/tap.h"

static uint32_t magic; /* 0: the true one */

int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);

int __wrap_fstatfs(int fd, struct statfs *fs)
{
	int result = __real_fstatfs(fd, fs);

	if (result == 0 && magic != 0)
		fs->f_type = (__typeof__(fs->f_type))magic;
	return result;
}

static char path[] = "/tmp/rv-remote-XXXXXX";

static void die(const char *what, const struct rv_error *err)
{
	printf("Bail out! %s: %s\n", what, err->message);
	exit(EXIT_FAILURE);
}

/* An attempt that runs: its row, and its lock for as long as the ledger is open. */
static struct rv_ledger *start(void)
{
	const struct rv_ledger_options options = { .wait_ms = 1000 };
	rv_auto_buffer struct rv_buffer row = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_attempt attempt = {
		.idempotency_key = RV_SPAN("k"), .run_id = RV_SPAN("r"), .span_id = RV_SPAN("s"), .tool = RV_SPAN("t"),
		.args_hash = RV_SPAN("h"), .executor = RV_SPAN("e"), .workdir = RV_SPAN("/w"), .started_at = rv_clock_wall_ms(),
		.attempt_id = RV_SPAN("a"),
	};
	struct rv_ledger *ledger = NULL;
	struct rv_writer writer;

	if (rv_writer_init(&writer, &err) != 0 || rv_ledger_open(&ledger, path, &options, &err) != 0 ||
	    rv_ledger_hold(ledger, &writer.lock, &err) != 0)
		die("start", &err);
	writer.until = attempt.started_at + 600000;
	rv_row_add_intent(&row, &attempt, "none", "subreaper", &writer);
	if (rv_ledger_append(ledger, row.data, row.len, &err) != 0)
		die("append", &err);
	return ledger;
}

static enum rv_state seen(void)
{
	const struct rv_view_options options = { .threads = 1 };
	const char *paths[] = { path };
	struct rv_error err = RV_ERROR_INIT;
	struct rv_view view;
	enum rv_state state;

	if (rv_view_open(&view, paths, 1, &options, &err) != 0)
		die("scan", &err);
	state = view.orphan_count == 1 ? view.orphans[0].state : RV_STATES;
	rv_view_close(&view);
	return state;
}

int main(void)
{
	static const uint32_t magics[] = { 0x6969, 0x65735546, 0xFE534D42, 0x01021997 };
	const struct rv_ledger_options options = { .wait_ms = 1000 };
	struct rv_error err = RV_ERROR_INIT;
	struct rv_ledger *ledger, *other = NULL;
	int fd = mkstemp(path);

	if (fd < 0)
		return EXIT_FAILURE;
	(void)close(fd);
	ledger = start();
	(void)tap_ok(seen() == RV_STATE_RUNNING, "on a local file system it runs");
	for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
		magic = magics[i];
		(void)tap_ok(seen() == RV_STATE_UNKNOWN, "on 0x%x nobody can say", magic);
		rv_error_clear(&err);
		(void)tap_ok(rv_ledger_open(&other, path, &options, &err) != 0 && err.code == RV_E_LEDGER, "and none is opened there");
	}
	magic = 0;
	rv_ledger_close(ledger);
	(void)tap_ok(seen() == RV_STATE_ORPHAN, "and when it is over it is an orphan");
	(void)unlink(path);
	return tap_end();
}

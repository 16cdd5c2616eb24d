/* The players of the torture of a ledger: t/torture-judge.c says what they do together. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/digest/digest.h"
#include "lib/ledger/append.h"
#include "lib/ledger/lock.h"
#include "lib/ledger/patch.h"
#include "lib/ledger/repair.h"
#include "lib/ledger/row.h"
#include "t/torture.h"

#define WRITERS 16

static struct torture torture;
static int64_t end_ms;
static long rows_wanted; /* 0: until the end */
static atomic_long *rows_confirmed; /* all players' */

const size_t torture_sizes[] = { 0, 100, 300, 1000, 8000, 100000, 2 << 20 };
const size_t torture_size_count = sizeof torture_sizes / sizeof torture_sizes[0];

_Noreturn void torture_die(const char *what, const struct rv_error *err)
{
	fprintf(stderr, "ledger-torture: %s: %s\n", what, err->message);
	_exit(EXIT_FAILURE);
}

static unsigned random_below(unsigned limit)
{
	struct rv_error err = RV_ERROR_INIT;
	uint32_t value;

	if (rv_random(&value, sizeof value, &err) != 0)
		torture_die("random", &err);
	return value % limit;
}

/* A line in a file that only ever gets such lines: short and in one write each. */
static void note(const char *file, const char *text)
{
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_fd int fd = rv_io_open(file, O_WRONLY | O_APPEND | O_CREAT, 0600, &err);
	char line[200];
	int n = snprintf(line, sizeof line, "%s\n", text);

	if (fd < 0 || rv_io_write_all(fd, line, (size_t)n, &err) != 0)
		torture_die(file, &err);
}

void torture_row(struct rv_buffer *row, const char id[RV_UUID_TEXT], size_t padding)
{
	struct rv_error err = RV_ERROR_INIT;
	char *text = malloc(padding + 1);

	if (text == NULL)
		torture_die("row", &err);
	memset(text, 'p', padding);
	rv_buffer_clear(row);
	rv_row_add_outcome(row,
			   &(struct rv_attempt){ .idempotency_key = rv_span_of(id), .run_id = RV_SPAN("r"), .span_id = RV_SPAN("s"),
						 .tool = { text, padding }, .args_hash = RV_SPAN("h"), .executor = RV_SPAN("e"),
						 .workdir = RV_SPAN("/w"), .started_at = 1, .attempt_id = rv_span_of(id) },
			   &(struct rv_outcome){ .outcome = "ok", .exit_code = 0 });
	free(text);
}

/* Some hundred bytes in nine of ten; one of two thousand is of 2 MiB, which a death cuts in two the soonest. */
static size_t random_size(void)
{
	unsigned dice = random_below(2000);

	if (dice == 0)
		return torture_sizes[6];
	if (dice < 4)
		return torture_sizes[5];
	return torture_sizes[dice < 40 ? 4 : dice < 200 ? 3 : dice % 3];
}

static void make_row(struct rv_buffer *row, char id[RV_UUID_TEXT])
{
	struct rv_error err = RV_ERROR_INIT;

	if (rv_uuid(id, &err) != 0)
		torture_die("row", &err);
	torture_row(row, id, random_size());
}

static bool is_over(void)
{
	return rv_clock_mono_ms() >= end_ms || (rows_wanted > 0 && atomic_load(rows_confirmed) >= rows_wanted);
}

static void note_confirmed(const char *id)
{
	note(torture.confirmed, id);
	(void)atomic_fetch_add(rows_confirmed, 1);
}

static void write_rows(void)
{
	struct rv_ledger_options options = { .wait_ms = TORTURE_PATIENCE_MS };
	rv_auto_buffer struct rv_buffer row = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_ledger *ledger;
	char id[RV_UUID_TEXT];
	int64_t lock;

	if (rv_ledger_open(&ledger, torture.ledger, &options, &err) != 0 || rv_ledger_hold(ledger, &lock, &err) != 0)
		torture_die("open", &err);
	while (!is_over()) {
		make_row(&row, id);
		if (rv_ledger_append(ledger, row.data, row.len, &err) != 0)
			torture_die("append", &err);
		note_confirmed(id);
		rv_clock_pause_ms((int)random_below(12));
	}
	rv_ledger_close(ledger);
}

static bool is_torn(int fd, struct rv_buffer *tail)
{
	struct rv_error err = RV_ERROR_INIT;
	uint64_t size, start;

	rv_buffer_clear(tail);
	if (rv_patch_size(fd, &size, &err) != 0)
		torture_die("size", &err);
	/* A read that fails met a repair that made the file longer or a row half written: ask again. */
	return rv_patch_read_tail(fd, size, &start, tail, &err) == 0 && tail->len > 0;
}

/* Would a row that is glued to the tail now be told from it: has a repair its copy already? */
static bool is_copied(const struct rv_buffer *tail)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_sha256 *sha = rv_sha256_new(&err);
	char hex[RV_SHA256_HEX], name[700];

	if (sha == NULL || rv_sha256_hex(sha, tail->data, tail->len, hex, &err) != 0)
		torture_die("sha256", &err);
	rv_sha256_free(sha);
	(void)snprintf(name, sizeof name, "%s.torn.%s", torture.ledger, hex);
	return access(name, F_OK) == 0;
}

static void engine_rows(void)
{
	rv_auto_buffer struct rv_buffer row = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer tail = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	char id[RV_UUID_TEXT];

	for (; !is_over(); rv_clock_pause_ms(1)) {
		rv_auto_fd int gate_fd = rv_io_open(torture.gate, O_RDWR | O_CREAT, 0600, &err);
		rv_auto_fd int fd = rv_io_open(torture.ledger, O_RDWR | O_APPEND, 0, &err);

		if (gate_fd < 0 || fd < 0 || flock(gate_fd, LOCK_SH) != 0)
			torture_die("engine", &err);
		if (is_torn(fd, &tail) && !is_copied(&tail))
			continue;
		make_row(&row, id);
		if (write(fd, row.data, row.len) != (ssize_t)row.len)
			torture_die("engine write", &err);
		note_confirmed(id);
	}
}

/* Tear the tail, with no writer in the middle of anything: as one does that was killed then. */
static void tear(void)
{
	rv_auto_buffer struct rv_buffer tail = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	char self[RV_UUID_TEXT];

	if (rv_uuid(self, &err) != 0)
		torture_die("tear", &err);
	for (unsigned i = 0; !is_over(); i++) {
		rv_auto_fd int gate_fd = rv_io_open(torture.gate, O_RDWR | O_CREAT, 0600, &err);
		rv_auto_fd int fd = rv_io_open(torture.ledger, O_RDWR | O_APPEND, 0, &err);
		char text[100];

		if (gate_fd < 0 || fd < 0 || rv_append_lock(fd, rv_clock_mono_ms() + TORTURE_PATIENCE_MS, &err) != 0 ||
		    flock(gate_fd, LOCK_EX) != 0)
			torture_die("tear", &err);
		if (is_torn(fd, &tail))
			continue;
		(void)snprintf(text, sizeof text, "{\"phase\":\"intent\",\"idempotencyKey\":\"torn-%s-%u", self, i);
		note(torture.torn, text);
		if (rv_io_write_all(fd, text, strlen(text), &err) != 0)
			torture_die("tear", &err);
		rv_append_unlock(fd);
		(void)flock(gate_fd, LOCK_UN);
		rv_clock_pause_ms(1 + (int)random_below(30));
	}
}

static void repair_often(void)
{
	struct rv_repair_options options = { .wait_ms = TORTURE_PATIENCE_MS };

	while (!is_over()) {
		int64_t began = rv_clock_mono_ms();
		struct rv_error err = RV_ERROR_INIT;
		struct rv_repair repair;

		if (rv_repair_run(&repair, torture.ledger, &options, &err) != 0)
			torture_die("repair", &err);
		rv_repair_release(&repair);
		/* It has read the whole ledger: half of its time is the others'. */
		rv_clock_pause_ms((int)(rv_clock_mono_ms() - began) + (int)random_below(40));
	}
}

static pid_t start(void (*role)(void))
{
	struct rv_error err = RV_ERROR_INIT;
	pid_t pid = fork();

	if (pid < 0) { /* kill(2) of -1 would be of everybody */
		(void)rv_error_set(&err, RV_E_IO, errno, "fork");
		torture_die("start", &err);
	}
	if (pid == 0) {
		role();
		_exit(EXIT_SUCCESS);
	}
	return pid;
}

/* A death in the middle of a write tears the tail: not while the engine's writer stands between its
 * look at the tail and its append, which no lock of ours can guard. */
static bool kill_one(pid_t pid)
{
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_fd int gate_fd = rv_io_open(torture.gate, O_RDWR | O_CREAT, 0600, &err);
	int status = 0;

	if (gate_fd < 0 || flock(gate_fd, LOCK_EX) != 0)
		torture_die(torture.gate, &err);
	(void)kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
}

/* Kill one of the killable writers now and then, and start another in its place. */
static int play(unsigned *kills)
{
	pid_t killable[WRITERS / 2], others[WRITERS / 2 + 4];
	int failures = 0, status;

	for (int i = 0; i < WRITERS / 2; i++) {
		killable[i] = start(write_rows);
		others[i] = start(write_rows);
	}
	others[WRITERS / 2] = start(engine_rows);
	others[WRITERS / 2 + 1] = start(tear);
	others[WRITERS / 2 + 2] = start(repair_often);
	others[WRITERS / 2 + 3] = start(repair_often);
	while (!is_over()) {
		unsigned victim = random_below(WRITERS / 2);

		rv_clock_pause_ms((int)random_below(15));
		*kills += kill_one(killable[victim]);
		killable[victim] = start(write_rows);
	}
	for (int i = 0; i < WRITERS / 2; i++)
		failures += waitpid(killable[i], &status, 0) != killable[i] || status != 0;
	for (int i = 0; i < WRITERS / 2 + 4; i++)
		failures += waitpid(others[i], &status, 0) != others[i] || status != 0;
	return failures;
}

int torture_play(const struct torture *where, int64_t until_ms, long rows, unsigned *kills)
{
	struct rv_error err = RV_ERROR_INIT;
	int fd, failures;

	torture = *where;
	end_ms = until_ms;
	rows_wanted = rows;
	rows_confirmed = mmap(NULL, sizeof *rows_confirmed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fd = rv_io_open(torture.ledger, O_WRONLY | O_CREAT, 0600, &err);
	if (fd < 0 || rows_confirmed == MAP_FAILED)
		torture_die(torture.ledger, &err);
	(void)close(fd);
	failures = play(kills);
	(void)munmap(rows_confirmed, sizeof *rows_confirmed);
	return failures;
}

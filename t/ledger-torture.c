/*
 * Everybody at one ledger: writers of this project, half of which are killed at random; a stranger who
 * tears the tail; an engine's writer, which opens, appends and closes without any lock, also in the
 * middle of a repair; two repairers.  Then: no line is damaged, no confirmed row is lost or there
 * twice, and each torn tail is quarantined once, byte-true.
 *
 *   ledger-torture DIR SECONDS
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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
#include "t/unit/tap.h"

#define WRITERS 16
#define PATIENCE_MS 30000

static char path[512], gate[520], log_path[520], torn_path[520];
static int64_t end_ms;

static _Noreturn void die(const char *what, const struct rv_error *err)
{
	fprintf(stderr, "ledger-torture: %s: %s\n", what, err->message);
	_exit(EXIT_FAILURE);
}

static unsigned random_below(unsigned limit)
{
	struct rv_error err = RV_ERROR_INIT;
	uint32_t value;

	if (rv_random(&value, sizeof value, &err) != 0)
		die("random", &err);
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
		die(file, &err);
}

/* A row of one of many sizes, its id first. */
static void make_row(struct rv_buffer *row, char id[RV_UUID_TEXT])
{
	static const unsigned sizes[] = { 0, 0, 0, 0, 0, 100, 100, 500, 1000, 3000, 8000, 100000 };
	unsigned size = random_below(500) == 0 ? 2 << 20 : sizes[random_below(12)];
	struct rv_error err = RV_ERROR_INIT;
	char *padding = calloc(1, size + 1);

	if (padding == NULL || rv_uuid(id, &err) != 0)
		die("row", &err);
	memset(padding, 'p', size);
	rv_buffer_clear(row);
	rv_row_add_outcome(row,
			   &(struct rv_attempt){ .idempotency_key = rv_span_of(id), .run_id = RV_SPAN("r"), .span_id = RV_SPAN("s"),
						 .tool = rv_span_of(padding), .args_hash = RV_SPAN("h"), .executor = RV_SPAN("e"),
						 .workdir = RV_SPAN("/w"), .started_at = 1, .attempt_id = rv_span_of(id) },
			   &(struct rv_outcome){ .outcome = "ok", .exit_code = 0 });
	free(padding);
}

static void write_rows(void)
{
	struct rv_ledger_options options = { .wait_ms = PATIENCE_MS };
	rv_auto_buffer struct rv_buffer row = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_ledger *ledger;
	char id[RV_UUID_TEXT];
	int64_t lock;

	if (rv_ledger_open(&ledger, path, &options, &err) != 0 || rv_ledger_hold(ledger, &lock, &err) != 0)
		die("open", &err);
	while (rv_clock_mono_ms() < end_ms) {
		make_row(&row, id);
		if (rv_ledger_append(ledger, row.data, row.len, &err) != 0)
			die("append", &err);
		note(log_path, id);
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
		die("size", &err);
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
		die("sha256", &err);
	rv_sha256_free(sha);
	(void)snprintf(name, sizeof name, "%s.torn.%s", path, hex);
	return access(name, F_OK) == 0;
}

static void engine_rows(void)
{
	rv_auto_buffer struct rv_buffer row = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer tail = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	char id[RV_UUID_TEXT];

	for (; rv_clock_mono_ms() < end_ms; rv_clock_pause_ms(1)) {
		rv_auto_fd int gate_fd = rv_io_open(gate, O_RDWR | O_CREAT, 0600, &err);
		rv_auto_fd int fd = rv_io_open(path, O_RDWR | O_APPEND, 0, &err);

		if (gate_fd < 0 || fd < 0 || flock(gate_fd, LOCK_SH) != 0)
			die("engine", &err);
		if (is_torn(fd, &tail) && !is_copied(&tail))
			continue;
		make_row(&row, id);
		if (write(fd, row.data, row.len) != (ssize_t)row.len)
			die("engine write", &err);
		note(log_path, id);
	}
}

/* Tear the tail, with no writer in the middle of anything: as one does that was killed then. */
static void tear(void)
{
	rv_auto_buffer struct rv_buffer tail = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;

	for (unsigned i = 0; rv_clock_mono_ms() < end_ms; i++) {
		rv_auto_fd int gate_fd = rv_io_open(gate, O_RDWR | O_CREAT, 0600, &err);
		rv_auto_fd int fd = rv_io_open(path, O_RDWR | O_APPEND, 0, &err);
		char text[100];

		if (gate_fd < 0 || fd < 0 || rv_append_lock(fd, rv_clock_mono_ms() + PATIENCE_MS, &err) != 0 ||
		    flock(gate_fd, LOCK_EX) != 0)
			die("tear", &err);
		if (is_torn(fd, &tail))
			continue;
		(void)snprintf(text, sizeof text, "{\"phase\":\"intent\",\"idempotencyKey\":\"torn-%d-%u", (int)getpid(), i);
		note(torn_path, text);
		if (rv_io_write_all(fd, text, strlen(text), &err) != 0)
			die("tear", &err);
		rv_append_unlock(fd);
		(void)flock(gate_fd, LOCK_UN);
		rv_clock_pause_ms(1 + (int)random_below(30));
	}
}

static void repair_often(void)
{
	struct rv_repair_options options = { .wait_ms = PATIENCE_MS };

	while (rv_clock_mono_ms() < end_ms) {
		struct rv_error err = RV_ERROR_INIT;
		struct rv_repair repair;

		if (rv_repair_run(&repair, path, &options, &err) != 0)
			die("repair", &err);
		rv_repair_release(&repair);
		rv_clock_pause_ms((int)random_below(40));
	}
}

static pid_t start(void (*role)(void))
{
	pid_t pid = fork();

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
	rv_auto_fd int gate_fd = rv_io_open(gate, O_RDWR | O_CREAT, 0600, &err);
	int status = 0;

	if (gate_fd < 0 || flock(gate_fd, LOCK_EX) != 0)
		die(gate, &err);
	(void)kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
}

/* Kill one of the killable writers now and then, and start another in its place. */
static int run_all(unsigned *kills)
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
	while (rv_clock_mono_ms() < end_ms) {
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

static struct rv_buffer load(const char *file)
{
	struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;

	if (rv_io_read_file(file, &text, &err) != 0)
		die(file, &err);
	return text;
}

static size_t occurrences(const struct rv_buffer *text, const char *needle, size_t len)
{
	size_t count = 0;

	for (const char *at = text->data; (at = memmem(at, text->len - (size_t)(at - text->data), needle, len)) != NULL; at += len)
		count++;
	return count;
}

/* The ids and the base64 texts that rows have, each as a line of its own, so that one pass finds them. */
static void index_rows(const struct rv_buffer *ledger, const char *prefix, struct rv_buffer *out)
{
	for (const char *at = ledger->data, *end = at + ledger->len; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t len = newline == NULL ? (size_t)(end - at) : (size_t)(newline - at);
		const char *found = memmem(at, len, prefix, strlen(prefix));

		if (found != NULL) {
			found += strlen(prefix);
			rv_buffer_add_byte(out, '<');
			rv_buffer_add(out, found, (size_t)((const char *)memchr(found, '"', len) - found));
			rv_buffer_add_string(out, ">\n");
		}
		at += len + 1;
	}
}

static size_t wrong_counts(const struct rv_buffer *notes, const struct rv_buffer *index, bool encode)
{
	size_t wrong = 0;

	for (const char *at = notes->data, *end = at + notes->len; at < end;) {
		size_t len = (size_t)((const char *)memchr(at, '\n', (size_t)(end - at)) - at);
		rv_auto_buffer struct rv_buffer needle = RV_BUFFER_INIT;

		rv_buffer_add_byte(&needle, '<');
		if (encode)
			rv_base64_add(&needle, at, len);
		else
			rv_buffer_add(&needle, at, len);
		rv_buffer_add_byte(&needle, '>');
		if (occurrences(index, needle.data, needle.len) != 1) {
			if (wrong++ < 5)
				tap_note("%zu times: %.*s", occurrences(index, needle.data, needle.len), (int)len, at);
		}
		at += len + 1;
	}
	return wrong;
}

static size_t lines_of(const struct rv_buffer *text)
{
	return occurrences(text, "\n", 1);
}

static void judge(void)
{
	struct rv_repair_options options = { .wait_ms = PATIENCE_MS };
	rv_auto_buffer struct rv_buffer rows = RV_BUFFER_INIT, torn = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer ledger = RV_BUFFER_INIT, confirmed = load(log_path), torn_notes = load(torn_path);
	struct rv_error err = RV_ERROR_INIT;
	struct rv_repair repair;

	(void)tap_ok(rv_repair_run(&repair, path, &options, &err) == 0, "no line is damaged: %s", err.message);
	rv_repair_release(&repair);
	ledger = load(path);
	index_rows(&ledger, "\"attemptId\":\"", &rows);
	index_rows(&ledger, "\"bytesBase64\":\"", &torn);
	tap_note("%zu rows confirmed, %zu tails torn on purpose, %zu quarantined, %zu bytes", lines_of(&confirmed),
		 lines_of(&torn_notes), lines_of(&torn), ledger.len);
	(void)tap_ok(wrong_counts(&confirmed, &rows, false) == 0, "each confirmed row is there, once");
	(void)tap_ok(wrong_counts(&torn_notes, &torn, true) == 0, "each torn tail is quarantined, once");
	(void)tap_ok(lines_of(&confirmed) > 100 && lines_of(&torn_notes) >= 5, "there was enough to go wrong");
}

int main(int argc, char **argv)
{
	unsigned kills = 0;
	struct rv_error err = RV_ERROR_INIT;
	int fd;

	if (argc != 3)
		return 2;
	(void)snprintf(path, sizeof path, "%s/l.jsonl", argv[1]);
	(void)snprintf(gate, sizeof gate, "%s/gate", argv[1]);
	(void)snprintf(log_path, sizeof log_path, "%s/confirmed", argv[1]);
	(void)snprintf(torn_path, sizeof torn_path, "%s/torn", argv[1]);
	fd = rv_io_open(path, O_WRONLY | O_CREAT | O_EXCL, 0600, &err);
	if (fd < 0)
		die(path, &err);
	(void)close(fd);
	end_ms = rv_clock_mono_ms() + 1000 * strtol(argv[2], NULL, 10);
	(void)tap_ok(run_all(&kills) == 0, "nobody failed");
	(void)tap_ok(kills > 0, "%u writers were killed", kills);
	judge();
	return tap_end();
}

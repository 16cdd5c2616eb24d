/* What an interrupted repair can leave, every state of it: the next one finishes it, byte-true. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/digest/digest.h"
#include "lib/ledger/copy.h"
#include "lib/ledger/leftover.h"
#include "lib/ledger/mend.h"
#include "lib/ledger/repair.h"
#include "lib/ledger/row.h"
#include "lib/ledger/sidecar.h"
#include "t/unit/tap.h"

#define ROW(id)                                                                                                \
	"{\"phase\":\"intent\",\"idempotencyKey\":\"k\",\"runId\":\"r\",\"spanId\":\"s\",\"tool\":\"t\",\"argsHash\":\"h\","  \
	"\"executor\":\"e\",\"workdir\":\"/w\",\"startedAt\":1,\"attemptId\":\"" id "\"}\n"

static char dir[] = "/dev/shm/rv-test-mend-XXXXXX"; /* some 4,000 repairs, each with a dozen syncs */
static char path[64];

static _Noreturn void die(const struct rv_error *err)
{
	printf("Bail out! %s\n", err->message);
	exit(EXIT_FAILURE);
}

static void put(const struct rv_buffer *bytes)
{
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_fd int fd = rv_io_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600, &err);

	if (fd < 0 || rv_io_write_all(fd, bytes->data, bytes->len, &err) != 0)
		die(&err);
}

static int files_in_dir(void)
{
	rv_auto_dir DIR *open = opendir(dir);
	int count = 0;

	while (open != NULL && readdir(open) != NULL)
		count++;
	return count - 2;
}

static bool has_bytes(const struct rv_buffer *file, const struct rv_buffer *needle)
{
	return memmem(file->data, file->len, needle->data, needle->len) != NULL;
}

/* No damage, no tail, so many intents, one quarantine row with these bytes, and no file left over. */
static bool is_mended(struct rv_span fragment, size_t intents, size_t torn)
{
	rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer base64 = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_scan scan;
	uint32_t index;
	bool good;

	if (rv_io_read_file(path, &file, &err) != 0 || rv_scan_init(&scan, true, &err) != 0 ||
	    rv_scan_add_file(&scan, &index, &err) != 0 || rv_scan_feed(&scan, index, file.data, file.len, &err) != 0 ||
	    rv_scan_end(&scan, index, &err) != 0)
		die(&err);
	rv_buffer_add_string(&base64, "\"bytesBase64\":\"");
	rv_base64_add(&base64, fragment.data, fragment.len);
	rv_buffer_add_byte(&base64, '"');
	good = scan.damage_count == 0 && !rv_scan_tail(&scan, index)->present && scan.intents.count == intents &&
	       scan.torn.count == torn && (torn == 0 || has_bytes(&file, &base64)) && files_in_dir() == 1;
	rv_scan_release(&scan);
	return good;
}

static bool run_repair(enum rv_repair_action want)
{
	struct rv_repair_options options = { .check = true, .wait_ms = 1000 };
	struct rv_error err = RV_ERROR_INIT;
	struct rv_repair repair;
	bool good = rv_repair_run(&repair, path, &options, &err) == 0 && repair.result.action == want;

	rv_repair_release(&repair);
	options.check = false;
	good = good && rv_repair_run(&repair, path, &options, &err) == 0 && repair.result.action == want;
	rv_repair_release(&repair);
	if (!good)
		tap_note("%s", err.message);
	return good;
}

static void keep_copy(struct rv_span fragment)
{
	struct rv_error err = RV_ERROR_INIT;
	char sha256[RV_SHA256_HEX];

	if (rv_copy_keep(path, fragment, sha256, &err) < 0)
		die(&err);
}

static void begin(struct rv_buffer *file)
{
	rv_buffer_clear(file);
	rv_buffer_add_string(file, ROW("a") ROW("b"));
}

static struct rv_buffer quarantine_row(struct rv_span fragment)
{
	struct rv_buffer row = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;

	if (rv_row_add_torn(&row, fragment, 1764441000000, &err) != 0)
		die(&err);
	return row;
}

static size_t step(size_t at, size_t len)
{
	return len < 400 || at < 40 || at + 40 > len ? 1 : 97;
}

/* In place: the first k bytes of the row are there, then what was there before. */
static void cut_in_place(const char *name, struct rv_span fragment)
{
	rv_auto_buffer struct rv_buffer row = quarantine_row(fragment);
	rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;
	size_t bad = 0;

	for (size_t k = 0; k < row.len; k += step(k, row.len)) {
		bool whole = k == row.len - 1; /* it lacks its newline only */

		begin(&file);
		rv_buffer_add(&file, row.data, k);
		if (k < fragment.len)
			rv_buffer_add(&file, fragment.data + k, fragment.len - k);
		put(&file);
		keep_copy(fragment);
		if (!run_repair(whole ? RV_REPAIR_TERMINATED : RV_REPAIR_QUARANTINED) || !is_mended(fragment, 2, 1)) {
			tap_note("cut after %zu bytes", k);
			bad++;
		}
		(void)unlink(path);
	}
	(void)tap_ok(bad == 0, "in place, cut anywhere: %s", name);
}

/* By append: the row is there, the first k bytes are blanked, a row is glued behind or not. */
static void cut_by_append(const char *name, struct rv_span fragment, bool glued)
{
	rv_auto_buffer struct rv_buffer row = quarantine_row(fragment);
	rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;
	size_t bad = 0;

	for (size_t k = 0; k <= fragment.len; k += step(k, fragment.len)) {
		bool done = k == fragment.len;

		begin(&file);
		for (size_t i = 0; i < fragment.len; i++)
			rv_buffer_add_byte(&file, i < k ? ' ' : fragment.data[i]);
		if (glued)
			rv_buffer_add_string(&file, ROW("glued"));
		rv_buffer_add_byte(&file, '\n');
		rv_buffer_add(&file, row.data, row.len);
		rv_buffer_add_string(&file, ROW("c"));
		put(&file);
		keep_copy(fragment);
		/* Blanks that are torn are no damage, wherever they stand. */
		if (rv_text_trim((struct rv_span){ fragment.data, fragment.len }).len == 0)
			done = true;
		if (!run_repair(done ? RV_REPAIR_NONE : RV_REPAIR_QUARANTINED) || !is_mended(fragment, glued ? 4 : 3, 1)) {
			tap_note("cut after %zu spaces", k);
			bad++;
		}
		(void)unlink(path);
	}
	(void)tap_ok(bad == 0, "by append%s, cut anywhere: %s", glued ? " and glued" : "", name);
}

/* Only the copy was made, and then another writer glued its row to the torn bytes. */
static void glued_before(const char *name, struct rv_span fragment)
{
	rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;

	begin(&file);
	rv_buffer_add(&file, fragment.data, fragment.len);
	rv_buffer_add_string(&file, ROW("glued"));
	put(&file);
	keep_copy(fragment);
	(void)tap_ok(run_repair(RV_REPAIR_QUARANTINED) && is_mended(fragment, 3, 1), "glued before the first write: %s", name);
	(void)unlink(path);
}

/* The power failed: the ledger has lost the torn bytes, the synced copy has them. */
static void lost_tail(const char *name, struct rv_span fragment)
{
	rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;

	begin(&file);
	put(&file);
	keep_copy(fragment);
	(void)tap_ok(run_repair(RV_REPAIR_NONE) && is_mended(fragment, 2, 1), "in the copy alone: %s", name);
	(void)unlink(path);
}

static bool is_quarantined(struct rv_span fragment)
{
	rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer base64 = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;

	rv_buffer_add_string(&base64, "\"bytesBase64\":\"");
	rv_base64_add(&base64, fragment.data, fragment.len);
	rv_buffer_add_byte(&base64, '"');
	if (rv_io_read_file(path, &file, &err) != 0)
		die(&err);
	return has_bytes(&file, &base64);
}

/* Two that differ in their last byte alone; where that is, the quarantine row of each has the byte of the first. */
static const char twin_1[] = "{\"phase\":\"intent\",\"idempotencyKey\":\"torn-5d5ef154-e395-4800-9b53-f287af57d390-1";
static const char twin_2[] = "{\"phase\":\"intent\",\"idempotencyKey\":\"torn-5d5ef154-e395-4800-9b53-f287af57d390-2";

/* Two repairs died, each with a copy and before its first write, and a row was glued to both fragments; or the
 * second is the tail, and no repair has seen it. */
static void twins(struct rv_span first, struct rv_span second, bool at_end, bool second_first, const char *name)
{
	rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;

	begin(&file);
	rv_buffer_add(&file, first.data, first.len);
	rv_buffer_add_string(&file, ROW("glued"));
	rv_buffer_add(&file, second.data, second.len);
	if (!at_end)
		rv_buffer_add_string(&file, ROW("glued, too"));
	put(&file);
	if (!at_end && second_first)
		keep_copy(second);
	keep_copy(first);
	if (!at_end && !second_first)
		keep_copy(second);
	/* Of the same bytes there is one copy only. */
	(void)tap_ok(run_repair(RV_REPAIR_QUARANTINED) && is_mended(first, at_end ? 3 : 4, 2) && is_quarantined(second),
		     "two fragments: %s", name);
	(void)unlink(path);
}

static void all_twins(void)
{
	struct rv_span one = { twin_1, sizeof twin_1 - 1 }, two = { twin_2, sizeof twin_2 - 1 };

	twins(one, two, false, false, "alike, both glued, the first copy older");
	twins(one, two, false, true, "alike, both glued, the second copy older");
	twins(two, one, false, false, "alike in the other order, the first copy older");
	twins(two, one, false, true, "alike in the other order, the second copy older");
	twins(one, two, true, false, "alike, one glued, one at the end");
	twins(two, one, true, false, "alike, the other glued, one at the end");
	twins(one, one, true, false, "the same, one glued, one at the end");
	twins(one, one, false, false, "the same, both glued");
}

static void add_twin(struct rv_buffer *file, struct rv_span fragment, size_t blanked, const char *behind)
{
	for (size_t i = 0; i < fragment.len; i++)
		rv_buffer_add_byte(file, i < blanked ? ' ' : fragment.data[i]);
	rv_buffer_add_string(file, behind);
	rv_buffer_add_byte(file, '\n');
}

/* Lines that were torn with the same bytes, one or two, and where their repair was interrupted. */
struct twin_state {
	bool alone;
	bool no_newline;     /* the second is the tail */
	bool row_between;    /* the first has its row */
	size_t rows;         /* behind both */
	size_t cut;          /* so many bytes of one more row */
	size_t blanked;      /* bytes of both, those of the first first */
};

static bool is_twin_mended(struct rv_span fragment, struct twin_state state)
{
	rv_auto_buffer struct rv_buffer row = quarantine_row(fragment);
	rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;
	bool done = state.blanked == (state.alone ? 1U : 2U) * fragment.len;
	/* Of a row that is cut so soon that it cannot be told from any other torn line, the cut is one, too. */
	size_t torn = (state.alone ? 2U : 3U) + (state.cut > 0 && state.cut < fragment.len ? 1U : 0U);
	bool good;

	begin(&file);
	rv_buffer_add(&file, row.data, row.len); /* of another, which is over */
	add_twin(&file, fragment, state.blanked, "");
	if (state.row_between)
		rv_buffer_add(&file, row.data, row.len);
	if (!state.alone)
		add_twin(&file, fragment, state.blanked > fragment.len ? state.blanked - fragment.len : 0, "");
	if (state.no_newline)
		file.len--;
	for (size_t i = 0; i < state.rows; i++)
		rv_buffer_add(&file, row.data, row.len);
	rv_buffer_add(&file, row.data, state.cut);
	put(&file);
	keep_copy(fragment);
	good = run_repair(done	       ? RV_REPAIR_NONE
			  : state.cut == row.len - 1 ? RV_REPAIR_TERMINATED
						     : RV_REPAIR_QUARANTINED) &&
	       is_mended(fragment, 2, torn);
	if (!good)
		tap_note("%zu rows and %zu bytes, %zu bytes blanked", state.rows, state.cut, state.blanked);
	(void)unlink(path);
	return good;
}

static void cut_twins(const char *name, struct rv_span fragment)
{
	rv_auto_buffer struct rv_buffer row = quarantine_row(fragment);
	/* Its row cut behind these very bytes could be another line that was torn with them: nobody can tell. */
	size_t same = memcmp(row.data, fragment.data, fragment.len) == 0 ? fragment.len : 0;
	size_t bad = 0;

	(void)tap_ok(is_twin_mended(fragment, (struct twin_state){ .no_newline = true }), "torn twice, once at the end: %s", name);
	(void)tap_ok(is_twin_mended(fragment, (struct twin_state){ .no_newline = true, .row_between = true }),
		     "and the first has its row: %s", name);
	(void)tap_ok(is_twin_mended(fragment, (struct twin_state){ .row_between = true }), "and the second its newline: %s", name);
	for (size_t blanked = 0; blanked <= 2 * fragment.len; blanked += step(blanked, 2 * fragment.len))
		bad += !is_twin_mended(fragment, (struct twin_state){ .rows = 2, .blanked = blanked });
	(void)tap_ok(bad == 0, "torn twice, cut anywhere behind the rows: %s", name);
	for (size_t cut = 0; cut < row.len; cut += cut < 20 || cut + 20 > row.len ? 1 : row.len < 400 ? 7 : 97) {
		if (cut == same && cut > 0)
			continue;
		bad += !is_twin_mended(fragment, (struct twin_state){ .alone = true, .cut = cut });
		bad += !is_twin_mended(fragment, (struct twin_state){ .cut = cut });
		bad += !is_twin_mended(fragment, (struct twin_state){ .rows = 1, .cut = cut });
	}
	(void)tap_ok(bad == 0, "torn once and twice, cut anywhere in the rows: %s", name);
}

/* A whole row without its newline, to which another was glued while it was terminated. */
static void moved_row(bool appended)
{
	static const char glued[] = ROW("whole");
	struct rv_span whole = { glued, sizeof glued - 2 };
	rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;

	begin(&file);
	rv_buffer_add(&file, whole.data, whole.len);
	rv_buffer_add_string(&file, ROW("behind"));
	if (appended)
		rv_buffer_add_string(&file, "\n" ROW("whole"));
	put(&file);
	keep_copy(whole);
	(void)tap_ok(run_repair(RV_REPAIR_TERMINATED) && is_mended(whole, 4, 0), "a glued whole row is moved%s",
		appended ? ", once" : "");
	(void)unlink(path);
}

static void unfinished_copy(void)
{
	rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	char name[200];

	begin(&file);
	put(&file);
	(void)snprintf(name, sizeof name, "%s.torn.%064d", path, 7);
	if (rv_io_create(name, "half", 4, 0600, false, &err) != 1)
		die(&err);
	(void)tap_ok(run_repair(RV_REPAIR_NONE) && files_in_dir() == 1, "a copy that was never finished is removed");
	(void)unlink(path);
}

static void sidecars(void)
{
	struct rv_sidecar first = RV_SIDECAR_INIT, second = RV_SIDECAR_INIT;
	struct timespec old[2] = { { .tv_sec = time(NULL) - 11, .tv_nsec = 0 }, { .tv_sec = time(NULL) - 11, .tv_nsec = 0 } };
	struct timespec ahead[2] = { { .tv_sec = time(NULL) + 12, .tv_nsec = 0 }, { .tv_sec = time(NULL) + 12, .tv_nsec = 0 } };
	struct rv_error err = RV_ERROR_INIT;
	char name[100];

	(void)snprintf(name, sizeof name, "%s.repair-lock", path);
	(void)rv_io_create(name, "engine-token", 12, 0600, false, &err);
	(void)tap_ok(rv_sidecar_take(&first, path, rv_clock_mono_ms() + 50, &err) != 0 && err.code == RV_E_BUSY,
		     "a fresh sidecar of another is waited for, and not for ever");
	(void)utimensat(AT_FDCWD, name, old, 0);
	(void)tap_ok(rv_sidecar_take(&first, path, rv_clock_mono_ms() + 50, &err) == 0, "one from long ago is stolen");
	rv_sidecar_release(&first);
	(void)tap_ok(access(name, F_OK) != 0, "a release removes it");
	(void)rv_io_create(name, "engine-token", 12, 0600, false, &err);
	(void)utimensat(AT_FDCWD, name, ahead, 0);
	(void)tap_ok(rv_sidecar_take(&first, path, rv_clock_mono_ms() + 50, &err) == 0, "one from the future is stolen");
	(void)tap_ok(rv_sidecar_check(&first, &err) == 0, "its holder finds it in place");
	(void)tap_ok(rv_sidecar_take(&second, path, rv_clock_mono_ms() + 50, &err) == 0,
		     "one that a dead repair left is taken at once");
	(void)tap_ok(rv_sidecar_check(&first, &err) != 0 && err.code == RV_E_BUSY, "who lost it finds out by the token");
	rv_sidecar_release(&first);
	(void)tap_ok(access(name, F_OK) == 0, "and does not remove the other's");
	rv_sidecar_release(&second);
	(void)tap_ok(files_in_dir() == 0, "nothing stays");
}

int main(void)
{
	char long_tail[5001];
	struct {
		const char *name;
		struct rv_span bytes;
	} fragments[] = {
		{ "a row's start", RV_SPAN("{\"phase\":\"intent\",\"idempotencyKey\":\"k-2\"") },
		{ "a quarantine row's start", RV_SPAN("{\"phase\":\"torn\",\"bytes\":\"{\\\"pha") },
		{ "one brace", RV_SPAN("{") },
		{ "blanks", RV_SPAN("   ") },
		{ "zeros", RV_SPAN("\0\0\0\0\0") },
		{ "half a character", RV_SPAN("{\"tool\":\"\xf0\x9f") },
		{ "5,000 bytes", { long_tail, sizeof long_tail - 1 } },
	};

	if (mkdtemp(dir) == NULL)
		return EXIT_FAILURE;
	(void)snprintf(path, sizeof path, "%s/l.jsonl", dir);
	for (size_t i = 0; i < sizeof long_tail; i++)
		long_tail[i] = (char)('a' + i % 23);
	for (size_t i = 0; i < sizeof fragments / sizeof fragments[0]; i++) {
		cut_in_place(fragments[i].name, fragments[i].bytes);
		cut_by_append(fragments[i].name, fragments[i].bytes, false);
		cut_by_append(fragments[i].name, fragments[i].bytes, true);
		if (rv_text_trim(fragments[i].bytes).len > 0)
			glued_before(fragments[i].name, fragments[i].bytes);
		if (rv_text_trim(fragments[i].bytes).len > 0)
			cut_twins(fragments[i].name, fragments[i].bytes);
		lost_tail(fragments[i].name, fragments[i].bytes);
	}
	all_twins();
	moved_row(false);
	moved_row(true);
	unfinished_copy();
	sidecars();
	(void)tap_ok(rmdir(dir) == 0, "nothing was left behind");
	return tap_end();
}

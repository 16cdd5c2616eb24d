/*
 * Threads and pieces change no answer: ledgers of whole, damaged, blank and torn lines, read by pieces of
 * every size and by one thread or several, give the same scan as one fold over the bytes.
 *
 *     test-gather [ROUNDS [SEED]]
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/ledger/gather.h"
#include "t/unit/tap.h"

#define ROUNDS 300
#define FILES 3

static uint64_t state = 0x9e3779b97f4a7c15u;

static unsigned random_below(size_t limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % limit);
}

static void die(const char *what, const struct rv_error *err)
{
	printf("Bail out! %s: %s\n", what, err->message);
	exit(EXIT_FAILURE);
}

static void add_attempt(struct rv_buffer *out, const char *phase, const char *more)
{
	rv_buffer_printf(out, "{\"phase\":\"%s\",\"idempotencyKey\":\"k\",\"runId\":\"r\",\"spanId\":\"s\",\"tool\":\"t\","
			 "\"argsHash\":\"h\",\"executor\":\"e\",\"workdir\":\"/w\",\"startedAt\":%u", phase, random_below(5));
	switch (random_below(4)) {
	case 0:
		rv_buffer_printf(out, ",\"attemptId\":\"a-%u\"", random_below(9));
		break;
	case 1:
		rv_buffer_printf(out, ",\"attemptId\":\"\\u0061-%u\"", random_below(9)); /* the same */
		break;
	case 2:
		rv_buffer_printf(out, ",\"attemptId\":\"%08x-8e8a-452e-a854-56d71f0355bc\"", random_below(9));
		break;
	default:
		break;
	}
	rv_buffer_add_string(out, more);
}

static void add_line(struct rv_buffer *out)
{
	static const char *const others[] = { "", " ", "null", "x", "\xff", "{\"phase\":\"torn\",\"bytes\":\"b\",\"recoveredAt\":1}",
					      "{}", "\r", "\xef\xbb\xbf" };

	switch (random_below(4)) {
	case 0:
		rv_buffer_add_string(out, others[random_below(sizeof others / sizeof others[0])]);
		break;
	case 1:
		add_attempt(out, "outcome", ",\"durationMs\":1,\"outcome\":\"ok\",\"exitCode\":0,\"signal\":null}");
		break;
	default:
		add_attempt(out, "intent", random_below(9) == 0 ? "" : "}");
	}
}

static void make_file(struct rv_buffer *out)
{
	for (unsigned lines = random_below(12); lines > 0; lines--) {
		add_line(out);
		rv_buffer_add_byte(out, '\n');
	}
	if (random_below(2) == 0)
		add_line(out);
	if (random_below(4) == 0 && out->len > 0)
		out->len = random_below(out->len);
}

static void begin(struct rv_scan *scan, bool keep_all)
{
	struct rv_error err = RV_ERROR_INIT;
	uint32_t file;

	if (rv_scan_init(scan, keep_all, &err) != 0)
		die("init", &err);
	for (int i = 0; i < FILES; i++) {
		if (rv_scan_add_file(scan, &file, &err) != 0)
			die("add_file", &err);
	}
}

static void fold(struct rv_scan *scan, const struct rv_buffer *files)
{
	struct rv_error err = RV_ERROR_INIT;

	begin(scan, true);
	for (uint32_t i = 0; i < FILES; i++) {
		if (rv_scan_feed(scan, i, files[i].data, files[i].len, &err) != 0 || rv_scan_end(scan, i, &err) != 0)
			die("feed", &err);
	}
}

static bool is_place(const struct rv_place *a, const struct rv_place *b)
{
	return a->offset == b->offset && a->line == b->line && a->len == b->len && a->file == b->file && a->entry == b->entry;
}

static bool are_places(const struct rv_places *a, const struct rv_places *b)
{
	for (size_t i = 0; i < a->count && i < b->count; i++) {
		if (!is_place(&a->items[i], &b->items[i]))
			return false;
	}
	return a->count == b->count;
}

/* Those that are open, and so are kept in any case. */
static bool are_open(const struct rv_scan *all, const struct rv_scan *some)
{
	size_t at = 0;

	for (size_t i = 0; i < all->intents.count; i++) {
		if (!rv_scan_is_open(all, &all->intents.items[i]))
			continue;
		while (at < some->intents.count && !rv_scan_is_open(some, &some->intents.items[at]))
			at++;
		if (at == some->intents.count || !is_place(&all->intents.items[i], &some->intents.items[at++]))
			return false;
	}
	return true;
}

static bool is_same(const struct rv_scan *want, const struct rv_scan *got)
{
	bool same = want->damage_count == got->damage_count && want->torn_count == got->torn_count &&
		    want->intent_count == got->intent_count && want->outcome_count == got->outcome_count && !got->moved;

	for (size_t i = 0; same && i < want->damage_count; i++)
		same = is_place(&want->damage[i].place, &got->damage[i].place) && want->damage[i].reason == got->damage[i].reason &&
		       memcmp(want->damage[i].sha256, got->damage[i].sha256, RV_SHA256_SIZE) == 0;
	for (uint32_t i = 0; same && i < FILES; i++) {
		const struct rv_scan_tail *a = rv_scan_tail(want, i), *b = rv_scan_tail(got, i);

		same = a->present == b->present && (!a->present || is_place(&a->place, &b->place));
	}
	if (!same || !got->keep_all)
		return same && are_open(want, got);
	return are_places(&want->intents, &got->intents) && are_places(&want->outcomes, &got->outcomes) &&
	       are_places(&want->torn, &got->torn);
}

static int memory_file(const struct rv_buffer *bytes)
{
	struct rv_error err = RV_ERROR_INIT;
	int fd = memfd_create("ledger", MFD_CLOEXEC);

	if (fd < 0 || rv_io_write_all(fd, bytes->data, bytes->len, &err) != 0)
		die("memfd", &err);
	return fd;
}

struct progress {
	uint64_t done, total;
	bool bad;
};

static void note_progress(void *context, uint64_t done, uint64_t total)
{
	struct progress *progress = context;

	progress->bad = progress->bad || done <= progress->done || done > total;
	progress->done = done;
	progress->total = total;
}

static bool gathered(const struct rv_scan *want, const int *fds, unsigned threads, uint64_t piece, bool keep_all)
{
	struct progress progress = { .done = 0 };
	struct rv_gather gather = { .fds = fds, .count = FILES, .threads = threads, .piece = piece, .progress = note_progress, .context = &progress };
	struct rv_error err = RV_ERROR_INIT;
	struct rv_scan scan;
	size_t failed;
	bool same;

	begin(&scan, keep_all);
	if (rv_scan_gather(&scan, &gather, &failed, &err) != 0)
		die("gather", &err);
	same = is_same(want, &scan) && !progress.bad && progress.done == progress.total;
	rv_scan_release(&scan);
	if (!same)
		tap_note("%u threads, pieces of %llu, keep_all %d", threads, (unsigned long long)piece, keep_all);
	return same;
}

static bool round_of(uint64_t piece, unsigned threads)
{
	struct rv_buffer files[FILES];
	struct rv_scan want;
	int fds[FILES];
	bool same;

	for (int i = 0; i < FILES; i++) {
		rv_buffer_init(&files[i], 0);
		make_file(&files[i]);
		fds[i] = memory_file(&files[i]);
	}
	fold(&want, files);
	same = gathered(&want, fds, 1, piece, true) && gathered(&want, fds, threads, piece, true) &&
	       gathered(&want, fds, threads, piece, false);
	rv_scan_release(&want);
	for (int i = 0; i < FILES; i++) {
		rv_buffer_release(&files[i]);
		(void)close(fds[i]);
	}
	return same;
}

static void unreadable(void)
{
	struct rv_buffer bytes = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	int fds[FILES];
	struct rv_gather gather = { .fds = fds, .count = FILES, .threads = 2 };
	struct rv_scan scan;
	size_t failed = FILES;

	add_attempt(&bytes, "intent", "}\n");
	for (int i = 0; i < FILES; i++)
		fds[i] = memory_file(&bytes);
	(void)close(fds[1]);
	fds[1] = open("/", O_RDONLY | O_CLOEXEC);
	begin(&scan, true);
	(void)tap_ok(rv_scan_gather(&scan, &gather, &failed, &err) != 0 && failed == 1 && err.code == RV_E_IO,
		     "a file that cannot be read is named: %s", err.message);
	rv_scan_release(&scan);
	for (int i = 0; i < FILES; i++)
		(void)close(fds[i]);
	rv_buffer_release(&bytes);
}

int main(int argc, char **argv)
{
	static const uint64_t pieces[] = { 1, 2, 3, 7, 64, 200, 500, 0 };
	static const unsigned threads[] = { 2, 3, 8 };
	size_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : ROUNDS;

	if (argc > 2)
		state ^= strtoull(argv[2], NULL, 10) * 0x2545f4914f6cdd1dU;
	for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
		size_t bad = 0;

		for (size_t round = 0; round < rounds / 8; round++)
			bad += !round_of(pieces[p], threads[round % 3]);
		(void)tap_ok(bad == 0, "pieces of %llu bytes", (unsigned long long)pieces[p]);
	}
	unreadable();
	return tap_end();
}

/*
 * ledger ROWS [plain|escaped|nested]: a ledger of so many rows on standard output, as eight slots of
 * rv-exec write it: pairs of intent and outcome that overlap, made by the library's own row writer
 * from a fixed seed.  Every 50,000th attempt lacks its outcome.  escaped: each row has a string with
 * escapes.  nested: each has a member more, with values in values and escapes in them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buffer.h"
#include "lib/base/io.h"
#include "lib/ledger/row.h"

#define SLOTS 8
#define FLUSH ((size_t)1 << 20)
#define ORPHAN_EVERY 50000
#define FIRST_MS INT64_C(1780000000000)

struct slot {
	char key[65], args_hash[65], span[17], id[37], workdir[64];
	struct rv_attempt attempt;
	int64_t number; /* of the attempt, from 1 */
};

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void add_hex(char *out, size_t digits)
{
	for (size_t at = 0; at < digits; at += 16) {
		char word[17];

		(void)snprintf(word, sizeof word, "%016llx", (unsigned long long)next_random());
		memcpy(out + at, word, digits - at < 16 ? digits - at : 16);
	}
	out[digits] = '\0';
}

static void make_id(char id[37])
{
	static const unsigned char dashes[] = { 8, 13, 18, 23 };

	add_hex(id, 36);
	for (size_t i = 0; i < sizeof dashes; i++)
		id[dashes[i]] = '-';
	id[14] = '4';
	id[19] = "89ab"[next_random() & 3];
}

static void make_workdir(char *workdir, size_t size)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	char tail[7] = "";

	for (size_t i = 0; i < 6; i++)
		tail[i] = letters[next_random() % (sizeof letters - 1)];
	(void)snprintf(workdir, size, "/tmp/rulvar-exec-charge-%s", tail);
}

static void begin(struct slot *slot, int64_t number, bool escaped)
{
	add_hex(slot->key, 64);
	add_hex(slot->args_hash, 64);
	add_hex(slot->span, 16);
	make_id(slot->id);
	make_workdir(slot->workdir, sizeof slot->workdir);
	slot->number = number;
	slot->attempt = (struct rv_attempt){
		.idempotency_key = rv_span_of(slot->key), .run_id = escaped ? RV_SPAN("run \"7\"") : RV_SPAN("run-7"),
		.span_id = rv_span_of(slot->span), .tool = RV_SPAN("charge"), .args_hash = rv_span_of(slot->args_hash),
		.executor = RV_SPAN("subprocess"), .workdir = rv_span_of(slot->workdir),
		.started_at = FIRST_MS + number * 3, .attempt_id = rv_span_of(slot->id),
	};
}

static void add_intent(struct rv_buffer *out, const struct slot *slot)
{
	struct rv_writer writer = { .host = "w1", .boot_id = "0d1f9c52-7a39-4b6e-9d27-5f1e2c3b4a59", .pid = 4711,
				    .start_time = FIRST_MS - 5000, .lock = (INT64_C(1) << 52) + slot->number,
				    .until = slot->attempt.started_at + 33000 };

	rv_row_add_intent(out, &slot->attempt, "none", "pid-namespace", &writer);
}

static void add_outcome(struct rv_buffer *out, const struct slot *slot)
{
	struct rv_outcome outcome = { .duration_ms = (int64_t)(next_random() % 900), .outcome = "ok", .exit_code = 0 };

	if (slot->number % 100 == 0)
		outcome = (struct rv_outcome){ .duration_ms = 30000, .outcome = "timeout", .exit_code = -1, .signal = "SIGKILL" };
	else if (slot->number % 33 == 0)
		outcome.outcome = "error", outcome.exit_code = 1;
	rv_row_add_outcome(out, &slot->attempt, &outcome);
}

/* One more member of the row that ends `out`. */
static void add_note(struct rv_buffer *out)
{
	if (out->len > 2)
		out->len -= 2;
	rv_buffer_add_string(out, ",\"note\":{\"by\":\"o'neil \\\"al\\\" \\u00e9\",\"tags\":[\"a\\n\",[1,2.5e3,null]],\"more\":{\"deep\":{\"ok\":true}}}}\n");
}

static int flush(struct rv_buffer *out, size_t least)
{
	struct rv_error err = RV_ERROR_INIT;

	if (out->len < least)
		return 0;
	if (rv_buffer_check(out, &err) != 0 || rv_io_write_all(STDOUT_FILENO, out->data, out->len, &err) != 0) {
		fprintf(stderr, "ledger: %s\n", err.message);
		return -1;
	}
	rv_buffer_clear(out);
	return 0;
}

int main(int argc, char **argv)
{
	struct rv_buffer out = RV_BUFFER_INIT;
	struct slot slots[SLOTS] = { { .number = 0 } };
	long long rows = argc >= 2 ? strtoll(argv[1], NULL, 10) : 0;
	bool escaped = argc == 3 && strcmp(argv[2], "escaped") == 0;
	bool nested = argc == 3 && strcmp(argv[2], "nested") == 0;
	int64_t number = 0;

	if (rows < 1 || argc > 3 || (argc == 3 && !escaped && !nested && strcmp(argv[2], "plain") != 0)) {
		fprintf(stderr, "usage: ledger ROWS [plain|escaped|nested]\n");
		return 2;
	}
	while (rows > 0) {
		struct slot *slot = &slots[next_random() % SLOTS];

		rows--;
		if (slot->number == 0 || slot->number % ORPHAN_EVERY == 0) {
			begin(slot, ++number, escaped);
			add_intent(&out, slot);
		} else {
			add_outcome(&out, slot);
			slot->number = 0;
		}
		if (nested)
			add_note(&out);
		if (flush(&out, FLUSH) != 0)
			return EXIT_FAILURE;
	}
	if (flush(&out, 0) != 0)
		return EXIT_FAILURE;
	rv_buffer_release(&out);
	return EXIT_SUCCESS;
}

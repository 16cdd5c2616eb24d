/* The fast reader of rows and the slow one give one answer: on the vectors' lines, and on those with a few
 * bytes changed, many times. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/digest/digest.h"
#include "lib/json/json.h"
#include "lib/ledger/flat.h"
#include "t/unit/tap.h"

#define ROUNDS 1500000
#define SEEDS_MAX 4096

static struct rv_reader *reader;
static struct rv_buffer seeds[SEEDS_MAX];
static size_t seed_count;
static uint64_t state = 0x9e3779b97f4a7c15u; /* fixed: a failure can be run again */

static unsigned random_below(size_t limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % limit);
}

static bool is_same(struct rv_span a, struct rv_span b)
{
	return (a.data == NULL) == (b.data == NULL) && rv_span_equal(a, b);
}

/* Where the fast reader has an answer it is the slow one's. */
static bool agree(struct rv_span line, bool *taken)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_row fast, slow;
	enum rv_line kind;
	const char *reason;

	*taken = rv_flat_read(line, &fast);
	if (!*taken)
		return true;
	if (rv_line_read(reader, line, &kind, &slow, &reason, &err) != 0 || kind != RV_LINE_ROW || slow.phase != fast.phase)
		return false;
	if (fast.phase == RV_PHASE_TORN)
		return is_same(fast.bytes_base64, slow.bytes_base64);
	return is_same(fast.key, slow.key) && is_same(fast.run_id, slow.run_id) && is_same(fast.tool, slow.tool) &&
	       is_same(fast.args_hash, slow.args_hash) && is_same(fast.attempt_id, slow.attempt_id) &&
	       memcmp(&fast.started_at, &slow.started_at, sizeof fast.started_at) == 0 &&
	       (fast.phase == RV_PHASE_INTENT || fast.outcome == slow.outcome);
}

static void add_seeds(const struct rv_buffer *file)
{
	for (size_t at = 0; at < file->len && seed_count < SEEDS_MAX;) {
		const char *start = file->data + at;
		const char *newline = memchr(start, '\n', file->len - at);
		size_t len = newline != NULL ? (size_t)(newline - start) : file->len - at;

		rv_buffer_init(&seeds[seed_count], 0);
		rv_buffer_add(&seeds[seed_count++], start, len);
		at += len + 1;
	}
}

static bool load_seeds(void)
{
	static const char more[] =
		"{\"phase\":\"intent\",\"idempotencyKey\":\"k\",\"runId\":\"r\",\"spanId\":\"s\",\"tool\":\"t\",\"argsHash\":\"h\","
		"\"executor\":\"e\",\"workdir\":\"/w\",\"startedAt\":17,\"attemptId\":\"a\",\"sandbox\":\"none\","
		"\"writer\":{\"host\":\"h\",\"lock\":4503599627370497,\"deep\":[[],{},[1,-0.5e+3,true,null,{\"a\":[\"x\"]}]]}}";
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_buffer struct rv_buffer vectors = RV_BUFFER_INIT;
	struct rv_json_doc *doc = rv_json_doc_new(&err);
	char path[4096];

	(void)snprintf(path, sizeof path, "%s/t/vectors/ledger-scan.jsonl", tap_source());
	if (doc == NULL || rv_io_read_file(path, &vectors, &err) != 0)
		return false;
	for (size_t at = 0; at < vectors.len;) {
		const char *newline = memchr(vectors.data + at, '\n', vectors.len - at);
		size_t len = (size_t)(newline - vectors.data) - at;
		const struct rv_json_node *vector = rv_json_parse(doc, vectors.data + at, len, 0, &err);
		struct rv_span text = rv_json_string(rv_json_get(vector, "fileBase64"));
		rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;

		if (vector == NULL || rv_base64_decode(&file, text.data, text.len, &err) != 0)
			return false;
		add_seeds(&file);
		at += len + 1;
	}
	rv_buffer_init(&seeds[seed_count], 0);
	rv_buffer_add_string(&seeds[seed_count++], more);
	rv_json_doc_free(doc);
	return seed_count > 100;
}

/* A few bytes changed, left out or put in, most of them what the grammar is made of. */
static void mutate(struct rv_buffer *line)
{
	static const char alphabet[] = "\"\"{}[],:-+.eE0123456789tfnul\\u \t\x01\x7f\xc3\xa9\xed\xa0";

	for (unsigned changes = 1 + random_below(3); changes > 0 && line->len > 0; changes--) {
		size_t at = random_below(line->len);
		char byte = alphabet[random_below(sizeof alphabet)];

		switch (random_below(4)) {
		case 0:
			memmove(line->data + at, line->data + at + 1, line->len - at - 1);
			line->len--;
			break;
		case 1:
			rv_buffer_add_byte(line, 0);
			memmove(line->data + at + 1, line->data + at, line->len - at - 1);
			line->data[at] = byte;
			break;
		case 2: /* a part of the line a second time: members twice, names in another order */
			if (at + 30 < line->len)
				memmove(line->data + at, line->data + random_below(line->len - 30), 30);
			break;
		default:
			line->data[at] = byte;
		}
	}
}

static void fuzz(void)
{
	rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
	size_t taken_count = 0;
	size_t bad = 0;

	for (int round = 0; round < ROUNDS; round++) {
		const struct rv_buffer *seed = &seeds[random_below(2) == 0 ? seed_count - 1 : random_below(seed_count)];
		bool taken;

		rv_buffer_clear(&line);
		rv_buffer_add(&line, seed->data, seed->len);
		mutate(&line);
		if (!agree((struct rv_span){ line.data, line.len }, &taken) && bad++ < 5)
			tap_note("%.*s", (int)line.len, line.data);
		taken_count += taken;
	}
	(void)tap_ok(bad == 0, "no changed line divides them");
	(void)tap_ok(taken_count > ROUNDS / 20 && taken_count < ROUNDS, "%zu of %d were read fast", taken_count, ROUNDS);
}

int main(void)
{
	struct rv_error err = RV_ERROR_INIT;
	size_t fast = 0, bad = 0;

	reader = rv_reader_new(&err);
	if (reader == NULL || !tap_ok(load_seeds(), "the vectors' lines"))
		return EXIT_FAILURE;
	for (size_t i = 0; i < seed_count; i++) {
		bool taken;

		bad += !agree((struct rv_span){ seeds[i].data, seeds[i].len }, &taken);
		fast += taken;
	}
	(void)tap_ok(bad == 0, "one answer for each line of the vectors");
	(void)tap_ok(fast > seed_count / 3, "%zu of %zu were read fast", fast, seed_count);
	fuzz();
	for (size_t i = 0; i < seed_count; i++)
		rv_buffer_release(&seeds[i]);
	rv_reader_free(reader);
	return tap_end();
}

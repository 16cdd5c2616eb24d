/*
 * The fast readers of rows and the slow one give one answer: on the vectors' lines and on real rows, and
 * on those with a few bytes changed, many times.
 *
 *     test-flat [ROUNDS [SEED]]
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/digest/digest.h"
#include "lib/json/json.h"
#include "lib/ledger/flat.h"
#include "lib/ledger/layout.h"
#include "lib/ledger/row.h"
#include "t/unit/tap.h"

#define ROUNDS 1000000
#define FLAT 1   /* which readers had an answer */
#define LAYOUT 2
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

/* All that pairing needs, which is all that a fast reader tells. */
static bool is_same_attempt(const struct rv_row *fast, const struct rv_row *slow)
{
	if (fast->phase != slow->phase || fast->phase == RV_PHASE_TORN)
		return fast->phase == slow->phase;
	if (!is_same(fast->attempt_id, slow->attempt_id))
		return false;
	if (fast->attempt_id.data == NULL && (!is_same(fast->key, slow->key) ||
					      memcmp(&fast->started_at, &slow->started_at, sizeof fast->started_at) != 0))
		return false;
	return fast->phase == RV_PHASE_INTENT || fast->outcome == slow->outcome;
}

/* What the layout says of the line, a newline behind it, and behind that what would go on with it. */
static bool layouts_agree(struct rv_span line, const struct rv_row *slow, bool is_row, bool *taken)
{
	static const char beyond[RV_LAYOUT_SLACK] = "\",\"runId\":\"r\",\"n\":0}}\n\"}\n0123456789";
	rv_auto_free char *text = malloc(line.len + 1 + sizeof beyond);
	struct rv_row row, plain;
	const char *newline, *plain_newline;

	if (text == NULL)
		return false;
	memcpy(text, line.data, line.len);
	text[line.len] = '\n';
	memcpy(text + line.len + 1, beyond, sizeof beyond);
	newline = rv_layout_read(text, &row);
	plain_newline = rv_layout_read_plain(text, &plain);
	*taken = newline != NULL;
	if (newline == NULL || plain_newline == NULL)
		return newline == plain_newline;
	return newline == text + line.len && plain_newline == newline && is_row && is_same_attempt(&row, slow) &&
	       is_same_attempt(&plain, slow);
}

/* Where a fast reader has an answer it is the slow one's.  The line has no newline in it. */
static bool agree(struct rv_span line, int *taken)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_row fast, slow;
	enum rv_line kind;
	const char *reason;
	bool flat = rv_flat_read(line, &fast);
	bool layout;

	if (rv_line_read(reader, line, &kind, &slow, &reason, &err) != 0)
		return false;
	if (!layouts_agree(line, &slow, kind == RV_LINE_ROW, &layout))
		return false;
	*taken = (flat ? FLAT : 0) | (layout ? LAYOUT : 0);
	return !flat || (kind == RV_LINE_ROW && is_same_attempt(&fast, &slow));
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

/* As rv-exec writes them: the last seeds. */
static void add_real_rows(void)
{
	const struct rv_attempt attempt = {
		.idempotency_key = RV_SPAN("97101dce4e7bfb799ad2e144d6e8f2cfd9aa792e1af470eaddaa4e85b0d6e28b"),
		.run_id = RV_SPAN("run \"7\"\n"), .span_id = RV_SPAN("8f8ea9d349428d8e"), .tool = RV_SPAN("caf\xc3\xa9"),
		.args_hash = RV_SPAN("64f0eeb9026e60767b07ce91e5906136305f050c368dcc742ceb16e0a1c54aec"),
		.executor = RV_SPAN("subprocess"), .workdir = RV_SPAN("/tmp/rulvar-exec-charge-3dGhRL"),
		.started_at = 1780000000003, .attempt_id = RV_SPAN("08f474ff-8e8a-452e-a854-56d71f0355bc"),
	};
	const struct rv_writer writer = { .host = "w1", .boot_id = "0d1f9c52-7a39-4b6e-9d27-5f1e2c3b4a59", .pid = 4711,
					  .start_time = 1779999995000, .lock = 4503599627370497, .until = 1780000033003 };
	const struct rv_outcome killed = { .duration_ms = 30000, .outcome = "timeout", .exit_code = -1, .signal = "SIGKILL" };
	const struct rv_outcome done = { .duration_ms = 0, .outcome = "ok", .exit_code = 0 };
	rv_auto_buffer struct rv_buffer rows = RV_BUFFER_INIT;

	rv_row_add_intent(&rows, &attempt, "none", "pid-namespace", &writer);
	rv_row_add_outcome(&rows, &attempt, &killed);
	rv_row_add_outcome(&rows, &attempt, &done);
	add_seeds(&rows);
}

static bool load_seeds(void)
{
	/* The last two are read fast.  Not so the one before: a member that is there twice, once with an escape. */
	static const char more[] =
		"{\"phase\":\"outcome\",\"idempotencyKey\":\"k\",\"runId\":\"r\",\"spanId\":\"s\",\"tool\":\"t\",\"argsHash\":\"h\","
		"\"executor\":\"e\",\"workdir\":\"/w\",\"startedAt\":17,\"attemptId\":\"a\",\"durationMs\":1,\"outcome\":\"ok\",\"exitCode\":0,"
		"\"signal\":null,\"\\u006futcome\":\"error\",\"attempt\\u0049d\":\"b\"}\n"
		"{\"phase\":\"intent\",\"idempotencyKey\":\"k\",\"runId\":\"r\",\"spanId\":\"s\",\"tool\":\"t\",\"argsHash\":\"h\","
		"\"executor\":\"e\",\"workdir\":\"/w\",\"startedAt\":17,\"attemptId\":\"a\",\"sandbox\":\"none\","
		"\"writer\":{\"host\":\"h\",\"lock\":4503599627370497,\"deep\":[[],{},[1,-0.5e+3,true,null,{\"a\":[\"x\"]}]]}}\n"
		"{ \"phase\" :\"outcome\",\t\"idempotencyKey\": \"k\\u00e9\", \"runId\":\"r\\n\\\"\",\"spanId\":\"s\",\"tool\":\"t\",\"argsHash\":\"h\","
		"\"executor\":\"e\",\"workdir\":\"/w\", \"startedAt\":1.7e1 ,\"attemptId\":\"a\",\"durationMs\":1,\"outcome\" : \"ok\",\"exitCode\":null,"
		"\"signal\":null,\"note\":{ \"\\u0061\": [ ], \"b\":{ } , \"c\":[ \"x\\/\" , 2 ]} }\r\n";
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_buffer struct rv_buffer vectors = RV_BUFFER_INIT, others = RV_BUFFER_INIT;
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
	rv_buffer_add_string(&others, more);
	add_seeds(&others);
	add_real_rows();
	rv_json_doc_free(doc);
	return seed_count > 100;
}

static void put(struct rv_buffer *line, size_t at, const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		rv_buffer_add_byte(line, 0);
	memmove(line->data + at + len, line->data + at, line->len - at - len);
	memcpy(line->data + at, text, len);
}

/* A few bytes changed, left out or put in, most of them what the grammar is made of. */
static void mutate(struct rv_buffer *line)
{
	static const char alphabet[] = "\"\"{}[],:-+.eE0123456789tfnul\\u \t\x01\x1f\x7f\xc3\xa9\xed\xa0";

	static const char *const characters[] = { "\xc3\xa9", "\xe2\x80\xa8", "\xf0\x9f\x98\x80", "\xed\xa0\x80", "\xc0\xaf",
						  "\xf4\x90\x80\x80", "\xe2\x82", "\xef\xbb\xbf", "\\n", "\\u00e9", "\\ud800", "\\\"", "\\u12g4", "\\x", "null", "\"}", "{}", "1e3", "-0" };

	for (unsigned changes = random_below(8) == 0 ? 0 : 1 + random_below(3); changes > 0 && line->len > 0; changes--) {
		size_t at = random_below(line->len);
		char byte = alphabet[random_below(sizeof alphabet)];

		switch (random_below(5)) {
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
		case 3: /* whole characters, and parts of some */
			put(line, at, characters[random_below(sizeof characters / sizeof characters[0])]);
			break;
		default:
			line->data[at] = byte;
		}
	}
}

static void fuzz(size_t rounds)
{
	rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
	size_t flat = 0, layout = 0, bad = 0;

	for (size_t round = 0; round < rounds; round++) {
		const struct rv_buffer *seed = &seeds[random_below(3) != 0 ? seed_count - 1 - random_below(5) : random_below(seed_count)];
		int taken = 0;

		rv_buffer_clear(&line);
		rv_buffer_add(&line, seed->data, seed->len);
		mutate(&line);
		if (!agree((struct rv_span){ line.data, line.len }, &taken) && bad++ < 5)
			tap_note("%.*s", (int)line.len, line.data);
		flat += (taken & FLAT) != 0;
		layout += (taken & LAYOUT) != 0;
	}
	(void)tap_ok(bad == 0, "no one of %zu changed lines divides them", rounds);
	(void)tap_ok(flat > rounds / 20 && flat < rounds, "%zu were read fast", flat);
	(void)tap_ok(layout > rounds / 20 && layout < rounds, "%zu fit the layout", layout);
}

int main(int argc, char **argv)
{
	struct rv_error err = RV_ERROR_INIT;
	size_t flat = 0, bad = 0;

	if (argc > 2)
		state ^= strtoull(argv[2], NULL, 10) * 0x2545f4914f6cdd1dU;
	reader = rv_reader_new(&err);
	if (reader == NULL || !tap_ok(load_seeds(), "the vectors' lines"))
		return EXIT_FAILURE;
	for (size_t i = 0; i < seed_count; i++) {
		int taken = 0;

		bad += !agree((struct rv_span){ seeds[i].data, seeds[i].len }, &taken);
		flat += (taken & FLAT) != 0;
		if (i + 5 >= seed_count)
			bad += (taken & FLAT) == 0;
		if (i + 3 >= seed_count)
			bad += (taken & LAYOUT) == 0;
	}
	(void)tap_ok(bad == 0, "one answer for each line of the vectors; no real row is read the slow way");
	(void)tap_ok(flat > seed_count / 3, "%zu of %zu were read fast", flat, seed_count);
	fuzz(argc > 1 ? strtoull(argv[1], NULL, 10) : ROUNDS);
	for (size_t i = 0; i < seed_count; i++)
		rv_buffer_release(&seeds[i]);
	rv_reader_free(reader);
	return tap_end();
}

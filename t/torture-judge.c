/*
 * Everybody at one ledger: writers of this project, half of which are killed at random; a stranger who
 * tears the tail; an engine's writer, which opens, appends and closes without any lock, also in the
 * middle of a repair; two repairers.  Then: no line is damaged, no confirmed row is lost or there
 * twice, and each torn tail is quarantined once, byte-true.
 *
 *   ledger-torture DIR SECONDS [ROWS]
 *
 * Until so many seconds have gone, or ROWS more rows are confirmed; with ROWS it is a failure if time runs out
 * first.  A ledger that an earlier run left in DIR goes on, and is judged whole; with 0 seconds it is only judged.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/ledger/repair.h"
#include "t/torture.h"
#include "t/unit/tap.h"

#define SHOWN 5
#define ENOUGH 100 /* rows, where no number is told */

/* Counted in a hash table, so that a hundred thousand rows are judged in a second. */
struct counted {
	struct rv_span text; /* of the ledger or of a note; .data NULL: free */
	unsigned rows;       /* how often it is in the ledger */
};

struct counts {
	struct counted *slots;
	size_t size; /* a power of two */
	size_t used;
};

static size_t hash_of(struct rv_span text)
{
	uint64_t hash = 14695981039346656037U; /* FNV-1a */

	for (size_t i = 0; i < text.len; i++)
		hash = (hash ^ (unsigned char)text.data[i]) * 1099511628211U;
	return (size_t)(hash ^ hash >> 32);
}

static struct counted *slot_of(const struct counts *counts, struct rv_span text)
{
	size_t at = hash_of(text) & (counts->size - 1);

	while (counts->slots[at].text.data != NULL && !rv_span_equal(counts->slots[at].text, text))
		at = (at + 1) & (counts->size - 1);
	return &counts->slots[at];
}

static void grow(struct counts *counts)
{
	struct counts larger = { .size = counts->size == 0 ? 1024 : 2 * counts->size, .used = counts->used };
	struct rv_error err = RV_ERROR_INIT;

	larger.slots = calloc(larger.size, sizeof *larger.slots);
	if (larger.slots == NULL)
		torture_die("memory", &err);
	for (size_t i = 0; i < counts->size; i++) {
		if (counts->slots[i].text.data != NULL)
			*slot_of(&larger, counts->slots[i].text) = counts->slots[i];
	}
	free(counts->slots);
	*counts = larger;
}

static void count_row(struct counts *counts, struct rv_span text)
{
	struct counted *slot;

	if (2 * (counts->used + 1) > counts->size)
		grow(counts);
	slot = slot_of(counts, text);
	if (slot->text.data == NULL) {
		slot->text = text;
		counts->used++;
	}
	slot->rows++;
}

static unsigned rows_of(const struct counts *counts, struct rv_span text)
{
	return counts->size == 0 ? 0 : slot_of(counts, text)->rows;
}

/* The next line of `text` from *at on, without its newline. */
static bool next_line(const struct rv_buffer *text, size_t *at, struct rv_span *line)
{
	const char *newline;

	if (*at >= text->len)
		return false;
	newline = memchr(text->data + *at, '\n', text->len - *at);
	line->data = text->data + *at;
	line->len = newline == NULL ? text->len - *at : (size_t)(newline - line->data);
	*at += line->len + 1;
	return true;
}

/* The string that a row has behind `prefix`: none of those that are asked for has an escape. */
static bool find_string(struct rv_span line, const char *prefix, struct rv_span *value)
{
	const char *found = memmem(line.data, line.len, prefix, strlen(prefix)), *quote;

	if (found == NULL)
		return false;
	value->data = found + strlen(prefix);
	quote = memchr(value->data, '"', line.len - (size_t)(value->data - line.data));
	value->len = quote == NULL ? 0 : (size_t)(quote - value->data);
	return quote != NULL;
}

static struct rv_buffer load(const char *file)
{
	struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;

	if (rv_io_read_file(file, &text, &err) != 0)
		torture_die(file, &err);
	return text;
}

/* Is the fragment the beginning, and not the whole, of a row that a player writes?  Its id is in it, or it is
 * shorter than that. */
static bool begins_a_row(const struct rv_buffer *fragment)
{
	rv_auto_buffer struct rv_buffer row = RV_BUFFER_INIT;
	char id[RV_UUID_TEXT] = "00000000-0000-0000-0000-000000000000";
	const char *found;
	size_t head;

	torture_row(&row, id, 0);
	found = memmem(row.data, row.len, id, sizeof id - 1);
	head = found == NULL ? 0 : (size_t)(found - row.data);
	if (fragment->len > head)
		memcpy(id, fragment->data + head, fragment->len - head < sizeof id - 1 ? fragment->len - head : sizeof id - 1);
	for (size_t i = 0; i < torture_size_count; i++) {
		torture_row(&row, id, torture_sizes[i]);
		if (fragment->len < row.len && memcmp(fragment->data, row.data, fragment->len) == 0)
			return true;
	}
	return false;
}

/* Of one quarantine row: its bytes are those that its hash tells, and those of a tail that was torn. */
static bool is_true(struct rv_span line, struct rv_span base64, const struct counts *made, struct rv_sha256 *sha)
{
	rv_auto_buffer struct rv_buffer bytes = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	char hex[RV_SHA256_HEX];
	struct rv_span told;

	if (rv_base64_decode(&bytes, base64.data, base64.len, &err) != 0 || bytes.len == 0 ||
	    rv_sha256_hex(sha, bytes.data, bytes.len, hex, &err) != 0)
		return false;
	if (!find_string(line, "\"sha256\":\"", &told) || !rv_span_equal(told, rv_span_of(hex)))
		return false;
	return rows_of(made, (struct rv_span){ bytes.data, bytes.len }) > 0 || begins_a_row(&bytes);
}

struct found {
	struct counts ids;         /* of rows */
	struct counts quarantined; /* base64 texts */
	size_t rows, tails, untrue;
};

static void index_ledger(const struct rv_buffer *ledger, const struct counts *made, struct found *found)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_sha256 *sha = rv_sha256_new(&err);
	struct rv_span line, value;

	if (sha == NULL)
		torture_die("sha256", &err);
	for (size_t at = 0; next_line(ledger, &at, &line);) {
		if (find_string(line, "\"attemptId\":\"", &value)) {
			count_row(&found->ids, value);
			found->rows++;
		} else if (find_string(line, "\"bytesBase64\":\"", &value)) {
			count_row(&found->quarantined, value);
			found->tails++;
			if (!is_true(line, value, made, sha) && found->untrue++ < SHOWN)
				tap_note("no such tail was torn: %.*s", (int)(line.len < 300 ? line.len : 300), line.data);
		}
	}
	rv_sha256_free(sha);
}

/* How many of the noted texts are not in the ledger exactly once. */
static size_t wrong_counts(const struct rv_buffer *notes, const struct counts *counts, bool encode, size_t *noted)
{
	struct rv_span line;
	size_t wrong = 0;

	for (size_t at = 0; next_line(notes, &at, &line); ++*noted) {
		rv_auto_buffer struct rv_buffer base64 = RV_BUFFER_INIT;
		unsigned rows;

		if (encode)
			rv_base64_add(&base64, line.data, line.len);
		rows = rows_of(counts, encode ? (struct rv_span){ base64.data, base64.len } : line);
		if (rows != 1 && wrong++ < SHOWN)
			tap_note("%u times: %.*s", rows, (int)line.len, line.data);
	}
	return wrong;
}

/* Those that hold an id: one that is torn before it may well be the same as another. */
static size_t count_repeated(const struct counts *quarantined)
{
	size_t repeated = 0;

	for (size_t i = 0; i < quarantined->size; i++)
		repeated += quarantined->slots[i].text.len > 120 && quarantined->slots[i].rows > 1;
	return repeated;
}

static void index_notes(const struct rv_buffer *notes, struct counts *counts)
{
	struct rv_span line;

	for (size_t at = 0; next_line(notes, &at, &line);)
		count_row(counts, line);
}

static void last_repair(const char *path)
{
	struct rv_repair_options options = { .wait_ms = TORTURE_PATIENCE_MS };
	struct rv_error err = RV_ERROR_INIT;
	struct rv_repair repair;

	(void)tap_ok(rv_repair_run(&repair, path, &options, &err) == 0, "no line is damaged: %s", err.message);
	rv_repair_release(&repair);
}

/* Repair the ledger a last time and hold it to its promises. */
static void judge(const struct torture *torture, size_t least)
{
	rv_auto_buffer struct rv_buffer confirmed = load(torture->confirmed), torn = load(torture->torn), ledger = RV_BUFFER_INIT;
	struct counts made = { NULL, 0, 0 };
	size_t confirmed_count = 0, torn_count = 0, lost, astray;
	struct found found;

	memset(&found, 0, sizeof found);
	last_repair(torture->ledger);
	ledger = load(torture->ledger);
	index_notes(&torn, &made);
	index_ledger(&ledger, &made, &found);
	lost = wrong_counts(&confirmed, &found.ids, false, &confirmed_count);
	astray = wrong_counts(&torn, &found.quarantined, true, &torn_count);
	tap_note("%zu rows confirmed, %zu there; %zu tails torn on purpose, %zu quarantined; %zu bytes", confirmed_count, found.rows,
		 torn_count, found.tails, ledger.len);
	(void)tap_ok(lost == 0, "each confirmed row is there, once");
	(void)tap_ok(found.ids.used == found.rows, "no row is there twice");
	(void)tap_ok(astray == 0 && count_repeated(&found.quarantined) == 0, "each torn tail is quarantined, once");
	(void)tap_ok(found.untrue == 0, "each quarantine row has the bytes of a tail that was torn, to the last");
	(void)tap_ok(confirmed_count >= least && torn_count > least / 2000, "there was enough to go wrong: %zu rows of %zu, and %zu tails",
		     confirmed_count, least, torn_count);
	free(made.slots);
	free(found.ids.slots);
	free(found.quarantined.slots);
}

static void name_files(struct torture *torture, const char *dir)
{
	(void)snprintf(torture->ledger, sizeof torture->ledger, "%s/l.jsonl", dir);
	(void)snprintf(torture->gate, sizeof torture->gate, "%s/gate", dir);
	(void)snprintf(torture->confirmed, sizeof torture->confirmed, "%s/confirmed", dir);
	(void)snprintf(torture->torn, sizeof torture->torn, "%s/torn", dir);
}

int main(int argc, char **argv)
{
	long seconds = argc < 3 ? -1 : strtol(argv[2], NULL, 10), rows = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
	struct torture torture;
	unsigned kills = 0;

	if (seconds < 0 || argc > 4)
		return 2;
	name_files(&torture, argv[1]);
	if (seconds > 0) {
		(void)tap_ok(torture_play(&torture, rv_clock_mono_ms() + 1000 * seconds, rows, &kills) == 0, "nobody failed");
		(void)tap_ok(kills > 0, "%u writers were killed", kills);
	}
	judge(&torture, rows > 0 ? (size_t)rows : ENOUGH);
	return tap_end();
}

/* lib/ledger against the vectors: the scan as a pure fold and as a report, the repair before an append. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/digest/digest.h"
#include "lib/json/json.h"
#include "lib/ledger/append.h"
#include "lib/ledger/fs.h"
#include "lib/ledger/pair.h"
#include "lib/ledger/repair.h"
#include "lib/ledger/report.h"
#include "lib/ledger/row.h"
#include "lib/ledger/torn.h"
#include "t/unit/tap.h"

#define ROW                                                                                                    \
	"{\"phase\":\"intent\",\"idempotencyKey\":\"k\",\"runId\":\"r\",\"spanId\":\"s\",\"tool\":\"t\",\"argsHash\":\"h\","  \
	"\"executor\":\"e\",\"workdir\":\"/w\",\"startedAt\":1,\"attemptId\":\"a\"}\n"

static char dir[] = "/tmp/rv-test-ledger-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static _Noreturn void die(const char *what, const struct rv_error *err)
{
	printf("Bail out! %s: %s\n", what, err->message);
	exit(EXIT_FAILURE);
}

static void put(const char *path, const char *bytes, size_t len)
{
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_fd int fd = rv_io_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600, &err);

	if (fd < 0 || rv_io_write_all(fd, bytes, len, &err) != 0)
		die(path, &err);
}

static struct rv_buffer get(const char *path)
{
	struct rv_buffer bytes = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;

	if (rv_io_read_file(path, &bytes, &err) != 0)
		die(path, &err);
	return bytes;
}

static bool is_equal(const struct rv_buffer *a, const struct rv_buffer *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static struct rv_buffer decoded(const struct rv_json_node *node, const char *name)
{
	struct rv_span text = rv_json_string(rv_json_get(node, name));
	struct rv_buffer bytes = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;

	if (rv_base64_decode(&bytes, text.data, text.len, &err) != 0)
		die(name, &err);
	return bytes;
}

/* Call `use` for each line of a file of vectors; returns how many there were. */
static int each_vector(const char *name, void (*use)(const struct rv_json_node *vector, const char *title))
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_json_doc *doc = rv_json_doc_new(&err);
	char path[4096];
	rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;
	int count = 0;

	(void)snprintf(path, sizeof path, "%s/t/vectors/%s", tap_source(), name);
	file = get(path);
	for (const char *at = file.data, *end = at + file.len; doc != NULL && at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const struct rv_json_node *vector =
			newline == NULL ? NULL : rv_json_parse(doc, at, (size_t)(newline - at), 0, &err);
		char title[200];

		if (vector == NULL)
			die(path, &err);
		(void)snprintf(title, sizeof title, "%.*s", (int)rv_json_string(rv_json_get(vector, "name")).len,
			       rv_json_string(rv_json_get(vector, "name")).data);
		use(vector, title);
		count++;
		at = newline + 1;
	}
	rv_json_doc_free(doc);
	return count;
}

static size_t children(const struct rv_json_node *array)
{
	size_t count = 0;

	for (const struct rv_json_node *child = rv_json_first(array); child != NULL; child = rv_json_next(child))
		count++;
	return count;
}

static bool is_damage(const struct rv_damage *damage, const struct rv_json_node *want)
{
	char hex[RV_SHA256_HEX];
	int64_t line = -1, offset = -1;

	rv_hex(damage->sha256, RV_SHA256_SIZE, hex);
	return rv_json_integer(rv_json_get(want, "line"), &line) && (uint64_t)line == damage->place.line &&
	       rv_json_integer(rv_json_get(want, "offset"), &offset) && (uint64_t)offset == damage->place.offset &&
	       rv_span_equal(rv_json_string(rv_json_get(want, "sha256")), rv_span_of(hex)) && damage->reason != NULL;
}

static bool is_scan(const struct rv_scan *scan, const struct rv_json_node *want)
{
	const struct rv_json_node *damage = rv_json_first(rv_json_get(want, "corrupt"));
	size_t open = 0;

	for (size_t i = 0; i < scan->intents.count; i++)
		open += rv_scan_is_open(scan, &scan->intents.items[i]);
	for (size_t i = 0; i < scan->damage_count; i++, damage = rv_json_next(damage)) {
		if (damage == NULL || !is_damage(&scan->damage[i], damage))
			return false;
	}
	return damage == NULL && scan->intents.count == children(rv_json_get(want, "intents")) &&
	       scan->outcomes.count == children(rv_json_get(want, "outcomes")) &&
	       scan->outcome_count == scan->outcomes.count && open == children(rv_json_get(want, "orphanedIntents")) &&
	       scan->torn.count == children(rv_json_get(want, "tornArtifacts")) &&
	       rv_scan_tail(scan, 0)->present == (rv_json_get(want, "tornTail") != NULL);
}

/* The fold alone, in chunks of every kind of size. */
static void fold_vector(const struct rv_json_node *vector, const char *title)
{
	static const size_t chunks[] = { 1, 2, 7, 64, SIZE_MAX };
	rv_auto_buffer struct rv_buffer file = decoded(vector, "fileBase64");
	struct rv_error err = RV_ERROR_INIT;
	bool good = true;

	for (size_t c = 0; c < sizeof chunks / sizeof chunks[0]; c++) {
		struct rv_scan scan;
		uint32_t index;

		if (rv_scan_init(&scan, true, &err) != 0 || rv_scan_add_file(&scan, &index, &err) != 0)
			die(title, &err);
		for (size_t at = 0, len; at < file.len; at += len) {
			len = file.len - at < chunks[c] ? file.len - at : chunks[c];
			if (rv_scan_feed(&scan, index, file.data + at, len, &err) != 0)
				die(title, &err);
		}
		if (rv_scan_end(&scan, index, &err) != 0)
			die(title, &err);
		good = good && is_scan(&scan, rv_json_get(vector, "scan"));
		good = good && (scan.damage_count > 0) ==
				       (rv_json_type(rv_json_get(vector, "strictRefused")) == RV_JSON_TRUE);
		rv_scan_release(&scan);
	}
	(void)tap_ok(good, "fold: %s", title);
}

static int sink_write(void *context, const char *bytes, size_t len)
{
	rv_buffer_add(context, bytes, len);
	return 0;
}

/* Canonical text with each preview emptied: it is for people and not compared. */
static struct rv_buffer comparable(const struct rv_json_node *node)
{
	struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_buffer out = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	static const char name[] = "\"preview\":\"";

	if (rv_json_stringify(node, &text, &err) != 0)
		die("stringify", &err);
	for (size_t i = 0; i < text.len; i++) {
		rv_buffer_add_byte(&out, text.data[i]);
		if (i + 1 < strlen(name) || memcmp(text.data + i + 1 - strlen(name), name, strlen(name)) != 0)
			continue;
		while (text.data[i + 1] != '"')
			i += text.data[i + 1] == '\\' ? 2 : 1;
	}
	rv_buffer_release(&text);
	return out;
}

static void report_vector(const struct rv_json_node *vector, const char *title)
{
	rv_auto_buffer struct rv_buffer file = decoded(vector, "fileBase64");
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer want = comparable(rv_json_get(vector, "scan"));
	rv_auto_buffer struct rv_buffer got = RV_BUFFER_INIT;
	struct rv_sink sink = { .write = sink_write, .context = &text };
	struct rv_filter filter = { .states = 0 };
	struct rv_error err = RV_ERROR_INIT;
	const char *path = path_of("report.jsonl");
	struct rv_json_doc *doc = rv_json_doc_new(&err);
	const struct rv_json_node *node;
	struct rv_view view;

	put(path, file.data, file.len);
	if (doc == NULL || rv_view_open(&view, &path, 1, &(struct rv_view_options){ .keep_all = true, .threads = 1 }, &err) != 0 ||
	    rv_report_whole(&view, &filter, NULL, &sink, &err) != 0)
		die(title, &err);
	rv_view_close(&view);
	node = rv_json_parse(doc, text.data, text.len, 0, &err);
	if (node != NULL)
		got = comparable(node);
	(void)tap_ok(node != NULL && is_equal(&got, &want), "report: %s", title);
	rv_json_doc_free(doc);
}

/* The time in the last quarantine row, replaced by the vectors' own. */
static void replace_time(struct rv_span row)
{
	static const char name[] = "\"recoveredAt\":";
	char *at = row.len > 0 ? memmem(row.data, row.len, name, strlen(name)) : NULL;
	size_t digits;

	if (at == NULL || row.data == NULL)
		return;
	at += strlen(name);
	digits = strspn(at, "0123456789");
	if (digits == 13)
		memcpy(at, "1764441999999", 13);
}

static struct rv_span last_line(struct rv_buffer *file)
{
	size_t end = file->len > 0 ? file->len - 1 : 0;
	const char *newline = end > 0 ? memrchr(file->data, '\n', end) : NULL;
	size_t start = newline == NULL ? 0 : (size_t)(newline - file->data) + 1;

	return (struct rv_span){ file->data == NULL ? "" : file->data + start, file->len - start };
}

static const struct rv_ledger_options options = { .power = false, .unsafe_fs = false, .wait_ms = 5000 };

static void append_row(const char *path, const char *row)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_ledger *ledger;

	if (rv_ledger_open(&ledger, path, &options, &err) != 0 || rv_ledger_append(ledger, row, strlen(row), &err) != 0)
		die(path, &err);
	rv_ledger_close(ledger);
}

static void repair_vector(const struct rv_json_node *vector, const char *title)
{
	rv_auto_buffer struct rv_buffer before = decoded(vector, "beforeBase64");
	rv_auto_buffer struct rv_buffer after = decoded(vector, "afterBase64");
	rv_auto_buffer struct rv_buffer got = RV_BUFFER_INIT;
	struct rv_span action = rv_json_string(rv_json_get(vector, "action"));
	const char *path = path_of("repair.jsonl");
	struct rv_repair_options how = { .check = false, .wait_ms = 2000 };
	struct rv_error err = RV_ERROR_INIT;
	struct rv_repair repair;
	int result;

	put(path, before.data, before.len);
	append_row(path, ROW);
	got = get(path);
	got.len -= strlen(ROW) <= got.len ? strlen(ROW) : 0;
	replace_time(last_line(&got));
	(void)tap_ok(is_equal(&got, &after) && memcmp(got.data + got.len, ROW, strlen(ROW)) == 0, "append repairs: %s", title);

	put(path, before.data, before.len);
	result = rv_repair_run(&repair, path, &how, &err);
	rv_buffer_release(&got);
	got = get(path);
	replace_time(last_line(&got));
	if (result == 0)
		(void)tap_ok(is_equal(&got, &after) &&
				     rv_span_equal(action, rv_span_of(rv_repair_action_name(repair.result.action))),
			     "repair: %s", title);
	else
		(void)tap_ok(err.code == RV_E_CORRUPT && repair.scan.damage_count > 0 && is_equal(&got, &before),
			     "repair refuses interior damage: %s", title);
	rv_repair_release(&repair);
}

/* Which identities are one attempt: by bytes, and by the number where there is no attemptId. */
static void pairing(void)
{
	static const struct rv_row rows[] = {
		{ .attempt_id = { "0123abcd-0000-4000-8000-000000000000", 36 } },
		{ .attempt_id = { "0123ABCD-0000-4000-8000-000000000000", 36 } },
		{ .attempt_id = { "0123abcd-0000-4000-8000-00000000000", 35 } },
		{ .attempt_id = { "0123abcd00000-4000-8000-000000000000", 36 } },
		{ .attempt_id = { "", 0 } },
		{ .attempt_id = { "\0", 1 } },
		{ .key = { "k", 1 }, .started_at = 0.0 },
		{ .key = { "k", 1 }, .started_at = 1e-300 },
		{ .key = { "", 0 }, .started_at = 0.0 },
		{ .attempt_id = { "k", 1 }, .key = { "k", 1 } },
	};
	struct rv_row minus = { .key = { "k", 1 }, .started_at = -0.0 };
	struct rv_error err = RV_ERROR_INIT;
	struct rv_pairs *pairs = rv_pairs_new(&err);
	uint32_t entry;
	size_t good = 0;

	if (pairs == NULL)
		die("pairs", &err);
	for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		good += !rv_pairs_find(pairs, &rows[i], &entry) &&
			rv_pairs_mark(pairs, &rows[i], RV_PAIR_INTENT, &entry, &err) == 0 && entry == i;
	for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		good += rv_pairs_find(pairs, &rows[i], &entry) && entry == i &&
			rv_pairs_marks(pairs, entry) == RV_PAIR_INTENT;
	(void)tap_ok(good == 2 * sizeof rows / sizeof rows[0], "ten identities are ten");
	(void)tap_ok(rv_pairs_find(pairs, &minus, &entry) && entry == 6, "-0 is 0");
	rv_pairs_free(pairs);
}

/* Many, so that the table grows, and that some have one hash: of so many some forty pairs.  They are told
 * apart by their last bytes alone. */
static void many_pairs(void)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_pairs *pairs = rv_pairs_new(&err);
	const unsigned count = 600000;
	unsigned good = 0;

	for (int pass = 0; pairs != NULL && pass < 2; pass++) {
		for (unsigned i = 0; i < count; i++) {
			char id[40];
			struct rv_row row = { .attempt_id = { id, 0 } };
			uint32_t entry;

			row.attempt_id.len = (size_t)snprintf(id, sizeof id, i % 2 ? "01234567-0000-4000-8000-0000%08x" : "attempt-%08u", i);
			if (rv_pairs_mark(pairs, &row, pass == 0 ? RV_PAIR_INTENT : RV_PAIR_OUTCOME, &entry, &err) != 0)
				die("mark", &err);
			good += entry == i && rv_pairs_marks(pairs, entry) == (pass == 0 ? 1U : 3U);
		}
	}
	(void)tap_ok(good == 2 * count, "%u attempts pair", count);
	rv_pairs_free(pairs);
}

static void file_systems(void)
{
	static const struct {
		uint32_t magic;
		const char *name;
	} cases[] = { { 0x6969, "nfs" }, { 0xFF534D42, "cifs" }, { 0xFE534D42, "smb2" }, { 0x65735546, "fuse" },
		      { 0x01021997, "9p" }, { 0x5346414F, "afs" }, { 0x00C36400, "ceph" }, { 0xEF53, NULL },
		      { 0x01021994, NULL }, { 0x58465342, NULL }, { 0x9123683E, NULL }, { 0x794C7630, NULL } };
	size_t good = 0;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *name = rv_fs_remote_name(cases[i].magic);

		good += cases[i].name == NULL ? name == NULL : name != NULL && strcmp(name, cases[i].name) == 0;
	}
	(void)tap_ok(good == sizeof cases / sizeof cases[0], "network file systems are known from local ones");
}

static bool is_locked(const char *path, int64_t lock)
{
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_fd int fd = rv_io_open(path, O_RDONLY, 0, &err);

	return fd >= 0 && rv_io_lock_probe(fd, lock, 1, &err) == 1;
}

/* A ledger is renamed away while attempts live: theirs stay held in the old file, and in the new one. */
static void renamed(void)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_ledger *ledger;
	char path[128], old[128];
	int64_t first, second;

	(void)snprintf(path, sizeof path, "%s/l.jsonl", dir);
	(void)snprintf(old, sizeof old, "%s/old.jsonl", dir);
	if (rv_ledger_open(&ledger, path, &options, &err) != 0 || rv_ledger_hold(ledger, &first, &err) != 0 ||
	    rv_ledger_append(ledger, ROW, strlen(ROW), &err) != 0 || rename(path, old) != 0 ||
	    rv_ledger_append(ledger, ROW, strlen(ROW), &err) != 0 || rv_ledger_hold(ledger, &second, &err) != 0)
		die("renamed", &err);
	(void)tap_ok(is_locked(old, first) && is_locked(path, first), "a lock is held in both files");
	(void)tap_ok(!is_locked(old, second) && is_locked(path, second), "a later one only in the new one");
	(void)tap_ok(first >= (int64_t)1 << 52 && first < (int64_t)1 << 53 && first != second, "beyond any end of file");
	rv_ledger_drop(ledger, first);
	(void)tap_ok(!is_locked(old, first) && !is_locked(path, first) && is_locked(path, second), "dropped in both");
	(void)unlink(path);
	(void)tap_ok(rv_ledger_append(ledger, ROW, strlen(ROW), &err) == 0 && is_locked(path, second),
		     "a deleted ledger is created anew, with its live locks");
	rv_ledger_close(ledger);
	(void)tap_ok(!is_locked(path, second), "a close drops all");
	(void)unlink(path);
	(void)unlink(old);
}

static void found_orphans(void)
{
	rv_auto_buffer struct rv_buffer id = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	char path[128];
	bool found = true;

	(void)snprintf(path, sizeof path, "%s/l.jsonl", dir);
	(void)tap_ok(rv_ledger_find_orphan(path, RV_SPAN("k"), &found, &id, &err) == 0 && !found,
		     "a ledger that is not there has no orphan");
	append_row(path, ROW);
	(void)tap_ok(rv_ledger_find_orphan(path, RV_SPAN("k"), &found, &id, &err) == 0 && found && id.len == 1 &&
			     id.data[0] == 'a', "an orphan of the key is found, with its attempt");
	(void)tap_ok(rv_ledger_find_orphan(path, RV_SPAN("other"), &found, &id, &err) == 0 && !found, "not of another key");
	append_row(path, "x\n");
	(void)tap_ok(rv_ledger_find_orphan(path, RV_SPAN("k"), &found, &id, &err) != 0 && err.code == RV_E_CORRUPT,
		     "a corrupt ledger is no answer");
	(void)unlink(path);
}

int main(void)
{
	if (mkdtemp(dir) == NULL)
		return EXIT_FAILURE;
	(void)tap_ok(each_vector("ledger-scan.jsonl", fold_vector) == 87, "every scan vector was folded");
	(void)tap_ok(each_vector("ledger-scan.jsonl", report_vector) == 87, "every scan vector was reported");
	(void)tap_ok(each_vector("ledger-repair.jsonl", repair_vector) > 100, "every repair vector was repaired");
	pairing();
	many_pairs();
	file_systems();
	renamed();
	found_orphans();
	(void)unlink(path_of("report.jsonl"));
	(void)unlink(path_of("repair.jsonl"));
	(void)tap_ok(rmdir(dir) == 0, "nothing was left behind");
	return tap_end();
}

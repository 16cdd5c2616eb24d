/* lib/base and the small things of lib/digest: text from outside, buffers, errors, base64, identifiers. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buffer.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/io.h"
#include "lib/base/text.h"
#include "lib/digest/digest.h"
#include "t/unit/tap.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool is(struct rv_buffer *got, const char *want, size_t len)
{
	bool same = !got->failed && got->len == len && (len == 0 || memcmp(got->data, want, len) == 0);

	if (!same)
		tap_note("got %zu bytes: %.*s", got->len, (int)got->len, got->data != NULL ? got->data : "");
	rv_buffer_clear(got);
	return same;
}

/* ---- UTF-8 ---- */

static void test_utf8(void)
{
	static const struct {
		const char *text;
		size_t len, prefix;
	} cases[] = {
		{ "", 0, 0 },
		{ "plain", 5, 5 },
		{ "\0", 1, 1 },
		{ "\xC3\xA4", 2, 2 },
		{ "\xE2\x82\xAC", 3, 3 },
		{ "\xF0\x9F\x98\x80", 4, 4 },
		{ "\xF4\x8F\xBF\xBF", 4, 4 },
		{ "\xEF\xBF\xBF", 3, 3 },
		{ "\xED\x9F\xBF", 3, 3 },
		{ "\xEE\x80\x80", 3, 3 },
		{ "a\x80", 2, 1 },
		{ "\xC0\xAF", 2, 0 },
		{ "\xC1\xBF", 2, 0 },
		{ "\xE0\x9F\xBF", 3, 0 },
		{ "\xED\xA0\x80", 3, 0 },
		{ "\xF0\x8F\xBF\xBF", 4, 0 },
		{ "\xF4\x90\x80\x80", 4, 0 },
		{ "\xF5\x80\x80\x80", 4, 0 },
		{ "\xFF", 1, 0 },
		{ "12345678\xE2\x82", 10, 8 },
		{ "1234567\xE2\x82\xAC" "12345678\xC3", 19, 18 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		tap_ok(rv_text_utf8_prefix(cases[i].text, cases[i].len) == cases[i].prefix, "UTF-8 prefix %zu", i);
		tap_ok(rv_text_is_utf8(cases[i].text, cases[i].len) == (cases[i].prefix == cases[i].len), "UTF-8 or not %zu", i);
	}
}

#define BAD "\xEF\xBF\xBD"

static void test_lossy(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "plain", "plain" },
		{ "\x80", BAD },
		{ "a\xFF" "b", "a" BAD "b" },
		{ "\xE2\x82", BAD },                   /* one maximal part */
		{ "\xE2\x82x", BAD "x" },
		{ "\xF0\x9F\x98", BAD },
		{ "\xF0\x9F\x98\xF0\x9F\x98\x80", BAD "\xF0\x9F\x98\x80" },
		{ "\xED\xA0\x80", BAD BAD BAD },       /* a surrogate is three */
		{ "\xC0\xAF", BAD BAD },
		{ "\xF5\x80\x80\x80", BAD BAD BAD BAD },
		{ "\xF0\x80\x80\x41", BAD BAD BAD "A" },
	};
	struct rv_buffer out = RV_BUFFER_INIT;

	for (size_t i = 0; i < COUNT(cases); i++) {
		rv_text_add_lossy(&out, cases[i].text, strlen(cases[i].text));
		tap_ok(is(&out, cases[i].want, strlen(cases[i].want)), "lossy %zu", i);
	}
	rv_text_add_lossy(&out, "a\0b", 3);
	tap_ok(is(&out, "a\0b", 3), "a NUL is a character");
	rv_buffer_release(&out);
}

static void test_trim(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "", "" },
		{ " \t\n\v\f\r", "" },
		{ "  a b ", "a b" },
		{ "\xC2\xA0\xE1\x9A\x80\xE2\x80\x80\xE2\x80\x8A" "a\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAF\xE2\x81\x9F\xE3\x80\x80\xEF\xBB\xBF", "a" },
		{ "\xE2\x80\x8B" "a", "\xE2\x80\x8B" "a" },   /* a zero width space is none */
		{ "\xC2\x85" "a", "\xC2\x85" "a" },           /* nor is NEL */
		{ "\xE1\xA0\x8E" "a", "\xE1\xA0\x8E" "a" },   /* nor U+180E */
		{ "\x1F", "\x1F" },
		{ " \x80 ", "\x80" },
		{ "a\xA0 ", "a\xA0" },                        /* a lone continuation is no space */
		{ "\x80\x80\x80\xA0", "\x80\x80\x80\xA0" },
		{ "x \xC2", "x \xC2" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rv_span got = rv_text_trim(rv_span_of(cases[i].text));

		tap_ok(rv_span_equal(got, rv_span_of(cases[i].want)), "trim %zu", i);
	}
}

static void test_escape(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "plain \xC3\xA4", "plain \xC3\xA4" },
		{ "a\nb\tc\\d", "a\\nb\\tc\\\\d" },
		{ "\x1B[2J\x7F\r", "\\x1b[2J\\x7f\\x0d" },
		{ "\xC2\x9B", "\\u{9b}" },
		{ "\xE2\x80\xAE\xE2\x80\xA8\xE2\x81\xA6", "\\u{202e}\\u{2028}\\u{2066}" },
		{ "\xFFz\xE2\x82", "\\xffz\\xe2\\x82" },
	};
	struct rv_buffer out = RV_BUFFER_INIT;

	for (size_t i = 0; i < COUNT(cases); i++) {
		rv_text_add_escaped(&out, cases[i].text, strlen(cases[i].text));
		tap_ok(is(&out, cases[i].want, strlen(cases[i].want)), "escaped %zu", i);
	}
	rv_text_add_escaped(&out, "\0", 1);
	tap_ok(is(&out, "\\x00", 4), "an escaped NUL");
	rv_buffer_release(&out);
}

/* ---- what options hold ---- */

static void test_split(void)
{
	static const struct {
		const char *text;
		const char *want; /* the words, each behind a '|'; NULL: refused */
	} cases[] = {
		{ "", "" },
		{ " \t\n ", "" },
		{ "one", "|one" },
		{ " one  two\tthree\n", "|one|two|three" },
		{ "'a b' \"c d\" e\\ f", "|a b|c d|e f" },
		{ "a'b'\"c\"d", "|abcd" },
		{ "'' \"\" x", "|||x" },
		{ "'\\n$x`y`'", "|\\n$x`y`" },
		{ "\"\\$\\`\\\"\\\\\\a\"", "|$`\"\\\\a" },
		{ "\\'\\\"\\$", "|'\"$" },
		{ "a\\\nb", "|ab" },
		{ "\"a\\\nb\"", "|ab" },
		{ "* ~ $HOME #x", "|*|~|$HOME|#x" },
		{ "'open", NULL },
		{ "\"open", NULL },
		{ "\"open\\\"", NULL },
		{ "back\\", NULL },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rv_error err = RV_ERROR_INIT;
		struct rv_buffer seen = RV_BUFFER_INIT;
		char **words = NULL;
		size_t count = 0;
		int got = rv_text_split(cases[i].text, &words, &count, &err);

		for (size_t j = 0; got == 0 && j < count; j++)
			rv_buffer_printf(&seen, "|%s", words[j]);
		if (cases[i].want == NULL)
			tap_ok(got == -1 && err.code == RV_E_USAGE && words == NULL, "split %zu is refused", i);
		else
			tap_ok(got == 0 && words[count] == NULL && is(&seen, cases[i].want, strlen(cases[i].want)), "split %zu", i);
		free(words);
		rv_buffer_release(&seen);
	}
}

static void test_duration(void)
{
	static const struct {
		const char *text;
		long long want; /* -1: refused */
	} cases[] = {
		{ "0ms", 0 },        { "300ms", 300 },   { "10s", 10000 }, { "2m", 120000 },
		{ "1h", 3600000 },   { "007s", 7000 },   { "5", -1 },      { "", -1 },
		{ "s", -1 },         { "-1s", -1 },      { "+1s", -1 },    { "1.5s", -1 },
		{ "1 s", -1 },       { " 1s", -1 },      { "1s ", -1 },    { "1S", -1 },
		{ "1d", -1 },        { "1ss", -1 },      { "1e3ms", -1 },  { "99999999999999999999s", -1 },
		{ "876000h", 3153600000000LL },          { "876001h", -1 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rv_error err = RV_ERROR_INIT;
		long long ms = -1;
		int got = rv_text_duration(cases[i].text, &ms, &err);

		tap_ok(got == (cases[i].want < 0 ? -1 : 0) && ms == cases[i].want, "duration '%s'", cases[i].text);
	}
}

static void test_size(void)
{
	static const struct {
		const char *text;
		unsigned long long want;
		bool good;
	} cases[] = {
		{ "0", 0, true },          { "17", 17, true },       { "17B", 17, true },       { "2KiB", 2048, true },
		{ "1MiB", 1048576, true }, { "3GiB", 3221225472ULL, true },
		{ "1kB", 0, false },       { "1KB", 0, false },      { "1K", 0, false },        { "-1", 0, false },
		{ "1 KiB", 0, false },     { "", 0, false },         { "KiB", 0, false },       { "0x10", 0, false },
		{ "9223372036854775807", 9223372036854775807ULL, true }, { "9223372036854775808", 0, false },
		{ "8589934591GiB", 9223372035781033984ULL, true },       { "8589934592GiB", 0, false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rv_error err = RV_ERROR_INIT;
		unsigned long long bytes = 0;
		int got = rv_text_size(cases[i].text, &bytes, &err);

		tap_ok(got == (cases[i].good ? 0 : -1) && bytes == cases[i].want, "size '%s'", cases[i].text);
	}
}

static void test_integer(void)
{
	struct rv_error err = RV_ERROR_INIT;
	long long value = 7;

	tap_ok(rv_text_integer("0", 0, 5, &value, &err) == 0 && value == 0, "the least");
	tap_ok(rv_text_integer("5", 0, 5, &value, &err) == 0 && value == 5, "the most");
	tap_ok(rv_text_integer("9007199254740991", 0, 9007199254740991LL, &value, &err) == 0 && value == 9007199254740991LL, "2^53-1");
	tap_ok(rv_text_integer("-3", -5, 5, &value, &err) == 0 && value == -3, "a negative one");
	value = 7;
	tap_ok(rv_text_integer("9007199254740992", 0, 9007199254740991LL, &value, &err) != 0, "2^53 is too much");
	tap_ok(rv_text_integer("6", 0, 5, &value, &err) != 0, "too much");
	tap_ok(rv_text_integer("-1", 0, 5, &value, &err) != 0, "a sign where there is none");
	tap_ok(rv_text_integer("+1", 0, 5, &value, &err) != 0 && rv_text_integer("", 0, 5, &value, &err) != 0 &&
		       rv_text_integer("1x", 0, 5, &value, &err) != 0 && rv_text_integer(" 1", 0, 5, &value, &err) != 0,
	       "no digits alone");
	tap_ok(value == 7, "a refusal leaves the value");
}

/* ---- buffers and errors ---- */

static void test_buffer(void)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_buffer buf;
	size_t len = 0;
	char *taken;

	rv_buffer_init(&buf, 8);
	rv_buffer_add(&buf, "1234567", 7);
	tap_ok(rv_buffer_check(&buf, &err) == 0, "up to the cap");
	rv_buffer_add(&buf, "89", 2);
	tap_ok(rv_buffer_check(&buf, &err) == -1 && err.code == RV_E_NOMEM && buf.len == 7, "beyond it, and what fitted stays");
	rv_buffer_add_byte(&buf, 'x');
	tap_ok(buf.len == 7 && rv_buffer_string(&buf) == NULL && rv_buffer_reserve(&buf, 0) == NULL, "a failure stays");
	rv_buffer_clear(&buf);
	rv_buffer_add(&buf, "12345678", 8);
	tap_ok(rv_buffer_check(&buf, &err) == 0 && buf.len == 8, "cleared, it works again up to the very cap");
	tap_ok(rv_buffer_string(&buf) == NULL, "no room for the NUL");
	rv_buffer_release(&buf);
	tap_ok(buf.data == NULL && buf.max == 8, "released, the cap stays");
	rv_buffer_init(&buf, 0);
	rv_buffer_printf(&buf, "%d-%s", 42, "x");
	tap_ok(strcmp(rv_buffer_string(&buf), "42-x") == 0 && buf.len == 4, "printf, and a string");
	rv_buffer_add(&buf, NULL, 0);
	taken = rv_buffer_steal(&buf, &len);
	tap_ok(len == 4 && strcmp(taken, "42-x") == 0 && buf.data == NULL && buf.len == 0, "stolen");
	free(taken);
	for (int i = 0; i < 100000; i++)
		rv_buffer_add_byte(&buf, (char)('a' + i % 26));
	tap_ok(buf.len == 100000 && buf.data[99999] == 'a' + 99999 % 26, "it grows");
	tap_ok(rv_buffer_reserve(&buf, RV_BUFFER_MAX) == NULL, "what no memory can hold");
	rv_buffer_release(&buf);
}

static void test_error(void)
{
	struct rv_error err = RV_ERROR_INIT;
	char longer[RV_ERROR_MESSAGE_MAX + 100];

	(void)rv_error_set(&err, RV_E_IO, ENOENT, "open %s", "x");
	tap_ok(strcmp(err.message, "open x: No such file or directory") == 0 && err.errnum == ENOENT, "with an errno");
	(void)rv_error_wrap(&err, "ledger %d", 3);
	tap_ok(strcmp(err.message, "ledger 3: open x: No such file or directory") == 0, "wrapped");
	(void)rv_error_set(&err, RV_E_IO, 0, "again: %s", err.message);
	tap_ok(strcmp(err.message, "again: ledger 3: open x: No such file or directory") == 0, "from its own message");
	for (size_t i = 0; i + 2 < sizeof longer; i += 2)
		memcpy(longer + i, "\xC3\xA4", 2);
	longer[sizeof longer - 2] = '\0';
	for (int shift = 0; shift < 2; shift++) {
		(void)rv_error_set(&err, RV_E_IO, 0, "%s%s", shift == 0 ? "" : "a", longer);
		tap_ok(strlen(err.message) >= RV_ERROR_MESSAGE_MAX - 3 && rv_text_is_utf8(err.message, strlen(err.message)), "cut at a character");
	}
	(void)rv_error_wrap(&err, "b");
	tap_ok(rv_text_is_utf8(err.message, strlen(err.message)), "cut at a character by a wrap");
	(void)rv_error_set(&err, RV_E_IO, ENOENT, "%s", longer);
	tap_ok(strlen(err.message) < RV_ERROR_MESSAGE_MAX && rv_text_is_utf8(err.message, strlen(err.message)), "no room for the errno");
	for (int code = RV_E_NONE; code <= RV_E_LEDGER; code++)
		tap_ok(rv_code_name((enum rv_code)code)[0] != '\0', "code %d has a name", code);
	tap_ok(strcmp(rv_code_name(RV_E_SPAWN), "spawn") == 0 && strcmp(rv_code_name(RV_E_SPAWN_MISSING), "spawn") == 0 &&
		       strcmp(rv_code_name(RV_E_OUTPUT_CAP), "output-cap") == 0,
	       "names as in a reply");
	rv_error_clear(&err);
	tap_ok(err.code == RV_E_NONE && err.message[0] == '\0', "cleared");
}

/* ---- digest ---- */

static void test_base64(void)
{
	static const struct {
		const char *plain, *text;
	} cases[] = {
		{ "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" }, { "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" }, { "\xFB\xFF\xBF", "+/+/" },
	};
	static const char *const bad[] = { "Zg=", "Zg", "Z", "Zh==", "Zm9=", "Zg==Zg==", "Zm9v\n", " Zm9v", "Zm9_", "====", "=", "Z===", "Zg= =" };
	struct rv_error err = RV_ERROR_INIT;
	struct rv_buffer out = RV_BUFFER_INIT;

	for (size_t i = 0; i < COUNT(cases); i++) {
		rv_base64_add(&out, cases[i].plain, strlen(cases[i].plain));
		tap_ok(is(&out, cases[i].text, strlen(cases[i].text)), "base64 of %zu bytes", strlen(cases[i].plain));
		tap_ok(rv_base64_decode(&out, cases[i].text, strlen(cases[i].text), &err) == 0 &&
			       is(&out, cases[i].plain, strlen(cases[i].plain)),
		       "and back");
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		rv_error_clear(&err);
		tap_ok(rv_base64_decode(&out, bad[i], strlen(bad[i]), &err) == -1 && err.code == RV_E_REQUEST, "no base64: %zu", i);
		rv_buffer_clear(&out);
	}
	rv_buffer_release(&out);
}

static void test_base64_long(void)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_buffer text = RV_BUFFER_INIT;
	struct rv_buffer back = RV_BUFFER_INIT;
	static unsigned char bytes[100001];
	bool good = true;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * 131 >> 3);
	for (size_t len = sizeof bytes - 3; len <= sizeof bytes; len++) {
		rv_buffer_clear(&text);
		rv_base64_add(&text, bytes, len);
		good = good && text.len == (len + 2) / 3 * 4 && rv_base64_decode(&back, text.data, text.len, &err) == 0 &&
		       is(&back, (const char *)bytes, len);
	}
	tap_ok(good, "100,000 bytes there and back");
	rv_buffer_release(&text);
	rv_buffer_release(&back);
}

static void test_identifiers(void)
{
	static char all[2000][RV_UUID_TEXT];
	struct rv_error err = RV_ERROR_INIT;
	bool shaped = true;
	bool distinct = true;
	char hex[9];

	for (size_t i = 0; i < COUNT(all); i++) {
		shaped = shaped && rv_uuid(all[i], &err) == 0 && strlen(all[i]) == 36 && strspn(all[i], "0123456789abcdef-") == 36 &&
			 all[i][8] == '-' && all[i][13] == '-' && all[i][18] == '-' && all[i][23] == '-' && all[i][14] == '4' &&
			 strchr("89ab", all[i][19]) != NULL;
		for (size_t j = 0; j < i; j++)
			distinct = distinct && strcmp(all[i], all[j]) != 0;
	}
	tap_ok(shaped, "identifiers of version 4");
	tap_ok(distinct, "each of them once");
	rv_hex((const unsigned char *)"\x00\x0f\xa5\xff", 4, hex);
	tap_ok(strcmp(hex, "000fa5ff") == 0, "hex");
}

static void test_sha256(void)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_sha256 *sha = rv_sha256_new(&err);
	unsigned char digest[RV_SHA256_SIZE];
	char hex[RV_SHA256_HEX];
	char twice[RV_SHA256_HEX];

	(void)rv_sha256_hex(sha, "", 0, hex, &err);
	tap_ok(strcmp(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855") == 0, "of nothing");
	(void)rv_sha256_hex(sha, "abc", 3, hex, &err);
	tap_ok(strcmp(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad") == 0, "of abc, with the same hasher");
	(void)rv_sha256_begin(sha, &err);
	(void)rv_sha256_update(sha, "a", 1, &err);
	(void)rv_sha256_update(sha, "", 0, &err);
	(void)rv_sha256_update(sha, "bc", 2, &err);
	(void)rv_sha256_end(sha, digest, &err);
	rv_hex(digest, sizeof digest, twice);
	tap_ok(strcmp(hex, twice) == 0, "in parts");
	rv_sha256_free(sha);
	rv_sha256_free(NULL);
}

/* ---- files and clocks ---- */

static void test_io(void)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_buffer out = RV_BUFFER_INIT;
	char name[] = "test-base.XXXXXX";
	char short_of[16];
	int made = mkstemp(name);
	int fd = rv_io_open(name, O_RDWR, 0, &err);

	tap_ok(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "close-on-exec from birth");
	tap_ok(rv_io_write_all(fd, "0123456789", 10, &err) == 0, "written");
	tap_ok(rv_io_pread_all(fd, short_of, 5, 5, &err) == 0 && memcmp(short_of, "56789", 5) == 0, "read from a place");
	tap_ok(rv_io_pread_all(fd, short_of, 6, 5, &err) == -1 && err.code == RV_E_IO, "a file that is shorter");
	tap_ok(rv_io_read_file(name, &out, &err) == 0 && is(&out, "0123456789", 10), "a whole file");
	out.max = 9;
	tap_ok(rv_io_read_file(name, &out, &err) == -1 && err.code == RV_E_NOMEM, "a cap holds");
	rv_buffer_clear(&out);
	tap_ok(rv_io_read_file("/nonexistent/file", &out, &err) == -1 && err.errnum == ENOENT, "no such file");
	tap_ok(rv_io_sync_parent(name, &err) == 0 && rv_io_sync_parent("/file", &err) == 0, "a directory synced");
	rv_buffer_release(&out);
	(void)close(fd);
	(void)close(made);
	(void)unlink(name);
}

static void test_locks(void)
{
	struct rv_error err = RV_ERROR_INIT;
	char name[] = "test-base.XXXXXX";
	int one = mkstemp(name);
	int two = rv_io_open(name, O_RDWR, 0, &err);
	int reader = rv_io_open(name, O_RDONLY, 0, &err);
	int64_t began = rv_clock_mono_ms();

	tap_ok(rv_io_lock(one, 10, 5, 0, &err) == 0, "a lock");
	tap_ok(rv_io_lock(two, 15, 5, 0, &err) == 0, "another beside it");
	tap_ok(rv_io_lock(two, 14, 1, began + 60, &err) == -1 && err.code == RV_E_BUSY && rv_clock_mono_ms() >= began + 60, "a deadline");
	tap_ok(rv_io_lock_probe(reader, 12, 1, &err) == 1 && rv_io_lock_probe(reader, 20, 1, &err) == 0, "seen by a reader");
	(void)close(rv_io_open(name, O_RDWR, 0, &err));
	tap_ok(rv_io_lock_probe(reader, 12, 1, &err) == 1, "not lost by another descriptor's close");
	tap_ok(rv_io_lock(reader, 30, 1, 0, &err) == -1 && err.code == RV_E_IO, "a reader has none");
	(void)rv_io_unlock(one, 10, 5, &err);
	tap_ok(rv_io_lock(two, 14, 1, 0, &err) == 0, "given back");
	(void)close(two);
	tap_ok(rv_io_lock_probe(reader, 14, 1, &err) == 0, "gone with its description");
	(void)close(one);
	(void)close(reader);
	(void)unlink(name);
}

static void test_clock(void)
{
	int64_t now = rv_clock_mono_ms();

	tap_ok(rv_clock_left_ms(now - 5) == 0 && rv_clock_left_ms(0) == 0, "past");
	tap_ok(rv_clock_left_ms(INT64_MAX) == INT32_MAX, "a wait has an end");
	rv_clock_pause_ms(20);
	tap_ok(rv_clock_mono_ms() >= now + 20, "a pause");
	tap_ok(rv_clock_wall_ms() > 1700000000000, "the wall clock in milliseconds");
}

int main(void)
{
	test_utf8();
	test_lossy();
	test_trim();
	test_escape();
	test_split();
	test_duration();
	test_size();
	test_integer();
	test_buffer();
	test_error();
	test_base64();
	test_base64_long();
	test_identifiers();
	test_sha256();
	test_io();
	test_locks();
	test_clock();
	return tap_end();
}

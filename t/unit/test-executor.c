/* lib/executor: a tool's environment, a command's name, what a finished run means, and a stream's way out. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/executor/admit.h"
#include "lib/executor/batch.h"
#include "lib/executor/command.h"
#include "lib/executor/dispatch.h"
#include "lib/executor/environment.h"
#include "lib/executor/port.h"
#include "t/unit/tap.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* ---- environment ---- */

static const char *value_of(const struct rv_environment *env, const char *name)
{
	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->entries[i], name, strlen(name)) == 0 && env->entries[i][strlen(name)] == '=')
			return env->entries[i] + strlen(name) + 1;
	}
	return NULL;
}

static void test_environment(void)
{
	struct rv_environment env = RV_ENVIRONMENT_INIT;
	struct rv_error err = RV_ERROR_INIT;

	(void)setenv("RV_UNIT", "from here", 1);
	(void)unsetenv("RV_ABSENT");
	tap_ok(rv_environment_allow(&env, "RV_UNIT", &err) == 0 && strcmp(value_of(&env, "RV_UNIT"), "from here") == 0, "allowed");
	tap_ok(rv_environment_allow(&env, "RV_ABSENT", &err) == 0 && env.count == 1, "absent: left out");
	tap_ok(rv_environment_put(&env, "RV_UNIT=a=b", &err) == 0 && env.count == 1 && strcmp(value_of(&env, "RV_UNIT"), "a=b") == 0, "later wins");
	tap_ok(rv_environment_put(&env, "RV_UNI=x", &err) == 0 && env.count == 2 && strcmp(value_of(&env, "RV_UNIT"), "a=b") == 0, "a name that begins alike is another");
	tap_ok(rv_environment_set(&env, RV_SPAN("E"), RV_SPAN(""), &err) == 0 && value_of(&env, "E")[0] == '\0', "an empty value");
	tap_ok(env.entries[env.count] == NULL, "ended by NULL");
	for (int i = 0; i < 100; i++) {
		char text[32];

		(void)snprintf(text, sizeof text, "N%d=%d", i, i);
		(void)rv_environment_put(&env, text, &err);
	}
	tap_ok(env.count == 103 && strcmp(value_of(&env, "N99"), "99") == 0 && env.entries[103] == NULL, "it grows");
	rv_environment_release(&env);
	tap_ok(env.count == 0 && env.entries == NULL, "released");
}

static void test_environment_refusals(void)
{
	struct rv_environment env = RV_ENVIRONMENT_INIT;
	struct rv_error err = RV_ERROR_INIT;

	tap_ok(rv_environment_put(&env, "secret", &err) == -1 && err.code == RV_E_CONFIG && strstr(err.message, "secret") == NULL, "no '='");
	tap_ok(rv_environment_put(&env, "=secret", &err) == -1 && strstr(err.message, "secret") == NULL, "no name");
	tap_ok(rv_environment_allow(&env, "", &err) == -1 && rv_environment_allow(&env, "A=B", &err) == -1, "no name to allow");
	tap_ok(rv_environment_set(&env, (struct rv_span){ "A\0B", 3 }, RV_SPAN("x"), &err) == -1, "a NUL in the name");
	tap_ok(rv_environment_set(&env, RV_SPAN("A"), (struct rv_span){ "sec\0ret", 7 }, &err) == -1 && strstr(err.message, "sec") == NULL, "a NUL in the value");
	tap_ok(rv_environment_set(&env, RV_SPAN("A=B"), RV_SPAN("x"), &err) == -1 && env.count == 0, "'=' in the name");
	rv_environment_release(&env);
}

/* ---- commands ---- */

static void make(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0)
		(void)close(fd);
	(void)chmod(path, mode);
}

static bool finds(const char *path, const char *name, const char *want)
{
	struct rv_buffer found = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	char here[512];
	char whole[1024];
	bool good;

	if (getcwd(here, sizeof here) == NULL)
		return false;
	(void)snprintf(whole, sizeof whole, "%s%s%s", want[0] == '/' ? "" : here, want[0] == '/' ? "" : "/", want);
	if (path != NULL)
		(void)setenv("PATH", path, 1);
	else
		(void)unsetenv("PATH");
	good = rv_command_find(&found, name, &err) == 0 && strcmp(found.data, whole) == 0;
	if (!good)
		tap_note("got %s (%s)", found.data != NULL ? found.data : "", err.message);
	rv_buffer_release(&found);
	return good;
}

static enum rv_code refuses(const char *path, const char *name)
{
	struct rv_buffer found = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;

	(void)setenv("PATH", path, 1);
	(void)rv_command_find(&found, name, &err);
	rv_buffer_release(&found);
	return err.code;
}

static void test_command_find(void)
{
	(void)mkdir("one", 0700);
	(void)mkdir("two", 0700);
	(void)mkdir("two/prog", 0700);
	(void)mkdir("three", 0700);
	make("one/prog", 0600);
	make("three/prog", 0700);
	make("here", 0700);
	tap_ok(finds("one:two:three", "prog", "three/prog"), "what cannot be run is passed over");
	tap_ok(finds("/nonexistent:three:one", "prog", "three/prog"), "a directory that is not there");
	tap_ok(finds(":three", "here", "./here"), "an empty part is the current directory, at the start");
	tap_ok(finds("one::three", "here", "./here"), "in the middle");
	tap_ok(finds("one:", "here", "./here"), "at the end");
	tap_ok(finds(NULL, "sh", "/usr/bin/sh") || finds(NULL, "sh", "/bin/sh"), "no PATH at all");
	tap_ok(finds("", "three/prog", "three/prog") && finds("x", "/no/such", "/no/such"), "with a slash it is as it is");
	tap_ok(refuses("one", "prog") == RV_E_SPAWN && refuses("two:one", "prog") == RV_E_SPAWN, "found, and cannot be run");
	tap_ok(refuses("one:three", "other") == RV_E_SPAWN_MISSING, "not found");
	tap_ok(refuses("one", "") == RV_E_CONFIG, "an empty name");
	(void)unlink("one/prog");
	(void)unlink("three/prog");
	(void)unlink("here");
	(void)rmdir("two/prog");
	(void)rmdir("one");
	(void)rmdir("two");
	(void)rmdir("three");
}

static void test_command_failed(void)
{
	struct rv_error err = RV_ERROR_INIT;

	(void)rv_command_failed("/no/such", ENOENT, &err);
	tap_ok(err.code == RV_E_SPAWN_MISSING, "not there");
	(void)rv_command_failed("/bin/sh", ENOENT, &err);
	tap_ok(err.code == RV_E_SPAWN && strstr(err.message, "interpreter") != NULL, "there, and its interpreter is not");
	(void)rv_command_failed("/bin/sh", ENOEXEC, &err);
	tap_ok(err.code == RV_E_SPAWN && strstr(err.message, "no shell") != NULL, "no program");
	(void)rv_command_failed("/tmp", EACCES, &err);
	tap_ok(err.code == RV_E_SPAWN && err.errnum == EISDIR, "a directory");
	(void)rv_command_failed("/bin/sh", E2BIG, &err);
	tap_ok(err.code == RV_E_SPAWN && err.errnum == E2BIG, "too much");
	(void)rv_command_failed("/bin/sh", ETXTBSY, &err);
	tap_ok(err.code == RV_E_SPAWN && err.errnum == ETXTBSY, "busy");
}

/* ---- what a run means ---- */

static bool tail_is(const char *text, size_t len, bool cut, size_t characters, const char *want)
{
	struct rv_buffer out = RV_BUFFER_INIT;
	bool good;

	rv_admit_add_tail(&out, (struct rv_span){ text, len }, cut, characters);
	good = out.len == strlen(want) && (out.len == 0 || memcmp(out.data, want, out.len) == 0);
	if (!good)
		tap_note("got %.*s", (int)out.len, out.data != NULL ? out.data : "");
	rv_buffer_release(&out);
	return good;
}

#define BAD "\xEF\xBF\xBD"

static void test_tail(void)
{
	tap_ok(tail_is("", 0, false, 5, ""), "nothing");
	tap_ok(tail_is("abc", 3, false, 5, "abc") && tail_is("abcde", 5, false, 5, "abcde"), "all of it");
	tap_ok(tail_is("abcdef", 6, false, 5, "bcdef") && tail_is("abc", 3, false, 0, ""), "the end of it");
	tap_ok(tail_is("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z", 10, false, 3, "\xE2\x82\xAC\xF0\x9F\x98\x80z"), "counted in characters");
	tap_ok(tail_is("\x82\xAC" "ab", 4, true, 5, "ab"), "the rest of a character that was cut is left out");
	tap_ok(tail_is("\x9F\x98\x80" "ab", 5, true, 5, "ab"), "a longer rest");
	tap_ok(tail_is("\x80\x80\x80\x80" "ab", 6, true, 5, BAD "ab"), "more than a rest can be is invalid");
	tap_ok(tail_is("\x82\xAC" "ab", 4, false, 5, BAD BAD "ab"), "uncut, they are the tool's own");
	tap_ok(tail_is("a\xFF" "b", 3, false, 2, BAD "b"), "a replacement is one character");
	tap_ok(tail_is("a\0b", 3, false, 5, "a" BAD "b"), "a NUL");
	tap_ok(tail_is("\x80\x80", 2, true, 5, ""), "nothing but a rest");
}

struct ending {
	const char *what;
	struct rv_run_result run;
	const char *out;
	enum rv_code code;
	const char *result; /* where it is good */
	const char *words;  /* in the message */
};

static const struct ending endings[] = {
	{ "a value", { .exit_code = 0 }, " {\"a\" : 1.0} \n", RV_E_NONE, "{\"a\":1.0}", NULL },
	{ "nothing", { .exit_code = 0 }, "", RV_E_NONE, "null", NULL },
	{ "white space", { .exit_code = 0 }, "\xEF\xBB\xBF\n", RV_E_NONE, "null", NULL },
	{ "words", { .exit_code = 0 }, "hello", RV_E_PROTOCOL, NULL, "JSON" },
	{ "two values", { .exit_code = 0 }, "1 2", RV_E_PROTOCOL, NULL, NULL },
	{ "invalid UTF-8", { .exit_code = 0 }, "\"\xFF\"", RV_E_PROTOCOL, NULL, NULL },
	{ "a status", { .exit_code = 3 }, "1", RV_E_EXIT, NULL, "status 3" },
	{ "status 124", { .exit_code = 124 }, "1", RV_E_EXIT, NULL, "124" },
	{ "a signal", { .exit_code = -1, .signal_number = SIGSEGV }, "1", RV_E_EXIT, NULL, "SIGSEGV" },
	{ "a lost worker", { .exit_code = -1, .signal_number = SIGKILL, .lost = true }, "1", RV_E_EXIT, NULL, "worker" },
	{ "a lost worker, exit 0", { .exit_code = 0, .lost = true }, "1", RV_E_EXIT, NULL, "worker" },
	{ "a deadline", { .exit_code = 0, .reason = RV_RUN_TIMEOUT }, "1", RV_E_TIMEOUT, NULL, "100 ms" },
	{ "an abort", { .exit_code = 0, .reason = RV_RUN_ABORTED }, "1", RV_E_ABORTED, NULL, NULL },
	{ "a cap", { .exit_code = 0, .reason = RV_RUN_OUTPUT_CAP }, "1", RV_E_OUTPUT_CAP, NULL, "1000" },
	{ "half an output", { .exit_code = 0, .io_error = EIO }, "1", RV_E_PROTOCOL, NULL, NULL },
	{ "no exec", { .exit_code = -1, .step = RV_START_EXEC, .errnum = ENOENT }, "", RV_E_SPAWN_MISSING, NULL, "no/such" },
	{ "no permission", { .exit_code = -1, .step = RV_START_EXEC, .errnum = EACCES }, "", RV_E_SPAWN, NULL, NULL },
	{ "no fork", { .exit_code = -1, .step = RV_START_FORK, .errnum = EAGAIN }, "", RV_E_SPAWN, NULL, "fork" },
	{ "no workdir", { .exit_code = -1, .step = RV_START_CWD, .errnum = ENOENT }, "", RV_E_SPAWN, NULL, "workdir" },
	{ "no set-up", { .exit_code = -1, .step = RV_START_SETUP, .errnum = EPERM }, "", RV_E_SPAWN, NULL, "set-up" },
};

static void test_admit(void)
{
	struct rv_executor executor = { .max_output = 1000 };
	struct rv_call call = { .command = "/no/such", .timeout_ms = 100 };

	for (size_t i = 0; i < COUNT(endings); i++) {
		struct rv_run_result run = endings[i].run;
		struct rv_buffer out = RV_BUFFER_INIT;
		struct rv_error err = RV_ERROR_INIT;
		int got;

		rv_buffer_add_string(&run.out, endings[i].out);
		got = rv_admit_tool(&run, &executor, &call, &out, &err);
		tap_ok(err.code == endings[i].code && got == (endings[i].code == RV_E_NONE ? 0 : -1), "%s", endings[i].what);
		if (endings[i].result != NULL)
			tap_ok(out.len == strlen(endings[i].result) && memcmp(out.data, endings[i].result, out.len) == 0, "its result");
		if (endings[i].words != NULL)
			tap_ok(strstr(err.message, endings[i].words) != NULL, "its message: %s", err.message);
		rv_buffer_release(&run.out);
		rv_buffer_release(&out);
	}
}

static enum rv_code admits(const char *text, struct rv_run_result run, struct rv_environment *env, bool *shows)
{
	struct rv_error err = RV_ERROR_INIT;

	rv_buffer_add_string(&run.out, text);
	(void)rv_admit_credentials(&run, env, &err);
	rv_buffer_release(&run.out);
	*shows = strstr(err.message, "geheim") != NULL;
	return err.code;
}

static void test_credentials(void)
{
	static const char *const bad[] = {
		"", "null", "[]", "\"geheim\"", "{\"T\":1}", "{\"T\":null}", "{\"T\":[\"geheim\"]}", "{\"T\":\"geheim\"",
		"{\"T\":\"geheim\"}x", "{\"\":\"geheim\"}", "{\"A=B\":\"geheim\"}", "{\"T\":\"geheim\\u0000\"}", "{\"T\\u0000\":\"geheim\"}",
	};
	struct rv_environment env = RV_ENVIRONMENT_INIT;
	bool shows = false;

	tap_ok(admits(" {\"T\":\"geheim\",\"U\":\"\",\"T\":\"last\"}\n", (struct rv_run_result){ .exit_code = 0 }, &env, &shows) == RV_E_NONE &&
		       env.count == 2 && strcmp(value_of(&env, "T"), "last") == 0,
	       "an object of strings");
	rv_environment_release(&env);
	tap_ok(admits("{}", (struct rv_run_result){ .exit_code = 0 }, &env, &shows) == RV_E_NONE && env.count == 0, "none at all");
	for (size_t i = 0; i < COUNT(bad); i++) {
		tap_ok(admits(bad[i], (struct rv_run_result){ .exit_code = 0 }, &env, &shows) == RV_E_CONFIG && !shows, "rubbish %zu", i);
		rv_environment_release(&env);
	}
	tap_ok(admits("{\"T\":\"geheim\"}", (struct rv_run_result){ .exit_code = 1 }, &env, &shows) == RV_E_CONFIG && !shows && env.count == 0, "a status");
	tap_ok(admits("{\"T\":\"geheim\"}", (struct rv_run_result){ .exit_code = -1, .signal_number = 9 }, &env, &shows) == RV_E_CONFIG && env.count == 0, "a signal");
	tap_ok(admits("{}", (struct rv_run_result){ .reason = RV_RUN_TIMEOUT }, &env, &shows) == RV_E_CONFIG, "a deadline");
	tap_ok(admits("{}", (struct rv_run_result){ .reason = RV_RUN_ABORTED }, &env, &shows) == RV_E_ABORTED, "an abort");
	tap_ok(admits("{}", (struct rv_run_result){ .reason = RV_RUN_OUTPUT_CAP }, &env, &shows) == RV_E_CONFIG, "a cap");
	tap_ok(admits("{}", (struct rv_run_result){ .io_error = EIO }, &env, &shows) == RV_E_CONFIG, "half an output");
	tap_ok(admits("{}", (struct rv_run_result){ .step = RV_START_EXEC, .errnum = EACCES }, &env, &shows) == RV_E_CONFIG, "no exec");
	rv_environment_release(&env);
}

/* A reader who takes as much as comes, and is always 1200 KiB behind: more than the pipe, made large, holds. */
static void test_outlet(void)
{
	static char taken[8192];
	struct rv_error err = RV_ERROR_INIT;
	struct rv_loop loop = { .epoll = -1 };
	struct rv_outlet outlet;
	unsigned char expected = 0;
	bool good = true;
	int ends[2];

	if (!tap_ok(pipe2(ends, O_CLOEXEC) == 0 && rv_loop_init(&loop, &err) == 0, "a pipe and a loop"))
		return;
	rv_outlet_init(&outlet, &loop, ends[1]);
	for (int i = 0; i < 4000 && good; i++) {
		rv_auto_buffer struct rv_buffer bytes = RV_BUFFER_INIT;

		for (int n = 0; n < 8192; n++)
			rv_buffer_add_byte(&bytes, (char)((i * 8192 + n) % 251));
		rv_outlet_add(&outlet, &bytes);
		good = bytes.len == 0 && rv_outlet_turn(&outlet, &err) == 0 && rv_loop_turn(&loop, 0, &err) == 0;
		for (ssize_t left = i < 150 ? 0 : 8192; left > 0 && good;) {
			ssize_t n = read(ends[0], taken, (size_t)left);

			good = n > 0;
			left -= n;
			for (ssize_t at = 0; at < n; at++, expected = (unsigned char)((expected + 1) % 251))
				good = good && (unsigned char)taken[at] == expected;
			good = good && rv_outlet_turn(&outlet, &err) == 0 && rv_loop_turn(&loop, 0, &err) == 0;
		}
	}
	tap_ok(good && rv_outlet_pending(&outlet) > 100000, "every byte in its order, always some behind");
	tap_ok(outlet.bytes.cap <= 4 << 20, "and memory for what is behind: %zu bytes", outlet.bytes.cap);
	rv_outlet_release(&outlet);
	rv_loop_release(&loop);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

/* ---- group commit ---- */

#define SYNC_MS 10

struct slow_sink {
	struct rv_sink sink; /* first */
	int64_t ms;
	size_t takes, rows;
};

static void take_slowly(struct rv_sink *sink, const struct rv_sink_row *rows, size_t count)
{
	struct slow_sink *slow = (struct slow_sink *)sink;

	(void)rows;
	slow->takes++;
	slow->rows += count;
	rv_clock_pause_ms((int)slow->ms);
}

static void add_rows(struct rv_batch *batch, size_t count)
{
	rv_auto_buffer struct rv_buffer row = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;

	rv_buffer_add_string(&row, "row\n");
	while (count-- > 0) {
		if (rv_batch_add(batch, NULL, &row, &err) != 0)
			tap_ok(false, "%s", err.message);
	}
}

/* No instant is waited for: what is asked is until when the batch would wait. */
static void test_batch(void)
{
	struct slow_sink slow = { .sink = { .take = take_slowly }, .ms = SYNC_MS };
	struct rv_batch batch = RV_BATCH_INIT;
	int64_t first, later;

	batch.sink = &slow.sink;
	tap_ok(rv_batch_deadline(&batch, 64) == INT64_MAX, "nothing is there: no deadline");
	add_rows(&batch, 1);
	tap_ok(rv_batch_deadline(&batch, 64) == 0, "a sink that is not known to be slow gets its row at once");
	rv_batch_turn(&batch, 64);
	tap_ok(slow.takes == 1 && batch.count == 0, "and has it");
	add_rows(&batch, 1);
	first = rv_batch_deadline(&batch, 64);
	tap_ok(first >= batch.since_ms + SYNC_MS - 1 && first <= batch.since_ms + 20, "to a slow one it goes about as late as that takes");
	rv_clock_pause_ms(2);
	add_rows(&batch, 1);
	later = rv_batch_deadline(&batch, 64);
	tap_ok(later > first, "and later where one more came");
	tap_ok(rv_batch_deadline(&batch, 2) == 0, "but at once where nobody else is running");
	batch.last_ms += 1000;
	tap_ok(rv_batch_deadline(&batch, 64) > first && rv_batch_deadline(&batch, 64) < batch.since_ms + 200, "and not for ever where they go on coming");
	add_rows(&batch, 40);
	tap_ok(rv_batch_deadline(&batch, 64) == first, "nor longer than the first wait where they are many");
	batch.since_ms -= 1000;
	rv_batch_turn(&batch, 64);
	tap_ok(slow.takes == 2 && slow.rows == 43 && batch.count == 0, "then all go together");
	rv_batch_release(&batch);
}

int main(void)
{
	char top[] = "test-executor.XXXXXX";

	if (mkdtemp(top) == NULL || chdir(top) != 0)
		return 99;
	test_environment();
	test_environment_refusals();
	test_command_find();
	test_command_failed();
	test_tail();
	test_admit();
	test_credentials();
	test_outlet();
	test_batch();
	tap_ok(chdir("..") == 0 && rmdir(top) == 0, "nothing is left in the directory");
	return tap_end();
}

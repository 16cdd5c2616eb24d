/* The reading of archives: what its process has given up, and what is made of a helper that is somebody else's. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/confine/unpack.h"
#include "t/unit/tap.h"

/* ---- what was given up ---- */

/* Each is 0 where it can be done. */
static int try_open(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC) < 0;
}

static int try_look(void)
{
	struct stat info;

	return stat("/", &info);
}

static int try_write(void)
{
	int fd = memfd_create("t", MFD_CLOEXEC);

	return fd < 0 || write(fd, "x", 1) != 1;
}

static int try_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0;
}

static int try_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid < 0 || waitpid(pid, NULL, 0) != pid;
}

static int try_exec(void)
{
	static char name[] = "true";
	char *const words[] = { name, NULL };

	(void)execv("/bin/true", words);
	return 1;
}

static int try_kill(void)
{
	return kill(getppid(), 0);
}

static int try_trace(void)
{
	return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static int try_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static int try_make_code(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED || mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0;
}

static int try_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) != 0 || setrlimit(RLIMIT_NOFILE, &limit) != 0;
}

static int try_wait(void)
{
	struct timespec moment = { 0, 1 };

	return nanosleep(&moment, NULL);
}

/* What a reader does need. */
static int try_reading(void)
{
	char bytes[4];
	char *large = malloc((size_t)8 << 20);

	if (large == NULL)
		return 1;
	memset(large, 1, (size_t)8 << 20);
	large = realloc(large, (size_t)16 << 20);
	free(large);
	return large == NULL || lseek(0, 1, SEEK_SET) != 1 || read(0, bytes, 4) != 4 || memcmp(bytes, "bcde", 4) != 0 ||
	       pread(0, bytes, 1, 0) != 1 || write(1, "x", 1) != 1;
}

static int try_memory(void)
{
	return mmap(NULL, (size_t)3 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED;
}

/* A file that was open already grows no more: SIGXFSZ. */
static int try_growth(void)
{
	return write(2, "x", 1) != 1;
}

static int try_processor(void)
{
	while (clock() < 3 * CLOCKS_PER_SEC)
		;
	return 0;
}

/* How a process ends that tries it, behind the boundary or not: its wait status. */
static int ended(int (*try)(void), bool behind)
{
	static const struct rv_reader_limits limits = { 1, (uint64_t)2 << 30 };
	pid_t parent = getpid();
	int status = -1;
	int pipe_ends[2];
	pid_t pid;

	(void)fflush(stdout);
	if (pipe2(pipe_ends, O_CLOEXEC) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		int in = memfd_create("in", 0), out = memfd_create("out", 0);

		if (write(in, "abcdef", 6) != 6 || dup2(in, 0) != 0 || dup2(pipe_ends[1], 1) != 1 ||
		    dup2(out, 2) != 2)
			_exit(100);
		if (behind && rv_reader_give_up(&limits, parent) != RV_READER_READY)
			_exit(101);
		_exit(try() != 0);
	}
	if (waitpid(pid, &status, 0) != pid)
		status = -1;
	(void)close(pipe_ends[0]);
	(void)close(pipe_ends[1]);
	return status;
}

static bool by_signal(int status, int number)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == number;
}

static void test_given_up(void)
{
	static const struct {
		const char *what;
		int (*try)(void);
	} kills[] = {
		{ "open", try_open },   { "stat", try_look },   { "a new file", try_write },       { "socket", try_socket },
		{ "fork", try_fork },   { "exec", try_exec },   { "kill", try_kill },              { "ptrace", try_trace },
		{ "code", try_code },   { "limits", try_limit }, { "memory made code", try_make_code }, { "sleep", try_wait },
	};

	for (size_t i = 0; i < sizeof kills / sizeof kills[0]; i++) {
		int free_status = ended(kills[i].try, false), status = ended(kills[i].try, true);

		tap_ok(free_status == 0 && by_signal(status, SIGSYS), "%s: done without the boundary (%d), SIGSYS behind it (%d)",
		       kills[i].what, free_status, status);
	}
	tap_ok(ended(try_growth, false) == 0 && by_signal(ended(try_growth, true), SIGXFSZ), "a file that is open does not grow");
	tap_ok(by_signal(ended(try_processor, true), SIGXCPU), "processor time has an end");
#if !defined(__SANITIZE_ADDRESS__)
	tap_ok(ended(try_memory, false) == 0 && ended(try_memory, true) == 256, "memory has an end");
#endif
}

static void test_still_there(void)
{
	int status = ended(try_reading, true);

	tap_ok(status == 0, "reading, seeking, memory and writing are left: %d", status);
}

/* ---- what a helper says ---- */

static void add(struct rv_buffer *out, char kind, uint64_t length, const char *bytes, size_t len)
{
	rv_buffer_add_byte(out, kind);
	for (int i = 0; i < 8; i++)
		rv_buffer_add_byte(out, (char)(length >> (8 * i) & 0xff));
	rv_buffer_add(out, bytes, len);
}

/* A stream in short: "E8:a/b" an entry with flags 8, "C:text", "D1", "D0", "Z", "F:text", "B:text"; blanks between. */
static void compose(struct rv_buffer *out, const char *text)
{
	while (*text != '\0') {
		size_t len = strcspn(text, " ");
		char bytes[128] = "";
		const char *colon = memchr(text, ':', len);
		size_t size = colon != NULL ? len - (size_t)(colon - text) - 1 : 0;

		if (text[0] == 'E') {
			bytes[0] = (char)strtol(text + 1, NULL, 10);
			memcpy(bytes + 1, colon + 1, size++);
		} else if (text[0] == 'D') {
			bytes[0] = (char)(text[1] - '0');
			size = 1;
		} else if (size > 0) {
			memcpy(bytes, colon + 1, size);
		}
		add(out, text[0], size, bytes, size);
		text += len + (text[len] == ' ');
	}
}

/* In pieces of `step` bytes.  0 all was taken and is whole, 1 it is not whole, -1 refused. */
static int take(const struct rv_buffer *stream, size_t step, struct rv_snapshot *snapshot, struct rv_error *err)
{
	struct rv_unpack_taker taker;
	int result = 0;

	rv_unpack_taker_init(&taker, snapshot);
	for (size_t at = 0; result == 0 && at < stream->len; at += step)
		result = rv_unpack_take(&taker, stream->data + at, stream->len - at < step ? stream->len - at : step, err);
	if (result == 0)
		result = rv_unpack_taker_has_all(&taker) ? 0 : 1;
	rv_unpack_taker_release(&taker);
	return result;
}

static void check_stream(const struct rv_buffer *stream, int want, const char *why, const char *name)
{
	bool good = true;

	for (size_t step = 1; step <= stream->len; step += step < 12 ? 1 : stream->len) {
		struct rv_snapshot snapshot = RV_SNAPSHOT_INIT;
		struct rv_error err = RV_ERROR_INIT;
		int got = take(stream, step, &snapshot, &err);

		if (got != want || (why != NULL && strstr(err.message, why) == NULL)) {
			tap_note("in steps of %zu: %d, %s", step, got, err.message);
			good = false;
		}
		rv_snapshot_release(&snapshot);
	}
	tap_ok(good && stream->len > 0, "%s: %s", name, want == 0 ? "taken" : want > 0 ? "not whole" : why);
}

static void test_streams(void)
{
	static const struct {
		const char *stream;
		int want;
		const char *why;
	} rows[] = {
		{ "Z", 0, NULL },
		{ "E8:./a/b C:one C:two D1 E4:./ D1 E8:c D1 Z", 0, NULL },
		{ "E8:a C:one D1", 1, NULL },
		{ "E8:a C:one D0 Z", -1, "\"a\": its content is not as long as the archive says" },
		{ "E8:../a Z", -1, "a segment is" },
		{ "E2:a Z", -1, "\"a\": a link" },
		{ "E10:a Z", -1, "\"a\": a link" },
		{ "E0:a Z", -1, "neither a file nor a directory" },
		{ "E24:a Z", -1, "encrypted" },
		{ "E1: Z", -1, "an entry without a name" },
		{ "E40:a Z", -1, "at most 256 characters" },
		{ "E12:a Z", -1, "makes no sense: an entry of no kind" },
		{ "E72:a Z", -1, "makes no sense: an entry of no kind" },
		{ "E8:a E8:b Z", -1, "makes no sense: an entry within one" },
		{ "C:a", -1, "makes no sense: content of no file" },
		{ "E4:d C:a D1 Z", -1, "makes no sense: content of no file" },
		{ "E8:a D1 C:a", -1, "makes no sense: content of no file" },
		{ "D1", -1, "makes no sense: the end of no entry" },
		{ "E8:a Z", -1, "makes no sense: an end within an entry" },
		{ "Z E8:a D1 Z", -1, "makes no sense: more behind the end" },
		{ "Z Z", -1, "makes no sense: more behind the end" },
		{ "X", -1, "makes no sense: a record of no kind" },
		{ "E8:a C: D1 Z", -1, "makes no sense: a record of no such length" },
		{ "Z:a", -1, "makes no sense: a record of no such length" },
		{ "E8:a F:why", -1, "no whole archive: why" },
		{ "F", -1, "no whole archive: unreadable" },
		{ "F:\x1b[2J", -1, "no whole archive: \\x1b[2J" },
		{ "B:none", -1, "none" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct rv_buffer stream = RV_BUFFER_INIT;

		compose(&stream, rows[i].stream);
		check_stream(&stream, rows[i].want, rows[i].why, rows[i].stream[0] == 'F' ? "a failure" : rows[i].stream);
		rv_buffer_release(&stream);
	}
}

static void test_lengths(void)
{
	static const uint64_t lengths[] = { RV_UNPACK_BLOCK + 1, UINT32_MAX, (uint64_t)1 << 63, UINT64_MAX };

	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		struct rv_buffer stream = RV_BUFFER_INIT;

		compose(&stream, "E8:a");
		add(&stream, RV_UNPACK_CONTENT, lengths[i], "x", 1);
		check_stream(&stream, -1, "a record of no such length", "a length that is not");
		rv_buffer_release(&stream);
	}
}

/* 64 MiB and not a byte more, whatever is said. */
static void test_flood(void)
{
	static char block[RV_UNPACK_BLOCK];
	struct rv_snapshot snapshot = RV_SNAPSHOT_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_buffer stream = RV_BUFFER_INIT;
	struct rv_unpack_taker taker;
	size_t taken = 0;

	rv_unpack_taker_init(&taker, &snapshot);
	compose(&stream, "E8:a");
	(void)rv_unpack_take(&taker, stream.data, stream.len, &err);
	rv_buffer_clear(&stream);
	add(&stream, RV_UNPACK_CONTENT, sizeof block, block, sizeof block);
	while (taken <= RV_SNAPSHOT_BYTES_MAX && rv_unpack_take(&taker, stream.data, stream.len, &err) == 0)
		taken += sizeof block;
	tap_ok(taken == RV_SNAPSHOT_BYTES_MAX && strstr(err.message, "more than 64 MiB") != NULL, "a flood: %zu, %s", taken, err.message);
	rv_unpack_taker_release(&taker);
	rv_snapshot_release(&snapshot);
	rv_buffer_release(&stream);
}

/* ---- what a helper does ---- */

static bool write_script(const char *path, const char *text)
{
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_fd int fd = rv_io_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755, &err);

	return fd >= 0 && rv_io_write_all(fd, "#!/bin/sh\n", 10, &err) == 0 && rv_io_write_all(fd, text, strlen(text), &err) == 0;
}

static void check_helper(const char *path, int cancel, int wall_ms, enum rv_code code, const char *why)
{
	rv_auto_fd int archive = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const struct rv_unpack_plan plan = { .helper = path, .archive = archive, .cancel = cancel, .wall_ms = wall_ms };
	struct rv_snapshot snapshot = RV_SNAPSHOT_INIT;
	struct rv_error err = RV_ERROR_INIT;
	int64_t before = rv_clock_mono_ms();
	int result = rv_unpack_run(&plan, &snapshot, &err);
	int64_t took = rv_clock_mono_ms() - before;
	bool gone = waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;

	tap_ok(result == (code == RV_E_NONE ? 0 : -1) && err.code == code && strstr(err.message, why) != NULL && gone && took < 4000,
	       "%s (%s, %d ms, %s)", why, err.message, (int)took, gone ? "no process" : "a process is left");
	rv_snapshot_release(&snapshot);
}

static void test_helpers(void)
{
	static const struct {
		const char *text;
		enum rv_code code;
		const char *why;
	} rows[] = {
		{ "printf 'Z\\0\\0\\0\\0\\0\\0\\0\\0'\n", RV_E_NONE, "" },
		{ "exit 0\n", RV_E_REQUEST, "its reader ended early" },
		{ "printf 'E\\2\\0\\0\\0\\0\\0\\0\\0\\10a'\n", RV_E_REQUEST, "its reader ended early" },
		{ "printf 'E\\2\\0\\0'; kill -9 $$\n", RV_E_REQUEST, "its reader was ended by SIGKILL" },
		{ "kill -SYS $$\n", RV_E_REQUEST, "SIGSYS, since it asked for what no reader needs" },
		{ "kill -XCPU $$\n", RV_E_REQUEST, "SIGXCPU, since it took too much processor time" },
		{ "printf 'Z\\0\\0\\0\\0\\0\\0\\0\\0'; exit 7\n", RV_E_REQUEST, "its reader exited with 7" },
		{ "printf 'Z\\0\\0\\0\\0\\0\\0\\0\\0'; kill -9 $$\n", RV_E_REQUEST, "its reader was ended by SIGKILL" },
		{ "printf 'Z\\0\\0\\0\\0\\0\\0\\0\\0E'; exec sleep 60\n", RV_E_REQUEST, "more behind the end" },
		{ "printf garbage; exec sleep 60\n", RV_E_REQUEST, "a record of no kind" },
		{ "exec sleep 60\n", RV_E_REQUEST, "since it took more than" },
		{ "while :; do printf 'E\\1\\0\\0\\0\\0\\0\\0\\0\\4D\\1\\0\\0\\0\\0\\0\\0\\0\\1'; done\n", RV_E_REQUEST, "since it took more than" },
		{ "[ \"$(env | cut -d= -f1 | grep -vx 'PWD\\|SHLVL\\|_\\|OLDPWD' | sort | tr '\\n' ' ')\" = 'LC_ALL TZ ' ] && "
		  "printf 'Z\\0\\0\\0\\0\\0\\0\\0\\0'\n", RV_E_NONE, "" },
	};
	char dir[] = "/tmp/test-unpack-XXXXXX";
	char path[sizeof dir + 8];
	int ends[2];

	if (mkdtemp(dir) == NULL || setenv("SECRET", "x", 1) != 0 || pipe2(ends, O_CLOEXEC) != 0) {
		(void)tap_ok(false, "a directory");
		return;
	}
	(void)snprintf(path, sizeof path, "%s/helper", dir);
	check_helper(path, -1, 10000, RV_E_IO, "cannot be run: No such file");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (!tap_ok(write_script(path, rows[i].text), "%zu", i))
			continue;
		check_helper(path, -1, strstr(rows[i].why, "more than") != NULL ? 300 : 20000, rows[i].code, rows[i].why);
	}
	(void)write_script(path, "exec sleep 60\n");
	check_helper(path, ends[0], 300, RV_E_REQUEST, "since it took more than");
	(void)!write(ends[1], "x", 1);
	check_helper(path, ends[0], 20000, RV_E_ABORTED, "cancelled while an archive was read");
	(void)chmod(path, 0600);
	if (geteuid() != 0 || access(path, X_OK) != 0)
		check_helper(path, -1, 10000, RV_E_IO, "cannot be run: Permission denied");
	(void)unlink(path);
	(void)rmdir(dir);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

int main(void)
{
	test_given_up();
	test_still_there();
	test_streams();
	test_lengths();
	test_flood();
	test_helpers();
	return tap_end();
}

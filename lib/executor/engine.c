#include "lib/executor/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/executor/words.h"

#define OUT_MAX ((size_t)16 << 20)
#define COMPLAINT_MAX ((size_t)4096)

struct asking {
	pid_t pid;
	int out;
	int err;
};

static int spawn_with(posix_spawn_file_actions_t *files, posix_spawnattr_t *attributes, const struct rv_engine *engine,
		      char **argv, struct asking *asking, const int *ends, struct rv_error *err)
{
	sigset_t none;
	sigset_t all;
	int failed;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawnattr_setsigmask(attributes, &none);
	(void)posix_spawnattr_setsigdefault(attributes, &all);
	(void)posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
	failed = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
	if (failed == 0)
		failed = posix_spawn_file_actions_adddup2(files, ends[0], 1);
	if (failed == 0)
		failed = posix_spawn_file_actions_adddup2(files, ends[1], 2);
	if (failed == 0)
		failed = posix_spawn(&asking->pid, engine->words[0], files, attributes, argv, engine->envp);
	return failed == 0 ? 0 : rv_error_set(err, RV_E_CONFIG, failed, "%s", engine->words[0]);
}

static int start(struct asking *asking, const struct rv_engine *engine, char **argv, struct rv_error *err)
{
	rv_auto_fd int out = -1, complaints = -1;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int out_ends[2];
	int err_ends[2];
	int result;

	if (pipe2(out_ends, O_CLOEXEC) != 0)
		return rv_error_set(err, RV_E_IO, errno, "pipe");
	out = out_ends[1];
	asking->out = out_ends[0];
	if (pipe2(err_ends, O_CLOEXEC) != 0)
		return rv_error_set(err, RV_E_IO, errno, "pipe");
	complaints = err_ends[1];
	asking->err = err_ends[0];
	(void)posix_spawn_file_actions_init(&files);
	(void)posix_spawnattr_init(&attributes);
	result = spawn_with(&files, &attributes, engine, argv, asking, (const int[]){ out, complaints }, err);
	(void)posix_spawn_file_actions_destroy(&files);
	(void)posix_spawnattr_destroy(&attributes);
	return result;
}

/* One chunk; 0 at its end. */
static ssize_t take(int fd, struct rv_buffer *into, size_t max)
{
	char chunk[4096];
	ssize_t n = read(fd, chunk, sizeof chunk);

	if (n > 0 && into->len + (size_t)n <= max)
		rv_buffer_add(into, chunk, (size_t)n);
	return n < 0 && (errno == EINTR || errno == EAGAIN) ? 1 : n;
}

/* Until both are at their end: what the client left behind may hold them open, so not longer than itself lives. */
static void read_all(const struct asking *asking, int64_t deadline, struct rv_buffer *out, struct rv_buffer *complaint,
		     int *status, pid_t *ended)
{
	struct pollfd ready[2] = { { .fd = asking->out, .events = POLLIN }, { .fd = asking->err, .events = POLLIN } };

	while (rv_clock_left_ms(deadline) > 0) {
		int left = rv_clock_left_ms(deadline);
		int step = ready[0].fd < 0 && ready[1].fd < 0 ? 2 : 50; /* closed: its end is at hand */
		int n = poll(ready, 2, left < step ? left : step);

		if (n > 0 && ready[0].revents != 0 && take(asking->out, out, OUT_MAX) <= 0)
			ready[0].fd = -1;
		if (n > 0 && ready[1].revents != 0 && take(asking->err, complaint, COMPLAINT_MAX) <= 0)
			ready[1].fd = -1;
		if (*ended == 0)
			*ended = waitpid(asking->pid, status, WNOHANG);
		if (*ended != 0 && (n == 0 || (ready[0].fd < 0 && ready[1].fd < 0)))
			return;
	}
}

static int finish(const struct asking *asking, int64_t wait_ms, struct rv_buffer *out, struct rv_buffer *complaint,
		  const char *name, struct rv_error *err)
{
	int status = 0;
	pid_t ended = 0;

	read_all(asking, rv_clock_mono_ms() + wait_ms, out, complaint, &status, &ended);
	if (ended == 0) {
		(void)kill(asking->pid, SIGKILL);
		(void)waitpid(asking->pid, &status, 0);
		return rv_error_set(err, RV_E_IO, 0, "%s: no answer within %lld ms", name, (long long)wait_ms);
	}
	if (ended < 0 || !WIFEXITED(status))
		return rv_error_set(err, RV_E_IO, 0, "%s: was killed", name);
	return WEXITSTATUS(status);
}

static void trim(struct rv_buffer *text)
{
	struct rv_span kept = rv_text_trim((struct rv_span){ text->data, text->len });

	if (kept.len > 0)
		memmove(text->data, kept.data, kept.len);
	text->len = kept.len;
	(void)rv_buffer_string(text);
}

int rv_engine_ask(const struct rv_engine *engine, const char *const *args, int64_t wait_ms, struct rv_buffer *out,
		  struct rv_buffer *complaint, struct rv_error *err)
{
	struct asking asking = { .pid = -1, .out = -1, .err = -1 };
	struct rv_words words = RV_WORDS_INIT;
	char **argv;
	int status = -1;

	rv_buffer_clear(out);
	rv_buffer_clear(complaint);
	for (size_t i = 0; engine->words[i] != NULL; i++)
		rv_words_add(&words, engine->words[i]);
	rv_words_add_all(&words, args);
	argv = rv_words_list(&words, err);
	if (argv != NULL && start(&asking, engine, argv, err) == 0)
		status = finish(&asking, wait_ms, out, complaint, engine->words[0], err);
	if (asking.out >= 0)
		(void)close(asking.out);
	if (asking.err >= 0)
		(void)close(asking.err);
	rv_words_release(&words);
	trim(out);
	trim(complaint);
	return status;
}

int rv_engine_has(const struct rv_engine *engine, const char *name, int64_t deadline, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer complaint = RV_BUFFER_INIT;
	char filter[128];
	const char *const args[] = { "ps", "-a", "-q", "--filter", filter, NULL };
	int status;

	(void)snprintf(filter, sizeof filter, "name=%s", name);
	status = rv_engine_ask(engine, args, rv_clock_left_ms(deadline), &out, &complaint, err);
	if (status == 0)
		return out.len > 0 ? 1 : 0;
	return status < 0 ? -1 : rv_error_set(err, RV_E_IO, 0, "%s: %s", engine->words[0], complaint.data);
}

#include "lib/cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/text.h"

static const char *program_name = "rv";
static bool stdout_failed;
static int heeded = -1;

#define PATIENCE_MS 2000

void rv_cli_start(const char *program)
{
	program_name = program;
	(void)signal(SIGCHLD, SIG_DFL); /* ignored, children would be reaped behind our back, and how they ended is lost */
	(void)umask(umask(0) & 077);    /* what we make we must be able to use: our own bits are never taken */
	if (rv_io_standard_descriptors() != 0)
		_exit(RV_EXIT_SYSTEM); /* no descriptor to say it on */
}

static void say_bytes(const char *text, size_t len)
{
	struct rv_buffer line = RV_BUFFER_INIT;
	struct rv_error ignored = RV_ERROR_INIT;

	rv_buffer_add_string(&line, program_name);
	rv_buffer_add_string(&line, ": ");
	rv_text_add_escaped(&line, text, len);
	rv_buffer_add_byte(&line, '\n');
	(void)rv_io_write_all(STDERR_FILENO, line.data, line.len, &ignored); /* nowhere left to say it */
	rv_buffer_release(&line);
}

__attribute__((format(printf, 1, 0))) static void say_list(const char *format, va_list args)
{
	char text[RV_ERROR_MESSAGE_MAX];
	int n = vsnprintf(text, sizeof text, format, args);

	if (n > 0)
		say_bytes(text, strlen(text));
}

void rv_cli_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_list(format, args);
	va_end(args);
}

void rv_cli_say_error(const struct rv_error *err)
{
	say_bytes(err->message, strlen(err->message));
}

int rv_cli_fail(const struct rv_error *err)
{
	rv_cli_say_error(err);
	return rv_status_of(err->code);
}

int rv_cli_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_list(format, args);
	va_end(args);
	rv_cli_say("try '%s --help'", program_name);
	return RV_EXIT_USAGE;
}

void rv_cli_heed(int cancel)
{
	heeded = cancel;
}

/* Is there room?  A pipe that is ready takes PIPE_BUF bytes at once. */
static int await_room(bool *cancelled, struct rv_error *err)
{
	for (;;) {
		struct pollfd ready[] = { { .fd = STDOUT_FILENO, .events = POLLOUT },
					  { .fd = *cancelled ? -1 : heeded, .events = POLLIN } };
		int n = poll(ready, 2, *cancelled ? PATIENCE_MS : -1);

		if (n < 0 && errno != EINTR)
			return rv_error_set(err, RV_E_IO, errno, "poll");
		if (n == 0)
			return rv_error_set(err, RV_E_IO, 0, "cancelled, and nobody reads it");
		if (n > 0 && ready[0].revents != 0)
			return 0;
		*cancelled = *cancelled || (n > 0 && ready[1].revents != 0);
	}
}

static int write_heeding(const char *bytes, size_t len, struct rv_error *err)
{
	bool cancelled = false;

	while (len > 0) {
		size_t part = len < PIPE_BUF ? len : PIPE_BUF;
		ssize_t n;

		if (await_room(&cancelled, err) != 0)
			return -1;
		n = write(STDOUT_FILENO, bytes, part);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return rv_error_set(err, RV_E_IO, errno, "write");
		bytes += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Whoever took SIGPIPE as well ends by it, quietly. */
static bool is_told_by_signal(const struct rv_error *err)
{
	sigset_t blocked;

	return err->errnum == EPIPE && heeded >= 0 && sigprocmask(SIG_BLOCK, NULL, &blocked) == 0 &&
	       sigismember(&blocked, SIGPIPE) == 1;
}

int rv_cli_write(const void *bytes, size_t len)
{
	struct rv_error err = RV_ERROR_INIT;

	if (stdout_failed)
		return -1;
	if ((heeded >= 0 ? write_heeding(bytes, len, &err) : rv_io_write_all(STDOUT_FILENO, bytes, len, &err)) != 0) {
		stdout_failed = true;
		(void)rv_error_wrap(&err, "standard output");
		if (!is_told_by_signal(&err))
			rv_cli_say_error(&err);
		return -1;
	}
	return 0;
}

int rv_cli_end(int status)
{
	return stdout_failed ? RV_EXIT_SYSTEM : status;
}

#if !defined __SANITIZE_ADDRESS__ && defined __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

void rv_cli_leave(int status)
{
#ifdef __SANITIZE_ADDRESS__
	exit(rv_cli_end(status));
#else
	_exit(rv_cli_end(status));
#endif
}

bool rv_cli_colour(int fd)
{
	const char *no_color = getenv("NO_COLOR");

	return (no_color == NULL || no_color[0] == '\0') && isatty(fd) == 1;
}

int rv_status_of(enum rv_code code)
{
	static const unsigned char statuses[] = {
		[RV_E_NONE] = RV_EXIT_DONE,
		[RV_E_USAGE] = RV_EXIT_USAGE,
		[RV_E_REQUEST] = RV_EXIT_REFUSED,
		[RV_E_NUMBER] = RV_EXIT_REFUSED,
		[RV_E_DERIVATION] = RV_EXIT_REFUSED,
		[RV_E_CORRUPT] = RV_EXIT_CORRUPT,
		[RV_E_IO] = RV_EXIT_SYSTEM,
		[RV_E_NOMEM] = RV_EXIT_SYSTEM,
		[RV_E_BUSY] = RV_EXIT_SYSTEM,
		[RV_E_CONFIG] = RV_EXIT_CONFIG,
		[RV_E_TIMEOUT] = RV_EXIT_TIMEOUT,
		[RV_E_ABORTED] = RV_EXIT_NEEDS_SOMEONE, /* the program then dies by the same signal */
		[RV_E_OUTPUT_CAP] = RV_EXIT_OUTPUT_CAP,
		[RV_E_EXIT] = RV_EXIT_NEEDS_SOMEONE,
		[RV_E_PROTOCOL] = RV_EXIT_PROTOCOL,
		[RV_E_SPAWN] = RV_EXIT_SPAWN,
		[RV_E_SPAWN_MISSING] = RV_EXIT_SPAWN_MISSING,
		[RV_E_LEDGER] = RV_EXIT_LEDGER,
		[RV_E_HOST] = RV_EXIT_SYSTEM,
		[RV_E_RUNTIME] = RV_EXIT_SYSTEM,
	};

	return statuses[code];
}

#include "lib/confine/event.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buffer.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/confine/limits.h"
#include "lib/json/write.h"

extern char **environ;

/* Its standard input is a file in memory: of any length, written before it starts, with an end. */
static int start(const struct rv_events *events, int input, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int result;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return -1;
	if (posix_spawnattr_init(&attributes) != 0) {
		(void)posix_spawn_file_actions_destroy(&actions);
		return -1;
	}
	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setsigdefault(&attributes, &all);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO); /* standard output is the result's */
	result = posix_spawnp(pid, events->command[0], &actions, &attributes, events->command, environ);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&actions);
	errno = result;
	return result == 0 ? 0 : -1;
}

static void await(const struct rv_events *events, pid_t pid)
{
	int64_t deadline = rv_clock_mono_ms() + RV_CONFINE_EVENT_MS;
	rv_auto_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ready = { .fd = pidfd, .events = POLLIN, .revents = 0 };
	int got = 0;

	if (events->deadline_ms > 0 && events->deadline_ms < deadline)
		deadline = events->deadline_ms;
	do
		got = poll(&ready, 1, rv_clock_left_ms(deadline));
	while (got < 0 && errno == EINTR);
	if (got <= 0) { /* it is our child and not reaped: the number is still its own */
		(void)kill(pid, SIGKILL);
		if (events->say != NULL)
			events->say("the program of --on-event took too long and was killed");
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void publish(const struct rv_events *events, struct rv_buffer *line)
{
	rv_auto_fd int input = memfd_create("event", MFD_CLOEXEC);
	struct rv_error err = RV_ERROR_INIT;
	pid_t pid;

	rv_buffer_add_string(line, "}\n");
	if (rv_buffer_check(line, &err) == 0 && input >= 0 && rv_io_write_all(input, line->data, line->len, &err) == 0 &&
	    lseek(input, 0, SEEK_SET) == 0 && start(events, input, &pid) == 0)
		await(events, pid);
	else if (events->say != NULL)
		events->say("the program of --on-event cannot be run");
}

static void begin(struct rv_buffer *line, const char *event)
{
	rv_buffer_add_byte(line, '{');
	rv_json_member_string(line, "event", event);
}

void rv_event_counted(const struct rv_events *events, const char *root, long retained)
{
	rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;

	if (events->command == NULL)
		return;
	begin(&line, "counted");
	rv_json_member_string(&line, "root", root);
	rv_json_member_int(&line, "retained", retained);
	publish(events, &line);
}

void rv_event_namespace(const struct rv_events *events, const char *event, const char *ns)
{
	rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;

	if (events->command == NULL)
		return;
	begin(&line, event);
	rv_json_member_string(&line, "namespace", ns);
	publish(events, &line);
}

void rv_event_process(const struct rv_events *events, const char *event, const char *ns, pid_t pid, const char *profile)
{
	rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;

	if (events->command == NULL)
		return;
	begin(&line, event);
	rv_json_member_string(&line, "namespace", ns);
	rv_json_member_int(&line, "pid", pid);
	if (profile != NULL)
		rv_json_member_string(&line, "profile", profile);
	publish(events, &line);
}

#include "lib/conform/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/process/supervise.h"

extern char **environ;

#define CHUNK 65536

/* ---- the program's side, between fork and exec ---- */

struct start {
	const struct rv_command_plan *plan;
	char **envp;
	int stdio[3];
};

static void set_signals(bool bad)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t mask;

	for (int number = 1; number < NSIG; number++)
		(void)sigaction(number, &action, NULL);
	(void)sigemptyset(&mask);
	if (bad) {
		(void)sigaddset(&mask, SIGTERM);
		(void)sigaddset(&mask, SIGUSR1);
		(void)signal(SIGPIPE, SIG_IGN);
		(void)signal(SIGINT, SIG_IGN);
	}
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
}

static int open_descriptors(void)
{
	static const int numbers[] = { 3, 4, 5, 6, 7, 8, 9, 37, 120 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; null >= 0 && i < sizeof numbers / sizeof numbers[0]; i++) {
		if (numbers[i] == null ? fcntl(null, F_SETFD, 0) < 0 : dup2(null, numbers[i]) < 0)
			return -1;
	}
	return null;
}

static int place_stdio(const int stdio[3])
{
	for (int i = 0; i < 3; i++) {
		if (dup2(stdio[i], i) < 0) /* ours are never 0 to 2: those exist (lib/cli) */
			return -1;
	}
	return 0;
}

static int child_main(void *data)
{
	const struct start *start = data;
	const struct rv_command_plan *plan = start->plan;

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* a battery that is killed leaves no program behind */
	set_signals((plan->flags & RV_COMMAND_BAD_SIGNALS) != 0);
	if ((plan->flags & RV_COMMAND_BAD_UMASK) != 0)
		(void)umask(077);
	if (place_stdio(start->stdio) != 0)
		return 125;
	if ((plan->flags & RV_COMMAND_BAD_DESCRIPTORS) != 0 && open_descriptors() < 0)
		return 125;
	environ = start->envp;
	(void)execvp(plan->argv[0], (char *const *)(uintptr_t)plan->argv);
	return errno == ENOENT ? 127 : 126;
}

/* ---- our side ---- */

static bool overrides(const char *const *set, const char *entry)
{
	size_t name = strcspn(entry, "=");

	for (size_t i = 0; set[i] != NULL; i++) {
		if (strncmp(set[i], entry, name) == 0 && set[i][name] == '=')
			return true;
	}
	return false;
}

/* This process's environment with `set` over it; one allocation, strings borrowed. */
static char **environment(const char *const *set)
{
	static const char *const none[] = { NULL };
	size_t count = 0;
	size_t n = 0;
	char **all;

	set = set != NULL ? set : none;
	while (environ[count] != NULL)
		count++;
	while (set[n] != NULL)
		n++;
	all = calloc(count + n + 1, sizeof *all);
	if (all == NULL)
		return NULL;
	n = 0;
	for (size_t i = 0; i < count; i++) {
		if (!overrides(set, environ[i]))
			all[n++] = environ[i];
	}
	for (size_t i = 0; set[i] != NULL; i++)
		all[n++] = (char *)(uintptr_t)set[i];
	return all;
}

static int make_pipes(int pipes[3][2], struct rv_error *err)
{
	for (int i = 0; i < 3; i++)
		pipes[i][0] = pipes[i][1] = -1;
	for (int i = 0; i < 3; i++) {
		if (pipe2(pipes[i], O_CLOEXEC) != 0)
			return rv_error_set(err, RV_E_IO, errno, "pipe");
	}
	return 0;
}

static void close_all(int pipes[3][2])
{
	for (int i = 0; i < 3; i++) {
		rv_cleanup_fd(&pipes[i][0]);
		rv_cleanup_fd(&pipes[i][1]);
	}
}

#define PIPE_SIZE (1 << 20)

static void not_blocking(int fd)
{
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void write_some(struct rv_command *command)
{
	ssize_t n = 0;

	if (command->input.len > 0)
		n = write(command->in, command->input.data, command->input.len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0 || ((size_t)n == command->input.len && !command->more)) { /* EPIPE: it does not want more */
		close_fd(&command->in);
		return;
	}
	if (n > 0) {
		command->input.data += n;
		command->input.len -= (size_t)n;
	}
}

void rv_command_send(struct rv_command *command, struct rv_span input)
{
	if (command->in < 0)
		return;
	command->input = input;
	write_some(command);
}

void rv_command_close(struct rv_command *command)
{
	command->more = false;
	if (command->input.len == 0)
		close_fd(&command->in);
}

int rv_command_start(struct rv_command *command, const struct rv_command_plan *plan, struct rv_error *err)
{
	int pipes[3][2];
	struct start start = { .plan = plan };
	struct rv_spawn_plan spawn = { .child = child_main, .data = &start };
	int result = -1;

	memset(command, 0, sizeof *command);
	command->child = (struct rv_child)RV_CHILD_INIT;
	command->in = command->out = command->err = -1;
	rv_buffer_init(&command->said, RV_COMMAND_OUTPUT_MAX);
	rv_buffer_init(&command->complained, RV_COMMAND_OUTPUT_MAX);
	command->input = plan->input;
	command->more = (plan->flags & RV_COMMAND_MORE_INPUT) != 0;
	command->started_ms = rv_clock_mono_ms();
	start.envp = environment(plan->set);
	if (start.envp == NULL)
		return rv_error_nomem(err);
	if (make_pipes(pipes, err) == 0) {
		start.stdio[0] = pipes[0][0];
		start.stdio[1] = pipes[1][1];
		start.stdio[2] = pipes[2][1];
		result = rv_spawn(&spawn, &command->child, err);
	}
	if (result == 0) {
		command->in = rv_steal_fd(&pipes[0][1]);
		command->out = rv_steal_fd(&pipes[1][0]);
		command->err = rv_steal_fd(&pipes[2][0]);
		not_blocking(command->in);
		(void)fcntl(command->in, F_SETPIPE_SZ, PIPE_SIZE); /* refused near the user's limit: then it is written later */
		not_blocking(command->out);
		not_blocking(command->err);
		write_some(command); /* what the pipe takes: several may be started before one is waited for */
	}
	close_all(pipes);
	free(start.envp);
	return result;
}

/* Reads one chunk: false when there is nothing now. */
static bool read_some(int *fd, struct rv_buffer *into)
{
	char chunk[CHUNK];
	ssize_t n = read(*fd, chunk, sizeof chunk);

	if (n > 0) {
		rv_buffer_add(into, chunk, (size_t)n); /* beyond the cap: read, and dropped */
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_fd(fd);
	return false;
}

static void reap(struct rv_command *command)
{
	int status;

	if (waitpid(command->child.pid, &status, WNOHANG) != command->child.pid)
		return;
	command->ended = true;
	command->status = status;
	command->took_ms = rv_clock_mono_ms() - command->started_ms;
	close_fd(&command->child.pidfd);
	command->child.pid = -1;
	while (command->out >= 0 && read_some(&command->out, &command->said))
		;
	while (command->err >= 0 && read_some(&command->err, &command->complained))
		;
	close_fd(&command->in);
	close_fd(&command->out);
	close_fd(&command->err);
}

int rv_command_turn(struct rv_command *command, int64_t until_ms)
{
	struct pollfd ready[4] = {
		{ .fd = command->input.len > 0 || !command->more ? command->in : -1, .events = POLLOUT },
		{ .fd = command->out, .events = POLLIN },
		{ .fd = command->err, .events = POLLIN },
		{ .fd = command->child.pidfd, .events = POLLIN },
	};
	int n = command->ended || command->child.pid <= 0 ? 0 : poll(ready, 4, rv_clock_left_ms(until_ms));

	if (n > 0 && ready[0].revents != 0)
		write_some(command);
	if (n > 0 && ready[1].revents != 0)
		(void)read_some(&command->out, &command->said);
	if (n > 0 && ready[2].revents != 0)
		(void)read_some(&command->err, &command->complained);
	if (n > 0 && ready[3].revents != 0)
		reap(command);
	return command->ended ? 1 : 0;
}

int rv_command_wait(struct rv_command *command, int64_t until_ms)
{
	while (!command->ended && command->child.pid > 0) {
		if (rv_command_turn(command, until_ms) == 0 && rv_clock_left_ms(until_ms) == 0)
			return 0;
	}
	return command->ended ? 1 : 0;
}

void rv_command_signal(const struct rv_command *command, int signal_number)
{
	if (command->child.pid > 0)
		(void)syscall(SYS_pidfd_send_signal, command->child.pidfd, signal_number, NULL, 0);
}

/* The leader is unreaped, so the group's number is still its own. */
void rv_command_kill_group(struct rv_command *command)
{
	if (command->child.pid <= 0)
		return;
	(void)kill(-command->child.pid, SIGKILL);
	(void)kill(command->child.pid, SIGKILL); /* it may not have come as far as setpgid */
}

int rv_command_run(struct rv_command *command, const struct rv_command_plan *plan, int64_t until_ms,
		   struct rv_error *err)
{
	if (rv_command_start(command, plan, err) != 0)
		return -1;
	if (rv_command_wait(command, until_ms) == 0) {
		rv_command_kill_group(command);
		(void)rv_command_wait(command, rv_clock_mono_ms() + 2000);
		command->ended = false;
	}
	return 0;
}

void rv_command_release(struct rv_command *command)
{
	if (command->child.pid > 0) {
		rv_command_kill_group(command);
		(void)rv_child_kill(&command->child, 2000, NULL);
	}
	close_fd(&command->in);
	close_fd(&command->out);
	close_fd(&command->err);
	rv_buffer_release(&command->said);
	rv_buffer_release(&command->complained);
}

const char *rv_command_how(const struct rv_command *command, char text[40])
{
	char name[16];

	if (!command->ended)
		return "still running at its deadline";
	if (WIFSIGNALED(command->status))
		(void)snprintf(text, 40, "killed by %s", rv_signal_name(WTERMSIG(command->status), name));
	else
		(void)snprintf(text, 40, "exit status %d", WEXITSTATUS(command->status));
	return text;
}

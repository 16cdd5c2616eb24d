/*
 * The last step inside a launcher's sandbox: what starts the tool, and says how it ended.
 *
 *   LAUNCHER ... rv-inner ARGV0 [ARG...]
 *
 * It exists because only somebody inside can say that the sandbox stands, that the tool has been started and how it
 * ended, and because a launcher's environment is not the tool's.  Standard input is the one thing that every launcher
 * hands through, so the tool's environment comes first on it, and in no argv, no file and no other process's
 * environment; the rest is the tool's.  Lines that nobody can guess go to standard output before and behind what the
 * tool says there, and to standard error before it if so asked: all else is the launcher's.
 *
 * Input:  "rv-inner 1 LLLLLLLLLL\n", then L bytes: NONCE, "12" or "1" (where the first line goes), PATH, CWD and the
 * environment's entries, each with a NUL behind it.
 * Output: "NONCE started\n", and nothing is executed before that has been read: a tool can open its own standard output
 * for reading (/proc/self/fd/1), and would learn the nonce or take the line away.  Then "NONCE failed STEP ERRNO\n" where the exec failed, or "NONCE ended STATUS\n" with
 * the status as waitpid(2) gives it.
 *
 * It is linked statically, for the sandbox may hold no library.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEADER "rv-inner 1 "
#define HEADER_LEN 22
#define BLOCK_MAX ((size_t)1 << 30)

struct inner {
	const char *nonce;
	const char *where;
	const char *path;
	const char *cwd;
	char **envp;
};

static int say(const char *nonce, int fd, const char *text)
{
	char line[128];
	int len = snprintf(line, sizeof line, "%s %s\n", nonce, text);

	return len > 0 && (size_t)len < sizeof line && write(fd, line, (size_t)len) == len ? 0 : -1;
}

/* Not a byte more: what follows is the tool's. */
static int read_exactly(char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = read(STDIN_FILENO, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

static char *read_block(size_t *len)
{
	char header[HEADER_LEN + 1] = "";
	char *block;
	char *end;

	if (read_exactly(header, HEADER_LEN) != 0 || strncmp(header, HEADER, sizeof HEADER - 1) != 0)
		return NULL;
	*len = strtoul(header + sizeof HEADER - 1, &end, 10);
	if (*end != '\n' || *len == 0 || *len > BLOCK_MAX)
		return NULL;
	block = malloc(*len);
	return block != NULL && read_exactly(block, *len) == 0 && block[*len - 1] == '\0' ? block : NULL;
}

static int parse(struct inner *inner, char *block, size_t len)
{
	const char **heads[] = { &inner->nonce, &inner->where, &inner->path, &inner->cwd };
	char *at = block;
	size_t count = 0;

	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		if (at >= block + len)
			return -1;
		*heads[i] = at;
		at += strlen(at) + 1;
	}
	for (const char *byte = at; byte < block + len; byte++)
		count += *byte == '\0' ? 1 : 0;
	inner->envp = calloc(count + 1, sizeof *inner->envp);
	for (size_t i = 0; inner->envp != NULL && i < count; i++) {
		inner->envp[i] = at;
		at += strlen(at) + 1;
	}
	return inner->envp != NULL ? 0 : -1;
}

/* Descriptors, session, signals, umask and privileges as every tool finds them, whatever the launcher left. */
static int set_up(const struct inner *inner)
{
	static const unsigned long action[16] = { 0 };
	sigset_t none;

	for (long number = 1; number < NSIG; number++)
		(void)syscall(SYS_rt_sigaction, number, action, NULL, (size_t)8);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	(void)umask(022);
	if (syscall(SYS_close_range, 3U, UINT_MAX, 0U) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return chdir(inner->cwd);
}

/* Until rv-exec has read what is in the pipe: there is no tool yet that could.  A descriptor that does not know is no
 * pipe of rv-exec's, and a rv-exec that never reads has its deadline kept by the slot's worker. */
static void await_reader(int fd)
{
	const struct timespec moment = { .tv_nsec = 20000 };
	int left = 0;

	while (ioctl(fd, FIONREAD, &left) == 0 && left > 0)
		(void)nanosleep(&moment, NULL);
}

/* In the child: turn into the tool. */
static void be_the_tool(const struct inner *inner, char **argv)
{
	const char *step = "setup";
	bool both = strcmp(inner->where, "12") == 0;
	char text[64];

	if (set_up(inner) == 0) {
		if (say(inner->nonce, STDOUT_FILENO, "started") != 0 ||
		    (both && say(inner->nonce, STDERR_FILENO, "started") != 0))
			_exit(125);
		await_reader(STDOUT_FILENO);
		if (both)
			await_reader(STDERR_FILENO);
		step = "exec";
		(void)execve(inner->path, argv, inner->envp);
	}
	(void)snprintf(text, sizeof text, "failed %s %d", step, errno);
	(void)say(inner->nonce, STDOUT_FILENO, text);
	_exit(127);
}

/* What is sent to everybody is for the tool: this one has to see how it ends. */
static void stay(void)
{
	static const int ends[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE };

	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		(void)signal(ends[i], SIG_IGN);
	(void)signal(SIGCHLD, SIG_DFL);
}

static int await(pid_t tool)
{
	int status = 0;
	pid_t ended;

	do /* as pid 1 of a namespace it reaps others, too */
		ended = waitpid(-1, &status, 0);
	while (ended != tool && (ended > 0 || errno == EINTR));
	return ended == tool ? status : -1;
}

int main(int argc, char **argv)
{
	struct inner inner = { .nonce = NULL };
	char text[64];
	size_t len = 0;
	char *block;
	pid_t tool;
	int status;

	if (argc < 2) {
		(void)fputs("rv-inner: started by rv-exec inside a launcher, and by nobody else\n", stderr);
		return 2;
	}
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	block = read_block(&len);
	if (block == NULL || parse(&inner, block, len) != 0)
		_exit(125); /* the launcher took from standard input what was not its own */
	stay();
	tool = fork();
	if (tool == 0)
		be_the_tool(&inner, argv + 1);
	status = tool > 0 ? await(tool) : -1;
	if (status < 0)
		_exit(125);
	(void)snprintf(text, sizeof text, "ended %d", status);
	(void)say(inner.nonce, STDOUT_FILENO, text);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

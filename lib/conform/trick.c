#include "lib/conform/trick.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void sleep_on(void)
{
	for (;;)
		(void)pause();
}

/* What signals everybody looks first whether it is the child of pid 1 of another PID namespace than the battery's. */
static int contained(const char *outside)
{
	char inside[64];
	ssize_t n = readlink("/proc/self/ns/pid", inside, sizeof inside - 1);

	if (n <= 0 || getppid() != 1 || getpid() > 9000)
		return 0;
	inside[n] = '\0';
	return outside[0] != '\0' && strcmp(inside, outside) != 0;
}

/* What changes files by relative names looks first whether it was given a workdir. */
static int in_workdir(const char *dir)
{
	char where[PATH_MAX];
	char top[PATH_MAX];
	size_t len;

	if (realpath(dir, top) == NULL || getcwd(where, sizeof where) == NULL)
		return 0;
	len = strlen(top);
	return strncmp(where, top, len) == 0 && strncmp(where + len, "/base/", 6) == 0;
}

static int start(void (*what)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		what();
		_exit(0);
	}
	return pid;
}

/* ---- the tricks: each returns 0 after its result is printed, or does not return ---- */

static int result(const char *json)
{
	size_t len = strlen(json);

	return write(STDOUT_FILENO, json, len) != (ssize_t)len;
}

static int vfork_parent(void)
{
	if (vfork() == 0)
		for (;;)
			(void)syscall(SYS_pause);
	return 1;
}

static int clone_quiet(void)
{
	/* no signal to the parent, seen by waiting with __WALL alone */
	if (syscall(SYS_clone, 0UL, NULL, NULL, NULL, 0UL) == 0)
		sleep_on();
	return result("1");
}

static int clone_sibling(void)
{
	/* the worker's child, and not the tool's */
	if (syscall(SYS_clone, (unsigned long)(CLONE_PARENT | SIGCHLD), NULL, NULL, NULL, 0UL) == 0)
		sleep_on();
	return result("1");
}

static int sibling_lies(void)
{
	for (int i = 0; i < 20; i++) {
		if (syscall(SYS_clone, (unsigned long)(CLONE_PARENT | SIGCHLD), NULL, NULL, NULL, 0UL) == 0)
			_exit(77);
	}
	return result("1");
}

static int new_namespaces(void)
{
	/* in another PID namespace below this one, if it may be */
	if (syscall(SYS_clone, (unsigned long)(CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD), NULL, NULL, NULL, 0UL) == 0) {
		(void)start(sleep_on);
		sleep_on();
	}
	return result("1");
}

static int subreaper(void)
{
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	for (int i = 0; i < 8; i++) {
		if (fork() == 0) {
			(void)start(sleep_on);
			(void)setsid();
			(void)start(sleep_on);
			_exit(0);
		}
	}
	return result("1");
}

static int pdeathsig(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGSTOP, 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	(void)start(sleep_on);
	return result("1");
}

static int trace_me(void)
{
	/* traced by its guard, which never asked for it */
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	(void)raise(SIGSTOP);
	return result("1");
}

static int traced_child(void)
{
	pid_t pid = start(sleep_on);

	(void)ptrace(PTRACE_SEIZE, pid, NULL, NULL);
	(void)ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	(void)waitpid(pid, NULL, __WALL);
	return result("1");
}

static int trace_guard(void)
{
	/* root may, and takes it along; nobody else */
	if (ptrace(PTRACE_SEIZE, getppid(), NULL, PTRACE_O_EXITKILL) == 0)
		return geteuid() == 0 ? result("\"root\"") : result("\"traced its guard\"");
	return result("1");
}

static int zombies(void)
{
	for (int i = 0; i < 150; i++) {
		if (fork() == 0)
			_exit(0);
	}
	return result("1");
}

static int fork_chain(void)
{
	/* each forks the next and dies: whoever walks the tree comes too late */
	for (int i = 0; i < 5000; i++) {
		pid_t pid = fork();

		if (pid > 0)
			_exit(i == 0 ? (int)result("1") : 0);
		if (pid < 0)
			_exit(0);
	}
	sleep_on();
	return 0;
}

static int timers(void)
{
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec fast = { .it_interval = { 0, 100000 }, .it_value = { 0, 100000 } };

	(void)signal(SIGUSR1, SIG_IGN);
	for (int i = 0; i < 50 && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0; i++)
		(void)timer_settime(timer, 0, &fast, NULL);
	(void)start(sleep_on);
	return result("1");
}

static int memory(void)
{
	struct rlimit limit = { 64 << 20, 64 << 20 };

	(void)setrlimit(RLIMIT_AS, &limit);
	for (;;) {
		char *block = malloc(1 << 20);

		if (block == NULL)
			return 9;
		memset(block, 1, 1 << 20);
	}
}

static int descriptors(void)
{
	while (dup(0) >= 0)
		;
	(void)start(sleep_on);
	return result("1");
}

static int terminal(void)
{
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY);
	char letter = 'x';

	if (fd >= 0)
		return result("\"has a terminal\"");
	return ioctl(0, TIOCSTI, &letter) == 0 ? result("\"types for others\"") : result("1");
}

static int kill_all(void)
{
	for (int i = 0; i < 10; i++)
		(void)start(sleep_on);
	(void)kill(-1, SIGKILL);
	(void)kill(1, SIGKILL);
	(void)kill(1, SIGSTOP);
	(void)kill(getppid(), SIGTERM);
	(void)kill(0, SIGCONT);
	return result("1");
}

static int kill_fast(void)
{
	/* whatever the guard starts next */
	if (fork() == 0) {
		for (;;)
			(void)kill(-1, SIGKILL);
	}
	return result("1");
}

static int storm(void)
{
	struct rlimit limit = { 400, 400 };
	int64_t began = (int64_t)time(NULL);

	(void)signal(SIGCHLD, SIG_IGN);
	(void)setrlimit(RLIMIT_NPROC, &limit);
	(void)result("1");
	(void)close(1);
	if (fork() != 0)
		return 0;
	/* until it is killed; it would end by itself, too */
	while (time(NULL) - began < 30) {
		if (fork() < 0)
			(void)sched_yield();
		if (getpid() > 3000)
			_exit(0);
	}
	return 0;
}

static int socket_holds(void)
{
	/* its stdout travels in a message that nobody receives */
	int ends[2];
	union {
		struct cmsghdr first;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .first = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	char byte = 0;
	struct iovec part = { &byte, 1 };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes };
	int one = 1;

	memcpy(CMSG_DATA(&control.first), &one, sizeof one);
	(void)socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	(void)sendmsg(ends[0], &header, 0);
	(void)start(sleep_on);
	return result("1");
}

static int nonblocking(void)
{
	/* a flag of the open file, which others may share */
	for (int fd = 0; fd < 3; fd++)
		(void)fcntl(fd, F_SETFL, O_NONBLOCK | O_APPEND);
	return result("1");
}

static int shrinks_pipe(void)
{
	static char spaces[100000];

	memset(spaces, ' ', sizeof spaces);
	(void)fcntl(1, F_SETPIPE_SZ, 4096);
	for (size_t at = 0; at < sizeof spaces;) {
		ssize_t n = write(1, spaces + at, sizeof spaces - at);

		if (n <= 0)
			return 1;
		at += (size_t)n;
	}
	return result("1");
}

static int deep_tree(void)
{
	char name[20];

	memset(name, 'd', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	if (access(".", W_OK) != 0)
		return 1;
	for (int i = 0; i < 1000; i++) {
		if (mkdir(name, 0700) != 0 || chdir(name) != 0)
			return 1;
	}
	(void)close(open("leaf", O_CREAT | O_WRONLY | O_CLOEXEC, 0));
	return result("1");
}

static int mounts(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 || unshare(CLONE_NEWNS) == 0) {
		(void)mkdir("m", 0700);
		(void)mount("none", "m", "tmpfs", 0, NULL);
	}
	return result("1");
}

enum guard { NO_GUARD, CONTAINED, IN_WORKDIR };

static const struct {
	const char *name;
	int (*run)(void);
	enum guard guard;
} tricks[] = {
	{ "vfork-parent", vfork_parent, NO_GUARD },
	{ "clone-quiet", clone_quiet, NO_GUARD },
	{ "clone-sibling", clone_sibling, NO_GUARD },
	{ "sibling-lies", sibling_lies, NO_GUARD },
	{ "new-namespaces", new_namespaces, NO_GUARD },
	{ "subreaper", subreaper, NO_GUARD },
	{ "pdeathsig", pdeathsig, NO_GUARD },
	{ "trace-me", trace_me, NO_GUARD },
	{ "traced-child", traced_child, NO_GUARD },
	{ "trace-guard", trace_guard, CONTAINED },
	{ "zombies", zombies, NO_GUARD },
	{ "fork-chain", fork_chain, CONTAINED },
	{ "timers", timers, NO_GUARD },
	{ "memory", memory, NO_GUARD },
	{ "descriptors", descriptors, NO_GUARD },
	{ "terminal", terminal, NO_GUARD },
	{ "kill-all", kill_all, CONTAINED },
	{ "kill-fast", kill_fast, CONTAINED },
	{ "storm", storm, CONTAINED },
	{ "socket-holds", socket_holds, NO_GUARD },
	{ "nonblocking", nonblocking, NO_GUARD },
	{ "shrinks-pipe", shrinks_pipe, NO_GUARD },
	{ "mounts", mounts, IN_WORKDIR },
	{ "deep-tree", deep_tree, IN_WORKDIR },
};

int rv_trick(const char *name, const char *dir, const char *pidns)
{
	for (size_t i = 0; i < sizeof tricks / sizeof tricks[0]; i++) {
		if (strcmp(tricks[i].name, name) != 0)
			continue;
		if (tricks[i].guard == CONTAINED && !contained(pidns))
			return result("\"not contained\"");
		if (tricks[i].guard == IN_WORKDIR && !in_workdir(dir))
			return result("\"not in a workdir\"");
		return tricks[i].run();
	}
	return 2;
}

/*
 * Fault injection at the n-th system call of one role in a program's tree of processes, by
 * ptrace(2).  strace(1) counts for each process by itself and cannot tell rv-exec from its slot
 * worker; this can, and it also sees what outlives the program: it is a sub-reaper, so that every
 * descendant that is left becomes its child.
 *
 *     inject [--role host|worker|launch|store] [--at N] [--action ACTION] [--ledger FILE]
 *            [--loaded] [--after USEC] [--limit MS] --report FILE -- COMMAND [ARG...]
 *
 * Roles: the host is COMMAND itself; a worker is a child of the host; launch is a child of a worker
 * up to its exec (a tool is let go there and runs untraced); a store is a child of the host from its exec on.
 * Actions: kill (the one that makes the call), kill-host (SIGKILL for the host, which is dead before
 * the call goes on), short (half of a write, or of a writev's first part, is written), or an errno's name.
 * --loaded counts from the first socketpair on: a failure in the dynamic loader is not COMMAND's.
 * --after kills the host after so many microseconds, with nothing traced.
 *
 * One JSON object goes to the report: calls (of that role), fired, call (its number), status (as
 * waitpid gives it), confirmed (whole writes that made the ledger grow), left (processes that were
 * still there five seconds after the host), hung (the limit came first), ms (the host's life).
 */
#include <elf.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef __x86_64__
int main(void)
{
	(void)fputs("inject: knows the registers of x86-64 alone\n", stderr);
	return 77;
}
#else

#define TRACED_MAX 256
#define LEFT_MS 5000

enum role { ROLE_UNKNOWN, ROLE_HOST, ROLE_WORKER, ROLE_LAUNCH, ROLE_STORE };
enum action { ACT_NONE, ACT_KILL, ACT_KILL_HOST, ACT_SHORT, ACT_ERRNO };

struct traced {
	pid_t pid; /* 0: free */
	enum role role;
	bool started;  /* its program runs: what came before the exec was ours */
	bool entered;  /* between a call's entry and its exit */
	bool held;     /* stopped before its parent said whose child it is */
	bool failing;  /* its call is to fail at the exit */
	bool restore;  /* its registers were changed for the call */
	struct user_regs_struct saved;
	off_t ledger_size; /* at a write's entry */
};

struct inject {
	enum role role;
	long at; /* 0: none */
	enum action action;
	int errnum;
	const char *ledger;
	bool loaded;
	long after_us; /* -1: trace */
	long limit_ms;
	const char *report;
	pid_t host;
	bool host_gone;
	int status;
	long calls;
	bool fired;
	long call;
	long confirmed;
	int left;
	bool hung;
	long ms;
	struct traced all[TRACED_MAX];
};

static volatile sig_atomic_t alarmed;

static void on_alarm(int number)
{
	(void)number;
	alarmed = 1;
}

static long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void set_alarm(long ms)
{
	/* again and again: one that comes just before the wait would be lost */
	struct itimerval timer = { .it_interval = { 0, 100000 }, .it_value = { ms / 1000, ms % 1000 * 1000 + 1 } };

	alarmed = 0;
	(void)setitimer(ITIMER_REAL, &timer, NULL);
}

__attribute__((noreturn)) static void die(const char *what)
{
	(void)fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(99);
}

static struct traced *find(struct inject *inject, pid_t pid)
{
	for (size_t i = 0; i < TRACED_MAX; i++) {
		if (inject->all[i].pid == pid)
			return &inject->all[i];
	}
	return NULL;
}

static struct traced *find_or_add(struct inject *inject, pid_t pid)
{
	struct traced *traced = find(inject, pid);

	if (traced == NULL) {
		traced = find(inject, 0);
		if (traced == NULL)
			die("too many processes");
		*traced = (struct traced){ .pid = pid };
	}
	return traced;
}

static void go_on(const struct traced *traced, int signal_number)
{
	/* ESRCH: killed meanwhile; its end is reported by itself */
	(void)ptrace(PTRACE_SYSCALL, traced->pid, NULL, (void *)(intptr_t)signal_number);
}

static off_t ledger_size(const struct inject *inject)
{
	struct stat info;

	return inject->ledger != NULL && stat(inject->ledger, &info) == 0 ? info.st_size : 0;
}

/* Not calls that could fail so: brk(2) gives an address whatever happens, and glibc ends the program
 * where a futex or its own end fails. */
static bool cannot_fail(const struct user_regs_struct *regs)
{
	return regs->orig_rax == SYS_brk || regs->orig_rax == SYS_futex || regs->orig_rax == SYS_exit_group || regs->orig_rax == SYS_rt_sigreturn;
}

static bool is_write(const struct user_regs_struct *regs)
{
	return regs->orig_rax == SYS_write || regs->orig_rax == SYS_pwrite64;
}

/* A writev(2) as the write(2) of its first part. */
static void as_plain_write(pid_t pid, struct user_regs_struct *regs)
{
	long base, len;

	if (regs->orig_rax != SYS_writev || regs->rdx < 1)
		return;
	errno = 0;
	base = ptrace(PTRACE_PEEKDATA, pid, (void *)regs->rsi, NULL);
	len = ptrace(PTRACE_PEEKDATA, pid, (void *)(regs->rsi + sizeof(long)), NULL);
	if (errno != 0)
		return;
	regs->orig_rax = SYS_write;
	regs->rsi = (unsigned long long)base;
	regs->rdx = (unsigned long long)len;
}

/* Nothing else may run before the host is dead: its end is what is tested. */
static void kill_host(struct inject *inject)
{
	if (inject->host_gone || kill(inject->host, SIGKILL) != 0)
		return;
	if (waitpid(inject->host, &inject->status, __WALL) == inject->host)
		inject->host_gone = true;
}

static void fire(struct inject *inject, struct traced *traced, struct user_regs_struct *regs)
{
	inject->call = (long)regs->orig_rax;
	if (inject->action == ACT_SHORT) {
		traced->saved = *regs;
		traced->restore = true;
		as_plain_write(traced->pid, regs);
		regs->rdx /= 2;
		(void)ptrace(PTRACE_SETREGS, traced->pid, NULL, regs);
	} else if (inject->action == ACT_ERRNO) {
		if (cannot_fail(regs))
			return;
		traced->failing = true;
		if (regs->orig_rax != SYS_close) { /* whatever it says, the descriptor is gone */
			regs->orig_rax = (unsigned long long)-1;
			(void)ptrace(PTRACE_SETREGS, traced->pid, NULL, regs);
		}
	} else if (inject->action == ACT_KILL) {
		(void)kill(traced->pid, SIGKILL);
	} else if (inject->action == ACT_KILL_HOST) {
		kill_host(inject);
	}
	inject->fired = true;
}

static void on_entry(struct inject *inject, struct traced *traced)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, traced->pid, NULL, &regs) != 0)
		return;
	traced->ledger_size = is_write(&regs) && traced->role == ROLE_HOST ? ledger_size(inject) : -1;
	if (regs.orig_rax == SYS_socketpair)
		traced->started = true;
	if (traced->role != inject->role || !traced->started)
		return;
	if (inject->action == ACT_SHORT) {
		struct user_regs_struct plain = regs;

		as_plain_write(traced->pid, &plain);
		if (!is_write(&plain) || plain.rdx < 2)
			return;
	}
	inject->calls++;
	if (inject->calls == inject->at)
		fire(inject, traced, &regs);
}

static void on_exit_stop(struct inject *inject, struct traced *traced)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, traced->pid, NULL, &regs) != 0)
		return;
	if (traced->failing) {
		regs.rax = (unsigned long long)-inject->errnum;
		(void)ptrace(PTRACE_SETREGS, traced->pid, NULL, &regs);
	} else if (traced->ledger_size >= 0 && (long long)regs.rax > 0 && regs.rax == regs.rdx && !traced->restore &&
		   ledger_size(inject) == traced->ledger_size + (off_t)regs.rax) {
		inject->confirmed++;
	}
	if (traced->restore) {
		traced->saved.rax = regs.rax;
		traced->saved.orig_rax = regs.orig_rax;
		(void)ptrace(PTRACE_SETREGS, traced->pid, NULL, &traced->saved);
	}
	traced->failing = false;
	traced->restore = false;
}

static void on_child(struct inject *inject, const struct traced *parent)
{
	unsigned long message = 0;
	struct traced *child;

	if (ptrace(PTRACE_GETEVENTMSG, parent->pid, NULL, &message) != 0 || message == 0)
		return;
	child = find_or_add(inject, (pid_t)message);
	child->role = parent->role == ROLE_HOST ? ROLE_WORKER : ROLE_LAUNCH;
	child->started = true;
	if (child->held) {
		child->held = false;
		go_on(child, 0);
	}
}

static void on_event(struct inject *inject, struct traced *traced, int status)
{
	int event = status >> 16;

	if (event == PTRACE_EVENT_STOP) {
		int number = WSTOPSIG(status);

		if (traced->role == ROLE_UNKNOWN)
			traced->held = true;
		else if (number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU)
			(void)ptrace(PTRACE_LISTEN, traced->pid, NULL, NULL);
		else
			go_on(traced, 0);
		return;
	}
	if (event == PTRACE_EVENT_EXEC && traced->role == ROLE_LAUNCH) {
		(void)ptrace(PTRACE_DETACH, traced->pid, NULL, NULL);
		traced->pid = 0;
		return;
	}
	if (event == PTRACE_EVENT_EXEC && traced->role == ROLE_WORKER)
		traced->role = ROLE_STORE;
	else if (event == PTRACE_EVENT_EXEC)
		traced->started = !inject->loaded;
	else
		on_child(inject, traced);
	go_on(traced, 0);
}

static void on_stop(struct inject *inject, struct traced *traced, int status)
{
	if (status >> 16 != 0) {
		on_event(inject, traced, status);
		return;
	}
	if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
		go_on(traced, WSTOPSIG(status));
		return;
	}
	traced->entered = !traced->entered;
	if (traced->entered)
		on_entry(inject, traced);
	else
		on_exit_stop(inject, traced);
	go_on(traced, 0);
}

static void on_end(struct inject *inject, pid_t pid, int status)
{
	struct traced *traced = find(inject, pid);

	if (traced != NULL)
		traced->pid = 0;
	if (pid == inject->host) {
		inject->host_gone = true;
		inject->status = status;
	}
}

/* What is left is a child of ours: count it, end it, and say so. */
static void count_left(struct inject *inject)
{
	siginfo_t info;
	FILE *children = NULL;
	char path[64];
	int pid;

	(void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	children = fopen(path, "re");
	while (children != NULL && fscanf(children, "%d", &pid) == 1) {
		inject->left++;
		(void)kill(pid, SIGKILL);
	}
	if (children != NULL)
		(void)fclose(children);
	else if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		inject->left = 1;
}

static void follow(struct inject *inject)
{
	long started = now_ms();

	set_alarm(inject->limit_ms);
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);

		if (inject->host_gone && inject->ms < 0) {
			inject->ms = now_ms() - started;
			set_alarm(LEFT_MS);
		}
		if (pid < 0 && errno == ECHILD)
			return;
		if (pid < 0 && alarmed != 0) {
			inject->hung = !inject->host_gone;
			count_left(inject);
			return;
		}
		if (pid < 0)
			continue;
		if (WIFSTOPPED(status)) {
			on_stop(inject, find_or_add(inject, pid), status);
			continue;
		}
		on_end(inject, pid, status);
		if (inject->host_gone && inject->ms < 0) {
			inject->ms = now_ms() - started;
			set_alarm(LEFT_MS);
		}
	}
}

static void start(struct inject *inject, char **argv)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
			     PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	int status;

	inject->host = fork();
	if (inject->host < 0)
		die("fork");
	if (inject->host == 0) {
		if (inject->after_us < 0)
			(void)raise(SIGSTOP);
		(void)execv(argv[0], argv);
		die(argv[0]);
	}
	if (inject->after_us >= 0)
		return;
	if (waitpid(inject->host, &status, WUNTRACED) < 0 || !WIFSTOPPED(status))
		die("start");
	if (ptrace(PTRACE_SEIZE, inject->host, NULL, (void *)(intptr_t)options) != 0)
		die("PTRACE_SEIZE");
	find_or_add(inject, inject->host)->role = ROLE_HOST;
	(void)kill(inject->host, SIGCONT);
}

static void kill_later(const struct inject *inject)
{
	struct timespec span = { inject->after_us / 1000000, inject->after_us % 1000000 * 1000 };

	(void)nanosleep(&span, NULL);
	(void)kill(inject->host, SIGKILL); /* unreaped: the pid is still its own */
}

static void write_report(const struct inject *inject)
{
	FILE *out = fopen(inject->report, "we");

	if (out == NULL)
		die(inject->report);
	(void)fprintf(out,
		      "{\"calls\":%ld,\"fired\":%s,\"call\":%ld,\"status\":%d,\"confirmed\":%ld,\"left\":%d,"
		      "\"hung\":%s,\"ms\":%ld}\n",
		      inject->calls, inject->fired ? "true" : "false", inject->call, inject->status, inject->confirmed,
		      inject->left, inject->hung ? "true" : "false", inject->ms);
	if (fclose(out) != 0)
		die(inject->report);
}

/* ---- the command line ---- */

static int parse_errno(const char *name)
{
	for (int number = 1; number < 134; number++) {
		const char *known = strerrorname_np(number);

		if (known != NULL && strcmp(known, name) == 0)
			return number;
	}
	errno = EINVAL;
	die(name);
}

static void parse_action(struct inject *inject, const char *text)
{
	if (strcmp(text, "kill") == 0) {
		inject->action = ACT_KILL;
	} else if (strcmp(text, "kill-host") == 0) {
		inject->action = ACT_KILL_HOST;
	} else if (strcmp(text, "short") == 0) {
		inject->action = ACT_SHORT;
	} else {
		inject->action = ACT_ERRNO;
		inject->errnum = parse_errno(text);
	}
}

static enum role parse_role(const char *text)
{
	if (strcmp(text, "host") == 0)
		return ROLE_HOST;
	if (strcmp(text, "worker") == 0)
		return ROLE_WORKER;
	if (strcmp(text, "launch") == 0)
		return ROLE_LAUNCH;
	if (strcmp(text, "store") == 0)
		return ROLE_STORE;
	errno = EINVAL;
	die(text);
}

static void parse(struct inject *inject, int argc, char **argv)
{
	static const struct option options[] = {
		{ "role", required_argument, NULL, 'r' },   { "at", required_argument, NULL, 'n' },
		{ "action", required_argument, NULL, 'a' }, { "ledger", required_argument, NULL, 'l' },
		{ "after", required_argument, NULL, 'u' },  { "limit", required_argument, NULL, 't' },
		{ "report", required_argument, NULL, 'o' }, { "loaded", no_argument, NULL, 'm' },
		{ NULL, 0, NULL, 0 },
	};
	int got;

	while ((got = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (got) {
		case 'r': inject->role = parse_role(optarg); break;
		case 'n': inject->at = strtol(optarg, NULL, 10); break;
		case 'a': parse_action(inject, optarg); break;
		case 'm': inject->loaded = true; break;
		case 'l': inject->ledger = optarg; break;
		case 'u': inject->after_us = strtol(optarg, NULL, 10); break;
		case 't': inject->limit_ms = strtol(optarg, NULL, 10); break;
		case 'o': inject->report = optarg; break;
		default: exit(2);
		}
	}
	if (inject->report == NULL || argv[optind] == NULL) {
		(void)fputs("usage: inject [OPTION...] --report FILE -- COMMAND [ARG...]\n", stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static struct inject inject = { .role = ROLE_HOST, .after_us = -1, .limit_ms = 20000, .ms = -1 };
	struct sigaction action = { .sa_handler = on_alarm };

	parse(&inject, argc, argv);
	(void)sigaction(SIGALRM, &action, NULL);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		die("prctl");
	start(&inject, argv + optind);
	if (inject.after_us >= 0)
		kill_later(&inject);
	follow(&inject);
	write_report(&inject);
	return 0;
}
#endif

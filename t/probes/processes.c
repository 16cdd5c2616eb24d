/* Other processes: starting them, signalling them, looking into them. */
#include "t/probes/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/sched.h>

static pid_t outside(void)
{
	return (pid_t)strtol(probe_value[KEY_PID], NULL, 10);
}

static char *const *self_argv(const char *word)
{
	static char executed[] = PROBE_EXECUTED;
	static char text[32];
	static char *argv[] = { executed, executed, text, NULL };

	(void)snprintf(text, sizeof text, "%s", word);
	return argv;
}

static int reaped(pid_t child)
{
	int status = 0;

	if (child < 0)
		return -1;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return probe_no(WIFEXITED(status) ? WEXITSTATUS(status) : EINTR);
}

static int exec_path(const char *path, const char *word)
{
	static char *const none[] = { NULL };
	pid_t child = fork();

	if (child == 0) {
		(void)execve(path, self_argv(word), none);
		_exit(errno);
	}
	if (child < 0) { /* without fork: should this work, there is nobody left to say "denied" */
		(void)execve(path, self_argv(word), none);
		return -1;
	}
	return reaped(child);
}

int probe_exec_self(const char *word)
{
	return exec_path("/proc/self/exe", word);
}

static int do_fork(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	return reaped(child);
}

static int do_vfork(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, 0UL);

	if (child == 0)
		_exit(0);
	return reaped(child);
}

static int do_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof args);

	if (child == 0)
		_exit(0);
	return reaped(child);
}

static int do_execve(void) { return probe_exec_self("ran"); }

static int do_execveat(void)
{
	static char *const none[] = { NULL };
	int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	pid_t child = fork();

	if (child <= 0) {
		(void)syscall(SYS_execveat, fd >= 0 ? fd : 1000, "", self_argv("ran"), none, AT_EMPTY_PATH);
		if (child == 0)
			_exit(errno);
		return -1;
	}
	return reaped(child);
}

static int do_posix_spawn(void)
{
	static char *const none[] = { NULL };
	pid_t child = -1;
	int failed = posix_spawn(&child, "/proc/self/exe", NULL, NULL, self_argv("ran"), none);

	return failed != 0 ? probe_no(failed) : reaped(child);
}

static int do_shell(void)
{
	static char sh[] = "sh", c[] = "-c", text[] = "exit 0";
	static char *argv[] = { sh, c, text, NULL };
	static char *const none[] = { NULL };
	pid_t child = -1;
	int failed = posix_spawn(&child, "/bin/sh", NULL, NULL, argv, none);

	return failed != 0 ? probe_no(failed) : reaped(child);
}

static int do_detached(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(setsid() > 0 && fork() >= 0 ? 0 : errno);
	return reaped(child);
}

static int suid_exec(void) { return exec_path(probe_value[KEY_SUID], "euid"); }

/* ---- signals: number 0 asks, and harms nobody ---- */

static int kill_outside(void) { return kill(outside(), 0); }
static int kill_all(void) { return kill(-1, 0); }
static int kill_group(void) { return kill(-getpgid(outside()), 0); }
static int tkill_outside(void) { return (int)syscall(SYS_tkill, outside(), 0); }
static int tgkill_outside(void) { return (int)syscall(SYS_tgkill, outside(), outside(), 0); }

static int sigqueue_outside(void)
{
	siginfo_t info = { .si_code = SI_QUEUE };

	return (int)syscall(SYS_rt_sigqueueinfo, outside(), 0, &info);
}

static int pidfd_outside(void) { return (int)syscall(SYS_pidfd_open, outside(), 0); }

static int pidfd_open_it(void) { return probe_close(pidfd_outside()); }

static int pidfd_signal(void)
{
	int fd = pidfd_outside();
	int result = fd < 0 ? -1 : (int)syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0);

	(void)probe_close(fd);
	return result;
}

static int pidfd_steal(void)
{
	int fd = pidfd_outside();
	int got = fd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, fd, 0, 0);

	(void)probe_close(fd);
	return probe_close(got);
}

/* ---- looking into it ---- */

static int trace_attach(void)
{
	int status;

	if (ptrace(PTRACE_ATTACH, outside(), NULL, NULL) != 0)
		return -1;
	(void)waitpid(outside(), &status, __WALL);
	return (int)ptrace(PTRACE_DETACH, outside(), NULL, NULL);
}

static int trace_seize(void) { return (int)ptrace(PTRACE_SEIZE, outside(), NULL, NULL); }

static int trace_me(void) { return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL); }

static int vm_read(void)
{
	char byte;
	struct iovec to = { &byte, 1 };
	struct iovec from = { (void *)probe_value, 1 }; /* an address of ours: EFAULT there means that we got in */

	if (process_vm_readv(outside(), &to, 1, &from, 1, 0) >= 0 || errno == EFAULT)
		return 0;
	return -1;
}

static int vm_write(void)
{
	char byte = 0;
	struct iovec from = { &byte, 1 };
	struct iovec to = { (void *)4096, 1 }; /* mapped nowhere */

	if (process_vm_writev(outside(), &from, 1, &to, 1, 0) >= 0 || errno == EFAULT)
		return 0;
	return -1;
}

static int compare(void)
{
	return syscall(SYS_kcmp, getpid(), outside(), 0 /* KCMP_FILE */, 0UL, 0UL) >= 0 ? 0 : -1;
}

static int proc_file(const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/%s", (int)outside(), name);
	return probe_read_path(path);
}

static int proc_cmdline(void) { return proc_file("cmdline"); }
static int proc_environ(void) { return proc_file("environ"); }
static int proc_maps(void) { return proc_file("maps"); }
static int proc_status(void) { return proc_file("status"); }

static int proc_parent_environ(void)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/environ", (int)probe_parent);
	return probe_parent == 0 ? probe_no(ENOENT) : probe_read_path(path);
}

static int proc_link(const char *name)
{
	char path[64];
	char text[256];

	(void)snprintf(path, sizeof path, "/proc/%d/%s", (int)outside(), name);
	return readlink(path, text, sizeof text) > 0 ? 0 : -1;
}

static int proc_root(void) { return proc_link("root"); }
static int proc_exe(void) { return proc_link("exe"); }

/* ---- changing it ---- */

static int set_priority(void) { return setpriority(PRIO_PROCESS, (id_t)outside(), 5); }

static int set_affinity(void)
{
	cpu_set_t all;

	memset(&all, 0xff, sizeof all);
	return sched_setaffinity(outside(), sizeof all, &all);
}

static int get_affinity(void)
{
	cpu_set_t all;

	return sched_getaffinity(outside(), sizeof all, &all);
}

static int set_limit_outside(void)
{
	struct rlimit now;

	return prlimit(outside(), RLIMIT_CORE, NULL, &now) != 0 ? -1 : prlimit(outside(), RLIMIT_CORE, &now, NULL);
}

static int io_priority(void) { return (int)syscall(SYS_ioprio_set, 1, outside(), 2 << 13 | 4); }
static int session_of(void) { return getsid(outside()) > 0 ? 0 : -1; }

/* Raising a limit is an effect only where there is one. */
static int raise_limit(__rlimit_resource_t resource)
{
	struct rlimit now;
	struct rlimit more;

	if (getrlimit(resource, &now) != 0)
		return -1;
	more = (struct rlimit){ now.rlim_max == RLIM_INFINITY ? now.rlim_max : now.rlim_max + 1, RLIM_INFINITY };
	more.rlim_max = more.rlim_cur;
	return setrlimit(resource, &more);
}

static int raise_cpu(void) { return raise_limit(RLIMIT_CPU); }
static int raise_nofile(void) { return raise_limit(RLIMIT_NOFILE); }
static int raise_core(void) { return raise_limit(RLIMIT_CORE); }
static int raise_fsize(void) { return raise_limit(RLIMIT_FSIZE); }
static int raise_data(void) { return raise_limit(RLIMIT_DATA); }

const struct probe probes_processes[] = {
	{ "start.fork", KEY_NONE, do_fork }, { "start.vfork", KEY_NONE, do_vfork }, { "start.clone3", KEY_NONE, do_clone3 },
	{ "start.execve", KEY_NONE, do_execve }, { "start.execveat", KEY_NONE, do_execveat },
	{ "start.posix-spawn", KEY_NONE, do_posix_spawn }, { "start.shell", KEY_NONE, do_shell },
	{ "start.detached", KEY_NONE, do_detached }, { "start.setuid", KEY_SUID, suid_exec },
	{ "signal.kill", KEY_PID, kill_outside }, { "signal.group", KEY_PID, kill_group }, { "signal.all", KEY_NONE, kill_all },
	{ "signal.tkill", KEY_PID, tkill_outside }, { "signal.tgkill", KEY_PID, tgkill_outside },
	{ "signal.sigqueue", KEY_PID, sigqueue_outside }, { "signal.pidfd-open", KEY_PID, pidfd_open_it },
	{ "signal.pidfd", KEY_PID, pidfd_signal }, { "process.pidfd-getfd", KEY_PID, pidfd_steal },
	{ "process.ptrace-attach", KEY_PID, trace_attach }, { "process.ptrace-seize", KEY_PID, trace_seize },
	{ "process.ptrace-traceme", KEY_NONE, trace_me }, { "process.vm-readv", KEY_PID, vm_read },
	{ "process.vm-writev", KEY_PID, vm_write }, { "process.kcmp", KEY_PID, compare },
	{ "process.cmdline", KEY_PID, proc_cmdline }, { "process.environ", KEY_PID, proc_environ },
	{ "process.maps", KEY_PID, proc_maps }, { "process.status", KEY_PID, proc_status },
	{ "process.parent-environ", KEY_NONE, proc_parent_environ }, { "process.root", KEY_PID, proc_root },
	{ "process.exe", KEY_PID, proc_exe }, { "process.setpriority", KEY_PID, set_priority },
	{ "process.setaffinity", KEY_PID, set_affinity }, { "process.getaffinity", KEY_PID, get_affinity },
	{ "process.prlimit", KEY_PID, set_limit_outside }, { "process.ioprio", KEY_PID, io_priority },
	{ "process.getsid", KEY_PID, session_of }, { "limit.cpu", KEY_NONE, raise_cpu },
	{ "limit.nofile", KEY_NONE, raise_nofile }, { "limit.core", KEY_NONE, raise_core },
	{ "limit.fsize", KEY_NONE, raise_fsize }, { "limit.data", KEY_NONE, raise_data },
	PROBE_END
};

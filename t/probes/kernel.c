/* What the kernel offers to few: namespaces, mounts, keys, tracing, and memory that no limit counts. */
#include "t/probes/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>

#define UNSHARE(function, flag) \
	static int function(void) \
	{ \
		return unshare(flag); \
	}
UNSHARE(unshare_user, CLONE_NEWUSER)
UNSHARE(unshare_user_mount, CLONE_NEWUSER | CLONE_NEWNS)
UNSHARE(unshare_mount, CLONE_NEWNS)
UNSHARE(unshare_pid, CLONE_NEWPID)
UNSHARE(unshare_net, CLONE_NEWNET)
UNSHARE(unshare_ipc, CLONE_NEWIPC)
UNSHARE(unshare_uts, CLONE_NEWUTS)
UNSHARE(unshare_cgroup, CLONE_NEWCGROUP)
UNSHARE(unshare_time, 0x80)

static int clone_user(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0UL);

	if (child == 0)
		_exit(0);
	return child < 0 ? -1 : waitpid(child, NULL, 0) == child ? 0 : -1;
}

static int join_namespace(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int result = fd < 0 ? -1 : setns(fd, CLONE_NEWNET);

	(void)probe_close(fd);
	return result;
}

/* ---- mounts: over a directory of the probe's own, and undone ---- */

static const char *spot(void)
{
	static char path[64];

	(void)snprintf(path, sizeof path, "probe-spot-%d", (int)getpid());
	return mkdir(path, 0700) == 0 ? path : "/";
}

static int mounted(int result, const char *where)
{
	int saved = errno;

	if (result == 0)
		(void)umount2(where, MNT_DETACH);
	if (where[0] != '/')
		(void)rmdir(where);
	errno = saved;
	return result;
}

static int mount_tmpfs(void)
{
	const char *where = spot();

	return mounted(mount("none", where, "tmpfs", 0, NULL), where);
}

static int mount_bind(void)
{
	const char *where = spot();

	return mounted(mount("/", where, NULL, MS_BIND, NULL), where);
}

static int mount_proc(void)
{
	const char *where = spot();

	return mounted(mount("proc", where, "proc", 0, NULL), where);
}

static int mount_remount(void) { return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL); }
static int mount_fsopen(void) { return probe_close((int)syscall(SYS_fsopen, "tmpfs", 0)); }
static int mount_fspick(void) { return probe_close((int)syscall(SYS_fspick, AT_FDCWD, "/", 0)); }
static int mount_open_tree(void) { return probe_close((int)syscall(SYS_open_tree, AT_FDCWD, "/", 1U)); }

static int mount_attributes(void)
{
	struct {
		uint64_t set, clear, propagation, userns;
	} attr = { 0, 0, 0, 0 };

	return (int)syscall(SYS_mount_setattr, AT_FDCWD, "/", 0U, &attr, sizeof attr);
}

static int change_root(void) { return chroot("/usr"); }

/* ---- privileges ---- */

static int become_root(void)
{
	return geteuid() == 0 ? probe_no(EALREADY) : setuid(0);
}

static int become_other(void) { return setuid(12345); }
static int other_group(void) { return setgid(12345); }
static int drop_groups(void)
{
	gid_t group = 12345;

	return (int)syscall(SYS_setgroups, 1, &group);
}

static int name_host(void)
{
	struct utsname now;

	return uname(&now) != 0 ? -1 : sethostname(now.nodename, strlen(now.nodename));
}

static int new_privileges(void) { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? 0 : probe_no(EPERM); }

static int has_capability(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct sets[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

	if (syscall(SYS_capget, &header, sets) != 0)
		return -1;
	return (sets[0].permitted | sets[1].permitted) != 0 ? 0 : probe_no(EPERM);
}

static int has_bounding(void)
{
	for (int cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			return 0;
	}
	return probe_no(EPERM);
}

static int ports(void)
{
#ifdef __x86_64__
	return ioperm(0x80, 1, 1);
#else
	return probe_no(ENOSYS);
#endif
}

/* ---- facilities ---- */

static int bpf_map(void)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1 };

	return probe_close((int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
}

static int perf_event(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_TASK_CLOCK,
					.exclude_kernel = 1 };

	return probe_close((int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0UL));
}

static int user_fault(void) { return probe_close((int)syscall(SYS_userfaultfd, O_CLOEXEC | 1)); }

static int io_uring(void)
{
	uint32_t params[30] = { 0 };

	return probe_close((int)syscall(SYS_io_uring_setup, 2U, params));
}

static int key_session(void) { return syscall(SYS_keyctl, 0, -3, 1) >= 0 ? 0 : -1; }
static int key_add(void) { return syscall(SYS_add_key, "user", "rv-probe", "x", 1UL, -2) >= 0 ? 0 : -1; }
static int watch_inode(void) { return probe_close(inotify_init1(IN_CLOEXEC)); }
static int watch_fs(void) { return probe_close(fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY)); }

static int ipc_shm(void)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

	return id < 0 ? -1 : shmctl(id, IPC_RMID, NULL);
}

static int ipc_sem(void)
{
	int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);

	return id < 0 ? -1 : semctl(id, 0, IPC_RMID);
}

static int ipc_msg(void)
{
	int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

	return id < 0 ? -1 : msgctl(id, IPC_RMID, NULL);
}

static int ipc_mq(void)
{
	char name[64];
	mqd_t queue;

	(void)snprintf(name, sizeof name, "/rv-probe-%d", (int)getpid());
	queue = mq_open(name, O_RDWR | O_CREAT, 0600, NULL);
	if (queue == (mqd_t)-1)
		return -1;
	(void)mq_close(queue);
	return mq_unlink(name);
}

static int kernel_log(void) { return klogctl(10 /* SIZE_BUFFER */, NULL, 0) > 0 && klogctl(3, (char[16]){ 0 }, 16) >= 0 ? 0 : -1; }
static int set_personality(void) { return personality(0x0040000) >= 0 ? 0 : -1; }
static int set_ldt(void)
{
#ifdef __x86_64__
	char table[16] = { 0 };

	return syscall(SYS_modify_ldt, 1, table, 16UL) >= 0 ? 0 : -1;
#else
	return probe_no(ENOSYS);
#endif
}

/* A 32-bit call number, by the other gate: getpid is 20 there.  A filter of 64-bit numbers must not let it by. */
static int other_abi(void)
{
#ifdef __x86_64__
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	return result > 0 ? 0 : probe_no(result < 0 ? (int)-result : ENOSYS);
#else
	return probe_no(ENOSYS);
#endif
}

/* ENOTTY is the terminal's answer and not the filter's: it got there. */
static int terminal(unsigned long request)
{
	char byte = 0;

	if (syscall(SYS_ioctl, 0, request, &byte) >= 0 || errno == ENOTTY || errno == EIO || errno == EFAULT)
		return 0;
	return -1;
}

static int terminal_sti(void) { return terminal(0x5412); }
static int terminal_sti_high(void) { return terminal(0x5412UL + (1UL << 32)); }
static int terminal_linux(void) { return terminal(0x541C); }

/* ---- memory that no limit counts ---- */

static int map_anonymous(int flags)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

	return at == MAP_FAILED ? -1 : munmap(at, 4096);
}

static int memory_shared(void) { return map_anonymous(MAP_SHARED); }
static int memory_grows(void) { return map_anonymous(MAP_PRIVATE | MAP_GROWSDOWN); }
static int memory_file(void) { return probe_close(memfd_create("probe", MFD_CLOEXEC)); }
static int memory_secret(void) { return probe_close((int)syscall(SYS_memfd_secret, 0)); }

const struct probe probes_kernel[] = {
	{ "namespace.user", KEY_NONE, unshare_user }, { "namespace.user-mount", KEY_NONE, unshare_user_mount },
	{ "namespace.mount", KEY_NONE, unshare_mount }, { "namespace.pid", KEY_NONE, unshare_pid },
	{ "namespace.net", KEY_NONE, unshare_net }, { "namespace.ipc", KEY_NONE, unshare_ipc },
	{ "namespace.uts", KEY_NONE, unshare_uts }, { "namespace.cgroup", KEY_NONE, unshare_cgroup },
	{ "namespace.time", KEY_NONE, unshare_time }, { "namespace.clone-user", KEY_NONE, clone_user },
	{ "namespace.setns", KEY_NONE, join_namespace }, { "mount.tmpfs", KEY_NONE, mount_tmpfs },
	{ "mount.bind", KEY_NONE, mount_bind }, { "mount.proc", KEY_NONE, mount_proc },
	{ "mount.remount", KEY_NONE, mount_remount }, { "mount.fsopen", KEY_NONE, mount_fsopen },
	{ "mount.fspick", KEY_NONE, mount_fspick }, { "mount.open-tree", KEY_NONE, mount_open_tree },
	{ "mount.setattr", KEY_NONE, mount_attributes }, { "mount.chroot", KEY_NONE, change_root },
	{ "privilege.root", KEY_NONE, become_root }, { "privilege.setuid", KEY_NONE, become_other },
	{ "privilege.setgid", KEY_NONE, other_group }, { "privilege.setgroups", KEY_NONE, drop_groups },
	{ "privilege.sethostname", KEY_NONE, name_host }, { "privilege.new", KEY_NONE, new_privileges },
	{ "privilege.capability", KEY_NONE, has_capability }, { "privilege.bounding", KEY_NONE, has_bounding },
	{ "privilege.ioperm", KEY_NONE, ports }, { "kernel.bpf", KEY_NONE, bpf_map }, { "kernel.perf", KEY_NONE, perf_event },
	{ "kernel.userfaultfd", KEY_NONE, user_fault }, { "kernel.io-uring", KEY_NONE, io_uring },
	{ "kernel.keyctl", KEY_NONE, key_session }, { "kernel.add-key", KEY_NONE, key_add },
	{ "kernel.inotify", KEY_NONE, watch_inode }, { "kernel.fanotify", KEY_NONE, watch_fs },
	{ "kernel.log", KEY_NONE, kernel_log }, { "kernel.personality", KEY_NONE, set_personality },
	{ "kernel.ldt", KEY_NONE, set_ldt }, { "kernel.int80", KEY_NONE, other_abi },
	{ "ipc.shm", KEY_NONE, ipc_shm }, { "ipc.sem", KEY_NONE, ipc_sem }, { "ipc.msg", KEY_NONE, ipc_msg },
	{ "ipc.mqueue", KEY_NONE, ipc_mq }, { "terminal.tiocsti", KEY_NONE, terminal_sti },
	{ "terminal.tiocsti-high", KEY_NONE, terminal_sti_high }, { "terminal.tioclinux", KEY_NONE, terminal_linux },
	{ "memory.shared-anonymous", KEY_NONE, memory_shared }, { "memory.grows-down", KEY_NONE, memory_grows },
	{ "memory.memfd", KEY_NONE, memory_file }, { "memory.secret", KEY_NONE, memory_secret },
	PROBE_END
};

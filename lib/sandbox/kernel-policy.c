/* rv-exec's --sandbox kernel as tables: rv-exec(1) says what each row is for. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/sandbox/calls.h"
#include "lib/sandbox/policy.h"

#define SEALED (RV_MOUNT_RDONLY | RV_MOUNT_NOSUID | RV_MOUNT_NODEV)
#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define SYSTEM(path, more) { RV_MOUNT_HOST, path, path, path, SEALED | (more), 0 }
/* A device on a read-only mount can still be written to; its mode cannot be changed, which is the host's. */
#define DEVICE(path) \
	{ RV_MOUNT_HOST, path, path, path, RV_MOUNT_RDONLY | RV_MOUNT_NOSUID | RV_MOUNT_NOEXEC, \
	  RV_FS_READ_FILE | RV_FS_WRITE_FILE }
#define ANYTHING (RV_FS_READ | RV_FS_WRITE | RV_FS_EXECUTE)

static const struct rv_mount mounts[] = {
	SYSTEM("/usr", 0),
	SYSTEM("/bin", RV_MOUNT_OPTIONAL), SYSTEM("/sbin", RV_MOUNT_OPTIONAL), SYSTEM("/lib", RV_MOUNT_OPTIONAL),
	SYSTEM("/lib32", RV_MOUNT_OPTIONAL), SYSTEM("/lib64", RV_MOUNT_OPTIONAL), SYSTEM("/libx32", RV_MOUNT_OPTIONAL),
	{ RV_MOUNT_EMPTY, "etc", NULL, "/etc", 0, 0 },
	SYSTEM("/etc/ld.so.cache", RV_MOUNT_OPTIONAL | RV_MOUNT_FOLLOW),
	SYSTEM("/etc/alternatives", RV_MOUNT_OPTIONAL),
	SYSTEM("/etc/localtime", RV_MOUNT_OPTIONAL | RV_MOUNT_FOLLOW),
	{ RV_MOUNT_TEXT, "passwd", NULL, "/etc/passwd", 0, 0 },
	{ RV_MOUNT_TEXT, "group", NULL, "/etc/group", 0, 0 },
	SYSTEM("/etc/resolv.conf", RV_MOUNT_OPTIONAL | RV_MOUNT_FOLLOW | RV_MOUNT_NET),
	SYSTEM("/etc/hosts", RV_MOUNT_OPTIONAL | RV_MOUNT_FOLLOW | RV_MOUNT_NET),
	SYSTEM("/etc/nsswitch.conf", RV_MOUNT_OPTIONAL | RV_MOUNT_FOLLOW | RV_MOUNT_NET),
	SYSTEM("/etc/ssl", RV_MOUNT_OPTIONAL | RV_MOUNT_FOLLOW | RV_MOUNT_NET),
	/* the host's keys, which root's tool could read */
	{ RV_MOUNT_EMPTY, "ssl-private", NULL, "/etc/ssl/private", SEALED | RV_MOUNT_OPTIONAL | RV_MOUNT_NET, 0 },
	{ RV_MOUNT_EMPTY, "dev", NULL, "/dev", 0, 0 },
	DEVICE("/dev/null"), DEVICE("/dev/zero"), DEVICE("/dev/full"), DEVICE("/dev/random"), DEVICE("/dev/urandom"),
	{ RV_MOUNT_LINK, "fd", "/proc/self/fd", "/dev/fd", 0, 0 },
	{ RV_MOUNT_LINK, "stdin", "/proc/self/fd/0", "/dev/stdin", 0, 0 },
	{ RV_MOUNT_LINK, "stdout", "/proc/self/fd/1", "/dev/stdout", 0, 0 },
	{ RV_MOUNT_LINK, "stderr", "/proc/self/fd/2", "/dev/stderr", 0, 0 },
	{ RV_MOUNT_LINK, "shm", "/tmp", "/dev/shm", 0, 0 }, /* POSIX shared memory and semaphores: private, too */
	/* what a tool may not trace it does not see: its worker, whose command line is the caller's */
	{ RV_MOUNT_PROC, "proc", "hidepid=ptraceable", "/proc", SEALED | RV_MOUNT_NOEXEC, 0 },
	{ RV_MOUNT_EMPTY, "tmp-place", NULL, "/tmp", 0, 0 },
	{ RV_MOUNT_TMPFS, "tmp", "mode=1777,size=512m,nr_inodes=64k", "/tmp", RV_MOUNT_NOSUID | RV_MOUNT_NODEV, ANYTHING },
	{ RV_MOUNT_SOURCE, "root", NULL, "/", 0, RV_FS_READ | RV_FS_EXECUTE },
	{ RV_MOUNT_SOURCE, "readable", NULL, NULL, SEALED, 0 },
	{ RV_MOUNT_SOURCE, "writable", NULL, NULL, RV_MOUNT_NOSUID | RV_MOUNT_NODEV, ANYTHING },
	{ RV_MOUNT_SOURCE, "workdir", NULL, NULL, RV_MOUNT_NOSUID | RV_MOUNT_NODEV, ANYTHING },
};

#define NO(call) { .name = #call, .first = SYS_##call, .last = SYS_##call, .action = RV_FILTER_ERRNO(EPERM) }
#define ABSENT(call) { .name = #call, .first = SYS_##call, .last = SYS_##call, .action = RV_FILTER_ERRNO(ENOSYS) }
#define WHERE(call, act, which, bits, given) \
	{ .name = #call, .first = SYS_##call, .last = SYS_##call, .action = (act), \
	  .tests = { { .argument = (which), .mask = (uint64_t)(bits), .value = (uint64_t)(given) } } }
#define NUMBER(call, number, act) { .name = (call), .first = (number), .last = (number), .action = (act) }

/* A flag that is set: one rule each, since a test compares and does not count. */
#define NEW(call, flag) WHERE(call, RV_FILTER_ERRNO(EPERM), 0, flag, flag)
#define NEW_ANY(call) \
	NEW(call, CLONE_NEWNS), NEW(call, CLONE_NEWCGROUP), NEW(call, CLONE_NEWUTS), NEW(call, CLONE_NEWIPC), \
	NEW(call, CLONE_NEWUSER), NEW(call, CLONE_NEWPID), NEW(call, CLONE_NEWNET)

/* Arguments that the kernel takes as 32 bits: the upper half is not looked at, or it would be a way round. */
#define FAMILY(given) WHERE(socket, SECCOMP_RET_ALLOW, 0, RV_FILTER_INT, given)
#define REQUEST(given) WHERE(ioctl, RV_FILTER_ERRNO(EPERM), 1, RV_FILTER_INT, given)
#define PERSONA(given) WHERE(personality, SECCOMP_RET_ALLOW, 0, RV_FILTER_INT, given)

/* A set-user-ID file is its user's power in the hands of whoever runs it, and in what --rw shows it stays.  Its mode can
 * be given by a call that makes it, too; where openat2(2) has its own, a filter does not see it. */
#define SETS_USER(call, which) WHERE(call, RV_FILTER_ERRNO(EPERM), which, S_ISUID, S_ISUID)
#define MAKES_USER(call, flag, which) \
	{ .name = #call, .first = SYS_##call, .last = SYS_##call, .action = RV_FILTER_ERRNO(EPERM), \
	  .tests = { { .argument = (which), .mask = (flag), .value = (flag) }, \
		     { .argument = (which) + 1, .mask = S_ISUID, .value = S_ISUID } } }
#define TMPFILE 020000000 /* O_TMPFILE without the O_DIRECTORY in it */
#define FCHMODAT2 452
#define POWER \
	SETS_USER(fchmod, 1), SETS_USER(fchmodat, 2), SETS_USER(mknodat, 2), ABSENT(openat2), \
	{ .name = "fchmodat2", .first = FCHMODAT2, .last = FCHMODAT2, .action = RV_FILTER_ERRNO(EPERM), \
	  .tests = { { .argument = 2, .mask = S_ISUID, .value = S_ISUID } } }, \
	MAKES_USER(openat, O_CREAT, 2), MAKES_USER(openat, TMPFILE, 2)

/* The last call that was looked at; what a newer kernel adds is absent until it was. */
#define LAST_KNOWN 469 /* file_setattr, Linux 6.17 */

/* What a tool never needs.  EPERM where a program would ask why; ENOSYS where it has another way. */
#define NEVER \
	/* the mount tree, and other namespaces */ \
	NO(mount), NO(umount2), NO(pivot_root), NO(chroot), NO(open_tree), NO(move_mount), NO(fsopen), NO(fsconfig), \
	NO(fsmount), NO(fspick), NO(mount_setattr), NUMBER("open_tree_attr", 467, RV_FILTER_ERRNO(EPERM)), \
	NO(setns), NEW_ANY(unshare), WHERE(unshare, RV_FILTER_ERRNO(EPERM), 0, 0x80, 0x80), NEW_ANY(clone), \
	ABSENT(clone3), NO(open_by_handle_at), NO(swapon), NO(swapoff), NO(quotactl), NO(quotactl_fd), NO(acct), \
	/* other processes */ \
	NO(ptrace), NO(process_vm_readv), NO(process_vm_writev), NO(process_madvise), NO(process_mrelease), NO(kcmp), \
	NO(pidfd_getfd), NO(move_pages), NO(migrate_pages), \
	/* its worker, which is of the same user, and its limits are every later tool's: they may be read */ \
	WHERE(prlimit64, SECCOMP_RET_ALLOW, 2, RV_FILTER_ALL, 0), WHERE(prlimit64, RV_FILTER_ERRNO(EPERM), 0, RV_FILTER_INT, 1), \
	/* the kernel itself */ \
	ABSENT(bpf), NO(perf_event_open), ABSENT(userfaultfd), ABSENT(io_uring_setup), ABSENT(io_uring_enter), \
	ABSENT(io_uring_register), NO(kexec_load), NO(kexec_file_load), NO(init_module), NO(finit_module), \
	NO(delete_module), NO(reboot), NO(syslog), NO(vhangup), NO(settimeofday), NO(clock_settime), NO(adjtimex), \
	NO(clock_adjtime), NO(sethostname), NO(setdomainname), ABSENT(lookup_dcookie), NO(fanotify_init), \
	NO(add_key), NO(request_key), NO(keyctl), \
	PERSONA(0), PERSONA(UINT32_MAX), NO(personality), \
	/* into a terminal that was handed on */ \
	REQUEST(0x5412 /* TIOCSTI */), REQUEST(0x541C /* TIOCLINUX */), REQUEST(0x541D /* TIOCCONS */), \
	REQUEST(0x5423 /* TIOCSETD */)

#ifdef __x86_64__
#define NEVER_HERE \
	NO(iopl), NO(ioperm), NO(modify_ldt), ABSENT(uselib), ABSENT(_sysctl), ABSENT(nfsservctl), \
	SETS_USER(chmod, 1), SETS_USER(mknod, 1), SETS_USER(creat, 1), MAKES_USER(open, O_CREAT, 1), MAKES_USER(open, TMPFILE, 1),
#else
#define NEVER_HERE
#endif
#define FUTURE { .name = "future", .first = LAST_KNOWN + 1, .last = UINT32_MAX - 1, .action = RV_FILTER_ERRNO(ENOSYS) }
#define PAIRS \
	WHERE(socketpair, SECCOMP_RET_ALLOW, 0, RV_FILTER_INT, AF_UNIX), \
	{ .name = "socketpair", .first = SYS_socketpair, .last = SYS_socketpair, .action = RV_FILTER_ERRNO(EAFNOSUPPORT) }
#define CLOSED { .name = "socket", .first = SYS_socket, .last = SYS_socket, .action = RV_FILTER_ERRNO(EAFNOSUPPORT) }

static const struct rv_filter_rule rules[] = {
	NEVER, POWER, NEVER_HERE FAMILY(AF_UNIX), CLOSED, PAIRS, FUTURE,
};

static const struct rv_filter_rule net_rules[] = {
	NEVER, POWER, NEVER_HERE FAMILY(AF_UNIX), FAMILY(AF_INET), FAMILY(AF_INET6),
	/* routes and addresses, as getaddrinfo(3) asks for them, and no other netlink */
	{ .name = "socket", .first = SYS_socket, .last = SYS_socket, .action = SECCOMP_RET_ALLOW,
	  .tests = { { .argument = 0, .mask = RV_FILTER_INT, .value = AF_NETLINK },
		     { .argument = 2, .mask = RV_FILTER_INT, .value = 0 /* NETLINK_ROUTE */ } } },
	CLOSED, PAIRS, FUTURE,
};

const struct rv_filter rv_filter_kernel = { rules, COUNT(rules), SECCOMP_RET_ALLOW };
const struct rv_filter rv_filter_kernel_net = { net_rules, COUNT(net_rules), SECCOMP_RET_ALLOW };

#define NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define KEEP RV_LIMIT_KEEP

const struct rv_policy rv_policy_kernel = {
	"kernel/1", NAMESPACES | CLONE_NEWNET, mounts, COUNT(mounts),
	RV_LANDLOCK_TCP | RV_LANDLOCK_SIGNALS | RV_LANDLOCK_SOCKETS, &rv_filter_kernel, { KEEP, KEEP, 0, KEEP, KEEP },
	NULL, "sandbox",
};

const struct rv_policy rv_policy_kernel_net = {
	"kernel/1+net", NAMESPACES, mounts, COUNT(mounts),
	RV_LANDLOCK_SIGNALS | RV_LANDLOCK_SOCKETS, &rv_filter_kernel_net, { KEEP, KEEP, 0, KEEP, KEEP }, NULL, "sandbox",
};

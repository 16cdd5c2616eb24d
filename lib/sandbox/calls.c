/* The confine profiles' seccomp table: an allow list by class, what is refused with EPERM since a program may
 * ask why, and ENOSYS for all else, as if the kernel had no such call.  errno choices: rv-confine-profile(7). */
#include "lib/sandbox/calls.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define EXACT(which, given) { .argument = (which), .mask = RV_FILTER_ALL, .value = (uint64_t)(given) }
#define MASKED(which, bits, given) { .argument = (which), .mask = (uint64_t)(bits), .value = (uint64_t)(given) }
#define RULE(call, act, ...) { .name = #call, .first = SYS_##call, .last = SYS_##call, .action = (act), .tests = { __VA_ARGS__ } }
#define ALLOW(call) { .name = #call, .first = SYS_##call, .last = SYS_##call, .action = SECCOMP_RET_ALLOW }
#define REFUSE(call) { .name = #call, .first = SYS_##call, .last = SYS_##call, .action = RV_FILTER_ERRNO(EPERM) }

#define NEW_NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define THREAD_FLAGS (CLONE_VM | CLONE_SIGHAND | CLONE_THREAD)

static const struct rv_filter_rule rules[] = {
	/* own memory: what RLIMIT_DATA does not count (shared anonymous maps, stacks that grow) is refused */
	RULE(mmap, SECCOMP_RET_ALLOW, MASKED(3, MAP_ANONYMOUS | MAP_GROWSDOWN, 0)),
	RULE(mmap, SECCOMP_RET_ALLOW, MASKED(3, MAP_TYPE | MAP_ANONYMOUS | MAP_GROWSDOWN, MAP_PRIVATE | MAP_ANONYMOUS)),
	REFUSE(mmap),
	ALLOW(brk), ALLOW(munmap), ALLOW(mprotect), ALLOW(mremap), ALLOW(madvise), ALLOW(msync), ALLOW(mincore),
	ALLOW(mlock), ALLOW(mlock2), ALLOW(munlock), ALLOW(mlockall), ALLOW(munlockall),
	ALLOW(pkey_alloc), ALLOW(pkey_free), ALLOW(pkey_mprotect), ALLOW(membarrier),

	/* own time */
	ALLOW(clock_gettime), ALLOW(clock_getres), ALLOW(clock_nanosleep), ALLOW(nanosleep), ALLOW(gettimeofday),
	ALLOW(times), ALLOW(getitimer), ALLOW(setitimer),
	ALLOW(timer_create), ALLOW(timer_settime), ALLOW(timer_gettime), ALLOW(timer_getoverrun), ALLOW(timer_delete),
	ALLOW(timerfd_create), ALLOW(timerfd_settime), ALLOW(timerfd_gettime),
#ifdef __x86_64__
	ALLOW(time), ALLOW(alarm),
#endif

	/* own threads and signals */
	RULE(clone, SECCOMP_RET_ALLOW, MASKED(0, THREAD_FLAGS | NEW_NAMESPACES, THREAD_FLAGS)),
	REFUSE(clone),
	RULE(tgkill, SECCOMP_RET_ALLOW, { .argument = 0, .mask = RV_FILTER_ALL, .symbol = RV_VALUE_SELF }),
	REFUSE(tgkill),
	RULE(sched_getaffinity, SECCOMP_RET_ALLOW, EXACT(0, 0)),
	REFUSE(sched_getaffinity),
	ALLOW(exit), ALLOW(exit_group), ALLOW(futex), ALLOW(get_robust_list), ALLOW(set_robust_list), ALLOW(set_tid_address),
	ALLOW(rseq), ALLOW(sched_yield), ALLOW(sched_get_priority_max), ALLOW(sched_get_priority_min), ALLOW(getcpu),
	ALLOW(rt_sigaction), ALLOW(rt_sigprocmask), ALLOW(rt_sigreturn), ALLOW(rt_sigpending), ALLOW(rt_sigsuspend),
	ALLOW(rt_sigtimedwait), ALLOW(sigaltstack), ALLOW(signalfd4), ALLOW(restart_syscall),
#ifdef __x86_64__
	ALLOW(arch_prctl), ALLOW(pause), ALLOW(signalfd),
#endif

	/* who and where it is */
	ALLOW(getpid), ALLOW(getppid), ALLOW(gettid), ALLOW(getpgid), ALLOW(getsid), ALLOW(getuid), ALLOW(geteuid),
	ALLOW(getgid), ALLOW(getegid), ALLOW(getresuid), ALLOW(getresgid), ALLOW(getgroups), ALLOW(capget),
	ALLOW(getrusage), ALLOW(getrlimit), ALLOW(uname), ALLOW(sysinfo), ALLOW(getrandom), ALLOW(umask),
	RULE(prlimit64, SECCOMP_RET_ALLOW, EXACT(0, 0), EXACT(2, 0)), /* its own, and only to read */
	REFUSE(prlimit64),
	RULE(prctl, SECCOMP_RET_ALLOW, EXACT(0, PR_SET_NAME)),
	RULE(prctl, SECCOMP_RET_ALLOW, EXACT(0, PR_GET_NAME)),
	RULE(prctl, SECCOMP_RET_ALLOW, EXACT(0, PR_CAPBSET_READ)),
	REFUSE(prctl),
#ifdef __x86_64__
	ALLOW(getpgrp),
#endif

	/* descriptors that it has */
	ALLOW(read), ALLOW(write), ALLOW(readv), ALLOW(writev), ALLOW(pread64), ALLOW(preadv), ALLOW(preadv2), ALLOW(pwrite64),
	ALLOW(lseek), ALLOW(close), ALLOW(close_range), ALLOW(dup), ALLOW(dup3), ALLOW(pipe2), ALLOW(eventfd2),
	ALLOW(ppoll), ALLOW(pselect6), ALLOW(epoll_create1), ALLOW(epoll_ctl), ALLOW(epoll_pwait), ALLOW(epoll_pwait2),
	ALLOW(fadvise64), ALLOW(readahead),
	RULE(fcntl, SECCOMP_RET_ALLOW, EXACT(1, F_DUPFD)),
	RULE(fcntl, SECCOMP_RET_ALLOW, EXACT(1, F_GETFD)),
	RULE(fcntl, SECCOMP_RET_ALLOW, EXACT(1, F_SETFD)),
	RULE(fcntl, SECCOMP_RET_ALLOW, EXACT(1, F_GETFL)),
	RULE(fcntl, SECCOMP_RET_ALLOW, EXACT(1, F_SETFL)),
	RULE(fcntl, SECCOMP_RET_ALLOW, EXACT(1, F_DUPFD_CLOEXEC)),
	REFUSE(fcntl),
	RULE(ioctl, SECCOMP_RET_ALLOW, EXACT(1, TCGETS)),
	RULE(ioctl, SECCOMP_RET_ALLOW, EXACT(1, FIONBIO)),
	RULE(ioctl, SECCOMP_RET_ALLOW, EXACT(1, FIOCLEX)),
	RULE(ioctl, SECCOMP_RET_ALLOW, EXACT(1, FIONREAD)),
	RULE(ioctl, SECCOMP_RET_ALLOW, EXACT(1, TIOCGWINSZ)),
	{ .name = "ioctl", .first = SYS_ioctl, .last = SYS_ioctl, .action = RV_FILTER_ERRNO(ENOTTY) },
#ifdef __x86_64__
	ALLOW(dup2), ALLOW(pipe), ALLOW(poll), ALLOW(select), ALLOW(epoll_create), ALLOW(epoll_wait), ALLOW(eventfd),
#endif

	/* reading files */
	ALLOW(openat), ALLOW(faccessat), ALLOW(faccessat2), ALLOW(fstat), ALLOW(newfstatat), ALLOW(statx), ALLOW(statfs),
	ALLOW(fstatfs), ALLOW(readlinkat), ALLOW(getdents64), ALLOW(getcwd), ALLOW(chdir), ALLOW(fchdir),
#ifdef __x86_64__
	ALLOW(open), ALLOW(access), ALLOW(stat), ALLOW(lstat), ALLOW(readlink), ALLOW(getdents),
#endif

	/* the one exec: behind it this descriptor cannot exist any more */
	RULE(execveat, SECCOMP_RET_ALLOW, { .argument = 0, .mask = RV_FILTER_ALL, .symbol = RV_VALUE_EXEC },
	     EXACT(4, AT_EMPTY_PATH)),
	REFUSE(execveat), REFUSE(execve),

	/* refused by name: processes */
	REFUSE(kill), REFUSE(tkill), REFUSE(rt_sigqueueinfo), REFUSE(rt_tgsigqueueinfo), REFUSE(ptrace), REFUSE(kcmp),
	REFUSE(process_vm_readv), REFUSE(process_vm_writev), REFUSE(pidfd_open), REFUSE(pidfd_send_signal),
	REFUSE(pidfd_getfd), REFUSE(setrlimit),
#ifdef __x86_64__
	REFUSE(fork), REFUSE(vfork),
#endif

	/* the network */
	REFUSE(socket), REFUSE(socketpair), REFUSE(connect), REFUSE(bind), REFUSE(listen), REFUSE(accept), REFUSE(accept4),
	REFUSE(sendto), REFUSE(sendmsg), REFUSE(sendmmsg), REFUSE(recvfrom), REFUSE(recvmsg), REFUSE(recvmmsg),
	REFUSE(shutdown), REFUSE(getsockname), REFUSE(getpeername), REFUSE(getsockopt), REFUSE(setsockopt),

	/* changing files */
	REFUSE(memfd_create), REFUSE(memfd_secret), REFUSE(linkat), REFUSE(symlinkat), REFUSE(renameat2), REFUSE(fchmod),
	REFUSE(fchmodat), REFUSE(fchown), REFUSE(fchownat), REFUSE(utimensat), REFUSE(setxattr), REFUSE(lsetxattr),
	REFUSE(fsetxattr), REFUSE(removexattr), REFUSE(lremovexattr), REFUSE(fremovexattr), REFUSE(truncate),
	REFUSE(ftruncate), REFUSE(fallocate), REFUSE(unlinkat), REFUSE(mkdirat), REFUSE(mknodat),
#ifdef __x86_64__
	REFUSE(link), REFUSE(symlink), REFUSE(rename), REFUSE(renameat), REFUSE(chmod), REFUSE(chown), REFUSE(lchown),
	REFUSE(utime), REFUSE(utimes), REFUSE(futimesat), REFUSE(unlink), REFUSE(mkdir), REFUSE(rmdir), REFUSE(mknod),
	REFUSE(creat),
#endif
};

const struct rv_filter rv_filter_confine = { rules, sizeof rules / sizeof rules[0], RV_FILTER_ERRNO(ENOSYS) };

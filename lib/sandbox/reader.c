#include "lib/sandbox/reader.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/sandbox/filter.h"
#include "lib/sandbox/landlock.h"
#include "lib/sandbox/restrict.h"

#define NOBODY 65534

#define ALLOW(call) { .name = #call, .first = SYS_##call, .last = SYS_##call, .action = SECCOMP_RET_ALLOW }
#define WHERE(call, ...) \
	{ .name = #call, .first = SYS_##call, .last = SYS_##call, .action = SECCOMP_RET_ALLOW, .tests = { __VA_ARGS__ } }
#define MASKED(which, bits, given) { .argument = (which), .mask = (uint64_t)(bits), .value = (uint64_t)(given) }

static const struct rv_filter_rule rules[] = {
	/* the descriptors that it has */
	ALLOW(read), ALLOW(readv), ALLOW(pread64), ALLOW(preadv), ALLOW(lseek), ALLOW(fstat),
	ALLOW(write), ALLOW(writev), ALLOW(close),

	/* own memory, and no code in it: what is loaded is loaded */
	WHERE(mmap, MASKED(2, PROT_EXEC, 0), MASKED(3, MAP_TYPE | MAP_ANONYMOUS, MAP_PRIVATE | MAP_ANONYMOUS)),
	WHERE(mprotect, MASKED(2, PROT_EXEC, 0)),
	ALLOW(munmap), ALLOW(mremap), ALLOW(brk), ALLOW(madvise),

	/* own time, randomness, and what it knows of itself */
	ALLOW(clock_gettime), ALLOW(clock_getres), ALLOW(gettimeofday), ALLOW(getrandom), ALLOW(sysinfo), ALLOW(getpid),
	ALLOW(gettid),
	WHERE(prlimit64, MASKED(0, RV_FILTER_ALL, 0), MASKED(2, RV_FILTER_ALL, 0)), /* to read */
	ALLOW(getrlimit),
#ifdef __x86_64__
	ALLOW(time),
#endif

	/* own signals and locks, and the end */
	ALLOW(futex), ALLOW(rt_sigaction), ALLOW(rt_sigprocmask), ALLOW(rt_sigreturn), ALLOW(sigaltstack),
	ALLOW(restart_syscall), ALLOW(sched_yield), ALLOW(exit), ALLOW(exit_group),
};

static const struct rv_filter filter = { rules, sizeof rules / sizeof rules[0], SECCOMP_RET_KILL_PROCESS };

const char *rv_reader_step_name(int step)
{
	static const char *const names[] = {
		[RV_READER_READY] = "ready",
		[RV_READER_PARENT] = "the process that started it is gone",
		[RV_READER_DESCRIPTORS] = "closing descriptors",
		[RV_READER_LIMITS] = "limits",
		[RV_READER_PRIVILEGES] = "giving up privileges",
		[RV_READER_LANDLOCK] = "Landlock",
		[RV_READER_SECCOMP] = "seccomp",
	};

	return names[step];
}

static int limit(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)resource, &now) != 0)
		return -1;
	if (now.rlim_max > hard)
		now.rlim_max = hard;
	if (now.rlim_cur > soft)
		now.rlim_cur = soft;
	if (now.rlim_cur > now.rlim_max)
		now.rlim_cur = now.rlim_max;
	return setrlimit((__rlimit_resource_t)resource, &now);
}

static int take_limits(const struct rv_reader_limits *limits)
{
#if !defined(__SANITIZE_ADDRESS__)
	if (limit(RLIMIT_AS, limits->address_bytes, limits->address_bytes) != 0)
		return -1;
#endif
	return limit(RLIMIT_CPU, limits->cpu_seconds, limits->cpu_seconds + 1) != 0 || limit(RLIMIT_CORE, 0, 0) != 0 ||
	       limit(RLIMIT_FSIZE, 0, 0) != 0 ? -1 : 0;
}

/* What is refused because there is no such id here, or because the capability went before, is no failure. */
static bool is_missing(void)
{
	return errno == EINVAL || errno == EPERM;
}

static int become_nobody(void)
{
	if (geteuid() != 0)
		return 0;
	for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
	if (!is_missing() || (setgroups(0, NULL) != 0 && !is_missing()))
		return -1;
	if (setresgid(NOBODY, NOBODY, NOBODY) != 0 && !is_missing())
		return -1;
	return setresuid(NOBODY, NOBODY, NOBODY) != 0 && !is_missing() ? -1 : 0;
}

static int drop_privileges(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || become_nobody() != 0)
		return -1;
	return rv_restrict_capabilities();
}

static int restrict_files(void)
{
	int abi = rv_landlock_abi();
	rv_auto_fd int ruleset = -1;

	if (abi == 0)
		return 0;
	ruleset = rv_landlock_new(abi, RV_LANDLOCK_TCP | RV_LANDLOCK_SIGNALS | RV_LANDLOCK_SOCKETS);
	return ruleset < 0 ? -1 : rv_landlock_restrict(ruleset);
}

/* A change of credentials clears it, and whoever died in between is missing already. */
static int die_with(int parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
		return -1;
	if (getppid() == parent)
		return 0;
	errno = ESRCH;
	return -1;
}

int rv_reader_give_up(const struct rv_reader_limits *limits, int parent)
{
	struct rv_filter_values values = { 0, 0 };

	if (syscall(SYS_close_range, 3U, UINT_MAX, 0U) != 0)
		return RV_READER_DESCRIPTORS;
	if (take_limits(limits) != 0)
		return RV_READER_LIMITS;
	if (drop_privileges() != 0)
		return RV_READER_PRIVILEGES;
	if (die_with(parent) != 0)
		return RV_READER_PARENT;
	if (restrict_files() != 0)
		return RV_READER_LANDLOCK;
	if (limit(RLIMIT_NOFILE, 3, 3) != 0) /* behind the ruleset, which is one */
		return RV_READER_LIMITS;
	return rv_filter_load(&filter, &values) != 0 ? RV_READER_SECCOMP : RV_READER_READY;
}

/*
 * The program's role: it gives up everything, shows that it has, and waits for the host's byte.
 */
#include "lib/sandbox/behind.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/close_range.h>

#include "lib/base/cleanup.h"
#include "lib/base/signals.h"
#include "lib/sandbox/restrict.h"

/* Say it and be refused.  The report is smaller than a pipe's atomic write. */
int rv_behind_refuse(struct rv_behind *run, int step)
{
	run->report.errnum = errno;
	run->report.step = step;
	(void)!write(run->record, &run->report, sizeof run->report);
	return RV_BOUNDARY_REFUSED;
}

const char *rv_behind_target(const struct rv_mount *mount, const struct rv_source *source)
{
	if (source->target != NULL)
		return source->target;
	return mount->target != NULL ? mount->target : source->path;
}

/* 0, 1, 2 and the record; the last is closed by the exec where the launcher has written it itself. */
static int place_descriptors(struct rv_behind *run)
{
	for (int i = 0; i < 3; i++) {
		if (dup2(run->stdio[i], i) < 0)
			return -1;
		(void)close(run->stdio[i]);
	}
	if (dup3(run->record, RV_BOUNDARY_RECORD, run->boundary->admitted != NULL ? O_CLOEXEC : 0) < 0)
		return -1;
	(void)close(run->record);
	run->record = RV_BOUNDARY_RECORD;
	return 0;
}

int rv_behind_raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return -1;
	if (limit.rlim_cur > RV_BOUNDARY_EXEC)
		return 0;
	limit.rlim_cur = RV_BOUNDARY_EXEC + 1;
	return setrlimit(RLIMIT_NOFILE, &limit);
}

/* The runtime as it is in here, at a number that the limit of descriptors will rule out for good. */
static int open_runtime(const struct rv_boundary *boundary)
{
	struct stat info;
	rv_auto_fd int fd = open(boundary->runtime, O_PATH | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &info) != 0)
		return -1;
	if (info.st_dev != boundary->runtime_device || info.st_ino != boundary->runtime_inode) {
		errno = EXDEV;
		return -1;
	}
	if (rv_behind_raise_descriptors() != 0)
		return -1;
	return dup3(fd, RV_BOUNDARY_EXEC, O_CLOEXEC) < 0 ? -1 : 0;
}

static int allow_path(int ruleset, int abi, const char *path, uint64_t rights)
{
	rv_auto_fd int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -1 : rv_landlock_allow(ruleset, abi, fd, rights);
}

static int allow_mount(int ruleset, const struct rv_instance *instance, const struct rv_mount *mount)
{
	int abi = instance->landlock_abi;

	if (mount->rights == 0)
		return 0;
	if (mount->kind != RV_MOUNT_SOURCE)
		return allow_path(ruleset, abi, mount->target, mount->rights);
	for (size_t i = 0; i < instance->source_count; i++) {
		const struct rv_source *source = &instance->sources[i];

		if (strcmp(source->name, mount->name) == 0 &&
		    allow_path(ruleset, abi, rv_behind_target(mount, source), mount->rights) != 0)
			return -1;
	}
	return 0;
}

static int restrict_files(const struct rv_instance *instance)
{
	const struct rv_policy *policy = instance->policy;
	rv_auto_fd int ruleset = -1;

	if (instance->landlock_abi == 0) {
		errno = EOPNOTSUPP;
		return -1;
	}
	ruleset = rv_landlock_new(instance->landlock_abi, policy->scopes);
	if (ruleset < 0)
		return -1;
	for (size_t i = 0; i < policy->mount_count; i++) {
		if (allow_mount(ruleset, instance, &policy->mounts[i]) != 0)
			return -1;
	}
	return rv_landlock_restrict(ruleset);
}

/* The errno of the refusal, 0 where there was none. */
static int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	(void)close(fd);
	return 0;
}

static int try_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	(void)close(fd);
	return 0;
}

int rv_boundary_compile(const struct rv_policy *policy, struct rv_filter_program *program)
{
	program->values = (struct rv_filter_values){ .self = RV_BOUNDARY_PROGRAM, .exec = RV_BOUNDARY_EXEC };
	program->len = policy->filter != NULL ? rv_filter_compile(policy->filter, &program->values, program->code) : 0;
	return program->len < 0 ? -1 : 0;
}

static int load_filter(const struct rv_behind *run)
{
	const struct rv_filter *filter = run->boundary->instance.policy->filter;
	const struct rv_filter_program *program = run->boundary->filter;
	struct rv_filter_values values = { .self = (uint64_t)getpid(), .exec = RV_BOUNDARY_EXEC };

	if (filter == NULL)
		return 0;
	if (program != NULL && (run->rehearsed || program->values.self == values.self))
		return rv_filter_load_program(program->code, program->len);
	return rv_filter_load(filter, &values);
}

int rv_behind_give_up(struct rv_behind *run)
{
	const struct rv_boundary *boundary = run->boundary;
	uint64_t limits[RV_LIMITS];

	rv_restrict_choose(&boundary->instance, limits);
	if (!run->dropped && rv_restrict_privileges() != 0)
		return RV_BOUNDARY_PRIVILEGES;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) /* behind the last change of credentials, which clears it */
		return RV_BOUNDARY_GUARD;
	if (rv_restrict_limits(limits) != 0)
		return RV_BOUNDARY_LIMITS;
	if (restrict_files(&boundary->instance) != 0)
		return RV_BOUNDARY_LANDLOCK;
	if (syscall(SYS_close_range, RV_BOUNDARY_RECORD + 1U, UINT_MAX, CLOSE_RANGE_CLOEXEC) != 0)
		return RV_BOUNDARY_DESCRIPTORS;
	if (load_filter(run) != 0)
		return RV_BOUNDARY_SECCOMP;
	return RV_BOUNDARY_READY;
}

int rv_behind_measure(struct rv_behind *run)
{
	const struct rv_boundary *boundary = run->boundary;
	struct rv_boundary_report *report = &run->report;

	if (rv_restrict_measure(report->soft, report->hard) != 0)
		return -1;
	report->effects[RV_EFFECT_CANARY] = try_open(boundary->canary, O_RDONLY);
	report->effects[RV_EFFECT_SOCKET] = try_socket();
	report->effects[RV_EFFECT_WRITE] = try_open(boundary->write_probe, O_WRONLY | O_CREAT);
	return 0;
}

/* What is measured here is what the program has. */
static int show(struct rv_behind *run)
{
	const struct rv_boundary_report *report = &run->report;

	if (rv_behind_measure(run) != 0)
		return -1;
	return write(run->record, report, sizeof *report) == (ssize_t)sizeof *report ? 0 : -1;
}

static int wait_and_exec(struct rv_behind *run)
{
	const struct rv_boundary *boundary = run->boundary;
	char text[32];
	char go = 0;
	ssize_t got;

	do
		got = read(run->go, &go, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1 || go != RV_BOUNDARY_GO) /* end of file: the host is gone, or will not have it */
		return RV_BOUNDARY_REFUSED;
	if (boundary->admitted != NULL &&
	    write(run->record, boundary->admitted, strlen(boundary->admitted)) != (ssize_t)strlen(boundary->admitted))
		return RV_BOUNDARY_REFUSED;
	(void)syscall(SYS_execveat, RV_BOUNDARY_EXEC, "", boundary->argv, boundary->envp, AT_EMPTY_PATH);
	(void)snprintf(text, sizeof text, "exec %d\n", errno);
	(void)!write(run->record, text, strlen(text));
	return RV_BOUNDARY_REFUSED;
}

int rv_behind_program(struct rv_behind *run)
{
	sigset_t none;
	int step;

	if (run->status >= 0)
		(void)close(run->status);
	run->status = -1;
	if (place_descriptors(run) != 0)
		return rv_behind_refuse(run, RV_BOUNDARY_STDIO);
	if (open_runtime(run->boundary) != 0)
		return rv_behind_refuse(run, RV_BOUNDARY_RUNTIME);
	if (chdir(run->boundary->cwd) != 0)
		return rv_behind_refuse(run, RV_BOUNDARY_CWD);
	(void)setsid(); /* EPERM: it leads one */
	(void)umask(022);
	rv_signals_default_of(run->boundary->ignored);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	step = rv_behind_give_up(run);
	if (step != RV_BOUNDARY_READY || show(run) != 0)
		return rv_behind_refuse(run, step != RV_BOUNDARY_READY ? step : RV_BOUNDARY_LIMITS);
	return wait_and_exec(run);
}

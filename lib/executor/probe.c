#include "lib/executor/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/executor/command.h"
#include "lib/executor/enclose.h"
#include "lib/json/write.h"
#include "lib/process/cgroup.h"
#include "lib/process/coprocess.h"
#include "lib/process/slot.h"

#define PROGRAM_MS 10000
#define REMEDY_USERNS                                                                                      \
	"user.max_user_namespaces above 0, kernel.apparmor_restrict_unprivileged_userns=0 or a profile, " \
	"and a container's seccomp profile that lets clone make namespaces"

/* ---- in a child ---- */

static void say_errno(struct rv_finding *finding, int errnum, const char *remedy)
{
	finding->ok = errnum == 0;
	if (errnum != 0) {
		(void)snprintf(finding->why, sizeof finding->why, "%s", strerror(errnum));
		finding->remedy = remedy;
	}
}

/* The child's exit status is the errno of what it could not do. */
static void try_in_child(struct rv_finding *finding, uint64_t namespaces, int (*child)(void *), const char *remedy)
{
	struct rv_spawn_plan plan = {
		.namespaces = namespaces,
		.parent_setup = (namespaces & CLONE_NEWUSER) != 0 ? rv_spawn_map_self : NULL,
		.child = child,
	};
	struct rv_child made = RV_CHILD_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct pollfd ready = { .events = POLLIN };
	int status = 0;

	if (rv_spawn(&plan, &made, &err) != 0) {
		(void)snprintf(finding->why, sizeof finding->why, "%s", err.message);
		finding->remedy = remedy;
		return;
	}
	ready.fd = made.pidfd;
	(void)poll(&ready, 1, PROGRAM_MS);
	(void)rv_child_kill(&made, 1000, &status);
	say_errno(finding, WIFEXITED(status) ? WEXITSTATUS(status) : EINTR, remedy);
}

static uint64_t with_user(uint64_t namespaces)
{
	return geteuid() == 0 ? namespaces : namespaces | CLONE_NEWUSER;
}

static int be_first(void *data)
{
	(void)data;
	return getpid() == 1 ? 0 : ENOSYS;
}

static int do_nothing(void *data)
{
	(void)data;
	return 0;
}

static int mount_proc(void *data)
{
	(void)data;
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
		return errno;
	return 0;
}

static int restrict_files(void *data)
{
	struct landlock_ruleset_attr rules = { .handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE };
	long ruleset = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules.handled_access_fs, 0U);

	(void)data;
	if (ruleset < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_landlock_restrict_self, (int)ruleset, 0U) != 0)
		return errno;
	return open("/dev/null", O_WRONLY | O_CLOEXEC) < 0 && errno == EACCES ? 0 : EPERM; /* does it hold? */
}

static int filter_calls(void *data)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number of the call comes first: seccomp(2) */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof code[0], code };

	(void)data;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
		return errno;
	return syscall(SYS_getppid) < 0 && errno == EXDEV ? 0 : EPERM;
}

static void find_user_namespace(const char *cgroup, struct rv_finding *finding)
{
	(void)cgroup;
	try_in_child(finding, CLONE_NEWUSER, do_nothing, REMEDY_USERNS);
}

static void find_pid_namespace(const char *cgroup, struct rv_finding *finding)
{
	(void)cgroup;
	try_in_child(finding, with_user(CLONE_NEWPID), be_first, REMEDY_USERNS);
}

static void find_procfs(const char *cgroup, struct rv_finding *finding)
{
	(void)cgroup;
	try_in_child(finding, with_user(CLONE_NEWPID | CLONE_NEWNS), mount_proc,
		     "a /proc without anything mounted over its parts: in a container, unmasked");
}

static void find_landlock(const char *cgroup, struct rv_finding *finding)
{
	(void)cgroup;
	try_in_child(finding, 0, restrict_files, "Linux 5.13 or later with landlock among lsm= at boot");
}

static void find_seccomp(const char *cgroup, struct rv_finding *finding)
{
	(void)cgroup;
	try_in_child(finding, 0, filter_calls, "a kernel with CONFIG_SECCOMP_FILTER");
}

/* ---- slots and groups ---- */

static void find_default(const char *cgroup, struct rv_finding *finding)
{
	struct rv_slots all = { .first = NULL };
	struct rv_slot slot;
	struct rv_error why = RV_ERROR_INIT;
	struct rv_error err = RV_ERROR_INIT;

	(void)cgroup;
	finding->remedy = REMEDY_USERNS;
	if (rv_slot_start(&slot, &all, RV_CONTAIN_NAMESPACE, &why, &err) != 0) {
		(void)snprintf(finding->why, sizeof finding->why, "%.500s", err.message);
		return;
	}
	finding->ok = slot.containment == RV_CONTAIN_NAMESPACE;
	if (finding->ok)
		finding->remedy = "";
	(void)snprintf(finding->why, sizeof finding->why, "%s%s%.450s", rv_containment_name(slot.containment),
		       finding->ok ? "" : ": ", finding->ok ? "" : why.message);
	rv_slot_stop(&slot, 1000);
}

/* All of it: a slot whose tools would be enclosed. */
static void find_kernel(const char *cgroup, struct rv_finding *finding)
{
	struct rv_slots all = { .first = NULL };
	struct rv_slot slot;
	struct rv_enclose enclose;
	struct rv_error why = RV_ERROR_INIT;
	struct rv_error err = RV_ERROR_INIT;

	(void)cgroup;
	finding->ok = rv_enclose_open(&enclose, &all, NULL, NULL, false, "/tmp", &err) == 0 &&
		      rv_slot_start(&slot, &all, RV_CONTAIN_NAMESPACE, &why, &err) == 0;
	if (finding->ok) {
		rv_slot_stop(&slot, 1000);
		(void)snprintf(finding->why, sizeof finding->why, "Landlock ABI %d", rv_landlock_abi());
	} else {
		(void)snprintf(finding->why, sizeof finding->why, "%.500s", err.message);
		finding->remedy = REMEDY_USERNS ", a /proc without anything mounted over its parts, and landlock among lsm=";
	}
	rv_enclose_release(&enclose);
}

static void try_groups(struct rv_finding *finding, const char *dir)
{
	struct rv_cgroups groups;
	struct rv_error err = RV_ERROR_INIT;

	finding->ok = rv_cgroups_open(&groups, dir, (uint64_t)1 << 30, 1000, &err) == 0;
	if (!finding->ok) {
		(void)snprintf(finding->why, sizeof finding->why, "%.500s", err.message);
		finding->remedy = dir != NULL ? "a delegated directory with the controllers memory and pids (systemd: Delegate=yes)"
					      : "root, where cgroup v1 is mounted; else --cgroup";
	}
	rv_cgroups_release(&groups);
}

static void find_old_groups(const char *cgroup, struct rv_finding *finding)
{
	(void)cgroup;
	try_groups(finding, NULL);
}

static void find_groups(const char *cgroup, struct rv_finding *finding)
{
	if (cgroup != NULL) {
		try_groups(finding, cgroup);
		return;
	}
	(void)snprintf(finding->why, sizeof finding->why, "--cgroup was not given");
	finding->remedy = "--cgroup with a delegated directory that has the controllers memory and pids";
}

/* ---- programs ---- */

/* A program's own complaints are in `why`, as its status, and not among our messages. */
static int hush(void)
{
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	rv_auto_fd int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (saved >= 0 && null >= 0)
		(void)dup2(null, STDERR_FILENO);
	return saved;
}

static void run_words(struct rv_finding *finding, char *const *words)
{
	rv_auto_buffer struct rv_buffer path = RV_BUFFER_INIT;
	struct rv_coprocess program = RV_COPROCESS_INIT;
	struct rv_error err = RV_ERROR_INIT;

	if (rv_command_find(&path, words[0], &err) != 0 || rv_coprocess_start(&program, path.data, words, &err) != 0) {
		(void)snprintf(finding->why, sizeof finding->why, "%.500s", err.message);
		return;
	}
	rv_coprocess_close_in(&program);
	finding->ok = rv_coprocess_has_ended(&program, PROGRAM_MS) && WIFEXITED(program.status) &&
		      WEXITSTATUS(program.status) == 0;
	if (!finding->ok)
		rv_coprocess_describe(&program, finding->why, sizeof finding->why);
	rv_coprocess_kill(&program);
}

/* Run to a status of 0, in this program's environment, without input. */
static void try_program(struct rv_finding *finding, const char *command, const char *remedy)
{
	rv_auto_free char **words = NULL;
	size_t count = 0;
	struct rv_error err = RV_ERROR_INIT;
	int saved;

	if (rv_text_split(command, &words, &count, &err) != 0) {
		(void)snprintf(finding->why, sizeof finding->why, "%.500s", err.message);
		return;
	}
	saved = hush();
	run_words(finding, words);
	if (saved >= 0) {
		(void)dup2(saved, STDERR_FILENO);
		(void)close(saved);
	}
	if (!finding->ok)
		finding->remedy = remedy;
}

static void find_bwrap(const char *cgroup, struct rv_finding *finding)
{
	static const char words[] = "bwrap --unshare-all --die-with-parent --ro-bind / / true";

	(void)cgroup;
	try_program(finding, words, "install bubblewrap, and let it make user namespaces");
}

static void find_firejail(const char *cgroup, struct rv_finding *finding)
{
	static const char words[] = "firejail --quiet --noprofile --net=none true";

	(void)cgroup;
	try_program(finding, words, "install firejail, setuid root as it comes");
}

static void find_podman(const char *cgroup, struct rv_finding *finding)
{
	static const char words[] = "podman info --format {{.Version.Version}}";

	(void)cgroup;
	try_program(finding, words, "install podman, with ids in /etc/subuid and /etc/subgid for an ordinary user");
}

static void find_docker(const char *cgroup, struct rv_finding *finding)
{
	static const char words[] = "docker version --format {{.Server.Version}}";

	(void)cgroup;
	try_program(finding, words, "install docker, and let this user talk to its daemon");
}

/* ---- the whole ---- */

const struct rv_facility rv_facilities[] = {
	{ "user-namespace", find_user_namespace },
	{ "pid-namespace", find_pid_namespace },
	{ "procfs", find_procfs },
	{ "cgroup-v1", find_old_groups },
	{ "cgroup-v2", find_groups },
	{ "landlock", find_landlock },
	{ "seccomp", find_seccomp },
	{ "sandbox-kernel", find_kernel },
	{ "bwrap", find_bwrap },
	{ "firejail", find_firejail },
	{ "podman", find_podman },
	{ "docker", find_docker },
	{ "default", find_default },
	{ NULL, NULL },
};

int rv_probe_all(struct rv_buffer *out, const char *cgroup, bool *holds, struct rv_error *err)
{
	*holds = false;
	for (const struct rv_facility *facility = rv_facilities; facility->name != NULL; facility++) {
		struct rv_finding finding = { .ok = false, .why = "", .remedy = "" };

		facility->find(cgroup, &finding);
		if (strcmp(facility->name, "default") == 0)
			*holds = finding.ok;
		rv_buffer_add_byte(out, '{');
		rv_json_member_string(out, "name", facility->name);
		rv_json_member_bool(out, "ok", finding.ok);
		rv_json_member_string(out, "why", finding.why);
		rv_json_member_string(out, "remedy", finding.remedy);
		rv_buffer_add_string(out, "}\n");
	}
	return rv_buffer_check(out, err);
}

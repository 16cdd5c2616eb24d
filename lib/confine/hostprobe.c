#include "lib/confine/hostprobe.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/confine/closure.h"
#include "lib/confine/collect.h"
#include "lib/confine/host.h"
#include "lib/json/write.h"
#include "lib/process/cgroup.h"
#include "lib/process/spawn.h"

#define TIMEOUT_MS 10000

static const char user_remedy[] =
	"allow user namespaces: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1 (Debian), "
	"kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), or the container's seccomp profile";
static const char mount_remedy[] =
	"allow mounts in a user namespace: an AppArmor profile with userns (Ubuntu), or a container with its own";
static const char landlock_remedy[] = "a kernel with CONFIG_SECURITY_LANDLOCK, and landlock in its lsm= list";
static const char cgroup_remedy[] = "a delegated cgroup v2 directory that holds no process itself";
static const char descriptors_remedy[] = "the caller's hard limit of open descriptors (ulimit -Hn) must be above 1000";
static const char limits_remedy[] =
	"the caller's own hard limits (ulimit -H) must not be below 30 s of processor time, 64 descriptors and 1 GiB of data";
static const char calls_remedy[] = "a kernel with CONFIG_SECCOMP_FILTER";

static const char *remedy_for(int step)
{
	switch (step) {
	case RV_BOUNDARY_IDS:
		return user_remedy;
	case RV_BOUNDARY_ROOT:
	case RV_BOUNDARY_MOUNT:
	case RV_BOUNDARY_PIVOT:
		return mount_remedy;
	case RV_BOUNDARY_RUNTIME:
		return descriptors_remedy;
	case RV_BOUNDARY_LIMITS:
		return limits_remedy;
	case RV_BOUNDARY_LANDLOCK:
		return landlock_remedy;
	case RV_BOUNDARY_SECCOMP:
		return calls_remedy;
	default:
		return "see rv-confine-profile(7)";
	}
}

static int not_here(const struct rv_policy *policy, const char *what, int errnum, const char *remedy, struct rv_error *err)
{
	return rv_error_set(err, RV_E_HOST, 0, "this host cannot enforce %s: %s: %s; remedy: %s", policy->name, what,
			    strerror(errnum), remedy);
}

/* What is borrowed while the probe runs. */
struct trial {
	struct rv_host host;
	struct rv_aliases aliases;
	struct rv_closure closure;
	struct rv_launch_plan plan;
	char directory[PATH_MAX];
	struct rv_source sources[64];
};

static void add_source(struct trial *trial, const char *name, const char *path, const char *target, const char *link)
{
	size_t *count = &trial->plan.boundary.instance.source_count;

	if (*count < sizeof trial->sources / sizeof trial->sources[0])
		trial->sources[(*count)++] = (struct rv_source){ .name = name, .path = path, .target = target,
								     .link = link };
}

/* The launcher's own directory stands for the snapshots: it is there, and is only mounted. */
static void fill(struct trial *trial, const struct rv_policy *policy, const struct rv_bounds *bounds)
{
	static char version[] = "--version", *environment[] = { NULL };
	static char *argv[] = { version, version, NULL };
	struct rv_boundary *boundary = &trial->plan.boundary;
	const struct rv_hash_file *launcher = &trial->host.launcher;

	memcpy(trial->directory, launcher->path, strlen(launcher->path) + 1);
	*strrchr(trial->directory, '/') = '\0';
	if (trial->directory[0] == '\0')
		memcpy(trial->directory, "/", 2);
	boundary->instance.policy = policy;
	boundary->instance.landlock_abi = rv_landlock_abi();
	boundary->instance.sources = trial->sources;
	for (size_t i = 0; i < trial->aliases.count; i++)
		add_source(trial, "alias", trial->aliases.items[i].path, NULL, trial->aliases.items[i].target);
	if (trial->closure.count == 0)
		add_source(trial, "runtime", launcher->path, policy->namespaces != 0 ? "/runtime" : NULL, NULL);
	for (size_t i = 0; i < trial->closure.count; i++)
		add_source(trial, "runtime", trial->closure.files[i].path, NULL, NULL);
	add_source(trial, "program", trial->directory, NULL, NULL);
	add_source(trial, "input", trial->directory, NULL, NULL);
	rv_launch_set_limits(&boundary->instance, bounds);
	rv_boundary_ids(boundary);
	boundary->runtime = launcher->path;
	boundary->runtime_device = launcher->device;
	boundary->runtime_inode = launcher->inode;
	boundary->argv = argv;
	boundary->envp = environment;
	boundary->cwd = "/";
	boundary->canary = "/etc/passwd";
	boundary->write_probe = policy->namespaces != 0 ? "/home/probe" : "/probe";
	boundary->admitted = RV_LAUNCH_ADMITTED;
}

static int judge_report(const struct rv_policy *policy, const struct rv_boundary_report *report,
			const struct rv_bounds *bounds, struct rv_error *err)
{
	if (report->step != RV_BOUNDARY_READY)
		return not_here(policy, rv_boundary_step_name(report->step), report->errnum, remedy_for(report->step), err);
	if (!rv_bounds_are_measured(bounds, report))
		return rv_error_set(err, RV_E_HOST, 0, "this host does not enforce %s: the measured limits are others",
				    policy->name);
	for (int i = 0; i < RV_EFFECTS; i++) {
		if (report->effects[i] == 0)
			return rv_error_set(err, RV_E_HOST, 0, "this host does not enforce %s: what must be refused was not",
					    policy->name);
	}
	return 0;
}

static int judge(const struct rv_policy *policy, const struct rv_facts *facts, const struct rv_bounds *bounds,
		 struct rv_error *err)
{
	if (facts->reported && judge_report(policy, &facts->report, bounds, err) != 0)
		return -1;
	if (facts->admission == RV_ADMISSION_ADMITTED && facts->exit_known && facts->exit_code == 0)
		return 0;
	return rv_error_set(err, RV_E_HOST, 0,
			    "this host cannot enforce %s: a program behind the boundary did not run to its end%s%s", policy->name,
			    facts->exec_errno > 0 ? ": " : "", facts->exec_errno > 0 ? strerror(facts->exec_errno) : "");
}

static int try_policy(struct trial *trial, const struct rv_policy *policy, struct rv_error *err)
{
	struct rv_bounds bounds = RV_BOUNDS_DEFAULT;
	struct rv_facts facts;
	int result;

	if (rv_host_describe(&trial->host, err) != 0)
		return -1;
	if (rv_closure_find(&trial->closure, trial->host.launcher.path, &trial->aliases, err) != 0) {
		err->code = RV_E_HOST;
		return rv_error_wrap(err, "this program cannot find its own libraries");
	}
	bounds.timeout_ms = TIMEOUT_MS;
	fill(trial, policy, &bounds);
	result = rv_collect(&facts, &trial->plan, &bounds, -1, NULL, err);
	if (result != 0)
		result = not_here(policy, "namespaces", err->errnum, user_remedy, err);
	else
		result = judge(policy, &facts, &bounds, err);
	rv_facts_release(&facts);
	return result;
}

#if defined __x86_64__

static int with_trial(struct trial *trial, const struct rv_policy *policy, struct rv_error *err)
{
	int result = try_policy(trial, policy, err);

	rv_closure_release(&trial->closure);
	rv_aliases_release(&trial->aliases);
	rv_host_release(&trial->host);
	return result;
}

int rv_hostprobe_policy(const struct rv_policy *policy, struct rv_error *err)
{
	struct trial *trial = calloc(1, sizeof *trial);
	int result = trial != NULL ? with_trial(trial, policy, err) : rv_error_nomem(err);

	free(trial);
	return result;
}

/* ---- the rehearsal ---- */

/* Of a thread that only waits; what it waits for has its own, but in a sanitizer's build. */
#define STACK ((size_t)256 << 10)

struct rv_rehearsal {
	struct trial trial;
	const struct rv_policy *policy;
	struct rv_bounds bounds;
	struct rv_boundary_report report;
	pthread_t thread;
	bool threaded;
	pid_t pid;
	int errnum; /* 0: there is a report */
};

static void *rehearse(void *data)
{
	struct rv_rehearsal *rehearsal = data;

	if (rv_boundary_rehearse(&rehearsal->trial.plan.boundary, &rehearsal->report, &rehearsal->pid) != 0)
		rehearsal->errnum = errno;
	return NULL;
}

/* Beside the caller, or, where there can be no thread, before it. */
static void set_off(struct rv_rehearsal *rehearsal)
{
	pthread_attr_t attr;
	bool set = pthread_attr_init(&attr) == 0;

	rehearsal->threaded = set && pthread_attr_setstacksize(&attr, STACK) == 0 &&
			      pthread_create(&rehearsal->thread, &attr, rehearse, rehearsal) == 0;
	if (set)
		(void)pthread_attr_destroy(&attr);
	if (!rehearsal->threaded)
		(void)rehearse(rehearsal);
}

int rv_hostprobe_begin(const struct rv_policy *policy, const struct rv_filter_program *filter, struct rv_rehearsal **rehearsal,
		       struct rv_error *err)
{
	struct rv_rehearsal *own = calloc(1, sizeof *own);

	*rehearsal = NULL;
	if (own == NULL)
		return rv_error_nomem(err);
	if (rv_host_find_launcher(&own->trial.host, err) != 0) {
		rv_host_release(&own->trial.host);
		free(own);
		return -1;
	}
	own->policy = policy;
	own->bounds = (struct rv_bounds)RV_BOUNDS_DEFAULT;
	own->pid = -1;
	own->trial.plan.boundary.filter = filter;
	fill(&own->trial, policy, &own->bounds);
	set_off(own);
	*rehearsal = own;
	return 0;
}

static int judge_rehearsal(const struct rv_rehearsal *rehearsal, struct rv_error *err)
{
	const struct rv_policy *policy = rehearsal->policy;

	if (rehearsal->errnum != 0)
		return not_here(policy, "namespaces", rehearsal->errnum, user_remedy, err);
	if (rehearsal->report.size != sizeof rehearsal->report)
		return rv_error_set(err, RV_E_HOST, 0, "this host cannot enforce %s: trying it was ended; see "
				    "rv-confine-profile(7)", policy->name);
	return judge_report(policy, &rehearsal->report, &rehearsal->bounds, err);
}

int rv_hostprobe_answer(struct rv_rehearsal *rehearsal, pid_t *pid, struct rv_error *err)
{
	int result;

	if (rehearsal->threaded)
		(void)pthread_join(rehearsal->thread, NULL);
	result = judge_rehearsal(rehearsal, err);
	*pid = rehearsal->pid;
	rv_host_release(&rehearsal->trial.host);
	free(rehearsal);
	return result;
}

#else

static int elsewhere(const struct rv_policy *policy, struct rv_error *err)
{
	return rv_error_set(err, RV_E_HOST, 0, "%s is proven on x86-64 alone", policy->name);
}

int rv_hostprobe_policy(const struct rv_policy *policy, struct rv_error *err)
{
	(void)try_policy;
	return elsewhere(policy, err);
}

int rv_hostprobe_begin(const struct rv_policy *policy, const struct rv_filter_program *filter, struct rv_rehearsal **rehearsal,
		       struct rv_error *err)
{
	(void)filter;
	*rehearsal = NULL;
	return elsewhere(policy, err);
}

int rv_hostprobe_answer(struct rv_rehearsal *rehearsal, pid_t *pid, struct rv_error *err)
{
	(void)rehearsal; /* there is none */
	*pid = -1;
	return rv_error_set(err, RV_E_HOST, 0, "not proven here");
}

#endif

static void add_line(struct rv_buffer *out, const char *name, bool ok, const char *why, const char *remedy)
{
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "name", name);
	rv_json_member_bool(out, "ok", ok);
	rv_json_member_string(out, "why", why);
	rv_json_member_string(out, "remedy", ok ? "" : remedy);
	rv_buffer_add_string(out, "}\n");
}

static int nothing(void *data)
{
	(void)data;
	return 0;
}

static void probe_user_namespace(struct rv_buffer *out)
{
	struct rv_spawn_plan plan = { .namespaces = CLONE_NEWUSER, .parent_setup = rv_spawn_map_self, .child = nothing };
	struct rv_child child = RV_CHILD_INIT;
	struct rv_error err = RV_ERROR_INIT;
	bool ok = rv_spawn(&plan, &child, &err) == 0;

	if (ok)
		(void)rv_child_kill(&child, 1000, NULL);
	add_line(out, "user-namespace", ok, err.message, user_remedy);
}

static void probe_landlock(struct rv_buffer *out)
{
	int abi = rv_landlock_abi();
	char why[32];

	(void)snprintf(why, sizeof why, "ABI %d", abi);
	add_line(out, "landlock", abi > 0, why, landlock_remedy);
}

/* A watch can always be had, where no group was asked for by name. */
static void probe_memory(struct rv_buffer *out, const char *cgroup)
{
	struct rv_cgroups groups;
	struct rv_error err = RV_ERROR_INIT;
	bool had = rv_cgroups_open(&groups, cgroup, (uint64_t)RV_CONFINE_MEMORY_MAX, UINT64_MAX, &err) == 0;

	if (had)
		add_line(out, "memory-limit", true, groups.unified ? "a cgroup of version 2" : "a cgroup of version 1", "");
	else if (cgroup != NULL)
		add_line(out, "memory-limit", false, err.message, cgroup_remedy);
	else
		add_line(out, "memory-limit", true, "a watch on the resident size, from outside", "");
	rv_cgroups_release(&groups);
}

int rv_hostprobe_add_json(struct rv_buffer *out, const char *cgroup, bool *good, struct rv_error *err)
{
	static const struct rv_policy *const profiles[] = { &rv_policy_linux, &rv_policy_linux_proc, &rv_policy_landlock };

	probe_user_namespace(out);
	probe_landlock(out);
	probe_memory(out, cgroup);
	for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
		struct rv_error why = RV_ERROR_INIT;
		bool ok = rv_hostprobe_policy(profiles[i], &why) == 0;
		const char *remedy = strstr(why.message, "remedy: ");

		add_line(out, profiles[i]->name, ok, why.message, remedy != NULL ? remedy + 8 : "see why");
		if (i == 0)
			*good = ok;
	}
	return rv_buffer_check(out, err);
}

/* One run: the order of decision (seed, "Failure semantics"); the first hit wins. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/confine/service.h"

struct run {
	struct rv_confine *confine;
	const struct rv_confine_request *request;
	struct rv_confine_result *result;
	const struct rv_policy *policy;
	const char *root_path;
	int root;
	struct rv_runtime runtime;
	char profile[RV_DIGEST_TEXT]; /* its digest */
	struct rv_namespace ns;
	struct rv_launch_plan plan;
	struct rv_cgroups groups; /* with this run's own bound */
	struct rv_cgroup group;
	struct rv_events events;
};

/* End it before there is a process.  `err` has the message. */
static int refuse(struct run *run, enum rv_not_started reason, const struct rv_error *err)
{
	run->result->status = RV_CONFINE_NOT_STARTED;
	run->result->reason = reason;
	run->result->error = *err;
	return -1;
}

static int refuse_for(struct run *run, enum rv_not_started reason, const char *message)
{
	struct rv_error err = RV_ERROR_INIT;

	(void)rv_error_set(&err, RV_E_CONFIG, 0, "%s", message);
	return refuse(run, reason, &err);
}

/* ---- what becomes of the namespace ---- */

static void quarantine(struct run *run, const char *reason)
{
	struct rv_disposition *ns = &run->result->ns;

	ns->state = RV_NS_QUARANTINED;
	memcpy(ns->path, run->ns.path, sizeof ns->path);
	rv_buffer_clear(&ns->reason);
	rv_buffer_add_string(&ns->reason, reason);
}

static void unlink_verified(struct run *run)
{
	struct rv_error err = RV_ERROR_INIT;

	if (rv_namespace_unlink(&run->ns, &run->result->ns.durable, &err) == 0)
		run->result->ns.state = RV_NS_REMOVED;
	else
		quarantine(run, err.message);
}

static void remove_namespace(struct run *run)
{
	struct rv_error err = RV_ERROR_INIT;

	if (run->ns.path[0] == '\0')
		return;
	if (rv_namespace_verify(&run->ns, &err) == 0)
		unlink_verified(run);
	else
		quarantine(run, err.message);
}

/* ---- before anything is written ---- */

/* What is read, decides nothing: the profile as it is, the runtime as it is, and what went wrong with either. */
struct found {
	int profile, runtime; /* 0 or -1 */
	struct rv_error profile_err, runtime_err;
};

static void find_identities(struct run *run, struct found *found)
{
	struct rv_runtime_spec spec = rv_confine_request_runtime(run->request, run->confine->options.allow_home_trees,
								 run->confine->options.root);

	found->profile = rv_confine_describe(run->confine, run->policy, run->profile, &found->profile_err);
	found->runtime = run->confine->options.by_identity
				 ? rv_confine_identify(run->confine, &spec, &run->runtime, &found->runtime_err)
				 : rv_runtime_describe(&run->runtime, &spec, &found->runtime_err);
	if (found->runtime == 0)
		found->runtime = rv_runtime_check_places(&spec, &run->runtime, &found->runtime_err);
}

static int check_runtime(struct run *run, struct found *found)
{
	struct rv_error *err = &found->runtime_err;

	if (found->runtime != 0 && err->code == RV_E_HOST)
		return refuse(run, RV_REASON_HOST, err);
	if (found->runtime != 0 && err->code == RV_E_REQUEST) { /* a link leads where nothing of a runtime may be */
		run->result->status = RV_CONFINE_INVALID;
		run->result->error = *err;
		return rv_error_wrap(&run->result->error, "invalid confined run request");
	}
	if (found->runtime != 0) {
		(void)rv_error_wrap(err, "the runtime cannot be verified");
		return refuse(run, RV_REASON_RUNTIME, err);
	}
	if (run->request->pinned && strcmp(run->runtime.digest, run->request->pins.runtime) != 0) {
		(void)rv_error_set(err, RV_E_CONFIG, 0, "the runtime's digest is %s, and not the pinned one",
				   run->runtime.digest);
		return refuse(run, RV_REASON_RUNTIME, err);
	}
	run->result->proven = rv_proven_has_runtime(&run->confine->proven, run->runtime.digest);
	if (run->confine->proven.given && !run->result->proven)
		return refuse_for(run, RV_REASON_RUNTIME, "the receipt does not name this runtime");
	return 0;
}

static int check_profile(struct run *run, struct found *found)
{
	struct rv_error *err = &found->profile_err;

	if (found->profile != 0)
		return refuse(run, RV_REASON_SETUP, err);
	if (run->request->pinned && strcmp(run->profile, run->request->pins.profile) != 0) {
		(void)rv_error_set(err, RV_E_CONFIG, 0, "the digest of profile %s is %s, and not the pinned one",
				   run->policy->name, run->profile);
		return refuse(run, RV_REASON_PROFILE, err);
	}
	if (run->confine->proven.given && !rv_proven_has_profile(&run->confine->proven, run->profile))
		return refuse_for(run, RV_REASON_PROFILE, "the receipt does not name this profile");
	return 0;
}

/* The host is tried while the identities are read; then it is host, profile, runtime, in this order. */
static int check_pins(struct run *run)
{
	struct rv_error err = RV_ERROR_INIT;
	struct found found = { .profile_err = RV_ERROR_INIT, .runtime_err = RV_ERROR_INIT };
	struct rv_host host;
	int described;

	if (rv_cancelled(run->confine->options.cancel))
		return refuse_for(run, RV_REASON_ABORTED, "cancelled before anything was done");
	described = rv_host_find_launcher(&host, &err);
	rv_host_release(&host);
	if (described != 0 || rv_confine_ask_host(run->confine, run->policy, &err) != 0)
		return refuse(run, RV_REASON_HOST, &err);
	find_identities(run, &found);
	if (rv_confine_check_host(run->confine, run->policy, &run->plan.boundary.filter, &err) != 0)
		return refuse(run, RV_REASON_HOST, &err);
	if (check_profile(run, &found) != 0)
		return -1;
	return check_runtime(run, &found);
}

/* ---- the namespace ---- */

static int open_root(struct run *run)
{
	struct rv_error err = RV_ERROR_INIT;
	long count;

	if (rv_confine_find_root(run->confine, &run->root_path, &err) != 0 ||
	    rv_root_open(run->root_path, &run->root, &err) != 0)
		return refuse(run, RV_REASON_SETUP, &err);
	for (size_t i = 0; i < run->runtime.tree_count; i++) {
		if (rv_tree_check_place(run->runtime.trees[i].path, true, run->root_path, &err) != 0)
			return refuse(run, RV_REASON_SETUP, &err);
	}
	count = rv_root_count(run->root, &err);
	if (count < 0)
		return refuse(run, RV_REASON_SETUP, &err);
	if (count >= run->confine->options.max_retained) {
		(void)rv_error_set(&err, RV_E_CONFIG, 0,
				   "%ld names are in %s and %d may be: leftovers are never reclaimed automatically", count,
				   run->root_path, run->confine->options.max_retained);
		return refuse(run, RV_REASON_RETAINED, &err);
	}
	rv_event_counted(&run->events, run->root_path, count);
	return 0;
}

static int materialise(struct run *run)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_boundary ids = { .instance = { .policy = run->policy } };
	int claimed = rv_namespace_claim(&run->ns, run->root, run->root_path, run->confine->options.max_retained, &err);

	if (claimed == 0)
		return refuse_for(run, RV_REASON_RETAINED,
				  "every slot is taken; leftovers are never reclaimed automatically");
	rv_boundary_ids(&ids);
	if (claimed < 0 || rv_namespace_fill(&run->ns, &run->request->program, &run->request->input, ids.outside_uid,
					     ids.outside_gid, &err) != 0) {
		(void)refuse(run, RV_REASON_SETUP, &err);
		remove_namespace(run);
		return -1;
	}
	rv_event_namespace(&run->events, "materialised", run->ns.path);
	return 0;
}

/* ---- the process ---- */

static void on_launched(void *data, pid_t pid)
{
	struct run *run = data;

	run->events.deadline_ms = rv_clock_mono_ms() + run->request->bounds.timeout_ms;
	rv_event_process(&run->events, "launched", run->ns.path, pid, rv_buffer_string(&run->plan.instance));
}

static void on_admitted(void *data, pid_t pid)
{
	struct run *run = data;

	rv_event_process(&run->events, "admitted", run->ns.path, pid, NULL);
}

/* From the check to the spawn nothing else happens. */
static int launch(struct run *run)
{
	struct rv_collect_hooks hooks = { on_launched, on_admitted, run };
	struct rv_error err = RV_ERROR_INIT;

	if (rv_confine_make_group(run->confine, run->request->bounds.max_memory, &run->groups, &run->group, &err) != 0 ||
	    rv_launch_prepare(&run->plan, run->policy, run->request, &run->runtime, &run->ns, &err) != 0) {
		(void)refuse(run, RV_REASON_SETUP, &err);
		remove_namespace(run);
		return -1;
	}
	run->plan.group = run->group.groups != NULL ? &run->group : NULL;
	if (rv_namespace_verify(&run->ns, &err) != 0) {
		quarantine(run, err.message);
		return refuse(run, RV_REASON_SNAPSHOT, &err);
	}
	if (rv_cancelled(run->confine->options.cancel)) {
		(void)refuse_for(run, RV_REASON_ABORTED, "cancelled before the launch");
		remove_namespace(run);
		return -1;
	}
	if (rv_collect(&run->result->facts, &run->plan, &run->request->bounds, run->confine->options.cancel, &hooks, &err) !=
	    0) {
		(void)refuse(run, RV_REASON_SETUP, &err);
		remove_namespace(run);
		return -1;
	}
	run->events.deadline_ms = 0; /* the run is over, and its deadline may be: what stands here is not killed for that */
	rv_event_namespace(&run->events, "collected", run->ns.path);
	return 0;
}

/* ---- what speaks against it ---- */

static void add_refusal(struct rv_confine_result *result, const struct rv_launch_plan *plan)
{
	static const char *const effects[RV_EFFECTS] = { "the canary could be opened", "a socket could be made",
							  "a file could be written" };
	const struct rv_boundary_report *report = &result->facts.report;
	bool said = false;

	if (result->facts.exec_errno > 0) {
		rv_confine_problem(result, "admission refused: the runtime could not be executed: %s",
				   strerror(result->facts.exec_errno));
		return;
	}
	if (result->facts.reported && report->step != RV_BOUNDARY_READY) {
		bool one = report->detail >= 0 && (size_t)report->detail < plan->boundary.instance.source_count;

		rv_confine_problem(result, "admission refused: the step %s failed: %s%s%s", rv_boundary_step_name(report->step),
				   strerror(report->errnum), one ? ": " : "",
				   one ? plan->boundary.instance.sources[report->detail].path : "");
		return;
	}
	for (int i = 0; result->facts.reported && i < RV_EFFECTS; i++) {
		if (report->effects[i] == 0) {
			rv_confine_problem(result, "admission refused: %s behind the boundary", effects[i]);
			said = true;
		}
	}
	if (!said)
		rv_confine_problem(result, "admission refused: the program never ran");
}

static void add_problems(struct rv_confine_result *result, const struct rv_launch_plan *plan)
{
	const struct rv_facts *facts = &result->facts;

	if (facts->admission == RV_ADMISSION_ABSENT)
		rv_confine_problem(result, "admission absent: the program never ran");
	else if (facts->admission == RV_ADMISSION_REFUSED)
		add_refusal(result, plan);
	else if (facts->admission == RV_ADMISSION_MALFORMED)
		rv_confine_problem(result, "admission malformed: the program's start is unconfirmed");
	if (facts->stopped == RV_STOP_LIMITS)
		rv_confine_problem(result, "the measured limits are not those of the request");
	if (facts->lost_contact)
		rv_confine_problem(result, "lost contact: init ended without saying how the program did");
	if (facts->unwatched)
		rv_confine_problem(result, "maxMemoryBytes was not watched: /proc does not show the process");
	if (!facts->gone)
		rv_confine_problem(result, "the process is not confirmed gone");
	if (!facts->pipes_closed)
		rv_confine_problem(result, "its pipes are still open");
}

static void check_runtime_again(struct run *run)
{
	struct rv_runtime_spec spec = rv_confine_request_runtime(run->request, run->confine->options.allow_home_trees,
								 run->confine->options.root);
	bool by_digest = !run->confine->options.by_identity;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_runtime now;
	int result;

	spec.launcher = &run->runtime.host.launcher;
	result = by_digest ? rv_runtime_describe(&now, &spec, &err) : rv_runtime_look(&now, &spec, &err);

	if (result != 0)
		rv_confine_problem(run->result, "runtime changed: %s", err.message);
	else if (by_digest ? strcmp(now.digest, run->runtime.digest) != 0 : strcmp(now.stamp, run->runtime.stamp) != 0)
		rv_confine_problem(run->result, "runtime changed during the run");
	else if (!by_digest && rv_confine_credit(run->confine, &run->runtime, &run->request->id, &err) != 0)
		rv_confine_problem(run->result, "the run could not be kept for the last check: %s", err.message);
	rv_runtime_release(&now);
}

static void check_namespace_again(struct run *run)
{
	struct rv_error err = RV_ERROR_INIT;

	if (rv_namespace_verify(&run->ns, &err) != 0) {
		rv_confine_problem(run->result, "namespace changed: %s", err.message);
		quarantine(run, err.message);
		return;
	}
	unlink_verified(run);
}

static void conclude(struct run *run)
{
	struct rv_confine_result *result = run->result;

	memcpy(result->runtime, run->runtime.digest, sizeof result->runtime);
	memcpy(result->profile, run->profile, sizeof result->profile);
	memcpy(result->instantiated, run->plan.instantiated, sizeof result->instantiated);
	result->landlock_abi = run->plan.boundary.instance.landlock_abi;
	result->by_digest = !run->confine->options.by_identity;
	add_problems(result, &run->plan);
	if (!result->facts.gone || !result->facts.pipes_closed) {
		result->status = RV_CONFINE_UNRESOLVED;
		quarantine(run, "the process or its pipes may be live");
		return;
	}
	result->status = RV_CONFINE_OBSERVED;
	check_runtime_again(run);
	check_namespace_again(run);
}

void rv_confine_run(struct rv_confine *confine, const struct rv_confine_request *request, struct rv_confine_result *result)
{
	struct run run = { .confine = confine, .request = request, .result = result, .root = -1, .group = RV_CGROUP_INIT };

	rv_confine_result_init(result);
	run.policy = confine->options.find(request->profile);
	run.events = (struct rv_events){ .command = confine->options.event_command, .say = confine->options.say };
	if (check_pins(&run) == 0 && open_root(&run) == 0 && materialise(&run) == 0 && launch(&run) == 0)
		conclude(&run);
	if (result->status == RV_CONFINE_UNRESOLVED) /* what may be live is not signalled again */
		rv_cgroup_leave(&run.group);
	else
		(void)rv_cgroup_remove(&run.group);
	rv_launch_release(&run.plan);
	rv_namespace_release(&run.ns);
	rv_runtime_release(&run.runtime);
	if (run.root >= 0)
		(void)close(run.root);
}

void rv_confine_answer(struct rv_confine *confine, struct rv_confine_request *request, const char *line, size_t len,
		       struct rv_confine_result *result)
{
	struct rv_error err = RV_ERROR_INIT;

	rv_confine_result_init(result);
	if (rv_confine_request_parse(request, line, len, confine->options.allow_home_trees, confine->options.root,
				     confine->options.cancel, &err) == 0 &&
	    rv_confine_check_profile(confine, request->profile, &err) == 0) {
		rv_confine_run(confine, request, result);
		return;
	}
	rv_confine_result_refuse(result, &err);
}

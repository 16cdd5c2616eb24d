#include "lib/executor/attempt.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/digest/digest.h"
#include "lib/executor/permit.h"
#include "lib/process/workdir.h"

#define NAME_TRIES 64
#define SETTLE_MS 2000 /* beyond all deadlines: the last row's own time */

static struct rv_attempt attempt_of(const struct rv_dispatch *dispatch)
{
	const struct rv_call *call = dispatch->call;

	return (struct rv_attempt){
		.idempotency_key = call->key,
		.run_id = call->run_id,
		.span_id = call->span_id,
		.tool = call->tool,
		.args_hash = call->args_hash,
		.executor = rv_span_of(dispatch->executor->name),
		.workdir = { dispatch->workdir.data, dispatch->workdir.len },
		.started_at = dispatch->started_at,
		.attempt_id = { dispatch->attempt_id, strlen(dispatch->attempt_id) },
	};
}

int rv_attempt_environment(struct rv_dispatch *dispatch, struct rv_error *err)
{
	const struct rv_executor *executor = dispatch->executor;

	for (size_t i = 0; executor->allow_env[i] != NULL; i++) {
		if (rv_environment_allow(&dispatch->environment, executor->allow_env[i], err) != 0)
			return rv_error_wrap(err, "--allow-env");
	}
	for (size_t i = 0; executor->set_env[i] != NULL; i++) {
		if (rv_environment_put(&dispatch->environment, executor->set_env[i], err) != 0)
			return rv_error_wrap(err, "--setenv");
	}
	return 0;
}

int rv_attempt_permit(const struct rv_dispatch *dispatch, struct rv_error *err)
{
	return dispatch->call->needs_approval ? rv_permits_check(dispatch->executor->permits, dispatch->call, err) : 0;
}

static bool has_nul(struct rv_span text)
{
	return text.len > 0 && memchr(text.data, '\0', text.len) != NULL;
}

static bool is_limited(const struct rv_limits *limits)
{
	return limits->cpu_ms != INT64_MAX || limits->data != UINT64_MAX || limits->memory != UINT64_MAX ||
	       limits->processes != 0 || limits->cgroup != NULL;
}

int rv_attempt_check(const struct rv_executor *executor, const struct rv_call *call, struct rv_error *err)
{
	const struct rv_isolation *isolation = executor->isolation;

	if (has_nul(call->tool) || has_nul(call->run_id) || has_nul(call->key))
		return rv_error_set(err, RV_E_REQUEST, 0, "a NUL in the tool's name, the run id or the key");
	if (call->command == NULL || call->command[0] == '\0')
		return rv_error_set(err, RV_E_CONFIG, 0, "there is no command to run");
	if (executor->require_containment && isolation->on_host)
		return rv_error_set(err, RV_E_CONFIG, 0,
				    "--require-containment: executor %s with sandbox %s runs outside the PID namespace",
				    executor->name, executor->sandbox);
	if (is_limited(executor->limits) && isolation->own_limits != NULL)
		return rv_error_set(err, RV_E_CONFIG, 0, "--max-cpu, --max-data, --max-memory, --max-processes and --cgroup "
				    "do not reach what executor %s runs: %s do", executor->name, isolation->own_limits);
	return isolation->check != NULL ? isolation->check(executor, call, err) : 0;
}

int rv_attempt_identity(struct rv_dispatch *dispatch, struct rv_error *err)
{
	struct rv_environment *env = &dispatch->environment;
	const struct rv_call *call = dispatch->call;

	if (rv_environment_set(env, RV_SPAN("RULVAR_TOOL"), call->tool, err) != 0 ||
	    rv_environment_set(env, RV_SPAN("RULVAR_RUN_ID"), call->run_id, err) != 0)
		return -1;
	return rv_environment_set(env, RV_SPAN("RULVAR_IDEMPOTENCY_KEY"), call->key, err);
}

/* ---- limits ---- */

int rv_attempt_group(struct rv_dispatch *dispatch, struct rv_error *err)
{
	dispatch->peak_bytes = -1;
	return rv_cgroup_make(&dispatch->group, dispatch->executor->groups, dispatch->attempt_id, err);
}

void rv_attempt_limit(const struct rv_dispatch *dispatch, struct rv_run_plan *plan)
{
	const struct rv_limits *limits = dispatch->executor->limits;

	plan->cpu_seconds = limits->cpu_ms != INT64_MAX ? limits->cpu_ms / 1000 + (limits->cpu_ms % 1000 != 0 ? 1 : 0) : 0;
	plan->data_bytes = limits->data != UINT64_MAX ? limits->data : 0;
	plan->group = &dispatch->group;
}

void rv_attempt_unlimit(struct rv_dispatch *dispatch)
{
	struct rv_cgroup_facts facts;
	struct rv_error *err = &dispatch->error;
	char name[RV_CGROUP_NAME];

	rv_cgroup_measure(&dispatch->group, &facts);
	dispatch->peak_bytes = facts.peak_bytes;
	if (facts.memory)
		dispatch->limit = "memory";
	else if (dispatch->limit == NULL && facts.processes)
		dispatch->limit = "processes";
	if (dispatch->limit != NULL && (err->code == RV_E_EXIT || err->code == RV_E_PROTOCOL))
		(void)rv_error_wrap(err, "the limit --max-%s was reached", dispatch->limit);
	memcpy(name, dispatch->group.name, sizeof name);
	if (!rv_cgroup_remove(&dispatch->group))
		(void)rv_error_set(&dispatch->warning, RV_E_IO, 0, "the cgroup %s cannot be removed yet", name);
}

static int random_letters(char text[7], struct rv_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	unsigned char raw[6];

	if (rv_random(raw, sizeof raw, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof raw; i++)
		text[i] = letters[raw[i] % (sizeof letters - 1)];
	text[6] = '\0';
	return 0;
}

int rv_attempt_workdir(struct rv_dispatch *dispatch, struct rv_error *err)
{
	char letters[7];

	for (int i = 0; i < NAME_TRIES; i++) {
		if (random_letters(letters, err) != 0 ||
		    rv_workdir_name(&dispatch->workdir, dispatch->executor->workdir_base, dispatch->call->tool, letters,
				    err) != 0)
			return -1;
		if (rv_slot_arm(dispatch->slot, dispatch->workdir.data, err) != 0)
			return -1;
		if (mkdir(dispatch->workdir.data, 0700) == 0) {
			dispatch->has_workdir = true;
			/* the caller's umask may have taken from its mode what the tool needs */
			if (chmod(dispatch->workdir.data, 0700) != 0)
				break;
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	return rv_error_set(err, RV_E_CONFIG, errno, "workdir %s", dispatch->workdir.data);
}

static struct rv_seen look(const char *path)
{
	struct stat now;

	if (stat(path, &now) != 0)
		return (struct rv_seen){ .size = -1 };
	return (struct rv_seen){ .dev = now.st_dev, .ino = now.st_ino, .size = now.st_size };
}

int rv_attempt_orphan_again(struct rv_dispatch *dispatch, struct rv_error *err)
{
	struct rv_seen now = look(dispatch->executor->refuse_orphan);

	if (now.size >= 0 && now.size == dispatch->seen.size && now.ino == dispatch->seen.ino && now.dev == dispatch->seen.dev)
		return 0;
	return rv_attempt_orphan(dispatch, err);
}

int rv_attempt_orphan(struct rv_dispatch *dispatch, struct rv_error *err)
{
	const char *path = dispatch->executor->refuse_orphan;
	struct rv_buffer attempt = RV_BUFFER_INIT;
	bool found = false;
	int result;

	if (path == NULL)
		return 0;
	dispatch->seen = look(path);
	result = rv_ledger_find_orphan(path, dispatch->call->key, &found, &attempt, err);
	if (result != 0)
		(void)rv_error_wrap(err, "--refuse-orphan");
	else if (found)
		result = rv_error_set(err, RV_E_LEDGER, 0,
				      "an earlier attempt of this key has no outcome (%.*s): look the key %.*s up with "
				      "the effect's provider before any retry",
				      (int)attempt.len, attempt.len > 0 ? attempt.data : "", (int)dispatch->call->key.len,
				      dispatch->call->key.data);
	if (result != 0)
		err->code = RV_E_LEDGER;
	rv_buffer_release(&attempt);
	return result;
}

static int64_t latest_end(const struct rv_dispatch *dispatch)
{
	const struct rv_executor *executor = dispatch->executor;
	int64_t ms = dispatch->call->timeout_ms + 2 * executor->grace_ms + 2 * executor->ledger_wait_ms + SETTLE_MS;

	ms += executor->isolation->after_ms;
	return executor->credentials != NULL ? ms + executor->credentials_timeout_ms : ms;
}

int rv_attempt_intent(struct rv_dispatch *dispatch, struct rv_buffer *row, struct rv_error *err)
{
	const struct rv_executor *executor = dispatch->executor;
	struct rv_attempt attempt = attempt_of(dispatch);
	struct rv_writer writer = executor->writer;

	if (executor->batch->sink == NULL || executor->outcomes_only)
		return 0;
	if (executor->ledger != NULL && rv_ledger_hold(executor->ledger, &dispatch->lock, err) != 0)
		return -1;
	writer.lock = dispatch->lock;
	/* what went before this took its time (a long ledger is looked through for orphans), and may once more under
	 * the ledger's lock */
	writer.until = dispatch->started_at + latest_end(dispatch) + 2 * (rv_clock_mono_ms() - dispatch->started_mono_ms);
	rv_row_add_intent(row, &attempt, executor->sandbox, rv_isolation_containment(dispatch), &writer);
	return rv_buffer_check(row, err);
}

int rv_attempt_outcome(const struct rv_dispatch *dispatch, struct rv_buffer *row, struct rv_error *err)
{
	struct rv_attempt attempt = attempt_of(dispatch);
	char signal_text[16];
	struct rv_outcome outcome = {
		.duration_ms = dispatch->duration_ms,
		.outcome = dispatch->outcome,
		.exit_code = dispatch->exit_code,
		.signal = dispatch->signal_number != 0 ? rv_signal_name(dispatch->signal_number, signal_text) : NULL,
	};

	if (dispatch->executor->batch->sink == NULL)
		return 0;
	rv_row_add_outcome(row, &attempt, &outcome);
	return rv_buffer_check(row, err);
}

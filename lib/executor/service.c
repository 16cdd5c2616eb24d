#include "lib/executor/service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/signals.h"
#include "lib/base/text.h"
#include "lib/executor/command.h"
#include "lib/executor/guard.h"
#include "lib/process/slice.h"

#define CONTAINER_GRACE_MS 5000

int rv_service_check(const struct rv_service_options *options, char *const *command, struct rv_error *err)
{
	if (options->ledger != NULL && options->ledger_exec != NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "--ledger and --ledger-exec are one too many");
	if (options->ledger == NULL && (options->refuse_orphan || options->power || options->unsafe_fs))
		return rv_error_set(err, RV_E_USAGE, 0, "--refuse-orphan, --durability and --ledger-unsafe-fs need --ledger");
	if (options->ledger == NULL && options->ledger_exec == NULL && options->outcomes_only)
		return rv_error_set(err, RV_E_USAGE, 0, "--ledger-phases needs --ledger or --ledger-exec");
	if (options->refuse_orphan && options->outcomes_only)
		return rv_error_set(err, RV_E_USAGE, 0, "--refuse-orphan needs intents: not with --ledger-phases one");
	if (options->timeout_ms == 0)
		return rv_error_set(err, RV_E_USAGE, 0, "--timeout is zero");
	if (options->limits.cpu_ms == 0 || options->limits.data == 0 || options->limits.memory == 0)
		return rv_error_set(err, RV_E_USAGE, 0, "a limit is zero");
	if (!options->kernel && options->net)
		return rv_error_set(err, RV_E_USAGE, 0, "--net needs --sandbox kernel");
	if (options->approvals != NULL && options->manifest == NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "--approvals needs --manifest, which says what needs an approval");
	if (rv_isolate_check(&options->isolate, err) != 0)
		return -1;
	if (options->manifest != NULL && command[0] != NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "--manifest says what is run: there is no COMMAND beside it");
	return 0;
}

/* ---- slots ---- */

static int start_job(struct rv_service *service, struct rv_job *job, struct rv_error *err)
{
	struct rv_error why = RV_ERROR_INIT;

	if (rv_slot_start(&job->tool, &service->slots, RV_CONTAIN_NAMESPACE, &why, err) != 0)
		return -1;
	service->job_count++; /* from here on there is something to stop */
	if (job->tool.containment != RV_CONTAIN_NAMESPACE && service->options->require_containment) {
		*err = why;
		err->code = RV_E_CONFIG;
		return rv_error_wrap(err, "--require-containment");
	}
	if (service->options->credentials == NULL && !rv_isolate_needs_host(&service->options->isolate))
		return 0;
	if (rv_slot_start(&job->host, &service->slots, RV_CONTAIN_SUBREAPER, &why, err) != 0)
		return -1;
	job->has_host = true;
	return 0;
}

static int start_spares(struct rv_service *service, struct rv_error *err)
{
	struct rv_error why = RV_ERROR_INIT;

	if (geteuid() == 0 || service->jobs[0].tool.containment != RV_CONTAIN_NAMESPACE)
		return 0; /* started when they are needed */
	for (; service->spare_count < RV_SPARE_SLOTS; service->spare_count++) {
		if (rv_slot_start(&service->spares[service->spare_count], &service->slots, RV_CONTAIN_NAMESPACE, &why, err) != 0)
			return -1;
	}
	return 0;
}

static int replace_slot(struct rv_service *service, struct rv_slot *slot, struct rv_error *err)
{
	enum rv_containment wanted = slot->containment;
	struct rv_error why = RV_ERROR_INIT;

	while (service->spare_count > 0 && wanted == RV_CONTAIN_NAMESPACE) {
		struct rv_slot *spare = &service->spares[--service->spare_count];

		if (!rv_slot_has_ended(spare)) {
			rv_slot_move(slot, spare);
			return 0;
		}
		(void)rv_slot_lost(spare);
	}
	if (rv_slot_start(slot, &service->slots, wanted, &why, err) != 0)
		return -1;
	if (slot->containment == wanted)
		return 0;
	rv_slot_stop(slot, 1000);
	*err = why;
	return rv_error_wrap(err, "a slot was lost and cannot be replaced by one as strong");
}

int rv_service_renew(struct rv_service *service, struct rv_job *job, struct rv_slot *tainted, struct rv_error *err)
{
	if (tainted == NULL && job->tool.socket >= 0 && rv_slot_is_changed(&job->tool))
		tainted = &job->tool;
	if (tainted != NULL && tainted->socket >= 0)
		rv_slot_stop(tainted, 0);
	if ((job->tool.socket < 0 && replace_slot(service, &job->tool, err) != 0) ||
	    (job->has_host && job->host.socket < 0 && replace_slot(service, &job->host, err) != 0)) {
		job->lost = true;
		return -1;
	}
	return 0;
}

int rv_service_look_after(struct rv_service *service, struct rv_job *job, struct rv_error *err)
{
	if (rv_slot_has_ended(&job->tool))
		(void)rv_slot_lost(&job->tool);
	if (job->has_host && rv_slot_has_ended(&job->host))
		(void)rv_slot_lost(&job->host);
	return rv_service_renew(service, job, NULL, err);
}

/* Rows name the workdir absolutely: whoever reads them stands elsewhere. */
static int find_base(struct rv_service *service, struct rv_error *err)
{
	const char *base = service->options->workdir_base;
	struct stat info;

	if (base == NULL)
		base = getenv("TMPDIR");
	if (base == NULL || base[0] == '\0')
		base = "/tmp";
	service->workdir_base = realpath(base, NULL);
	if (service->workdir_base == NULL || stat(service->workdir_base, &info) != 0)
		return rv_error_set(err, RV_E_CONFIG, errno, "--workdir-base %s", base);
	if (!S_ISDIR(info.st_mode))
		return rv_error_set(err, RV_E_CONFIG, ENOTDIR, "--workdir-base %s", base);
	service->executor.workdir_base = service->workdir_base;
	return 0;
}

static int enclose(struct rv_service *service, struct rv_error *err)
{
	const struct rv_service_options *options = service->options;

	if (!options->kernel)
		return 0;
	return rv_enclose_open(&service->enclose, &service->slots, options->ro, options->rw, options->net,
			       service->workdir_base, err);
}

int rv_service_start(struct rv_service *service, const struct rv_service_options *options, size_t jobs, bool many,
		     struct rv_error *err)
{
	memset(service, 0, sizeof *service);
	service->options = options;
	service->slots.undo = rv_container_undo;
	service->loop.epoll = -1;
	service->signal_fd = -1;
	service->executor.stderr_fd = -1;
	service->groups = (struct rv_cgroups)RV_CGROUPS_INIT;
	(void)signal(SIGPIPE, SIG_IGN); /* a tool that does not read its input is no reason to die */
	(void)signal(SIGCHLD, SIG_DFL); /* ignored, children would be reaped behind our back */
	rv_slice_shorten();
	if (rv_guard_check(options, err) != 0 || find_base(service, err) != 0 || enclose(service, err) != 0)
		return -1;
	service->jobs = calloc(jobs, sizeof *service->jobs);
	if (service->jobs == NULL)
		return rv_error_nomem(err);
	for (size_t i = 0; i < jobs; i++) {
		if (start_job(service, &service->jobs[i], err) != 0)
			return -1;
	}
	if (many && start_spares(service, err) != 0)
		return -1;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return rv_error_set(err, RV_E_IO, errno, "prctl(PR_SET_DUMPABLE)");
	return rv_loop_init(&service->loop, err);
}

void rv_service_end(struct rv_service *service, struct rv_error *warning)
{
	service->slots.beside[0] = NULL;
	service->batch.sink = NULL;
	if (rv_store_close(service->store, warning) != 0)
		warning->code = RV_E_LEDGER;
	service->store = NULL;
}

static void stop_slot(struct rv_slot *slot)
{
	if (slot->worker.pid > 0)
		rv_slot_stop(slot, 1000);
}

void rv_service_release(struct rv_service *service)
{
	struct rv_error ignored = RV_ERROR_INIT;

	rv_batch_release(&service->batch);
	rv_service_end(service, &ignored);
	rv_ledger_close(service->ledger);
	if (service->executor.stderr_fd > 2)
		(void)close(service->executor.stderr_fd);
	for (size_t i = 0; i < service->job_count; i++) {
		stop_slot(&service->jobs[i].tool);
		if (service->jobs[i].has_host)
			stop_slot(&service->jobs[i].host);
	}
	while (service->spare_count > 0)
		stop_slot(&service->spares[--service->spare_count]);
	free(service->jobs);
	if (service->signal_fd >= 0)
		(void)close(service->signal_fd);
	rv_loop_release(&service->loop);
	rv_registry_release(&service->registry);
	rv_isolate_release(&service->isolate);
	rv_rules_release(&service->rules);
	rv_permits_release(&service->permits);
	rv_cgroups_release(&service->groups);
	rv_buffer_release(&service->credentials_path);
	free(service->credentials);
	free(service->workdir_base);
	rv_enclose_release(&service->enclose);
}

/* ---- the executor ---- */

static int open_stderr(struct rv_service *service, struct rv_error *err)
{
	const char *where = service->options->tool_stderr;

	service->executor.stderr_fd = -1;
	if (strcmp(where, "tail") == 0)
		return 0;
	if (strcmp(where, "inherit") == 0)
		service->executor.stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		service->executor.stderr_fd = rv_io_open(where, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY, 0600, err);
	if (service->executor.stderr_fd >= 0)
		return 0;
	if (err->code == RV_E_NONE)
		(void)rv_error_set(err, RV_E_CONFIG, errno, "descriptor 2");
	err->code = RV_E_CONFIG;
	return rv_error_wrap(err, "--tool-stderr");
}

/* The words of an option that names a program of the host's, and where that is. */
static int find_program(const char *text, char ***words, struct rv_buffer *path, struct rv_error *err)
{
	size_t count = 0;

	if (rv_text_split(text, words, &count, err) != 0)
		return -1;
	if (count == 0)
		return rv_error_set(err, RV_E_CONFIG, 0, "no program is named");
	return rv_command_find(path, (*words)[0], err);
}

static int split_credentials(struct rv_service *service, struct rv_error *err)
{
	if (service->options->credentials == NULL)
		return 0;
	if (find_program(service->options->credentials, &service->credentials, &service->credentials_path, err) != 0) {
		err->code = RV_E_CONFIG;
		return rv_error_wrap(err, "--credentials");
	}
	service->executor.credentials = service->credentials;
	service->executor.credentials_path = service->credentials_path.data;
	return 0;
}

/* A ledger that cannot be opened is `ledger`, whatever it is. */
static int open_the_store(struct rv_service *service, struct rv_error *err)
{
	rv_auto_free char **words = NULL;
	rv_auto_buffer struct rv_buffer path = RV_BUFFER_INIT;

	if (find_program(service->options->ledger_exec, &words, &path, err) != 0 ||
	    rv_store_open(&service->store, &service->loop, path.data, words, "the --ledger-exec program",
			  service->options->ledger_wait_ms, err) != 0) {
		err->code = RV_E_LEDGER;
		return rv_error_wrap(err, "--ledger-exec");
	}
	service->slots.beside[0] = rv_store_child(service->store);
	service->batch.sink = rv_store_sink(service->store);
	return 0;
}

static int open_the_ledger(struct rv_service *service, struct rv_error *err)
{
	const struct rv_service_options *options = service->options;
	struct rv_ledger_options how = {
		.power = options->power, .unsafe_fs = options->unsafe_fs, .wait_ms = options->ledger_wait_ms
	};

	service->executor.outcomes_only = options->outcomes_only;
	if ((options->ledger_exec != NULL || options->ledger != NULL) && rv_writer_init(&service->executor.writer, err) != 0)
		return -1;
	if (options->ledger_exec != NULL)
		return open_the_store(service, err);
	if (options->ledger == NULL)
		return 0;
	service->executor.refuse_orphan = options->refuse_orphan ? options->ledger : NULL;
	if (rv_ledger_open(&service->ledger, options->ledger, &how, err) != 0)
		return -1;
	service->executor.ledger = service->ledger;
	rv_file_sink_init(&service->file, service->ledger);
	service->batch.sink = &service->file.sink;
	return 0;
}

static int open_the_groups(struct rv_service *service, struct rv_error *err)
{
	const struct rv_limits *limits = &service->options->limits;

	service->slots.beside[1] = &service->groups.janitor; /* whose work begins when all others are gone */
	service->executor.limits = limits;
	service->executor.groups = &service->groups;
	return rv_cgroups_open(&service->groups, limits->cgroup, limits->memory,
			       limits->processes != 0 ? (uint64_t)limits->processes : UINT64_MAX, err);
}

static int open_the_approvals(struct rv_service *service, struct rv_error *err)
{
	if (service->options->approvals == NULL)
		return 0;
	service->executor.permits = &service->permits;
	return rv_permits_open(&service->permits, service->options->approvals, err);
}

int rv_service_open(struct rv_service *service, char *const *command, struct rv_error *err)
{
	const struct rv_service_options *options = service->options;
	struct rv_executor *executor = &service->executor;

	executor->require_containment = options->require_containment;
	executor->grace_ms = options->grace_ms;
	executor->container_grace_ms = options->grace_given ? options->grace_ms : CONTAINER_GRACE_MS;
	executor->max_output = options->max_output;
	executor->keep_on_error = options->keep_on_error;
	executor->allow_env = options->allow_env;
	executor->set_env = options->set_env;
	executor->credentials_timeout_ms = options->credentials_timeout_ms;
	executor->ledger_wait_ms = options->ledger_wait_ms;
	executor->loop = &service->loop;
	executor->batch = &service->batch;
	if (split_credentials(service, err) != 0 || open_stderr(service, err) != 0 ||
	    open_the_approvals(service, err) != 0 || open_the_groups(service, err) != 0 ||
	    rv_rules_open(&service->rules, options->manifest, options->timeout_ms, command, err) != 0 ||
	    open_the_ledger(service, err) != 0)
		return -1;
	/* last: each tag gets a copy of what is the same for all */
	service->isolate.enclose = &service->enclose;
	service->isolate.net = options->net;
	if (rv_isolate_open(&service->isolate, &options->isolate, &service->registry, executor, err) != 0)
		return -1;
	return rv_rules_check_tags(&service->rules, &service->registry, err);
}

/* ---- signals ---- */

static void on_signal(struct rv_watch *watch, uint32_t events)
{
	struct rv_service *service = watch->owner;
	struct signalfd_siginfo info;

	(void)events;
	while (read(watch->fd, &info, sizeof info) == (ssize_t)sizeof info) {
		if (service->signal_number == 0)
			service->signal_number = (int)info.ssi_signo;
		service->on_signal(service->owner);
	}
}

int rv_service_take_signals(struct rv_service *service, void (*called)(void *owner), void *owner,
			    struct rv_error *err)
{
	service->on_signal = called;
	service->owner = owner;
	service->signal_fd = rv_signals_watch();
	if (service->signal_fd < 0)
		return rv_error_set(err, RV_E_IO, errno, "signalfd");
	service->signals = (struct rv_watch){ -1, on_signal, service };
	if (rv_loop_add(&service->loop, &service->signals, service->signal_fd, EPOLLIN, err) != 0)
		return -1;
	return rv_loop_turn(&service->loop, 0, err); /* one that has come meanwhile: nothing was begun */
}

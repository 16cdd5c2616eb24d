/*
 * What rv-exec holds for as long as it runs: its slots, its loop, its executor, its ledger, its signals.
 * The order matters and is here: slots first (the id maps of a user namespace can only be written while
 * this process is dumpable), then undumpable, and only then anything that may be secret is read.
 */
#ifndef RV_EXECUTOR_SERVICE_H
#define RV_EXECUTOR_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/executor/batch.h"
#include "lib/executor/dispatch.h"
#include "lib/executor/enclose.h"
#include "lib/executor/isolate.h"
#include "lib/executor/permit.h"
#include "lib/executor/registry.h"
#include "lib/executor/rules.h"
#include "lib/executor/sink.h"
#include "lib/executor/store.h"
#include "lib/process/loop.h"
#include "lib/process/slot.h"

/* What the command line says of the executor and the ledger.  Borrowed; NULL is "not given". */
struct rv_service_options {
	const char *const *allow_env; /* NULL-terminated */
	const char *const *set_env;
	const char *credentials;      /* words by POSIX quoting */
	int64_t credentials_timeout_ms;
	int64_t timeout_ms;
	int64_t grace_ms;
	bool grace_given;             /* else it is longer in a container */
	uint64_t max_output;
	const char *workdir_base;
	bool keep_on_error;           /* the workdir of a tool that failed */
	struct rv_limits limits;
	const char *manifest;         /* what may run */
	const char *approvals;        /* and by whose leave */
	const char *tool_stderr;      /* "tail", "inherit" or a file */
	bool require_containment;
	bool kernel;                  /* --sandbox kernel */
	bool net;
	const char *const *ro;        /* NULL-terminated */
	const char *const *rw;
	const char *ledger;
	const char *ledger_exec;      /* words by POSIX quoting */
	bool power;
	bool unsafe_fs;
	bool outcomes_only;
	bool refuse_orphan;
	int64_t ledger_wait_ms;
	struct rv_isolate_options isolate;
};

/* In a user namespace a worker cannot be started any more once secrets may have been read. */
#define RV_SPARE_SLOTS 2

/* A job's two slots: the tool's, and one outside any namespace for what belongs to the host. */
struct rv_job {
	struct rv_slot tool;
	struct rv_slot host;
	bool has_host;
	bool lost; /* no worker, and none to be had: it takes no dispatch any more */
};

struct rv_service {
	const struct rv_service_options *options;
	struct rv_slots slots;
	struct rv_enclose enclose; /* where the tools are enclosed */
	struct rv_job *jobs; /* owned */
	size_t job_count;
	struct rv_slot spares[RV_SPARE_SLOTS]; /* started while this process was dumpable */
	size_t spare_count;
	struct rv_loop loop;
	struct rv_batch batch;
	struct rv_ledger *ledger;
	struct rv_file_sink file;
	struct rv_store *store;
	struct rv_executor executor; /* what is the same for every tag */
	struct rv_registry registry; /* the tags */
	struct rv_isolate isolate;   /* what they stand for */
	struct rv_rules rules;       /* what may run */
	struct rv_permits permits;
	struct rv_cgroups groups;
	struct rv_watch signals;
	int signal_fd;
	int signal_number; /* the first that came, 0: none */
	void (*on_signal)(void *owner);
	void *owner;
	/* what the executor borrows */
	char **credentials;
	struct rv_buffer credentials_path;
	char *workdir_base;
};

/* What is wrong with the combination of options, as RV_E_USAGE; 0 where nothing is. */
int rv_service_check(const struct rv_service_options *options, char *const *command, struct rv_error *err);

/* Slots for `jobs` dispatches at once; then undumpable.  `many`: there will be more than one dispatch, and a slot that is
 * lost is to be replaced.  Release it in either case. */
int rv_service_start(struct rv_service *service, const struct rv_service_options *options, size_t jobs, bool many,
		     struct rv_error *err);
/* After a dispatch: a job whose worker was lost, or changed by a tool, or that has somebody in it who cannot be
 * killed (`tainted`: that slot of the job, or NULL), gets another, as strong as the one before and never a weaker
 * one.  -1: it is lost. */
int rv_service_renew(struct rv_service *service, struct rv_job *job, struct rv_slot *tainted, struct rv_error *err);
/* The same before a dispatch, for a worker that ended while it had nothing to do. */
int rv_service_look_after(struct rv_service *service, struct rv_job *job, struct rv_error *err);
/* The executors, the rules, with COMMAND and its ARGs (NULL-terminated), and the ledger. */
int rv_service_open(struct rv_service *service, char *const *command, struct rv_error *err);
/* From here on TERM, INT and HUP are an abort that is written down: on_signal(owner) is called for each.
 * Not before: while input is still being read a signal simply ends the program. */
int rv_service_take_signals(struct rv_service *service, void (*on_signal)(void *owner), void *owner,
			    struct rv_error *err);
/* All is written: the end of a --ledger-exec program is waited for, and a warning is in *warning where it
 * did not end well. */
void rv_service_end(struct rv_service *service, struct rv_error *warning);
void rv_service_release(struct rv_service *service);

#endif

/*
 * One dispatch: intent -> run -> outcome.  The only place where the ledger and the process room meet.
 *
 * Before the intent a dispatch may be refused and leaves no row and no workdir.  After it there is
 * exactly one outcome row whatever happens, written before the reply.  The owner turns the loop and
 * calls rv_dispatch_check() after each turn, and rv_batch_turn() after that, until rv_dispatch_done().
 *
 * Order, and the crash that each step answers for:
 *   its cgroup is made, where limits need one        (killed here: the janitor removes it)
 *   the workdir is announced to the slot, then made   (killed here: the slot removes it, empty)
 *   the liveness byte is held, the intent is written  (killed here: an orphan whose tool never ran)
 *   credentials are minted, the tool runs             (killed here: an orphan, with its workdir)
 *   the workdir's removal is asked for                (killed here: an orphan, its workdir gone)
 *   the outcome is written, then the liveness byte is let go
 */
#ifndef RV_EXECUTOR_DISPATCH_H
#define RV_EXECUTOR_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/digest/digest.h"
#include "lib/executor/batch.h"
#include "lib/executor/environment.h"
#include "lib/executor/isolation.h"
#include "lib/executor/words.h"
#include "lib/ledger/append.h"
#include "lib/ledger/row.h"
#include "lib/process/cgroup.h"
#include "lib/process/loop.h"
#include "lib/process/slot.h"
#include "lib/process/supervise.h"

struct rv_permits;

/* What a tool may use, beside its time and its output. */
struct rv_limits {
	int64_t cpu_ms;     /* of each process, in whole seconds, rounded up; INT64_MAX: none */
	uint64_t data;      /* bytes of private memory, of each process; UINT64_MAX: none */
	uint64_t memory;    /* bytes, of the whole tree; UINT64_MAX: none */
	int64_t processes;  /* at once, of the whole tree; 0: none */
	const char *cgroup; /* where the trees' groups are made, NULL: cgroup v1 */
};

#define RV_LIMITS_NONE \
	{ .cpu_ms = INT64_MAX, .data = UINT64_MAX, .memory = UINT64_MAX, .processes = 0, .cgroup = NULL }

/* What holds for every dispatch of one tag.  Borrowed by its dispatches. */
struct rv_executor {
	const char *name;         /* the tag in rows and replies: "subprocess" */
	const char *sandbox;      /* in rows and replies: "none" */
	const struct rv_isolation *isolation;
	const void *isolation_data; /* the isolation's own */
	const char *flavor;       /* for --describe: "process" */
	const char *network;      /* "host", "none" */
	bool read_only_root;
	bool require_containment; /* only a PID namespace of ours will do */
	const char *workdir_base; /* absolute */
	int64_t grace_ms;
	int64_t container_grace_ms;
	uint64_t max_output;
	struct rv_permits *permits; /* the approvals, or NULL */
	const struct rv_limits *limits;
	const struct rv_cgroups *groups; /* where the trees' groups are made, if any are */
	const char *const *allow_env; /* names, NULL-terminated */
	const char *const *set_env;   /* "NAME=VALUE", NULL-terminated */
	char *const *credentials;     /* the minting program and its arguments, or NULL */
	const char *credentials_path;
	int64_t credentials_timeout_ms;
	int stderr_fd;            /* where a tool's stderr goes instead of being captured; -1 */
	struct rv_batch *batch;   /* the rows' way out */
	struct rv_ledger *ledger; /* where they go to a file, which then has the liveness locks, too; or NULL */
	struct rv_writer writer;  /* this process, for its intents */
	bool keep_on_error;       /* the workdir of a tool that failed stays */
	bool outcomes_only;       /* --ledger-phases one */
	const char *refuse_orphan; /* the ledger's path where an open orphan of the key refuses, or NULL */
	int64_t ledger_wait_ms;
	struct rv_loop *loop;
};

/* One logical call, complete.  Borrowed; WTF-8. */
struct rv_call {
	struct rv_span id;       /* raw JSON, or empty */
	struct rv_span tool;
	struct rv_span args;     /* canonical bytes: what was hashed is what the tool reads */
	struct rv_span args_hash;
	struct rv_span key;
	struct rv_span run_id;
	struct rv_span span_id;
	struct rv_span agent_type; /* data NULL: absent */
	struct rv_span executor; /* the tag that the call names; data NULL: none */
	const char *command;     /* as the caller gave it */
	char *const *argv;       /* argv[0] is the command */
	int64_t timeout_ms;
	bool needs_approval;
};

enum rv_dispatch_stage {
	RV_STAGE_INTENT,      /* its row is queued */
	RV_STAGE_CREDENTIALS, /* the minting program runs */
	RV_STAGE_TOOL,        /* the tool runs */
	RV_STAGE_UNDO,        /* what was killed is an engine's, which is asked whether it is gone */
	RV_STAGE_OUTCOME,     /* its row is queued */
	RV_STAGE_DONE
};

/* A file that only grows: with the same size it has the same rows. */
struct rv_seen {
	dev_t dev;
	ino_t ino;
	off_t size; /* -1: it was not there */
};

/* What an engine ran is the engine's, and has to be removed there. */
enum rv_undo_state { RV_UNDO_NONE, RV_UNDO_OWED, RV_UNDO_ASKED, RV_UNDO_FAILED };

struct rv_dispatch {
	const struct rv_executor *executor;
	const struct rv_call *call;
	struct rv_slot *slot;         /* runs the tool, and removes its workdir */
	struct rv_slot *host_slot;    /* runs what belongs to the host: outside any namespace; may be NULL */
	enum rv_dispatch_stage stage;
	bool abort_asked;
	bool intended;                /* the intent stands: an outcome is owed */
	/* the attempt */
	struct rv_buffer workdir;     /* its path, NUL-terminated */
	bool has_workdir;             /* made, and not yet known to be gone */
	struct rv_watch removal;
	int64_t removal_ms;           /* monotonic: how long an answer waits for it; 0: not asked for */
	char attempt_id[RV_UUID_TEXT];
	int64_t started_at;           /* wall clock, ms */
	int64_t started_mono_ms;
	struct rv_cgroup group;       /* that the tool runs in, if any */
	int64_t lock;                 /* the ledger byte held, -1: none */
	struct rv_seen seen;          /* --refuse-orphan: the ledger when it was looked through */
	struct rv_environment environment;
	struct rv_buffer input;       /* what is read on stdin, but for `args`, which the call has */
	struct rv_buffer path;        /* of the command, NUL-terminated */
	struct rv_words argv, envp;   /* the isolation's, for what it runs instead */
	struct rv_words undo_words;
	char nonce[33];               /* the isolation's; "" where it needs none */
	int asked;                    /* the isolation's: what it asks in its second run */
	struct rv_run_result first;   /* of its first run, meanwhile */
	enum rv_undo_state undo;
	int64_t undo_ms;              /* monotonic: how long its answer is waited for */
	struct rv_run run;
	bool running;                 /* `run` holds something to release */
	/* what became of it */
	struct rv_error error;        /* RV_E_NONE: ok */
	struct rv_buffer result;      /* JSON, compact, tokens as the tool wrote them */
	const char *outcome;          /* "ok" "error" "timeout"; NULL: it never became an attempt */
	int exit_code;                /* -1: null */
	int signal_number;            /* 0: null */
	int64_t duration_ms;
	uint64_t stdout_bytes, stderr_bytes;
	int survivors;                /* -1: not known */
	int survivors_before;         /* of what ran before the tool */
	int64_t user_ms, system_ms, max_rss_bytes;
	const char *limit;            /* that the tool's processes ran into: "memory" "cpu" "processes"; NULL */
	int64_t peak_bytes;           /* of the tree's memory; -1: not known */
	bool ran;                     /* the tool was started */
	bool kept;                    /* the workdir stays, for people */
	struct rv_error warning;      /* said, and changes no result: a workdir that stays */
};

/* Start, with a job's two slots.  A refusal is no failure of this function: it is in dispatch->error, and the stage is DONE. */
void rv_dispatch_begin(struct rv_dispatch *dispatch, const struct rv_executor *executor, const struct rv_call *call,
		       struct rv_slot *slot, struct rv_slot *host_slot);
void rv_dispatch_check(struct rv_dispatch *dispatch);
void rv_dispatch_abort(struct rv_dispatch *dispatch); /* again: without any further grace */
/* The loop itself failed: everything is killed, and the outcome is owed all the same. */
void rv_dispatch_give_up(struct rv_dispatch *dispatch, const struct rv_error *why);
/* Its row is confirmed (NULL) or not: the batch says so. */
void rv_dispatch_written(struct rv_dispatch *dispatch, const struct rv_error *failure);
/* The answer stands.  A workdir that takes its time is a warning and holds no answer up for long. */
bool rv_dispatch_answered(const struct rv_dispatch *dispatch);
/* Something that an engine ran is still to be removed: the slot is not free, and the answer may stand. */
bool rv_dispatch_is_undoing(const struct rv_dispatch *dispatch);
/* The slot is free, too. */
bool rv_dispatch_done(const struct rv_dispatch *dispatch);
/* Only its outcome row is still to be written, and its slot is as good as new: the next one may begin
 * there, so that both rows go out in one write. */
bool rv_dispatch_leaves_slot(const struct rv_dispatch *dispatch);
int64_t rv_dispatch_deadline(const struct rv_dispatch *dispatch); /* monotonic ms: when to check at the latest */
void rv_dispatch_release(struct rv_dispatch *dispatch);

#endif

/*
 * One run in a slot: input written, output captured within its bounds, the end decided, told apart
 * and awaited.  It is answered by timeout + grace + one second whatever the tool does.
 *
 * The owner turns the loop until `finished`, with rv_run_deadline() as the latest instant, and calls
 * rv_run_check() after each turn.
 */
#ifndef RV_PROCESS_SUPERVISE_H
#define RV_PROCESS_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/process/cgroup.h"
#include "lib/process/loop.h"
#include "lib/process/slot.h"
#include "lib/process/wire.h"

#define RV_STDERR_TAIL 4096 /* bytes kept of the end of stderr: 500 characters of any length fit */

#define RV_INPUT_PARTS 3

struct rv_run_plan {
	const char *path;     /* what is executed */
	char *const *argv;
	char *const *envp;
	const char *cwd;
	struct rv_span input[RV_INPUT_PARTS]; /* one behind another, borrowed until the run is finished; then end of file */
	int64_t timeout_ms;   /* from the start */
	int64_t grace_ms;     /* between SIGTERM and SIGKILL, for deadlines and aborts alone */
	uint64_t max_output;  /* bytes on stdout; one more ends the run */
	int stderr_fd;        /* where stderr goes instead of being captured; -1 */
	bool discard;         /* `cwd` is to go with the run: see cwd_removed */
	int64_t cpu_seconds;  /* of each process; 0: no limit */
	uint64_t data_bytes;  /* of each process's private memory; 0: no limit */
	const struct rv_cgroup *group; /* that it runs in; NULL: this process's own */
	uint32_t flags;       /* enum rv_run_flag */
	char *const *undo;    /* what the slot's undo function is given, until it has undone the run; NULL: nothing */
};

struct rv_run_result {
	int step;    /* enum rv_start_step: not RV_START_OK means that nothing ran */
	int errnum;  /* of that step */
	int io_error; /* errno: the tool's input or output could not be carried whole; 0 */
	bool lost;   /* the worker went away: how the tool ended is not known */
	enum rv_run_reason reason; /* decided first, whatever came later */
	int exit_code;      /* -1: none */
	int signal_number;  /* 0: none */
	int survivors;      /* -1: not known */
	bool cwd_removed;   /* `cwd` was empty and is gone; else its removal is to be asked for */
	int64_t duration_ms;
	uint64_t stdout_bytes; /* received */
	uint64_t stderr_bytes;
	int64_t user_ms, system_ms; /* of the whole tree */
	int64_t max_rss_bytes;      /* of its largest process */
	bool cpu_reached;  /* the tool itself was killed at cpu_seconds */
	struct rv_buffer out;      /* at most max_output bytes */
	struct rv_buffer err_tail; /* the last RV_STDERR_TAIL bytes */
};

struct rv_run {
	struct rv_loop *loop;
	struct rv_slot *slot;
	struct rv_watch in, out, err, control;
	int kept[2]; /* owned: the tool's ends of stdout and stderr: with them open their end comes with DONE alone */
	struct iovec input[RV_INPUT_PARTS]; /* what is still to be written, from `part` on */
	int part;
	uint64_t max_output;
	int64_t backstop_ms; /* monotonic: when the worker itself is given up */
	bool finished;
	struct rv_run_result result;
};

/* On -1 nothing runs; a slot whose worker turns out to have ended is lost then.  The result is released by rv_run_release() in either case. */
int rv_run_start(struct rv_run *run, struct rv_loop *loop, struct rv_slot *slot, const struct rv_run_plan *plan,
		 struct rv_error *err);
void rv_run_abort(struct rv_run *run); /* SIGTERM, grace, SIGKILL; reason RV_RUN_ABORTED */
int64_t rv_run_deadline(const struct rv_run *run);
void rv_run_check(struct rv_run *run);
void rv_run_give_up(struct rv_run *run); /* kill the worker and with it everything; finished */
void rv_run_release(struct rv_run *run);

/* "SIGKILL", "SIGRTMIN+3"; `text` of 16 bytes or more. */
const char *rv_signal_name(int number, char text[16]);

#endif

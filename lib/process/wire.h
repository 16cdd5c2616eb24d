/*
 * What a slot's host and its worker say to each other, over one SOCK_SEQPACKET pair: a message is
 * whole or absent, and end of file means that the other side is gone.  Descriptors travel beside a
 * message (SCM_RIGHTS).  Private to lib/process.
 */
#ifndef RV_PROCESS_WIRE_H
#define RV_PROCESS_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/error.h"

enum rv_wire_op {
	/* host to worker */
	/* descriptors: stdin, stdout, stderr, where to go into cgroups, and the plan's memfd if it is not in `path` */
	RV_WIRE_RUN = 1,
	RV_WIRE_ABORT,   /* SIGTERM, grace, SIGKILL; the reason is "aborted" */
	RV_WIRE_CAP,     /* SIGKILL; the reason is "output-cap" */
	RV_WIRE_DISCARD, /* path: remove this directory, whatever becomes of the host */
	RV_WIRE_UNDO,    /* what the last run's plan says undoes it */
	/* worker to host */
	RV_WIRE_HELLO,
	RV_WIRE_DONE,
	RV_WIRE_REMOVED,
	RV_WIRE_UNDONE
};

/* How a run differs from a tool's. */
enum rv_run_flag {
	/* A setuid launcher: with no_new_privs it could not do its work. */
	RV_RUN_PRIVILEGED = 1,
	/* The client of an engine: signals are its own, and what it left is the engine's (and undone by it). */
	RV_RUN_CLIENT = 2
};

enum rv_run_reason { RV_RUN_NATURAL = 0, RV_RUN_TIMEOUT, RV_RUN_ABORTED, RV_RUN_OUTPUT_CAP };

/* The step of a start that failed, in the order they are taken. */
enum rv_start_step {
	RV_START_OK = 0, RV_START_FORK, RV_START_SETUP, RV_START_LIMITS, RV_START_ENCLOSE, RV_START_CWD, RV_START_EXEC
};

#define RV_WIRE_PATH_MAX 4096

struct rv_wire_message {
	uint32_t op;
	uint32_t length; /* of path, with its NUL; of the plan in it */
	/* RUN */
	int64_t timeout_ms;
	int64_t grace_ms;
	uint64_t plan_length;
	int64_t cpu_seconds;  /* RLIMIT_CPU; 0: none */
	uint64_t data_bytes;  /* RLIMIT_DATA; UINT64_MAX: none */
	int32_t groups;       /* how many cgroups to go into */
	uint32_t argc;
	uint32_t envc;
	int32_t discard; /* remove the directory it ran in at its end, if that takes one call; DONE: it is gone */
	uint32_t undoc;
	uint32_t flags; /* enum rv_run_flag */
	/* HELLO, DONE, REMOVED, UNDONE */
	int32_t step;   /* enum rv_start_step */
	int32_t errnum; /* of a failed step, a removal or an undoing */
	int32_t status; /* as waitpid(2) gives it */
	int32_t reason; /* enum rv_run_reason */
	int32_t survivors; /* -1: not known */
	int32_t changed; /* DONE: what the next tool would inherit of the worker is not what the first one did */
	int32_t cpu_reached; /* DONE: the tool was killed at its own limit of CPU time */
	int32_t contained; /* HELLO: this is pid 1 of its namespace */
	int64_t duration_us;
	int64_t user_us;
	int64_t system_us;
	int64_t max_rss_bytes;
	char path[RV_WIRE_PATH_MAX]; /* only `length` bytes of it travel */
};

/*
 * Memory that both sides see: what the worker has to know when the host is gone, and is not woken for
 * while it is there.  Nothing that a tool runs maps it.
 */
struct rv_wire_page {
	atomic_bool armed;
	char path[RV_WIRE_PATH_MAX]; /* armed: remove this directory, empty as it is, if the host dies before RUN */
};

#define RV_WIRE_FDS 6

/* Send a message; fds may be NULL.  RV_E_IO (EPIPE: the other side is gone). */
int rv_wire_send(int socket, struct rv_wire_message *message, const int *fds, int count, struct rv_error *err);

/* Receive one: 1 got, 0 end of file, -1 error (EAGAIN on a non-blocking socket).  fds may be NULL;
 * else it is filled with RV_WIRE_FDS descriptors (CLOEXEC, owned by the caller) or -1. */
int rv_wire_receive(int socket, struct rv_wire_message *message, int *fds);

#endif

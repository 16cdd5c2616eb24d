/*
 * The child's side of rv-confine's boundary: from a fresh process in its namespaces (lib/process/spawn.h starts
 * it; rv_boundary_map() is the parent_setup) to the program behind the boundary.
 *
 *   host                              init (pid 1 of the namespaces)       program
 *   rv_spawn(policy->namespaces)      opens the sources, mounts, pivots
 *   writes the id maps                forks, closes what is not its own     drops capabilities, limits, Landlock,
 *                                                                           descriptors, seccomp; measures limits
 *                                                                           and tries the effects
 *   reads struct rv_boundary_report   <----------- on `record` ------------ writes it
 *   compares, writes the go byte      ------------ on `go` ---------------> writes `admitted`, execs
 *   reads `record` to its end         waits, writes the wait status         runs
 *
 * Every step is fatal, and reported as {step, errno}: before the go byte in the report, after it as the text
 * "exec ERRNO\n" behind the record.  The process that failed exits with RV_BOUNDARY_REFUSED.
 * Without namespaces (landlock/1) there is no init: the spawned process becomes the program itself, and its own
 * wait status is the program's.
 */
#ifndef RV_SANDBOX_BOUNDARY_H
#define RV_SANDBOX_BOUNDARY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/error.h"
#include "lib/sandbox/policy.h"

#define RV_BOUNDARY_REFUSED 125
#define RV_BOUNDARY_GO 0x67
#define RV_BOUNDARY_RECORD 3   /* the record's descriptor in the program */
#define RV_BOUNDARY_EXEC 1000  /* the runtime's: above any limit of descriptors that may be asked for (900) */

/* In the order they are taken. */
enum rv_boundary_step {
	RV_BOUNDARY_READY = 0, /* no step failed: it waits for the go byte */
	RV_BOUNDARY_GUARD,     /* the host is gone */
	RV_BOUNDARY_SOURCE,    /* a source cannot be opened, or is not what the host saw (EXDEV) */
	RV_BOUNDARY_IDS,
	RV_BOUNDARY_ROOT,
	RV_BOUNDARY_MOUNT,
	RV_BOUNDARY_PIVOT,
	RV_BOUNDARY_FORK,
	RV_BOUNDARY_STDIO,
	RV_BOUNDARY_RUNTIME,
	RV_BOUNDARY_CWD,
	RV_BOUNDARY_PRIVILEGES,
	RV_BOUNDARY_LIMITS,
	RV_BOUNDARY_LANDLOCK,
	RV_BOUNDARY_DESCRIPTORS,
	RV_BOUNDARY_SECCOMP
};

const char *rv_boundary_step_name(int step);

/* What must be refused before the program runs, tried behind the whole boundary. */
enum rv_boundary_effect { RV_EFFECT_CANARY, RV_EFFECT_SOCKET, RV_EFFECT_WRITE, RV_EFFECTS };

struct rv_boundary_report {
	uint32_t size;      /* of this struct */
	int32_t step;       /* enum rv_boundary_step that failed */
	int32_t errnum;
	int32_t detail;     /* of MOUNT and SOURCE: which source (its index), -1: none */
	int32_t landlock_abi;
	int32_t effects[RV_EFFECTS]; /* the errno of each refusal; 0: it was NOT refused */
	uint64_t soft[RV_LIMITS];    /* measured, as getrlimit(2) has them */
	uint64_t hard[RV_LIMITS];
};

/* All borrowed; made by the host before the spawn, read by the child in its copy of the memory. */
struct rv_boundary {
	struct rv_instance instance;
	/* ids outside; the same inside where the policy has no user namespace */
	uid_t outside_uid;
	gid_t outside_gid;
	const char *runtime;     /* its path, inside; must be one of the sources */
	dev_t runtime_device;    /* what must be found there */
	ino_t runtime_inode;
	char *const *argv;       /* argv[0] is the runtime */
	char *const *envp;
	const char *cwd;         /* inside */
	const char *canary;      /* the host's path of a file that must not be readable inside */
	const char *write_probe; /* a path inside at which nothing may be made, "/home/probe" */
	/* The policy's filter, compiled by the host for the process that the program will be; NULL, or for another one:
	 * compiled where it is loaded. */
	const struct rv_filter_program *filter;
	const char *admitted;    /* the record, written before the exec; NULL: the runtime itself writes it */
	/* descriptors for the child, each CLOEXEC; it closes all others that it inherits first, so that the end of
	 * the host is seen as an end of file */
	int stdio[3];
	int record;              /* pipe, written here */
	int go;                  /* pipe, read here */
	int status;              /* pipe, written by init: one int as waitpid(2) gives it; -1 without init */
	uint64_t ignored;        /* signals that the caller ignores, as rv_signals_ignored() has them */
};

/* The id maps of the user namespace: setgroups denied, instance.uid mapped to outside_uid (user_namespaces(7)).
 * `data` is the struct rv_boundary.  A parent_setup of lib/process/spawn.h; 0 at once without a user namespace. */
int rv_boundary_map(pid_t child, void *data, struct rv_error *err);

/* The child.  `data` is the struct rv_boundary; the return value is an exit status.  Uses no heap. */
int rv_boundary_main(void *data);

/* The boundary around nothing, in a process of its own: can this host do it, and does it hold?  The report is what a
 * launch's would be, effects and limits included; its size is 0 where that process was ended before it came to an end.
 * Runtime, arguments and descriptors are not used.  The process has done all it ever does on return, but the kernel may
 * still be taking its mounts apart: *pid is the caller's to wait for.  -1 with errno: there is none. */
int rv_boundary_rehearse(const struct rv_boundary *boundary, struct rv_boundary_report *report, pid_t *pid);

#define RV_BOUNDARY_PROGRAM 2 /* the program's own number behind an init */

/* Compile it for that; -1 with errno. */
int rv_boundary_compile(const struct rv_policy *policy, struct rv_filter_program *program);

/* The ids for a policy and this caller: inside 1000, outside the caller's own; for root 65534, so that nothing
 * inside belongs to root and RLIMIT_NPROC counts.  With no user namespace: the caller's, both. */
void rv_boundary_ids(struct rv_boundary *boundary);

#endif

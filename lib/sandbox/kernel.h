/*
 * `rv-exec --sandbox kernel`: the policy rv_policy_kernel applied to tools that run one after another in a slot
 * (lib/process/slot.h joins it in by pointers: struct rv_enclosure).
 *
 * What is the same for every dispatch is made once, in the slot's worker: network, UTS and cgroup namespaces,
 * and a mount namespace that holds the root.  A tool's process enters a copy of that, gets its own IPC namespace,
 * /tmp and working directory, and gives up its privileges.  Every step is fatal.
 */
#ifndef RV_SANDBOX_KERNEL_H
#define RV_SANDBOX_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/sandbox/policy.h"

/* A path of the host's that was asked for. */
struct rv_kernel_path {
	char *target;   /* owned; absolute, at its own path inside */
	bool writable;
	bool fresh;     /* at or below /tmp, or below the base: mounted anew for each dispatch, as those are */
	int fd;         /* the worker's, O_PATH */
};

struct rv_kernel {
	const struct rv_policy *policy;
	const struct rv_mount *readable, *writable, *workdir, *tmp; /* its rows for what a run has */
	const char *base; /* borrowed; the workdirs' */
	bool net;
	struct rv_kernel_path *paths; /* owned; parents before what is below them */
	size_t path_count;
	struct sock_filter *code;     /* owned; compiled once, in the worker */
	int code_len;
	int mounts;                   /* the worker's: the mount namespace with the root */
	int abi;
	char passwd[256];
	char group[256];
};

/* Check what was asked for: absolute paths that exist and that the sandbox has not as its own, and a working
 * directory base that hides nothing of it.  RV_E_CONFIG.  Lists are NULL-terminated.  Released in either case. */
int rv_kernel_init(struct rv_kernel *kernel, const struct rv_policy *policy, const char *const *readable,
		   const char *const *writable, bool net, const char *workdir_base, struct rv_error *err);
void rv_kernel_release(struct rv_kernel *kernel);

/* Is an absolute path of the host's there inside (lexically)? */
bool rv_kernel_shows(const struct rv_kernel *kernel, const char *path);

/* In the worker, once.  RV_E_CONFIG, with the remedy. */
int rv_kernel_prepare(void *kernel, struct rv_error *err);

/* In a tool's process, which shares the worker's memory: no heap.  -1 with errno. */
int rv_kernel_enter(void *kernel, const char *workdir);

#endif

/*
 * A policy: what a confined process has, as constant tables.  Nothing of it is patched at run time: a test
 * that wants a broken one links another object (the service takes a pointer).
 *
 * rv_policy_render() writes the tables in canonical JSON (RFC 8785): the profile's identity is the digest of
 * those bytes, so that a changed entry is another profile.  rv_policy_render_instance() writes what was
 * applied to one run.
 */
#ifndef RV_SANDBOX_POLICY_H
#define RV_SANDBOX_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/sandbox/filter.h"
#include "lib/sandbox/landlock.h"

enum rv_mount_kind {
	RV_MOUNT_SOURCE, /* a bind of every source that bears this row's name */
	RV_MOUNT_ALIAS,  /* a symbolic link for every source that bears this row's name */
	RV_MOUNT_HOST,   /* a bind of the host's own path `source`; a symbolic link is made again as it is */
	RV_MOUNT_EMPTY,  /* a directory of the root, which is an empty tmpfs and read-only in the end; OPTIONAL: over what is there */
	RV_MOUNT_TMPFS,  /* private, writable, empty at each start; `source` is its data (size=...) */
	RV_MOUNT_PROC,   /* the procfs of its PID namespace; `source` is its data (subset=pid) */
	RV_MOUNT_LINK,   /* a symbolic link with the text `source` */
	RV_MOUNT_TEXT    /* a file of the root: "passwd" and "group" are the one line of its user */
};

#define RV_MOUNT_RDONLY   (1U << 0)
#define RV_MOUNT_NOSUID   (1U << 1)
#define RV_MOUNT_NODEV    (1U << 2)
#define RV_MOUNT_NOEXEC   (1U << 3)
#define RV_MOUNT_OPTIONAL (1U << 4) /* left out where the host has no such path */
#define RV_MOUNT_FOLLOW   (1U << 5) /* HOST: bind what a symbolic link leads to */
#define RV_MOUNT_NET      (1U << 6) /* only where the network was asked for */

struct rv_mount {
	enum rv_mount_kind kind;
	const char *name;   /* SOURCE and ALIAS: which sources; else for messages */
	const char *source;
	const char *target; /* absolute; NULL: the source's own path */
	unsigned flags;     /* RV_MOUNT_* */
	uint64_t rights;    /* RV_FS_*: what Landlock leaves at and below it; 0: no rule of its own */
};

/* In bytes, seconds and numbers, as setrlimit(2) has them.  RV_LIMIT_KEEP: not touched;
 * RV_LIMIT_REQUEST: the run says it. */
enum rv_limit_name { RV_LIMIT_CPU, RV_LIMIT_NOFILE, RV_LIMIT_CORE, RV_LIMIT_FSIZE, RV_LIMIT_DATA, RV_LIMITS };
#define RV_LIMIT_KEEP    UINT64_MAX
#define RV_LIMIT_REQUEST (UINT64_MAX - 1)

struct rv_policy {
	const char *name;           /* "linux/1" */
	uint64_t namespaces;        /* CLONE_NEW*; 0: none, and then no mounts but paths for Landlock alone */
	const struct rv_mount *mounts;
	size_t mount_count;
	unsigned scopes;            /* RV_LANDLOCK_* */
	const struct rv_filter *filter;
	uint64_t limits[RV_LIMITS]; /* soft and hard alike */
	const char *const *environment; /* NAME=VALUE, NULL-terminated, sorted; NULL: the caller's */
	const char *hostname;       /* NULL: not set */
};

/* The profiles of rv-confine, by name and never one in place of another: "linux/1", "linux/1+proc",
 * "landlock/1".  NULL: there is no such profile. */
const struct rv_policy *rv_policy_find(const char *name);
extern const struct rv_policy rv_policy_linux, rv_policy_linux_proc, rv_policy_landlock;

/* rv-exec's --sandbox kernel, without and with --net. */
extern const struct rv_policy rv_policy_kernel, rv_policy_kernel_net;

/* One thing of the host's that goes in. */
struct rv_source {
	const char *name;   /* of its row */
	const char *path;   /* absolute, on the host */
	const char *target; /* absolute, inside; NULL: the row's target, or else the same path */
	const char *link;   /* ALIAS: the link's text */
	dev_t device;       /* what it must be, where `checked`: another file at this path is EXDEV */
	ino_t inode;
	bool checked;
};

/* What one run has beside its policy. */
struct rv_instance {
	const struct rv_policy *policy;
	const struct rv_source *sources; /* in the order of mounting */
	size_t source_count;
	uint64_t limits[RV_LIMITS];      /* for the policy's RV_LIMIT_REQUEST */
	uid_t uid;                       /* inside */
	gid_t gid;
	int landlock_abi;
	bool net;
};

void rv_policy_render(struct rv_buffer *out, const struct rv_policy *policy);
/* Without device and inode numbers, and without host paths where a mount namespace hides them: equal runs
 * have equal bytes. */
void rv_policy_render_instance(struct rv_buffer *out, const struct rv_instance *instance);

#endif

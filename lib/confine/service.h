/*
 * The service: requests in, results out.  Several runs at once share it; everything in it is read only once it is
 * started, but for what its lock guards.
 */
#ifndef RV_CONFINE_SERVICE_H
#define RV_CONFINE_SERVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/confine/event.h"
#include "lib/confine/proven.h"
#include "lib/confine/request.h"
#include "lib/confine/result.h"
#include "lib/process/cgroup.h"

struct rv_confine_options {
	const char *root;         /* NULL: a private one, made when it is needed and removed if nothing stays */
	int max_retained;
	bool by_identity;         /* --verify identity */
	bool allow_home_trees;
	const char *receipt;      /* NULL: any runtime and profile */
	const char *cgroup;       /* a delegated directory of cgroup v2, which must do; NULL: v1 as root, if it does */
	char *const *event_command; /* NULL-terminated; NULL: none */
	int cancel;               /* becomes readable when everything is to be stopped; -1 */
	void (*say)(const char *message);
	/* Which policy a name stands for: rv_policy_find.  A test that wants a broken one gives another. */
	const struct rv_policy *(*find)(const char *name);
};

struct rv_known_runtime;
struct rv_known_host;

struct rv_confine {
	struct rv_confine_options options;
	struct rv_proven proven;
	pthread_mutex_t lock; /* over all below */
	char *private_root;   /* owned; NULL: not made */
	struct rv_known_host *hosts;      /* what this host can enforce, by policy */
	struct rv_cgroups groups; /* count 0: none; not changed once there are threads */
	unsigned group_number;    /* of the group made last */
	struct rv_known_runtime *runtimes; /* --verify identity: hashed once, looked at ever after */
};

int rv_confine_start(struct rv_confine *confine, const struct rv_confine_options *options, struct rv_error *err);
/* Before a request that may have a bound of memory, and before there are threads, since the groups' janitor is a copy of
 * this process: find out where cgroups can be made.  Without one asked for by name it may be nowhere, and the watch
 * from outside does.  RV_E_IO. */
int rv_confine_open_groups(struct rv_confine *confine, struct rv_error *err);
/* --verify identity: hash once more.  The ids of the runs that a changed runtime takes back are appended to `withdrawn`, as
 * elements of a JSON array; *any says whether there are runs at all. */
int rv_confine_withdraw(struct rv_confine *confine, struct rv_buffer *withdrawn, bool *any, struct rv_error *err);
/* The private root goes, if it is empty; else *left is its path, borrowed until the release. */
void rv_confine_end(struct rv_confine *confine, const char **left);
void rv_confine_release(struct rv_confine *confine);

/* One run, from an request that was checked.  The result is initialised here. */
void rv_confine_run(struct rv_confine *confine, const struct rv_confine_request *request, struct rv_confine_result *result);

/* Parse, check the profile's name, run. */
void rv_confine_answer(struct rv_confine *confine, struct rv_confine_request *request, const char *line, size_t len,
		       struct rv_confine_result *result);

/* RV_E_REQUEST where there is no such profile. */
int rv_confine_check_profile(const struct rv_confine *confine, const char *name, struct rv_error *err);

/* ---- for run.c ---- */

/* Begin to find out whether this host can enforce the policy, if nobody has asked; the answer is rv_confine_check_host's. */
int rv_confine_ask_host(struct rv_confine *confine, const struct rv_policy *policy, struct rv_error *err);
/* Can this host enforce the policy?  Found out once.  RV_E_HOST.  *filter is the policy's, compiled, and lives as long as
 * the service. */
int rv_confine_check_host(struct rv_confine *confine, const struct rv_policy *policy, const struct rv_filter_program **filter,
			  struct rv_error *err);
/* The digest of the policy's profile, from its tables as they are now. */
int rv_confine_describe(struct rv_confine *confine, const struct rv_policy *policy, char digest[RV_DIGEST_TEXT],
			struct rv_error *err);
/* A group for one run, if it has a bound of memory and groups can be had; else *group says none.  `groups` is the run's own
 * copy, which the group borrows.  RV_E_CONFIG. */
int rv_confine_make_group(struct rv_confine *confine, int64_t max_memory, struct rv_cgroups *groups, struct rv_cgroup *group,
			  struct rv_error *err);
/* The root to use; RV_E_CONFIG. */
int rv_confine_find_root(struct rv_confine *confine, const char **root, struct rv_error *err);
/* By identity: the digest of a runtime that was hashed before and looks the same; else it is hashed, and kept.  `runtime` is
 * described in either case. */
int rv_confine_identify(struct rv_confine *confine, const struct rv_runtime_spec *spec, struct rv_runtime *runtime,
			struct rv_error *err);
/* This run stands on it. */
int rv_confine_credit(struct rv_confine *confine, const struct rv_runtime *runtime, const struct rv_buffer *id,
		      struct rv_error *err);

#endif

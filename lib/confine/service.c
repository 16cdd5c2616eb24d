#include "lib/confine/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/memory.h"
#include "lib/confine/hostprobe.h"

struct rv_known_host {
	struct rv_known_host *next;
	const struct rv_policy *policy;
	struct rv_error err; /* RV_E_NONE: it can, once nothing goes on */
	struct rv_rehearsal *going_on; /* the answer is not there yet */
	struct rv_profile profile; /* once it was asked for */
	pid_t rehearsal; /* not yet waited for; -1 */
	struct rv_filter_program filter; /* large: only what the program takes of it is touched */
};

/* A runtime as it was hashed, and who stands on it. */
struct rv_known_runtime {
	struct rv_known_runtime *next;
	char *path;
	char **trees;
	size_t tree_count;
	bool allow_home;
	char stamp[RV_SHA256_HEX];
	char digest[RV_DIGEST_TEXT];
	struct rv_buffer ids; /* elements of a JSON array */
	size_t runs;
};

int rv_confine_start(struct rv_confine *confine, const struct rv_confine_options *options, struct rv_error *err)
{
	*confine = (struct rv_confine){ .options = *options, .groups = RV_CGROUPS_INIT };
	(void)pthread_mutex_init(&confine->lock, NULL);
	rv_memory_keep();
	return options->receipt != NULL ? rv_proven_read(&confine->proven, options->receipt, err) : 0;
}

void rv_confine_end(struct rv_confine *confine, const char **left)
{
	*left = NULL;
	if (confine->private_root != NULL && rmdir(confine->private_root) != 0)
		*left = confine->private_root;
}

static void free_runtime(struct rv_known_runtime *known)
{
	for (size_t i = 0; i < known->tree_count; i++)
		free(known->trees[i]);
	free(known->trees);
	free(known->path);
	rv_buffer_release(&known->ids);
	free(known);
}

/* The answer, if it was not waited for yet. */
static void settle(struct rv_known_host *known)
{
	if (known->going_on != NULL)
		(void)rv_hostprobe_answer(known->going_on, &known->rehearsal, &known->err);
	known->going_on = NULL;
}

void rv_confine_release(struct rv_confine *confine)
{
	while (confine->hosts != NULL) {
		struct rv_known_host *next = confine->hosts->next;

		settle(confine->hosts);
		if (confine->hosts->rehearsal > 0)
			(void)waitpid(confine->hosts->rehearsal, NULL, 0);
		rv_profile_release(&confine->hosts->profile);
		free(confine->hosts);
		confine->hosts = next;
	}
	while (confine->runtimes != NULL) {
		struct rv_known_runtime *next = confine->runtimes->next;

		free_runtime(confine->runtimes);
		confine->runtimes = next;
	}
	free(confine->private_root);
	rv_cgroups_release(&confine->groups);
	rv_proven_release(&confine->proven);
	(void)pthread_mutex_destroy(&confine->lock);
}

int rv_confine_check_profile(const struct rv_confine *confine, const char *name, struct rv_error *err)
{
	if (confine->options.find(name) == NULL)
		return rv_error_set(err, RV_E_REQUEST, 0,
				    "invalid confined run request: there is no profile of that name (linux/1, linux/1+proc, "
				    "landlock/1)");
	return 0;
}

/* ---- the host ---- */

/* Once for each policy: what it compiles to, and whether it can be had here, which is only begun. */
static struct rv_known_host *learn(const struct rv_policy *policy, struct rv_known_host *next)
{
	struct rv_known_host *known = malloc(sizeof *known);

	if (known == NULL)
		return NULL;
	memset(known, 0, offsetof(struct rv_known_host, filter));
	known->policy = policy;
	known->rehearsal = -1;
	known->next = next;
	if (rv_boundary_compile(policy, &known->filter) != 0)
		(void)rv_error_set(&known->err, RV_E_HOST, errno, "the filter of %s", policy->name);
	else
		(void)rv_hostprobe_begin(policy, &known->filter, &known->going_on, &known->err);
	return known;
}

static struct rv_known_host *know(struct rv_confine *confine, const struct rv_policy *policy)
{
	struct rv_known_host *known;

	(void)pthread_mutex_lock(&confine->lock);
	for (known = confine->hosts; known != NULL && known->policy != policy; known = known->next)
		;
	if (known == NULL) {
		known = learn(policy, confine->hosts);
		if (known != NULL)
			confine->hosts = known;
	}
	(void)pthread_mutex_unlock(&confine->lock);
	return known;
}

int rv_confine_ask_host(struct rv_confine *confine, const struct rv_policy *policy, struct rv_error *err)
{
	return know(confine, policy) != NULL ? 0 : rv_error_nomem(err);
}

int rv_confine_check_host(struct rv_confine *confine, const struct rv_policy *policy, const struct rv_filter_program **filter,
			  struct rv_error *err)
{
	struct rv_known_host *known = know(confine, policy);

	if (known == NULL)
		return rv_error_nomem(err);
	(void)pthread_mutex_lock(&confine->lock);
	settle(known);
	(void)pthread_mutex_unlock(&confine->lock);
	*filter = &known->filter;
	*err = known->err;
	return err->code == RV_E_NONE ? 0 : -1;
}

int rv_confine_describe(struct rv_confine *confine, const struct rv_policy *policy, char digest[RV_DIGEST_TEXT],
			struct rv_error *err)
{
	struct rv_known_host *known = know(confine, policy);
	int result;

	if (known == NULL)
		return rv_error_nomem(err);
	(void)pthread_mutex_lock(&confine->lock);
	result = known->profile.policy == NULL ? rv_profile_describe(&known->profile, policy, err)
					       : rv_profile_refresh(&known->profile, err);
	memcpy(digest, known->profile.digest, RV_DIGEST_TEXT);
	(void)pthread_mutex_unlock(&confine->lock);
	return result;
}

/* ---- memory ---- */

int rv_confine_open_groups(struct rv_confine *confine, struct rv_error *err)
{
	if (rv_cgroups_open(&confine->groups, confine->options.cgroup, (uint64_t)RV_CONFINE_MEMORY_MAX, UINT64_MAX, err) == 0)
		return 0;
	rv_cgroups_release(&confine->groups);
	err->code = RV_E_IO; /* a facility that is missing */
	if (confine->options.cgroup != NULL)
		return -1;
	rv_error_clear(err);
	return 0;
}

int rv_confine_make_group(struct rv_confine *confine, int64_t max_memory, struct rv_cgroups *groups, struct rv_cgroup *group,
			  struct rv_error *err)
{
	char id[16];

	if (max_memory <= 0 || confine->groups.count == 0)
		return 0;
	*groups = confine->groups;
	groups->max_memory = (uint64_t)max_memory;
	(void)pthread_mutex_lock(&confine->lock);
	(void)snprintf(id, sizeof id, "%u", ++confine->group_number);
	(void)pthread_mutex_unlock(&confine->lock);
	return rv_cgroup_make(group, groups, id, err);
}

/* ---- the root ---- */

static int make_private_root(struct rv_confine *confine, struct rv_error *err)
{
	const char *base = getenv("TMPDIR");
	rv_auto_free char *canonical = realpath(base != NULL && base[0] == '/' ? base : "/tmp", NULL);
	rv_auto_buffer struct rv_buffer path = RV_BUFFER_INIT;
	char *made;

	if (canonical == NULL)
		return rv_error_set(err, RV_E_CONFIG, errno, "$TMPDIR");
	rv_buffer_printf(&path, "%s/rv-confine-XXXXXX", strcmp(canonical, "/") == 0 ? "" : canonical);
	made = rv_buffer_steal(&path, &(size_t){ 0 });
	if (made == NULL)
		return rv_error_nomem(err);
	if (rv_root_check_name(made, err) != 0 || mkdtemp(made) == NULL) {
		if (err->code == RV_E_NONE)
			(void)rv_error_set(err, RV_E_CONFIG, errno, "%s", made);
		err->code = RV_E_CONFIG;
		free(made);
		return -1;
	}
	confine->private_root = made;
	return 0;
}

int rv_confine_find_root(struct rv_confine *confine, const char **root, struct rv_error *err)
{
	int result = 0;

	*root = confine->options.root;
	if (*root != NULL)
		return 0;
	(void)pthread_mutex_lock(&confine->lock);
	if (confine->private_root == NULL)
		result = make_private_root(confine, err);
	*root = confine->private_root;
	(void)pthread_mutex_unlock(&confine->lock);
	return result;
}

/* ---- runtimes by identity ---- */

static bool is_of(const struct rv_known_runtime *known, const struct rv_runtime_spec *spec)
{
	if (strcmp(known->path, spec->path) != 0 || known->tree_count != spec->tree_count)
		return false;
	for (size_t i = 0; i < spec->tree_count; i++) {
		if (strcmp(known->trees[i], spec->trees[i]) != 0)
			return false;
	}
	return true;
}

static int remember(struct rv_confine *confine, const struct rv_runtime_spec *spec, const struct rv_runtime *runtime,
		    struct rv_error *err)
{
	struct rv_known_runtime *known = calloc(1, sizeof *known);

	if (known == NULL)
		return rv_error_nomem(err);
	known->path = strdup(spec->path);
	known->trees = calloc(spec->tree_count + 1, sizeof *known->trees);
	known->allow_home = spec->allow_home_trees;
	for (size_t i = 0; known->trees != NULL && i < spec->tree_count; i++) {
		known->trees[known->tree_count] = strdup(spec->trees[i]);
		if (known->trees[known->tree_count] != NULL)
			known->tree_count++;
	}
	if (known->path == NULL || known->tree_count != spec->tree_count) {
		free_runtime(known);
		return rv_error_nomem(err);
	}
	memcpy(known->stamp, runtime->stamp, sizeof known->stamp);
	memcpy(known->digest, runtime->digest, sizeof known->digest);
	known->next = confine->runtimes;
	confine->runtimes = known;
	return 0;
}

static const struct rv_known_runtime *find(const struct rv_confine *confine, const struct rv_runtime_spec *spec,
					   const char *stamp)
{
	for (const struct rv_known_runtime *known = confine->runtimes; known != NULL; known = known->next) {
		if (is_of(known, spec) && strcmp(known->stamp, stamp) == 0)
			return known;
	}
	return NULL;
}

/* Under the lock all the way: two runs that come first must not both hash it. */
int rv_confine_identify(struct rv_confine *confine, const struct rv_runtime_spec *spec, struct rv_runtime *runtime,
			struct rv_error *err)
{
	const struct rv_known_runtime *known;
	int result = rv_runtime_look(runtime, spec, err);

	if (result != 0)
		return -1;
	(void)pthread_mutex_lock(&confine->lock);
	known = find(confine, spec, runtime->stamp);
	if (known != NULL) {
		memcpy(runtime->digest, known->digest, sizeof runtime->digest);
	} else {
		rv_runtime_release(runtime);
		result = rv_runtime_describe(runtime, spec, err);
		if (result == 0)
			result = remember(confine, spec, runtime, err);
	}
	(void)pthread_mutex_unlock(&confine->lock);
	return result;
}

int rv_confine_credit(struct rv_confine *confine, const struct rv_runtime *runtime, const struct rv_buffer *id,
		      struct rv_error *err)
{
	struct rv_known_runtime *known;
	int result = 0;

	(void)pthread_mutex_lock(&confine->lock);
	for (known = confine->runtimes; known != NULL; known = known->next) {
		if (strcmp(known->path, runtime->path) == 0 && strcmp(known->stamp, runtime->stamp) == 0)
			break;
	}
	if (known != NULL) {
		if (known->runs++ > 0)
			rv_buffer_add_byte(&known->ids, ',');
		if (id->len > 0)
			rv_buffer_add(&known->ids, id->data, id->len);
		else
			rv_buffer_add_string(&known->ids, "null");
		result = rv_buffer_check(&known->ids, err);
	}
	(void)pthread_mutex_unlock(&confine->lock);
	return result;
}

static bool still_is(const struct rv_known_runtime *known)
{
	struct rv_runtime_spec spec = { .path = known->path, .trees = (const char *const *)known->trees,
					.tree_count = known->tree_count, .allow_home_trees = known->allow_home };
	struct rv_error err = RV_ERROR_INIT;
	struct rv_runtime now;
	bool same = rv_runtime_describe(&now, &spec, &err) == 0 && strcmp(now.digest, known->digest) == 0;

	rv_runtime_release(&now);
	return same;
}

int rv_confine_withdraw(struct rv_confine *confine, struct rv_buffer *withdrawn, bool *any, struct rv_error *err)
{
	*any = false;
	for (const struct rv_known_runtime *known = confine->runtimes; known != NULL; known = known->next) {
		if (known->runs == 0 || still_is(known))
			continue;
		if (*any)
			rv_buffer_add_byte(withdrawn, ',');
		rv_buffer_add(withdrawn, known->ids.data, known->ids.len);
		*any = true;
	}
	return rv_buffer_check(withdrawn, err);
}

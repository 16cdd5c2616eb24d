#include "lib/confine/once.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"

int64_t rv_confine_bound_of(uint64_t size)
{
	return size > INT64_MAX ? INT64_MAX : (int64_t)size;
}

/* An absolute path as it is; a relative one from the working directory, its links followed.  NULL with err. */
static char *absolute(const char *path, struct rv_error *err)
{
	char *own = path[0] == '/' ? strdup(path) : realpath(path, NULL);

	if (own == NULL)
		(void)rv_error_set(err, RV_E_IO, errno, "%s", path);
	return own;
}

static int take_paths(struct rv_confine_request *request, const struct rv_confine_once *once, struct rv_error *err)
{
	request->runtime = absolute(once->runtime, err);
	request->trees = calloc(once->tree_count + 1, sizeof *request->trees);
	request->args = calloc(once->arg_count + 1, sizeof *request->args);
	request->entry = strdup(once->entry);
	request->profile = strdup(once->profile);
	if (request->runtime == NULL)
		return -1;
	if (request->trees == NULL || request->args == NULL || request->entry == NULL || request->profile == NULL)
		return rv_error_nomem(err);
	for (size_t i = 0; i < once->tree_count; i++) {
		request->trees[i] = absolute(once->trees[i], err);
		if (request->trees[i] == NULL)
			return -1;
		request->tree_count++;
	}
	for (size_t i = 0; i < once->arg_count; i++) {
		request->args[i] = strdup(once->args[i]);
		if (request->args[i] == NULL)
			return rv_error_nomem(err);
		request->arg_count++;
	}
	return 0;
}

static int take(struct rv_confine_request *request, const struct rv_confine_once *once, int cancel,
		struct rv_error *err)
{
	request->program.cancel = request->input.cancel = cancel;
	request->bounds = once->bounds;
	request->pinned = !once->unpinned;
	if (take_paths(request, once, err) != 0)
		return -1;
	if (request->pinned && rv_pins_read(&request->pins, once->pins, err) != 0)
		return -1;
	if (rv_snapshot_read(&request->program, once->program, err) != 0 ||
	    (once->input != NULL ? rv_snapshot_read(&request->input, once->input, err)
				 : rv_snapshot_seal(&request->input, err)) != 0)
		return err->code == RV_E_REQUEST ? rv_error_wrap(err, "invalid confined run request") : -1;
	return 0;
}

static int write_file(const char *path, const struct rv_buffer *bytes, struct rv_error *err)
{
	rv_auto_fd int fd = -1;

	if (path == NULL)
		return 0;
	fd = rv_io_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY, 0666, err);
	if (fd < 0)
		return -1;
	return rv_io_write_all(fd, bytes->data, bytes->len, err) == 0 ? 0 : rv_error_wrap(err, "%s", path);
}

static int finish(const struct rv_confine_once *once, const struct rv_confine_request *request,
		  const struct rv_confine_result *result, struct rv_buffer *out, int *status, struct rv_error *err)
{
	if (result->status == RV_CONFINE_INVALID || result->status == RV_CONFINE_FAILED) {
		*err = result->error;
		return -1;
	}
	*status = rv_confine_exit(result);
	/* First: a file that cannot be written takes no result along. */
	if (rv_confine_result_add_json(out, result, request, 0, err) != 0) {
		rv_buffer_clear(out);
		return -1;
	}
	if ((result->status == RV_CONFINE_OBSERVED || result->status == RV_CONFINE_UNRESOLVED) &&
	    (write_file(once->stdout_file, &result->facts.out, err) != 0 ||
	     write_file(once->stderr_file, &result->facts.err, err) != 0))
		return -1;
	return 0;
}

int rv_confine_run_once(struct rv_confine *confine, const struct rv_confine_once *once, struct rv_buffer *out, int *status,
			struct rv_error *err)
{
	const struct rv_confine_options *options = &confine->options;
	rv_auto_free struct rv_confine_result *result = calloc(1, sizeof *result);
	struct rv_confine_request request;
	int done = -1;

	if (result == NULL)
		return rv_error_nomem(err);
	rv_confine_request_init(&request);
	rv_confine_result_init(result);
	if (take(&request, once, options->cancel, err) == 0 &&
	    rv_confine_request_check(&request, options->allow_home_trees, options->root, err) == 0 &&
	    rv_confine_check_profile(confine, request.profile, err) == 0 &&
	    (request.bounds.max_memory == 0 || rv_confine_open_groups(confine, err) == 0)) {
		rv_confine_run(confine, &request, result);
		done = finish(once, &request, result, out, status, err);
	} else if (err->code == RV_E_ABORTED) { /* before there was anything: a result all the same */
		rv_confine_result_refuse(result, err);
		done = finish(once, &request, result, out, status, err);
	}
	rv_confine_result_release(result);
	rv_confine_request_release(&request);
	return done;
}

int rv_confine_describe_runtime(struct rv_buffer *out, const char *path, const char *const *trees, size_t tree_count,
				bool allow_home, struct rv_error *err)
{
	rv_auto_free char *own = absolute(path, err);
	rv_auto_free char **own_trees = calloc(tree_count + 1, sizeof *own_trees);
	struct rv_runtime_spec spec = { .path = own, .trees = (const char *const *)own_trees, .tree_count = tree_count,
					.allow_home_trees = allow_home };
	struct rv_runtime runtime = { .json = RV_BUFFER_INIT };
	int result = own == NULL ? -1 : own_trees == NULL ? rv_error_nomem(err) : 0;

	for (size_t i = 0; result == 0 && i < tree_count; i++) {
		own_trees[i] = absolute(trees[i], err);
		result = own_trees[i] != NULL ? 0 : -1;
	}
	if (result == 0)
		result = rv_runtime_describe(&runtime, &spec, err);
	else if (err->code == RV_E_IO)
		err->code = RV_E_RUNTIME;
	if (result == 0)
		rv_buffer_add(out, runtime.json.data, runtime.json.len);
	rv_runtime_release(&runtime);
	for (size_t i = 0; own_trees != NULL && i < tree_count; i++)
		free(own_trees[i]);
	return result == 0 ? rv_buffer_check(out, err) : -1;
}

int rv_confine_describe_profile(struct rv_buffer *out, const char *name, struct rv_error *err)
{
	const struct rv_policy *policy = rv_policy_find(name);
	struct rv_profile profile;
	int result;

	if (policy == NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "there is no profile %s", name);
	result = rv_profile_describe(&profile, policy, err);
	if (result == 0)
		rv_profile_add_json(&profile, out);
	rv_profile_release(&profile);
	return result == 0 ? rv_buffer_check(out, err) : -1;
}

int rv_confine_describe_snapshot(struct rv_buffer *out, const char *path, struct rv_error *err)
{
	struct rv_snapshot snapshot = RV_SNAPSHOT_INIT;
	int result = rv_snapshot_read(&snapshot, path, err);

	if (result == 0)
		rv_snapshot_add_json(&snapshot, out);
	rv_snapshot_release(&snapshot);
	return result == 0 ? rv_buffer_check(out, err) : -1;
}

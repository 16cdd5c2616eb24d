#include "lib/confine/request.h"

#include <stdlib.h>
#include <string.h>

void rv_confine_request_init(struct rv_confine_request *request)
{
	*request = (struct rv_confine_request){ .id = RV_BUFFER_INIT,
					.program = RV_SNAPSHOT_INIT,
					.input = RV_SNAPSHOT_INIT,
					.bounds = RV_BOUNDS_DEFAULT };
}

static void release_texts(char **texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(texts[i]);
	free(texts);
}

void rv_confine_request_release(struct rv_confine_request *request)
{
	rv_buffer_release(&request->id);
	free(request->runtime);
	release_texts(request->trees, request->tree_count);
	free(request->profile);
	rv_snapshot_release(&request->program);
	rv_snapshot_release(&request->input);
	free(request->entry);
	release_texts(request->args, request->arg_count);
	rv_confine_request_init(request);
}

struct rv_runtime_spec rv_confine_request_runtime(const struct rv_confine_request *request, bool allow_home, const char *root)
{
	return (struct rv_runtime_spec){ .path = request->runtime,
					 .trees = (const char *const *)request->trees,
					 .tree_count = request->tree_count,
					 .allow_home_trees = allow_home,
					 .root = root };
}

static int check_entry(const struct rv_confine_request *request, struct rv_error *err)
{
	static const char *const endings[] = { ".mjs", ".cjs", ".js", ".mts", ".cts", ".ts" };
	const char *base = strrchr(request->runtime, '/') + 1, *dot = strrchr(request->entry, '.');

	if (rv_snapshot_find(&request->program, request->entry) == NULL)
		return rv_error_set(err, RV_E_REQUEST, 0, "the entry is no file of the program");
	if (strcmp(base, "node") != 0)
		return 0;
	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
		if (dot != NULL && strcmp(dot, endings[i]) == 0)
			return 0;
	}
	return rv_error_set(err, RV_E_REQUEST, 0, "the entry does not end in .mjs .cjs .js .mts .cts or .ts");
}

static int check_args(const struct rv_confine_request *request, struct rv_error *err)
{
	size_t bytes = 0;

	if (request->arg_count > RV_CONFINE_ARGS_MAX)
		return rv_error_set(err, RV_E_REQUEST, 0, "more than %d arguments", RV_CONFINE_ARGS_MAX);
	for (size_t i = 0; i < request->arg_count; i++) {
		size_t len = strlen(request->args[i]);

		if (!rv_text_is_utf8(request->args[i], len))
			return rv_error_set(err, RV_E_REQUEST, 0, "an argument is not UTF-8");
		bytes += len + 1;
	}
	if (bytes > RV_CONFINE_ARGS_BYTES_MAX)
		return rv_error_set(err, RV_E_REQUEST, 0, "more than %d bytes of arguments", RV_CONFINE_ARGS_BYTES_MAX);
	return 0;
}

static int check_bound(const char *name, int64_t value, int64_t min, int64_t max, struct rv_error *err)
{
	if (value < min || value > max)
		return rv_error_set(err, RV_E_REQUEST, 0, "%s is not from %lld to %lld", name, (long long)min, (long long)max);
	return 0;
}

static int check_bounds(const struct rv_bounds *bounds, struct rv_error *err)
{
	if (check_bound("timeoutMs", bounds->timeout_ms, 1, RV_CONFINE_TIMEOUT_MAX_MS, err) != 0 ||
	    check_bound("maxOutputBytes", bounds->max_output, 1, RV_CONFINE_OUTPUT_MAX, err) != 0 ||
	    check_bound("cpuSeconds", bounds->cpu_seconds, 1, RV_CONFINE_CPU_MAX_S, err) != 0 ||
	    check_bound("maxDescriptors", bounds->max_descriptors, RV_CONFINE_DESCRIPTORS_MIN, RV_CONFINE_DESCRIPTORS_MAX,
			err) != 0 ||
	    check_bound("maxDataBytes", bounds->max_data, RV_CONFINE_DATA_MIN, RV_CONFINE_DATA_MAX, err) != 0)
		return -1;
	return bounds->max_memory == 0 ? 0
				       : check_bound("maxMemoryBytes", bounds->max_memory, RV_CONFINE_MEMORY_MIN,
						     RV_CONFINE_MEMORY_MAX, err);
}

static int check_pins(const struct rv_confine_request *request, struct rv_error *err)
{
	if (!request->pinned)
		return 0;
	if (strcmp(request->pins.program, request->program.digest) != 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "program.digest is not that of its files, %s",
				    request->program.digest);
	if (strcmp(request->pins.input, request->input.digest) != 0)
		return rv_error_set(err, RV_E_REQUEST, 0, "input.digest is not that of its files, %s", request->input.digest);
	return 0;
}

int rv_confine_request_check(const struct rv_confine_request *request, bool allow_home, const char *root, struct rv_error *err)
{
	struct rv_runtime_spec spec = rv_confine_request_runtime(request, allow_home, root);
	int result = rv_runtime_check_spec(&spec, err);

	if (result == 0)
		result = rv_runtime_check_places(&spec, NULL, err);
	if (result == 0)
		result = check_bounds(&request->bounds, err);
	if (result == 0)
		result = check_entry(request, err);
	if (result == 0)
		result = check_args(request, err);
	if (result == 0)
		result = check_pins(request, err);
	return result == 0 ? 0 : rv_error_wrap(err, "invalid confined run request");
}

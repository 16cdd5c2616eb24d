/* Any line as a request of a stream: what is accepted is whole and within every bound. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/confine/limits.h"
#include "lib/confine/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
	if (!good)
		abort();
}

/* A directory or an archive is the file system's, and not the line's. */
static bool reads_files(const uint8_t *data, size_t size)
{
	return memmem(data, size, "dir", 3) != NULL || memmem(data, size, "archive", 7) != NULL || memmem(data, size, "\\u", 2) != NULL;
}

static void check(const struct rv_confine_request *request)
{
	const struct rv_bounds *bounds = &request->bounds;

	require(request->runtime != NULL && request->runtime[0] == '/' && request->entry != NULL && request->profile != NULL);
	require(rv_snapshot_find(&request->program, request->entry) != NULL);
	require(request->pinned && rv_digest_is_valid(rv_span_of(request->pins.runtime)) &&
		rv_digest_is_valid(rv_span_of(request->pins.profile)));
	require(strcmp(request->pins.program, request->program.digest) == 0 && strcmp(request->pins.input, request->input.digest) == 0);
	require(bounds->timeout_ms >= 1 && bounds->timeout_ms <= RV_CONFINE_TIMEOUT_MAX_MS);
	require(bounds->cpu_seconds >= 1 && bounds->cpu_seconds <= RV_CONFINE_CPU_MAX_S);
	require(bounds->max_descriptors >= RV_CONFINE_DESCRIPTORS_MIN && bounds->max_descriptors <= RV_CONFINE_DESCRIPTORS_MAX);
	require(bounds->max_output >= 1 && bounds->max_output <= RV_CONFINE_OUTPUT_MAX);
	for (size_t i = 0; i < request->arg_count; i++)
		require(request->args[i] != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rv_confine_request request;
	struct rv_error err = RV_ERROR_INIT;

	if (reads_files(data, size))
		return 0;
	rv_confine_request_init(&request);
	if (rv_confine_request_parse(&request, (const char *)data, size, false, NULL, -1, &err) == 0)
		check(&request);
	else
		require(err.code != RV_E_NONE && err.message[0] != '\0');
	rv_confine_request_release(&request);
	return 0;
}

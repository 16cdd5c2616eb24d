#include "lib/executor/remnant.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/executor/words.h"

#define TIMES 2      /* what a create under way writes behind the first deletion goes with the second */
#define AGAIN_MS 100
#define FIELDS 4

/* Its fields, by blanks: how many. */
static size_t split(char *line, char **fields, size_t room)
{
	size_t count = 0;

	for (char *save = NULL, *word = strtok_r(line, " \n", &save); word != NULL; word = strtok_r(NULL, " \n", &save)) {
		if (count == room)
			return 0;
		fields[count++] = word;
	}
	return count;
}

bool rv_remnant_ask(struct rv_remnant *remnant, const struct rv_engine *engine, const char *name, int64_t deadline)
{
	const char *const args[] = { "container", "inspect", "--format", "{{.State.Status}} {{.Id}} {{.OCIRuntime}}", name, NULL };
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer complaint = RV_BUFFER_INIT;
	struct rv_error ignored = RV_ERROR_INIT;
	char *fields[FIELDS];

	if (rv_engine_ask(engine, args, rv_clock_left_ms(deadline), &out, &complaint, &ignored) != 0 || out.len == 0 ||
	    split(out.data, fields, FIELDS) != 3 || strcmp(fields[0], "created") != 0)
		return false; /* nothing there, or one that the engine removes with its runtime */
	if (strlen(fields[1]) >= sizeof remnant->id || strspn(fields[1], "0123456789abcdef") != strlen(fields[1]) ||
	    strlen(fields[2]) >= sizeof remnant->runtime)
		return false;
	(void)snprintf(remnant->id, sizeof remnant->id, "%s", fields[1]);
	(void)snprintf(remnant->runtime, sizeof remnant->runtime, "%s", fields[2]);
	return true;
}

/* The runtime's words, as the engine itself would start it; none where a service does. */
static int find_runtime(struct rv_words *words, const struct rv_remnant *remnant, const struct rv_engine *engine,
			int64_t deadline, struct rv_error *err)
{
	const char *const args[] = {
		"info", "--format",
		"{{.Host.ServiceIsRemote}} {{.Host.Security.Rootless}} {{.Host.OCIRuntime.Name}} {{.Host.OCIRuntime.Path}}", NULL,
	};
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer complaint = RV_BUFFER_INIT;
	char *fields[FIELDS];
	int status = rv_engine_ask(engine, args, rv_clock_left_ms(deadline), &out, &complaint, err);

	if (status < 0)
		return -1;
	if (status > 0 || out.len == 0 || split(out.data, fields, FIELDS) != FIELDS || fields[3][0] != '/')
		return rv_error_set(err, RV_E_IO, 0, "%s does not say which runtime it has: %s", engine->words[0], complaint.data);
	if (strcmp(fields[0], "true") == 0)
		return 0;
	if (strcmp(fields[2], remnant->runtime) != 0 && strcmp(fields[3], remnant->runtime) != 0)
		return rv_error_set(err, RV_E_IO, 0, "the engine's runtime is %s, and the container's was %s", fields[2], remnant->runtime);
	if (strcmp(fields[1], "true") == 0) { /* its state is below the user's own, in the engine's user namespace */
		rv_words_add_all(words, (const char *const *)engine->words);
		rv_words_add(words, "unshare");
	}
	rv_words_add(words, fields[3]);
	return 0;
}

/* 0 the runtime has nothing of it. */
static int delete_it(const struct rv_engine *runtime, const char *id, int64_t deadline, struct rv_error *err)
{
	const char *const delete[] = { "delete", "--force", id, NULL };
	const char *const state[] = { "state", id, NULL };
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer complaint = RV_BUFFER_INIT;
	int status;

	for (int i = 0; i < TIMES; i++) {
		if (i > 0)
			rv_clock_pause_ms(AGAIN_MS);
		status = rv_engine_ask(runtime, delete, rv_clock_left_ms(deadline), &out, &complaint, err);
		if (status != 0) /* of one that it does not have it is 0 */
			return status < 0 ? -1 : rv_error_set(err, RV_E_IO, 0, "%s: %s", runtime->words[0], complaint.data);
	}
	status = rv_engine_ask(runtime, state, rv_clock_left_ms(deadline), &out, &complaint, err);
	if (status < 0)
		return -1;
	return status > 0 ? 0 : rv_error_set(err, RV_E_IO, 0, "%s still has container %s", runtime->words[0], id);
}

int rv_remnant_delete(const struct rv_remnant *remnant, const struct rv_engine *engine, int64_t deadline, struct rv_error *err)
{
	struct rv_words words = RV_WORDS_INIT;
	struct rv_engine runtime = { .envp = engine->envp };
	int result = find_runtime(&words, remnant, engine, deadline, err);

	if (result == 0 && words.text.len > 0) {
		runtime.words = rv_words_list(&words, err);
		result = runtime.words != NULL ? delete_it(&runtime, remnant->id, deadline, err) : -1;
	}
	rv_words_release(&words);
	return result;
}

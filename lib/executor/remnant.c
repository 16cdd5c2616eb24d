#include "lib/executor/remnant.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/executor/words.h"

#define TIMES 2      /* what a create under way writes behind the first deletion goes with the second */
#define AGAIN_MS 100
#define FIELDS 4
#define RUNTIME_WORD "OCIRuntime"

/* Its fields, a line each: a path may hold blanks.  How many; 0: more than there is room for. */
static size_t split(char *text, char **fields, size_t room)
{
	size_t count = 0;

	for (char *save = NULL, *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		if (count == room)
			return 0;
		fields[count++] = line;
	}
	return count;
}

/* The engine refused the question: since it has no such word (docker names it then), since there is no such container,
 * or for a reason that says nothing of it. */
static int refused(const struct rv_engine *engine, const char *name, int64_t deadline, const char *complaint,
		   struct rv_error *err)
{
	if (strstr(complaint, RUNTIME_WORD) != NULL || rv_engine_has(engine, name, deadline, err) == 0)
		return 0;
	return err->code != RV_E_NONE ? -1 : rv_error_set(err, RV_E_IO, 0, "%s: %s", engine->words[0], complaint);
}

int rv_remnant_ask(struct rv_remnant *remnant, const struct rv_engine *engine, const char *name, int64_t deadline,
		   struct rv_error *err)
{
	const char *const args[] = {
		"container", "inspect", "--format", "{{.State.Status}}\n{{.Id}}\n{{." RUNTIME_WORD "}}", name, NULL,
	};
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer complaint = RV_BUFFER_INIT;
	char *fields[FIELDS];
	int status = rv_engine_ask(engine, args, rv_clock_left_ms(deadline), &out, &complaint, err);

	if (status != 0)
		return status < 0 ? -1 : refused(engine, name, deadline, complaint.data, err);
	if (out.len == 0 || split(out.data, fields, FIELDS) != 3 || strcmp(fields[0], "created") != 0)
		return 0; /* one that the engine removes with its runtime, or an engine without that word */
	if (strlen(fields[1]) >= sizeof remnant->id || strspn(fields[1], "0123456789abcdef") != strlen(fields[1]))
		return rv_error_set(err, RV_E_IO, 0, "%s: no id of a container: %s", engine->words[0], fields[1]);
	if (fields[2][0] == '<') /* <no value> */
		return 0;
	if (strlen(fields[2]) >= sizeof remnant->runtime)
		return rv_error_set(err, RV_E_IO, ENAMETOOLONG, "%s: the runtime %s", engine->words[0], fields[2]);
	(void)snprintf(remnant->id, sizeof remnant->id, "%s", fields[1]);
	(void)snprintf(remnant->runtime, sizeof remnant->runtime, "%s", fields[2]);
	return 1;
}

/* The runtime's words, as the engine itself would start it; none where a service does. */
static int find_runtime(struct rv_words *words, const struct rv_remnant *remnant, const struct rv_engine *engine,
			int64_t deadline, struct rv_error *err)
{
	const char *const args[] = {
		"info", "--format",
		"{{.Host.ServiceIsRemote}}\n{{.Host.Security.Rootless}}\n{{.Host.OCIRuntime.Name}}\n{{.Host.OCIRuntime.Path}}", NULL,
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

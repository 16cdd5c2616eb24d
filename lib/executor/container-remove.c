/* Killing and removing a container by its name, with an engine that may be slow, and at a time when the container
 * may not even be there yet. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/executor/container.h"
#include "lib/executor/helpers.h"
#include "lib/executor/remnant.h"

#define REMOVE_MS 16000 /* in all; with the end of its holders less than the worker waits for it */
#define ASK_MS 5000     /* of that for whether the runtime has what the engine does not know: the tool may be running */
#define RESERVE_MS 5000 /* and this is the removal's own, whatever the runtime takes for what it has */
#define AGAIN_MS 300    /* a create that was under way when its client died may still come */
#define CEASE_MS 1000   /* what held a container that is gone ends by itself within that, or never */
#define KILL_MS 2000
#define CLIENT_MS 1500  /* a client that is asked to end has so long */
#define ABSENCES 3      /* looks, with that pause between them, before what was never seen is believed to be gone */

static int remove_by_engine(const struct rv_engine *engine, const char *name, int64_t deadline, struct rv_error *err)
{
	const char *const args[] = { "rm", "-f", "-v", name, NULL };
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer complaint = RV_BUFFER_INIT;
	int absences = 0;

	while (rv_clock_left_ms(deadline) > 0) {
		int status = rv_engine_ask(engine, args, rv_clock_left_ms(deadline), &out, &complaint, err);

		if (status == 0 && out.len > 0) /* it names what it removed */
			return 0;
		status = rv_engine_has(engine, name, deadline, err);
		absences = status == 0 ? absences + 1 : 0;
		if (absences == ABSENCES)
			return 0;
		rv_clock_pause_ms(AGAIN_MS);
	}
	if (err->code == RV_E_NONE)
		(void)rv_error_set(err, RV_E_IO, 0, "container %s is still there", name);
	return -1;
}

/* What the engine forgot: see helpers.h.  What it is still putting away is let be for a moment. */
static int end_holders(const char *name, struct rv_error *err)
{
	int64_t began = rv_clock_mono_ms();
	int alive;

	while ((alive = rv_helpers_signal(name, RV_HELPERS_HOLDERS, 0)) > 0) {
		int64_t waited = rv_clock_mono_ms() - began;

		if (waited >= CEASE_MS + KILL_MS)
			return rv_error_set(err, RV_E_IO, 0, "%d processes that held container %s are still there", alive, name);
		if (waited >= CEASE_MS)
			(void)rv_helpers_signal(name, RV_HELPERS_HOLDERS, SIGKILL);
		rv_clock_pause_ms(20);
	}
	return alive == 0 ? 0 : rv_error_set(err, RV_E_IO, 0, "/proc: cannot be read: what held container %s may be there", name);
}

/* A client that nobody was left to kill would make the container yet.  It is asked first: see CLIENT_MS in
 * lib/process/worker.c. */
static void end_clients(const char *name)
{
	int64_t began = rv_clock_mono_ms();

	if (rv_helpers_signal(name, RV_HELPERS_CLIENTS, SIGTERM) <= 0)
		return;
	while (rv_clock_mono_ms() - began < CLIENT_MS && rv_helpers_signal(name, RV_HELPERS_CLIENTS, 0) > 0)
		rv_clock_pause_ms(20);
	(void)rv_helpers_signal(name, RV_HELPERS_CLIENTS, SIGKILL);
}

/* Before the engine forgets it: who dies in between leaves it to be found. */
static int clear_runtime(const struct rv_engine *engine, const char *name, int64_t deadline, struct rv_error *err)
{
	struct rv_remnant remnant;
	int remains = rv_remnant_ask(&remnant, engine, name, rv_clock_mono_ms() + ASK_MS, err);

	if (remains <= 0)
		return remains;
	if (end_holders(name, err) != 0) /* who would yet make it */
		return -1;
	return rv_remnant_delete(&remnant, engine, deadline, err);
}

int rv_container_remove(const struct rv_engine *engine, const char *name, bool killed, struct rv_error *err)
{
	int64_t deadline = rv_clock_mono_ms() + REMOVE_MS;
	struct rv_error left = RV_ERROR_INIT;
	int cleared;

	end_clients(name);
	cleared = killed ? clear_runtime(engine, name, deadline - RESERVE_MS, &left) : 0;
	if (remove_by_engine(engine, name, deadline, err) != 0 || end_holders(name, err) != 0)
		return -1;
	if (cleared == 0)
		return 0;
	*err = left;
	return rv_error_wrap(err, "the container is gone, and perhaps not what its runtime has of it");
}

void rv_container_undo_words(struct rv_words *out, const struct rv_engine *engine, const char *name)
{
	int entries = 0;

	while (engine->envp[entries] != NULL)
		entries++;
	rv_words_add(out, name);
	rv_words_printf(out, "%d", entries);
	rv_words_add_all(out, (const char *const *)engine->envp);
	rv_words_add_all(out, (const char *const *)engine->words);
}

int rv_container_undo(char *const *words, bool killed)
{
	struct rv_error err = RV_ERROR_INIT;
	long long entries = 0;
	char **envp;
	struct rv_engine engine;

	if (rv_text_integer(words[1], 0, 1000000, &entries, &err) != 0)
		return 1;
	envp = calloc((size_t)entries + 1, sizeof *envp);
	if (envp == NULL)
		return 1;
	memcpy(envp, words + 2, (size_t)entries * sizeof *envp);
	engine = (struct rv_engine){ words + 2 + entries, envp };
	entries = rv_container_remove(&engine, words[0], killed, &err);
	free(envp);
	return entries == 0 ? 0 : 1;
}

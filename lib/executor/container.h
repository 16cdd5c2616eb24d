/*
 * A tool in a one-shot container (contract, section 6, Containers), by an engine's own client: docker, podman, or
 * what speaks their command line.  The client is the only thing that this process starts; the container is the
 * engine's, so it is told apart, asked and removed by its name, `rv-exec-ATTEMPT`, and never by its client's life.
 *
 *   created without --rm, so that the engine can be asked how it ended: 125, 126 and 127 are its own or the tool's
 *   killed and removed by name: behind the answer where the tool ended by itself; before it where it was killed,
 *   or where only its client ended;
 *   by the slot's worker where this process died
 *   a stream's next call has its turn meanwhile: each job has a second slot for what is only being removed
 *   values by name alone (-e NAME): they are in the client's environment and in no argv
 *   never pulled within a call
 */
#ifndef RV_EXECUTOR_CONTAINER_H
#define RV_EXECUTOR_CONTAINER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/executor/engine.h"
#include "lib/executor/environment.h"
#include "lib/executor/isolation.h"
#include "lib/executor/words.h"

#define RV_CONTAINER_NAME "rv-exec-"          /* and the attempt's id */
#define RV_CONTAINER_LABEL "rv-exec.attempt"

enum rv_pull { RV_PULL_NEVER, RV_PULL_MISSING, RV_PULL_ALWAYS };

/* Borrowed; strings as the engine's client takes them. */
struct rv_container_options {
	const char *image;   /* NULL: there is no container executor */
	const char *engine;  /* the client and its global flags, words by POSIX quoting */
	const char *network;
	const char *memory;
	const char *cpus;
	int64_t pids_limit;
	bool writable_root;
	const char *cap_drop;
	const char *work_mount;
	int pull;            /* enum rv_pull: before the first call */
	const char *const *engine_args; /* flags of `run`, NULL-terminated */
};

struct rv_container {
	const struct rv_container_options *options;
	struct rv_words words; /* the client and its global flags */
	struct rv_engine engine;
	bool is_podman;          /* by its name, or by what it says of itself */
	struct rv_words set_up; /* flags of `run` that are the same for every call */
	struct rv_error refusal; /* why no call can be run; RV_E_NONE */
};

extern const struct rv_isolation rv_isolation_container; /* isolation_data is a struct rv_container */

/* The engine's client, found; nothing is asked.  RV_E_CONFIG. */
int rv_container_find_engine(struct rv_container *container, const char *engine, char *const *envp, struct rv_error *err);
/* Look at the engine and the image, and pull it where that is wanted: what is missing is container->refusal, and no
 * failure of this function.  `set_env` (NULL-terminated) must not contradict what the client reads itself. */
int rv_container_open(struct rv_container *container, const struct rv_container_options *options, char *const *envp,
		      const char *workdir_base, const char *const *set_env, struct rv_error *err);
void rv_container_release(struct rv_container *container); /* zeroed is fine */

/* May the tool have this value ("NAME=VALUE") by its name alone?  What the client reads itself, to find its engine and
 * its store, it must have as everybody who asks after the container has it: else one engine would run what another is
 * asked for, and told to remove.  *has: the client has it, and so will the tool.  RV_E_CONFIG. */
int rv_container_check_value(const struct rv_engine *engine, const char *entry, bool *has, struct rv_error *err);

/* Kill and remove a container by its name, also one that is yet to be created.  `killed`: its client may have ended
 * within the create, and what the OCI runtime has of it is looked for, too.  0: it is certain that it is gone. */
int rv_container_remove(const struct rv_engine *engine, const char *name, bool killed, struct rv_error *err);
/* The same as a slot's undo function: the words that rv_container_undo_words() made. */
int rv_container_undo(char *const *words, bool killed);
void rv_container_undo_words(struct rv_words *out, const struct rv_engine *engine, const char *name);

#endif

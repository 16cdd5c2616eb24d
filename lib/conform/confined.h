/*
 * A run of ADAPTER --confine, as rv-confine(1) takes it, and what is expected of its result: scenes as data.
 *
 * A scene has DIR/prog/main.sh as its program, run by /bin/sh, DIR/in as its input, and DIR/root for the slots.  What is
 * expected of the result is one line each:
 *
 *     PATH=JSON    the member at PATH (names with dots between) is this value; "null" also where there is none
 *     PATH~TEXT    its JSON has this text in it
 *     out=TEXT     the program's standard output; outlen=N: its length
 *     root=NAMES   what is left in DIR/root, sorted, one space between
 *     file=TEXT    the content of DIR/file
 */
#ifndef RV_CONFORM_CONFINED_H
#define RV_CONFORM_CONFINED_H

#include "lib/conform/trial.h"

struct rv_scene {
	const char *id;             /* of its check */
	const char *script;         /* main.sh; NULL: it prints "ran" */
	const char *prepare;        /* shell text, run in DIR before; may be NULL */
	const char *event;          /* --on-event: at this one run `hook`, shell text, in DIR with $namespace, $pid and */
	const char *hook;           /* $PPID, which is rv-confine itself */
	const char *runtime;        /* {dir} is DIR; NULL: /bin/sh */
	const char *const *options; /* NULL-terminated, {dir} is DIR; may be NULL */
	int status;                 /* the exit status that is due */
	const char *const *expect;  /* NULL-terminated */
};

/* Play the scene of the trial's check. */
bool rv_scene_play(struct rv_trial *trial, const struct rv_scene *scenes, size_t count);

/* ---- the pieces ---- */

/* Its directories, its program and its hook. */
bool rv_scene_set(struct rv_trial *trial, const struct rv_scene *scene);
/* Words behind the adapter for this scene, with `more` (NULL: --unpinned); NULL noted. */
const char *const *rv_scene_words(struct rv_trial *trial, const struct rv_scene *scene, const char *const *more);
/* The status, and each line of `expect`, of this command's first line. */
bool rv_scene_expect(struct rv_trial *trial, const struct rv_scene *scene, const struct rv_command *command);
/* One expectation of a result. */
bool rv_confined_expect(struct rv_trial *trial, const struct rv_json_node *result, const char *expectation);
/* A one-line question, `--confine` and these words; its first line of output without the newline, NULL noted. */
const char *rv_confined_ask(struct rv_trial *trial, const char *const *words, int status);
/* A value in canonical form; "null" where there is none. */
const char *rv_confined_json(struct rv_trial *trial, const struct rv_json_node *node);
/* Shell text in DIR. */
bool rv_confined_shell(struct rv_trial *trial, const char *text);

#endif

#include "lib/conform/hostile.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/conform/rows.h"
#include "lib/conform/stream.h"
#include "lib/conform/suites.h"
#include "lib/process/spawn.h"

#define JOBS 2
#define ALL_JOBS 4
#define CAP (1 << 20)
#define TIMEOUT 10000     /* of tools that end by themselves, or are ended for something else */
#define AT_ONCE 7000      /* within which those are answered: the rest is for the machine */
#define SHORT_TIMEOUT 2500 /* of ordinary tools beside, too: those of a loaded machine take their time */
#define GRACE 200
#define LATE (1000 + 4000) /* the promise is one second, the rest is for the machine */

/* What an ordinary tool sees of the ones before it; no program but the shell, so that it is quick.  It waits for
 * its twin ($5), so that the two look at two slots.  Signals 32 and 33 are libc's own: an executor that has no other way
 * than sigaction(3) cannot reset them where whoever started it ignores them. */
#define LOOKS_AROUND \
	"bad=; read -r line; n=0; " \
	"for f in * .[!.]* ..?*; do [ ! -e \"$f\" ] && [ ! -h \"$f\" ] || bad=\"$bad a workdir that is not empty;\"; done; " \
	"for f in /proc/self/fd/*; do case ${f##*/} in 0 | 1 | 2) ;; *) [ ! -e \"$f\" ] || bad=\"$bad descriptor ${f##*/};\" ;; esac; done; " \
	"while read -r name value; do case $name in SigBlk: | SigIgn:) " \
	"case $value in 0000000[01][08]0000000) ;; *) bad=\"$bad $name $value;\" ;; esac ;; " \
	"NoNewPrivs:) [ \"$value\" = 1 ] || bad=\"$bad new privileges;\" ;; esac; done </proc/self/status; " \
	"case $(umask) in 0022 | 022 | 22) ;; *) bad=\"$bad a umask;\" ;; esac; " \
	"case $line in *\"\\\"$RULVAR_IDEMPOTENCY_KEY\\\"\"*) ;; *) bad=\"$bad words that are not its own;\" ;; esac; " \
	"read -r self rest </proc/self/stat; " \
	"if [ \"$PPID\" = 1 ] && [ \"$self\" = $$ ]; then for p in /proc/[0-9]*; do case ${p##*/} in 1 | $$) ;; " \
	"*) [ ! -d \"$p\" ] || bad=\"$bad a process beside it;\" ;; esac; done; fi; " \
	": >\"$1/$4\"; while [ ! -e \"$1/$5\" ] && [ $n -lt 300 ]; do sleep 0.01; n=$((n+1)); done; " \
	"[ -e \"$1/$5\" ] || bad=\"$bad its twin does not run at the same time;\"; " \
	"printf '\"%s\"' \"${bad:-$RULVAR_IDEMPOTENCY_KEY}\""

/* An ordinary tool that is at work until the hostile one is over, or for a fifth of a second. */
#define STAYS_BESIDE \
	"inside \"$1\"; read -r line; : >mine; : >\"$1/$4\"; n=0; " \
	"while [ ! -e \"$1/over\" ] && [ $n -lt 5 ]; do sleep 0.04; n=$((n+1)); done; [ -e mine ] || echo 0; " \
	"case $line in *\"\\\"$RULVAR_IDEMPOTENCY_KEY\\\"\"*) printf '\"%s\"' \"$RULVAR_IDEMPOTENCY_KEY\" ;; *) echo 0 ;; esac"

struct scene {
	struct rv_trial *trial;
	const struct rv_hostile *tool;
	struct rv_stream *stream;
	const struct rv_json_node *containment; /* as the first reply has it */
	const struct rv_call *beside;
	size_t besides;
	int descriptors; /* of the adapter at rest; -1: not to be seen */
};

/* ---- the ordinary tools ---- */

/* What holds of every reply. */
static bool is_sound(struct scene *scene, const struct rv_call *call)
{
	const struct rv_json_node *containment = rv_json_get(call->reply, "containment");
	const struct rv_json_node *survivors = rv_json_get(call->reply, "survivors");
	bool ran = !rv_member_is(rv_json_get(call->reply, "error"), "code", "spawn");
	int64_t count;

	if (scene->containment == NULL)
		scene->containment = containment;
	if ((scene->trial->declared & RV_CAN_CONTAIN) == 0 || !ran)
		return true;
	return rv_expect_call(scene->stream, call, survivors != NULL && rv_json_integer(survivors, &count) && count == 0,
			      "survivors is not 0") &&
	       rv_expect_call(scene->stream, call, rv_json_is_string(containment) && rv_json_is_string(scene->containment) &&
			      rv_span_equal(rv_json_string(containment), rv_json_string(scene->containment)),
			      "containment is not what it was said to be before");
}

/* Its result is its own key. */
static bool is_unharmed(struct scene *scene, const struct rv_call *call)
{
	const char *key = rv_trial_printf(scene->trial, "\"key-%s-%s\"", scene->trial->nonce, call->id);

	return key != NULL && rv_stream_await(scene->stream, call, call->sent_ms + AT_ONCE, true) &&
	       rv_expect_value(scene->stream, call, key) && is_sound(scene, call);
}

static bool look_around(struct scene *scene, const char *one, const char *two)
{
	const char *const words[] = { one, two, NULL };
	const char *const others[] = { two, one, NULL };
	const struct rv_call *first = rv_stream_script(scene->stream, one, LOOKS_AROUND, words);
	const struct rv_call *second = rv_stream_script(scene->stream, two, LOOKS_AROUND, others);

	return first != NULL && second != NULL && is_unharmed(scene, first) && is_unharmed(scene, second);
}

/* Begin another one, and see it at work. */
static bool stay_beside(struct scene *scene)
{
	const char *id = rv_trial_printf(scene->trial, "beside-%zu", scene->besides++);
	const char *words[] = { id, NULL };
	const char *path = id != NULL ? rv_trial_path(scene->trial, id) : NULL;

	scene->beside = path != NULL ? rv_stream_script(scene->stream, id, STAYS_BESIDE, words) : NULL;
	while (scene->beside != NULL && !rv_trial_exists(path)) {
		(void)rv_stream_await(scene->stream, scene->beside, rv_clock_mono_ms() + 2, false);
		if (scene->trial->record->verdict != RV_UNDECIDED)
			return false;
		if (!rv_expect_call(scene->stream, scene->beside, scene->beside->reply == NULL || rv_trial_exists(path),
				    "answered without having run") ||
		    !rv_expect_call(scene->stream, scene->beside,
				    rv_clock_mono_ms() < scene->beside->sent_ms + AT_ONCE, "it is not begun"))
			return false;
	}
	return scene->beside != NULL;
}

/* ---- the hostile tool ---- */

static const struct rv_call *let_loose(struct scene *scene, const char *id)
{
	const struct rv_hostile *tool = scene->tool;
	struct rv_trial *trial = scene->trial;
	static char self[4096];
	const char *const trick[] = {
		"--trick", tool->trick, "--", trial->dir, trial->nonce, trial->pidns, NULL,
	};
	char *word = tool->word > 0 ? rv_trial_alloc(trial, tool->word + 1) : NULL;
	const char *words[] = { word, NULL };
	const char *program = tool->program != NULL ? tool->program : rv_trial_path(trial, id);
	ssize_t n;

	if (tool->script != NULL)
		return rv_stream_script(scene->stream, id, tool->script, NULL);
	if (tool->trick != NULL) {
		n = readlink("/proc/self/exe", self, sizeof self - 1);
		self[n > 0 ? n : 0] = '\0';
		return rv_stream_program(scene->stream, id, self, trick);
	}
	if (program == NULL ||
	    (tool->placed != NULL && !rv_trial_write(trial, program, rv_span_of(tool->placed), tool->mode)))
		return NULL;
	if (word != NULL)
		memset(word, 'x', tool->word);
	return rv_stream_program(scene->stream, id, program, words);
}

/* In time, with an ordinary one beside it all the while. */
static bool is_answered(struct scene *scene, const struct rv_call *hostile)
{
	int64_t until = hostile->sent_ms + (scene->tool->short_timeout ? SHORT_TIMEOUT + GRACE + LATE : AT_ONCE);

	while (!rv_stream_await(scene->stream, hostile, rv_clock_mono_ms() + 20, false)) {
		if (scene->trial->record->verdict != RV_UNDECIDED ||
		    !rv_expect_call(scene->stream, hostile, rv_clock_mono_ms() < until, "no reply in time"))
			return false;
		if (scene->beside->reply != NULL && (!is_unharmed(scene, scene->beside) || !stay_beside(scene)))
			return false;
	}
	return rv_trial_write(scene->trial, rv_trial_path(scene->trial, "over"), RV_SPAN(""), 0644);
}

static bool is_what_was_due(struct scene *scene, const struct rv_call *hostile)
{
	static const char *const lies[] = { "not contained", "not in a workdir", "traced its guard" };
	const struct rv_hostile *tool = scene->tool;

	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		if (!rv_expect_call(scene->stream, hostile, !rv_member_is(hostile->reply, "result", lies[i]), "it was %s", lies[i]))
			return false;
	}
	if (tool->any_end)
		return true;
	if (tool->code != NULL)
		return rv_expect_code(scene->stream, hostile, tool->code);
	return rv_expect_value(scene->stream, hostile, tool->result != NULL ? tool->result : "1");
}

static bool is_weak(const struct scene *scene)
{
	return rv_json_is_string(scene->containment) &&
	       rv_span_equal(rv_json_string(scene->containment), RV_SPAN("subreaper"));
}

static int descriptors(struct scene *scene)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/fd", (int)scene->stream->command->child.pid);
	return rv_trial_entries(path);
}

/* What a tool holds open may be open here for a moment more. */
static bool holds_no_more(struct scene *scene)
{
	int64_t until = rv_clock_mono_ms() + 2000;

	while (scene->descriptors >= 0 && descriptors(scene) > scene->descriptors) {
		if (!rv_expect(scene->trial, rv_clock_mono_ms() < until, "the adapter holds %d descriptors, and held %d before the hostile tool",
			       descriptors(scene), scene->descriptors))
			return false;
		rv_clock_pause_ms(5);
	}
	return true;
}

static bool play_one(struct scene *scene)
{
	const struct rv_call *hostile;

	if (!look_around(scene, "first-1", "first-2"))
		return false;
	if (scene->tool->apart && is_weak(scene))
		return rv_skip(scene->trial, "its tools are contained by \"subreaper\": this one is let loose only in a PID namespace");
	scene->descriptors = descriptors(scene);
	hostile = stay_beside(scene) ? let_loose(scene, "hostile") : NULL;
	return hostile != NULL && is_answered(scene, hostile) && is_sound(scene, hostile) &&
	       is_what_was_due(scene, hostile) && is_unharmed(scene, scene->beside) &&
	       look_around(scene, "after-1", "after-2") && holds_no_more(scene);
}

/* ---- before and after ---- */

static bool set_up(struct scene *scene)
{
	struct rv_trial *trial = scene->trial;
	const char *victim = rv_trial_path(trial, "victim");
	const char *file = rv_trial_path(trial, "victim/file");

	return victim != NULL && file != NULL &&
	       rv_expect(trial, mkdir(victim, 0755) == 0 && chmod(victim, 0755) == 0, "%s: %s", victim, strerror(errno)) &&
	       rv_trial_write(trial, file, RV_SPAN("precious\n"), 0644);
}

static bool is_outside_untouched(struct scene *scene)
{
	struct rv_trial *trial = scene->trial;
	const char *victim = rv_trial_path(trial, "victim");
	const struct rv_buffer *text = rv_trial_read(trial, rv_trial_path(trial, "victim/file"));
	struct stat info;

	return rv_expect(trial, text != NULL && text->len == 9 && memcmp(text->data, "precious\n", 9) == 0 &&
			 rv_trial_entries(victim) == 1 && stat(victim, &info) == 0 && (info.st_mode & 07777) == 0755,
			 "what a link pointed at was touched");
}

static size_t pick(const struct rv_rows *rows, const char *phase, const struct rv_json_node **picked)
{
	size_t count = 0;

	for (size_t i = 0; i < rows->count; i++) {
		if (rv_member_is(rows->row[i], "phase", phase))
			picked[count++] = rows->row[i];
	}
	return count;
}

static bool is_paired(struct scene *scene)
{
	struct rv_trial *trial = scene->trial;
	const struct rv_rows *rows;
	const struct rv_json_node **intent, **outcome;
	size_t outcomes, intents, pairs = 0;

	if ((trial->declared & RV_CAN_LEDGER) == 0)
		return true;
	rows = rv_rows_read(trial, trial->ledger);
	intent = rows != NULL ? rv_trial_alloc(trial, (rows->count + 1) * sizeof *intent) : NULL;
	outcome = rows != NULL ? rv_trial_alloc(trial, (rows->count + 1) * sizeof *outcome) : NULL;
	if (intent == NULL || outcome == NULL)
		return false;
	intents = pick(rows, "intent", intent);
	outcomes = pick(rows, "outcome", outcome);
	for (size_t i = 0; i < intents; i++) {
		for (size_t j = 0; j < outcomes; j++)
			pairs += rv_member_same(intent[i], outcome[j], "attemptId");
	}
	return rv_expect(trial, outcomes == scene->stream->count, "%zu outcome rows of %zu calls", outcomes,
			 scene->stream->count) &&
	       rv_expect(trial, (trial->declared & RV_CAN_TWO_PHASE) == 0 || (intents == outcomes && pairs == intents),
			 "%zu intents of %zu calls, %zu of them resolved", intents, scene->stream->count, pairs);
}

/* One stream and one play on it. */
static bool stage(struct scene *scene, int64_t jobs, bool (*play)(struct scene *scene))
{
	struct rv_trial *trial = scene->trial;
	const struct rv_stream_plan plan = {
		.jobs = jobs,
		.timeout_ms = scene->tool != NULL && scene->tool->short_timeout ? SHORT_TIMEOUT : TIMEOUT,
		.grace_ms = GRACE,
		.max_output = CAP,
		.ledger = (trial->declared & RV_CAN_LEDGER) != 0 ? trial->ledger : NULL,
	};

	scene->stream = set_up(scene) ? rv_stream_open(trial, &plan) : NULL;
	if (scene->stream == NULL || !play(scene) || !rv_stream_end(scene->stream))
		return false;
	return rv_expect(trial, rv_trial_none_left(trial, 1000), "%zu processes of the tools still run, or children of theirs",
			 rv_trial_alive(trial)) &&
	       rv_expect(trial, rv_trial_entries(trial->base) == 0, "%d entries are left in the workdirs' base",
			 rv_trial_entries(trial->base)) &&
	       is_paired(scene) && is_outside_untouched(scene);
}

bool rv_hostile_run(struct rv_trial *trial)
{
	const struct rv_hostile *tool = trial->check->data;
	struct scene scene = { .trial = trial, .tool = tool, .descriptors = -1 };

	rv_did(trial, "sent through one stream, with ordinary tools before, beside and behind it: %s%s",
	       tool->trick != NULL ? "rv-conform --trick " : "",
	       tool->script != NULL ? tool->script : tool->trick != NULL ? tool->trick :
	       tool->program != NULL ? tool->program : tool->placed);
	return stage(&scene, JOBS, play_one);
}

/* ---- all of them ---- */

static bool is_for_all(const struct scene *scene, const struct rv_check *check)
{
	const struct rv_hostile *tool = check->data;

	return tool != NULL && !tool->short_timeout && !(tool->apart && is_weak(scene)) &&
	       (check->needs & ~scene->trial->declared) == 0;
}

static bool play_all(struct scene *scene)
{
	static const struct rv_check *const tables[] = { rv_checks_hostile, rv_checks_hostile_ends };
	const struct rv_call *calls[RV_STREAM_CALLS];
	const struct rv_hostile *tools[RV_STREAM_CALLS];
	size_t count = 0;

	if (!look_around(scene, "first-1", "first-2"))
		return false;
	for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
		for (const struct rv_check *check = tables[t]; check->id != NULL; check++) {
			if (!is_for_all(scene, check))
				continue;
			scene->tool = tools[count] = check->data;
			calls[count] = let_loose(scene, check->id);
			if (calls[count++] == NULL)
				return false;
		}
	}
	for (size_t i = 0; i < count; i++) {
		scene->tool = tools[i];
		if (!rv_stream_await(scene->stream, calls[i], scene->trial->deadline_ms, true) ||
		    !is_sound(scene, calls[i]) || !is_what_was_due(scene, calls[i]))
			return false;
	}
	return look_around(scene, "after-1", "after-2");
}

bool rv_hostile_run_all(struct rv_trial *trial)
{
	struct scene scene = { .trial = trial };

	rv_did(trial, "sent every hostile tool that ends by itself through one stream, %d at a time", ALL_JOBS);
	return stage(&scene, ALL_JOBS, play_all);
}

/* ---- what this host lets be ---- */

static int end_at_once(void *data)
{
	(void)data;
	return 0;
}

static bool host_has_namespaces(void)
{
	static const uint64_t ways[] = { CLONE_NEWPID, CLONE_NEWUSER | CLONE_NEWPID };

	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		const struct rv_spawn_plan plan = {
			.namespaces = ways[i], .child = end_at_once,
			.parent_setup = (ways[i] & CLONE_NEWUSER) != 0 ? rv_spawn_map_self : NULL,
		};
		struct rv_child child = RV_CHILD_INIT;
		struct rv_error ignored = RV_ERROR_INIT;

		if (rv_spawn(&plan, &child, &ignored) == 0) {
			(void)rv_child_kill(&child, 2000, NULL);
			return true;
		}
	}
	return false;
}

bool rv_hostile_containment(struct rv_trial *trial)
{
	struct scene scene = { .trial = trial };
	const struct rv_stream_plan plan = { .jobs = JOBS, .timeout_ms = TIMEOUT, .grace_ms = GRACE, .max_output = CAP };

	rv_did(trial, "sent two ordinary tools through one stream, and looked at \"containment\" in their replies");
	scene.stream = rv_stream_open(trial, &plan);
	if (scene.stream == NULL || !look_around(&scene, "first-1", "first-2") || !rv_stream_end(scene.stream))
		return false;
	if (!is_weak(&scene))
		return true;
	if (host_has_namespaces())
		return rv_unexpected(trial, "containment is \"subreaper\", and this host has PID namespaces");
	return rv_skip(trial, "this host forbids PID namespaces: its tools are held to what \"subreaper\" promises");
}

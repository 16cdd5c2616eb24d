#include "lib/conform/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/conform/remains.h"
#include "lib/digest/digest.h"
#include "lib/process/descend.h"

enum held_kind { HELD_MEMORY, HELD_BUFFER, HELD_COMMAND, HELD_DOC };

struct rv_held {
	struct rv_held *next;
	enum held_kind kind;
	union {
		void *memory;
		struct rv_buffer buffer;
		struct rv_command command;
		struct rv_json_doc *doc;
	} is;
};

static struct rv_held *hold(struct rv_trial *trial, enum held_kind kind)
{
	struct rv_held *held = calloc(1, sizeof *held);

	if (held == NULL) {
		(void)rv_unexpected(trial, "out of memory in the battery itself");
		return NULL;
	}
	held->kind = kind;
	held->next = trial->held;
	trial->held = held;
	return held;
}

static void drop(struct rv_held *held)
{
	switch (held->kind) {
	case HELD_MEMORY:
		free(held->is.memory);
		break;
	case HELD_BUFFER:
		rv_buffer_release(&held->is.buffer);
		break;
	case HELD_COMMAND:
		rv_command_release(&held->is.command);
		break;
	case HELD_DOC:
		rv_json_doc_free(held->is.doc);
		break;
	}
	free(held);
}

/* ---- begin and end ---- */

static bool make_nonce(struct rv_trial *trial)
{
	unsigned char raw[RV_NONCE - 1];
	struct rv_error err = RV_ERROR_INIT;

	if (rv_random(raw, sizeof raw, &err) != 0)
		return rv_trial_failed(trial, &err);
	for (size_t i = 0; i < sizeof raw; i++)
		trial->nonce[i] = (char)('0' + raw[i] % 10);
	trial->nonce[RV_NONCE - 1] = '\0';
	return true;
}

bool rv_trial_begin(struct rv_trial *trial)
{
	ssize_t n;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	trial->held = NULL;
	if (!make_nonce(trial))
		return false;
	n = readlink("/proc/self/ns/pid", trial->pidns, sizeof trial->pidns - 1);
	trial->pidns[n > 0 ? n : 0] = '\0';
	trial->base = rv_trial_path(trial, "base");
	trial->ledger = rv_trial_path(trial, "effects.jsonl");
	trial->secret = rv_trial_printf(trial, "RV_CONFORM_SECRET=secret-%s", trial->nonce);
	if (trial->base == NULL || trial->ledger == NULL || trial->secret == NULL)
		return false;
	return rv_expect(trial, mkdir(trial->base, 0700) == 0, "%s cannot be made: %s", trial->base, strerror(errno));
}

void rv_trial_end(struct rv_trial *trial)
{
	bool killed = false;

	/* an adapter that the check itself still had running is not what was left behind */
	for (struct rv_held *held = trial->held; held != NULL; held = held->next) {
		if (held->kind == HELD_COMMAND && held->is.command.child.pid > 0) {
			rv_command_release(&held->is.command);
			killed = true;
		}
	}
	(void)(killed && rv_trial_all_gone(trial, 500));
	rv_remains_end(trial->nonce, &trial->record->left);
	while (trial->held != NULL) {
		struct rv_held *held = trial->held;

		trial->held = held->next;
		drop(held);
	}
}

/* ---- memory ---- */

void *rv_trial_alloc(struct rv_trial *trial, size_t size)
{
	struct rv_held *held = hold(trial, HELD_MEMORY);

	if (held == NULL)
		return NULL;
	held->is.memory = calloc(1, size > 0 ? size : 1);
	(void)rv_expect(trial, held->is.memory != NULL, "out of memory in the battery itself");
	return held->is.memory;
}

char *rv_trial_printf(struct rv_trial *trial, const char *format, ...)
{
	struct rv_held *held = hold(trial, HELD_MEMORY);
	char *text = NULL;
	va_list args;
	int n;

	if (held == NULL)
		return NULL;
	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	held->is.memory = n >= 0 ? text : NULL;
	(void)rv_expect(trial, n >= 0, "out of memory in the battery itself");
	return held->is.memory;
}

struct rv_buffer *rv_trial_buffer(struct rv_trial *trial)
{
	struct rv_held *held = hold(trial, HELD_BUFFER);

	return held != NULL ? &held->is.buffer : NULL;
}

/* ---- expectations ---- */

__attribute__((format(printf, 2, 0))) static void note_list(struct rv_note *note, const char *format, va_list args)
{
	char *text = NULL;
	int n = vasprintf(&text, format, args);

	if (n >= 0)
		rv_note_add(note, text, (size_t)n);
	free(n >= 0 ? text : NULL);
}

void rv_did(struct rv_trial *trial, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	rv_note_clear(&trial->record->did);
	note_list(&trial->record->did, format, args);
	va_end(args);
}

bool rv_unexpected(struct rv_trial *trial, const char *format, ...)
{
	va_list args;

	if (trial->record->verdict != RV_UNDECIDED)
		return false;
	va_start(args, format);
	note_list(&trial->record->saw, format, args);
	va_end(args);
	trial->record->verdict = RV_FAIL;
	return false;
}

bool rv_skip(struct rv_trial *trial, const char *format, ...)
{
	va_list args;

	if (trial->record->verdict != RV_UNDECIDED)
		return false;
	va_start(args, format);
	note_list(&trial->record->saw, format, args);
	va_end(args);
	trial->record->verdict = RV_SKIP;
	return false;
}

bool rv_trial_failed(struct rv_trial *trial, const struct rv_error *err)
{
	return rv_unexpected(trial, "%s", err->message);
}

/* ---- programs ---- */

struct rv_command *rv_trial_start(struct rv_trial *trial, const struct rv_command_plan *plan)
{
	struct rv_held *held = hold(trial, HELD_COMMAND);
	struct rv_error err = RV_ERROR_INIT;

	if (held == NULL)
		return NULL;
	if (rv_command_start(&held->is.command, plan, &err) == 0)
		return &held->is.command;
	(void)rv_trial_failed(trial, &err);
	return NULL;
}

struct rv_command *rv_trial_finish(struct rv_trial *trial, struct rv_command *command)
{
	if (command != NULL && rv_command_wait(command, trial->deadline_ms) == 0) {
		rv_command_kill_group(command);
		(void)rv_command_wait(command, rv_clock_mono_ms() + 500);
		command->ended = false;
	}
	return command;
}

struct rv_command *rv_trial_run(struct rv_trial *trial, const struct rv_command_plan *plan)
{
	return rv_trial_finish(trial, rv_trial_start(trial, plan));
}

static struct rv_command *adapter_start(struct rv_trial *trial, const char *const *words, struct rv_span input,
					const char *const *set, unsigned flags)
{
	struct rv_command_plan plan = { .input = input, .set = set, .flags = flags };
	size_t n = 0, count = 0;
	const char **argv;

	while (trial->adapter[n] != NULL)
		n++;
	while (words[count] != NULL)
		count++;
	argv = rv_trial_alloc(trial, (n + count + 1) * sizeof *argv);
	if (argv == NULL)
		return NULL;
	memcpy(argv, trial->adapter, n * sizeof *argv);
	memcpy(argv + n, words, count * sizeof *argv);
	plan.argv = argv;
	return rv_trial_start(trial, &plan);
}

struct rv_command *rv_trial_adapter_start(struct rv_trial *trial, const char *const *words, struct rv_span input)
{
	return adapter_start(trial, words, input, NULL, 0);
}

struct rv_command *rv_trial_adapter_stream(struct rv_trial *trial)
{
	static const char *const words[] = { "--stream", NULL };
	const char **set = rv_trial_alloc(trial, 2 * sizeof *set);

	if (set == NULL)
		return NULL;
	set[0] = trial->secret;
	return adapter_start(trial, words, RV_SPAN(""), set, RV_COMMAND_MORE_INPUT);
}

struct rv_command *rv_trial_adapter(struct rv_trial *trial, const char *const *words, struct rv_span input)
{
	return rv_trial_finish(trial, rv_trial_adapter_start(trial, words, input));
}

int rv_trial_status(const struct rv_command *command)
{
	return command != NULL && command->ended && WIFEXITED(command->status) ? WEXITSTATUS(command->status) : -1;
}

const struct rv_json_node *rv_trial_parse(struct rv_trial *trial, const char *bytes, size_t len)
{
	struct rv_held *held = hold(trial, HELD_DOC);
	struct rv_error err = RV_ERROR_INIT;

	if (held == NULL)
		return NULL;
	held->is.doc = rv_json_doc_new(&err);
	if (held->is.doc == NULL) {
		(void)rv_trial_failed(trial, &err);
		return NULL;
	}
	return rv_json_parse(held->is.doc, bytes != NULL ? bytes : "", len, RV_JSON_DEFAULT, &err);
}

size_t rv_trial_alive(const struct rv_trial *trial)
{
	return rv_remains_count(trial->nonce);
}

bool rv_trial_none_left(const struct rv_trial *trial, int ms)
{
	int64_t until = rv_clock_mono_ms() + ms;

	/* what lost its parents is a child of the trial's, and a zombie until then */
	while (rv_trial_all_gone(trial, rv_clock_left_ms(until)) && rv_descend_signal(0, NULL, 0) > 0) {
		if (rv_clock_mono_ms() >= until)
			return false;
		rv_clock_pause_ms(5);
	}
	return rv_trial_alive(trial) == 0;
}

bool rv_trial_all_gone(const struct rv_trial *trial, int ms)
{
	int64_t until = rv_clock_mono_ms() + ms;

	while (rv_trial_alive(trial) > 0) {
		if (rv_clock_mono_ms() >= until || rv_clock_mono_ms() >= trial->deadline_ms)
			return false;
		rv_clock_pause_ms(10);
	}
	return true;
}

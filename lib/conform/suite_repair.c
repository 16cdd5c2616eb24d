/* ledger: what a repair does to a torn tail, by ADAPTER --repair, and how repairers keep apart. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/conform/expect_repair.h"
#include "lib/conform/rows.h"
#include "lib/conform/suites.h"
#include "lib/conform/vectors.h"

#define TORN "{\"phase\":\"intent\",\"idempotencyKey\":\"k\",\"run"

static const struct rv_command *repair(struct rv_trial *trial, const char *option, const char *file)
{
	const char *words[4] = { "--repair", option != NULL ? option : file, option != NULL ? file : NULL, NULL };

	return file != NULL ? rv_trial_adapter(trial, words, RV_SPAN("")) : NULL;
}

static bool is_unchanged(struct rv_trial *trial, const char *file, struct rv_span before)
{
	const struct rv_buffer *now = rv_trial_read(trial, file);

	return rv_expect(trial, now != NULL && rv_span_equal((struct rv_span){ now->data, now->len }, before),
			 "the file has changed");
}

/* The answer names the action; the file is as the vector says. */
static bool is_repaired(struct rv_trial *trial, const char *file, const struct rv_repair_vector *vector,
			const struct rv_command *command)
{
	const struct rv_json_node *answer = rv_trial_parse(trial, command->said.data, command->said.len);
	const struct rv_json_node *action = rv_json_get(answer, "action");
	const struct rv_buffer *now = rv_trial_read(trial, file);

	return rv_expect(trial, rv_trial_status(command) == 0, "status %d: %.*s", rv_trial_status(command),
			 (int)(command->complained.len < 300 ? command->complained.len : 300), command->complained.data) &&
	       rv_expect(trial, rv_json_is_string(action) && rv_span_equal(rv_json_string(action), vector->action),
			 "the action is not %.*s: %.*s", (int)vector->action.len, vector->action.data,
			 (int)(command->said.len < 300 ? command->said.len : 300), command->said.data) &&
	       rv_expect(trial, now != NULL && rv_repair_vector_holds(vector, (struct rv_span){ now->data, now->len }, true),
			 "the file is not as it should be: %.*s", now != NULL ? (int)(now->len < 1500 ? now->len : 1500) : 0,
			 now != NULL ? now->data : "");
}

struct going {
	struct rv_repair_vector vector;
	char *file;
	struct rv_command *command;
};

static bool begin(struct rv_trial *trial, struct going *going, size_t number)
{
	const char *words[3] = { "--repair", NULL, NULL };

	words[1] = going->file = rv_trial_printf(trial, "%s/vector%zu.jsonl", trial->dir, number);
	if (going->file == NULL || !rv_trial_write(trial, going->file, going->vector.before, 0600))
		return false;
	going->command = rv_trial_adapter_start(trial, words, RV_SPAN(""));
	return going->command != NULL;
}

static bool end(struct rv_trial *trial, const struct going *going)
{
	const struct rv_repair_vector *vector = &going->vector;

	rv_did(trial, "repaired the ledger '%.*s': %.*s", (int)vector->name.len, vector->name.data,
	       (int)(vector->before.len < 1200 ? vector->before.len : 1200), vector->before.data);
	(void)rv_trial_finish(trial, going->command);
	if (!vector->damaged)
		return is_repaired(trial, going->file, vector, going->command);
	return rv_expect(trial, rv_trial_status(going->command) == 4, "interior damage, and status %d",
			 rv_trial_status(going->command)) &&
	       is_unchanged(trial, going->file, vector->before);
}

/* Some at a time: most of a short program's life is waiting for its turn. */
static bool each_vector(struct rv_trial *trial, bool damaged)
{
	struct going going[RV_TRIAL_ABREAST];
	struct rv_span rest = rv_vectors_ledger_repair;
	struct rv_repair_vector vector;
	size_t begun = 0, ended = 0;

	while (rv_repair_vector_next(trial, &rest, &vector)) {
		if (vector.damaged != damaged)
			continue;
		if (begun - ended == RV_TRIAL_ABREAST && !end(trial, &going[ended++ % RV_TRIAL_ABREAST]))
			return false;
		going[begun % RV_TRIAL_ABREAST].vector = vector;
		if (!begin(trial, &going[begun % RV_TRIAL_ABREAST], begun % RV_TRIAL_ABREAST))
			return false;
		begun++;
	}
	while (ended < begun) {
		if (!end(trial, &going[ended++ % RV_TRIAL_ABREAST]))
			return false;
	}
	return rv_expect(trial, begun > 10 && rest.len == 0, "only %zu vectors", begun);
}

static bool run_vectors(struct rv_trial *trial)
{
	return each_vector(trial, false);
}

static bool run_interior(struct rv_trial *trial)
{
	return each_vector(trial, true);
}

static bool run_idempotent(struct rv_trial *trial)
{
	const char *file = rv_trial_path(trial, "torn.jsonl");
	const struct rv_command *first, *second;
	const struct rv_buffer *once;

	if (file == NULL || !rv_trial_write(trial, file, RV_SPAN(TORN), 0600))
		return false;
	first = repair(trial, NULL, file);
	once = rv_trial_read(trial, file);
	second = repair(trial, NULL, file);
	rv_did(trial, "repaired a torn ledger twice");
	return first != NULL && second != NULL && once != NULL &&
	       rv_expect(trial, rv_trial_status(second) == 0 && memmem(second->said.data, second->said.len, "\"none\"", 6) != NULL,
			 "the second time: status %d, %.*s", rv_trial_status(second), (int)second->said.len, second->said.data) &&
	       is_unchanged(trial, file, (struct rv_span){ once->data, once->len });
}

static bool run_check(struct rv_trial *trial)
{
	const char *file = rv_trial_path(trial, "torn.jsonl");
	const struct rv_command *command;

	if (file == NULL || !rv_trial_write(trial, file, RV_SPAN(TORN), 0400))
		return false;
	command = repair(trial, "--check", file);
	rv_did(trial, "checked a read-only torn ledger");
	return command != NULL && rv_expect(trial, rv_trial_status(command) == 1, "status %d, and not 1", rv_trial_status(command)) &&
	       is_unchanged(trial, file, RV_SPAN(TORN));
}

static bool run_missing(struct rv_trial *trial)
{
	const char *file = rv_trial_path(trial, "no-such-ledger.jsonl");
	const struct rv_command *command = repair(trial, NULL, file);

	rv_did(trial, "repaired a ledger that is not there");
	return command != NULL && rv_expect(trial, rv_trial_status(command) == 5, "status %d, and not 5", rv_trial_status(command)) &&
	       rv_expect(trial, !rv_trial_exists(file), "the repair has made it");
}

/* ---- repairers that meet ---- */

static const char *make_sidecar(struct rv_trial *trial, const char *file, time_t age)
{
	const char *path = rv_trial_printf(trial, "%s.repair-lock", file);
	struct timespec times[2] = { { .tv_sec = time(NULL) - age }, { .tv_sec = time(NULL) - age } };

	if (path == NULL || !rv_trial_write(trial, path, RV_SPAN("another-writer-0001"), 0600))
		return NULL;
	return age == 0 || utimensat(AT_FDCWD, path, times, 0) == 0 ? path : NULL;
}

static bool run_held(struct rv_trial *trial)
{
	const char *file = rv_trial_path(trial, "torn.jsonl");
	const char *words[3] = { "--repair", file, NULL };
	int64_t until = rv_clock_mono_ms() + 3000;
	const char *sidecar;
	struct rv_command *command;

	if (file == NULL || !rv_trial_write(trial, file, RV_SPAN(TORN), 0600))
		return false;
	sidecar = make_sidecar(trial, file, 0);
	command = sidecar != NULL ? rv_trial_adapter_start(trial, words, RV_SPAN("")) : NULL;
	if (command == NULL)
		return false;
	rv_did(trial, "repaired a torn ledger while another writer's %s is fresh", sidecar);
	while (rv_clock_mono_ms() < until && rv_command_wait(command, rv_clock_mono_ms() + 200) == 0)
		(void)utimensat(AT_FDCWD, sidecar, NULL, 0); /* its owner is at work */
	if (!is_unchanged(trial, file, RV_SPAN(TORN)) ||
	    !rv_expect(trial, rv_trial_exists(sidecar), "another writer's lock was taken away while it was fresh"))
		return false;
	(void)unlink(sidecar);
	if (!command->ended && rv_command_wait(command, trial->deadline_ms) == 0)
		return rv_unexpected(trial, "it does not go on when the lock is gone");
	return rv_expect(trial, rv_trial_status(command) == 0 || rv_trial_status(command) == 5, "status %d", rv_trial_status(command));
}

static bool steals(struct rv_trial *trial, time_t age)
{
	const char *file = rv_trial_path(trial, "torn.jsonl");
	const struct rv_command *command;
	const char *sidecar;

	if (file == NULL || !rv_trial_write(trial, file, RV_SPAN(TORN), 0600))
		return false;
	sidecar = make_sidecar(trial, file, age);
	command = sidecar != NULL ? repair(trial, NULL, file) : NULL;
	rv_did(trial, "repaired a torn ledger beside a lock whose owner has not touched it for %lld s", (long long)age);
	return command != NULL && rv_expect(trial, rv_trial_status(command) == 0, "status %d", rv_trial_status(command)) &&
	       rv_expect(trial, command->took_ms < 9000, "it took %lld ms", (long long)command->took_ms) &&
	       rv_expect(trial, rv_rows_count(rv_rows_read(trial, file), "torn") == 1, "the tail is not in quarantine") &&
	       rv_expect(trial, !rv_trial_exists(sidecar), "the lock is left behind");
}

static bool run_stale(struct rv_trial *trial)
{
	return steals(trial, 60);
}

static bool run_future(struct rv_trial *trial)
{
	return steals(trial, -3600);
}

const struct rv_check rv_checks_repair[] = {
	{ "repair.vectors", "a torn tail is terminated or quarantined, byte for byte",
	  "Every vector without interior damage becomes exactly what the engine's writer makes of it.",
	  "A tail that is cut is lost, one that is glued onto hides the next row.",
	  "rv-ledger-repair(1)", RV_CAN_REPAIR, run_vectors },
	{ "repair.interior", "interior damage is named and not touched",
	  "Status 4, and not one byte changed.",
	  "Nothing behind damaged bytes may be cut, and nobody can say what they were.",
	  "rv-ledger-repair(1)", RV_CAN_REPAIR, run_interior },
	{ "repair.idempotent", "a second repair has nothing to do",
	  "Its action is none, and the file stays as it is.",
	  "Boot scripts repair at each boot.",
	  "rv-ledger-repair(1)", RV_CAN_REPAIR, run_idempotent },
	{ "repair.check", "a check writes nothing",
	  "It needs no write permission, and ends in status 1 where a repair is due.",
	  "A dry run that writes is none.",
	  "rv-ledger-repair(1)", RV_CAN_REPAIR, run_check },
	{ "repair.missing", "a ledger that is not there is not made",
	  "Status 5.",
	  "A mistyped path would look like a sound, empty ledger.",
	  "rv-ledger-repair(1)", RV_CAN_REPAIR, run_missing },
	{ "lock.held", "another writer's fresh repair lock is respected",
	  "While PATH.repair-lock is touched by its owner the ledger is not changed; when it is gone the repair goes on.",
	  "Two repairers at once erase each other's rows.",
	  "rv-ledger(5)", RV_CAN_REPAIR, run_held },
	{ "lock.stale", "a dead writer's repair lock is stolen",
	  "A lock that was not touched for more than ten seconds holds nobody up, and is removed.",
	  "A crashed repairer would stop every other for ever.",
	  "rv-ledger(5)", RV_CAN_REPAIR, run_stale },
	{ "lock.future", "a repair lock from the future is stolen, too",
	  "A lock that is dated more than ten seconds ahead is stale.",
	  "A clock that was set back would hold everybody up for as long.",
	  "rv-ledger(5)", RV_CAN_REPAIR, run_future },
	{ .id = NULL },
};

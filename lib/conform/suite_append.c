/* ledger: what a dispatch does to the file that it appends to, and to others who do so. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/conform/ask.h"
#include "lib/conform/expect_repair.h"
#include "lib/conform/rows.h"
#include "lib/conform/suites.h"
#include "lib/conform/vectors.h"

#define NEEDS (RV_CAN_LEDGER | RV_CAN_TWO_PHASE)

/* A dispatch onto the vector's bytes leaves them as repaired, and its two rows behind them. */
static bool append_to(struct rv_trial *trial, const struct rv_repair_vector *vector)
{
	const struct rv_ask ask = { .script = "echo 1", .ledger = trial->ledger };
	const struct rv_answer *answer;
	const struct rv_buffer *now;
	size_t more = 0;

	if (!rv_trial_write(trial, trial->ledger, vector->before, 0600))
		return false;
	answer = rv_ask(trial, &ask);
	rv_did(trial, "dispatched onto the ledger '%.*s': %.*s", (int)vector->name.len, vector->name.data,
	       (int)(vector->before.len < 1200 ? vector->before.len : 1200), vector->before.data);
	if (!rv_expect_ok(trial, answer))
		return false;
	now = rv_trial_read(trial, trial->ledger);
	if (!rv_expect(trial, now != NULL && rv_repair_vector_holds(vector, (struct rv_span){ now->data, now->len }, false),
		       "what stood there is not as a repair leaves it: %.*s", now != NULL ? (int)(now->len < 1500 ? now->len : 1500) : 0,
		       now != NULL ? now->data : ""))
		return false;
	for (size_t i = 0; i < now->len; i++)
		more += now->data[i] == '\n';
	for (size_t i = 0; i < vector->after.len; i++)
		more -= vector->after.data[i] == '\n';
	return rv_expect(trial, more == 2 && now->data[now->len - 1] == '\n', "%zu lines were added, and not two", more);
}

/* Every n-th of the vectors that a repair has something to do with (or, `damaged`, must leave alone). */
static bool append_to_each(struct rv_trial *trial, bool damaged, size_t every)
{
	struct rv_span rest = rv_vectors_ledger_repair;
	struct rv_repair_vector vector;
	size_t seen = 0, tried = 0;

	while (rv_repair_vector_next(trial, &rest, &vector)) {
		bool torn = !rv_span_equal(vector.action, RV_SPAN("none"));

		if (damaged ? !vector.damaged || torn : !torn || vector.damaged)
			continue;
		if (seen++ % every != 0)
			continue;
		tried++;
		if (!append_to(trial, &vector))
			return false;
	}
	return rv_expect(trial, tried >= 4 && rest.len == 0, "only %zu vectors", tried);
}

static bool run_torn(struct rv_trial *trial)
{
	return append_to_each(trial, false, 3);
}

static bool run_interior(struct rv_trial *trial)
{
	return append_to_each(trial, true, 7);
}

/* ---- others ---- */

#define WRITERS 8

static const char *long_name(struct rv_trial *trial, size_t len, int which)
{
	char *name = rv_trial_alloc(trial, len + 1);

	if (name != NULL)
		memset(name, 'a' + which, len);
	return name;
}

static bool pairs_up(struct rv_trial *trial, const struct rv_rows *rows)
{
	for (size_t i = 0; rv_rows_nth(rows, "intent", i) != NULL; i++) {
		const struct rv_json_node *intent = rv_rows_nth(rows, "intent", i);
		size_t found = 0;

		for (size_t j = 0; rv_rows_nth(rows, "outcome", j) != NULL; j++)
			found += rv_member_same(intent, rv_rows_nth(rows, "outcome", j), "attemptId") &&
				 rv_member_same(intent, rv_rows_nth(rows, "outcome", j), "runId");
		if (!rv_expect(trial, found == 1, "intent %zu has %zu outcomes", i + 1, found))
			return false;
	}
	return true;
}

static bool run_concurrent(struct rv_trial *trial)
{
	static const size_t lengths[WRITERS] = { 10, 100, 1000, 5000, 20000, 60000, 100000, 10 };
	struct rv_command *commands[WRITERS];
	const struct rv_rows *rows;

	for (int i = 0; i < WRITERS; i++) {
		const struct rv_ask ask = {
			.script = "sleep 0.2; echo 1", .ledger = trial->ledger, .run_id = long_name(trial, lengths[i], i), .timeout_ms = 15000,
		};

		commands[i] = ask.run_id != NULL ? rv_ask_begin(trial, &ask) : NULL;
		if (commands[i] == NULL)
			return false;
	}
	for (int i = 0; i < WRITERS; i++) {
		if (!rv_expect_ok(trial, rv_ask_end(trial, commands[i])))
			return false;
	}
	rv_did(trial, "dispatched %d calls at once onto one ledger, with rows of 300 bytes to 100 kB", WRITERS);
	rows = rv_rows_read(trial, trial->ledger);
	return rows != NULL && rv_expect(trial, rv_rows_count(rows, "intent") == WRITERS && rv_rows_count(rows, "outcome") == WRITERS,
					 "%zu intents and %zu outcomes of %d dispatches", rv_rows_count(rows, "intent"),
					 rv_rows_count(rows, "outcome"), WRITERS) && pairs_up(trial, rows);
}

static bool run_reader(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "echo 1", .ledger = trial->ledger };
	rv_auto_fd int fd = -1;
	const struct rv_answer *answer;

	if (!rv_trial_write(trial, trial->ledger, RV_SPAN(""), 0600))
		return false;
	fd = open(trial->ledger, O_RDONLY | O_CLOEXEC);
	if (!rv_expect(trial, fd >= 0 && flock(fd, LOCK_EX) == 0, "flock"))
		return false;
	answer = rv_ask(trial, &ask);
	rv_did(trial, "dispatched while a reader holds a flock on the ledger");
	return rv_expect_ok(trial, answer) && rv_expect_within(trial, answer, 8000);
}

static bool run_waits(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "echo 1", .ledger = trial->ledger };
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_fd int fd = -1;
	const struct rv_buffer *during;
	struct rv_command *command;

	if (!rv_trial_write(trial, trial->ledger, RV_SPAN(""), 0600))
		return false;
	fd = open(trial->ledger, O_RDWR | O_CLOEXEC);
	if (!rv_expect(trial, fd >= 0 && rv_io_lock(fd, 0, 1LL << 52, rv_clock_mono_ms() + 1000, &err) == 0, "lock: %s", err.message))
		return false;
	command = rv_ask_begin(trial, &ask);
	rv_did(trial, "dispatched while another writer holds the ledger's OFD write lock, for 3.5 s");
	if (command == NULL || !rv_expect_reply(trial, NULL, rv_command_wait(command, rv_clock_mono_ms() + 3500) == 0,
						"it has not waited for the lock"))
		return false;
	during = rv_trial_read(trial, trial->ledger);
	if (!rv_expect(trial, during != NULL && during->len == 0, "it has written under another writer's lock"))
		return false;
	(void)rv_io_unlock(fd, 0, 1LL << 52, &err);
	return rv_expect_ok(trial, rv_ask_end(trial, command)) && rv_expect_attempt(trial, trial->ledger, "ok") != NULL;
}

static bool run_alive(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "echo 1", .ledger = trial->ledger };
	struct rv_rows const *rows;

	for (int i = 0; i < 5; i++) {
		if (!rv_expect_ok(trial, rv_ask(trial, &ask)))
			return false;
	}
	rv_did(trial, "dispatched five times onto one ledger");
	rows = rv_rows_read(trial, trial->ledger);
	return rows != NULL && rv_expect(trial, rows->count == 10, "%zu rows, and not ten", rows->count) && pairs_up(trial, rows);
}

const struct rv_check rv_checks_append[] = {
	{ "append.torn", "nothing is glued onto a torn tail",
	  "A dispatch onto a ledger with a torn tail repairs it first, and its own rows are whole.",
	  "A row that is glued onto torn bytes is lost, and with it an intent.",
	  "rv-ledger(5)", NEEDS, run_torn },
	{ "append.interior", "a dispatch leaves interior damage as it is",
	  "What stands in the ledger stays, byte for byte, and two rows come behind it.",
	  "A writer that tidies up destroys what an operator has to look at.",
	  "rv-ledger(5)", NEEDS, run_interior },
	{ "append.again", "rows are added, and never rewritten",
	  "Five dispatches are ten rows, in five pairs.",
	  "A ledger that is opened anew each time must not begin anew.",
	  "rv-ledger(5)", NEEDS, run_alive },
	{ "append.concurrent", "eight writers at once lose and mix nothing",
	  "Each row is whole, each intent has its outcome, whatever the rows' lengths.",
	  "A row and its newline in two writes meet another's between them.",
	  "rv-ledger(5)", NEEDS, run_concurrent },
	{ "append.reader", "no reader can stop a writer",
	  "A flock by someone who may only read holds no dispatch up.",
	  "Anyone who can read the ledger could stop every worker.",
	  "rv-ledger(5)", NEEDS, run_reader },
	{ "append.waits", "a writer waits for the lock of another",
	  "While another process holds the ledger's OFD write lock nothing is written, and afterwards the dispatch goes on.",
	  "Without it an append may fall into another's repair.",
	  "rv-ledger(5)", NEEDS, run_waits },
	{ .id = NULL },
};

/* key: canonical JSON, document by document and number by number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conform/suites.h"
#include "lib/conform/trial.h"
#include "lib/conform/vectors.h"
#include "lib/digest/digest.h"

static const char *const canonical[] = { "--canonical", NULL };

static struct rv_span text_of(const struct rv_json_node *object, const char *name)
{
	const struct rv_json_node *member = rv_json_get(object, name);

	return rv_json_is_string(member) ? rv_json_string(member) : (struct rv_span){ NULL, 0 };
}

static bool is_true(const struct rv_json_node *object, const char *name)
{
	const struct rv_json_node *member = rv_json_get(object, name);

	return member != NULL && rv_json_type(member) == RV_JSON_TRUE;
}

/* The adapter's canonical form of `input` is `want`. */
static bool expect_canonical(struct rv_trial *trial, struct rv_span input, struct rv_span want)
{
	const struct rv_command *command = rv_trial_adapter(trial, canonical, input);
	struct rv_span got;
	size_t same = 0;
	char how[40];

	if (command == NULL || !rv_expect(trial, rv_trial_status(command) == 0, "ADAPTER --canonical: %s: %.*s",
					  rv_command_how(command, how), (int)command->complained.len, command->complained.data))
		return false;
	got = (struct rv_span){ command->said.data, command->said.len };
	while (same < got.len && same < want.len && got.data[same] == want.data[same])
		same++;
	return rv_expect(trial, rv_span_equal(got, want), "from byte %zu it is %.*s and not %.*s", same,
			 (int)(got.len - same < 80 ? got.len - same : 80), got.data != NULL ? got.data + same : "",
			 (int)(want.len - same < 80 ? want.len - same : 80), want.data + same);
}

static bool run_documents(struct rv_trial *trial)
{
	struct rv_buffer *all = rv_trial_buffer(trial), *want = rv_trial_buffer(trial);
	struct rv_span rest = rv_vectors_json, line;
	struct rv_error err = RV_ERROR_INIT;
	size_t count = 0;

	if (all == NULL || want == NULL)
		return false;
	while (rv_vectors_next(&rest, &line)) {
		const struct rv_json_node *vector = rv_trial_parse(trial, line.data, line.len);
		struct rv_span raw = text_of(vector, "inputBase64"), form = text_of(vector, "canonical");

		if (!is_true(vector, "accept") || form.data == NULL)
			continue;
		rv_buffer_add_byte(all, count == 0 ? '[' : ',');
		rv_buffer_add_byte(want, count++ == 0 ? '[' : ',');
		(void)rv_base64_decode(all, raw.data, raw.len, &err);
		rv_buffer_add(want, form.data, form.len);
	}
	rv_buffer_add_byte(all, ']');
	rv_buffer_add_byte(want, ']');
	rv_did(trial, "asked for the canonical form of an array of %zu documents", count);
	return rv_expect(trial, count > 50 && !all->failed && !want->failed, "only %zu vectors", count) &&
	       expect_canonical(trial, (struct rv_span){ all->data, all->len }, (struct rv_span){ want->data, want->len });
}

struct going {
	struct rv_span name, raw;
	struct rv_command *command;
};

static bool begin(struct rv_trial *trial, struct going *going, const struct rv_json_node *vector)
{
	struct rv_buffer *input = rv_trial_buffer(trial);
	struct rv_error err = RV_ERROR_INIT;

	going->raw = text_of(vector, "inputBase64");
	going->name = text_of(vector, "name");
	if (input == NULL || rv_base64_decode(input, going->raw.data, going->raw.len, &err) != 0)
		return rv_trial_failed(trial, &err);
	going->command = rv_trial_adapter_start(trial, canonical, (struct rv_span){ input->data, input->len });
	return going->command != NULL;
}

static bool end(struct rv_trial *trial, const struct going *going)
{
	const struct rv_command *command = rv_trial_finish(trial, going->command);

	rv_did(trial, "asked for the canonical form of '%.*s' (base64 %.*s)", (int)going->name.len, going->name.data,
	       (int)(going->raw.len < 200 ? going->raw.len : 200), going->raw.data);
	return rv_expect(trial, rv_trial_status(command) > 0 && command->said.len == 0,
			 "it is not refused: status %d, %zu bytes on stdout", rv_trial_status(command), command->said.len);
}

static bool all_refused(struct rv_trial *trial, bool (*chosen)(const struct rv_json_node *vector))
{
	struct going going[RV_TRIAL_ABREAST];
	struct rv_span rest = rv_vectors_json, line;
	size_t begun = 0, ended = 0;

	while (rv_vectors_next(&rest, &line)) {
		const struct rv_json_node *vector = rv_trial_parse(trial, line.data, line.len);

		if (!chosen(vector))
			continue;
		if (begun - ended == RV_TRIAL_ABREAST && !end(trial, &going[ended++ % RV_TRIAL_ABREAST]))
			return false;
		if (!begin(trial, &going[begun++ % RV_TRIAL_ABREAST], vector))
			return false;
	}
	while (ended < begun) {
		if (!end(trial, &going[ended++ % RV_TRIAL_ABREAST]))
			return false;
	}
	return rv_expect(trial, begun > 0, "no vector");
}

static bool is_no_json(const struct rv_json_node *vector)
{
	return !is_true(vector, "accept");
}

/* Documents of great depth have no form in the vectors either: the engine's own recursion ends there. */
static bool has_no_form(const struct rv_json_node *vector)
{
	struct rv_span name = text_of(vector, "name");

	return is_true(vector, "accept") && text_of(vector, "canonical").data == NULL && name.len > 4 &&
	       memcmp(name.data, "num ", 4) == 0;
}

static bool run_refusals(struct rv_trial *trial)
{
	return all_refused(trial, is_no_json);
}

static bool run_overflow(struct rv_trial *trial)
{
	return all_refused(trial, has_no_form);
}

static bool run_numbers(struct rv_trial *trial)
{
	struct rv_buffer *all = rv_trial_buffer(trial), *want = rv_trial_buffer(trial);
	struct rv_span rest = rv_vectors_numbers, line;

	while (all != NULL && want != NULL && rv_vectors_next(&rest, &line)) {
		char hex[17] = "";
		uint64_t bits;
		double value;

		if (line.len < 18)
			continue;
		memcpy(hex, line.data, 16);
		bits = strtoull(hex, NULL, 16);
		memcpy(&value, &bits, sizeof value);
		rv_buffer_printf(all, "%c%.17g", all->len == 0 ? '[' : ',', value); /* no locale is set: a point is a point */
		rv_buffer_add_byte(want, want->len == 0 ? '[' : ',');
		rv_buffer_add(want, line.data + 17, line.len - 17);
	}
	if (all == NULL || want == NULL)
		return false;
	rv_buffer_add_byte(all, ']');
	rv_buffer_add_byte(want, ']');
	rv_did(trial, "asked for the canonical form of an array of some 6000 doubles, each written with 17 digits");
	return expect_canonical(trial, (struct rv_span){ all->data, all->len }, (struct rv_span){ want->data, want->len });
}

const struct rv_check rv_checks_canonical[] = {
	{ "canonical.documents", "canonical form, document by document",
	  "Every accepted document of the vectors has exactly its canonical bytes: members by UTF-16 code unit, the last duplicate, minimal escapes, lone surrogates as they are.",
	  "Keys and hashes are of these bytes: one that differs is another key.",
	  "rv-key(1), --canonical", RV_CAN_CANONICAL, run_documents },
	{ "canonical.refusals", "what JSON.parse refuses is refused",
	  "Every document of the vectors that is no JSON, or no strict UTF-8, is refused with nothing on stdout.",
	  "A document that one side refuses and the other repairs has a key on one side alone.",
	  "rv-key(1), --canonical", RV_CAN_CANONICAL, run_refusals },
	{ "canonical.overflow", "a number that overflows a double is refused",
	  "There is no canonical form of 1e400.",
	  "Written as null it would merge with every other such number.",
	  "rv-key(1), --canonical", RV_CAN_CANONICAL, run_overflow },
	{ "canonical.numbers", "numbers as ECMAScript writes them",
	  "Some 6000 doubles, powers of two and subnormals among them, have exactly ECMAScript's digits.",
	  "The usual loop over printf's precisions is wrong on 46 powers of two.",
	  "rv-key(1), --canonical", RV_CAN_CANONICAL, run_numbers },
	{ .id = NULL },
};

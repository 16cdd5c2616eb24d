/* key: keys in bulk, by ADAPTER --keys. */
#include <string.h>

#include "lib/conform/rows.h"
#include "lib/conform/suites.h"
#include "lib/conform/vectors.h"
#include "lib/json/write.h"

static struct rv_span text_of(const struct rv_json_node *object, const char *name)
{
	const struct rv_json_node *member = rv_json_get(object, name);

	return rv_json_is_string(member) ? rv_json_string(member) : (struct rv_span){ NULL, 0 };
}

static void add_number(struct rv_buffer *out, const struct rv_json_node *vector, const char *name)
{
	int64_t number = 0;

	if (rv_json_get(vector, name) != NULL && rv_json_integer(rv_json_get(vector, name), &number))
		rv_json_member_int(out, name, number);
}

/* An invocation of a vector under a derivation, on one line: a newline in its args is white space. */
static void add_invocation(struct rv_buffer *out, const struct rv_json_node *vector, int derivation)
{
	struct rv_span args = text_of(vector, "argsText");

	rv_buffer_add_byte(out, '{');
	rv_json_member_span(out, "runId", text_of(vector, "runId"));
	if (derivation == 2)
		rv_json_member_span(out, "genesis", text_of(vector, "genesis"));
	rv_json_member_int(out, "execKeyDerivation", derivation);
	add_number(out, vector, "agentSeq");
	add_number(out, vector, "ordinal");
	rv_json_member_span(out, "tool", text_of(vector, "tool"));
	rv_json_add_name(out, "args");
	for (size_t i = 0; i < args.len; i++)
		rv_buffer_add_byte(out, args.data[i] == '\n' ? ' ' : args.data[i]);
	rv_buffer_add_string(out, "}\n");
}

/* The answers to `input`, parsed, NULL-terminated; noted where there are not `count`. */
static const struct rv_json_node **answers(struct rv_trial *trial, const char *const *words, struct rv_span input, size_t count)
{
	const struct rv_command *command = rv_trial_adapter(trial, words, input);
	const struct rv_json_node **all = rv_trial_alloc(trial, (count + 1) * sizeof *all);
	struct rv_span rest, line;
	size_t n = 0;
	char how[40];

	if (command == NULL || all == NULL)
		return NULL;
	rest = (struct rv_span){ command->said.data, command->said.len };
	while (n < count && rv_vectors_next(&rest, &line)) {
		all[n] = rv_trial_parse(trial, line.data, line.len);
		if (!rv_expect(trial, all[n] != NULL, "answer %zu is no JSON: %.*s", n + 1, (int)line.len, line.data))
			return NULL;
		n++;
	}
	return rv_expect(trial, n == count && rest.len == 0, "%zu%s answers to %zu lines (%s)", n, rest.len > 0 ? " and more" : "",
			 count, rv_command_how(command, how)) ? all : NULL;
}

static const struct rv_json_node **vectors(struct rv_trial *trial, size_t *count)
{
	const struct rv_json_node **all = rv_trial_alloc(trial, 4096 * sizeof *all);
	struct rv_span rest = rv_vectors_keys, line;

	*count = 0;
	while (all != NULL && *count < 4095 && rv_vectors_next(&rest, &line))
		all[(*count)++] = rv_trial_parse(trial, line.data, line.len);
	return all;
}

static const char *const keys[] = { "--keys", NULL };

/* Every vector's `member` of the answer is its `want`; where that is null, the answer is an error. */
static bool expect_vectors(struct rv_trial *trial, int derivation, const char *member, const char *want)
{
	size_t count;
	const struct rv_json_node **vector = vectors(trial, &count);
	struct rv_buffer *input = rv_trial_buffer(trial);
	const struct rv_json_node **answer;

	if (vector == NULL || input == NULL)
		return false;
	for (size_t i = 0; i < count; i++)
		add_invocation(input, vector[i], derivation);
	rv_did(trial, "asked ADAPTER --keys for %zu keys of derivation %d", count, derivation);
	answer = answers(trial, keys, (struct rv_span){ input->data, input->len }, count);
	for (size_t i = 0; answer != NULL && i < count; i++) {
		struct rv_span right = text_of(vector[i], want), args = text_of(vector[i], "argsText"), got;

		if (right.data == NULL)
			continue;
		got = text_of(answer[i], member);
		if (!rv_expect(trial, rv_span_equal(got, right), "vector %zu (args %.*s): %s is '%.*s' and not '%.*s'", i + 1,
			       (int)(args.len < 200 ? args.len : 200), args.data, member, (int)got.len, got.data != NULL ? got.data : "",
			       (int)right.len, right.data))
			return false;
	}
	return answer != NULL;
}

static bool run_two(struct rv_trial *trial)
{
	return expect_vectors(trial, 2, "idempotencyKey", "v2");
}

static bool run_one(struct rv_trial *trial)
{
	return expect_vectors(trial, 1, "idempotencyKey", "v1");
}

static bool run_hashes(struct rv_trial *trial)
{
	return expect_vectors(trial, 2, "argsHash", "argsHash");
}

static bool is_refused(const struct rv_json_node *answer, const char *code)
{
	return rv_member_is(rv_json_get(answer, "error"), "code", code) && rv_json_get(answer, "idempotencyKey") == NULL;
}

static bool run_numbers(struct rv_trial *trial)
{
	size_t count;
	const struct rv_json_node **vector = vectors(trial, &count);
	struct rv_buffer *input = rv_trial_buffer(trial);
	const struct rv_json_node **answer;

	if (vector == NULL || input == NULL)
		return false;
	for (size_t i = 0; i < count; i++)
		add_invocation(input, vector[i], 2);
	rv_did(trial, "asked ADAPTER --keys for %zu keys, some with arguments that overflow a double", count);
	answer = answers(trial, keys, (struct rv_span){ input->data, input->len }, count);
	for (size_t i = 0; answer != NULL && i < count; i++) {
		bool refused = text_of(vector[i], "v2").data == NULL;

		if (!rv_expect(trial, refused == is_refused(answer[i], "number"), "vector %zu is %srefused as number", i + 1,
			       refused ? "not " : ""))
			return false;
	}
	return answer != NULL;
}

#define REST "\"agentSeq\":0,\"ordinal\":0,\"tool\":\"t\",\"args\":{}}\n"

/* Each line, and the error that it must give; NULL: a key. */
struct rule {
	const char *line;
	const char *code;
};

static bool expect_rules(struct rv_trial *trial, const char *const *words, const struct rule *rules, size_t count)
{
	struct rv_buffer *input = rv_trial_buffer(trial);
	const struct rv_json_node **answer;

	for (size_t i = 0; input != NULL && i < count; i++)
		rv_buffer_add_string(input, rules[i].line);
	if (input == NULL)
		return false;
	rv_did(trial, "asked ADAPTER %s%s%s: %.*s", words[0], words[1] != NULL ? " " : "", words[1] != NULL ? words[1] : "",
	       (int)input->len, input->data);
	answer = answers(trial, words, (struct rv_span){ input->data, input->len }, count);
	for (size_t i = 0; answer != NULL && i < count; i++) {
		bool right = rules[i].code != NULL ? is_refused(answer[i], rules[i].code) :
			     rv_is_hex64(text_of(answer[i], "idempotencyKey"));

		if (!rv_expect(trial, right, "line %zu is not %s", i + 1, rules[i].code != NULL ? rules[i].code : "given a key"))
			return false;
	}
	return answer != NULL;
}

static bool run_derivations(struct rv_trial *trial)
{
	static const struct rule rules[] = {
		{ "{\"runId\":\"r\"," REST, NULL },
		{ "{\"runId\":\"r\",\"genesis\":\"g\"," REST, "derivation" },
		{ "{\"runId\":\"r\",\"genesis\":\"g\",\"execKeyDerivation\":2," REST, NULL },
		{ "{\"runId\":\"r\",\"genesis\":\"\",\"execKeyDerivation\":2," REST, NULL },
		{ "{\"runId\":\"r\",\"execKeyDerivation\":2," REST, "derivation" },
		{ "{\"runId\":\"r\",\"genesis\":\"g\",\"execKeyDerivation\":3," REST, "derivation" },
	};

	return expect_rules(trial, keys, rules, sizeof rules / sizeof rules[0]);
}

static bool run_recorded(struct rv_trial *trial)
{
	static const char *const words[] = { "--keys", "--recorded", NULL };
	static const struct rule rules[] = {
		{ "{\"runId\":\"r\"," REST, NULL },
		{ "{\"runId\":\"r\",\"genesis\":\"g\"," REST, NULL },
		{ "{\"runId\":\"r\",\"genesis\":\"g\",\"execKeyDerivation\":1," REST, NULL },
		{ "{\"runId\":\"r\",\"execKeyDerivation\":2," REST, "derivation" },
		{ "{\"runId\":\"r\",\"genesis\":\"g\",\"execKeyDerivation\":7," REST, "derivation" },
	};
	struct rv_buffer *input = rv_trial_buffer(trial);
	const struct rv_json_node **answer;

	if (input == NULL || !expect_rules(trial, words, rules, sizeof rules / sizeof rules[0]))
		return false;
	for (size_t i = 0; i < 3; i++)
		rv_buffer_add_string(input, rules[i].line);
	answer = answers(trial, words, (struct rv_span){ input->data, input->len }, 3);
	return answer != NULL && rv_expect(trial, rv_member_same(answer[0], answer[1], "idempotencyKey") &&
					   rv_member_same(answer[0], answer[2], "idempotencyKey"),
					   "a genesis changes a key of derivation 1");
}

static bool run_bad_line(struct rv_trial *trial)
{
	static const char lines[] =
		"{\"id\":\"a\",\"runId\":\"r\"," REST
		"this is no JSON\n"
		"{\"id\":\"c\",\"runId\":\"r\"," REST
		"{\"id\":\"d\",\"runId\":7," REST
		"{\"id\":\"e\",\"runId\":\"r\"," REST;
	const struct rv_json_node **answer;
	int64_t line = 0;

	rv_did(trial, "asked ADAPTER --keys: %s", lines);
	answer = answers(trial, keys, RV_SPAN(lines), 5);
	return answer != NULL &&
	       rv_expect(trial, rv_member_is(answer[0], "id", "a") && rv_member_is(answer[2], "id", "c") &&
			 rv_member_is(answer[4], "id", "e"), "the answers are not in the order of the lines") &&
	       rv_expect(trial, is_refused(answer[1], "request") && is_refused(answer[3], "request"),
			 "a bad line has no error answer of its own") &&
	       rv_expect(trial, rv_json_get(answer[1], "line") != NULL && rv_json_integer(rv_json_get(answer[1], "line"), &line) &&
			 line == 2, "the error does not say line 2");
}

const struct rv_check rv_checks_key[] = {
	{ "keys.two", "keys of derivation 2",
	  "Every vector has exactly its key.",
	  "A key that differs by one vector differs for every run that looks like it.",
	  "rv-key(1)", RV_CAN_KEYS, run_two },
	{ "keys.one", "keys of derivation 1",
	  "Every vector has exactly its key, without the generation token.",
	  "Runs recorded before the token was introduced keep their keys for life.",
	  "rv-key(1)", RV_CAN_KEYS, run_one },
	{ "keys.args-hash", "hashes of arguments",
	  "Every vector has exactly its argsHash.",
	  "It is what joins an approval to its effect.",
	  "rv-key(1)", RV_CAN_KEYS, run_hashes },
	{ "keys.numbers", "arguments that overflow a double have no key",
	  "They are refused as number, and nothing else is.",
	  "Two different numbers would share a key.",
	  "rv-key(1)", RV_CAN_KEYS, run_numbers },
	{ "keys.derivations", "never another version's key",
	  "No derivation and no genesis is 1; a genesis without a derivation, 2 without a genesis and an unknown derivation are refused; an empty genesis is a value.",
	  "A silent fallback flips the keys of a run in its middle.",
	  "rv-key(1)", RV_CAN_KEYS, run_derivations },
	{ "keys.recorded", "recorded runs without a derivation are 1",
	  "With --recorded an absent derivation is 1, and a genesis beside 1 is ignored.",
	  "The dedup state that was gathered for such runs stays valid.",
	  "rv-key(1)", RV_CAN_KEYS, run_recorded },
	{ "keys.bad-line", "a bad line has its own answer, and the rest goes on",
	  "One answer a line, in order; an error says its line.",
	  "One bad line must not cost a million good ones.",
	  "rv-key(1)", RV_CAN_KEYS, run_bad_line },
	{ .id = NULL },
};

/* confine: the other forms of ADAPTER --confine: pins, identities, streams. */
#include <string.h>

#include "lib/conform/confined.h"
#include "lib/conform/rows.h"
#include "lib/conform/suites.h"
#include "lib/digest/digest.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define ZERO "sha256:0000000000000000000000000000000000000000000000000000000000000000"

static const struct rv_scene plain = { .options = NULL };

/* The digest that a question answers with; NULL noted. */
static const char *digest_of(struct rv_trial *trial, const char *const *words)
{
	const char *line = rv_confined_ask(trial, words, 0);
	const struct rv_json_node *answer = line != NULL ? rv_trial_parse(trial, line, strlen(line)) : NULL;
	const char *digest = answer != NULL ? rv_member_text(trial, answer, "digest") : NULL;

	return digest != NULL && rv_expect(trial, strncmp(digest, "sha256:", 7) == 0, "%s has no digest: %.300s", words[1], line) ?
		       digest : NULL;
}

enum pin { PIN_NONE, PIN_RUNTIME, PIN_PROFILE, PIN_PROGRAM };

/* DIR/pins: as they are, but for one. */
static bool write_pins(struct rv_trial *trial, enum pin wrong)
{
	const char *runtime = digest_of(trial, WORDS("--confine", "--describe-runtime", "/bin/sh"));
	const char *profile = digest_of(trial, WORDS("--confine", "--describe-profile"));
	const char *program = digest_of(trial, WORDS("--confine", "--snapshot", rv_trial_path(trial, "prog")));
	const char *input = digest_of(trial, WORDS("--confine", "--snapshot", rv_trial_path(trial, "in")));
	const char *text;

	if (runtime == NULL || profile == NULL || program == NULL || input == NULL)
		return false;
	text = rv_trial_printf(trial, "{\"runtime\":\"%s\",\"profile\":\"%s\",\"program\":\"%s\",\"input\":\"%s\"}\n",
			       wrong == PIN_RUNTIME ? ZERO : runtime, wrong == PIN_PROFILE ? ZERO : profile,
			       wrong == PIN_PROGRAM ? ZERO : program, input);
	return text != NULL && rv_trial_write(trial, rv_trial_path(trial, "pins"), rv_span_of(text), 0600);
}

static bool run_pinned(struct rv_trial *trial, enum pin wrong, int status, const char *const *expect)
{
	const char *const *words;
	struct rv_scene scene = plain;

	scene.status = status;
	scene.expect = expect;
	if (!rv_scene_set(trial, &scene) || !write_pins(trial, wrong))
		return false;
	rv_did(trial, "ran ADAPTER --confine with pins, %s", wrong == PIN_NONE ? "all as they are" : "one of them of something else");
	words = rv_scene_words(trial, &scene, WORDS("--pins", rv_trial_path(trial, "pins")));
	if (words == NULL)
		return false;
	if (status != 2)
		return rv_scene_expect(trial, &scene, rv_trial_adapter(trial, words, RV_SPAN("")));
	return rv_confined_ask(trial, words, status) != NULL && rv_confined_expect(trial, NULL, "root=");
}

static bool run_pins(struct rv_trial *trial)
{
	return run_pinned(trial, PIN_NONE, 0, WORDS("attributable=true", "identities.pinned=true", "out=ran\n", "root="));
}

static bool run_runtime_pin(struct rv_trial *trial)
{
	return run_pinned(trial, PIN_RUNTIME, 3, WORDS("reason=\"runtime-mismatch\"", "namespace=null", "root="));
}

static bool run_profile_pin(struct rv_trial *trial)
{
	return run_pinned(trial, PIN_PROFILE, 3, WORDS("reason=\"profile-mismatch\"", "namespace=null", "root="));
}

static bool run_snapshot_pin(struct rv_trial *trial)
{
	return run_pinned(trial, PIN_PROGRAM, 2, NULL);
}

static bool run_invalid(struct rv_trial *trial)
{
	struct rv_scene scene = plain;
	const char *const *words;
	struct rv_command *command;

	scene.event = "counted";
	scene.hook = "echo x >touched";
	scene.options = WORDS("--entry", "nowhere.sh");
	if (!rv_scene_set(trial, &scene))
		return false;
	words = rv_scene_words(trial, &scene, NULL);
	command = words != NULL ? rv_trial_adapter(trial, words, RV_SPAN("")) : NULL;
	rv_did(trial, "asked for an entry that the program does not have");
	return command != NULL && rv_expect(trial, rv_trial_status(command) == 2 && command->said.len == 0, "not exit status 2 and silence") &&
	       rv_expect(trial, command->complained.len > 0 && strstr(rv_buffer_string(&command->complained), "invalid confined run request: "),
			 "the message is not 'invalid confined run request: ...'") &&
	       rv_expect(trial, !rv_trial_exists(rv_trial_path(trial, "touched")), "a run was begun") &&
	       rv_confined_expect(trial, NULL, "root=");
}

/* By the protocol, computed here. */
static bool run_snapshot(struct rv_trial *trial)
{
	const char *digest, *text;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_sha256 *sha = rv_sha256_new(&err);
	char one[RV_SHA256_HEX], all[RV_SHA256_HEX];
	bool hashed;

	if (!rv_scene_set(trial, &plain) || !rv_confined_shell(trial, "mkdir in/sub in/empty && printf one >in/sub/b && chmod 700 in/data"))
		return false;
	rv_did(trial, "asked for the digest of a directory of two files");
	hashed = sha != NULL && rv_sha256_hex(sha, "data\n", 5, all, &err) == 0 && rv_sha256_hex(sha, "one", 3, one, &err) == 0;
	text = hashed ? rv_trial_printf(trial, "sf-confined-snapshot/1\ndata\t5\t%s\nsub/b\t3\t%s\n", all, one) : NULL;
	hashed = text != NULL && rv_sha256_hex(sha, text, strlen(text), all, &err) == 0;
	rv_sha256_free(sha);
	digest = hashed ? digest_of(trial, WORDS("--confine", "--snapshot", rv_trial_path(trial, "in"))) : NULL;
	return digest != NULL && rv_expect(trial, strcmp(digest + 7, all) == 0, "it is %s, and not sha256:%s", digest, all);
}

static bool run_twice(struct rv_trial *trial)
{
	const struct rv_json_node *result[2];
	const char *const *words;

	if (!rv_scene_set(trial, &plain))
		return false;
	rv_did(trial, "ran the same twice");
	words = rv_scene_words(trial, &plain, NULL);
	for (int i = 0; i < 2; i++) {
		const char *line = words != NULL ? rv_confined_ask(trial, words, 0) : NULL;

		result[i] = line != NULL ? rv_trial_parse(trial, line, strlen(line)) : NULL;
		if (!rv_expect(trial, result[i] != NULL, "no result"))
			return false;
	}
	return rv_confined_expect(trial, result[1], rv_trial_printf(trial, "identities=%s",
								    rv_confined_json(trial, rv_json_get(result[0], "identities")))) &&
	       rv_confined_expect(trial, result[1], "identities.pinned=false") &&
	       rv_confined_expect(trial, result[1], "identities.profile.instantiated~sha256:");
}

static bool run_probe(struct rv_trial *trial)
{
	const char *line;

	rv_did(trial, "asked ADAPTER --confine --probe");
	line = rv_confined_ask(trial, WORDS("--confine", "--probe"), 0);
	return line != NULL && rv_expect(trial, strstr(line, "\"name\":") != NULL, "no facilities: %.300s", line);
}

/* ---- streams ---- */

/* A request on DIR/prog and DIR/in with right pins. */
static const char *request(struct rv_trial *trial, const char *id, const char *runtime)
{
	const char *digest = digest_of(trial, WORDS("--confine", "--describe-runtime", runtime));
	const char *profile = digest_of(trial, WORDS("--confine", "--describe-profile"));
	const char *program = digest_of(trial, WORDS("--confine", "--snapshot", rv_trial_path(trial, "prog")));
	const char *input = digest_of(trial, WORDS("--confine", "--snapshot", rv_trial_path(trial, "in")));

	if (digest == NULL || profile == NULL || program == NULL || input == NULL)
		return NULL;
	return rv_trial_printf(trial,
			       "{\"id\":\"%s\",\"runtime\":{\"path\":\"%s\",\"digest\":\"%s\"},\"profile\":{\"digest\":\"%s\"},"
			       "\"program\":{\"dir\":\"%s/prog\",\"digest\":\"%s\",\"entry\":\"main.sh\",\"args\":[]},"
			       "\"input\":{\"dir\":\"%s/in\",\"digest\":\"%s\"},\"timeoutMs\":20000,\"maxOutputBytes\":4096,"
			       "\"cpuSeconds\":10,\"maxDescriptors\":32}\n",
			       id, runtime, digest, profile, trial->dir, program, trial->dir, input);
}

/* The lines of what was said, parsed; how many. */
static size_t lines_of(struct rv_trial *trial, const struct rv_command *command, const struct rv_json_node **line, size_t room)
{
	const char *at = command->said.len > 0 ? rv_buffer_string(&((struct rv_command *)(uintptr_t)command)->said) : "";
	size_t count = 0;

	while (*at != '\0' && count < room) {
		size_t len = strcspn(at, "\n");

		line[count++] = rv_trial_parse(trial, at, len);
		at += len + (at[len] == '\n');
	}
	return count;
}

static bool run_stream(struct rv_trial *trial)
{
	const struct rv_json_node *line[4];
	const char *one, *two, *input;
	struct rv_command *command;

	if (!rv_scene_set(trial, &plain))
		return false;
	one = request(trial, "one", "/bin/sh");
	two = request(trial, "two", "/bin/sh");
	input = one != NULL && two != NULL ? rv_trial_printf(trial, "%sno json\n%s", one, two) : NULL;
	if (input == NULL)
		return false;
	rv_did(trial, "asked ADAPTER --confine --stream for two runs with a bad line between them");
	command = rv_trial_adapter(trial, WORDS("--confine", "--stream", "--root", rv_trial_path(trial, "root")), rv_span_of(input));
	return command != NULL && rv_expect(trial, lines_of(trial, command, line, 4) == 3, "not three answers") &&
	       rv_expect(trial, rv_trial_status(command) == 2, "the exit is not that of the worst line") &&
	       rv_confined_expect(trial, line[0], "id=\"one\"") && rv_confined_expect(trial, line[0], "attributable=true") &&
	       rv_confined_expect(trial, line[1], "ok=false") && rv_confined_expect(trial, line[1], "line=2") &&
	       rv_confined_expect(trial, line[2], "id=\"two\"") && rv_confined_expect(trial, line[2], "out=ran\n");
}

static bool run_withdrawn(struct rv_trial *trial)
{
	const struct rv_scene scene = { .prepare = "cp /bin/sh rt", .event = "collected",
					.hook = "printf x >>rt" };
	const struct rv_json_node *line[4];
	const char *runtime = rv_trial_path(trial, "rt"), *input;
	struct rv_command *command;

	if (!rv_scene_set(trial, &scene))
		return false;
	input = request(trial, "one", runtime);
	if (input == NULL)
		return false;
	rv_did(trial, "ran a stream that verifies by identity, and changed the runtime behind its run");
	command = rv_trial_adapter(trial, WORDS("--confine", "--stream", "--verify", "identity", "--root", rv_trial_path(trial, "root"),
						"--on-event", rv_trial_printf(trial, "/bin/sh '%s/hook'", trial->dir)), rv_span_of(input));
	if (command == NULL || !rv_expect(trial, lines_of(trial, command, line, 4) >= 1, "no answer"))
		return false;
	return rv_confined_expect(trial, line[0], "attributable=false") && rv_confined_expect(trial, line[0], "problems~runtime changed") &&
	       rv_confined_expect(trial, line[0], "identities.runtime.verified=\"identity\"");
}

#define CLAUSE(section) "rv-confine(1), " section

const struct rv_check rv_checks_confine_forms[] = {
	{ "confine.probe", "this host can enforce the default profile", "ADAPTER --confine --probe ends in 0, found by doing it.", "Every other check of this suite would be about nothing.", CLAUSE("--probe"), RV_CAN_CONFINE, run_probe },
	{ "confine.invalid", "an invalid request touches nothing", "It is exit status 2 with its reason and no result, before anything is made or any event comes.", "Half a run would be left of what was never a request.", CLAUSE("EXIT STATUS"), RV_CAN_CONFINE, run_invalid },
	{ "confine.pins", "right pins run, and the result says that they were pinned", "With the four digests of what is there a run is attributable and pinned.", "Nobody could tell a pinned run from another.", CLAUSE("--pins"), RV_CAN_CONFINE, run_pins },
	{ "confine.runtime-pin", "another runtime than the pinned one starts nothing", "It is runtime-mismatch, without a slot.", "The pin would be a word.", CLAUSE("--pins"), RV_CAN_CONFINE, run_runtime_pin },
	{ "confine.profile-pin", "another profile than the pinned one starts nothing", "It is profile-mismatch, without a slot.", "A weakened boundary would pass for the pinned one.", CLAUSE("--pins"), RV_CAN_CONFINE, run_profile_pin },
	{ "confine.snapshot-pin", "a digest that does not match its own files is an invalid request", "It is exit status 2, and not a snapshot-mismatch.", "A caller's mistake would look like an attack.", CLAUSE("--pins"), RV_CAN_CONFINE, run_snapshot_pin },
	{ "confine.snapshot", "a snapshot's digest is that of the protocol", "Paths, sizes and digests of the files in the order of paths, and neither modes nor empty directories.", "Digests of two programs could not be compared.", CLAUSE("Identities"), RV_CAN_CONFINE, run_snapshot },
	{ "confine.identities", "equal runs have equal identities", "The identities of two runs of the same are the same, also the instantiated profile.", "A recorded run could not be checked against another.", CLAUSE("Identities"), RV_CAN_CONFINE, run_twice },
	{ "confine.stream", "a bad line of a stream has its own answer, and the rest goes on", "Answers come in order, and the exit status is that of the worst line.", "One bad request would take a thousand good ones with it.", CLAUSE("Requests of a stream"), RV_CAN_CONFINE, run_stream },
	{ "confine.identity", "a runtime that changes in a stream by identity is seen", "Device, inode, size and times are compared around each run.", "A stream would go on crediting a pin.", CLAUSE("--verify"), RV_CAN_CONFINE, run_withdrawn },
	{ .id = NULL },
};

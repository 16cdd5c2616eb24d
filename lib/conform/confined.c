#include "lib/conform/confined.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/digest/digest.h"

#define WORDS_MAX 64
#define HOOK \
	"read -r line\ncase $line in *'\"event\":\"%s\"'*) ;; *) exit 0 ;; esac\n" \
	"namespace=${line#*'\"namespace\":\"'} namespace=${namespace%%%%'\"'*}\n" \
	"pid=${line#*'\"pid\":'} pid=${pid%%%%[!0-9]*}\ncd '%s' || exit\n%s\n"

/* ---- the set ---- */

bool rv_confined_shell(struct rv_trial *trial, const char *text)
{
	const char *const argv[] = { "/bin/sh", "-c", rv_trial_printf(trial, "cd '%s' && { %s\n}", trial->dir, text), NULL };
	const struct rv_command_plan plan = { .argv = argv };
	const struct rv_command *command = argv[2] != NULL ? rv_trial_run(trial, &plan) : NULL;

	return command != NULL && rv_expect(trial, rv_trial_status(command) == 0, "the scene cannot be set (%s)", text);
}

static const char *script_of(const struct rv_scene *scene)
{
	return scene->script != NULL ? scene->script : "echo ran\n";
}

static bool write_text(struct rv_trial *trial, const char *name, const char *text)
{
	const char *path = rv_trial_path(trial, name);

	return path != NULL && text != NULL && rv_trial_write(trial, path, rv_span_of(text), 0600);
}

bool rv_scene_set(struct rv_trial *trial, const struct rv_scene *scene)
{
	if (!rv_confined_shell(trial, "mkdir prog in && mkdir -m 700 root && echo data >in/data && echo precious >file") ||
	    !write_text(trial, "prog/main.sh", script_of(scene)))
		return false;
	if (scene->event != NULL && !write_text(trial, "hook", rv_trial_printf(trial, HOOK, scene->event, trial->dir, scene->hook)))
		return false;
	return scene->prepare == NULL || rv_confined_shell(trial, scene->prepare);
}

/* {dir} replaced. */
static const char *placed(struct rv_trial *trial, const char *word)
{
	const char *at = strstr(word, "{dir}");

	return at == NULL ? word : rv_trial_printf(trial, "%.*s%s%s", (int)(at - word), word, trial->dir, at + 5);
}

const char *const *rv_scene_words(struct rv_trial *trial, const struct rv_scene *scene, const char *const *more)
{
	static const char *const unpinned[] = { "--unpinned", NULL };
	const char *const fixed[] = { "--root", "{dir}/root", "--program", "{dir}/prog", "--input", "{dir}/in",
				      "--entry", "main.sh", "--runtime", scene->runtime != NULL ? scene->runtime : "/bin/sh", NULL };
	const char *const *const lists[] = { fixed, more != NULL ? more : unpinned, scene->options };
	const char **words = rv_trial_alloc(trial, WORDS_MAX * sizeof *words);
	size_t n = 0;

	if (words == NULL)
		return NULL;
	words[n++] = "--confine";
	if (scene->event != NULL) {
		words[n++] = "--on-event";
		words[n++] = rv_trial_printf(trial, "/bin/sh '%s/hook'", trial->dir);
	}
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		for (const char *const *word = lists[i]; word != NULL && *word != NULL && n + 1 < WORDS_MAX; word++)
			words[n++] = placed(trial, *word);
	}
	return words;
}

const char *rv_confined_ask(struct rv_trial *trial, const char *const *words, int status)
{
	struct rv_command *command = rv_trial_adapter(trial, words, RV_SPAN(""));
	char how[40];
	char *text;

	if (command == NULL || !rv_expect(trial, rv_trial_status(command) == status, "ADAPTER --confine %s: %s, and not %d: %.*s",
					  words[1], rv_command_how(command, how), status, (int)command->complained.len,
					  command->complained.len > 0 ? command->complained.data : ""))
		return NULL;
	text = command->said.len > 0 ? rv_trial_printf(trial, "%s", rv_buffer_string(&command->said)) : rv_trial_printf(trial, "%s", "");
	if (text != NULL)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

/* ---- what is expected ---- */

static const struct rv_json_node *member_at(const struct rv_json_node *node, const char *path, size_t len)
{
	char name[64];

	while (node != NULL && len > 0) {
		size_t one = 0;

		while (one < len && path[one] != '.')
			one++;
		if (one >= sizeof name)
			return NULL;
		memcpy(name, path, one);
		name[one] = '\0';
		node = rv_json_type(node) == RV_JSON_OBJECT ? rv_json_get(node, name) : NULL;
		path += one + (one < len);
		len -= one + (one < len);
	}
	return node;
}

const char *rv_confined_json(struct rv_trial *trial, const struct rv_json_node *node)
{
	struct rv_buffer *text = rv_trial_buffer(trial);
	struct rv_error err = RV_ERROR_INIT;

	if (node == NULL || text == NULL || rv_json_canonical(node, text, &err) != 0)
		return "null";
	return rv_buffer_string(text) != NULL ? text->data : "null";
}

/* What the program said, of its standard output. */
static const struct rv_buffer *output_of(struct rv_trial *trial, const struct rv_json_node *result)
{
	const struct rv_json_node *base64 = member_at(result, "process.stdoutBase64", 20);
	struct rv_buffer *out = rv_trial_buffer(trial);
	struct rv_error err = RV_ERROR_INIT;

	if (out != NULL && rv_json_is_string(base64))
		(void)rv_base64_decode(out, rv_json_string(base64).data, rv_json_string(base64).len, &err);
	return out;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_name(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static const char *names_in_root(struct rv_trial *trial)
{
	struct rv_buffer *names = rv_trial_buffer(trial);
	const char *path = rv_trial_path(trial, "root");
	struct dirent **list = NULL;
	int count = path != NULL ? scandir(path, &list, is_name, compare_names) : -1;

	for (int i = 0; i < count; i++) {
		if (names != NULL && i > 0)
			rv_buffer_add_byte(names, ' ');
		if (names != NULL)
			rv_buffer_add_string(names, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return count < 0 || names == NULL ? "(cannot be read)" : count == 0 ? "" : rv_buffer_string(names);
}

/* The text that is compared, for a name of our own; NULL: it is a path. */
static const char *own_text(struct rv_trial *trial, const struct rv_json_node *result, const char *name, size_t len)
{
	const struct rv_buffer *bytes;

	if (len == 4 && strncmp(name, "root", len) == 0)
		return names_in_root(trial);
	if (len == 4 && strncmp(name, "file", len) == 0) {
		bytes = rv_trial_read(trial, rv_trial_path(trial, "file"));
		return bytes != NULL ? bytes->data : "(cannot be read)";
	}
	if (len != 3 && len != 6)
		return NULL;
	if (strncmp(name, "out", 3) != 0 || (len == 6 && strncmp(name, "outlen", 6) != 0))
		return NULL;
	bytes = output_of(trial, result);
	if (len == 6)
		return rv_trial_printf(trial, "%zu", bytes != NULL ? bytes->len : 0);
	return bytes != NULL && bytes->len > 0 ? rv_trial_printf(trial, "%.*s", (int)bytes->len, bytes->data) : "";
}

bool rv_confined_expect(struct rv_trial *trial, const struct rv_json_node *result, const char *expectation)
{
	size_t len = strcspn(expectation, "=~");
	const char *want = expectation + len + 1;
	const char *got = own_text(trial, result, expectation, len);
	bool held;

	if (got == NULL)
		got = rv_confined_json(trial, member_at(result, expectation, len));
	held = expectation[len] == '=' ? strcmp(got, want) == 0 : strstr(got, want) != NULL;
	return rv_expect(trial, held, "%.*s is %.400s, and not %s%s\nthe result: %.1500s", (int)len, expectation, got,
			 expectation[len] == '=' ? "" : "with ", want, rv_confined_json(trial, result));
}

bool rv_scene_expect(struct rv_trial *trial, const struct rv_scene *scene, const struct rv_command *command)
{
	size_t len = command != NULL && command->said.len > 0 ? command->said.len : 0;
	const struct rv_json_node *result;
	char how[40];

	if (command == NULL || !rv_expect(trial, rv_trial_status(command) == scene->status, "%s, and not exit status %d: %.*s%.*s",
					  rv_command_how(command, how), scene->status, (int)(len < 1500 ? len : 1500),
					  len > 0 ? command->said.data : "", (int)command->complained.len,
					  command->complained.len > 0 ? command->complained.data : ""))
		return false;
	if (!rv_expect(trial, len > 0 && memchr(command->said.data, '\n', len) == command->said.data + len - 1,
		       "not one line was printed"))
		return false;
	result = rv_trial_parse(trial, command->said.data, len);
	if (!rv_expect(trial, result != NULL, "the result is no JSON"))
		return false;
	for (const char *const *line = scene->expect; *line != NULL; line++) {
		if (!rv_confined_expect(trial, result, placed(trial, *line)))
			return false;
	}
	return true;
}

static bool play(struct rv_trial *trial, const struct rv_scene *scene)
{
	const char *const *words;

	if (!rv_scene_set(trial, scene))
		return false;
	rv_did(trial, "ran ADAPTER --confine on this program:\n%s%s%s%s%s", script_of(scene),
	       scene->event != NULL ? "and at the event " : "", scene->event != NULL ? scene->event : "",
	       scene->event != NULL ? ": " : "", scene->event != NULL ? scene->hook : "");
	words = rv_scene_words(trial, scene, NULL);
	return words != NULL && rv_scene_expect(trial, scene, rv_trial_adapter(trial, words, RV_SPAN("from the caller\n")));
}

bool rv_scene_play(struct rv_trial *trial, const struct rv_scene *scenes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(scenes[i].id, trial->check->id) == 0)
			return play(trial, &scenes[i]);
	}
	return rv_unexpected(trial, "there is no scene of that name");
}

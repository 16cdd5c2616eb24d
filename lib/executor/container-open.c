/* What the command line makes of a container executor, and what its engine says of it before the first call. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/executor/command.h"
#include "lib/executor/container.h"

#define LOOK_MS 30000
#define PULL_MS 1800000

int rv_container_find_engine(struct rv_container *container, const char *engine, char *const *envp, struct rv_error *err)
{
	rv_auto_free char **split = NULL;
	rv_auto_buffer struct rv_buffer path = RV_BUFFER_INIT;
	size_t count = 0;

	if (rv_text_split(engine, &split, &count, err) != 0 || count == 0 || rv_command_find(&path, split[0], err) != 0) {
		if (err->code == RV_E_NONE)
			(void)rv_error_set(err, RV_E_CONFIG, 0, "no engine is named");
		err->code = RV_E_CONFIG;
		return rv_error_wrap(err, "--engine");
	}
	rv_words_add(&container->words, path.data);
	for (size_t i = 1; i < count; i++)
		rv_words_add(&container->words, split[i]);
	container->engine.words = rv_words_list(&container->words, err);
	container->engine.envp = envp;
	return container->engine.words != NULL ? 0 : -1;
}

static void pair(struct rv_words *words, const char *flag, const char *value)
{
	rv_words_add(words, flag);
	rv_words_add(words, value);
}

/* A container's root without capabilities cannot write in another user's 0700 directory: with a daemon the tool is
 * the caller; a rootless podman maps the caller to root by itself. */
static void add_user(struct rv_container *container)
{
	const char *program = strrchr(container->engine.words[0], '/');

	if (geteuid() == 0 || strncmp(program + 1, "podman", 6) == 0)
		return;
	rv_words_add(&container->set_up, "--user");
	rv_words_printf(&container->set_up, "%u:%u", (unsigned)geteuid(), (unsigned)getegid());
}

static int set_up(struct rv_container *container, struct rv_error *err)
{
	const struct rv_container_options *options = container->options;
	struct rv_words *words = &container->set_up;

	rv_words_add(words, "-i");
	pair(words, "--network", options->network);
	if (!options->writable_root)
		rv_words_add(words, "--read-only");
	pair(words, "--memory", options->memory);
	pair(words, "--cpus", options->cpus);
	rv_words_add(words, "--pids-limit");
	rv_words_printf(words, "%lld", (long long)options->pids_limit);
	pair(words, "--cap-drop", options->cap_drop);
	pair(words, "--security-opt", "no-new-privileges");
	pair(words, "--pull", "never");
	pair(words, "--log-driver", "none"); /* a tool's output is the caller's, and no file of the engine's */
	pair(words, "--stop-timeout", "0");  /* what is removed by force is killed at once */
	pair(words, "--workdir", options->work_mount);
	add_user(container);
	return rv_words_list(words, err) != NULL ? 0 : -1;
}

static int check_values(const struct rv_container *container, const char *workdir_base, const char *const *set_env,
			struct rv_error *err)
{
	const struct rv_container_options *options = container->options;

	if (options->work_mount[0] != '/' || strpbrk(options->work_mount, ",\"\n") != NULL)
		return rv_error_set(err, RV_E_CONFIG, 0, "--work-mount %s: not an absolute path that a mount can be said with",
				    options->work_mount);
	if (strpbrk(workdir_base, ",\"\n") != NULL)
		return rv_error_set(err, RV_E_CONFIG, 0, "--workdir-base %s: the engine takes no comma, quote or newline in "
				    "a mount", workdir_base);
	for (size_t i = 0; set_env[i] != NULL; i++) {
		size_t len = strcspn(set_env[i], "=");

		for (size_t j = 0; container->engine.envp[j] != NULL; j++) {
			if (strncmp(set_env[i], container->engine.envp[j], len + 1) == 0 &&
			    strcmp(set_env[i], container->engine.envp[j]) != 0)
				return rv_error_set(err, RV_E_CONFIG, 0, "--setenv %.*s: the engine's client reads it itself, and "
						    "the container cannot be given another value by name", (int)len, set_env[i]);
		}
	}
	return 0;
}

static int pull(const struct rv_container *container, struct rv_buffer *out, struct rv_buffer *complaint, struct rv_error *err)
{
	const char *const args[] = { "pull", container->options->image, NULL };
	int status = rv_engine_ask(&container->engine, args, PULL_MS, out, complaint, err);

	return status <= 0 ? status : rv_error_set(err, RV_E_CONFIG, 0, "%s", complaint->data);
}

/* Before any call, so that no deadline is spent on it. */
static int look_for_image(const struct rv_container *container, struct rv_error *err)
{
	const struct rv_container_options *options = container->options;
	const char *const args[] = { "image", "inspect", "--format", "{{.Id}}", options->image, NULL };
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer complaint = RV_BUFFER_INIT;
	int status;

	if (options->pull == RV_PULL_ALWAYS)
		return pull(container, &out, &complaint, err);
	status = rv_engine_ask(&container->engine, args, LOOK_MS, &out, &complaint, err);
	if (status <= 0)
		return status;
	if (options->pull == RV_PULL_MISSING)
		return pull(container, &out, &complaint, err);
	return rv_error_set(err, RV_E_CONFIG, 0, "the engine shows no such image, and --pull is never: %s", complaint.data);
}

int rv_container_open(struct rv_container *container, const struct rv_container_options *options, char *const *envp,
		      const char *workdir_base, const char *const *set_env, struct rv_error *err)
{
	struct rv_error *refusal = &container->refusal;

	container->options = options;
	if (rv_container_find_engine(container, options->engine, envp, refusal) != 0 ||
	    check_values(container, workdir_base, set_env, refusal) != 0) {
		refusal->code = RV_E_CONFIG;
		return 0;
	}
	if (look_for_image(container, refusal) != 0) {
		refusal->code = RV_E_CONFIG;
		(void)rv_error_wrap(refusal, "--image %s", options->image);
		return 0;
	}
	return set_up(container, err);
}

void rv_container_release(struct rv_container *container)
{
	rv_words_release(&container->words);
	rv_words_release(&container->set_up);
}

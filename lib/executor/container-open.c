/* What the command line makes of a container executor, and what its engine says of it before the first call. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/executor/command.h"
#include "lib/executor/container.h"
#include "lib/executor/launcher.h"
#include "lib/json/json.h"

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
	if (geteuid() == 0 || container->is_podman)
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

/* What clients read: names, and the beginnings of names. */
static bool is_clients(const char *entry, size_t len)
{
	static const char *const more[] = { "TMPDIR", "REGISTRY_AUTH_FILE", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", NULL };
	static const char *const beginnings[] = {
		"DOCKER_", "CONTAINER_", "CONTAINERS_", "_CONTAINERS_", "PODMAN_", "STORAGE_", "XDG_", "LD_", NULL,
	};
	const char *const *const lists[] = { rv_launcher_names, more };

	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		for (size_t j = 0; lists[i][j] != NULL; j++) {
			if (strlen(lists[i][j]) == len && strncmp(entry, lists[i][j], len) == 0)
				return true;
		}
	}
	for (size_t i = 0; beginnings[i] != NULL; i++) {
		if (strncmp(entry, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	}
	return false;
}

int rv_container_check_value(const struct rv_engine *engine, const char *entry, bool *has, struct rv_error *err)
{
	size_t len = strcspn(entry, "=");

	*has = false;
	for (size_t i = 0; engine->envp[i] != NULL && !*has; i++) {
		if (strncmp(entry, engine->envp[i], len) != 0 || engine->envp[i][len] != '=')
			continue;
		if (strcmp(entry, engine->envp[i]) != 0)
			return rv_error_set(err, RV_E_CONFIG, 0, "%.*s: the engine's client reads it itself, and the container cannot "
					    "be given another value by name", (int)len, entry);
		*has = true;
	}
	if (!*has && is_clients(entry, len))
		return rv_error_set(err, RV_E_CONFIG, 0, "%.*s: the engine's client would read it, too, and no longer be the one "
				    "that is asked what became of the container (where it may be: --launcher-env %.*s)",
				    (int)len, entry, (int)len, entry);
	return 0;
}

/* An amount of which something is left: 2, 256m, 0.5. */
static bool is_some(const char *amount)
{
	static const char some[] = "123456789";
	size_t whole = strspn(amount, "0123456789");
	const char *behind = amount + whole + 1;

	if (strcspn(amount, some) < whole)
		return true;
	return amount[whole] == '.' && behind[0] != '\0' && (strchr(some, behind[0]) != NULL ||
	       (behind[0] == '0' && behind[1] != '\0' && strchr(some, behind[1]) != NULL));
}

/* To engines an empty word, and a limit of nothing, are the default of their own: a network, capabilities, no limit. */
static int check_bounds(const struct rv_container_options *options, struct rv_error *err)
{
	const struct { const char *option, *value; bool amount; } bounds[] = {
		{ "--network", options->network, false }, { "--memory", options->memory, true },
		{ "--cpus", options->cpus, true }, { "--cap-drop", options->cap_drop, false },
	};

	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
		if (bounds[i].value[0] == '\0' || (bounds[i].amount && !is_some(bounds[i].value)))
			return rv_error_set(err, RV_E_CONFIG, 0, "%s '%s': to an engine that is no bound at all", bounds[i].option,
					    bounds[i].value);
	}
	return 0;
}

static int check_values(const struct rv_container *container, const char *workdir_base, const char *const *set_env,
			struct rv_error *err)
{
	const struct rv_container_options *options = container->options;

	if (check_bounds(options, err) != 0)
		return -1;
	if (options->work_mount[0] != '/' || strpbrk(options->work_mount, ",\"\n") != NULL)
		return rv_error_set(err, RV_E_CONFIG, 0, "--work-mount %s: not an absolute path that a mount can be said with",
				    options->work_mount);
	if (strpbrk(workdir_base, ",\"\n") != NULL)
		return rv_error_set(err, RV_E_CONFIG, 0, "--workdir-base %s: the engine takes no comma, quote or newline in "
				    "a mount", workdir_base);
	for (size_t i = 0; set_env[i] != NULL; i++) {
		bool has;

		if (rv_container_check_value(&container->engine, set_env[i], &has, err) != 0)
			return rv_error_wrap(err, "--setenv");
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

static bool is_named_podman(const struct rv_container *container)
{
	const char *program = strrchr(container->engine.words[0], '/');

	return strncmp(program + 1, "podman", 6) == 0;
}

/* Root's own podman can limit, and need not be asked: a call of it is saved.  The name is all that is known of what
 * another program is, or a script of that name begins. */
static bool is_roots_podman(const struct rv_container *container)
{
	if (!is_named_podman(container) || geteuid() != 0)
		return false;
	for (char *const *entry = container->engine.envp; *entry != NULL; entry++) {
		if (strncmp(*entry, "CONTAINER_", 10) == 0)
			return false;
	}
	for (char *const *word = container->engine.words + 1; *word != NULL; word++) {
		if (strcmp(*word, "--remote") == 0 || strcmp(*word, "-r") == 0 || strncmp(*word, "--url", 5) == 0 ||
		    strncmp(*word, "--connection", 12) == 0 || strcmp(*word, "-c") == 0)
			return false;
	}
	return true;
}

static bool has_text(const struct rv_json_node *node, const char *text)
{
	return rv_json_is_string(node) && rv_span_equal(rv_json_string(node), rv_span_of(text));
}

/* Podman without root and with control groups of version 1, and docker without what it needs of them, run the tool
 * without its limits, and say so to people alone. */
static int check_limits(struct rv_container *container, const struct rv_json_node *info, struct rv_error *err)
{
	static const struct { const char *name, *options; } says[] = {
		{ "MemoryLimit", "--memory" }, { "CpuCfsQuota", "--cpus" }, { "PidsLimit", "--pids-limit" },
	};
	const struct rv_json_node *host = rv_json_get(info, "host");
	const struct rv_json_node *rootless = rv_json_get(rv_json_get(host, "security"), "rootless");

	container->is_podman = container->is_podman || rootless != NULL;
	if (rootless != NULL && rv_json_type(rootless) == RV_JSON_TRUE && has_text(rv_json_get(host, "cgroupVersion"), "v1"))
		return rv_error_set(err, RV_E_CONFIG, 0, "--memory, --cpus and --pids-limit: podman cannot limit anything without root "
				    "where control groups are of version 1: boot with systemd.unified_cgroup_hierarchy=1, or run it as root");
	if (has_text(rv_json_get(info, "CgroupDriver"), "none"))
		return rv_error_set(err, RV_E_CONFIG, 0, "--memory, --cpus and --pids-limit: the engine has no control groups (CgroupDriver "
				    "none in its info: a rootless docker needs version 2 and systemd)");
	for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
		const struct rv_json_node *can = rv_json_get(info, says[i].name);

		if (can != NULL && rv_json_type(can) == RV_JSON_FALSE)
			return rv_error_set(err, RV_E_CONFIG, 0, "%s: the engine cannot limit that here (%s is false in its info)",
					    says[i].options, says[i].name);
	}
	return 0;
}

static int look_for_limits(struct rv_container *container, struct rv_error *err)
{
	const char *const args[] = { "info", "--format", "{{json .}}", NULL };
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer complaint = RV_BUFFER_INIT;
	struct rv_error ignored = RV_ERROR_INIT;
	struct rv_json_doc *doc;
	int status;

	container->is_podman = is_named_podman(container);
	if (is_roots_podman(container))
		return 0;
	status = rv_engine_ask(&container->engine, args, LOOK_MS, &out, &complaint, err);
	if (status < 0)
		return -1;
	if (status > 0)
		return rv_error_set(err, RV_E_CONFIG, 0, "the engine does not say whether it can limit: %s", complaint.data);
	doc = rv_json_doc_new(err);
	if (doc == NULL)
		return -1;
	/* an engine that is neither says nothing that is known here */
	status = check_limits(container, rv_json_parse(doc, out.data, out.len, RV_JSON_DEFAULT, &ignored), err);
	rv_json_doc_free(doc);
	return status;
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
	if (look_for_limits(container, refusal) != 0) {
		refusal->code = RV_E_CONFIG;
		return 0;
	}
	return set_up(container, err);
}

void rv_container_release(struct rv_container *container)
{
	rv_words_release(&container->words);
	rv_words_release(&container->set_up);
}

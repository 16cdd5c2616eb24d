#include "lib/executor/isolate.h"

#include <stdlib.h>
#include <string.h>

static size_t length_of(const char *const *list)
{
	size_t count = 0;

	while (list[count] != NULL)
		count++;
	return count;
}

int rv_isolate_check(const struct rv_isolate_options *options, struct rv_error *err)
{
	if (options->sandbox != RV_SANDBOX_NONE && options->sandbox_argv != NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "--sandbox and --sandbox-argv are one too many");
	if (options->sandbox == RV_SANDBOX_NONE && (options->ro[0] != NULL || options->rw[0] != NULL))
		return rv_error_set(err, RV_E_USAGE, 0, "--ro and --rw need a --sandbox that hides something");
	if (options->container.image == NULL && options->container.engine_args[0] != NULL)
		return rv_error_set(err, RV_E_USAGE, 0, "--engine-arg needs --image");
	return 0;
}

bool rv_isolate_needs_host(const struct rv_isolate_options *options)
{
	bool launcher = options->sandbox == RV_SANDBOX_BWRAP || options->sandbox_argv != NULL;

	for (size_t i = 0; options->executors[i] != NULL; i++)
		launcher = launcher || strchr(options->executors[i], '=') != NULL;
	return launcher || options->container.image != NULL;
}

bool rv_isolate_leaves(const struct rv_isolate_options *options)
{
	return options->container.image != NULL;
}

static int add_subprocess(struct rv_isolate *isolate, const struct rv_isolate_options *options,
			  struct rv_registry *registry, const struct rv_executor *common, struct rv_error *err)
{
	struct rv_launcher *launcher = &isolate->launchers[isolate->launcher_count];
	struct rv_executor *plain = rv_registry_add(registry, common, "subprocess", err);

	if (plain == NULL)
		return -1;
	plain->sandbox = "none";
	plain->flavor = "process";
	plain->network = "host";
	plain->isolation = &rv_isolation_none;
	if (options->sandbox == RV_SANDBOX_KERNEL) {
		plain->sandbox = "kernel";
		plain->network = isolate->net ? "host" : "none";
		plain->isolation = &rv_isolation_kernel;
		plain->isolation_data = isolate->enclose;
	}
	if (options->sandbox != RV_SANDBOX_BWRAP && options->sandbox_argv == NULL)
		return 0;
	isolate->launcher_count++;
	if (options->sandbox == RV_SANDBOX_BWRAP) {
		if (rv_launcher_open_bwrap(launcher, options->ro, options->rw, isolate->envp.entries, err) != 0)
			return -1;
	} else if (rv_launcher_open(launcher, options->sandbox_argv, isolate->envp.entries, err) != 0) {
		return rv_error_wrap(err, "--sandbox-argv");
	}
	plain->sandbox = launcher->name.data;
	plain->flavor = "launcher";
	plain->network = options->sandbox == RV_SANDBOX_BWRAP ? "none" : "launcher";
	plain->isolation = &rv_isolation_launcher;
	plain->isolation_data = launcher;
	plain->read_only_root = options->sandbox == RV_SANDBOX_BWRAP;
	return 0;
}

static int add_tag(struct rv_isolate *isolate, const char *text, struct rv_registry *registry,
		   const struct rv_executor *common, struct rv_error *err)
{
	size_t at = isolate->launcher_count;
	struct rv_launcher *launcher = &isolate->launchers[at];
	size_t len = strcspn(text, "=");
	struct rv_executor *executor;

	isolate->tags[at] = strndup(text, len);
	if (isolate->tags[at] == NULL)
		return rv_error_nomem(err);
	isolate->launcher_count++;
	if (rv_launcher_open(launcher, text + len + 1, isolate->envp.entries, err) != 0)
		return rv_error_wrap(err, "--executor %s", isolate->tags[at]);
	executor = rv_registry_add(registry, common, isolate->tags[at], err);
	if (executor == NULL)
		return rv_error_wrap(err, "--executor");
	executor->sandbox = launcher->name.data;
	executor->flavor = executor->network = "launcher";
	executor->isolation = &rv_isolation_launcher;
	executor->isolation_data = launcher;
	return 0;
}

static int add_container(struct rv_isolate *isolate, const struct rv_isolate_options *options,
			 struct rv_registry *registry, const struct rv_executor *common, struct rv_error *err)
{
	struct rv_executor *executor;

	if (options->container.image == NULL)
		return 0;
	executor = rv_registry_add(registry, common, "container", err);
	if (executor == NULL)
		return -1;
	executor->sandbox = executor->flavor = "container";
	executor->network = options->container.network;
	executor->read_only_root = !options->container.writable_root;
	executor->isolation = &rv_isolation_container;
	executor->isolation_data = &isolate->container;
	executor->grace_ms = common->container_grace_ms;
	return rv_container_open(&isolate->container, &options->container, isolate->envp.entries, common->workdir_base,
				 common->set_env, err);
}

/* The tag of calls that name none. */
static int choose(const struct rv_isolate_options *options, struct rv_registry *registry, struct rv_error *err)
{
	bool chosen = false;

	registry->chosen = options->one_shot && options->container.image != NULL ? "container" : "subprocess";
	for (size_t i = 0; options->executors[i] != NULL; i++) {
		if (strchr(options->executors[i], '=') != NULL)
			continue;
		if (chosen)
			return rv_error_set(err, RV_E_CONFIG, 0, "--executor: calls that name none can have one executor, and not two");
		chosen = true;
		registry->chosen = options->executors[i];
	}
	return rv_registry_find(registry, (struct rv_span){ NULL, 0 }, err) != NULL ? 0 : rv_error_wrap(err, "--executor");
}

int rv_isolate_open(struct rv_isolate *isolate, const struct rv_isolate_options *options, struct rv_registry *registry,
		    const struct rv_executor *common, struct rv_error *err)
{
	size_t room = length_of(options->executors) + 1;

	isolate->launchers = calloc(room, sizeof *isolate->launchers);
	isolate->tags = calloc(room, sizeof *isolate->tags);
	if (isolate->launchers == NULL || isolate->tags == NULL)
		return rv_error_nomem(err);
	if (rv_launcher_environment(&isolate->envp, options->launcher_env, err) != 0 ||
	    add_subprocess(isolate, options, registry, common, err) != 0)
		return -1;
	for (size_t i = 0; options->executors[i] != NULL; i++) {
		if (strchr(options->executors[i], '=') != NULL &&
		    add_tag(isolate, options->executors[i], registry, common, err) != 0)
			return -1;
	}
	return add_container(isolate, options, registry, common, err) != 0 ? -1 : choose(options, registry, err);
}

void rv_isolate_release(struct rv_isolate *isolate)
{
	for (size_t i = 0; i < isolate->launcher_count; i++) {
		rv_launcher_release(&isolate->launchers[i]);
		free(isolate->tags[i]);
	}
	free(isolate->launchers);
	free(isolate->tags);
	rv_container_release(&isolate->container);
	rv_environment_release(&isolate->envp);
}

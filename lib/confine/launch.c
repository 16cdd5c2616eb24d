#include "lib/confine/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/signals.h"
#include "lib/confine/profile.h"
#include "lib/digest/digest.h"
#include "lib/json/write.h"
#include "lib/sandbox/landlock.h"

/* Tried again from inside the runtime, before any module of the program is loaded.  Workers load preloads too, and
 * there descriptor 3 is somebody else's. */
#define PRELOAD                                                                                                  \
	"import{openSync,closeSync,writeSync}from'node:fs';import{isMainThread}from'node:worker_threads';"       \
	"if(isMainThread){let code='none';try{closeSync(openSync({canary},'r'))}catch(error){code=error.code}"   \
	"if(code!=={expected}){try{writeSync(3,'sf-confined/1 refused\\n')}catch{}process.reallyExit(125)}"      \
	"writeSync(3,'sf-confined/1 admitted\\n');closeSync(3)}"

struct dialect {
	const char *name;
	bool whole;           /* the name, or the beginning of one */
	const char *flags[4]; /* before the entry; NULL-terminated */
	const char *preload;  /* for --import; NULL: the launcher writes the record */
};

static const struct dialect dialects[] = {
	{ "node", true, { NULL }, PRELOAD },
	{ "python", false, { "-I", "-S", "-B", NULL }, NULL },
	{ "", false, { NULL }, NULL },
};

#define DIALECTS (sizeof dialects / sizeof dialects[0])

void rv_launch_add_json(struct rv_buffer *out)
{
	rv_json_add_name(out, "launch");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < DIALECTS; i++) {
		rv_buffer_add_string(out, i > 0 ? ",{" : "{");
		rv_json_add_name(out, "flags");
		rv_buffer_add_byte(out, '[');
		for (const char *const *flag = dialects[i].flags; *flag != NULL; flag++) {
			if (flag != dialects[i].flags)
				rv_buffer_add_byte(out, ',');
			rv_json_add_string(out, *flag, strlen(*flag));
		}
		rv_buffer_add_byte(out, ']');
		if (dialects[i].preload != NULL)
			rv_json_member_string(out, "preload", dialects[i].preload);
		rv_json_member_string(out, "record", RV_LAUNCH_ADMITTED);
		rv_json_member_string(out, "runtime", dialects[i].name);
		rv_json_member_bool(out, "whole", dialects[i].whole);
		rv_buffer_add_byte(out, '}');
	}
	rv_buffer_add_byte(out, ']');
}

static const struct dialect *dialect_of(const struct rv_runtime *runtime)
{
	size_t i = 0;

	while (i + 1 < DIALECTS && !rv_runtime_is_named(runtime, dialects[i].name, dialects[i].whole))
		i++;
	return &dialects[i];
}

/* A text that lives as long as the plan. */
static char *keep(struct rv_launch_plan *plan, struct rv_buffer *text, struct rv_error *err)
{
	char **texts = realloc(plan->texts, (plan->text_count + 1) * sizeof *texts);
	char *own;
	size_t len;

	if (texts != NULL)
		plan->texts = texts;
	own = texts != NULL ? rv_buffer_steal(text, &len) : NULL;
	if (own == NULL) {
		rv_buffer_release(text);
		(void)rv_error_nomem(err);
		return NULL;
	}
	plan->texts[plan->text_count++] = own;
	return own;
}

static char *join(struct rv_launch_plan *plan, const char *one, const char *two, struct rv_error *err)
{
	struct rv_buffer text = RV_BUFFER_INIT;

	rv_buffer_add_string(&text, one);
	rv_buffer_add_string(&text, two);
	return keep(plan, &text, err);
}

static bool is_hidden(const struct rv_policy *policy)
{
	return policy->namespaces != 0;
}

/* ---- sources ---- */

static bool is_in_tree(const struct rv_runtime *runtime, const char *path)
{
	for (size_t i = 0; i < runtime->tree_count; i++) {
		if (rv_names_is_below(path, runtime->trees[i].path))
			return true;
	}
	return false;
}

static void add_slot_source(struct rv_launch_plan *plan, const char *name, const char *path, const struct rv_namespace *ns)
{
	struct rv_source *source = &plan->sources[plan->boundary.instance.source_count];

	*source = (struct rv_source){ .name = name, .path = path };
	if (rv_namespace_identify(ns, name, &source->device, &source->inode)) {
		source->checked = true;
		plan->boundary.instance.source_count++;
	}
}

static void add_runtime_sources(struct rv_launch_plan *plan, const struct rv_runtime *runtime)
{
	size_t count = 0;

	for (size_t i = 0; i < runtime->aliases.count; i++) {
		if (!is_in_tree(runtime, runtime->aliases.items[i].path))
			plan->sources[count++] = (struct rv_source){ .name = "alias",
								     .path = runtime->aliases.items[i].path,
								     .link = runtime->aliases.items[i].target };
	}
	for (size_t i = 0; i < runtime->tree_count; i++) {
		const struct rv_hash_file *top = &runtime->trees[i].entries[0].file;

		plan->sources[count++] = (struct rv_source){ "tree", top->path, NULL, NULL, top->device, top->inode, true };
	}
	for (size_t i = 0; i < runtime->closure.count; i++) {
		const struct rv_hash_file *file = &runtime->closure.files[i];

		if (!is_in_tree(runtime, file->path))
			plan->sources[count++] = (struct rv_source){ "runtime", file->path, NULL, NULL, file->device,
								     file->inode, true };
	}
	plan->boundary.instance.source_count = count;
}

static int add_sources(struct rv_launch_plan *plan, const struct rv_runtime *runtime, const struct rv_namespace *ns,
		       struct rv_error *err)
{
	static const char *const names[] = { "program", "input", "home" };

	plan->sources = calloc(runtime->aliases.count + runtime->tree_count + runtime->closure.count + 3,
			       sizeof *plan->sources);
	if (plan->sources == NULL)
		return rv_error_nomem(err);
	plan->boundary.instance.sources = plan->sources;
	add_runtime_sources(plan, runtime);
	for (size_t i = 0; i < 3; i++) {
		struct rv_buffer text = RV_BUFFER_INIT;
		char *path;

		/* With namespaces /home is a directory of the root, and the slot's is not seen. */
		if (i == 2 && is_hidden(plan->boundary.instance.policy))
			break;
		rv_buffer_printf(&text, "%s/%s", ns->path, names[i]);
		path = keep(plan, &text, err);
		if (path == NULL)
			return -1;
		add_slot_source(plan, names[i], path, ns);
	}
	return 0;
}

/* ---- arguments and environment ---- */

static void replace(struct rv_buffer *out, const char *text, const char *name, const char *json)
{
	const char *at = strstr(text, name);

	rv_buffer_add(out, text, at != NULL ? (size_t)(at - text) : strlen(text));
	if (at != NULL) {
		rv_buffer_add_string(out, json);
		rv_buffer_add_string(out, at + strlen(name));
	}
}

static char *make_preload(struct rv_launch_plan *plan, const char *preload, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer canary = RV_BUFFER_INIT, half = RV_BUFFER_INIT, script = RV_BUFFER_INIT;
	struct rv_buffer url = RV_BUFFER_INIT;
	const char *expected = is_hidden(plan->boundary.instance.policy) ? "'ENOENT'" : "'EACCES'";

	rv_json_add_string(&canary, plan->boundary.canary, strlen(plan->boundary.canary));
	if (rv_buffer_check(&canary, err) != 0)
		return NULL;
	replace(&half, preload, "{canary}", rv_buffer_string(&canary));
	if (rv_buffer_check(&half, err) != 0)
		return NULL;
	replace(&script, rv_buffer_string(&half), "{expected}", expected);
	rv_buffer_add_string(&url, "data:text/javascript;base64,");
	rv_base64_add(&url, script.data, script.len);
	return keep(plan, &url, err);
}

static int make_argv(struct rv_launch_plan *plan, const struct rv_confine_request *request, const struct rv_runtime *runtime,
		     const char *program, struct rv_error *err)
{
	const struct dialect *dialect = dialect_of(runtime);
	struct rv_buffer entry = RV_BUFFER_INIT;
	size_t count = 0;

	plan->argv = calloc(request->arg_count + 8, sizeof *plan->argv);
	if (plan->argv == NULL)
		return rv_error_nomem(err);
	plan->argv[count++] = runtime->path;
	if (dialect->preload != NULL) {
		plan->argv[count++] = join(plan, "--import", "", err);
		plan->argv[count++] = make_preload(plan, dialect->preload, err);
	}
	for (const char *const *flag = dialect->flags; *flag != NULL; flag++)
		plan->argv[count++] = join(plan, *flag, "", err);
	rv_buffer_printf(&entry, "%s/%s", program, request->entry);
	plan->argv[count++] = keep(plan, &entry, err);
	if (err->code != RV_E_NONE)
		return -1;
	for (size_t i = 0; i < request->arg_count; i++)
		plan->argv[count++] = request->args[i];
	plan->boundary.argv = plan->argv;
	plan->boundary.admitted = dialect->preload != NULL ? NULL : RV_LAUNCH_ADMITTED;
	return 0;
}

static int make_environment(struct rv_launch_plan *plan, const char *home, struct rv_error *err)
{
	const char *const *variables = plan->boundary.instance.policy->environment;
	size_t count = 0;

	while (variables[count] != NULL)
		count++;
	plan->envp = calloc(count + 1, sizeof *plan->envp);
	if (plan->envp == NULL)
		return rv_error_nomem(err);
	for (size_t i = 0; i < count; i++) {
		struct rv_buffer text = RV_BUFFER_INIT;

		replace(&text, variables[i], "{home}", home);
		plan->envp[i] = keep(plan, &text, err);
		if (plan->envp[i] == NULL)
			return -1;
	}
	plan->boundary.envp = plan->envp;
	return 0;
}

/* The paths inside: the slot's own where nothing hides it. */
static int make_paths(struct rv_launch_plan *plan, const struct rv_confine_request *request, const struct rv_runtime *runtime,
		      const struct rv_namespace *ns, struct rv_error *err)
{
	const char *prefix = is_hidden(plan->boundary.instance.policy) ? "" : ns->path;
	char *program = join(plan, prefix, "/program", err), *input = join(plan, prefix, "/input", err);
	char *home = join(plan, prefix, "/home", err);
	char *canary = join(plan, ns->path, "/canary", err), *probe = join(plan, prefix, "/home/probe", err);

	if (program == NULL || input == NULL || home == NULL || canary == NULL || probe == NULL)
		return -1;
	plan->boundary.cwd = input;
	plan->boundary.canary = canary;
	plan->boundary.write_probe = probe;
	if (make_argv(plan, request, runtime, program, err) != 0)
		return -1;
	return make_environment(plan, home, err);
}

void rv_launch_set_limits(struct rv_instance *instance, const struct rv_bounds *bounds)
{
	instance->limits[RV_LIMIT_CPU] = (uint64_t)bounds->cpu_seconds;
	instance->limits[RV_LIMIT_NOFILE] = (uint64_t)bounds->max_descriptors;
	instance->limits[RV_LIMIT_CORE] = 0;
	instance->limits[RV_LIMIT_FSIZE] = 0;
	instance->limits[RV_LIMIT_DATA] = (uint64_t)bounds->max_data;
}

int rv_launch_prepare(struct rv_launch_plan *plan, const struct rv_policy *policy, const struct rv_confine_request *request,
		      const struct rv_runtime *runtime, const struct rv_namespace *ns, struct rv_error *err)
{
	const struct rv_hash_file *program = &runtime->closure.files[0];

	plan->boundary.instance.policy = policy;
	plan->boundary.instance.landlock_abi = rv_landlock_abi();
	plan->boundary.runtime = program->path;
	plan->boundary.runtime_device = program->device;
	plan->boundary.runtime_inode = program->inode;
	rv_boundary_ids(&plan->boundary);
	plan->boundary.ignored = rv_signals_ignored();
	rv_launch_set_limits(&plan->boundary.instance, &request->bounds);
	if (add_sources(plan, runtime, ns, err) != 0 || make_paths(plan, request, runtime, ns, err) != 0)
		return -1;
	rv_policy_render_instance(&plan->instance, &plan->boundary.instance);
	if (rv_buffer_check(&plan->instance, err) != 0)
		return -1;
	return rv_digest_of(plan->instance.data, plan->instance.len, plan->instantiated, err);
}

void rv_launch_release(struct rv_launch_plan *plan)
{
	for (size_t i = 0; i < plan->text_count; i++)
		free(plan->texts[i]);
	free(plan->texts);
	free(plan->sources);
	free(plan->argv);
	free(plan->envp);
	rv_buffer_release(&plan->instance);
	*plan = (struct rv_launch_plan){ .instance = RV_BUFFER_INIT };
}

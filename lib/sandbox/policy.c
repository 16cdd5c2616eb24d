#include "lib/sandbox/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "lib/json/write.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* Numbers become words, so that the text says what it means and is the same on every machine.  Each object's
 * members are written in canonical order (RFC 8785: all names here are lowercase ASCII). */

struct word {
	uint64_t bit;
	const char *name;
};

static const struct word namespace_words[] = {
	{ CLONE_NEWCGROUP, "cgroup" }, { CLONE_NEWIPC, "ipc" }, { CLONE_NEWNS, "mount" }, { CLONE_NEWNET, "net" },
	{ CLONE_NEWPID, "pid" }, { CLONE_NEWUSER, "user" }, { CLONE_NEWUTS, "uts" },
};

static const struct word mount_words[] = {
	{ RV_MOUNT_RDONLY, "rdonly" }, { RV_MOUNT_NOSUID, "nosuid" }, { RV_MOUNT_NODEV, "nodev" },
	{ RV_MOUNT_NOEXEC, "noexec" }, { RV_MOUNT_OPTIONAL, "optional" }, { RV_MOUNT_FOLLOW, "follow" },
	{ RV_MOUNT_NET, "net" },
};

static const struct word right_words[] = {
	{ RV_FS_EXECUTE, "execute" }, { RV_FS_WRITE_FILE, "write-file" }, { RV_FS_READ_FILE, "read-file" },
	{ RV_FS_READ_DIR, "read-dir" }, { RV_FS_REMOVE_DIR, "remove-dir" }, { RV_FS_REMOVE_FILE, "remove-file" },
	{ RV_FS_MAKE_CHAR, "make-char" }, { RV_FS_MAKE_DIR, "make-dir" }, { RV_FS_MAKE_REG, "make-reg" },
	{ RV_FS_MAKE_SOCK, "make-sock" }, { RV_FS_MAKE_FIFO, "make-fifo" }, { RV_FS_MAKE_BLOCK, "make-block" },
	{ RV_FS_MAKE_SYM, "make-sym" }, { RV_FS_REFER, "refer" }, { RV_FS_TRUNCATE, "truncate" },
	{ RV_FS_IOCTL_DEV, "ioctl-dev" },
};

static const struct word scope_words[] = {
	{ RV_LANDLOCK_TCP, "tcp" }, { RV_LANDLOCK_SIGNALS, "signals" }, { RV_LANDLOCK_SOCKETS, "abstract-sockets" },
};

static const char *const kind_names[] = {
	[RV_MOUNT_SOURCE] = "source", [RV_MOUNT_ALIAS] = "alias", [RV_MOUNT_HOST] = "host", [RV_MOUNT_EMPTY] = "empty",
	[RV_MOUNT_TMPFS] = "tmpfs", [RV_MOUNT_PROC] = "proc", [RV_MOUNT_LINK] = "link", [RV_MOUNT_TEXT] = "text",
};

static const char *const limit_names[] = {
	[RV_LIMIT_CPU] = "cpu", [RV_LIMIT_NOFILE] = "nofile", [RV_LIMIT_CORE] = "core", [RV_LIMIT_FSIZE] = "fsize",
	[RV_LIMIT_DATA] = "data",
};
/* their order by name */
static const enum rv_limit_name limit_order[] = {
	RV_LIMIT_CORE, RV_LIMIT_CPU, RV_LIMIT_DATA, RV_LIMIT_FSIZE, RV_LIMIT_NOFILE,
};

static void add_comma(struct rv_buffer *out)
{
	char last = out->len > 0 ? out->data[out->len - 1] : '[';

	if (last != '[' && last != '{')
		rv_buffer_add_byte(out, ',');
}

static void add_text(struct rv_buffer *out, const char *text)
{
	add_comma(out);
	rv_json_add_string(out, text, strlen(text));
}

static void add_words(struct rv_buffer *out, const char *name, const struct word *words, size_t count, uint64_t bits)
{
	rv_json_add_name(out, name);
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < count; i++) {
		if ((bits & words[i].bit) != 0)
			add_text(out, words[i].name);
	}
	rv_buffer_add_byte(out, ']');
}

static void add_optional(struct rv_buffer *out, const char *name, const char *text)
{
	if (text != NULL)
		rv_json_member_string(out, name, text);
	else
		rv_json_member_null(out, name);
}

/* ---- the filter ---- */

static void add_action(struct rv_buffer *out, uint32_t action)
{
	char text[32];
	const char *name = strerrorname_np((int)(action & SECCOMP_RET_DATA));

	if (action == SECCOMP_RET_ALLOW)
		(void)snprintf(text, sizeof text, "allow");
	else if ((action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO && name != NULL)
		(void)snprintf(text, sizeof text, "%s", name);
	else
		(void)snprintf(text, sizeof text, "0x%08" PRIx32, action);
	rv_json_member_string(out, "action", text);
}

static void add_hex(struct rv_buffer *out, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof text, "0x%" PRIx64, value); /* as text: a double does not hold 64 bits */
	rv_json_member_string(out, name, text);
}

static void add_test(struct rv_buffer *out, const struct rv_filter_test *test)
{
	static const char *const symbols[] = { [RV_VALUE_SELF] = "self", [RV_VALUE_EXEC] = "exec" };

	add_comma(out);
	rv_buffer_add_byte(out, '{');
	rv_json_member_int(out, "argument", test->argument);
	add_hex(out, "mask", test->mask);
	if (test->symbol != RV_VALUE_GIVEN)
		rv_json_member_string(out, "value", symbols[test->symbol]);
	else
		add_hex(out, "value", test->value);
	rv_buffer_add_byte(out, '}');
}

static void add_rule(struct rv_buffer *out, const struct rv_filter_rule *rule)
{
	add_comma(out);
	rv_buffer_add_byte(out, '{');
	add_action(out, rule->action);
	rv_json_member_string(out, "call", rule->name);
	rv_json_add_name(out, "tests");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < RV_FILTER_TESTS; i++) {
		if (rule->tests[i].mask != 0)
			add_test(out, &rule->tests[i]);
	}
	rv_buffer_add_string(out, "]}");
}

static void add_filter(struct rv_buffer *out, const struct rv_filter *filter)
{
	rv_json_add_name(out, "seccomp");
	if (filter == NULL) {
		rv_buffer_add_string(out, "null");
		return;
	}
	rv_buffer_add_byte(out, '{');
	add_action(out, filter->otherwise);
	rv_json_add_name(out, "rules");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < filter->count; i++)
		add_rule(out, &filter->rules[i]);
	rv_buffer_add_string(out, "]}");
}

/* ---- the rest ---- */

static void add_environment(struct rv_buffer *out, const char *const *environment)
{
	rv_json_add_name(out, "environment");
	if (environment == NULL) {
		rv_buffer_add_string(out, "null");
		return;
	}
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; environment[i] != NULL; i++)
		add_text(out, environment[i]);
	rv_buffer_add_byte(out, ']');
}

static void add_limits(struct rv_buffer *out, const uint64_t limits[RV_LIMITS], const uint64_t *request)
{
	rv_json_add_name(out, "limits");
	rv_buffer_add_byte(out, '{');
	for (size_t i = 0; i < COUNT(limit_order); i++) {
		enum rv_limit_name name = limit_order[i];
		uint64_t value = limits[name];

		if (value == RV_LIMIT_REQUEST && request != NULL)
			value = request[name];
		if (value == RV_LIMIT_REQUEST || value == RV_LIMIT_KEEP)
			rv_json_member_string(out, limit_names[name], value == RV_LIMIT_KEEP ? "keep" : "request");
		else
			rv_json_member_int(out, limit_names[name], (int64_t)value);
	}
	rv_buffer_add_byte(out, '}');
}

static void add_mount(struct rv_buffer *out, const struct rv_mount *mount)
{
	add_comma(out);
	rv_buffer_add_byte(out, '{');
	add_words(out, "flags", mount_words, COUNT(mount_words), mount->flags);
	rv_json_member_string(out, "kind", kind_names[mount->kind]);
	add_words(out, "landlock", right_words, COUNT(right_words), mount->rights);
	rv_json_member_string(out, "name", mount->name);
	add_optional(out, "source", mount->source);
	add_optional(out, "target", mount->target);
	rv_buffer_add_byte(out, '}');
}

static void add_policy(struct rv_buffer *out, const struct rv_policy *policy, const uint64_t *request)
{
	add_environment(out, policy->environment);
	add_words(out, "handled", right_words, COUNT(right_words), RV_FS_ALL);
	add_optional(out, "hostname", policy->hostname);
	add_limits(out, policy->limits, request);
	rv_json_add_name(out, "mounts");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < policy->mount_count; i++)
		add_mount(out, &policy->mounts[i]);
	rv_buffer_add_byte(out, ']');
	rv_json_member_string(out, "name", policy->name);
	add_words(out, "namespaces", namespace_words, COUNT(namespace_words), policy->namespaces);
	add_words(out, "scopes", scope_words, COUNT(scope_words), policy->scopes);
	add_filter(out, policy->filter);
}

void rv_policy_render(struct rv_buffer *out, const struct rv_policy *policy)
{
	rv_buffer_add_byte(out, '{');
	add_policy(out, policy, NULL);
	rv_buffer_add_byte(out, '}');
}

/* ---- one run ---- */

static void add_source(struct rv_buffer *out, const struct rv_instance *instance, const struct rv_source *source)
{
	const char *target = source->target;

	for (size_t i = 0; target == NULL && i < instance->policy->mount_count; i++) {
		if (strcmp(instance->policy->mounts[i].name, source->name) == 0)
			target = instance->policy->mounts[i].target;
	}
	add_comma(out);
	rv_buffer_add_byte(out, '{');
	add_optional(out, "link", source->link);
	rv_json_member_string(out, "name", source->name);
	rv_json_member_string(out, "target", target != NULL ? target : source->path);
	rv_buffer_add_byte(out, '}');
}

void rv_policy_render_instance(struct rv_buffer *out, const struct rv_instance *instance)
{
	rv_buffer_add_byte(out, '{');
	rv_json_member_int(out, "gid", (int64_t)instance->gid);
	rv_json_member_int(out, "landlockAbi", instance->landlock_abi);
	rv_json_member_bool(out, "net", instance->net);
	rv_json_add_name(out, "policy");
	rv_buffer_add_byte(out, '{');
	add_policy(out, instance->policy, instance->limits);
	rv_buffer_add_byte(out, '}');
	rv_json_add_name(out, "sources");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < instance->source_count; i++)
		add_source(out, instance, &instance->sources[i]);
	rv_buffer_add_byte(out, ']');
	rv_json_member_int(out, "uid", (int64_t)instance->uid);
	rv_buffer_add_byte(out, '}');
}

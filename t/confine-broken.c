/*
 * rv-confine with a policy of which one entry is broken, for t/3080-confine-broken.bats: a program of the tests' own, since
 * no option of rv-confine changes a policy.
 *
 *     confine-broken VARIANT ROOT RUNTIME PROGRAM ENTRY     prints the profile's digest, then the result
 *     confine-broken runtime RUNTIME                        prints its identity, with this launcher
 *     confine-broken every ROOT RUNTIME PROGRAM ENTRY PINS  every entry of every table of every profile, each broken in
 *                                                           every way below, by itself, and run with the whole one's pins:
 *                                                           a line {"profile","variant","digest","status","reason"} each
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "lib/confine/once.h"
#include "lib/confine/profile.h"
#include "lib/json/write.h"

#define RULES_MAX 1024

static struct rv_policy policy;
static struct rv_mount mounts[16];
static struct rv_filter filter;
static struct rv_filter_rule rules[RULES_MAX];
static const char *environment[16];

static const struct rv_policy *find(const char *name)
{
	(void)name;
	return &policy;
}

static bool break_it(const char *variant)
{
	policy = strcmp(variant, "readable") == 0 ? rv_policy_landlock : rv_policy_linux;
	memcpy(mounts, policy.mounts, policy.mount_count * sizeof *mounts);
	policy.mounts = mounts;
	if (strcmp(variant, "whole") == 0)
		return true;
	if (strcmp(variant, "calls") == 0) { /* no system call is refused */
		policy.filter = NULL;
		policy.namespaces &= ~(uint64_t)CLONE_NEWNET; /* or a socket would lead nowhere */
	} else if (strcmp(variant, "limit") == 0) {
		policy.limits[RV_LIMIT_CPU] = 99;
	} else if (strcmp(variant, "descriptors") == 0) {
		policy.limits[RV_LIMIT_NOFILE] = 99;
	} else if (strcmp(variant, "data") == 0) {
		policy.limits[RV_LIMIT_DATA] = (uint64_t)99 << 20;
	} else if (strcmp(variant, "files") == 0) {
		policy.limits[RV_LIMIT_FSIZE] = 4096;
	} else if (strcmp(variant, "kept") == 0) {
		policy.limits[RV_LIMIT_CORE] = RV_LIMIT_KEEP;
	} else if (strcmp(variant, "core") == 0) {
		policy.limits[RV_LIMIT_CORE] = 4096;
	} else if (strcmp(variant, "writable") == 0) {
		for (size_t i = 0; i < policy.mount_count; i++) {
			if (strcmp(mounts[i].name, "home") == 0)
				mounts[i] = (struct rv_mount){ RV_MOUNT_TMPFS, "home", "size=64k", "/home", 0, RV_FS_ALL };
		}
	} else if (strcmp(variant, "readable") == 0) { /* Landlock leaves everything to be read */
		mounts[policy.mount_count++] =
			(struct rv_mount){ RV_MOUNT_EMPTY, "all", NULL, "/", 0, RV_FS_READ | RV_FS_EXECUTE };
	} else {
		return false;
	}
	return true;
}

/* ---- every entry ---- */

/* Counts the ways to break; the one whose turn it is gets done, and has its name. */
struct turn {
	size_t left;
	char name[128];
};

static bool now(struct turn *turn, const char *table, const char *entry, const char *how)
{
	if (turn->left-- != 0)
		return false;
	(void)snprintf(turn->name, sizeof turn->name, "%s %s: %s", table, entry, how);
	return true;
}

static void take(const struct rv_policy *whole)
{
	size_t i = 0;

	policy = *whole;
	memcpy(mounts, whole->mounts, whole->mount_count * sizeof *mounts);
	memcpy(rules, whole->filter->rules, whole->filter->count * sizeof *rules);
	filter = *whole->filter;
	for (; whole->environment[i] != NULL; i++)
		environment[i] = whole->environment[i];
	environment[i] = NULL;
	filter.rules = rules;
	policy.mounts = mounts;
	policy.filter = &filter;
	policy.environment = environment;
}

static bool break_mounts(struct turn *turn)
{
	for (size_t i = 0; i < policy.mount_count; i++) {
		struct rv_mount *mount = &mounts[i];

		for (unsigned flag = RV_MOUNT_RDONLY; flag <= RV_MOUNT_NOEXEC; flag <<= 1) {
			if ((mount->flags & flag) != 0 && now(turn, "mount", mount->name, "a flag is missing")) {
				mount->flags &= ~flag;
				return true;
			}
		}
		for (uint64_t right = 1; (right & RV_FS_ALL) != 0; right <<= 1) {
			if ((mount->rights & right) == 0 && now(turn, "Landlock", mount->name, "a right more")) {
				mount->rights |= right;
				return true;
			}
		}
		if (now(turn, "mount", mount->name, "missing")) {
			memmove(mount, mount + 1, (policy.mount_count - i - 1) * sizeof *mount);
			policy.mount_count--;
			return true;
		}
	}
	if (!now(turn, "mount", "/", "one more"))
		return false;
	mounts[policy.mount_count++] = (struct rv_mount){ RV_MOUNT_HOST, "all", "/", "/", 0, RV_FS_ALL };
	return true;
}

static bool break_rule(struct turn *turn, struct rv_filter_rule *rule)
{
	for (size_t i = 0; i < RV_FILTER_TESTS; i++) {
		if (rule->tests[i].mask != 0 && now(turn, "seccomp", rule->name, "a test is missing")) {
			rule->tests[i] = (struct rv_filter_test){ .mask = 0 };
			return true;
		}
		if (rule->tests[i].mask == RV_FILTER_ALL && now(turn, "seccomp", rule->name, "half an argument")) {
			rule->tests[i].mask = RV_FILTER_INT;
			return true;
		}
	}
	if (rule->action != SECCOMP_RET_ALLOW && now(turn, "seccomp", rule->name, "allowed")) {
		rule->action = SECCOMP_RET_ALLOW;
		return true;
	}
	return false;
}

static bool break_filter(struct turn *turn)
{
	for (size_t i = 0; i < filter.count; i++) {
		if (break_rule(turn, &rules[i]))
			return true;
		if (now(turn, "seccomp", rules[i].name, "missing")) {
			memmove(&rules[i], &rules[i + 1], (filter.count - i - 1) * sizeof *rules);
			filter.count--;
			return true;
		}
	}
	if (now(turn, "seccomp", "the rest", "allowed")) {
		filter.otherwise = SECCOMP_RET_ALLOW;
		return true;
	}
	if (!now(turn, "seccomp", "all of it", "missing"))
		return false;
	policy.filter = NULL;
	return true;
}

static bool break_rest(struct turn *turn)
{
	static const char *const limits[RV_LIMITS] = { "cpu", "nofile", "core", "fsize", "data" };

	for (uint64_t bit = 1; bit != 0; bit <<= 1) {
		if ((policy.namespaces & bit) != 0 && now(turn, "namespace", "one", "missing")) {
			policy.namespaces &= ~bit;
			return true;
		}
	}
	for (unsigned bit = 1; bit != 0; bit <<= 1) {
		if ((policy.scopes & bit) != 0 && now(turn, "Landlock", "a scope", "missing")) {
			policy.scopes &= ~bit;
			return true;
		}
	}
	for (size_t i = 0; i < RV_LIMITS; i++) {
		if (now(turn, "limit", limits[i], "another")) {
			policy.limits[i] = 4242;
			return true;
		}
		if (now(turn, "limit", limits[i], "kept")) {
			policy.limits[i] = RV_LIMIT_KEEP;
			return true;
		}
	}
	for (size_t i = 0; environment[i] != NULL; i++) {
		if (now(turn, "environment", environment[i], "another")) {
			environment[i] = "LD_PRELOAD=/input/x.so";
			return true;
		}
	}
	if (policy.hostname == NULL || !now(turn, "hostname", policy.hostname, "the host's"))
		return false;
	policy.hostname = NULL;
	return true;
}

static void add_line(struct rv_buffer *line, const struct rv_policy *whole, const struct turn *turn, const char *digest,
		     const struct rv_buffer *result, const struct rv_error *err)
{
	rv_buffer_clear(line);
	rv_buffer_add_byte(line, '{');
	rv_json_member_string(line, "profile", whole->name);
	rv_json_member_string(line, "variant", turn->name);
	rv_json_member_string(line, "digest", digest);
	rv_json_member_string(line, "error", err->message);
	rv_json_add_name(line, "result");
	rv_buffer_add_string(line, result->len > 0 ? result->data : "null");
	while (line->data[line->len - 1] == '\n')
		line->len--;
	rv_buffer_add_string(line, "}\n");
	(void)fwrite(line->data, 1, line->len, stdout);
}

/* One process for all: the host is tried with the whole policy, first, and what follows is the pin's. */
static int break_each(const struct rv_policy *whole, const struct rv_confine_options *options, struct rv_confine_once *once)
{
	struct rv_buffer line = RV_BUFFER_INIT;
	struct rv_confine confine;
	struct rv_error err = RV_ERROR_INIT;
	int status = 0;

	once->profile = whole->name;
	if (rv_confine_start(&confine, options, &err) != 0)
		return 5;
	for (size_t n = 0;; n++) {
		struct rv_buffer result = RV_BUFFER_INIT;
		struct rv_profile profile = { .policy = NULL };
		struct turn turn = { .left = n, .name = "whole" };

		take(whole);
		rv_error_clear(&err);
		if (n > 0 && (turn.left--, !break_mounts(&turn) && !break_filter(&turn) && !break_rest(&turn)))
			break;
		if (rv_profile_describe(&profile, &policy, &err) == 0)
			(void)rv_confine_run_once(&confine, once, &result, &status, &err);
		(void)rv_buffer_string(&result);
		add_line(&line, whole, &turn, profile.digest, &result, &err);
		rv_buffer_release(&result);
		rv_profile_release(&profile);
	}
	rv_buffer_release(&line);
	rv_confine_release(&confine);
	return 0;
}

static int break_every(char **argv)
{
	static const char *const names[] = { "linux/1", "linux/1+proc", "landlock/1" };
	struct rv_confine_options options = { .root = argv[2], .max_retained = 8, .cancel = -1, .find = find };
	struct rv_confine_once once = { .runtime = argv[3], .program = argv[4], .entry = argv[5], .bounds = RV_BOUNDS_DEFAULT };
	char pins[4096];
	int status = 0;

	for (size_t i = 0; status == 0 && i < sizeof names / sizeof names[0]; i++) {
		(void)snprintf(pins, sizeof pins, "%s.%zu", argv[6], i);
		once.pins = pins;
		status = break_each(rv_policy_find(names[i]), &options, &once);
	}
	return status;
}

int main(int argc, char **argv)
{
	struct rv_confine_options options = { .max_retained = 8, .cancel = -1, .find = find };
	struct rv_confine_once once = { .entry = argc > 5 ? argv[5] : "", .unpinned = true, .profile = "linux/1",
					.bounds = RV_BOUNDS_DEFAULT };
	struct rv_buffer out = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_profile profile;
	struct rv_confine confine;
	int status = 5;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) /* the probe of the host runs its own program */
		return 0;
	if (argc == 3 && strcmp(argv[1], "runtime") == 0) {
		if (rv_confine_describe_runtime(&out, argv[2], NULL, 0, false, &err) == 0)
			puts(rv_buffer_string(&out));
		rv_buffer_release(&out);
		return 0;
	}
	if (argc == 7 && strcmp(argv[1], "every") == 0)
		return break_every(argv);
	if (argc != 6 || !break_it(argv[1]))
		return 2;
	options.root = argv[2];
	once.runtime = argv[3];
	once.program = argv[4];
	if (rv_profile_describe(&profile, &policy, &err) == 0)
		printf("%s\n", profile.digest);
	if (rv_confine_start(&confine, &options, &err) != 0 || rv_confine_run_once(&confine, &once, &out, &status, &err) != 0)
		fprintf(stderr, "%s\n", err.message);
	else
		printf("%s", rv_buffer_string(&out));
	rv_buffer_release(&out);
	rv_profile_release(&profile);
	rv_confine_release(&confine);
	return status;
}

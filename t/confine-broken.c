/*
 * rv-confine with a policy of which one entry is broken, for t/3080-confine-broken.bats: a program of the tests' own, since
 * no option of rv-confine changes a policy.
 *
 *     confine-broken VARIANT ROOT RUNTIME PROGRAM ENTRY     prints the profile's digest, then the result
 */
#include <stdio.h>
#include <string.h>

#include "lib/confine/once.h"
#include "lib/confine/profile.h"

static struct rv_policy policy;
static struct rv_mount mounts[16];

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
		policy.namespaces &= ~(uint64_t)0x40000000; /* CLONE_NEWNET: or a socket would lead nowhere */
	} else if (strcmp(variant, "limit") == 0) {
		policy.limits[RV_LIMIT_CPU] = 99;
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

#include "lib/sandbox/restrict.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

static const int resources[] = {
	[RV_LIMIT_CPU] = RLIMIT_CPU,   [RV_LIMIT_NOFILE] = RLIMIT_NOFILE, [RV_LIMIT_CORE] = RLIMIT_CORE,
	[RV_LIMIT_FSIZE] = RLIMIT_FSIZE, [RV_LIMIT_DATA] = RLIMIT_DATA,
};

int rv_restrict_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = 0 };
	struct __user_cap_data_struct none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		return -1;
	return (int)syscall(SYS_capset, &header, none);
}

int rv_restrict_privileges(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	/* EINVAL: beyond the last that this kernel knows.  EPERM: no capability to begin with, and then a bounding
	 * set gives none: no new privileges stands. */
	for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
	if (errno != EINVAL && (errno != EPERM || geteuid() == 0))
		return -1;
	return rv_restrict_capabilities();
}

int rv_restrict_limits(const uint64_t limits[RV_LIMITS])
{
	for (int i = 0; i < RV_LIMITS; i++) {
		struct rlimit now;
		struct rlimit wanted = { (rlim_t)limits[i], (rlim_t)limits[i] };

		if (limits[i] == RV_LIMIT_KEEP)
			continue;
		if (getrlimit((__rlimit_resource_t)resources[i], &now) != 0)
			return -1;
		if (now.rlim_max < wanted.rlim_max) {
			errno = EINVAL;
			return -1;
		}
		if (setrlimit((__rlimit_resource_t)resources[i], &wanted) != 0)
			return -1;
	}
	return 0;
}

int rv_restrict_measure(uint64_t soft[RV_LIMITS], uint64_t hard[RV_LIMITS])
{
	for (int i = 0; i < RV_LIMITS; i++) {
		struct rlimit now;

		if (getrlimit((__rlimit_resource_t)resources[i], &now) != 0)
			return -1;
		soft[i] = now.rlim_cur;
		hard[i] = now.rlim_max;
	}
	return 0;
}

void rv_restrict_choose(const struct rv_instance *instance, uint64_t limits[RV_LIMITS])
{
	for (int i = 0; i < RV_LIMITS; i++) {
		limits[i] = instance->policy->limits[i];
		if (limits[i] == RV_LIMIT_REQUEST)
			limits[i] = instance->limits[i];
	}
}

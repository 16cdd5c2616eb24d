#include "lib/sandbox/landlock.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's interface, by our own names: Debian 12's header knows ABI 2. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#define CREATE_VERSION 1U
#define RULE_PATH_BENEATH 1
#define NET_ALL 3ULL
#define SCOPE_SOCKETS 1ULL
#define SCOPE_SIGNALS 2ULL

struct attributes {
	uint64_t fs;
	uint64_t net;    /* ABI 4 */
	uint64_t scoped; /* ABI 6 */
};

struct path_beneath {
	uint64_t rights;
	int32_t fd;
} __attribute__((packed));

#define OF_FILES (RV_FS_EXECUTE | RV_FS_WRITE_FILE | RV_FS_READ_FILE | RV_FS_TRUNCATE | RV_FS_IOCTL_DEV)

int rv_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0UL, CREATE_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

static uint64_t known(int abi, uint64_t rights)
{
	if (abi < 2)
		rights &= ~RV_FS_REFER;
	if (abi < 3)
		rights &= ~RV_FS_TRUNCATE;
	if (abi < 5)
		rights &= ~RV_FS_IOCTL_DEV;
	return rights;
}

int rv_landlock_new(int abi, unsigned scopes)
{
	struct attributes attributes = { .fs = known(abi, RV_FS_ALL), .net = 0, .scoped = 0 };
	size_t size = abi < 4 ? 8 : abi < 6 ? 16 : 24; /* a kernel takes no longer one than it knows */

	if ((scopes & RV_LANDLOCK_TCP) != 0)
		attributes.net = NET_ALL;
	if ((scopes & RV_LANDLOCK_SIGNALS) != 0)
		attributes.scoped |= SCOPE_SIGNALS;
	if ((scopes & RV_LANDLOCK_SOCKETS) != 0)
		attributes.scoped |= SCOPE_SOCKETS;
	return (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0U); /* CLOEXEC by itself */
}

int rv_landlock_allow(int ruleset, int abi, int fd, uint64_t rights)
{
	struct path_beneath rule = { .rights = known(abi, rights), .fd = fd };
	struct stat info;

	if (fstat(fd, &info) != 0)
		return -1;
	if (!S_ISDIR(info.st_mode))
		rule.rights &= OF_FILES;
	if (rule.rights == 0)
		return 0;
	return (int)syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0U);
}

int rv_landlock_restrict(int ruleset)
{
	return (int)syscall(SYS_landlock_restrict_self, ruleset, 0U);
}

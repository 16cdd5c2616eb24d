/* The profiles of rv-confine as tables: rv-confine-profile(7) says what each row is for. */
#include <sched.h>
#include <string.h>

#include "lib/sandbox/calls.h"
#include "lib/sandbox/policy.h"

#define SEALED (RV_MOUNT_RDONLY | RV_MOUNT_NOSUID | RV_MOUNT_NODEV)
#define SNAPSHOT (SEALED | RV_MOUNT_NOEXEC)
#define COUNT(table) (sizeof(table) / sizeof(table)[0])

#define NAMESPACES \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define SCOPES (RV_LANDLOCK_TCP | RV_LANDLOCK_SIGNALS | RV_LANDLOCK_SOCKETS)
/* A run says the first two and the last; nothing is written, and nobody dumps core. */
#define LIMITS { RV_LIMIT_REQUEST, RV_LIMIT_REQUEST, 0, 0, RV_LIMIT_REQUEST }

/* The aliases before what is mounted through them.  /home and /tmp are there so that a write says EROFS, and
 * not that there is no such directory. */
#define LINUX_MOUNTS \
	{ RV_MOUNT_ALIAS, "alias", NULL, NULL, 0, 0 }, \
	{ RV_MOUNT_SOURCE, "tree", NULL, NULL, SEALED, RV_FS_READ | RV_FS_EXECUTE }, \
	{ RV_MOUNT_SOURCE, "runtime", NULL, NULL, SEALED, RV_FS_READ | RV_FS_EXECUTE }, \
	{ RV_MOUNT_SOURCE, "program", NULL, "/program", SNAPSHOT, RV_FS_READ }, \
	{ RV_MOUNT_SOURCE, "input", NULL, "/input", SNAPSHOT, RV_FS_READ }, \
	{ RV_MOUNT_EMPTY, "home", NULL, "/home", 0, RV_FS_READ }, \
	{ RV_MOUNT_EMPTY, "tmp", NULL, "/tmp", 0, RV_FS_READ }

static const struct rv_mount linux_mounts[] = { LINUX_MOUNTS };

static const struct rv_mount linux_proc_mounts[] = {
	LINUX_MOUNTS,
	{ RV_MOUNT_PROC, "proc", "subset=pid,hidepid=ptraceable", "/proc", SNAPSHOT, RV_FS_READ },
};

/* No mounts without namespaces: the paths that Landlock leaves. */
static const struct rv_mount landlock_mounts[] = {
	{ RV_MOUNT_SOURCE, "tree", NULL, NULL, 0, RV_FS_READ | RV_FS_EXECUTE },
	{ RV_MOUNT_SOURCE, "runtime", NULL, NULL, 0, RV_FS_READ | RV_FS_EXECUTE },
	{ RV_MOUNT_SOURCE, "program", NULL, NULL, 0, RV_FS_READ },
	{ RV_MOUNT_SOURCE, "input", NULL, NULL, 0, RV_FS_READ },
	{ RV_MOUNT_SOURCE, "home", NULL, NULL, 0, RV_FS_READ },
};

static const char *const linux_environment[] = {
	"HOME=/home", "LC_ALL=C", "OPENSSL_CONF=/nonexistent/openssl.cnf", "TMPDIR=/home", "TZ=UTC", NULL,
};

/* {home} is the slot's own, on the host. */
static const char *const landlock_environment[] = {
	"HOME={home}", "LC_ALL=C", "OPENSSL_CONF=/nonexistent/openssl.cnf", "TMPDIR={home}", "TZ=UTC", NULL,
};

const struct rv_policy rv_policy_linux = {
	"linux/1", NAMESPACES, linux_mounts, COUNT(linux_mounts), SCOPES, &rv_filter_confine, LIMITS,
	linux_environment, "confined",
};

const struct rv_policy rv_policy_linux_proc = {
	"linux/1+proc", NAMESPACES, linux_proc_mounts, COUNT(linux_proc_mounts), SCOPES, &rv_filter_confine, LIMITS,
	linux_environment, "confined",
};

const struct rv_policy rv_policy_landlock = {
	"landlock/1", 0, landlock_mounts, COUNT(landlock_mounts), SCOPES, &rv_filter_confine, LIMITS,
	landlock_environment, NULL,
};

const struct rv_policy *rv_policy_find(const char *name)
{
	static const struct rv_policy *const all[] = { &rv_policy_linux, &rv_policy_linux_proc, &rv_policy_landlock };

	for (size_t i = 0; i < COUNT(all); i++) {
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	}
	return NULL;
}

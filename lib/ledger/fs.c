#include "lib/ledger/fs.h"

#include <errno.h>
#include <stddef.h>
#include <sys/vfs.h>

struct remote {
	uint32_t magic;
	const char *name;
};

/* statfs(2), and the kernel's own sources for what it does not list. */
static const struct remote remotes[] = {
	{ 0x00006969, "nfs" },
	{ 0x0000517B, "smb" },
	{ 0xFF534D42, "cifs" },
	{ 0xFE534D42, "smb2" },
	{ 0x65735546, "fuse" },
	{ 0x01021997, "9p" },
	{ 0x5346414F, "afs" },
	{ 0x6B414653, "kafs" },
	{ 0x00C36400, "ceph" },
	{ 0x73757245, "coda" },
	{ 0x0000564C, "ncp" },
	{ 0x0BD00BD0, "lustre" },
	{ 0x01161970, "gfs2" },
	{ 0x7461636F, "ocfs2" },
	{ 0x47504653, "gpfs" },
	{ 0x20030528, "orangefs" },
	{ 0x19830326, "beegfs" },
	{ 0x786F4256, "vboxsf" },
	{ 0xBACBACBC, "vmhgfs" },
	{ 0xAAD7AAEA, "panfs" },
	{ 0x013111A8, "ibrix" },
};

const char *rv_fs_remote_name(uint32_t magic)
{
	for (size_t i = 0; i < sizeof remotes / sizeof remotes[0]; i++) {
		if (remotes[i].magic == magic)
			return remotes[i].name;
	}
	return NULL;
}

int rv_fs_check(int fd, struct rv_error *err)
{
	struct statfs fs;
	const char *name;

	while (fstatfs(fd, &fs) != 0) {
		if (errno != EINTR)
			return rv_error_set(err, RV_E_LEDGER, errno, "fstatfs");
	}
	name = rv_fs_remote_name((uint32_t)fs.f_type);
	if (name != NULL)
		return rv_error_set(err, RV_E_LEDGER, 0,
				    "on a file system (%s) where neither locks nor appends can be relied on", name);
	return 0;
}

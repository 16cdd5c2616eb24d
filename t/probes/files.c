/* Files: reading what is outside, and changing anything. */
#include "t/probes/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

int probe_no(int errnum)
{
	errno = errnum;
	return -1;
}

int probe_close(int fd)
{
	if (fd < 0)
		return -1;
	(void)close(fd);
	return 0;
}

int probe_read_path(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, &byte, 1);
	if (n == 0)
		errno = ENODATA;
	(void)close(fd);
	return n == 1 ? 0 : -1;
}

static const char *secret(void)
{
	return probe_value[KEY_SECRET];
}

/* DIR/NAME in a buffer of its own. */
static const char *in(const char *dir, const char *name)
{
	static char text[2][4096];
	static int turn;

	turn = !turn;
	(void)snprintf(text[turn], sizeof text[turn], "%s/%s", dir, name);
	return text[turn];
}

/* ---- reading ---- */

static int read_open(void) { return probe_read_path(secret()); }
static int read_alias(void) { return probe_read_path(probe_value[KEY_ALIAS]); }
static int read_opath(void) { return probe_close(open(secret(), O_PATH | O_CLOEXEC)); }
static int read_access(void) { return access(secret(), F_OK); }

static int read_stat(void)
{
	struct stat info;

	return stat(secret(), &info);
}

static int read_statx(void)
{
	struct statx info;

	return statx(AT_FDCWD, secret(), 0, STATX_ALL, &info);
}

static int read_directory(void)
{
	DIR *dir = opendir(probe_value[KEY_DIR]);

	if (dir == NULL)
		return -1;
	(void)closedir(dir);
	return 0;
}

static int read_chdir(void) { return chdir(probe_value[KEY_DIR]); }

static int read_relative(void)
{
	return probe_read_path(in("../../../../../../../../../../../..", secret() + 1));
}

static int read_self_root(void) { return probe_read_path(in("/proc/self/root", secret() + 1)); }
static int read_self_cwd(void) { return probe_read_path(in("/proc/self/cwd/../../../../../../../..", secret() + 1)); }
static int read_init_root(void) { return probe_read_path(in("/proc/1/root", secret() + 1)); }
static int read_parent_root(void)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/root", (int)probe_parent);
	return probe_read_path(in(path, secret() + 1));
}

/* A descriptor of the root, and ".." from it. */
static int read_above_root(void)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int up = root < 0 ? -1 : openat(root, "../..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = up < 0 ? -1 : openat(up, secret() + 1, O_RDONLY | O_CLOEXEC);

	(void)probe_close(root);
	(void)probe_close(up);
	return probe_close(fd);
}

static int read_link_made(void)
{
	char name[64];
	int result;

	(void)snprintf(name, sizeof name, "probe-link-%d", (int)getpid());
	if (symlink(secret(), name) != 0)
		return -1;
	result = probe_read_path(name);
	(void)unlink(name);
	return result;
}

static int read_hard_link(void)
{
	char name[64];
	int result;

	(void)snprintf(name, sizeof name, "probe-hard-%d", (int)getpid());
	if (link(secret(), name) != 0)
		return -1;
	result = probe_read_path(name);
	(void)unlink(name);
	return result;
}

static int read_map(void)
{
	int fd = open(secret(), O_RDONLY | O_CLOEXEC);
	void *at;

	if (fd < 0)
		return -1;
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	(void)close(fd);
	return at == MAP_FAILED ? -1 : munmap(at, 4096);
}

/* As `rv_file(path)`: probes of what every host has. */
#define READS(function, path) \
	static int function(void) \
	{ \
		return probe_read_path(path); \
	}
READS(read_hostname, "/etc/hostname")
READS(read_shadow, "/etc/shadow")
READS(read_fstab, "/etc/fstab")
READS(read_etc_debian, "/etc/debian_version")
READS(read_dpkg, "/var/lib/dpkg/status")
READS(read_profile, "/root/.profile")
READS(read_sys, "/sys/kernel/notes")
READS(read_sys_uevent, "/sys/kernel/uevent_seqnum")
READS(read_init_environ, "/proc/1/environ")
READS(read_init_cmdline, "/proc/1/cmdline")
READS(read_init_maps, "/proc/1/maps")
READS(read_kcore, "/proc/kcore")
READS(read_kmsg, "/dev/kmsg")
READS(read_mem, "/dev/mem")
READS(read_run, "/run/utmp")

static int read_entry(const char *path)
{
	return probe_close(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int list_home(void) { return read_entry("/home/.."); }
static int list_var(void) { return read_entry("/var"); }
static int list_root(void) { return read_entry("/root"); }
static int list_run(void) { return read_entry("/run"); }
static int list_boot(void) { return read_entry("/boot"); }
static int list_sys(void) { return read_entry("/sys/fs/cgroup"); }
static int list_opt(void) { return read_entry("/opt"); }
static int list_srv(void) { return read_entry("/srv"); }

static int open_tty(void) { return probe_close(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)); }
static int open_ptmx(void) { return probe_close(open("/dev/ptmx", O_RDWR | O_CLOEXEC | O_NOCTTY)); }
static int open_console(void) { return probe_close(open("/dev/console", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)); }
static int open_vda(void) { return probe_close(open("/dev/vda", O_RDONLY | O_CLOEXEC)); }
static int open_fuse(void) { return probe_close(open("/dev/fuse", O_RDWR | O_CLOEXEC)); }
static int open_tun(void) { return probe_close(open("/dev/net/tun", O_RDWR | O_CLOEXEC)); }

static int open_handle(void)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} at = { .handle.handle_bytes = MAX_HANDLE_SZ };
	int mount_id;
	int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = -1;

	if (root >= 0 && name_to_handle_at(AT_FDCWD, "/usr", &at.handle, &mount_id, 0) == 0)
		fd = open_by_handle_at(root, &at.handle, O_RDONLY | O_CLOEXEC);
	(void)probe_close(root);
	return probe_close(fd);
}

/* ---- writing, at a place ---- */

static const char *here(const char *name)
{
	char text[64];

	(void)snprintf(text, sizeof text, "probe-%s-%d", name, (int)getpid());
	return in(probe_value[KEY_AT], text);
}

static int write_create(void)
{
	const char *path = here("new");
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0)
		(void)unlink(path);
	return probe_close(fd);
}

static int write_creat(void)
{
	const char *path = here("creat");
	int fd = creat(path, 0600);

	if (fd >= 0)
		(void)unlink(path);
	return probe_close(fd);
}

static int write_tmpfile(void) { return probe_close(open(probe_value[KEY_AT], O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)); }

static int write_mkdir(void)
{
	const char *path = here("dir");

	return mkdir(path, 0700) != 0 ? -1 : rmdir(path);
}

static int write_mkfifo(void)
{
	const char *path = here("fifo");

	return mkfifo(path, 0600) != 0 ? -1 : unlink(path);
}

static int write_mknod(void)
{
	const char *path = here("node");

	return mknod(path, S_IFCHR | 0600, makedev(1, 5)) != 0 ? -1 : unlink(path);
}

static int write_symlink(void)
{
	const char *path = here("link");

	return symlink("target", path) != 0 ? -1 : unlink(path);
}

static int write_socket(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int result;

	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", here("s"));
	result = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&address, sizeof address);
	if (result == 0)
		(void)unlink(address.sun_path);
	(void)probe_close(fd);
	return result;
}

/* ---- changing the file that is there: DIR/victim ---- */

static const char *victim(void) { return in(probe_value[KEY_DIR], "victim"); }

static int change_write(void) { return probe_close(open(victim(), O_WRONLY | O_CLOEXEC)); }
static int change_append(void) { return probe_close(open(victim(), O_WRONLY | O_APPEND | O_CLOEXEC)); }
static int change_otrunc(void) { return probe_close(open(victim(), O_WRONLY | O_TRUNC | O_CLOEXEC)); }
static int change_truncate(void) { return truncate(victim(), 1); }
static int change_chmod(void) { return chmod(victim(), 0644); }
static int change_chown(void) { return chown(victim(), (uid_t)-1, (gid_t)-1); }
static int change_utime(void) { return utime(victim(), NULL); }
static int change_utimens(void) { return utimensat(AT_FDCWD, victim(), NULL, 0); }
static int change_setxattr(void) { return setxattr(victim(), "user.probe", "1", 1, 0); }
static int change_rename(void)
{
	const char *from = victim();
	const char *to = in(probe_value[KEY_DIR], "renamed");

	return rename(from, to) != 0 ? -1 : rename(to, from);
}

static int change_link(void)
{
	const char *from = victim();
	const char *to = in(probe_value[KEY_DIR], "linked");

	return link(from, to) != 0 ? -1 : unlink(to);
}

static int change_unlink(void)
{
	const char *path = in(probe_value[KEY_DIR], "victim");
	char copy[4096];

	(void)snprintf(copy, sizeof copy, "%s", path);
	return unlink(copy) != 0 ? -1 : probe_close(open(copy, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static int change_map(void)
{
	int fd = open(victim(), O_RDWR | O_CLOEXEC);
	void *at;

	if (fd < 0)
		return -1;
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	return at == MAP_FAILED ? -1 : munmap(at, 4096);
}

/* At fixed places of every host. */
static int create_at(const char *dir)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof path, "%s/rv-probe-%d", dir, (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)unlink(path);
	return probe_close(fd);
}

static int create_root(void) { return create_at("/"); }
static int create_usr(void) { return create_at("/usr"); }
static int create_usr_local(void) { return create_at("/usr/local/bin"); }
static int create_etc(void) { return create_at("/etc"); }
static int create_var_tmp(void) { return create_at("/var/tmp"); }
static int create_dev(void) { return create_at("/dev"); }
static int create_proc_sys(void) { return probe_close(open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC)); }
static int create_sysrq(void) { return probe_close(open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC)); }
static int change_null(void)
{
	struct stat info;

	return stat("/dev/null", &info) != 0 ? -1 : chmod("/dev/null", info.st_mode & 07777);
}

/* ---- executable maps of the snapshots ---- */

static int map_snapshot(int prot)
{
	int fd = open(probe_value[KEY_SNAPSHOT], O_RDONLY | O_CLOEXEC);
	void *at;

	if (fd < 0)
		return -1;
	at = mmap(NULL, 4096, prot, MAP_PRIVATE, fd, 0);
	(void)close(fd);
	if (at == MAP_FAILED || (prot == PROT_READ && mprotect(at, 4096, PROT_READ | PROT_EXEC) != 0))
		return -1;
	return munmap(at, 4096);
}

static int map_exec(void) { return map_snapshot(PROT_READ | PROT_EXEC); }
static int map_then_exec(void) { return map_snapshot(PROT_READ); }

static int inherited_descriptor(void)
{
	for (int fd = 3; fd < 4096; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			return 0;
	}
	return probe_no(EBADF);
}

static int inherited_variable(void) { return getenv("RV_PROBE_SECRET") != NULL ? 0 : probe_no(ENOENT); }

const struct probe probes_files[] = {
	{ "read.open", KEY_SECRET, read_open }, { "read.alias", KEY_ALIAS, read_alias },
	{ "read.o-path", KEY_SECRET, read_opath }, { "read.access", KEY_SECRET, read_access },
	{ "read.stat", KEY_SECRET, read_stat }, { "read.statx", KEY_SECRET, read_statx },
	{ "read.mmap", KEY_SECRET, read_map }, { "read.directory", KEY_DIR, read_directory },
	{ "read.chdir", KEY_DIR, read_chdir }, { "read.dot-dot", KEY_SECRET, read_relative },
	{ "read.self-root", KEY_SECRET, read_self_root }, { "read.self-cwd", KEY_SECRET, read_self_cwd },
	{ "read.init-root", KEY_SECRET, read_init_root }, { "read.parent-root", KEY_SECRET, read_parent_root },
	{ "read.above-root", KEY_SECRET, read_above_root }, { "read.symlink", KEY_SECRET, read_link_made },
	{ "read.hard-link", KEY_SECRET, read_hard_link }, { "read.handle", KEY_NONE, open_handle },
	{ "read.etc-hostname", KEY_NONE, read_hostname }, { "read.etc-shadow", KEY_NONE, read_shadow },
	{ "read.etc-fstab", KEY_NONE, read_fstab }, { "read.etc-debian", KEY_NONE, read_etc_debian },
	{ "read.var-dpkg", KEY_NONE, read_dpkg }, { "read.root-profile", KEY_NONE, read_profile },
	{ "read.sys", KEY_NONE, read_sys }, { "read.sys-uevent", KEY_NONE, read_sys_uevent },
	{ "read.init-environ", KEY_NONE, read_init_environ }, { "read.init-cmdline", KEY_NONE, read_init_cmdline },
	{ "read.init-maps", KEY_NONE, read_init_maps }, { "read.kcore", KEY_NONE, read_kcore },
	{ "read.kmsg", KEY_NONE, read_kmsg }, { "read.dev-mem", KEY_NONE, read_mem }, { "read.run", KEY_NONE, read_run },
	{ "list.home", KEY_NONE, list_home }, { "list.var", KEY_NONE, list_var }, { "list.root", KEY_NONE, list_root },
	{ "list.run", KEY_NONE, list_run }, { "list.boot", KEY_NONE, list_boot }, { "list.cgroup", KEY_NONE, list_sys },
	{ "list.opt", KEY_NONE, list_opt }, { "list.srv", KEY_NONE, list_srv },
	{ "device.tty", KEY_NONE, open_tty }, { "device.ptmx", KEY_NONE, open_ptmx },
	{ "device.console", KEY_NONE, open_console }, { "device.disk", KEY_NONE, open_vda },
	{ "device.fuse", KEY_NONE, open_fuse }, { "device.tun", KEY_NONE, open_tun },
	{ "write.create", KEY_AT, write_create }, { "write.creat", KEY_AT, write_creat },
	{ "write.tmpfile", KEY_AT, write_tmpfile }, { "write.mkdir", KEY_AT, write_mkdir },
	{ "write.mkfifo", KEY_AT, write_mkfifo }, { "write.mknod", KEY_AT, write_mknod },
	{ "write.symlink", KEY_AT, write_symlink }, { "write.socket", KEY_AT, write_socket },
	{ "change.write", KEY_DIR, change_write }, { "change.append", KEY_DIR, change_append },
	{ "change.o-trunc", KEY_DIR, change_otrunc }, { "change.truncate", KEY_DIR, change_truncate },
	{ "change.chmod", KEY_DIR, change_chmod }, { "change.chown", KEY_DIR, change_chown },
	{ "change.utime", KEY_DIR, change_utime }, { "change.utimensat", KEY_DIR, change_utimens },
	{ "change.setxattr", KEY_DIR, change_setxattr }, { "change.rename", KEY_DIR, change_rename },
	{ "change.link", KEY_DIR, change_link }, { "change.unlink", KEY_DIR, change_unlink },
	{ "change.mmap", KEY_DIR, change_map }, { "change.dev-null", KEY_NONE, change_null },
	{ "create.root", KEY_NONE, create_root }, { "create.usr", KEY_NONE, create_usr },
	{ "create.usr-local", KEY_NONE, create_usr_local }, { "create.etc", KEY_NONE, create_etc },
	{ "create.var-tmp", KEY_NONE, create_var_tmp }, { "create.dev", KEY_NONE, create_dev },
	{ "write.sysctl", KEY_NONE, create_proc_sys }, { "write.sysrq", KEY_NONE, create_sysrq },
	{ "map.exec", KEY_SNAPSHOT, map_exec }, { "map.mprotect-exec", KEY_SNAPSHOT, map_then_exec },
	{ "inherit.descriptor", KEY_NONE, inherited_descriptor }, { "inherit.variable", KEY_NONE, inherited_variable },
	PROBE_END
};

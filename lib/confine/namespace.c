#include "lib/confine/namespace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/confine/names.h"
#include "lib/digest/digest.h"

#define CANARY "canary"
#define CANARY_TEXT "A confined program must not be able to read this.\n"

/* Something that was made; `path` is relative to the root. */
struct rv_ns_entry {
	char *path; /* owned */
	size_t parent; /* the entry that it lies in; the slot's says nothing */
	bool directory;
	dev_t device;
	ino_t inode;
	uid_t uid;
	size_t size;
	size_t children; /* names in a directory */
	char sha256[RV_SHA256_HEX];
};

int rv_root_check_name(const char *path, struct rv_error *err)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@+/-";

	if (!rv_names_are_normal(path) || path[strspn(path, allowed)] != '\0' || strlen(path) > PATH_MAX / 2)
		return rv_error_set(err, RV_E_USAGE, 0,
				    "the root must be absolute, normal and of A-Z a-z 0-9 . _ @ + / - alone");
	return 0;
}

int rv_root_open(const char *path, int *root, struct rv_error *err)
{
	rv_auto_free char *canonical = realpath(path, NULL);
	rv_auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (canonical == NULL || fd < 0 || fstat(fd, &st) != 0)
		return rv_error_set(err, RV_E_CONFIG, errno, "root %s", path);
	if (strcmp(canonical, path) != 0)
		return rv_error_set(err, RV_E_CONFIG, 0, "root %s is not canonical: it is %s", path, canonical);
	if (st.st_uid != geteuid())
		return rv_error_set(err, RV_E_CONFIG, 0, "root %s belongs to another user", path);
	if ((st.st_mode & 077) != 0)
		return rv_error_set(err, RV_E_CONFIG, 0, "root %s is open to group or others: chmod 700 it", path);
	*root = rv_steal_fd(&fd);
	return 0;
}

/* The names in a directory, . and .. aside; of a descriptor that was not read from yet. */
static long count_names(int fd, struct rv_error *err)
{
	union {
		struct dirent64 first;
		char bytes[8192];
	} list;
	long count = 0;

	for (;;) {
		ssize_t n = getdents64(fd, &list, sizeof list);

		if (n < 0)
			return rv_error_set(err, RV_E_IO, errno, "reading a directory");
		if (n == 0)
			return count;
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const void *)(list.bytes + at);

			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				count++;
			at += entry->d_reclen;
		}
	}
}

long rv_root_count(int root, struct rv_error *err)
{
	rv_auto_fd int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return rv_error_set(err, RV_E_IO, errno, "reading the root");
	return count_names(fd, err);
}

/* No link anywhere on the way, and nothing above the root. */
static int open_below(int root, const char *path, int flags)
{
	struct open_how how = { .flags = (unsigned long long)(unsigned)(flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK),
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

static struct rv_ns_entry *add(struct rv_namespace *ns, const char *path, struct rv_error *err)
{
	struct rv_ns_entry *entry;

	if (ns->count == ns->room) {
		size_t room = ns->room == 0 ? 32 : 2 * ns->room;
		struct rv_ns_entry *entries = realloc(ns->entries, room * sizeof *entries);

		if (entries == NULL) {
			(void)rv_error_nomem(err);
			return NULL;
		}
		ns->entries = entries;
		ns->room = room;
	}
	entry = &ns->entries[ns->count];
	*entry = (struct rv_ns_entry){ .path = strdup(path) };
	if (entry->path == NULL) {
		(void)rv_error_nomem(err);
		return NULL;
	}
	ns->count++;
	return entry;
}

static struct rv_ns_entry *find(struct rv_namespace *ns, const char *path, size_t len)
{
	size_t i = ns->parent;

	/* Files come in the order of paths: it is mostly the one before. */
	if (i >= ns->count || strncmp(ns->entries[i].path, path, len) != 0 || ns->entries[i].path[len] != '\0') {
		for (i = ns->count; i > 0; i--) {
			if (strncmp(ns->entries[i - 1].path, path, len) == 0 && ns->entries[i - 1].path[len] == '\0')
				break;
		}
		if (i-- == 0)
			return NULL;
	}
	ns->parent = i;
	return &ns->entries[i];
}

/* The entry that was added last is in its parent. */
static void count_in_parent(struct rv_namespace *ns, const char *path)
{
	struct rv_ns_entry *parent = find(ns, path, (size_t)(strrchr(path, '/') - path));

	if (parent == NULL)
		return;
	parent->children++;
	ns->entries[ns->count - 1].parent = ns->parent;
}

static int note(const struct rv_namespace *ns, struct rv_ns_entry *entry, int fd, uid_t uid, gid_t gid, struct rv_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return rv_error_set(err, RV_E_IO, errno, "%s", entry->path);
	entry->device = st.st_dev;
	entry->inode = st.st_ino;
	entry->uid = uid;
	entry->directory = S_ISDIR(st.st_mode);
	/* Last: an owner who is not the caller may have taken the right to do more. */
	if (uid != ns->self && fchown(fd, uid, gid) != 0)
		return rv_error_set(err, RV_E_IO, errno, "chown %s", entry->path);
	return 0;
}

static int make_directory(struct rv_namespace *ns, const char *path, uid_t uid, gid_t gid, struct rv_error *err)
{
	struct rv_ns_entry *entry;
	rv_auto_fd int fd = -1;

	if (mkdirat(ns->root, path, 0700) != 0)
		return rv_error_set(err, RV_E_IO, errno, "mkdir %s", path);
	entry = add(ns, path, err);
	if (entry == NULL)
		return -1;
	entry->directory = true;
	if (strchr(path, '/') != NULL)
		count_in_parent(ns, path);
	fd = open_below(ns->root, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return rv_error_set(err, RV_E_IO, errno, "%s", path);
	return note(ns, &ns->entries[ns->count - 1], fd, uid, gid, err);
}

static int write_file(const struct rv_namespace *ns, struct rv_ns_entry *entry, int fd, const char *bytes, size_t size,
		      uid_t uid, gid_t gid, struct rv_error *err)
{
	if (rv_io_write_all(fd, bytes, size, err) != 0)
		return rv_error_wrap(err, "%s", entry->path);
	return note(ns, entry, fd, uid, gid, err);
}

static int make_file(struct rv_namespace *ns, const char *path, const char *bytes, size_t size, const char *sha256, uid_t uid,
		     gid_t gid, struct rv_error *err)
{
	rv_auto_fd int fd = openat(ns->root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	struct rv_ns_entry *entry;

	if (fd < 0)
		return rv_error_set(err, RV_E_IO, errno, "%s", path);
	entry = add(ns, path, err);
	if (entry != NULL && write_file(ns, entry, fd, bytes, size, uid, gid, err) != 0) {
		free(entry->path); /* half a file is not recorded, and not left */
		ns->count--;
		entry = NULL;
	}
	if (entry == NULL) {
		(void)unlinkat(ns->root, path, 0);
		return -1;
	}
	entry->size = size;
	memcpy(entry->sha256, sha256, RV_SHA256_HEX);
	count_in_parent(ns, path);
	return 0;
}

int rv_namespace_claim(struct rv_namespace *ns, int root, const char *root_path, int slots, struct rv_error *err)
{
	*ns = (struct rv_namespace){ .root = root, .self = geteuid() };
	for (int i = 0; i < slots; i++) {
		char name[32];

		(void)snprintf(name, sizeof name, "slot-%d", i);
		int made = make_directory(ns, name, ns->self, getegid(), err);

		if (ns->count > 0) { /* it is there, whatever came after */
			(void)snprintf(ns->path, sizeof ns->path, "%s/%s", root_path, name);
			ns->name = strrchr(ns->path, '/') + 1;
			return made == 0 ? 1 : -1;
		}
		if (err->errnum != EEXIST)
			return -1;
		rv_error_clear(err);
	}
	return 0;
}

/* The directories on the way to a file that are not there yet. */
static int make_parents(struct rv_namespace *ns, char *path, size_t from, uid_t uid, gid_t gid, struct rv_error *err)
{
	for (char *slash = strchr(path + from, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		int result = 0;

		*slash = '\0';
		if (find(ns, path, (size_t)(slash - path)) == NULL)
			result = make_directory(ns, path, uid, gid, err);
		*slash = '/';
		if (result != 0)
			return -1;
	}
	return 0;
}

static int fill_snapshot(struct rv_namespace *ns, const char *name, const struct rv_snapshot *snapshot, uid_t uid, gid_t gid,
			 struct rv_error *err)
{
	char path[64 + RV_SNAPSHOT_PATH_MAX];
	int len = snprintf(path, sizeof path, "%s/%s", ns->name, name);

	if (make_directory(ns, path, uid, gid, err) != 0)
		return -1;
	for (size_t i = 0; i < snapshot->count; i++) {
		const struct rv_snapshot_file *file = &snapshot->files[i];

		(void)snprintf(path + len, sizeof path - (size_t)len, "/%s", file->path);
		if (make_parents(ns, path, (size_t)len + 1, uid, gid, err) != 0 ||
		    make_file(ns, path, file->content, file->size, file->sha256, uid, gid, err) != 0)
			return -1;
	}
	return 0;
}

int rv_namespace_fill(struct rv_namespace *ns, const struct rv_snapshot *program, const struct rv_snapshot *input,
		      uid_t uid, gid_t gid, struct rv_error *err)
{
	struct rv_sha256 *sha = rv_sha256_new(err);
	char hex[RV_SHA256_HEX], path[64];
	int result = sha != NULL ? rv_sha256_hex(sha, CANARY_TEXT, sizeof CANARY_TEXT - 1, hex, err) : -1;

	rv_sha256_free(sha);
	if (result != 0 || fill_snapshot(ns, "program", program, uid, gid, err) != 0 ||
	    fill_snapshot(ns, "input", input, uid, gid, err) != 0)
		return -1;
	(void)snprintf(path, sizeof path, "%s/home", ns->name);
	if (make_directory(ns, path, uid, gid, err) != 0)
		return -1;
	(void)snprintf(path, sizeof path, "%s/" CANARY, ns->name);
	return make_file(ns, path, CANARY_TEXT, sizeof CANARY_TEXT - 1, hex, geteuid(), getegid(), err);
}

bool rv_namespace_identify(const struct rv_namespace *ns, const char *name, dev_t *device, ino_t *inode)
{
	size_t skip = strlen(ns->name) + 1;

	for (size_t i = 1; i < ns->count; i++) {
		if (strcmp(ns->entries[i].path + skip, name) == 0) {
			*device = ns->entries[i].device;
			*inode = ns->entries[i].inode;
			return true;
		}
	}
	return false;
}

static int differs(const struct rv_ns_entry *entry, const char *how, struct rv_error *err)
{
	return rv_error_set(err, RV_E_CORRUPT, 0, "%s %s", entry->path, how);
}

/* One verification: what each entry is compared with is used again for the next. */
struct inspection {
	const struct rv_namespace *ns;
	struct rv_sha256 *sha;
	struct rv_buffer bytes;
	size_t parent; /* the directory that is open */
	int directory; /* -1: none yet */
};

static int verify_content(struct inspection *look, const struct rv_ns_entry *entry, int fd, struct rv_error *err)
{
	char hex[RV_SHA256_HEX];
	char *bytes;

	rv_buffer_clear(&look->bytes);
	bytes = rv_buffer_reserve(&look->bytes, entry->size + 1);
	if (bytes == NULL)
		return rv_error_nomem(err);
	if (rv_io_pread_all(fd, bytes, entry->size, 0, err) != 0)
		return differs(entry, "cannot be read whole", err);
	if (rv_sha256_hex(look->sha, bytes, entry->size, hex, err) != 0)
		return -1;
	return strcmp(hex, entry->sha256) == 0 ? 0 : differs(entry, "has other content", err);
}

/* By its name in its directory, which was itself opened by its path from the root: no link on the way. */
static int open_entry(struct inspection *look, const struct rv_ns_entry *entry)
{
	if (entry->directory)
		return open_below(look->ns->root, entry->path, O_RDONLY);
	if (look->directory < 0 || look->parent != entry->parent) {
		if (look->directory >= 0)
			(void)close(look->directory);
		look->parent = entry->parent;
		look->directory = open_below(look->ns->root, look->ns->entries[entry->parent].path, O_RDONLY | O_DIRECTORY);
		if (look->directory < 0)
			return -1;
	}
	return openat(look->directory, strrchr(entry->path, '/') + 1,
		      O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
}

static int verify_entry(struct inspection *look, const struct rv_ns_entry *entry, struct rv_error *err)
{
	rv_auto_fd int fd = open_entry(look, entry);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return rv_error_set(err, RV_E_CORRUPT, errno, "%s", entry->path);
	if (st.st_dev != entry->device || st.st_ino != entry->inode)
		return differs(entry, "is another file", err);
	if (st.st_uid != entry->uid)
		return differs(entry, "has another owner", err);
	if (entry->directory) {
		long count;

		if (!S_ISDIR(st.st_mode) || (st.st_mode & 077) != 0)
			return differs(entry, "is open to group or others", err);
		count = count_names(fd, err);
		/* Every recorded child is looked for under its own name: the same number makes it the same listing. */
		return count < 0 ? -1 : (size_t)count == entry->children ? 0 : differs(entry, "has other names in it", err);
	}
	if (!S_ISREG(st.st_mode))
		return differs(entry, "is no file any more", err);
	if (st.st_nlink != 1)
		return differs(entry, "has another link", err);
	if ((size_t)st.st_size != entry->size)
		return differs(entry, "has another size", err);
	return verify_content(look, entry, fd, err);
}

int rv_namespace_verify(const struct rv_namespace *ns, struct rv_error *err)
{
	struct inspection look = { .ns = ns, .sha = rv_sha256_new(err), .bytes = RV_BUFFER_INIT, .directory = -1 };
	int result = look.sha != NULL ? 0 : -1;

	for (size_t i = 0; result == 0 && i < ns->count; i++)
		result = verify_entry(&look, &ns->entries[i], err);
	rv_sha256_free(look.sha);
	rv_buffer_release(&look.bytes);
	if (look.directory >= 0)
		(void)close(look.directory);
	return result;
}

int rv_namespace_unlink(struct rv_namespace *ns, bool *durable, struct rv_error *err)
{
	*durable = false;
	while (ns->count > 0) {
		struct rv_ns_entry *entry = &ns->entries[ns->count - 1];

		if (unlinkat(ns->root, entry->path, entry->directory ? AT_REMOVEDIR : 0) != 0)
			return rv_error_set(err, RV_E_IO, errno, "removing %s", entry->path);
		free(entry->path);
		ns->count--;
	}
	*durable = fsync(ns->root) == 0;
	return 0;
}

void rv_namespace_release(struct rv_namespace *ns)
{
	for (size_t i = 0; i < ns->count; i++)
		free(ns->entries[i].path);
	free(ns->entries);
	ns->entries = NULL;
	ns->count = ns->room = 0;
}

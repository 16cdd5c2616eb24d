/* A snapshot from a directory: each name opened once, from its directory's descriptor, and no link followed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/confine/snapshot.h"

/* The directories that are open, from the top: a path has few segments, so they are few.  One more than that,
 * so that a directory too deep is seen empty or refused by what is in it. */
struct walk {
	DIR *open[RV_SNAPSHOT_SEGMENTS_MAX + 1];
	size_t length[RV_SNAPSHOT_SEGMENTS_MAX + 1]; /* of the path, with its slash */
	size_t depth;
	char path[RV_SNAPSHOT_PATH_MAX + 2];
	struct rv_buffer content; /* of one file after another */
};

static int failed(const char *path, struct rv_error *err)
{
	return rv_error_set(err, RV_E_IO, errno, "snapshot: %s", path);
}

static int enter(struct walk *walk, int *fd, size_t length, struct rv_error *err)
{
	DIR *dir;

	if (walk->depth > RV_SNAPSHOT_SEGMENTS_MAX)
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: \"%s\": a path has at most 16 segments", walk->path);
	dir = fdopendir(*fd);
	if (dir == NULL)
		return failed(walk->path, err);
	(void)rv_steal_fd(fd);
	walk->open[walk->depth] = dir;
	walk->length[walk->depth++] = length;
	return 0;
}

/* Room for one byte more than there should be: exactly what there should be is all, after one read. */
static int read_whole(struct walk *walk, int fd, size_t size, struct rv_error *err)
{
	char *room = rv_buffer_reserve(&walk->content, size + 1);
	ssize_t n = room != NULL ? rv_io_read_some(fd, room, size + 1, err) : rv_buffer_check(&walk->content, err);

	if (n < 0)
		return -1;
	rv_buffer_commit(&walk->content, (size_t)n);
	return (size_t)n == size ? 0 : rv_io_read_all(fd, &walk->content, err);
}

static int take_file(struct rv_snapshot *snapshot, struct walk *walk, int fd, const struct stat *st,
		     struct rv_error *err)
{
	size_t left = RV_SNAPSHOT_BYTES_MAX - snapshot->bytes;

	if (rv_snapshot_check_room(snapshot, (size_t)st->st_size, err) != 0)
		return -1;
	walk->content.max = left + 2; /* it may grow while it is read: one byte too many is enough to say so */
	if (read_whole(walk, fd, (size_t)st->st_size, err) != 0)
		return err->code == RV_E_NOMEM && walk->content.failed
			       ? rv_error_set(err, RV_E_REQUEST, 0, "snapshot: more than 64 MiB")
			       : rv_error_wrap(err, "snapshot: %s", walk->path);
	return rv_snapshot_add(snapshot, rv_span_of(walk->path), &walk->content, err);
}

/* Before it is opened: opening a device or a pipe does something. */
static int look(const struct walk *walk, const struct dirent *entry, mode_t *type, struct rv_error *err)
{
	struct stat st;

	*type = (mode_t)DTTOIF(entry->d_type);
	if (*type == S_IFREG || *type == S_IFDIR)
		return 0;
	if (fstatat(dirfd(walk->open[walk->depth - 1]), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return failed(walk->path, err);
	*type = st.st_mode & S_IFMT;
	return 0;
}

static int take(struct rv_snapshot *snapshot, struct walk *walk, const struct dirent *entry, struct rv_error *err)
{
	DIR *top = walk->open[walk->depth - 1];
	const char *name = entry->d_name;
	size_t start = walk->length[walk->depth - 1], length = start + strlen(name);
	rv_auto_fd int fd = -1;
	struct stat st;
	mode_t type;

	if (length > RV_SNAPSHOT_PATH_MAX)
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: below \"%.*s\": a path has at most 256 characters",
				    (int)start, walk->path);
	memcpy(walk->path + start, name, length - start + 1);
	if (look(walk, entry, &type, err) != 0)
		return -1;
	if (rv_snapshot_check_path(rv_span_of(walk->path), err) != 0)
		return -1;
	if (type != S_IFREG && type != S_IFDIR)
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: \"%s\": %s", walk->path,
				    type == S_IFLNK ? "a link" : "neither a file nor a directory");
	fd = openat(dirfd(top), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return failed(walk->path, err);
	if (fstat(fd, &st) != 0)
		return failed(walk->path, err);
	if (S_ISREG(st.st_mode))
		return take_file(snapshot, walk, fd, &st, err);
	if (!S_ISDIR(st.st_mode))
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: \"%s\" changed while it was read", walk->path);
	walk->path[length] = '/';
	walk->path[length + 1] = '\0';
	return enter(walk, &fd, length + 1, err);
}

static int step(struct rv_snapshot *snapshot, struct walk *walk, struct rv_error *err)
{
	struct dirent *entry;

	errno = 0;
	entry = readdir(walk->open[walk->depth - 1]);
	if (entry == NULL) {
		if (errno != 0)
			return failed(walk->path, err);
		(void)closedir(walk->open[--walk->depth]);
		return 0;
	}
	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		return 0;
	return take(snapshot, walk, entry, err);
}

int rv_snapshot_read_directory(struct rv_snapshot *snapshot, int fd, struct rv_error *err)
{
	struct walk walk = { .depth = 0 };
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3), result;

	if (own < 0)
		return failed("", err);
	result = enter(&walk, &own, 0, err);
	while (result == 0 && walk.depth > 0)
		result = step(snapshot, &walk, err);
	while (walk.depth > 0)
		(void)closedir(walk.open[--walk.depth]);
	rv_buffer_release(&walk.content);
	if (own >= 0)
		(void)close(own);
	return result;
}

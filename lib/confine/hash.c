#include "lib/confine/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

/* Stays in the cache between the read and the hash; on the stack, whose pages are mostly there: to touch a fresh one costs more
 * than to read it. */
#define BLOCK ((size_t)32 << 10)
#define THREADS_MAX 16
#define THREAD_BYTES ((uint64_t)2 << 20) /* a thread costs more than it saves below that */

static void note(struct rv_hash_file *file, const struct stat *st)
{
	file->device = st->st_dev;
	file->inode = st->st_ino;
	file->mode = st->st_mode;
	file->size = (uint64_t)st->st_size;
	file->modified = st->st_mtim;
	file->changed = st->st_ctim;
}

int rv_hash_see(struct rv_hash_file *file, const char *path, struct rv_error *err)
{
	struct stat st;

	memset(file, 0, sizeof *file);
	if (lstat(path, &st) != 0)
		return rv_error_set(err, RV_E_RUNTIME, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return rv_error_set(err, RV_E_RUNTIME, 0, "%s: not a file", path);
	note(file, &st);
	file->path = strdup(path);
	return file->path != NULL ? 0 : rv_error_nomem(err);
}

bool rv_hash_is_running(const struct rv_hash_file *file, const struct rv_hash_file *before)
{
	int fd;

	if (before->device != file->device || before->inode != file->inode || before->size != file->size ||
	    before->modified.tv_sec != file->modified.tv_sec || before->modified.tv_nsec != file->modified.tv_nsec ||
	    before->changed.tv_sec != file->changed.tv_sec || before->changed.tv_nsec != file->changed.tv_nsec)
		return false;
	fd = open(file->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	if (fd >= 0)
		(void)close(fd);
	return fd < 0 && errno == ETXTBSY;
}

static bool is_same(const struct rv_hash_file *file, int fd)
{
	struct rv_hash_file now = { .path = NULL };
	struct stat st;

	if (fstat(fd, &st) != 0)
		return false;
	note(&now, &st);
	return now.device == file->device && now.inode == file->inode && now.mode == file->mode &&
	       now.size == file->size && now.modified.tv_sec == file->modified.tv_sec &&
	       now.modified.tv_nsec == file->modified.tv_nsec && now.changed.tv_sec == file->changed.tv_sec &&
	       now.changed.tv_nsec == file->changed.tv_nsec;
}

static int read_through(struct rv_sha256 *sha, int fd, char *block, const char *path, struct rv_error *err)
{
	for (;;) {
		ssize_t n = read(fd, block, BLOCK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rv_error_set(err, RV_E_RUNTIME, errno, "%s", path);
		if (n == 0)
			return 0;
		if (rv_sha256_update(sha, block, (size_t)n, err) != 0)
			return -1;
	}
}

static int hash_one(struct rv_sha256 *sha, struct rv_hash_file *file, char *block, struct rv_error *err)
{
	rv_auto_fd int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	unsigned char digest[RV_SHA256_SIZE];

	if (fd < 0)
		return rv_error_set(err, RV_E_RUNTIME, errno, "%s", file->path);
	if (!is_same(file, fd))
		return rv_error_set(err, RV_E_RUNTIME, 0, "%s changed while it was read", file->path);
	if (rv_sha256_begin(sha, err) != 0 || read_through(sha, fd, block, file->path, err) != 0 ||
	    rv_sha256_end(sha, digest, err) != 0)
		return -1;
	if (!is_same(file, fd))
		return rv_error_set(err, RV_E_RUNTIME, 0, "%s changed while it was read", file->path);
	rv_hex(digest, sizeof digest, file->sha256);
	return 0;
}

/* What the threads share. */
struct crew {
	struct rv_hash_file **files;
	size_t count;
	atomic_size_t next;
	atomic_bool failed;
	pthread_mutex_t lock; /* over the first error */
	struct rv_error err;
};

static void keep(struct crew *crew, const struct rv_error *err)
{
	(void)pthread_mutex_lock(&crew->lock);
	if (!crew->failed)
		crew->err = *err;
	crew->failed = true;
	(void)pthread_mutex_unlock(&crew->lock);
}

static void *work(void *data)
{
	struct crew *crew = data;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_sha256 *sha = rv_sha256_new(&err);
	char block[BLOCK];
	size_t i;

	if (sha == NULL) {
		keep(crew, &err);
	} else {
		while (!crew->failed && (i = atomic_fetch_add(&crew->next, 1)) < crew->count) {
			if (hash_one(sha, crew->files[i], block, &err) != 0)
				keep(crew, &err);
		}
	}
	rv_sha256_free(sha);
	return NULL;
}

static int compare_sizes(const void *a, const void *b)
{
	const struct rv_hash_file *one = *(struct rv_hash_file *const *)a, *two = *(struct rv_hash_file *const *)b;

	return one->size > two->size ? -1 : one->size < two->size;
}

static size_t threads_for(uint64_t bytes, size_t files)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t most = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (size_t)cores;
	uint64_t useful = bytes / THREAD_BYTES + 1;

	most = most < files ? most : files;
	return useful < most ? (size_t)useful : most;
}

int rv_hash_files(struct rv_hash_file *const *files, size_t count, struct rv_error *err)
{
	struct crew crew = { .count = count, .lock = PTHREAD_MUTEX_INITIALIZER, .err = RV_ERROR_INIT };
	pthread_t threads[THREADS_MAX];
	size_t started = 0, wanted;
	uint64_t bytes = 0;

	crew.files = malloc((count + 1) * sizeof *crew.files);
	if (crew.files == NULL)
		return rv_error_nomem(err);
	for (size_t i = 0; i < count; i++) {
		crew.files[i] = files[i];
		bytes += files[i]->size;
	}
	qsort(crew.files, count, sizeof *crew.files, compare_sizes);
	wanted = threads_for(bytes, count);
	while (started + 1 < wanted && pthread_create(&threads[started], NULL, work, &crew) == 0)
		started++;
	(void)work(&crew);
	for (size_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	free(crew.files);
	if (crew.failed)
		*err = crew.err;
	return crew.failed ? -1 : 0;
}

#include "lib/ledger/patch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"

#define BLOCK 65536

int rv_patch_size(int fd, uint64_t *size, struct rv_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return rv_error_set(err, RV_E_IO, errno, "fstat");
	*size = (uint64_t)st.st_size;
	return 0;
}

/* The offset behind the last newline before `size`: 0 if there is none. */
static int find_tail(int fd, uint64_t size, uint64_t *start, struct rv_error *err)
{
	char block[BLOCK];

	while (size > 0) {
		size_t len = size < BLOCK ? (size_t)size : BLOCK;
		const char *newline;

		if (rv_io_pread_all(fd, block, len, (off_t)(size - len), err) != 0)
			return -1;
		newline = memrchr(block, '\n', len);
		if (newline != NULL) {
			*start = size - len + (uint64_t)(newline - block) + 1;
			return 0;
		}
		size -= len;
	}
	*start = 0;
	return 0;
}

int rv_patch_read(int fd, uint64_t start, uint64_t end, struct rv_buffer *out, struct rv_error *err)
{
	char *room = rv_buffer_reserve(out, (size_t)(end - start));

	if (room == NULL)
		return rv_buffer_check(out, err);
	if (rv_io_pread_all(fd, room, (size_t)(end - start), (off_t)start, err) != 0)
		return -1;
	rv_buffer_commit(out, (size_t)(end - start));
	return 0;
}

int rv_patch_holds(int fd, uint64_t at, uint64_t len, const unsigned char sha256[RV_SHA256_SIZE], bool *holds,
		   struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer now = RV_BUFFER_INIT;
	struct rv_sha256 *sha;
	unsigned char digest[RV_SHA256_SIZE];
	uint64_t size;
	int result = -1;

	*holds = false;
	if (rv_patch_size(fd, &size, err) != 0)
		return -1;
	if (size < at + len)
		return 0;
	sha = rv_sha256_new(err);
	if (sha != NULL && rv_patch_read(fd, at, at + len, &now, err) == 0 && rv_sha256_begin(sha, err) == 0 &&
	    rv_sha256_update(sha, now.data, now.len, err) == 0)
		result = rv_sha256_end(sha, digest, err);
	rv_sha256_free(sha);
	*holds = result == 0 && memcmp(digest, sha256, sizeof digest) == 0;
	return result;
}

int rv_patch_read_tail(int fd, uint64_t size, uint64_t *start, struct rv_buffer *tail, struct rv_error *err)
{
	if (find_tail(fd, size, start, err) != 0)
		return -1;
	return *start == size ? 0 : rv_patch_read(fd, *start, size, tail, err);
}

int rv_patch_read_line(int fd, uint64_t start, uint64_t size, struct rv_buffer *line, struct rv_error *err)
{
	while (start < size) {
		uint64_t end = size - start < BLOCK ? size : start + BLOCK;
		size_t had = line->len;
		const char *newline;

		if (rv_patch_read(fd, start, end, line, err) != 0)
			return -1;
		newline = memchr(line->data + had, '\n', line->len - had);
		if (newline != NULL) {
			line->len = (size_t)(newline - line->data);
			return 0;
		}
		start = end;
	}
	return 0;
}

int rv_patch_sync(int fd, struct rv_error *err)
{
	return fsync(fd) == 0 ? 0 : rv_error_set(err, RV_E_IO, errno, "fsync");
}

int rv_patch_reserve(int fd, uint64_t at, size_t len, struct rv_error *err)
{
	while (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)len) != 0) {
		if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)
			return 0;
		if (errno != EINTR)
			return rv_error_set(err, RV_E_IO, errno, "reserve room for the repair");
	}
	return 0;
}

/* A write whose count does not tell the truth must not cost the copy that is dropped after it. */
static int verify(int fd, struct rv_span bytes, uint64_t at, struct rv_error *err)
{
	struct rv_buffer now = RV_BUFFER_INIT;
	int result = rv_patch_read(fd, at, at + bytes.len, &now, err);

	if (result == 0 && memcmp(now.data, bytes.data, bytes.len) != 0)
		result = rv_error_set(err, RV_E_IO, 0, "what was written is not what is there");
	rv_buffer_release(&now);
	return result;
}

int rv_patch_append(int fd, struct rv_span bytes, uint64_t *landed, struct rv_error *err)
{
	ssize_t n;
	off_t end;

	do
		n = write(fd, bytes.data, bytes.len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return rv_error_set(err, RV_E_IO, errno, "append");
	if ((size_t)n != bytes.len)
		return rv_error_set(err, RV_E_IO, 0, "append: short write");
	end = lseek(fd, 0, SEEK_CUR);
	if (end < 0)
		return rv_error_set(err, RV_E_IO, errno, "lseek");
	*landed = (uint64_t)end - bytes.len;
	return verify(fd, bytes, *landed, err);
}

/* On Linux pwrite(2) appends where O_APPEND is set, so it is cleared for this one write. */
int rv_patch_overwrite(int fd, struct rv_span bytes, uint64_t at, struct rv_error *err)
{
	int flags = fcntl(fd, F_GETFL);
	int result;

	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_APPEND) != 0)
		return rv_error_set(err, RV_E_IO, errno, "fcntl");
	result = rv_io_pwrite_all(fd, bytes.data, bytes.len, (off_t)at, err);
	if (fcntl(fd, F_SETFL, flags) != 0 && result == 0)
		result = rv_error_set(err, RV_E_IO, errno, "fcntl");
	if (result != 0 || rv_patch_sync(fd, err) != 0)
		return -1;
	return verify(fd, bytes, at, err);
}

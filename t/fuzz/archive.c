/* Any bytes as an archive, through both halves of its reading in one process: what is accepted is a snapshot, in order, within its limits, with the digests of its bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/confine/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
	if (!good)
		abort();
}

static void check(const struct rv_snapshot *snapshot)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_sha256 *sha = rv_sha256_new(&err);
	struct rv_buffer json = RV_BUFFER_INIT;
	size_t bytes = 0;

	require(sha != NULL && snapshot->count <= RV_SNAPSHOT_FILES_MAX);
	for (size_t i = 0; i < snapshot->count; i++) {
		const struct rv_snapshot_file *file = &snapshot->files[i];
		char hex[RV_SHA256_HEX];

		require(rv_snapshot_check_path(rv_span_of(file->path), &err) == 0);
		require(i == 0 || strcmp(snapshot->files[i - 1].path, file->path) < 0);
		require(rv_sha256_hex(sha, file->content != NULL ? file->content : "", file->size, hex, &err) == 0);
		require(strcmp(hex, file->sha256) == 0);
		require(rv_snapshot_find(snapshot, file->path) == file);
		bytes += file->size;
	}
	require(bytes <= RV_SNAPSHOT_BYTES_MAX && rv_digest_is_valid(rv_span_of(snapshot->digest)));
	rv_snapshot_add_json(snapshot, &json);
	require(rv_buffer_check(&json, &err) == 0);
	rv_buffer_release(&json);
	rv_sha256_free(sha);
}

struct pair {
	struct rv_unpack_taker taker;
	struct rv_error err;
};

/* What the helper says goes straight to the other side, cut at an odd place. */
static int put(void *data, enum rv_unpack_kind kind, const void *bytes, size_t len)
{
	struct pair *pair = data;
	char head[RV_UNPACK_HEADER] = { (char)kind, (char)(len & 0xff), (char)(len >> 8 & 0xff), (char)(len >> 16 & 0xff) };
	size_t first = len / 3;

	if (rv_unpack_take(&pair->taker, head, sizeof head, &pair->err) != 0 ||
	    rv_unpack_take(&pair->taker, bytes, first, &pair->err) != 0)
		return -1;
	return rv_unpack_take(&pair->taker, (const char *)bytes + first, len - first, &pair->err);
}

static int read_archive(struct rv_snapshot *snapshot, int fd, struct rv_error *err)
{
	struct pair pair = { .err = RV_ERROR_INIT };
	const struct rv_unpack_sink sink = { put, &pair };
	struct rv_unpacker *unpacker = rv_unpacker_new(err);
	int result;

	if (unpacker == NULL)
		abort();
	rv_unpack_taker_init(&pair.taker, snapshot);
	result = rv_unpacker_read(unpacker, fd, &sink);
	require(result == 0 ? rv_unpack_taker_has_all(&pair.taker) : pair.err.code != RV_E_NONE);
	*err = pair.err;
	rv_unpack_taker_release(&pair.taker);
	rv_unpacker_free(unpacker);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rv_snapshot snapshot = RV_SNAPSHOT_INIT;
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_fd int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || rv_io_write_all(fd, (const char *)data, size, &err) != 0 || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	if (read_archive(&snapshot, fd, &err) == 0 && rv_snapshot_seal(&snapshot, &err) == 0)
		check(&snapshot);
	else
		require(err.code != RV_E_NONE && err.message[0] != '\0');
	rv_snapshot_release(&snapshot);
	return 0;
}

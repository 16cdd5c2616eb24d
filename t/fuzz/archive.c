/* Any bytes as an archive: what is accepted is a snapshot, in order, within its limits, with the digests of its bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/confine/snapshot.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rv_snapshot snapshot = RV_SNAPSHOT_INIT;
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_fd int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || rv_io_write_all(fd, (const char *)data, size, &err) != 0 || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	if (rv_snapshot_read_archive(&snapshot, fd, &err) == 0 && rv_snapshot_seal(&snapshot, &err) == 0)
		check(&snapshot);
	else
		require(err.code != RV_E_NONE && err.message[0] != '\0');
	rv_snapshot_release(&snapshot);
	return 0;
}

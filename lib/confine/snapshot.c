#include "lib/confine/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/json/write.h"

#define PROTOCOL "sf-confined-snapshot/1\n"
#define COPIED ((size_t)64 << 10)

void rv_snapshot_release(struct rv_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->count; i++)
		free(snapshot->files[i].own);
	free(snapshot->files);
	rv_arena_release(&snapshot->arena);
	*snapshot = (struct rv_snapshot)RV_SNAPSHOT_INIT;
}

static int refuse(struct rv_span path, const char *why, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;

	rv_text_add_escaped(&text, path.data, path.len > 300 ? 300 : path.len);
	return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: \"%s\": %s", text.len > 0 ? rv_buffer_string(&text) : "",
			    why);
}

static bool is_name_byte(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
	       c == '-';
}

static const char *segment_fault(const char *at, size_t len)
{
	if (len == 0)
		return "a path is relative, and has no empty segment";
	if (at[0] == '.' && (len == 1 || (len == 2 && at[1] == '.')))
		return "a segment is \".\" or \"..\"";
	for (size_t i = 0; i < len; i++) {
		if (!is_name_byte(at[i]))
			return "a path has only A-Z a-z 0-9 . _ - between its slashes";
	}
	return NULL;
}

int rv_snapshot_check_path(struct rv_span path, struct rv_error *err)
{
	size_t start = 0, segments = 0;

	if (path.len > RV_SNAPSHOT_PATH_MAX)
		return refuse(path, "a path has at most 256 characters", err);
	for (size_t i = 0; i <= path.len; i++) {
		const char *fault;

		if (i < path.len && path.data[i] != '/')
			continue;
		fault = segment_fault(path.data + start, i - start);
		if (fault != NULL)
			return refuse(path, fault, err);
		if (++segments > RV_SNAPSHOT_SEGMENTS_MAX)
			return refuse(path, "a path has at most 16 segments", err);
		start = i + 1;
	}
	return 0;
}

int rv_snapshot_check_room(const struct rv_snapshot *snapshot, size_t size, struct rv_error *err)
{
	if (snapshot->count >= RV_SNAPSHOT_FILES_MAX)
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: more than %d files", RV_SNAPSHOT_FILES_MAX);
	if (size > RV_SNAPSHOT_BYTES_MAX - snapshot->bytes)
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: more than 64 MiB");
	return 0;
}

/* With a NUL behind it. */
static const char *copy(struct rv_snapshot *snapshot, struct rv_span bytes)
{
	char *own = rv_arena_alloc(&snapshot->arena, bytes.len + 1);

	if (own == NULL)
		return NULL;
	memcpy(own, bytes.data, bytes.len);
	own[bytes.len] = '\0';
	return own;
}

/* Few bytes are copied, many change hands. */
static int take_content(struct rv_snapshot *snapshot, struct rv_snapshot_file *file, struct rv_buffer *content,
			struct rv_error *err)
{
	size_t size = content->len;

	if (size > COPIED)
		file->content = file->own = rv_buffer_steal(content, NULL);
	else if (size > 0)
		file->content = copy(snapshot, (struct rv_span){ content->data, size });
	if (size > 0 && file->content == NULL)
		return rv_error_nomem(err);
	file->size = size;
	rv_buffer_clear(content);
	return 0;
}

int rv_snapshot_add(struct rv_snapshot *snapshot, struct rv_span path, struct rv_buffer *content, struct rv_error *err)
{
	struct rv_snapshot_file *file;

	if (rv_snapshot_check_path(path, err) != 0 || rv_buffer_check(content, err) != 0 ||
	    rv_snapshot_check_room(snapshot, content->len, err) != 0)
		return -1;
	if (snapshot->count == snapshot->room) {
		size_t room = snapshot->room == 0 ? 16 : 2 * snapshot->room;
		struct rv_snapshot_file *files = realloc(snapshot->files, room * sizeof *files);

		if (files == NULL)
			return rv_error_nomem(err);
		snapshot->files = files;
		snapshot->room = room;
	}
	file = &snapshot->files[snapshot->count];
	memset(file, 0, sizeof *file);
	file->path = copy(snapshot, path);
	if (file->path == NULL)
		return rv_error_nomem(err);
	if (take_content(snapshot, file, content, err) != 0)
		return -1;
	snapshot->bytes += file->size;
	snapshot->count++;
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct rv_snapshot_file *)a)->path, ((const struct rv_snapshot_file *)b)->path);
}

/* One name on the way to a file, the file's own among them, and whether it is a directory. */
struct prefix {
	const char *path;
	size_t len;
	bool directory;
};

static int compare_folded(const void *a, const void *b)
{
	const struct prefix *one = a, *two = b;
	size_t len = one->len < two->len ? one->len : two->len;
	int order = strncasecmp(one->path, two->path, len); /* the C locale's: paths are ASCII */

	return order != 0 ? order : one->len < two->len ? -1 : one->len > two->len;
}

static int check_neighbours(const struct prefix *one, const struct prefix *two, struct rv_error *err)
{
	struct rv_span name = { two->path, two->len };

	if (one->len != two->len || strncasecmp(one->path, two->path, one->len) != 0)
		return 0;
	if (one->directory != two->directory)
		return refuse(name, "a file and a directory", err);
	if (!one->directory)
		return refuse(name, "twice, or twice but for case", err);
	if (memcmp(one->path, two->path, one->len) != 0)
		return refuse(name, "a directory that is there twice but for case", err);
	return 0;
}

static int check_clashes(const struct rv_snapshot *snapshot, struct rv_error *err)
{
	rv_auto_free struct prefix *names = calloc(snapshot->count * RV_SNAPSHOT_SEGMENTS_MAX + 1, sizeof *names);
	size_t count = 0;

	if (names == NULL)
		return rv_error_nomem(err);
	for (size_t i = 0; i < snapshot->count; i++) {
		const char *path = snapshot->files[i].path;

		for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
			names[count++] = (struct prefix){ path, (size_t)(slash - path), true };
		names[count++] = (struct prefix){ path, strlen(path), false };
	}
	qsort(names, count, sizeof *names, compare_folded);
	for (size_t i = 1; i < count; i++) {
		if (check_neighbours(&names[i - 1], &names[i], err) != 0)
			return -1;
	}
	return 0;
}

static int digest_all(struct rv_snapshot *snapshot, struct rv_sha256 *sha, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;

	rv_buffer_add_string(&text, PROTOCOL);
	for (size_t i = 0; i < snapshot->count; i++) {
		struct rv_snapshot_file *file = &snapshot->files[i];

		if (rv_sha256_hex(sha, file->size > 0 ? file->content : "", file->size, file->sha256, err) != 0)
			return -1;
		rv_buffer_printf(&text, "%s\t%zu\t%s\n", file->path, file->size, file->sha256);
	}
	if (rv_buffer_check(&text, err) != 0)
		return -1;
	memcpy(snapshot->digest, "sha256:", 7);
	return rv_sha256_hex(sha, text.data, text.len, snapshot->digest + 7, err);
}

int rv_snapshot_seal(struct rv_snapshot *snapshot, struct rv_error *err)
{
	struct rv_sha256 *sha;
	int result;

	if (snapshot->count > 0)
		qsort(snapshot->files, snapshot->count, sizeof *snapshot->files, compare_paths);
	if (check_clashes(snapshot, err) != 0)
		return -1;
	sha = rv_sha256_new(err);
	result = sha != NULL ? digest_all(snapshot, sha, err) : -1;
	rv_sha256_free(sha);
	return result;
}

enum kind { ANY, DIRECTORY, ARCHIVE };

static int read_open(struct rv_snapshot *snapshot, int fd, enum kind kind, struct rv_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return rv_error_set(err, RV_E_IO, errno, "fstat");
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: neither a directory nor a file");
	if (kind != ANY && S_ISDIR(st.st_mode) != (kind == DIRECTORY))
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: %s", kind == DIRECTORY ? "not a directory" : "not an archive");
	return S_ISDIR(st.st_mode) ? rv_snapshot_read_directory(snapshot, fd, err)
				   : rv_snapshot_read_archive(snapshot, fd, err);
}

static int read_path(struct rv_snapshot *snapshot, const char *path, enum kind kind, struct rv_error *err)
{
	rv_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 && errno == ELOOP)
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: %s is a link: name what it points to", path);
	if (fd < 0)
		return rv_error_set(err, RV_E_IO, errno, "snapshot: open %s", path);
	if (read_open(snapshot, fd, kind, err) != 0 || rv_snapshot_seal(snapshot, err) != 0)
		return rv_error_wrap(err, "%s", path);
	return 0;
}

int rv_snapshot_read(struct rv_snapshot *snapshot, const char *path, struct rv_error *err)
{
	return read_path(snapshot, path, ANY, err);
}

int rv_snapshot_read_kind(struct rv_snapshot *snapshot, const char *path, bool directory, struct rv_error *err)
{
	return read_path(snapshot, path, directory ? DIRECTORY : ARCHIVE, err);
}

const struct rv_snapshot_file *rv_snapshot_find(const struct rv_snapshot *snapshot, const char *path)
{
	size_t low = 0, high = snapshot->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(path, snapshot->files[middle].path);

		if (order == 0)
			return &snapshot->files[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

void rv_snapshot_add_json(const struct rv_snapshot *snapshot, struct rv_buffer *out)
{
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "digest", snapshot->digest);
	rv_json_add_name(out, "files");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < snapshot->count; i++) {
		rv_buffer_add_string(out, i > 0 ? ",{" : "{");
		rv_json_member_string(out, "path", snapshot->files[i].path);
		rv_json_member_int(out, "size", (int64_t)snapshot->files[i].size);
		rv_json_member_string(out, "sha256", snapshot->files[i].sha256);
		rv_buffer_add_byte(out, '}');
	}
	rv_buffer_add_string(out, "]}");
}

bool rv_digest_is_valid(struct rv_span text)
{
	if (text.len != RV_DIGEST_TEXT - 1 || memcmp(text.data, "sha256:", 7) != 0)
		return false;
	for (size_t i = 7; i < text.len; i++) {
		if (!((text.data[i] >= '0' && text.data[i] <= '9') || (text.data[i] >= 'a' && text.data[i] <= 'f')))
			return false;
	}
	return true;
}

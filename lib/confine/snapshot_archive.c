/*
 * A snapshot from an archive.  libarchive and its twenty libraries cost 4 ms to load, so it is loaded by name,
 * and only where an archive is given.
 *
 * Not every reader of libarchive is asked for: mtree(5) names files outside the archive, and some filters
 * start another program.
 */
#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/confine/snapshot.h"

#define LIBRARY "libarchive.so.13"
#define BLOCK 65536

/* The functions that are used, one a line. */
#define FUNCTIONS(F)                   \
	F(archive_read_new)            \
	F(archive_read_free)           \
	F(archive_error_string)        \
	F(archive_read_open_fd)        \
	F(archive_read_next_header)    \
	F(archive_read_data)           \
	F(archive_entry_pathname)      \
	F(archive_entry_filetype)      \
	F(archive_entry_hardlink)      \
	F(archive_entry_symlink)       \
	F(archive_entry_size)          \
	F(archive_entry_size_is_set)   \
	F(archive_entry_is_encrypted)

#define MEMBER(name) __typeof__(&name) name;

struct library {
	void *handle;
	FUNCTIONS(MEMBER)
};

typedef int support(struct archive *); /* the type of libarchive's own functions, not of a struct */

static const char *const formats[] = {
	"archive_read_support_format_tar", "archive_read_support_format_zip", "archive_read_support_format_cpio",
	"archive_read_support_format_7zip", "archive_read_support_format_ar", "archive_read_support_format_cab",
	"archive_read_support_format_iso9660", "archive_read_support_format_lha", "archive_read_support_format_rar",
	"archive_read_support_format_rar5", "archive_read_support_format_warc", "archive_read_support_format_xar",
};

static const char *const filters[] = {
	"archive_read_support_filter_gzip", "archive_read_support_filter_bzip2", "archive_read_support_filter_xz",
	"archive_read_support_filter_lzma", "archive_read_support_filter_lzip", "archive_read_support_filter_lz4",
	"archive_read_support_filter_zstd", "archive_read_support_filter_compress",
};

static void *find(struct library *library, const char *name, struct rv_error *err)
{
	void *symbol = dlsym(library->handle, name);

	if (symbol == NULL)
		(void)rv_error_set(err, RV_E_IO, 0, "snapshot: %s has no %s", LIBRARY, name);
	return symbol;
}

/* POSIX's own way from dlsym's void * to a function. */
#define FIND(name)                                                      \
	do {                                                            \
		void *symbol = find(library, #name, err);               \
		if (symbol == NULL)                                     \
			return -1;                                      \
		memcpy(&library->name, &symbol, sizeof symbol);         \
	} while (0);

static int load(struct library *library, struct rv_error *err)
{
	library->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (library->handle == NULL)
		return rv_error_set(err, RV_E_IO, 0, "snapshot: archives need libarchive (Debian package libarchive13): %s",
				    dlerror());
	FUNCTIONS(FIND)
	return 0;
}

/* What answers ARCHIVE_WARN would start another program: it is left out by giving the whole up. */
static int offer(struct library *library, struct archive *archive, const char *const *names, size_t count,
		 struct rv_error *err)
{
	for (size_t i = 0; i < count; i++) {
		void *symbol = find(library, names[i], err);
		support *function;

		if (symbol == NULL)
			return -1;
		memcpy(&function, &symbol, sizeof symbol);
		if (function(archive) != ARCHIVE_OK)
			return rv_error_set(err, RV_E_IO, 0, "snapshot: this libarchive lacks %s", names[i]);
	}
	return 0;
}

static int refuse(struct rv_span path, const char *why, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;

	rv_text_add_escaped(&text, path.data, path.len);
	return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: \"%.300s\": %s", text.len > 0 ? rv_buffer_string(&text) : "", why);
}

static int damaged(const struct library *library, struct archive *archive, struct rv_error *err)
{
	const char *text = library->archive_error_string(archive);
	rv_auto_buffer struct rv_buffer escaped = RV_BUFFER_INIT;

	if (text != NULL)
		rv_text_add_escaped(&escaped, text, strlen(text));
	return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: no whole archive: %s",
			    escaped.len > 0 ? rv_buffer_string(&escaped) : "unreadable");
}

static int take_data(const struct library *library, struct archive *archive, struct archive_entry *entry,
		     struct rv_snapshot *snapshot, struct rv_span path, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer content = RV_BUFFER_INIT;

	for (;;) {
		char *room = rv_buffer_reserve(&content, BLOCK);
		la_ssize_t n;

		if (room == NULL)
			return rv_error_nomem(err);
		n = library->archive_read_data(archive, room, BLOCK);
		if (n < 0)
			return damaged(library, archive, err);
		if (n == 0)
			break;
		rv_buffer_commit(&content, (size_t)n);
		if (rv_snapshot_check_room(snapshot, content.len, err) != 0)
			return -1;
	}
	/* A sparse file's last hole, for one, is not handed out. */
	if (library->archive_entry_size_is_set(entry) && (la_int64_t)content.len != library->archive_entry_size(entry))
		return refuse(path, "its content is not as long as the archive says", err);
	return rv_snapshot_add(snapshot, path, &content, err);
}

/* "./" before a path, and "/" behind a directory's, are how archives are written, and name nothing. */
static struct rv_span plain_path(struct rv_span path, bool directory)
{
	while (path.len >= 2 && path.data[0] == '.' && path.data[1] == '/') {
		path.data += 2;
		path.len -= 2;
	}
	if (directory && path.len > 0 && path.data[path.len - 1] == '/')
		path.len--;
	return path;
}

static int take_entry(const struct library *library, struct archive *archive, struct archive_entry *entry,
		      struct rv_snapshot *snapshot, struct rv_error *err)
{
	const char *name = library->archive_entry_pathname(entry);
	bool directory = library->archive_entry_filetype(entry) == AE_IFDIR;
	struct rv_span path = plain_path(rv_span_of(name != NULL ? name : ""), directory);

	if (name == NULL)
		return rv_error_set(err, RV_E_REQUEST, 0, "snapshot: an entry without a name");
	if (library->archive_entry_hardlink(entry) != NULL || library->archive_entry_symlink(entry) != NULL)
		return refuse(path, "a link", err);
	if (!directory && library->archive_entry_filetype(entry) != AE_IFREG)
		return refuse(path, "neither a file nor a directory", err);
	if (library->archive_entry_is_encrypted(entry) != 0)
		return refuse(path, "encrypted", err);
	if (directory && (path.len == 0 || (path.len == 1 && path.data[0] == '.')))
		return 0;
	if (rv_snapshot_check_path(path, err) != 0)
		return -1;
	return directory ? 0 : take_data(library, archive, entry, snapshot, path, err);
}

static int read_entries(const struct library *library, struct archive *archive, struct rv_snapshot *snapshot,
			struct rv_error *err)
{
	for (;;) {
		struct archive_entry *entry;
		int got = library->archive_read_next_header(archive, &entry);

		if (got == ARCHIVE_EOF)
			return 0;
		if (got != ARCHIVE_OK)
			return damaged(library, archive, err);
		if (take_entry(library, archive, entry, snapshot, err) != 0)
			return -1;
	}
}

int rv_snapshot_read_archive(struct rv_snapshot *snapshot, int fd, struct rv_error *err)
{
	struct library library = { .handle = NULL };
	struct archive *archive;
	int result;

	/* Never unloaded: some of its libraries do not like that, and the next archive is then free. */
	if (load(&library, err) != 0)
		return -1;
	archive = library.archive_read_new();
	if (archive == NULL)
		return rv_error_nomem(err);
	result = offer(&library, archive, formats, sizeof formats / sizeof formats[0], err);
	if (result == 0)
		result = offer(&library, archive, filters, sizeof filters / sizeof filters[0], err);
	if (result == 0 && library.archive_read_open_fd(archive, fd, BLOCK) != ARCHIVE_OK)
		result = damaged(&library, archive, err);
	if (result == 0)
		result = read_entries(&library, archive, snapshot, err);
	(void)library.archive_read_free(archive);
	return result;
}

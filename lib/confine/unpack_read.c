/*
 * What is in an archive, in records: the helper's part.  libarchive is loaded by name, so that one that is missing can be
 * told of in words.
 *
 * Not every reader of libarchive is asked for: mtree(5) names files outside the archive, and some filters
 * start another program.
 */
#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <errno.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/confine/unpack.h"

#define LIBRARY "libarchive.so.13"

/* The functions that are used, one a line. */
#define FUNCTIONS(F)                   \
	F(archive_read_new)            \
	F(archive_read_free)           \
	F(archive_error_string)        \
	F(archive_read_set_read_callback) \
	F(archive_read_set_skip_callback) \
	F(archive_read_set_seek_callback) \
	F(archive_read_set_callback_data) \
	F(archive_read_open1)          \
	F(archive_set_error)           \
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

struct rv_unpacker {
	struct library library;
	struct archive *archive;
	int fd;
	bool seekable;
	char input[RV_UNPACK_BLOCK];
	char output[RV_UNPACK_BLOCK];
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

/* Conversions of names load their tables late: those that formats name, 7zip and ISO 9660 UTF-16.  What is opened stays
 * loaded, and the zone of a zip's times too.  An encoding that an archive names itself (xar's XML) is loaded for nobody. */
static const char *const encodings[] = { "UTF-16LE", "UTF-16BE", "UTF-8" };

static void load_conversions(void)
{
	for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++) {
		(void)iconv_open("ANSI_X3.4-1968", encodings[i]);
		(void)iconv_open("UTF-8", encodings[i]);
	}
	tzset();
}

struct rv_unpacker *rv_unpacker_new(struct rv_error *err)
{
	struct rv_unpacker *unpacker = calloc(1, sizeof *unpacker);
	struct library *library;

	if (unpacker == NULL) {
		(void)rv_error_nomem(err);
		return NULL;
	}
	library = &unpacker->library;
	if (load(library, err) != 0)
		goto failed;
	load_conversions();
	unpacker->archive = library->archive_read_new();
	if (unpacker->archive == NULL) {
		(void)rv_error_nomem(err);
		goto failed;
	}
	if (offer(library, unpacker->archive, formats, sizeof formats / sizeof formats[0], err) != 0 ||
	    offer(library, unpacker->archive, filters, sizeof filters / sizeof filters[0], err) != 0)
		goto failed;
	return unpacker;
failed:
	rv_unpacker_free(unpacker);
	return NULL;
}

/* The library is never unloaded: some of those it brings do not like that. */
void rv_unpacker_free(struct rv_unpacker *unpacker)
{
	if (unpacker != NULL && unpacker->archive != NULL)
		(void)unpacker->library.archive_read_free(unpacker->archive);
	free(unpacker);
}

/* ---- the descriptor, without the questions that libarchive's own reader asks the system ---- */

static la_ssize_t read_some(struct archive *archive, void *data, const void **bytes)
{
	struct rv_unpacker *unpacker = data;
	ssize_t n;

	do
		n = read(unpacker->fd, unpacker->input, sizeof unpacker->input);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		unpacker->library.archive_set_error(archive, errno, "Error reading the archive");
	*bytes = unpacker->input;
	return n;
}

static la_int64_t seek(struct archive *archive, void *data, la_int64_t offset, int whence)
{
	struct rv_unpacker *unpacker = data;
	off_t at = lseek(unpacker->fd, offset, whence);

	if (at >= 0)
		return at;
	unpacker->library.archive_set_error(archive, errno, "Error seeking in the archive");
	return ARCHIVE_FATAL;
}

/* Whole blocks, so that reads stay aligned; 0: read it, and throw it away. */
static la_int64_t skip(struct archive *archive, void *data, la_int64_t wanted)
{
	struct rv_unpacker *unpacker = data;
	off_t whole = wanted / RV_UNPACK_BLOCK * RV_UNPACK_BLOCK;

	(void)archive;
	return unpacker->seekable && whole > 0 && lseek(unpacker->fd, whole, SEEK_CUR) >= 0 ? whole : 0;
}

static int open_archive(struct rv_unpacker *unpacker)
{
	const struct library *library = &unpacker->library;
	struct archive *archive = unpacker->archive;

	(void)library->archive_read_set_read_callback(archive, read_some);
	(void)library->archive_read_set_skip_callback(archive, skip);
	(void)library->archive_read_set_seek_callback(archive, seek);
	(void)library->archive_read_set_callback_data(archive, unpacker);
	return library->archive_read_open1(archive);
}

/* ---- records ---- */

static int put(const struct rv_unpack_sink *sink, enum rv_unpack_kind kind, const void *bytes, size_t len)
{
	return sink->put(sink->data, kind, bytes, len);
}

static int put_failure(struct rv_unpacker *unpacker, const struct rv_unpack_sink *sink)
{
	const char *text = unpacker->library.archive_error_string(unpacker->archive);
	size_t len = text != NULL ? strlen(text) : 0;

	return put(sink, RV_UNPACK_FAILED, text, len > RV_UNPACK_TEXT_MAX ? RV_UNPACK_TEXT_MAX : len);
}

static int put_entry(struct rv_unpacker *unpacker, struct archive_entry *entry, unsigned *flags,
		     const struct rv_unpack_sink *sink)
{
	const struct library *library = &unpacker->library;
	const char *name = library->archive_entry_pathname(entry);
	size_t len = name != NULL ? strlen(name) : 0;

	*flags = name != NULL ? 0 : RV_UNPACK_NAMELESS;
	if (library->archive_entry_hardlink(entry) != NULL || library->archive_entry_symlink(entry) != NULL)
		*flags |= RV_UNPACK_LINK;
	if (library->archive_entry_filetype(entry) == AE_IFDIR)
		*flags |= RV_UNPACK_DIRECTORY;
	if (library->archive_entry_filetype(entry) == AE_IFREG)
		*flags |= RV_UNPACK_FILE;
	if (library->archive_entry_is_encrypted(entry) != 0)
		*flags |= RV_UNPACK_SEALED;
	if (len > sizeof unpacker->output - 1) {
		len = sizeof unpacker->output - 1;
		*flags |= RV_UNPACK_CUT;
	}
	unpacker->output[0] = (char)*flags;
	if (len > 0)
		memcpy(unpacker->output + 1, name, len);
	return put(sink, RV_UNPACK_ENTRY, unpacker->output, len + 1);
}

/* The bytes of a plain file.  1: all of them, 0: the archive is damaged, and that is said; -1: as above. */
static int put_content(struct rv_unpacker *unpacker, la_int64_t *size, const struct rv_unpack_sink *sink)
{
	for (*size = 0;;) {
		la_ssize_t n = unpacker->library.archive_read_data(unpacker->archive, unpacker->output, sizeof unpacker->output);

		if (n < 0)
			return put_failure(unpacker, sink);
		if (n == 0)
			return 1;
		*size += n;
		if (put(sink, RV_UNPACK_CONTENT, unpacker->output, (size_t)n) != 0)
			return -1;
	}
}

/* As above. */
static int put_one(struct rv_unpacker *unpacker, struct archive_entry *entry, const struct rv_unpack_sink *sink)
{
	const struct library *library = &unpacker->library;
	la_int64_t size = 0;
	char as_said = 1;
	unsigned flags;
	int got;

	if (put_entry(unpacker, entry, &flags, sink) != 0)
		return -1;
	if (flags == RV_UNPACK_FILE) {
		got = put_content(unpacker, &size, sink);
		if (got <= 0)
			return got;
		/* A sparse file's last hole, for one, is not handed out. */
		as_said = library->archive_entry_size_is_set(entry) == 0 || size == library->archive_entry_size(entry);
	}
	return put(sink, RV_UNPACK_DONE, &as_said, 1) == 0 ? 1 : -1;
}

int rv_unpacker_read(struct rv_unpacker *unpacker, int fd, const struct rv_unpack_sink *sink)
{
	unpacker->fd = fd;
	unpacker->seekable = lseek(fd, 0, SEEK_CUR) >= 0;
	if (open_archive(unpacker) != ARCHIVE_OK)
		return put_failure(unpacker, sink);
	for (;;) {
		struct archive_entry *entry;
		int got = unpacker->library.archive_read_next_header(unpacker->archive, &entry);

		if (got == ARCHIVE_EOF)
			return put(sink, RV_UNPACK_END, NULL, 0);
		if (got != ARCHIVE_OK)
			return put_failure(unpacker, sink);
		got = put_one(unpacker, entry, sink);
		if (got <= 0)
			return got;
	}
}

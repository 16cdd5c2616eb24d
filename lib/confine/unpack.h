/*
 * An archive is read in a process of its own, libexec/rv-unpack, behind a boundary (lib/sandbox/reader.h): what parses an
 * enemy's bytes with a large library has nothing that an enemy could want.  It says what is in the archive in records; all
 * decisions about it are taken on this side, to which the records are an enemy's, too.
 *
 *   record   KIND (a byte), LENGTH (8 bytes, little end first), LENGTH bytes
 *   stream   (ENTRY CONTENT* DONE)* END, and then the end of file; FAILED, BROKEN or UNSTARTED may come instead of any
 *            record, and ends it
 *
 * CONTENT comes for a plain file alone, never empty.
 */
#ifndef RV_CONFINE_UNPACK_H
#define RV_CONFINE_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/confine/snapshot.h"
#include "lib/sandbox/reader.h"

enum rv_unpack_kind {
	RV_UNPACK_ENTRY = 'E',     /* flags (a byte), the path's bytes */
	RV_UNPACK_CONTENT = 'C',   /* the next bytes of a plain file */
	RV_UNPACK_DONE = 'D',      /* of an entry; a byte: 1 its size was as said, or none was said; 0 it was not */
	RV_UNPACK_END = 'Z',       /* of the archive; empty */
	RV_UNPACK_FAILED = 'F',    /* no whole archive; text, may be empty */
	RV_UNPACK_BROKEN = 'B',    /* this system cannot read archives; text */
	RV_UNPACK_UNSTARTED = 'U', /* first of all: there is no helper, since its exec failed; errno, 4 bytes as this machine has them */
};

enum rv_unpack_flag {
	RV_UNPACK_NAMELESS = 1,
	RV_UNPACK_LINK = 2,
	RV_UNPACK_DIRECTORY = 4,
	RV_UNPACK_FILE = 8,
	RV_UNPACK_SEALED = 16, /* encrypted */
	RV_UNPACK_CUT = 32,    /* its path is longer than a record */
};

#define RV_UNPACK_HEADER 9
#define RV_UNPACK_BLOCK 65536     /* bytes of content, or of a path, in one record */
#define RV_UNPACK_TEXT_MAX 2048

/* ---- the helper's side ---- */

/* Where records go; -1: nobody wants more.  The bytes are borrowed. */
struct rv_unpack_sink {
	int (*put)(void *data, enum rv_unpack_kind kind, const void *bytes, size_t len);
	void *data;
};

struct rv_unpacker; /* libarchive, loaded, with all that it may load late */

/* The first of the two is called before everything is given up, and reads nothing of the archive.  RV_E_IO, RV_E_NOMEM. */
struct rv_unpacker *rv_unpacker_new(struct rv_error *err);
/* Read it from `fd`, where it stands, seeking if it can be sought in; the last record is the end or why there is none.
 * -1: the sink wanted no more. */
int rv_unpacker_read(struct rv_unpacker *unpacker, int fd, const struct rv_unpack_sink *sink);
void rv_unpacker_free(struct rv_unpacker *unpacker);

/* ---- this side ---- */

struct rv_unpack_taker {
	struct rv_snapshot *snapshot;
	struct rv_buffer held; /* a record that is not whole */
	enum { RV_TAKE_ENTRY, RV_TAKE_CONTENT, RV_TAKE_NOTHING, RV_TAKE_ENDED } state; /* what is due */
	struct rv_buffer path;
	struct rv_buffer content;
};

void rv_unpack_taker_init(struct rv_unpack_taker *taker, struct rv_snapshot *snapshot);
void rv_unpack_taker_release(struct rv_unpack_taker *taker);
/* The next bytes of the stream, cut anywhere.  RV_E_REQUEST: the archive is refused, or what the helper says makes no
 * sense; RV_E_IO: it cannot read archives. */
int rv_unpack_take(struct rv_unpack_taker *taker, const char *bytes, size_t len, struct rv_error *err);
bool rv_unpack_taker_has_all(const struct rv_unpack_taker *taker);

/* Where the helper is, what it reads, and for how long. */
struct rv_unpack_plan {
	const char *helper;
	int archive; /* becomes its descriptor 0 */
	int cancel;  /* becomes readable when the reading is to be stopped; -1: never */
	int wall_ms;
};

/* Start the helper, take what it says, and leave no process.  As rv_unpack_take; RV_E_ABORTED where it was cancelled. */
int rv_unpack_run(const struct rv_unpack_plan *plan, struct rv_snapshot *snapshot, struct rv_error *err);

#endif

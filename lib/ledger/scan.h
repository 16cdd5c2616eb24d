/*
 * The scan: a pure fold over the bytes of one or more ledgers (contract, section 4).  It does no
 * I/O: bytes go in by chunks of any size, and what it keeps of a row is its place, so that a
 * ledger larger than memory can be scanned; the caller reads a row again where it wants its text.
 *
 * A resolving outcome may come after the fold read the end of a ledger and before its caller
 * asked who still runs.  rv_scan_settle() and the bytes appended since close that gap: from then
 * on only outcomes of attempts already known are taken, so that one more pass is enough however
 * busy the ledger is.
 */
#ifndef RV_LEDGER_SCAN_H
#define RV_LEDGER_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/digest/digest.h"
#include "lib/ledger/lines.h"
#include "lib/ledger/pair.h"

/* Where a line is: line counts from 1, offset and len are bytes, without the newline. */
struct rv_place {
	uint64_t offset;
	uint64_t line;
	uint64_t len;
	uint32_t file;  /* as counted by rv_scan_add_file */
	uint32_t entry; /* of an attempt's row, in the pairing */
};

struct rv_places {
	struct rv_place *items;
	size_t count, cap;
};

struct rv_damage {
	struct rv_place place;
	const char *reason;    /* static */
	unsigned char sha256[RV_SHA256_SIZE];
	bool decided;          /* by an operator: it no longer refuses the scan */
};

struct rv_scan_tail {
	bool present;          /* an unterminated tail that does not parse */
	struct rv_place place;
};

struct rv_scan {
	struct rv_pairs *pairs;
	/* Unless all are kept: of the intents and outcomes those that are not paired, and some that are; none of
	 * the torn rows. */
	struct rv_places intents;
	struct rv_places outcomes;
	struct rv_places torn;
	uint64_t intent_count;
	uint64_t outcome_count;
	uint64_t torn_count;
	struct rv_damage *damage;
	size_t damage_count, damage_cap;
	bool moved; /* what was read as a whole tail went on growing: scan again from the start */
	/* private */
	struct rv_lines lines;
	struct rv_scan_file *files;
	size_t file_count;
	bool keep_all;
	bool settling;
};

/* `keep_all`: keep the places of all rows. */
int rv_scan_init(struct rv_scan *scan, bool keep_all, struct rv_error *err);
void rv_scan_release(struct rv_scan *scan);

int rv_scan_add_file(struct rv_scan *scan, uint32_t *file, struct rv_error *err);
int rv_scan_feed(struct rv_scan *scan, uint32_t file, const char *bytes, size_t len, struct rv_error *err);
/* Take lines that were read with this scan's `pairs` and that begin where the file's last line ended,
 * with no other begun behind it. */
int rv_scan_merge(struct rv_scan *scan, uint32_t file, const struct rv_lines *lines, struct rv_error *err);
/* The end of what there is: judge the unterminated tail.  More may be fed afterwards only
 * behind rv_scan_settle(). */
int rv_scan_end(struct rv_scan *scan, uint32_t file, struct rv_error *err);
/* Forget the bytes behind the last newline, which rv_scan_end() has not judged: feed them again. */
void rv_scan_rewind(struct rv_scan *scan, uint32_t file);
void rv_scan_settle(struct rv_scan *scan);

const struct rv_scan_tail *rv_scan_tail(const struct rv_scan *scan, uint32_t file);
/* The number of the line that the next byte belongs to, and that line's offset. */
struct rv_place rv_scan_position(const struct rv_scan *scan, uint32_t file);

/* An intent without an outcome of its own. */
bool rv_scan_is_open(const struct rv_scan *scan, const struct rv_place *intent);
/* An outcome that no intent pairs with, which is an attempt of its own. */
bool rv_scan_is_alone(const struct rv_scan *scan, const struct rv_place *outcome);

#endif

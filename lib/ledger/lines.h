/*
 * Lines of a ledger, read and judged but not yet part of any scan: the half of the fold that needs
 * no order, so that threads can do it side by side.  rv_scan_merge() does the rest.
 */
#ifndef RV_LEDGER_LINES_H
#define RV_LEDGER_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/digest/digest.h"
#include "lib/ledger/layout.h"
#include "lib/ledger/line.h"
#include "lib/ledger/pair.h"

/* Where one of them is. */
struct rv_lines_place {
	size_t start; /* from the first byte of all */
	size_t len;   /* without the newline */
	size_t line;  /* from 0 */
};

struct rv_lines_row {
	struct rv_lines_place at;
	enum rv_phase phase;
	struct rv_identity who; /* but of a torn row */
	bool copied;            /* the identity's tail is in `text`, at the offset `copy` */
	size_t copy;
};

struct rv_lines_damage {
	struct rv_lines_place at;
	bool misshapen;     /* JSON; else what in an unterminated tail is not finished */
	const char *reason; /* static */
	unsigned char sha256[RV_SHA256_SIZE];
};

struct rv_lines {
	size_t count; /* of newlines */
	size_t bytes;
	size_t first_len; /* of the first line, without its newline */
	struct rv_lines_row *rows;
	size_t row_count, row_cap;
	struct rv_lines_damage *damage;
	size_t damage_count, damage_cap;
	/* private; what only an odd line needs is made for the first of them */
	struct rv_reader *reader;
	struct rv_sha256 *sha;
	struct rv_buffer text;
};

void rv_lines_init(struct rv_lines *lines); /* takes no memory yet */
void rv_lines_release(struct rv_lines *lines);

/* Their own, made where they are not yet there; NULL: no memory. */
struct rv_reader *rv_lines_reader(struct rv_lines *lines, struct rv_error *err);
struct rv_sha256 *rv_lines_sha256(struct rv_lines *lines, struct rv_error *err);

/* Whole lines, each with its newline; behind the last one RV_LAYOUT_SLACK bytes may be read.  What was
 * read before is forgotten.  `pairs` is asked for identities alone and not changed.  The rows borrow from
 * `bytes`. */
int rv_lines_read(struct rv_lines *lines, const struct rv_pairs *pairs, const char *bytes, size_t len,
		  struct rv_error *err);
/* The same of one line without a newline, which does not count in `count`. */
int rv_lines_read_tail(struct rv_lines *lines, const struct rv_pairs *pairs, struct rv_span tail, struct rv_error *err);

#endif

/*
 * A receipt: what was held to the battery, byte for byte, and how it went.  One JSON document:
 *
 *   {"kind":"rv-conform-receipt","version":1,"at","tool","adapter":{"name","argv","files":[{"path","sha256"}]},
 *    "programs":{"root","files":[...]},"source":{"root","files":[...]}|null,"kernel":{"release","machine"},
 *    "counts":{"passed","failed","skipped"},"failures":[id],"skips":[{"id","reason"}],
 *    "leftOut":[{"suite","reason"}],"profiles":[{"name","digest"}],"runtimes":[{"path","digest"}],
 *    "previous":{"path","sha256"}|null}
 *
 * Written once, by a whole run, and never over anything.  What it names is read before the run and again behind it, and
 * must be the same; later it can be recomputed.  Nothing signs it: it is as good as the place where it is kept.
 */
#ifndef RV_CONFORM_RECEIPT_H
#define RV_CONFORM_RECEIPT_H

#include "lib/base/buffer.h"
#include "lib/base/error.h"
#include "lib/conform/battery.h"

struct rv_receipt {
	const char *path;         /* NULL: none is kept */
	const struct rv_adapter *adapter;
	char *previous;           /* owned, absolute; NULL: none */
	struct rv_buffer subject; /* adapter, programs and source as they were at the start: JSON members behind a brace */
	struct rv_buffer earlier; /* the previous receipt's digest, 64 digits */
	struct rv_buffer failures; /* JSON array elements */
	struct rv_buffer skips;
	size_t passed, failed, skipped;
	size_t confined, unconfined; /* of the suite confine: passed, and not */
};

/* Before the run: refuses a path that is taken, and a previous receipt that is none (RV_E_IO). */
int rv_receipt_begin(struct rv_receipt *receipt, const char *path, const char *previous, const struct rv_adapter *adapter,
		     const char *source, struct rv_error *err);
void rv_receipt_add(struct rv_receipt *receipt, const struct rv_result *result);
/* RV_E_IO also where what was tested is another one by now. */
int rv_receipt_write(struct rv_receipt *receipt, bool with_image, struct rv_error *err);
/* "profiles" and "runtimes", for rv-confine --receipt: what the suite confine was held on, where it passed whole. */
int rv_receipt_add_proven(struct rv_buffer *out, const struct rv_receipt *receipt, const struct rv_adapter *adapter,
			  struct rv_error *err);
struct rv_json_node;

/* "adapter", "programs" and "source".  RV_E_IO: a file cannot be read, or has a name that JSON cannot write. */
int rv_receipt_add_subject(struct rv_buffer *out, const struct rv_adapter *adapter, const char *source, struct rv_error *err);
/* A line for each difference to what is there now. */
int rv_receipt_check_subject(struct rv_buffer *out, const struct rv_json_node *root, struct rv_error *err);
void rv_receipt_check_file(struct rv_buffer *out, const struct rv_json_node *file); /* one {"path","sha256"} */
void rv_receipt_add_element(struct rv_buffer *out, const char *text); /* to the strings of an array */

/* A line for each that is another now, by the rv-confine beside this program. */
int rv_receipt_check_proven(struct rv_buffer *out, const struct rv_json_node *root, struct rv_error *err);

void rv_receipt_release(struct rv_receipt *receipt);

/* Recompute what a receipt names.  One line for each difference is appended to `out`; none: it holds. */
int rv_receipt_check(const char *path, struct rv_buffer *out, struct rv_error *err);

#endif

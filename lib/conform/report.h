/*
 * Results as text: for people (pretty), TAP 14, JUnit XML, JSON lines.  Each writer appends to a
 * buffer; who owns the report writes it out.  Whatever a tool printed, the text stays what it claims
 * to be: no control byte reaches a terminal, the XML is XML 1.0, a JSON line is one line.
 */
#ifndef RV_CONFORM_REPORT_H
#define RV_CONFORM_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buffer.h"
#include "lib/conform/battery.h"

enum rv_format { RV_FORMAT_PRETTY, RV_FORMAT_TAP, RV_FORMAT_JUNIT, RV_FORMAT_JSONL };

struct rv_counts {
	size_t passed, failed, skipped;
};

struct rv_report {
	enum rv_format format;
	bool strict_skips; /* a skip is a failure */
	bool colour;       /* pretty */
	bool tap13;        /* say version 13, for a harness that knows no later one */
	/* its own */
	size_t total;
	struct rv_counts counts;       /* of everything */
	struct rv_counts suite_counts; /* junit: of the suite at hand */
	int64_t suite_ms;
	const struct rv_suite *suite;
	struct rv_buffer cases;  /* junit: of the suite at hand */
	struct rv_buffer suites; /* junit: finished */
};

void rv_report_begin(struct rv_report *report, const struct rv_adapter *adapter, size_t total, struct rv_buffer *out);
void rv_report_add(struct rv_report *report, const struct rv_result *result, struct rv_buffer *out);
void rv_report_end(struct rv_report *report, int64_t took_ms, struct rv_buffer *out);
void rv_report_release(struct rv_report *report);

/* By a file's name: .tap, .xml, .jsonl; -1 for anything else. */
int rv_report_format_of(const char *path);

/* ---- between the writers ---- */

/* As it counts: a skip under --strict-skips is a failure. */
enum rv_verdict rv_report_verdict(const struct rv_report *report, const struct rv_result *result);

void rv_report_tap_begin(const struct rv_report *report, const struct rv_adapter *adapter, struct rv_buffer *out);
void rv_report_tap_add(const struct rv_report *report, const struct rv_result *result, struct rv_buffer *out);
void rv_report_junit_add(struct rv_report *report, const struct rv_result *result);
void rv_report_junit_end(struct rv_report *report, int64_t took_ms, struct rv_buffer *out);
void rv_report_jsonl_begin(const struct rv_report *report, const struct rv_adapter *adapter, struct rv_buffer *out);
void rv_report_jsonl_add(const struct rv_report *report, const struct rv_result *result, struct rv_buffer *out);
void rv_report_jsonl_end(const struct rv_report *report, int64_t took_ms, struct rv_buffer *out);

#endif

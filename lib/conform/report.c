#include "lib/conform/report.h"

#include <string.h>

#include "lib/base/text.h"

enum rv_verdict rv_report_verdict(const struct rv_report *report, const struct rv_result *result)
{
	return result->verdict == RV_SKIP && report->strict_skips ? RV_FAIL : result->verdict;
}

static void count(struct rv_counts *counts, enum rv_verdict verdict)
{
	counts->passed += verdict == RV_PASS;
	counts->failed += verdict == RV_FAIL;
	counts->skipped += verdict == RV_SKIP;
}

/* ---- for people ---- */

static void add_label(struct rv_buffer *out, const struct rv_report *report, enum rv_verdict verdict)
{
	static const char *const labels[] = { "?", "ok", "FAIL", "skip" };
	static const char *const colours[] = { "0", "32", "1;31", "33" };

	if (report->colour)
		rv_buffer_printf(out, "  \033[%sm%-4s\033[0m", colours[verdict], labels[verdict]);
	else
		rv_buffer_printf(out, "  %-4s", labels[verdict]);
}

static void add_note(struct rv_buffer *out, const char *label, const char *text, size_t len)
{
	if (len == 0)
		return;
	rv_buffer_printf(out, "        %-9s ", label);
	rv_text_add_escaped(out, text, len);
	rv_buffer_add_byte(out, '\n');
}

static void pretty_begin(const struct rv_report *report, const struct rv_adapter *adapter, struct rv_buffer *out)
{
	rv_buffer_printf(out, "%zu checks of ", report->total);
	rv_text_add_escaped(out, adapter->name.data, adapter->name.len);
	rv_buffer_add_byte(out, '\n');
	if (adapter->unknown.len > 0) {
		rv_buffer_add_string(out, "it declares what this battery does not know: ");
		rv_text_add_escaped(out, adapter->unknown.data, adapter->unknown.len);
		rv_buffer_add_byte(out, '\n');
	}
}

static void pretty_add(const struct rv_report *report, const struct rv_result *result, struct rv_buffer *out)
{
	const struct rv_record *record = result->record;
	enum rv_verdict verdict = rv_report_verdict(report, result);

	add_label(out, report, verdict);
	rv_buffer_printf(out, "  %-22s %s", result->check->id, result->check->title);
	if (verdict == RV_SKIP) {
		rv_buffer_add_string(out, ": ");
		rv_text_add_escaped(out, record->saw.text, record->saw.len);
	} else {
		rv_buffer_printf(out, "  (%lld ms)", (long long)result->took_ms);
	}
	rv_buffer_add_byte(out, '\n');
	if (verdict == RV_FAIL && result->verdict == RV_SKIP)
		rv_buffer_add_string(out, "        skipped, and skips are failures here\n");
	if (verdict == RV_FAIL) {
		add_note(out, "did", record->did.text, record->did.len);
		add_note(out, "saw", record->saw.text, record->saw.len);
		rv_buffer_printf(out, "        %-9s %s  [%s]\n", "promised", result->check->promise, result->check->clause);
	}
	add_note(out, "left", record->left.text, record->left.len);
}

static void pretty_end(const struct rv_report *report, int64_t took_ms, struct rv_buffer *out)
{
	rv_buffer_printf(out, "%zu passed, %zu failed, %zu skipped in %lld.%01lld s\n", report->counts.passed,
			 report->counts.failed, report->counts.skipped, (long long)(took_ms / 1000),
			 (long long)(took_ms % 1000 / 100));
}

/* ---- any ---- */

void rv_report_begin(struct rv_report *report, const struct rv_adapter *adapter, size_t total, struct rv_buffer *out)
{
	report->total = total;
	switch (report->format) {
	case RV_FORMAT_PRETTY:
		pretty_begin(report, adapter, out);
		break;
	case RV_FORMAT_TAP:
		rv_report_tap_begin(report, adapter, out);
		break;
	case RV_FORMAT_JSONL:
		rv_report_jsonl_begin(report, adapter, out);
		break;
	case RV_FORMAT_JUNIT:
		break; /* its head says how it ended */
	}
}

void rv_report_add(struct rv_report *report, const struct rv_result *result, struct rv_buffer *out)
{
	enum rv_verdict verdict = rv_report_verdict(report, result);

	if (result->suite != report->suite && report->format == RV_FORMAT_PRETTY)
		rv_buffer_printf(out, "%s: %s\n", result->suite->name, result->suite->about);
	count(&report->counts, verdict);
	switch (report->format) {
	case RV_FORMAT_PRETTY:
		pretty_add(report, result, out);
		break;
	case RV_FORMAT_TAP:
		rv_report_tap_add(report, result, out);
		break;
	case RV_FORMAT_JUNIT:
		rv_report_junit_add(report, result);
		count(&report->suite_counts, verdict);
		break;
	case RV_FORMAT_JSONL:
		rv_report_jsonl_add(report, result, out);
		break;
	}
	report->suite = result->suite;
}

void rv_report_end(struct rv_report *report, int64_t took_ms, struct rv_buffer *out)
{
	switch (report->format) {
	case RV_FORMAT_PRETTY:
		pretty_end(report, took_ms, out);
		break;
	case RV_FORMAT_TAP:
		break; /* the plan stood first */
	case RV_FORMAT_JUNIT:
		rv_report_junit_end(report, took_ms, out);
		break;
	case RV_FORMAT_JSONL:
		rv_report_jsonl_end(report, took_ms, out);
		break;
	}
}

void rv_report_release(struct rv_report *report)
{
	rv_buffer_release(&report->cases);
	rv_buffer_release(&report->suites);
}

int rv_report_format_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	if (dot == NULL)
		return -1;
	if (strcmp(dot, ".tap") == 0)
		return RV_FORMAT_TAP;
	if (strcmp(dot, ".xml") == 0)
		return RV_FORMAT_JUNIT;
	return strcmp(dot, ".jsonl") == 0 ? RV_FORMAT_JSONL : -1;
}

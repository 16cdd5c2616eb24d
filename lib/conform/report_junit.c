/* JUnit XML: a suite's head counts its cases, so cases are kept until the suite is over. */
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/conform/report.h"

/*
 * XML 1.0 has no way to write most control characters, not even as references, nor U+FFFE and U+FFFF:
 * they are spelled out as they are for a terminal.
 */
static void add_xml(struct rv_buffer *out, const char *text, size_t len)
{
	rv_auto_buffer struct rv_buffer printable = RV_BUFFER_INIT;

	rv_text_add_escaped(&printable, text, len);
	for (size_t i = 0; i < printable.len; i++) {
		char byte = printable.data[i];

		if (byte == '&')
			rv_buffer_add_string(out, "&amp;");
		else if (byte == '<')
			rv_buffer_add_string(out, "&lt;");
		else if (byte == '>')
			rv_buffer_add_string(out, "&gt;");
		else if (byte == '"')
			rv_buffer_add_string(out, "&quot;");
		else if (byte == '\xef' && i + 2 < printable.len && printable.data[i + 1] == '\xbf' &&
			 ((unsigned char)printable.data[i + 2] & 0xFE) == 0xBE) {
			rv_buffer_add_string(out, printable.data[i + 2] == '\xbe' ? "\\u{fffe}" : "\\u{ffff}");
			i += 2;
		} else {
			rv_buffer_add_byte(out, byte);
		}
	}
}

static void add_text(struct rv_buffer *out, const char *text)
{
	struct rv_span span = rv_span_of(text);

	add_xml(out, span.data, span.len);
}

static void add_line(struct rv_buffer *out, const char *label, const char *text, size_t len)
{
	if (len == 0)
		return;
	rv_buffer_printf(out, "%s: ", label);
	add_xml(out, text, len);
	rv_buffer_add_byte(out, '\n');
}

static void add_seconds(struct rv_buffer *out, int64_t ms)
{
	rv_buffer_printf(out, "%lld.%03lld", (long long)(ms / 1000), (long long)(ms % 1000));
}

static void add_failure(struct rv_buffer *out, const struct rv_check *check, const struct rv_record *record)
{
	rv_buffer_add_string(out, "      <failure message=\"");
	add_text(out, check->promise);
	rv_buffer_add_string(out, "\">");
	add_line(out, "did", record->did.text, record->did.len);
	add_line(out, "saw", record->saw.text, record->saw.len);
	add_line(out, "clause", check->clause, rv_span_of(check->clause).len);
	rv_buffer_add_string(out, "</failure>\n");
}

static void close_suite(struct rv_report *report)
{
	const struct rv_counts *counts = &report->suite_counts;
	struct rv_buffer *out = &report->suites;

	if (report->suite == NULL)
		return;
	rv_buffer_printf(out, "  <testsuite name=\"rv-conform.%s\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"",
			 report->suite->name, counts->passed + counts->failed + counts->skipped, counts->failed,
			 counts->skipped);
	add_seconds(out, report->suite_ms);
	rv_buffer_add_string(out, "\">\n");
	rv_buffer_add(out, report->cases.data, report->cases.len);
	rv_buffer_add_string(out, "  </testsuite>\n");
	rv_buffer_clear(&report->cases);
	report->suite_counts = (struct rv_counts){ 0, 0, 0 };
	report->suite_ms = 0;
}

void rv_report_junit_add(struct rv_report *report, const struct rv_result *result)
{
	const struct rv_check *check = result->check;
	enum rv_verdict verdict = rv_report_verdict(report, result);
	struct rv_buffer *out = &report->cases;

	if (report->suite != result->suite)
		close_suite(report);
	report->suite_ms += result->took_ms;
	rv_buffer_printf(out, "    <testcase classname=\"rv-conform.%s\" name=\"", result->suite->name);
	add_text(out, check->id);
	rv_buffer_add_byte(out, ' ');
	add_text(out, check->title);
	rv_buffer_add_string(out, "\" time=\"");
	add_seconds(out, result->took_ms);
	if (verdict == RV_PASS) {
		rv_buffer_add_string(out, "\"/>\n");
		return;
	}
	rv_buffer_add_string(out, "\">\n");
	if (verdict == RV_FAIL) {
		add_failure(out, check, result->record);
	} else {
		rv_buffer_add_string(out, "      <skipped message=\"");
		add_xml(out, result->record->saw.text, result->record->saw.len);
		rv_buffer_add_string(out, "\"/>\n");
	}
	rv_buffer_add_string(out, "    </testcase>\n");
}

void rv_report_junit_end(struct rv_report *report, int64_t took_ms, struct rv_buffer *out)
{
	close_suite(report);
	rv_buffer_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			      "<testsuites name=\"rv-conform\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" time=\"",
			 report->counts.passed + report->counts.failed + report->counts.skipped, report->counts.failed);
	add_seconds(out, took_ms);
	rv_buffer_add_string(out, "\">\n");
	rv_buffer_add(out, report->suites.data, report->suites.len);
	rv_buffer_add_string(out, "</testsuites>\n");
}

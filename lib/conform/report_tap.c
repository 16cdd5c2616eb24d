/*
 * TAP 14: plan first, diagnostics as YAML of double-quoted scalars, which JSON strings are.  What is
 * written is also TAP 13 but for the first line.
 */
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/conform/report.h"
#include "lib/json/write.h"

static void add_scalar(struct rv_buffer *out, const char *name, const char *text, size_t len)
{
	rv_auto_buffer struct rv_buffer printable = RV_BUFFER_INIT;

	if (len == 0)
		return;
	rv_text_add_escaped(&printable, text, len); /* YAML takes fewer characters than JSON does */
	rv_buffer_printf(out, "  %s: ", name);
	rv_json_add_string(out, printable.data != NULL ? printable.data : "", printable.len);
	rv_buffer_add_byte(out, '\n');
}

static void add_text(struct rv_buffer *out, const char *name, const char *text)
{
	struct rv_span span = rv_span_of(text);

	add_scalar(out, name, span.data, span.len);
}

void rv_report_tap_begin(const struct rv_report *report, const struct rv_adapter *adapter, struct rv_buffer *out)
{
	rv_buffer_printf(out, "TAP version %d\n1..%zu\n# adapter: ", report->tap13 ? 13 : 14, report->total);
	rv_text_add_escaped(out, adapter->name.data, adapter->name.len);
	rv_buffer_add_byte(out, '\n');
	if (adapter->unknown.len > 0) {
		rv_buffer_add_string(out, "# it declares what this battery does not know: ");
		rv_text_add_escaped(out, adapter->unknown.data, adapter->unknown.len);
		rv_buffer_add_byte(out, '\n');
	}
}

void rv_report_tap_add(const struct rv_report *report, const struct rv_result *result, struct rv_buffer *out)
{
	const struct rv_check *check = result->check;
	const struct rv_record *record = result->record;
	enum rv_verdict verdict = rv_report_verdict(report, result);
	size_t number = report->counts.passed + report->counts.failed + report->counts.skipped;

	rv_buffer_printf(out, "%sok %zu - %s %s", verdict == RV_FAIL ? "not " : "", number, check->id, check->title);
	if (verdict == RV_SKIP) {
		rv_buffer_add_string(out, " # SKIP ");
		rv_text_add_escaped(out, record->saw.text, record->saw.len);
	}
	rv_buffer_add_byte(out, '\n');
	if (verdict == RV_SKIP)
		return;
	rv_buffer_printf(out, "  ---\n  duration_ms: %lld\n", (long long)result->took_ms);
	if (verdict == RV_FAIL) {
		add_scalar(out, "did", record->did.text, record->did.len);
		add_scalar(out, result->verdict == RV_SKIP ? "skipped" : "saw", record->saw.text, record->saw.len);
		add_text(out, "promised", check->promise);
		add_text(out, "clause", check->clause);
	}
	add_scalar(out, "left", record->left.text, record->left.len);
	rv_buffer_add_string(out, "  ...\n");
}

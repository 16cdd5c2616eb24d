/* JSON lines: a head, a line a check, a summary. */
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/conform/report.h"
#include "lib/json/write.h"

static void add_lossy(struct rv_buffer *out, const char *name, const char *text, size_t len)
{
	rv_auto_buffer struct rv_buffer clean = RV_BUFFER_INIT;

	if (len == 0)
		return;
	rv_text_add_lossy(&clean, text, len);
	rv_json_member_span(out, name, (struct rv_span){ clean.data != NULL ? clean.data : "", clean.len });
}

void rv_report_jsonl_begin(const struct rv_report *report, const struct rv_adapter *adapter, struct rv_buffer *out)
{
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "kind", "conformance");
	add_lossy(out, "adapter", adapter->name.data, adapter->name.len);
	rv_json_add_name(out, "capabilities");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < RV_CAPABILITIES; i++) {
		if ((adapter->capabilities & 1U << i) == 0)
			continue;
		if (out->data != NULL && out->data[out->len - 1] != '[')
			rv_buffer_add_byte(out, ',');
		rv_json_add_string(out, rv_capability_name(i), strlen(rv_capability_name(i)));
	}
	rv_buffer_add_byte(out, ']');
	add_lossy(out, "unknown", adapter->unknown.data, adapter->unknown.len);
	rv_json_member_int(out, "checks", (int64_t)report->total);
	rv_buffer_add_string(out, "}\n");
}

void rv_report_jsonl_add(const struct rv_report *report, const struct rv_result *result, struct rv_buffer *out)
{
	static const char *const names[] = { "undecided", "pass", "fail", "skip" };
	const struct rv_check *check = result->check;
	const struct rv_record *record = result->record;
	enum rv_verdict verdict = rv_report_verdict(report, result);

	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "kind", "check");
	rv_json_member_string(out, "suite", result->suite->name);
	rv_json_member_string(out, "id", check->id);
	rv_json_member_string(out, "title", check->title);
	rv_json_member_string(out, "status", names[verdict]);
	rv_json_member_int(out, "durationMs", result->took_ms);
	if (result->verdict == RV_SKIP)
		add_lossy(out, "reason", record->saw.text, record->saw.len);
	if (result->verdict == RV_FAIL) {
		add_lossy(out, "did", record->did.text, record->did.len);
		add_lossy(out, "saw", record->saw.text, record->saw.len);
	}
	if (verdict == RV_FAIL) {
		rv_json_member_string(out, "promised", check->promise);
		rv_json_member_string(out, "clause", check->clause);
	}
	add_lossy(out, "left", record->left.text, record->left.len);
	rv_buffer_add_string(out, "}\n");
}

void rv_report_jsonl_end(const struct rv_report *report, int64_t took_ms, struct rv_buffer *out)
{
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "kind", "summary");
	rv_json_member_int(out, "passed", (int64_t)report->counts.passed);
	rv_json_member_int(out, "failed", (int64_t)report->counts.failed);
	rv_json_member_int(out, "skipped", (int64_t)report->counts.skipped);
	rv_json_member_int(out, "durationMs", took_ms);
	rv_buffer_add_string(out, "}\n");
}

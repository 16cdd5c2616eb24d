#include "lib/ledger/records.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"

static int refuse(const char *path, size_t line, const char *reason, struct rv_error *err)
{
	return rv_error_set(err, RV_E_REQUEST, 0, "%s:%zu: %s", path, line, reason);
}

static int use_line(struct rv_json_doc *doc, const char *path, size_t number, struct rv_span line,
		    const struct rv_record_user *user, struct rv_error *err)
{
	const struct rv_json_node *record;
	const char *reason;
	int failed = 0;

	if (rv_text_is_utf8(line.data, line.len) && rv_text_trim(line).len == 0)
		return 0;
	record = rv_json_parse(doc, line.data, line.len, RV_JSON_DEFAULT, err);
	if (record == NULL)
		return err->code == RV_E_NOMEM ? -1 : rv_error_wrap(err, "%s:%zu", path, number);
	if (rv_json_type(record) != RV_JSON_OBJECT)
		return refuse(path, number, "not an object", err);
	reason = user->use(user->context, record, &failed, err);
	if (failed != 0)
		return -1;
	return reason == NULL ? 0 : refuse(path, number, reason, err);
}

int rv_records_read(const char *path, const struct rv_record_user *user, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer file = RV_BUFFER_INIT;
	struct rv_json_doc *doc;
	size_t number = 0;
	int result = 0;

	if (rv_io_read_file(path, &file, err) != 0)
		return -1;
	doc = rv_json_doc_new(err);
	if (doc == NULL)
		return -1;
	for (size_t at = 0; result == 0 && at < file.len;) {
		const char *start = file.data + at;
		const char *newline = memchr(start, '\n', file.len - at);
		size_t len = newline != NULL ? (size_t)(newline - start) : file.len - at;

		result = use_line(doc, path, ++number, (struct rv_span){ start, len }, user, err);
		at += len + 1;
	}
	rv_json_doc_free(doc);
	return result;
}

bool rv_record_has_text(const struct rv_json_node *record, const char *name)
{
	const struct rv_json_node *value = rv_json_get(record, name);

	return rv_json_is_string(value) && rv_json_string(value).len > 0;
}

#include "lib/ledger/output.h"

#include "lib/json/write.h"

#define FLUSH_BYTES 65536

struct rv_output rv_output_of(struct rv_view *view, const struct rv_filter *filter, const struct rv_sink *sink)
{
	return (struct rv_output){ .view = view, .filter = filter, .sink = sink, .text = RV_BUFFER_INIT };
}

static int flush(struct rv_output *output, size_t least, struct rv_error *err)
{
	if (rv_buffer_check(&output->text, err) != 0)
		return -1;
	if (output->text.len < least)
		return 0;
	if (output->text.len > 0 && output->sink->write(output->sink->context, output->text.data, output->text.len) != 0)
		return rv_error_set(err, RV_E_IO, 0, "output");
	rv_buffer_clear(&output->text);
	return 0;
}

int rv_output_flush(struct rv_output *output, struct rv_error *err)
{
	return flush(output, FLUSH_BYTES, err);
}

int rv_output_end(struct rv_output *output, int result, struct rv_error *err)
{
	if (result == 0)
		result = flush(output, 0, err);
	rv_buffer_release(&output->text);
	return result;
}

void rv_output_add_at(struct rv_output *output, const struct rv_place *place)
{
	struct rv_buffer *out = &output->text;

	rv_json_add_name(out, "at");
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "file", output->view->sources[place->file].path);
	rv_json_member_int(out, "line", (int64_t)place->line);
	rv_json_member_int(out, "offset", (int64_t)place->offset);
	rv_buffer_add_byte(out, '}');
}

#include "lib/cli/progress.h"

#include <stdbool.h>
#include <unistd.h>

#include "lib/base/buffer.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/text.h"

static bool shown;

static void put(const struct rv_buffer *text)
{
	struct rv_error ignored = RV_ERROR_INIT;

	(void)rv_io_write_all(STDERR_FILENO, text->data, text->len, &ignored);
}

void rv_cli_progress(size_t done, size_t count, const char *what)
{
	rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;
	struct rv_span span = rv_span_of(what != NULL ? what : "");

	if (isatty(STDERR_FILENO) != 1)
		return;
	rv_buffer_printf(&line, "\r\033[K%zu/%zu ", done, count);
	rv_text_add_escaped(&line, span.data, span.len < 60 ? span.len : 60);
	put(&line);
	shown = true;
}

void rv_cli_progress_clear(void)
{
	rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;

	if (!shown)
		return;
	rv_buffer_add_string(&line, "\r\033[K");
	put(&line);
	shown = false;
}

/*
 * What is in an archive: the process that reads it for rv-confine, and that has nothing but the archive.
 *
 * It exists because an archive is an enemy's, and libarchive is large: whatever takes it over finds neither files nor a
 * network nor processes nor rights (lib/sandbox/reader.h), and can say to rv-confine only what an archive could have said.
 *
 * Descriptor 0 is the archive, descriptor 1 takes the records (lib/confine/unpack.h).  Exit status: 0 all was said, or why
 * there is no whole archive; 1 nobody listens; 125 what had to be given up could not be.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/confine/unpack.h"

/* Records wait here until there are many of them. */
struct output {
	struct rv_buffer waiting;
};

static int flush(struct output *output)
{
	struct rv_error err = RV_ERROR_INIT;
	int result = rv_buffer_check(&output->waiting, &err);

	if (result == 0)
		result = rv_io_write_all(STDOUT_FILENO, output->waiting.data, output->waiting.len, &err);
	rv_buffer_clear(&output->waiting);
	return result;
}

static int put(void *data, enum rv_unpack_kind kind, const void *bytes, size_t len)
{
	struct output *output = data;
	char head[RV_UNPACK_HEADER] = { (char)kind };

	for (size_t i = 0, left = len; left > 0; left >>= 8)
		head[++i] = (char)(left & 0xff);
	rv_buffer_add(&output->waiting, head, sizeof head);
	rv_buffer_add(&output->waiting, bytes, len);
	return output->waiting.len >= RV_UNPACK_BLOCK ? flush(output) : 0;
}

static int broken(struct output *output, const struct rv_error *err)
{
	size_t len = strlen(err->message);

	(void)put(output, RV_UNPACK_BROKEN, err->message, len > RV_UNPACK_TEXT_MAX ? RV_UNPACK_TEXT_MAX : len);
	return flush(output) == 0 ? 0 : 1;
}

static int run(struct output *output, int parent)
{
	static const struct rv_reader_limits limits = { RV_UNPACK_CPU_S, RV_UNPACK_MEMORY };
	const struct rv_unpack_sink sink = { put, output };
	struct rv_error err = RV_ERROR_INIT;
	struct rv_unpacker *unpacker = rv_unpacker_new(&err);
	int step;

	if (unpacker == NULL)
		return broken(output, &err);
	step = rv_reader_give_up(&limits, parent);
	if (step != RV_READER_READY) {
		(void)rv_error_set(&err, RV_E_IO, errno, "snapshot: archives are read behind a boundary, which cannot be had here: %s",
				   rv_reader_step_name(step));
		(void)broken(output, &err);
		return 125;
	}
	return rv_unpacker_read(unpacker, STDIN_FILENO, &sink) == 0 && flush(output) == 0 ? 0 : 1;
}

/* No exit(3): what libraries do at the end is not needed, and may not be allowed. */
int main(void)
{
	struct output output = { RV_BUFFER_INIT };

	_exit(run(&output, getppid()));
}

/* Run a fuzz target over files, one test point each: make check replays the corpora so. */
#include <dirent.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "t/unit/tap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *path, const char *name)
{
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	bool good = rv_io_read_file(path, &text, &err) == 0;

	if (good) {
		(void)fflush(stdout);
		/* of its own size, so that a sanitizer sees a read beyond it */
		rv_auto_free uint8_t *exact = malloc(text.len > 0 ? text.len : 1);

		good = exact != NULL;
		if (good && text.len > 0)
			memcpy(exact, text.data, text.len);
		good = good && LLVMFuzzerTestOneInput(exact, text.len) == 0;
	}
	tap_ok(good, "%s", name);
}

int main(int argc, char **argv)
{
	char dir[4096];
	rv_auto_dir DIR *entries = NULL;
	const struct dirent *entry;

	(void)snprintf(dir, sizeof dir, "%s/t/fuzz/%s", tap_source(), argc > 1 ? argv[1] : RV_CORPUS);
	entries = opendir(dir);
	while (entries != NULL && (entry = readdir(entries)) != NULL) {
		char path[8192];

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		replay(path, entry->d_name);
	}
	tap_ok(tap_count > 0, "there is a corpus in %s", dir);
	return tap_end();
}

/* Any bytes as an ELF file: what is accepted has texts that end inside what was read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/confine/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t measure(const char *text)
{
	return text != NULL ? strlen(text) : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_elf elf;
	rv_auto_fd int fd = memfd_create("fuzz", MFD_CLOEXEC);
	size_t sum = 0;
	bool ours;

	if (fd < 0 || rv_io_write_all(fd, (const char *)data, size, &err) != 0)
		abort();
	ours = rv_elf_is_ours(fd);
	if (rv_elf_open(&elf, fd, "fuzz", &err) != 0) {
		if (err.code == RV_E_NONE || err.message[0] == '\0' || elf.needed != NULL || elf.strings != NULL)
			abort();
		return 0;
	}
	if (!ours || (elf.interp != NULL && elf.interp[0] != '/'))
		abort();
	for (size_t i = 0; i < elf.needed_count; i++)
		sum += measure(elf.needed[i]);
	sum += measure(elf.interp) + measure(elf.soname) + measure(elf.rpath) + measure(elf.runpath);
	rv_elf_close(&elf);
	return sum == SIZE_MAX;
}

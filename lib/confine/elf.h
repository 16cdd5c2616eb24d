/*
 * What the dynamic linker would read of an ELF file, read from its bytes.  Every offset is checked; nothing is
 * executed.  Private to lib/confine.
 */
#ifndef RV_CONFINE_ELF_H
#define RV_CONFINE_ELF_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

struct rv_elf {
	char *interp;        /* NULL: static, or a library; owned, as are the next two: rv_elf_close() */
	char *strings;       /* the dynamic section's, which the rest leads into */
	size_t strings_size; /* with a NUL of our own behind */
	const char *soname;  /* NULL: none */
	const char *rpath;   /* NULL: none, or overruled by runpath */
	const char *runpath; /* NULL: none */
	const char **needed; /* owned */
	size_t needed_count;
	bool no_default; /* DF_1_NODEFLIB */
	bool executable; /* ET_EXEC or ET_DYN, with something to load */
};

/* Is this an ELF file of this host's class, byte order and machine?  Reads the header alone. */
bool rv_elf_is_ours(int fd);

/* By read(2) and not by a mapping, which a file cut short meanwhile would make deadly.  RV_E_RUNTIME where the bytes are no such file, or contradict themselves.  `name` is for messages. */
int rv_elf_open(struct rv_elf *elf, int fd, const char *name, struct rv_error *err);
void rv_elf_close(struct rv_elf *elf);

#endif

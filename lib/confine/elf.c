#include "lib/confine/elf.h"

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"

#if defined __x86_64__
#define OUR_MACHINE EM_X86_64
#elif defined __aarch64__
#define OUR_MACHINE EM_AARCH64
#else
#define OUR_MACHINE EM_NONE
#endif

#define HEADERS_MAX 512
#define ENTRIES_MAX 4096
#define INTERP_MAX 4096
#define STRINGS_MAX ((uint64_t)64 << 20)

static bool header_is_ours(const Elf64_Ehdr *header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_machine == OUR_MACHINE &&
	       OUR_MACHINE != EM_NONE;
}

bool rv_elf_is_ours(int fd)
{
	Elf64_Ehdr header;

	return pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header && header_is_ours(&header);
}

/* An ELF file while it is read. */
struct reader {
	int fd;
	uint64_t size;
	Elf64_Ehdr file;
	Elf64_Phdr *headers;
	struct rv_elf *elf;
};

/* A new run of bytes of the file, with a NUL behind; NULL where they are not all inside. */
static void *take(const struct reader *reader, uint64_t offset, uint64_t count)
{
	struct rv_error err = RV_ERROR_INIT;
	char *bytes;

	if (offset > reader->size || count > reader->size - offset || offset > INT64_MAX)
		return NULL;
	bytes = malloc(count + 1);
	if (bytes == NULL)
		return NULL;
	bytes[count] = '\0';
	if (rv_io_pread_all(reader->fd, bytes, count, (off_t)offset, &err) == 0)
		return bytes;
	free(bytes);
	return NULL;
}

/* Where in the file an address lies that is loaded from it. */
static bool offset_of(const struct reader *reader, uint64_t address, uint64_t *offset)
{
	for (size_t i = 0; i < reader->file.e_phnum; i++) {
		const Elf64_Phdr *header = &reader->headers[i];

		if (header->p_type == PT_LOAD && address >= header->p_vaddr &&
		    address - header->p_vaddr < header->p_filesz) {
			*offset = header->p_offset + (address - header->p_vaddr);
			return true;
		}
	}
	return false;
}

static bool take_interp(const struct reader *reader, const Elf64_Phdr *header)
{
	struct rv_elf *elf = reader->elf;

	if (elf->interp != NULL || header->p_filesz < 2 || header->p_filesz > INTERP_MAX)
		return false;
	elf->interp = take(reader, header->p_offset, header->p_filesz);
	return elf->interp != NULL && elf->interp[0] == '/' && strlen(elf->interp) < header->p_filesz;
}

static bool take_strings(const struct reader *reader, const Elf64_Dyn *entries, size_t count)
{
	struct rv_elf *elf = reader->elf;
	uint64_t address = 0, size = 0, offset;

	for (size_t i = 0; i < count; i++) {
		if (entries[i].d_tag == DT_STRTAB)
			address = entries[i].d_un.d_ptr;
		if (entries[i].d_tag == DT_STRSZ)
			size = entries[i].d_un.d_val;
	}
	if (address == 0)
		return true; /* a static file that relocates itself may have none */
	if (size > STRINGS_MAX || !offset_of(reader, address, &offset))
		return false;
	elf->strings = take(reader, offset, size);
	elf->strings_size = size;
	return elf->strings != NULL;
}

/* One entry of the dynamic section; false where its text is not there. */
static bool take_entry(struct rv_elf *elf, const Elf64_Dyn *entry)
{
	const char *text;

	if (entry->d_tag == DT_FLAGS_1) {
		elf->no_default = (entry->d_un.d_val & DF_1_NODEFLIB) != 0;
		return true;
	}
	if (entry->d_tag != DT_NEEDED && entry->d_tag != DT_SONAME && entry->d_tag != DT_RPATH &&
	    entry->d_tag != DT_RUNPATH)
		return true;
	if (elf->strings == NULL || entry->d_un.d_val >= elf->strings_size)
		return false;
	text = elf->strings + entry->d_un.d_val;
	if (entry->d_tag == DT_NEEDED)
		elf->needed[elf->needed_count++] = text;
	else if (entry->d_tag == DT_SONAME)
		elf->soname = text;
	else if (entry->d_tag == DT_RPATH)
		elf->rpath = text;
	else
		elf->runpath = text;
	return true;
}

static bool take_dynamic(const struct reader *reader, const Elf64_Phdr *header)
{
	struct rv_elf *elf = reader->elf;
	size_t count = header->p_filesz / sizeof(Elf64_Dyn), end = 0;
	rv_auto_free Elf64_Dyn *entries = NULL;

	if (elf->needed != NULL || count > ENTRIES_MAX)
		return false;
	entries = take(reader, header->p_offset, count * sizeof *entries);
	elf->needed = calloc(count + 1, sizeof *elf->needed);
	if (entries == NULL || elf->needed == NULL)
		return false;
	while (end < count && entries[end].d_tag != DT_NULL)
		end++;
	if (!take_strings(reader, entries, end))
		return false;
	for (size_t i = 0; i < end; i++) {
		if (!take_entry(elf, &entries[i]))
			return false;
	}
	if (elf->runpath != NULL)
		elf->rpath = NULL;
	return true;
}

static bool take_headers(struct reader *reader)
{
	const Elf64_Ehdr *file = &reader->file;

	if (pread(reader->fd, &reader->file, sizeof reader->file, 0) != (ssize_t)sizeof reader->file ||
	    !header_is_ours(file) || file->e_phentsize != sizeof(Elf64_Phdr) || file->e_phnum == 0 ||
	    file->e_phnum > HEADERS_MAX)
		return false;
	reader->headers = take(reader, file->e_phoff, file->e_phnum * sizeof(Elf64_Phdr));
	if (reader->headers == NULL)
		return false;
	for (size_t i = 0; i < file->e_phnum; i++) {
		const Elf64_Phdr *header = &reader->headers[i];

		if (header->p_type == PT_LOAD)
			reader->elf->executable = file->e_type == ET_EXEC || file->e_type == ET_DYN;
		if ((header->p_type == PT_INTERP && !take_interp(reader, header)) ||
		    (header->p_type == PT_DYNAMIC && !take_dynamic(reader, header)))
			return false;
	}
	return true;
}

int rv_elf_open(struct rv_elf *elf, int fd, const char *name, struct rv_error *err)
{
	struct reader reader = { .fd = fd, .headers = NULL, .elf = elf };
	struct stat st;
	bool good;

	*elf = (struct rv_elf){ .interp = NULL };
	if (fstat(fd, &st) != 0)
		return rv_error_set(err, RV_E_RUNTIME, errno, "%s", name);
	if (!S_ISREG(st.st_mode))
		return rv_error_set(err, RV_E_RUNTIME, 0, "%s: not a file", name);
	reader.size = (uint64_t)st.st_size;
	good = take_headers(&reader);
	free(reader.headers);
	if (good)
		return 0;
	rv_elf_close(elf);
	return rv_error_set(err, RV_E_RUNTIME, 0, "%s: not an ELF file of this host's class and machine, or a damaged one",
			    name);
}

void rv_elf_close(struct rv_elf *elf)
{
	free(elf->interp);
	free(elf->strings);
	free(elf->needed);
	*elf = (struct rv_elf){ .interp = NULL };
}

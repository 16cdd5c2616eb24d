#include "lib/confine/search.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined __x86_64__
#include <cpuid.h>
#endif

#include "lib/base/buffer.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"

#define LINKER_MAX ((size_t)16 << 20)
#define DIRECTORIES_MAX 16
#define MUSL_DIRECTORIES "/lib:/usr/local/lib:/usr/lib"

/* The microarchitecture levels that glibc 2.33 and later know, best first. */
static const char *const levels[] = { "glibc-hwcaps/x86-64-v4/", "glibc-hwcaps/x86-64-v3/", "glibc-hwcaps/x86-64-v2/" };

#if defined __x86_64__
static bool has_v2(void)
{
	unsigned a, b, c, d;

	return __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") &&
	       __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
	       __get_cpuid(1, &a, &b, &c, &d) && (c & (1U << 13)) != 0 /* cmpxchg16b */ &&
	       __get_cpuid(0x80000001U, &a, &b, &c, &d) && (c & 1U) != 0 /* lahf */;
}

static bool has_v3(void)
{
	unsigned a, b, c, d;

	return __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
	       __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) &&
	       (c & (1U << 29)) != 0 /* f16c */ && (c & (1U << 22)) != 0 /* movbe */ &&
	       __get_cpuid(0x80000001U, &a, &b, &c, &d) && (c & (1U << 5)) != 0 /* lzcnt */;
}

static bool has_v4(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}

/* The first of `levels` that counts on this processor; a higher one needs all the lower ones. */
static size_t first_level(void)
{
	if (!has_v2())
		return 3;
	if (!has_v3())
		return 2;
	return has_v4() ? 0 : 1;
}
#else
static size_t first_level(void)
{
	return sizeof levels / sizeof levels[0];
}
#endif

static int add_directory(struct rv_closure *closure, const char *text, size_t len, struct rv_error *err)
{
	char *copy;

	while (len > 1 && text[len - 1] == '/')
		len--;
	copy = strndup(text, len);
	if (copy == NULL)
		return rv_error_nomem(err);
	closure->directories[closure->directory_count++] = copy;
	return 0;
}

/* glibc holds its directories as one run of texts "/lib.../" with a NUL behind each, ending in "/usr/lib.../".  The
 * longest such run is the list. */
static int take_run(struct rv_closure *closure, const char *bytes, size_t size, struct rv_error *err)
{
	size_t best = 0, best_count = 0;

	for (size_t i = 1; i + 6 < size; i++) {
		size_t at = i, count = 0;

		if (bytes[i - 1] != '\0' || memcmp(bytes + i, "/lib", 4) != 0)
			continue;
		while (at + 5 < size && (memcmp(bytes + at, "/lib", 4) == 0 || memcmp(bytes + at, "/usr/lib", 8) == 0)) {
			size_t len = strnlen(bytes + at, size - at);

			if (at + len == size || bytes[at + len - 1] != '/')
				break;
			count++;
			at += len + 1;
		}
		if (count > best_count && count <= DIRECTORIES_MAX) {
			best = i;
			best_count = count;
		}
	}
	for (size_t i = 0, at = best; i < best_count; i++) {
		size_t len = strlen(bytes + at);

		if (add_directory(closure, bytes + at, len, err) != 0)
			return -1;
		at += len + 1;
	}
	return best_count > 0 ? 0 : rv_error_set(err, RV_E_RUNTIME, 0, "no directories are built into it");
}

static int take_musl(struct rv_closure *closure, const char *bytes, size_t size, struct rv_error *err)
{
	const char *list = memmem(bytes, size, MUSL_DIRECTORIES, sizeof MUSL_DIRECTORIES);

	if (list == NULL)
		return rv_error_set(err, RV_E_RUNTIME, 0, "no directories are built into it");
	while (*list != '\0') {
		size_t len = strcspn(list, ":");

		if (add_directory(closure, list, len, err) != 0)
			return -1;
		list += len + (list[len] == ':');
	}
	return 0;
}

int rv_search_read_directories(struct rv_closure *closure, int fd, const char *path, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer bytes = { .max = LINKER_MAX };
	int result;

	closure->directories = calloc(DIRECTORIES_MAX, sizeof *closure->directories);
	if (closure->directories == NULL)
		return rv_error_nomem(err);
	if (lseek(fd, 0, SEEK_SET) != 0 || rv_io_read_all(fd, &bytes, err) != 0)
		return rv_error_set(err, RV_E_RUNTIME, errno, "%s", path);
	result = closure->musl ? take_musl(closure, bytes.data, bytes.len, err)
			       : take_run(closure, bytes.data, bytes.len, err);
	return result == 0 ? 0 : rv_error_wrap(err, "%s", path);
}

/* Is there a library at this path?  One of another class or machine is passed over, as the linker does. */
static bool try_path(const char *path, int *fd)
{
	struct stat st;

	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (*fd < 0)
		return false;
	if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode) && rv_elf_is_ours(*fd))
		return true;
	(void)close(*fd);
	*fd = -1;
	return false;
}

static bool try_directory(const struct rv_closure *closure, const char *directory, const char *name, char *found, int *fd)
{
	size_t count = sizeof levels / sizeof levels[0];

	for (size_t i = closure->musl ? count : first_level(); i <= count; i++) {
		int n = snprintf(found, PATH_MAX, "%s/%s%s", directory, i < count ? levels[i] : "", name);

		if (n > 0 && n < PATH_MAX && try_path(found, fd))
			return true;
	}
	return false;
}

/* One element of a RPATH with $ORIGIN replaced. */
static int expand(const struct rv_object *object, const char *text, size_t len, char out[PATH_MAX], struct rv_error *err)
{
	size_t at = 0, origin = (size_t)(strrchr(object->found, '/') - object->found);

	for (size_t i = 0; i < len;) {
		size_t skip = strncmp(text + i, "$ORIGIN", 7) == 0 ? 7 : strncmp(text + i, "${ORIGIN}", 9) == 0 ? 9 : 0;

		if (at + 1 + origin >= PATH_MAX)
			return rv_error_set(err, RV_E_RUNTIME, ENAMETOOLONG, "%s: RPATH", object->found);
		if (skip == 0 && text[i] == '$')
			return rv_error_set(err, RV_E_RUNTIME, 0, "%s: its RPATH has a token other than $ORIGIN",
					    object->found);
		if (skip > 0) {
			memcpy(out + at, object->found, origin);
			at += origin;
			i += skip;
		} else {
			out[at++] = text[i++];
		}
	}
	out[at] = '\0';
	if (out[0] != '/')
		return rv_error_set(err, RV_E_RUNTIME, 0, "%s: its RPATH has a relative directory", object->found);
	return 0;
}

static int try_list(const struct rv_closure *closure, const struct rv_object *object, const char *list, const char *name,
		    char *found, int *fd, struct rv_error *err)
{
	char directory[PATH_MAX];

	while (list != NULL && *list != '\0') {
		size_t len = strcspn(list, ":");

		if (expand(object, list, len, directory, err) != 0)
			return -1;
		if (try_directory(closure, directory, name, found, fd))
			return 1;
		list += len + (list[len] == ':');
	}
	return 0;
}

/* musl follows RUNPATH too up the chain of loaders; glibc only RPATH, and only from an object without RUNPATH. */
static int try_chain(const struct rv_closure *closure, size_t loader, const char *name, char *found, int *fd,
		     struct rv_error *err)
{
	if (!closure->musl && closure->objects[loader].elf.runpath != NULL)
		return 0;
	for (size_t i = loader;; i = closure->objects[i].loader) {
		const struct rv_object *object = &closure->objects[i];
		const char *list = object->elf.runpath != NULL && closure->musl ? object->elf.runpath : object->elf.rpath;
		int got = try_list(closure, object, list, name, found, fd, err);

		if (got != 0 || i == 0)
			return got;
	}
}

int rv_search(const struct rv_closure *closure, size_t loader, const char *name, char *found, int *fd,
	      struct rv_error *err)
{
	const struct rv_object *object = &closure->objects[loader];
	int got;

	*fd = -1;
	if (strchr(name, '/') != NULL) {
		if (name[0] != '/')
			return rv_error_set(err, RV_E_RUNTIME, 0, "%s needs %s, a relative path", object->found, name);
		if (strlen(name) >= PATH_MAX)
			return 0;
		memcpy(found, name, strlen(name) + 1);
		return try_path(found, fd) ? 1 : 0;
	}
	got = try_chain(closure, loader, name, found, fd, err);
	if (got == 0 && !closure->musl)
		got = try_list(closure, object, object->elf.runpath, name, found, fd, err);
	for (size_t i = 0; got == 0 && !object->elf.no_default && i < closure->directory_count; i++)
		got = try_directory(closure, closure->directories[i], name, found, fd) ? 1 : 0;
	return got;
}

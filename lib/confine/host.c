#include "lib/confine/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/buffer.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/text.h"

#define BINFMT "/proc/sys/fs/binfmt_misc"
#define BINFMT_HEAD 256 /* the kernel's BINPRM_BUF_SIZE */

int rv_host_find_launcher(struct rv_host *host, struct rv_error *err)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	struct stat exe, st;

	*host = (struct rv_host){ .release = NULL };
	if (n <= 0)
		return rv_error_set(err, RV_E_HOST, errno, "/proc/self/exe cannot be read: mount procfs on /proc");
	path[n] = '\0';
	if (stat("/proc/self/exe", &exe) != 0 || lstat(path, &st) != 0 || st.st_dev != exe.st_dev || st.st_ino != exe.st_ino)
		return rv_error_set(err, RV_E_HOST, 0, "this program's own file is no longer at %s: start it again", path);
	if (!S_ISREG(st.st_mode) || (st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & 022) != 0)
		return rv_error_set(err, RV_E_HOST, 0,
				    "%s must be a regular file of root or of the caller, not writable by group or others: "
				    "chown and chmod go-w it", path);
	return rv_hash_see(&host->launcher, path, err);
}

/* The value of NAME=value in os-release(5): one word, by the quoting of a shell. */
static char *os_value(const char *text, const char *name)
{
	size_t len = strlen(name);
	struct rv_error err = RV_ERROR_INIT;
	rv_auto_free char **words = NULL;
	size_t count = 0;

	while (*text != '\0') {
		size_t line = strcspn(text, "\n");

		if (line > len && strncmp(text, name, len) == 0 && text[len] == '=') {
			rv_auto_free char *value = strndup(text + len + 1, line - len - 1);

			if (value == NULL || rv_text_split(value, &words, &count, &err) != 0 || count != 1 ||
			    !rv_text_is_utf8(words[0], strlen(words[0])))
				return NULL;
			return strdup(words[0]);
		}
		text += line + (text[line] == '\n');
	}
	return NULL;
}

static void read_os(struct rv_host *host)
{
	rv_auto_buffer struct rv_buffer text = { .max = 65536 };
	struct rv_error err = RV_ERROR_INIT;
	const char *string;

	if (rv_io_read_file("/etc/os-release", &text, &err) != 0 || text.len == 0)
		return;
	string = rv_buffer_string(&text);
	if (string == NULL)
		return;
	host->os_id = os_value(string, "ID");
	host->os_version = os_value(string, "VERSION_ID");
}

int rv_host_describe(struct rv_host *host, struct rv_error *err)
{
	struct utsname name;

	if (rv_host_find_launcher(host, err) != 0)
		return -1;
	if (uname(&name) != 0)
		return rv_error_set(err, RV_E_HOST, errno, "uname");
	host->release = strdup(name.release);
	host->machine = strdup(name.machine);
	read_os(host);
	return host->release != NULL && host->machine != NULL ? 0 : rv_error_nomem(err);
}

void rv_host_release(struct rv_host *host)
{
	free(host->launcher.path);
	free(host->release);
	free(host->machine);
	free(host->os_id);
	free(host->os_version);
	*host = (struct rv_host){ .release = NULL };
}

/* An entry as the kernel shows it: "enabled", "offset N", "magic HEX", "mask HEX", "extension .EXT". */
struct entry {
	bool enabled;
	long long offset;
	unsigned char magic[BINFMT_HEAD], mask[BINFMT_HEAD];
	size_t magic_len, mask_len;
	char extension[NAME_MAX + 1];
};

static size_t unhex(const char *text, size_t len, unsigned char out[BINFMT_HEAD])
{
	size_t count = 0;

	for (size_t i = 0; i + 1 < len && count < BINFMT_HEAD; i += 2) {
		unsigned value;

		if (sscanf(text + i, "%2x", &value) != 1)
			break;
		out[count++] = (unsigned char)value;
	}
	return count;
}

static void read_line(struct entry *entry, const char *line, size_t len)
{
	struct rv_error err = RV_ERROR_INIT;
	char number[32];

	if (len == 7 && strncmp(line, "enabled", len) == 0) {
		entry->enabled = true;
	} else if (len > 7 && len < 7 + sizeof number && strncmp(line, "offset ", 7) == 0) {
		memcpy(number, line + 7, len - 7);
		number[len - 7] = '\0';
		(void)rv_text_integer(number, 0, BINFMT_HEAD, &entry->offset, &err);
	} else if (len > 6 && strncmp(line, "magic ", 6) == 0) {
		entry->magic_len = unhex(line + 6, len - 6, entry->magic);
	} else if (len > 5 && strncmp(line, "mask ", 5) == 0) {
		entry->mask_len = unhex(line + 5, len - 5, entry->mask);
	} else if (len > 11 && len < 11 + sizeof entry->extension && strncmp(line, "extension .", 11) == 0) {
		memcpy(entry->extension, line + 11, len - 11);
	}
}

static bool matches(const struct entry *entry, const unsigned char *head, size_t len, const char *path)
{
	const char *dot = strrchr(path, '.');

	if (!entry->enabled)
		return false;
	if (entry->extension[0] != '\0')
		return dot != NULL && strcmp(dot + 1, entry->extension) == 0;
	if (entry->magic_len == 0 || (size_t)entry->offset + entry->magic_len > len)
		return false;
	for (size_t i = 0; i < entry->magic_len; i++) {
		unsigned char mask = i < entry->mask_len ? entry->mask[i] : 0xff;

		if (((head[(size_t)entry->offset + i] ^ entry->magic[i]) & mask) != 0)
			return false;
	}
	return true;
}

static bool entry_matches(const char *text, const unsigned char *head, size_t len, const char *path)
{
	struct entry entry = { .enabled = false };

	while (*text != '\0') {
		size_t line = strcspn(text, "\n");

		read_line(&entry, text, line);
		text += line + (text[line] == '\n');
	}
	return matches(&entry, head, len, path);
}

int rv_host_check_binfmt(int fd, const char *path, struct rv_error *err)
{
	rv_auto_dir DIR *dir = opendir(BINFMT);
	unsigned char head[BINFMT_HEAD] = { 0 };
	ssize_t len = pread(fd, head, sizeof head, 0);
	struct dirent *entry;

	if (dir == NULL || len < 0)
		return 0; /* not mounted: there is no way to ask, nor to add an entry */
	while ((entry = readdir(dir)) != NULL) {
		rv_auto_buffer struct rv_buffer text = { .max = 65536 };
		struct rv_error ignored = RV_ERROR_INIT;
		char name[sizeof BINFMT + NAME_MAX + 1];
		const char *string;

		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "status") == 0 || strcmp(entry->d_name, "register") == 0)
			continue;
		(void)snprintf(name, sizeof name, "%s/%s", BINFMT, entry->d_name);
		if (rv_io_read_file(name, &text, &ignored) != 0)
			continue;
		string = rv_buffer_string(&text);
		if (string != NULL && entry_matches(string, head, (size_t)len, path))
			return rv_error_set(err, RV_E_RUNTIME, 0,
					    "%s is given to another program by binfmt_misc (%s): disable that entry", path, name);
	}
	return 0;
}

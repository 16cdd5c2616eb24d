/*
 * A store for rv-exec --ledger-exec whose every system call can be counted: no interpreter's are among them.
 * Each row is appended to FILE in one write, and then answered with ok, or with why not.
 *
 *     store FILE
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char rows[1 << 20];

static int say(const char *text)
{
	char line[200];
	int len = snprintf(line, sizeof line, "%s\n", text);

	return write(STDOUT_FILENO, line, (size_t)len) == len ? 0 : -1;
}

/* A row of which only a part was written is cut off again: nothing may be glued to it. */
static int keep(int fd, const char *row, size_t len)
{
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t n = write(fd, row, len);

	if (n == (ssize_t)len)
		return say("ok");
	if (n > 0 && (size < 0 || ftruncate(fd, size) != 0))
		return -1;
	return say(n < 0 ? strerror(errno) : "no room");
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
	size_t have = 0;
	ssize_t n;

	if (fd < 0)
		return 1;
	while ((n = read(STDIN_FILENO, rows + have, sizeof rows - have)) > 0) {
		char *row = rows, *end;

		have += (size_t)n;
		while ((end = memchr(row, '\n', have)) != NULL) {
			size_t len = (size_t)(end - row) + 1;

			if (keep(fd, row, len) != 0)
				return 1;
			row += len;
			have -= len;
		}
		memmove(rows, row, have);
	}
	return n == 0 ? 0 : 1;
}

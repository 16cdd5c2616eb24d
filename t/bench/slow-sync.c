/*
 * For LD_PRELOAD: each fdatasync(2) takes $RV_SYNC_MS more, and leaves a byte in the file $RV_SYNC_COUNT, so
 * that its size says how many there were.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void count_one(void)
{
	const char *path = getenv("RV_SYNC_COUNT");
	int fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, ".", 1) != 1)
		abort(); /* a count that misses some is no count */
	(void)close(fd);
}

int fdatasync(int fd)
{
	const char *text = getenv("RV_SYNC_MS");
	long ms = text == NULL ? 0 : strtol(text, NULL, 10);
	struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	count_one();
	(void)nanosleep(&pause, NULL);
	return (int)syscall(SYS_fdatasync, fd);
}

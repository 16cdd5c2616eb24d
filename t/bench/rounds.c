/*
 * rounds [-l FILE] ROUNDS BATCH COMMAND STREAM...: in turn, ROUNDS times each, BATCH runs of COMMAND (posix_spawn and
 * wait, output to /dev/null) and BATCH dispatches of every STREAM, a program that reads requests and
 * answers each with a line and is started once.  For each STREAM print the median of a dispatch and of a
 * bare run in milliseconds, and the median of their ratios, round by round: a drift of the machine's speed
 * touches both.  The first round warms up and does not count.
 *
 * The fourth figure is the ratio of processor time, of everything that was started: what a busy machine
 * blurs least.  The runs are handed over BATCH at a time, as a pipeline does.  With -l each request is the one line of
 * FILE; else it is one of rv-exec's.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/text.h"

#define STREAMS_MAX 8

extern char **environ;

struct stream {
	pid_t pid;
	int in;
	int out;
	double *took; /* ms a dispatch, of each round */
	double cpu;   /* ms of all of its rounds, and of its start and end */
};

/* Of the children that were waited for, and of theirs. */
static double cpu_ms(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_CHILDREN, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static _Noreturn void die(const char *what, int errnum)
{
	fprintf(stderr, "rounds: %s: %s\n", what, errnum != 0 ? strerror(errnum) : "did not do what it should");
	exit(1);
}

static void start(struct stream *stream, char **words)
{
	posix_spawn_file_actions_t actions;
	int in[2];
	int out[2];
	int failed;

	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
		die("pipe", errno);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	(void)posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	failed = posix_spawnp(&stream->pid, words[0], &actions, NULL, words, environ);
	if (failed != 0)
		die(words[0], failed);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(in[0]);
	(void)close(out[1]);
	stream->in = in[1];
	stream->out = out[0];
}

static size_t count_lines(const char *text, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += text[i] == '\n';
	return count;
}

/* The requests fit into the pipe, or the program reads while we write: nothing is in the way of either. */
static double dispatch(const struct stream *stream, long long batch, const char *line)
{
	static long long number;
	static char text[65536];
	size_t len = 0;
	int64_t began;

	for (long long i = 0; i < batch; i++) {
		number++;
		if (line != NULL)
			len += (size_t)snprintf(text + len, sizeof text - len, "%s", line);
		else
			len += (size_t)snprintf(text + len, sizeof text - len,
					"{\"tool\":\"t\",\"args\":{\"n\":%lld},\"ctx\":{\"runId\":\"r\",\"idempotencyKey\":\"k%lld\"}}\n",
					number, number);
	}
	if (len >= sizeof text)
		die("the requests of a batch", E2BIG);
	began = rv_clock_mono_us();
	if (write(stream->in, text, len) != (ssize_t)len)
		die("write", errno);
	for (long long seen = 0; seen < batch;) {
		ssize_t n = read(stream->out, text, sizeof text);

		if (n <= 0)
			die("a stream", n < 0 ? errno : 0);
		seen += (long long)count_lines(text, (size_t)n);
	}
	return (double)(rv_clock_mono_us() - began) / 1000 / (double)batch;
}

static double spawn(char **words, long long batch)
{
	posix_spawn_file_actions_t actions;
	int64_t began = rv_clock_mono_us();

	for (long long i = 0; i < batch; i++) {
		pid_t pid;
		int status;
		int failed;

		(void)posix_spawn_file_actions_init(&actions);
		(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
		(void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
		failed = posix_spawn(&pid, words[0], &actions, NULL, words, environ);
		if (failed != 0 || waitpid(pid, &status, 0) != pid || status != 0)
			die(words[0], failed);
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	return (double)(rv_clock_mono_us() - began) / 1000 / (double)batch;
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(double *values, long long count)
{
	qsort(values, (size_t)count, sizeof *values, by_value);
	return values[count / 2];
}

static void report(struct stream *streams, size_t count, const double *bare, double bare_cpu, long long rounds)
{
	double *copy = calloc((size_t)rounds, sizeof *copy);
	double *ratios = calloc((size_t)rounds, sizeof *ratios);

	if (copy == NULL || ratios == NULL)
		die("memory", errno);
	for (size_t i = 0; i < count; i++) {
		memcpy(copy, bare, (size_t)rounds * sizeof *copy);
		for (long long round = 0; round < rounds; round++)
			ratios[round] = streams[i].took[round] / bare[round];
		printf("%.3f %.3f %.2f %.2f\n", median(streams[i].took, rounds), median(copy, rounds), median(ratios, rounds),
		       streams[i].cpu / bare_cpu);
	}
	free(copy);
	free(ratios);
}

static const char *read_line(const char *path)
{
	static char line[8192];
	FILE *file = fopen(path, "r");

	if (file == NULL || fgets(line, sizeof line, file) == NULL)
		die(path, errno);
	(void)fclose(file);
	return line;
}

int main(int argc, char **argv)
{
	struct rv_error err = RV_ERROR_INIT;
	struct stream streams[STREAMS_MAX];
	size_t count = (size_t)(argc > 4 ? argc - 4 : 0);
	long long rounds;
	long long batch;
	char **words;
	char **bare;
	size_t length;
	double *floor;
	double bare_cpu = 0;
	const char *line = NULL;

	if (argc > 2 && strcmp(argv[1], "-l") == 0) {
		line = read_line(argv[2]);
		argv += 2;
		count -= 2;
	}
	if (count == 0 || count > STREAMS_MAX || rv_text_integer(argv[1], 1, 10000, &rounds, &err) != 0 ||
	    rv_text_integer(argv[2], 1, 500, &batch, &err) != 0 || rv_text_split(argv[3], &bare, &length, &err) != 0 || length == 0) {
		fprintf(stderr, "usage: rounds ROUNDS BATCH COMMAND STREAM...\n");
		return 2;
	}
	floor = calloc((size_t)rounds, sizeof *floor);
	for (size_t i = 0; i < count; i++) {
		streams[i].took = calloc((size_t)rounds, sizeof(double));
		if (rv_text_split(argv[i + 4], &words, &length, &err) != 0 || length == 0 || streams[i].took == NULL || floor == NULL)
			die(argv[i + 4], errno);
		start(&streams[i], words);
		free(words);
	}
	for (long long round = -1; round < rounds; round++) {
		long long at = round < 0 ? 0 : round;

		floor[at] = spawn(bare, batch);
		for (size_t i = 0; i < count; i++)
			streams[i].took[at] = dispatch(&streams[i], batch, line);
	}
	for (size_t i = 0; i < count; i++) {
		double before = cpu_ms();
		int status = 0;

		bare_cpu = i == 0 ? before : bare_cpu;
		(void)close(streams[i].in);
		if (waitpid(streams[i].pid, &status, 0) != streams[i].pid || status != 0)
			die("a stream's end", 0);
		streams[i].cpu = cpu_ms() - before;
	}
	report(streams, count, floor, bare_cpu, rounds);
	for (size_t i = 0; i < count; i++)
		free(streams[i].took);
	free(floor);
	free(bare);
	return 0;
}

/*
 * rounds [-2] [-l FILE] ROUNDS BATCH COMMAND STREAM...: in turn, ROUNDS times each, BATCH runs of COMMAND (posix_spawn and
 * wait, output to /dev/null) and BATCH dispatches of every STREAM, a program that reads requests and
 * answers each with a line and is started once.  For each STREAM print the median of a dispatch and of a
 * bare run in milliseconds, and the median of their ratios, round by round: a drift of the machine's speed
 * touches both.  The first round warms up and does not count.
 *
 * The fourth figure is the ratio of processor time, of everything that was started: what a busy machine
 * blurs least.  The runs are handed over BATCH at a time, as a pipeline does.  With -l each request is the one line of
 * FILE; else it is one of rv-exec's.
 *
 * With -2 there are in each round also BATCH runs of COMMAND by two loops at once, each on a processor of its own:
 * what two jobs can win on this machine at most.  Then each STREAM has a fifth figure, how many times as fast it is
 * as the first one, and a last line says the same of the two loops beside the one, and of both in milliseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
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
	double *took; /* ms a dispatch, of each round; of the two loops: a run */
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

/* ---- two loops at once ---- */

/* The `index`-th of the processors that we may use, if there are so many. */
static void go_to_processor(int index)
{
	cpu_set_t all;
	cpu_set_t one;

	CPU_ZERO(&all);
	if (sched_getaffinity(0, sizeof all, &all) != 0)
		die("sched_getaffinity", errno);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || index-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof one, &one) != 0)
			die("sched_setaffinity", errno);
		return;
	}
}

/* Half a batch for each byte that comes, and a byte back. */
static void start_loop(struct stream *loop, int index, char **words, long long batch)
{
	int ends[2];
	char go;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		die("socketpair", errno);
	loop->pid = fork();
	if (loop->pid < 0)
		die("fork", errno);
	loop->in = loop->out = ends[0];
	if (loop->pid > 0) {
		(void)close(ends[1]);
		return;
	}
	(void)close(ends[0]);
	go_to_processor(index);
	while (read(ends[1], &go, 1) == 1) {
		(void)spawn(words, batch / 2);
		if (write(ends[1], &go, 1) != 1)
			die("write", errno);
	}
	_exit(0);
}

static double spawn_by_two(const struct stream loops[2], long long batch)
{
	int64_t began = rv_clock_mono_us();
	char done;

	if (write(loops[0].in, "", 1) != 1 || write(loops[1].in, "", 1) != 1 || read(loops[0].out, &done, 1) != 1 ||
	    read(loops[1].out, &done, 1) != 1)
		die("a loop", errno);
	return (double)(rv_clock_mono_us() - began) / 1000 / (double)(batch / 2 * 2);
}

/* The second one first: it has the first one's end of file in its hands. */
static void end_loops(const struct stream loops[2])
{
	for (int i = 1; i >= 0; i--) {
		int status = 0;

		(void)close(loops[i].in);
		if (waitpid(loops[i].pid, &status, 0) != loops[i].pid || status != 0)
			die("a loop's end", 0);
	}
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

/* How many times as fast `fast` is as `slow`: the median of the rounds. */
static double speed(const double *slow, const double *fast, long long rounds)
{
	double *ratios = calloc((size_t)rounds, sizeof *ratios);
	double result;

	if (ratios == NULL)
		die("memory", errno);
	for (long long round = 0; round < rounds; round++)
		ratios[round] = slow[round] / fast[round];
	result = median(ratios, rounds);
	free(ratios);
	return result;
}

static double median_of_copy(const double *values, long long count)
{
	double *copy = calloc((size_t)count, sizeof *copy);
	double result;

	if (copy == NULL)
		die("memory", errno);
	memcpy(copy, values, (size_t)count * sizeof *copy);
	result = median(copy, count);
	free(copy);
	return result;
}

/* `twice`: of the two loops, NULL where there are none. */
static void report(const struct stream *streams, size_t count, const double *bare, const double *twice, double bare_cpu,
		   long long rounds)
{
	for (size_t i = 0; i < count; i++) {
		printf("%.3f %.3f %.2f %.2f", median_of_copy(streams[i].took, rounds), median_of_copy(bare, rounds),
		       speed(streams[i].took, bare, rounds), streams[i].cpu / bare_cpu);
		if (twice != NULL)
			printf(" %.2f", speed(streams[0].took, streams[i].took, rounds));
		printf("\n");
	}
	if (twice != NULL)
		printf("%.3f %.3f %.2f\n", median_of_copy(bare, rounds), median_of_copy(twice, rounds), speed(bare, twice, rounds));
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

struct plan {
	bool two;
	const char *line;
	long long rounds;
	long long batch;
	char **words;
	struct stream streams[STREAMS_MAX];
	struct stream loops[2];
	size_t count;
};

static int read_words(struct plan *plan, int argc, char **argv)
{
	struct rv_error err = RV_ERROR_INIT;
	size_t length = 0;
	int at = 1;

	if (at < argc && strcmp(argv[at], "-2") == 0) {
		plan->two = true;
		at++;
	}
	if (at + 1 < argc && strcmp(argv[at], "-l") == 0) {
		plan->line = read_line(argv[at + 1]);
		at += 2;
	}
	if (argc - at < 4 || argc - at - 3 > STREAMS_MAX || rv_text_integer(argv[at], 1, 10000, &plan->rounds, &err) != 0 ||
	    rv_text_integer(argv[at + 1], 2, 500, &plan->batch, &err) != 0 ||
	    rv_text_split(argv[at + 2], &plan->words, &length, &err) != 0 || length == 0)
		return -1;
	for (at += 3; at < argc; at++) {
		struct stream *stream = &plan->streams[plan->count++];
		char **words;

		stream->took = calloc((size_t)plan->rounds, sizeof(double));
		if (rv_text_split(argv[at], &words, &length, &err) != 0 || length == 0 || stream->took == NULL)
			die(argv[at], errno);
		start(stream, words);
		free(words);
	}
	return 0;
}

static void measure(struct plan *plan, double *bare, double *twice)
{
	for (long long round = -1; round < plan->rounds; round++) {
		long long at = round < 0 ? 0 : round;

		bare[at] = spawn(plan->words, plan->batch);
		if (plan->two)
			twice[at] = spawn_by_two(plan->loops, plan->batch);
		for (size_t i = 0; i < plan->count; i++)
			plan->streams[i].took[at] = dispatch(&plan->streams[i], plan->batch, plan->line);
	}
}

int main(int argc, char **argv)
{
	struct plan plan = { .two = false };
	double bare_cpu;
	double *bare;
	double *twice;

	if (read_words(&plan, argc, argv) != 0) {
		fprintf(stderr, "usage: rounds [-2] [-l FILE] ROUNDS BATCH COMMAND STREAM...\n");
		return 2;
	}
	for (int i = 0; plan.two && i < 2; i++)
		start_loop(&plan.loops[i], i, plan.words, plan.batch);
	bare = calloc((size_t)plan.rounds, sizeof *bare);
	twice = calloc((size_t)plan.rounds, sizeof *twice);
	if (bare == NULL || twice == NULL)
		die("memory", errno);
	measure(&plan, bare, twice);
	bare_cpu = cpu_ms(); /* before the loops and the streams are waited for */
	if (plan.two)
		end_loops(plan.loops);
	for (size_t i = 0; i < plan.count; i++) {
		struct stream *stream = &plan.streams[i];
		double before = cpu_ms();
		int status = 0;

		(void)close(stream->in);
		if (waitpid(stream->pid, &status, 0) != stream->pid || status != 0)
			die("a stream's end", 0);
		stream->cpu = cpu_ms() - before;
	}
	report(plan.streams, plan.count, bare, plan.two ? twice : NULL, bare_cpu, plan.rounds);
	for (size_t i = 0; i < plan.count; i++)
		free(plan.streams[i].took);
	free(plan.words);
	free(bare);
	free(twice);
	return 0;
}

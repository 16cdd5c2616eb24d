/*
 * pair COUNT 'COMMAND A' 'COMMAND B': run the two in turn COUNT times each (posix_spawn and wait, output
 * to /dev/null, one warm-up) and print the median of each in milliseconds, the median of the ratios A/B
 * and of the differences A-B.  Pairs, so that a drift of the machine's speed touches both.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/base/text.h"

extern char **environ;

static double once(char **words)
{
	posix_spawn_file_actions_t actions;
	int64_t start;
	pid_t pid;
	int status;
	int failed;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	start = rv_clock_mono_us();
	failed = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
	if (failed != 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "pair: %s: %s\n", words[0], failed != 0 ? strerror(failed) : "did not exit with 0");
		exit(1);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	return (double)(rv_clock_mono_us() - start) / 1000;
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_value);
	return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

int main(int argc, char **argv)
{
	struct rv_error err = RV_ERROR_INIT;
	long long count;
	char **words[2];
	size_t length;
	double *columns[4];

	if (argc != 4 || rv_text_integer(argv[1], 1, 100000, &count, &err) != 0 ||
	    rv_text_split(argv[2], &words[0], &length, &err) != 0 || length == 0 ||
	    rv_text_split(argv[3], &words[1], &length, &err) != 0 || length == 0) {
		fprintf(stderr, "usage: pair COUNT 'COMMAND A' 'COMMAND B'\n");
		return 2;
	}
	for (int i = 0; i < 4; i++) {
		columns[i] = calloc((size_t)count, sizeof *columns[i]);
		if (columns[i] == NULL)
			return 1;
	}
	(void)once(words[0]);
	(void)once(words[1]);
	for (long long i = 0; i < count; i++) {
		double a = once(words[0]);
		double b = once(words[1]);

		columns[0][i] = a;
		columns[1][i] = b;
		columns[2][i] = a / b;
		columns[3][i] = a - b;
	}
	printf("%.3f ms, %.3f ms, ratio %.2f, difference %.3f ms\n", median(columns[0], (size_t)count),
	       median(columns[1], (size_t)count), median(columns[2], (size_t)count), median(columns[3], (size_t)count));
	for (int i = 0; i < 4; i++)
		free(columns[i]);
	free(words[0]);
	free(words[1]);
	return 0;
}

/*
 * The floor under rv-key --stream: what cannot be left out of it.  Of each line yajl's events,
 * which nobody looks at, and two SHA-256, with the algorithm fetched once; no tree, no canonical
 * form, no keys.  Prints one line at the end, so that nothing is optimised away.
 *
 * usage: floor-keys [bare] < invocations.jsonl
 *
 * bare: without the hashes, which is yajl's own speed on any JSON lines.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <yajl/yajl_parse.h>

#define BLOCK ((size_t)256 << 10)

static unsigned long events;

static int on_event(void *context)
{
	(void)context;
	events++;
	return 1;
}

static int on_boolean(void *context, int value)
{
	(void)value;
	return on_event(context);
}

static int on_number(void *context, const char *text, size_t len)
{
	(void)text;
	(void)len;
	return on_event(context);
}

static int on_string(void *context, const unsigned char *text, size_t len)
{
	(void)text;
	(void)len;
	return on_event(context);
}

static const yajl_callbacks callbacks = { on_event, on_boolean, NULL,     NULL,     on_number, on_string,
					  on_event, on_string,  on_event, on_event, on_event };

struct floor {
	EVP_MD *algorithm;
	EVP_MD_CTX *context;
	unsigned char sum;
	bool bare;
};

static int hash(struct floor *bottom, const char *line, size_t len)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int size = 0;

	if (EVP_DigestInit_ex2(bottom->context, bottom->algorithm, NULL) != 1 ||
	    EVP_DigestUpdate(bottom->context, line, len) != 1 ||
	    EVP_DigestFinal_ex(bottom->context, digest, &size) != 1)
		return -1;
	bottom->sum ^= digest[0];
	return 0;
}

static int take_line(struct floor *bottom, const char *line, size_t len)
{
	yajl_handle handle = yajl_alloc(&callbacks, NULL, NULL);
	int result = -1;

	if (handle != NULL && yajl_parse(handle, (const unsigned char *)line, len) == yajl_status_ok &&
	    yajl_complete_parse(handle) == yajl_status_ok)
		result = bottom->bare || (hash(bottom, line, len) == 0 && hash(bottom, line, len) == 0) ? 0 : -1;
	if (handle != NULL)
		yajl_free(handle);
	return result;
}

/* Whole lines of data[0, len); returns the bytes of the rest, or -1. */
static long take_lines(struct floor *bottom, char *data, size_t len)
{
	char *at = data;
	char *newline;

	while ((newline = memchr(at, '\n', len - (size_t)(at - data))) != NULL) {
		if (take_line(bottom, at, (size_t)(newline - at)) != 0)
			return -1;
		at = newline + 1;
	}
	len -= (size_t)(at - data);
	memmove(data, at, len);
	return (long)len;
}

int main(int argc, char **argv)
{
	struct floor bottom = { EVP_MD_fetch(NULL, "SHA256", NULL), EVP_MD_CTX_new(), 0,
				argc == 2 && strcmp(argv[1], "bare") == 0 };
	char *data = malloc(2 * BLOCK);
	long rest = 0;
	ssize_t n;

	if (bottom.algorithm == NULL || bottom.context == NULL || data == NULL)
		return EXIT_FAILURE;
	while ((n = read(STDIN_FILENO, data + rest, BLOCK)) > 0) {
		rest = take_lines(&bottom, data, (size_t)rest + (size_t)n);
		if (rest < 0 || (size_t)rest > BLOCK) {
			(void)fprintf(stderr, "floor-keys: a line is no JSON or longer than %zu bytes\n", BLOCK);
			return EXIT_FAILURE;
		}
	}
	printf("%lu events, %u\n", events, bottom.sum);
	free(data);
	EVP_MD_CTX_free(bottom.context);
	EVP_MD_free(bottom.algorithm);
	return n == 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

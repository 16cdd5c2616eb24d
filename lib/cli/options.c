#include "lib/cli/cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"

#define HELP_COLUMN 28

enum { VALUE_BASE = 256, VALUE_HELP = 1000, VALUE_VERSION };

void rv_strings_release(struct rv_strings *list)
{
	free(list->items);
	list->items = NULL;
	list->count = 0;
}

static int strings_add(struct rv_strings *list, const char *item, struct rv_error *err)
{
	const char **grown = realloc(list->items, (list->count + 1) * sizeof *grown);

	if (grown == NULL)
		return rv_error_nomem(err);
	list->items = grown;
	list->items[list->count++] = item;
	return 0;
}

static int choice_index(const char *choices, const char *text, struct rv_error *err)
{
	const char *at = choices;
	size_t len = strlen(text);

	for (int index = 0; at != NULL; index++) {
		const char *end = strchr(at, '|');
		size_t width = end != NULL ? (size_t)(end - at) : strlen(at);

		if (width == len && memcmp(at, text, len) == 0)
			return index;
		at = end != NULL ? end + 1 : NULL;
	}
	return rv_error_set(err, RV_E_USAGE, 0, "not one of %s: %s", choices, text);
}

static int store(const struct rv_option *option, const char *text, char *values, struct rv_error *err)
{
	void *slot = values + option->offset;

	if (option->seen != RV_UNSEEN)
		*(bool *)(void *)(values + option->seen) = true;
	switch (option->kind) {
	case RV_OPT_FLAG:
		*(bool *)slot = true;
		return 0;
	case RV_OPT_STRING:
		*(const char **)slot = text;
		return 0;
	case RV_OPT_LIST:
		return strings_add(slot, text, err);
	case RV_OPT_DURATION: {
		long long ms;

		if (rv_text_duration(text, &ms, err) != 0)
			return -1;
		*(int64_t *)slot = ms;
		return 0;
	}
	case RV_OPT_SIZE: {
		unsigned long long bytes;

		if (rv_text_size(text, &bytes, err) != 0)
			return -1;
		*(uint64_t *)slot = bytes;
		return 0;
	}
	case RV_OPT_INTEGER: {
		long long value;

		if (rv_text_integer(text, option->min, option->max, &value, err) != 0)
			return -1;
		*(int64_t *)slot = value;
		return 0;
	}
	case RV_OPT_CHOICE: {
		int index = choice_index(option->choices, text, err);

		if (index < 0)
			return -1;
		*(int *)slot = index;
		return 0;
	}
	}
	return -1;
}

static void add_option_help(struct rv_buffer *out, char letter, const char *name, const char *argument,
			    const char *help)
{
	size_t start = out->len;
	size_t width;

	if (letter != 0)
		rv_buffer_printf(out, "  -%c, --%s", letter, name);
	else
		rv_buffer_printf(out, "      --%s", name);
	if (argument != NULL)
		rv_buffer_printf(out, " %s", argument);
	width = out->len - start;
	if (width + 2 > HELP_COLUMN) {
		rv_buffer_add_byte(out, '\n');
		width = 0;
	}
	rv_buffer_printf(out, "%*s", (int)(HELP_COLUMN - width), "");
	for (; *help != '\0'; help++) {
		rv_buffer_add_byte(out, *help);
		if (*help == '\n')
			rv_buffer_printf(out, "%*s", HELP_COLUMN, "");
	}
	rv_buffer_add_byte(out, '\n');
}

static void print_help(const struct rv_program *program)
{
	struct rv_buffer out = RV_BUFFER_INIT;

	for (size_t i = 0; program->usage[i] != NULL; i++)
		rv_buffer_printf(&out, "%s %s %s\n", i == 0 ? "usage:" : "      ", program->name, program->usage[i]);
	rv_buffer_printf(&out, "\n%s\n\n", program->about);
	for (size_t i = 0; i < program->count; i++) {
		const struct rv_option *option = &program->options[i];

		add_option_help(&out, option->letter, option->name,
				option->kind == RV_OPT_CHOICE ? option->choices : option->argument, option->help);
	}
	add_option_help(&out, 'h', "help", NULL, "print this and exit");
	add_option_help(&out, 'V', "version", NULL, "print the version and exit");
	rv_buffer_add_string(&out, "\nExit status:\n");
	for (size_t i = 0; program->statuses[i] != NULL; i++)
		rv_buffer_printf(&out, "  %s\n", program->statuses[i]);
	rv_buffer_printf(&out, "\nSee %s(1) and rv(7).\n", program->name);
	(void)rv_cli_write(out.data, out.len);
	rv_buffer_release(&out);
}

static void print_version(const struct rv_program *program)
{
	char text[128];
	int n = snprintf(text, sizeof text, "%s (rv-tools) %s\n", program->name, RV_VERSION);

	if (n > 0)
		(void)rv_cli_write(text, (size_t)n);
}

struct getopt_data {
	struct option *longs;
	char *letters;
};

static int build(const struct rv_program *program, struct getopt_data *data)
{
	size_t n = program->count;
	char *letter;

	data->longs = calloc(n + 3, sizeof *data->longs);
	data->letters = malloc(2 * n + 6);
	if (data->longs == NULL || data->letters == NULL)
		return -1;
	letter = data->letters;
	*letter++ = '+'; /* stop at the first operand */
	*letter++ = ':';
	for (size_t i = 0; i < n; i++) {
		const struct rv_option *option = &program->options[i];
		int takes = option->kind == RV_OPT_FLAG ? no_argument : required_argument;

		data->longs[i] = (struct option){ option->name, takes, NULL, VALUE_BASE + (int)i };
		if (option->letter != 0) {
			*letter++ = option->letter;
			if (takes == required_argument)
				*letter++ = ':';
		}
	}
	data->longs[n] = (struct option){ "help", no_argument, NULL, VALUE_HELP };
	data->longs[n + 1] = (struct option){ "version", no_argument, NULL, VALUE_VERSION };
	*letter++ = 'h';
	*letter++ = 'V';
	*letter = '\0';
	return 0;
}

static const struct rv_option *option_of(const struct rv_program *program, int value)
{
	if (value >= VALUE_BASE)
		return &program->options[value - VALUE_BASE];
	for (size_t i = 0; i < program->count; i++) {
		if (program->options[i].letter == value)
			return &program->options[i];
	}
	return NULL;
}

/* One result of getopt_long: 0 to go on, -1 to end with *status. */
static int take(const struct rv_program *program, int got, char **argv, void *values, int *status)
{
	struct rv_error err = RV_ERROR_INIT;
	const struct rv_option *option;

	if (got == 'h' || got == VALUE_HELP || got == 'V' || got == VALUE_VERSION) {
		if (got == 'h' || got == VALUE_HELP)
			print_help(program);
		else
			print_version(program);
		*status = rv_cli_end(RV_EXIT_DONE);
		return -1;
	}
	if (got == '?' || got == ':') {
		const char *word = argv[optind - 1];

		if (got == ':')
			*status = rv_cli_usage("option %s needs an argument", word);
		else
			*status = rv_cli_usage("unknown, ambiguous or malformed option: %s", word);
		return -1;
	}
	option = option_of(program, got);
	if (option == NULL) {
		*status = rv_cli_usage("unknown option");
		return -1;
	}
	if (store(option, optarg, values, &err) != 0) {
		if (err.code == RV_E_USAGE)
			*status = rv_cli_usage("--%s: %s", option->name, err.message);
		else
			*status = rv_cli_fail(&err);
		return -1;
	}
	return 0;
}

int rv_cli_parse(const struct rv_program *program, int argc, char **argv, void *values, int *operand, int *status)
{
	struct getopt_data data = { NULL, NULL };
	int result = 0;

	if (build(program, &data) != 0) {
		struct rv_error err = RV_ERROR_INIT;

		(void)rv_error_nomem(&err);
		*status = rv_cli_fail(&err);
		result = -1;
	}
	opterr = 0;
	while (result == 0) {
		int got = getopt_long(argc, argv, data.letters, data.longs, NULL);

		if (got == -1)
			break;
		result = take(program, got, argv, values, status);
	}
	*operand = optind;
	free(data.longs);
	free(data.letters);
	return result;
}

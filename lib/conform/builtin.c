#include "lib/conform/builtin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/text.h"
#include "lib/conform/argv.h"
#include "lib/conform/check.h"
#include "lib/json/json.h"
#include "lib/json/write.h"

#define REQUEST_MAX ((size_t)256 << 20)
#define WORDS_MAX   ((size_t)100 << 10) /* bytes: well below what exec(2) takes for one word */

/* ---- config and request as options of rv-exec ---- */

static void add_text(struct rv_argv *line, const char *option, const struct rv_json_node *value)
{
	if (!rv_json_is_string(value))
		return;
	rv_argv_add(line, option);
	rv_argv_add_span(line, rv_json_string(value));
}

static void add_number(struct rv_argv *line, const char *option, const struct rv_json_node *value, const char *unit)
{
	int64_t number;
	char text[40];

	if (value == NULL || !rv_json_integer(value, &number))
		return;
	(void)snprintf(text, sizeof text, "%lld%s", (long long)number, unit);
	rv_argv_add(line, option);
	rv_argv_add(line, text);
}

/* One word of a command line by POSIX quoting. */
static void add_quoted(struct rv_buffer *out, struct rv_span word)
{
	if (out->len > 0)
		rv_buffer_add_byte(out, ' ');
	rv_buffer_add_byte(out, '\'');
	for (size_t i = 0; i < word.len; i++) {
		if (word.data[i] == '\'')
			rv_buffer_add_string(out, "'\\''");
		else
			rv_buffer_add_byte(out, word.data[i]);
	}
	rv_buffer_add_byte(out, '\'');
}

static void add_credentials(struct rv_argv *line, const struct rv_json_node *words)
{
	struct rv_buffer text = RV_BUFFER_INIT;

	if (words == NULL || rv_json_type(words) != RV_JSON_ARRAY)
		return;
	for (const struct rv_json_node *word = rv_json_first(words); word != NULL; word = rv_json_next(word)) {
		if (rv_json_is_string(word))
			add_quoted(&text, rv_json_string(word));
	}
	rv_argv_add(line, "--credentials");
	rv_argv_add_span(line, (struct rv_span){ text.data, text.len });
	rv_buffer_release(&text);
}

static void add_each(struct rv_argv *line, const char *option, const struct rv_json_node *list)
{
	for (const struct rv_json_node *item = list != NULL ? rv_json_first(list) : NULL; item != NULL; item = rv_json_next(item))
		add_text(line, option, item);
}

static void add_isolation(struct rv_argv *line, const struct rv_json_node *config)
{
	const struct rv_json_node *container = rv_json_get(config, "container");

	add_text(line, "--sandbox", rv_json_get(config, "sandbox"));
	add_each(line, "--ro", rv_json_get(config, "readable"));
	if (container == NULL)
		return;
	add_text(line, "--image", rv_json_get(container, "image"));
	add_text(line, "--engine", rv_json_get(container, "engine"));
	add_text(line, "--memory", rv_json_get(container, "memory"));
	add_each(line, "--engine-arg", rv_json_get(container, "engineArgs"));
}

static void add_config(struct rv_argv *line, const struct rv_json_node *config)
{
	add_each(line, "--allow-env", rv_json_get(config, "allowEnv"));
	add_credentials(line, rv_json_get(config, "credentials"));
	add_number(line, "--timeout", rv_json_get(config, "timeoutMs"), "ms");
	add_number(line, "--kill-grace", rv_json_get(config, "killGraceMs"), "ms");
	add_number(line, "--max-output", rv_json_get(config, "maxOutputBytes"), "");
	add_text(line, "--ledger", rv_json_get(config, "ledger"));
	add_text(line, "--workdir-base", rv_json_get(config, "workdirBase"));
	add_text(line, "--manifest", rv_json_get(config, "manifest"));
	add_text(line, "--approvals", rv_json_get(config, "approvals"));
	add_isolation(line, config);
}

/* ---- the request as rv-exec's stream reads it ---- */

static void add_elements(struct rv_buffer *out, const struct rv_json_doc *doc, const struct rv_json_node *list)
{
	const struct rv_json_node *item = list != NULL ? rv_json_first(list) : NULL;

	for (; item != NULL; item = rv_json_next(item)) {
		if (out->data[out->len - 1] != '[')
			rv_buffer_add_byte(out, ',');
		rv_json_add_source(out, doc, item);
	}
}

/* The configured command goes into the request, where words may be of any length. */
static void add_spec(struct rv_buffer *out, const struct rv_json_doc *doc, const struct rv_json_node *config,
		     const struct rv_json_node *spec)
{
	const struct rv_json_node *own = rv_json_get(spec, "command");
	const struct rv_json_node *command = own != NULL ? own : rv_json_get(config, "command");

	rv_json_add_name(out, "spec");
	rv_buffer_add_byte(out, '{');
	if (command != NULL) {
		rv_json_add_name(out, "command");
		rv_json_add_source(out, doc, command);
	}
	rv_json_add_name(out, "args");
	rv_buffer_add_byte(out, '[');
	if (own == NULL)
		add_elements(out, doc, rv_json_get(config, "args"));
	add_elements(out, doc, rv_json_get(spec, "args"));
	rv_buffer_add_string(out, "]}");
}

static void add_request(struct rv_buffer *out, const struct rv_json_doc *doc, const struct rv_json_node *config,
			const struct rv_json_node *request)
{
	const struct rv_json_node *member = rv_json_first(request);

	rv_buffer_add_byte(out, '{');
	for (; member != NULL; member = rv_json_next(member)) {
		struct rv_span name = rv_json_name(member);

		if (rv_span_equal(name, RV_SPAN("spec")))
			continue;
		if (out->data[out->len - 1] != '{')
			rv_buffer_add_byte(out, ',');
		rv_json_add_string(out, name.data, name.len);
		rv_buffer_add_byte(out, ':');
		rv_json_add_source(out, doc, member);
	}
	if (rv_json_get(config, "manifest") == NULL || rv_json_get(request, "spec") != NULL)
		add_spec(out, doc, config, rv_json_get(request, "spec"));
	rv_buffer_add_string(out, "}\n");
}

/* Standard input becomes these bytes: of any length, in no file. */
static int feed(const char *bytes, size_t len, struct rv_error *err)
{
	rv_auto_fd int fd = memfd_create("rv-conform", MFD_CLOEXEC);

	if (fd < 0)
		return rv_error_set(err, RV_E_IO, errno, "memfd_create");
	if (rv_io_write_all(fd, bytes, len, err) != 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) != 0 || dup2(fd, STDIN_FILENO) < 0)
		return rv_error_set(err, RV_E_IO, errno, "standard input");
	return 0;
}

/* ---- the same as one call's options ---- */

static void add_words(struct rv_argv *line, const struct rv_json_node *list)
{
	const struct rv_json_node *word = list != NULL ? rv_json_first(list) : NULL;

	for (; word != NULL; word = rv_json_next(word)) {
		if (rv_json_is_string(word))
			rv_argv_add_span(line, rv_json_string(word));
	}
}

static bool says_what_runs(const struct rv_json_node *config)
{
	return rv_json_is_string(rv_json_get(config, "manifest")) || rv_json_is_string(rv_json_get(config, "command"));
}

static void add_call(struct rv_argv *line, const struct rv_json_node *config, const struct rv_json_node *request)
{
	const struct rv_json_node *ctx = rv_json_get(request, "ctx");

	add_text(line, "--tool", rv_json_get(request, "tool"));
	add_text(line, "--run-id", rv_json_get(ctx, "runId"));
	add_text(line, "--key", rv_json_get(ctx, "idempotencyKey"));
	add_text(line, "--span-id", rv_json_get(ctx, "spanId"));
	add_text(line, "--agent-type", rv_json_get(ctx, "agentType"));
	rv_argv_add(line, "--args-file");
	rv_argv_add(line, "-");
	if (rv_json_get(config, "manifest") != NULL)
		return;
	rv_argv_add(line, "--");
	rv_argv_add_span(line, rv_json_string(rv_json_get(config, "command")));
	add_words(line, rv_json_get(config, "args"));
}

/* rv-exec has two forms, and both are held to the promises: one call where a command line can say it,
 * which is a call with its key, a command and words of ordinary size; else a stream of one line. */
static bool is_one_call(const struct rv_json_node *config, const struct rv_json_node *request, const struct rv_argv *line)
{
	const struct rv_json_node *key = rv_json_get(rv_json_get(request, "ctx"), "idempotencyKey");
	size_t bytes = 0;

	for (size_t i = 0; i < line->count; i++)
		bytes += strlen(line->words[i]) + 1;
	return !line->failed && bytes < WORDS_MAX && rv_json_is_string(key) &&
	       rv_json_get(rv_json_get(request, "ctx"), "agentSeq") == NULL && rv_json_get(request, "id") == NULL &&
	       rv_json_get(request, "spec") == NULL && rv_json_get(request, "executor") == NULL &&
	       says_what_runs(config) && rv_json_is_string(rv_json_get(request, "tool")) &&
	       rv_json_get(request, "args") != NULL;
}

static int one_call(const struct rv_json_doc *doc, struct rv_argv *line, const struct rv_json_node *request,
		    struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;

	rv_json_add_source(&text, doc, rv_json_get(request, "args"));
	if (rv_buffer_check(&text, err) != 0 || feed(text.data, text.len, err) != 0)
		return -1;
	return rv_argv_become(line, err);
}

static int stream(const struct rv_json_doc *doc, const struct rv_json_node *config, const struct rv_json_node *request,
		  struct rv_error *err)
{
	struct rv_argv line = RV_ARGV_INIT;
	rv_auto_buffer struct rv_buffer text = RV_BUFFER_INIT;
	int result = -1;

	rv_argv_add(&line, "rv-exec");
	rv_argv_add(&line, "--stream");
	add_config(&line, config);
	add_request(&text, doc, config, request);
	if (rv_buffer_check(&text, err) == 0 && feed(text.data, text.len, err) == 0)
		result = rv_argv_become(&line, err);
	rv_argv_release(&line);
	return result;
}

static int dispatch(const struct rv_json_doc *doc, const struct rv_json_node *root, struct rv_error *err)
{
	const struct rv_json_node *config = rv_json_get(root, "config");
	const struct rv_json_node *request = rv_json_get(root, "request");
	struct rv_argv line = RV_ARGV_INIT;
	int result;

	if (config == NULL || request == NULL || rv_json_type(config) != RV_JSON_OBJECT ||
	    rv_json_type(request) != RV_JSON_OBJECT)
		return rv_error_set(err, RV_E_REQUEST, 0, "no {\"config\":{...},\"request\":{...}}");
	rv_argv_add(&line, "rv-exec");
	rv_argv_add(&line, "--json");
	add_config(&line, config);
	if (says_what_runs(config))
		add_call(&line, config, request);
	result = is_one_call(config, request, &line) ? one_call(doc, &line, request, err)
						     : stream(doc, config, request, err);
	rv_argv_release(&line);
	return result;
}

/* ---- a stream of calls ---- */

/* The first line of standard input and no byte behind it: the rest is for the program that this becomes. */
static int read_line(struct rv_buffer *line, struct rv_error *err)
{
	char byte = '\0';
	ssize_t n;

	while (byte != '\n') {
		n = read(STDIN_FILENO, &byte, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rv_error_set(err, RV_E_IO, errno, "standard input");
		if (n == 0)
			break;
		rv_buffer_add_byte(line, byte);
	}
	return rv_buffer_check(line, err);
}

static int answer_stream(struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer text = { .max = REQUEST_MAX };
	struct rv_json_doc *doc = rv_json_doc_new(err);
	const struct rv_json_node *root = NULL;
	const struct rv_json_node *config;
	struct rv_argv line = RV_ARGV_INIT;
	int result = -1;

	if (doc != NULL && read_line(&text, err) == 0)
		root = rv_json_parse(doc, text.data != NULL ? text.data : "", text.len, RV_JSON_DEFAULT, err);
	config = rv_json_get(root, "config");
	if (config != NULL && rv_json_type(config) == RV_JSON_OBJECT) {
		rv_argv_add(&line, "rv-exec");
		rv_argv_add(&line, "--stream");
		rv_argv_add(&line, "--unordered");
		add_number(&line, "--jobs", rv_json_get(config, "jobs"), "");
		add_config(&line, config);
		result = rv_argv_become(&line, err);
	} else if (root != NULL) {
		(void)rv_error_set(err, RV_E_REQUEST, 0, "no {\"config\":{...}}");
	}
	rv_argv_release(&line);
	rv_json_doc_free(doc);
	return result;
}

static int answer_request(struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer input = { .max = REQUEST_MAX };
	struct rv_json_doc *doc = rv_json_doc_new(err);
	const struct rv_json_node *root = NULL;
	int result = -1;

	if (doc != NULL && rv_io_read_all(STDIN_FILENO, &input, err) == 0 && rv_buffer_check(&input, err) == 0)
		root = rv_json_parse(doc, input.data != NULL ? input.data : "", input.len, RV_JSON_DEFAULT, err);
	if (root != NULL)
		result = dispatch(doc, root, err);
	rv_json_doc_free(doc);
	return result;
}

/* ---- the other questions ---- */

static int pass_on(const char *const *program, char *const *words, struct rv_error *err)
{
	struct rv_argv line = RV_ARGV_INIT;
	int result;

	for (size_t i = 0; program[i] != NULL; i++)
		rv_argv_add(&line, program[i]);
	for (size_t i = 0; words[i] != NULL; i++)
		rv_argv_add(&line, words[i]);
	result = rv_argv_become(&line, err);
	rv_argv_release(&line);
	return result;
}

static void add_capabilities(struct rv_buffer *out)
{
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, "name", "rv-exec " RV_VERSION);
	rv_json_add_name(out, "capabilities");
	rv_buffer_add_byte(out, '[');
	for (size_t i = 0; i < RV_CAPABILITIES; i++) {
		if (i > 0)
			rv_buffer_add_byte(out, ',');
		rv_json_add_string(out, rv_capability_name(i), strlen(rv_capability_name(i)));
	}
	rv_buffer_add_string(out, "]}\n");
}

int rv_builtin_answer(char *const *words, struct rv_buffer *out, struct rv_error *err)
{
	static const char *const keys[] = { "rv-key", "--stream", NULL };
	static const char *const canonical[] = { "rv-key", "--canonical", NULL };
	static const char *const scan[] = { "rv-ledger-scan", "--format", "report", NULL };
	static const char *const repair[] = { "rv-ledger-repair", NULL };
	static const char *const confine[] = { "rv-confine", NULL };

	if (words[0] == NULL)
		return answer_request(err);
	if (strcmp(words[0], "--capabilities") == 0)
		add_capabilities(out);
	else if (strcmp(words[0], "--stream") == 0)
		return answer_stream(err);
	else if (strcmp(words[0], "--keys") == 0)
		return pass_on(keys, words + 1, err);
	else if (strcmp(words[0], "--canonical") == 0)
		return pass_on(canonical, words + 1, err);
	else if (strcmp(words[0], "--scan") == 0)
		return pass_on(scan, words + 1, err);
	else if (strcmp(words[0], "--repair") == 0)
		return pass_on(repair, words + 1, err);
	else if (strcmp(words[0], "--confine") == 0)
		return pass_on(confine, words + 1, err);
	else
		return rv_error_set(err, RV_E_USAGE, 0, "the adapter has no %s", words[0]);
	return rv_buffer_check(out, err);
}

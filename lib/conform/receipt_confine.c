/* What a receipt vouches for towards rv-confine --receipt: the runtime and the profile that the suite confine was held on. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/conform/argv.h"
#include "lib/conform/command.h"
#include "lib/conform/receipt.h"
#include "lib/json/json.h"
#include "lib/json/write.h"

#define RUNTIME "/bin/sh" /* of the suite's scenes (lib/conform/confined.c) */
#define PROFILE "linux/1"
#define ASK_MS 60000

/* The digest that `argv` with `words` answers, appended to `digest`.  RV_E_IO. */
static int ask(const char *const *argv, const char *const *words, struct rv_buffer *digest, struct rv_error *err)
{
	struct rv_command command = { .in = -1, .out = -1, .err = -1, .child = RV_CHILD_INIT };
	const char *all[RV_ADAPTER_WORDS + 8];
	const struct rv_command_plan plan = { .argv = all };
	struct rv_json_doc *doc = rv_json_doc_new(err);
	const struct rv_json_node *member = NULL;
	size_t n = 0;
	int result = -1;

	for (size_t i = 0; argv[i] != NULL && n < RV_ADAPTER_WORDS; i++)
		all[n++] = argv[i];
	for (size_t i = 0; words[i] != NULL; i++)
		all[n++] = words[i];
	all[n] = NULL;
	if (doc != NULL && rv_command_run(&command, &plan, rv_clock_mono_ms() + ASK_MS, err) == 0 && command.said.len > 0) {
		const struct rv_json_node *answer = rv_json_parse(doc, command.said.data, command.said.len, RV_JSON_DEFAULT, err);

		member = answer != NULL && rv_json_type(answer) == RV_JSON_OBJECT ? rv_json_get(answer, "digest") : NULL;
	}
	if (rv_json_is_string(member)) {
		rv_buffer_add(digest, rv_json_string(member).data, rv_json_string(member).len);
		result = 0;
	} else {
		err->code = RV_E_NONE;
		(void)rv_error_set(err, RV_E_IO, 0, "%s %s has no digest", words[0], words[1]);
	}
	rv_command_release(&command);
	rv_json_doc_free(doc);
	return result;
}

static void add_one(struct rv_buffer *out, const char *array, const char *name, const char *value, const struct rv_buffer *digest)
{
	rv_json_add_name(out, array);
	rv_buffer_add_string(out, "[{");
	rv_json_member_string(out, name, value);
	rv_json_member_span(out, "digest", (struct rv_span){ digest->data, digest->len });
	rv_buffer_add_string(out, "}]");
}

static const char *const about_runtime[] = { "--describe-runtime", RUNTIME, NULL };
static const char *const about_profile[] = { "--describe-profile", "--profile", PROFILE, NULL };

/* Behind the adapter's own words. */
static int ask_adapter(const char *const *adapter, const char *const *words, struct rv_buffer *digest, struct rv_error *err)
{
	const char *all[8] = { "--confine" };

	for (size_t i = 0; words[i] != NULL; i++)
		all[i + 1] = words[i];
	return ask(adapter, all, digest, err);
}

int rv_receipt_add_proven(struct rv_buffer *out, const struct rv_receipt *receipt, const struct rv_adapter *adapter,
			  struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer runtime = RV_BUFFER_INIT, profile = RV_BUFFER_INIT;

	if (receipt->confined == 0 || receipt->unconfined > 0) {
		rv_buffer_add_string(out, ",\"profiles\":[],\"runtimes\":[]");
		return 0;
	}
	if (ask_adapter(adapter->argv, about_runtime, &runtime, err) != 0 ||
	    ask_adapter(adapter->argv, about_profile, &profile, err) != 0)
		return -1;
	add_one(out, "profiles", "name", PROFILE, &profile);
	add_one(out, "runtimes", "path", RUNTIME, &runtime);
	return 0;
}

/* The first of an array has this digest; one line where not. */
static void compare(struct rv_buffer *out, const struct rv_json_node *array, const char *what, const struct rv_buffer *now)
{
	const struct rv_json_node *first = array != NULL && rv_json_type(array) == RV_JSON_ARRAY ? rv_json_first(array) : NULL;
	const struct rv_json_node *digest = first != NULL && rv_json_type(first) == RV_JSON_OBJECT ? rv_json_get(first, "digest") : NULL;

	if (first != NULL && (!rv_json_is_string(digest) ||
			      !rv_span_equal(rv_json_string(digest), (struct rv_span){ now->data, now->len })))
		rv_buffer_printf(out, "%s: differs\n", what);
}

int rv_receipt_check_proven(struct rv_buffer *out, const struct rv_json_node *root, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer program = RV_BUFFER_INIT, runtime = RV_BUFFER_INIT, profile = RV_BUFFER_INIT;
	const struct rv_json_node *runtimes = rv_json_get(root, "runtimes");
	const char *argv[2] = { NULL, NULL };

	if (runtimes == NULL || rv_json_type(runtimes) != RV_JSON_ARRAY || rv_json_first(runtimes) == NULL)
		return 0;
	/* Our own rv-confine: what a receipt names as its adapter is not run because a file says so. */
	if (rv_argv_find(&program, "rv-confine", err) != 0)
		return -1;
	argv[0] = rv_buffer_string(&program);
	if (ask(argv, about_runtime, &runtime, err) != 0 || ask(argv, about_profile, &profile, err) != 0) {
		rv_buffer_printf(out, "rv-confine: %s\n", err->message);
		rv_error_clear(err);
		return 0;
	}
	compare(out, runtimes, "runtime " RUNTIME, &runtime);
	compare(out, rv_json_get(root, "profiles"), "profile " PROFILE, &profile);
	return 0;
}

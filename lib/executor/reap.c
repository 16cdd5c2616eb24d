#include "lib/executor/reap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/executor/container.h"
#include "lib/executor/helpers.h"
#include "lib/executor/launcher.h"
#include "lib/json/json.h"
#include "lib/json/write.h"
#include "lib/ledger/names.h"
#include "lib/ledger/view.h"
#include "lib/process/workdir.h"

#define LOOK_MS 30000
#define PREFIX "rulvar-exec-"
#define ID_LEN 36

/* A container that the engine has, and what the ledger says of its attempt. */
struct found {
	char name[sizeof RV_CONTAINER_NAME + ID_LEN];
	const char *why; /* it is kept; NULL: it goes */
	bool known;
	bool needs_someone;
};

struct reap {
	const struct rv_reap_options *options;
	struct rv_view view;
	char *base;
	struct rv_environment envp;
	struct rv_container container; /* its engine */
	bool has_engine;
	struct found *found;
	size_t found_count;
	bool needs_someone;
};

static int say(struct reap *reap, const char *kind, struct rv_span what, const char *action, const char *why)
{
	rv_auto_buffer struct rv_buffer line = RV_BUFFER_INIT;

	rv_buffer_add_byte(&line, '{');
	rv_json_member_string(&line, "kind", kind);
	rv_json_member_span(&line, strcmp(kind, "workdir") == 0 ? "path" : "name", what);
	rv_json_member_string(&line, "action", action);
	if (why != NULL)
		rv_json_member_string(&line, "why", why);
	rv_buffer_add_string(&line, "}\n");
	return reap->options->print(line.data, line.len);
}

static struct rv_span member(const struct rv_row *row, const char *name)
{
	const struct rv_json_node *node = rv_json_get(row->node, name);

	return rv_json_is_string(node) ? rv_json_string(node) : (struct rv_span){ "", 0 };
}

/* ---- who may still use it ---- */

/* Why what this attempt has stays; NULL: it is over.  Past its `until` an attempt counts as an orphan, and its
 * writer may be there all the same: the lock alone decides. */
static const char *why_kept(struct reap *reap, const struct rv_orphan *orphan, const struct rv_row *row, bool *needs_someone)
{
	struct rv_row_writer writer = rv_row_writer_of(row);
	const struct rv_place *place = &reap->view.scan.intents.items[orphan->intent];
	struct rv_error ignored = RV_ERROR_INIT;

	*needs_someone = orphan->state != RV_STATE_RUNNING;
	if (orphan->state == RV_STATE_RUNNING)
		return "its attempt is running";
	if (orphan->state == RV_STATE_UNKNOWN)
		return "whether its attempt runs cannot be seen from here";
	if (!writer.present)
		return "its row names no lock";
	if (rv_io_lock_probe(reap->view.sources[place->file].fd, writer.lock, 1, &ignored) != 0)
		return "its attempt is past its time, and its lock is held";
	*needs_someone = false;
	return NULL;
}

/* ---- workdirs ---- */

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool rv_reap_is_workdir_name(struct rv_span name)
{
	size_t head = sizeof PREFIX - 1;

	if (name.len < head + 7 || strncmp(name.data, PREFIX, head) != 0 || name.data[name.len - 7] != '-')
		return false;
	for (size_t i = head; i < name.len; i++) {
		char c = name.data[i];

		if (!is_alnum(c) && (i >= name.len - 6 || (c != '-' && c != '_' && c != '.')))
			return false;
	}
	return true;
}

/* Why this directory is not one to be removed; NULL: it is.  *gone: there is nothing. */
static const char *why_not_ours(const struct reap *reap, const char *path, bool *gone)
{
	const char *slash = strrchr(path, '/');
	struct stat info;

	*gone = lstat(path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
	if (*gone)
		return NULL;
	if (slash == NULL || strlen(reap->base) != (size_t)(slash - path) || strncmp(path, reap->base, (size_t)(slash - path)) != 0)
		return "it is not in the workdir base (--workdir-base)";
	if (!rv_reap_is_workdir_name(rv_span_of(slash + 1)))
		return "its name is none that a workdir has";
	if (!S_ISDIR(info.st_mode))
		return "it is no directory";
	return info.st_uid == geteuid() ? NULL : "it is somebody else's";
}

static int reap_workdir(struct reap *reap, const char *kept, bool needs_someone, struct rv_span where)
{
	rv_auto_free char *path = strndup(where.data, where.len);
	struct rv_error err = RV_ERROR_INIT;
	bool gone = false;
	const char *why;

	if (path == NULL || memchr(where.data, '\0', where.len) != NULL)
		return 0;
	why = why_not_ours(reap, path, &gone);
	if (gone)
		return 0;
	if (why == NULL && kept == NULL && rv_workdir_remove(path, &err) == 0)
		return say(reap, "workdir", where, "removed", NULL);
	reap->needs_someone = reap->needs_someone || needs_someone || why != NULL || err.code != RV_E_NONE;
	return say(reap, "workdir", where, "kept", kept != NULL ? kept : why != NULL ? why : err.message);
}

/* ---- containers ---- */

static int add_found(struct reap *reap, const char *name, struct rv_error *err)
{
	struct found *grown;

	if (strlen(name) != sizeof RV_CONTAINER_NAME - 1 + ID_LEN)
		return 0;
	for (size_t i = 0; i < reap->found_count; i++) {
		if (strcmp(reap->found[i].name, name) == 0)
			return 0;
	}
	grown = realloc(reap->found, (reap->found_count + 1) * sizeof *grown);
	if (grown == NULL)
		return rv_error_nomem(err);
	reap->found = grown;
	grown += reap->found_count++;
	*grown = (struct found){ .why = "its attempt is not in this ledger" };
	memcpy(grown->name, name, strlen(name) + 1);
	return 0;
}

static int add_lines(struct reap *reap, struct rv_buffer *lines, struct rv_error *err)
{
	for (char *save = NULL, *name = lines->len > 0 ? strtok_r(lines->data, "\n", &save) : NULL; name != NULL;
	     name = strtok_r(NULL, "\n", &save)) {
		if (add_found(reap, name, err) != 0)
			return -1;
	}
	return 0;
}

/* Those that the engine shows, those that processes are there for, and those that a client is about to make. */
static int find_containers(struct reap *reap, struct rv_error *err)
{
	const char *const args[] = { "ps", "-a", "--filter", "label=" RV_CONTAINER_LABEL, "--format", "{{.Names}}", NULL };
	rv_auto_buffer struct rv_buffer out = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer complaint = RV_BUFFER_INIT;
	rv_auto_buffer struct rv_buffer held = RV_BUFFER_INIT;
	int status;

	if (rv_launcher_environment(&reap->envp, reap->options->launcher_env, err) != 0 ||
	    rv_container_find_engine(&reap->container, reap->options->engine, reap->envp.entries, err) != 0)
		return -1;
	if (rv_helpers_list(&held) != 0 || rv_buffer_string(&held) == NULL)
		return rv_error_set(err, RV_E_IO, 0, "/proc: cannot be read");
	status = rv_engine_ask(&reap->container.engine, args, LOOK_MS, &out, &complaint, err);
	if (status < 0)
		return -1;
	if (status > 0)
		return rv_error_set(err, RV_E_IO, 0, "%s", complaint.data);
	return add_lines(reap, &held, err) == 0 ? add_lines(reap, &out, err) : -1;
}

static struct found *container_of(struct reap *reap, struct rv_span attempt)
{
	for (size_t i = 0; i < reap->found_count && attempt.data != NULL && attempt.len == ID_LEN; i++) {
		if (strncmp(reap->found[i].name + sizeof RV_CONTAINER_NAME - 1, attempt.data, ID_LEN) == 0)
			return &reap->found[i];
	}
	return NULL;
}

static int reap_container(struct reap *reap, const struct found *found)
{
	struct rv_error err = RV_ERROR_INIT;

	if (found->why == NULL && rv_container_remove(&reap->container.engine, found->name, true, &err) == 0)
		return say(reap, "container", rv_span_of(found->name), "removed", NULL);
	reap->needs_someone = reap->needs_someone || found->needs_someone || err.code != RV_E_NONE;
	return say(reap, "container", rv_span_of(found->name), "kept", found->why != NULL ? found->why : err.message);
}

/* ---- the whole ---- */

/* Does the ledger know of containers at all?  Else no engine has to be there. */
static int look_at_all(struct reap *reap, bool asked, bool *has_containers, struct rv_error *err)
{
	for (size_t i = 0; i < reap->view.scan.intents.count; i++) {
		struct found *found;
		struct rv_row row;

		if (rv_view_row(&reap->view, &reap->view.scan.intents.items[i], &row, err) != 0)
			return -1;
		if (rv_span_equal(member(&row, RV_NAME_CONTAINMENT), RV_SPAN("container")))
			*has_containers = true;
		found = asked ? container_of(reap, row.attempt_id) : NULL;
		if (found != NULL) { /* its outcome stands, unless it is among the orphans */
			found->known = true;
			found->why = NULL;
		}
	}
	return 0;
}

static int reap_orphans(struct reap *reap, struct rv_error *err)
{
	for (size_t i = 0; i < reap->view.orphan_count; i++) {
		const struct rv_orphan *orphan = &reap->view.orphans[i];
		bool needs_someone;
		struct found *found;
		const char *why;
		struct rv_row row;

		if (rv_view_row(&reap->view, &reap->view.scan.intents.items[orphan->intent], &row, err) != 0)
			return -1;
		why = why_kept(reap, orphan, &row, &needs_someone);
		found = container_of(reap, row.attempt_id);
		if (found != NULL) {
			found->why = why;
			found->needs_someone = needs_someone;
			if (why == NULL && reap_container(reap, found) != 0) /* before what it has mounted */
				return -1;
			found->known = why != NULL;
			if (why == NULL)
				found->name[0] = '\0';
		}
		if (reap_workdir(reap, why, needs_someone, member(&row, RV_NAME_WORKDIR)) != 0)
			return -1;
	}
	for (size_t i = 0; i < reap->found_count; i++) {
		if (reap->found[i].name[0] != '\0' && reap_container(reap, &reap->found[i]) != 0)
			return -1;
	}
	return 0;
}

static int run(struct reap *reap, struct rv_error *err)
{
	bool has_containers = false;

	if (reap->view.scan.damage_count > 0)
		return rv_error_set(err, RV_E_CORRUPT, 0, "%s: damaged: nothing is removed by it (see rv-ledger-scan)",
				    reap->options->ledger);
	if (look_at_all(reap, false, &has_containers, err) != 0)
		return -1;
	if (has_containers && (find_containers(reap, err) != 0 || look_at_all(reap, true, &has_containers, err) != 0))
		return rv_error_wrap(err, "the ledger has containers, and the engine cannot be asked");
	return reap_orphans(reap, err);
}

int rv_reap_run(const struct rv_reap_options *options, bool *needs_someone, struct rv_error *err)
{
	const struct rv_view_options how = { .keep_all = true, .threads = 1 };
	const char *base = options->workdir_base != NULL ? options->workdir_base : getenv("TMPDIR");
	struct reap reap = { .options = options };
	int result = -1;

	reap.base = realpath(base != NULL && base[0] != '\0' ? base : "/tmp", NULL);
	if (reap.base == NULL)
		return rv_error_set(err, RV_E_IO, errno, "--workdir-base %s", base != NULL ? base : "/tmp");
	if (rv_view_open(&reap.view, &options->ledger, 1, &how, err) == 0) {
		result = run(&reap, err);
		rv_view_close(&reap.view);
	}
	rv_container_release(&reap.container);
	rv_environment_release(&reap.envp);
	free(reap.found);
	free(reap.base);
	*needs_someone = reap.needs_someone;
	return result;
}

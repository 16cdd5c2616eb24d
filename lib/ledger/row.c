#include "lib/ledger/row.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/digest/digest.h"
#include "lib/json/write.h"
#include "lib/ledger/names.h"

static void add_attempt(struct rv_buffer *out, const char *phase, const struct rv_attempt *attempt)
{
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, RV_NAME_PHASE, phase);
	rv_json_member_span(out, RV_NAME_KEY, attempt->idempotency_key);
	rv_json_member_span(out, RV_NAME_RUN_ID, attempt->run_id);
	rv_json_member_span(out, RV_NAME_SPAN_ID, attempt->span_id);
	rv_json_member_span(out, RV_NAME_TOOL, attempt->tool);
	rv_json_member_span(out, RV_NAME_ARGS_HASH, attempt->args_hash);
	rv_json_member_span(out, RV_NAME_EXECUTOR, attempt->executor);
	rv_json_member_span(out, RV_NAME_WORKDIR, attempt->workdir);
	rv_json_member_int(out, RV_NAME_STARTED_AT, attempt->started_at);
	rv_json_member_span(out, RV_NAME_ATTEMPT_ID, attempt->attempt_id);
}

static void add_writer(struct rv_buffer *out, const struct rv_writer *writer)
{
	rv_json_add_name(out, RV_NAME_WRITER);
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, RV_NAME_HOST, writer->host);
	rv_json_member_string(out, RV_NAME_BOOT_ID, writer->boot_id);
	rv_json_member_int(out, RV_NAME_PID, writer->pid);
	rv_json_member_int(out, RV_NAME_START_TIME, writer->start_time);
	if (writer->lock >= 0)
		rv_json_member_int(out, RV_NAME_LOCK, writer->lock);
	rv_json_member_int(out, RV_NAME_UNTIL, writer->until);
	rv_buffer_add_byte(out, '}');
}

void rv_row_add_intent(struct rv_buffer *out, const struct rv_attempt *attempt, const char *sandbox,
		       const char *containment, const struct rv_writer *writer)
{
	add_attempt(out, "intent", attempt);
	rv_json_member_string(out, RV_NAME_SANDBOX, sandbox);
	rv_json_member_string(out, RV_NAME_CONTAINMENT, containment);
	add_writer(out, writer);
	rv_buffer_add_string(out, "}\n");
}

void rv_row_add_outcome(struct rv_buffer *out, const struct rv_attempt *attempt, const struct rv_outcome *outcome)
{
	add_attempt(out, "outcome", attempt);
	rv_json_member_int(out, RV_NAME_DURATION_MS, outcome->duration_ms);
	rv_json_member_string(out, RV_NAME_OUTCOME, outcome->outcome);
	if (outcome->exit_code >= 0)
		rv_json_member_int(out, RV_NAME_EXIT_CODE, outcome->exit_code);
	else
		rv_json_member_null(out, RV_NAME_EXIT_CODE);
	rv_json_member_string_or_null(out, RV_NAME_SIGNAL, outcome->signal);
	rv_buffer_add_string(out, "}\n");
}

static int add_sha256(struct rv_buffer *out, struct rv_span bytes, struct rv_error *err)
{
	struct rv_sha256 *sha = rv_sha256_new(err);
	char hex[RV_SHA256_HEX];
	int result;

	if (sha == NULL)
		return -1;
	result = rv_sha256_hex(sha, bytes.data, bytes.len, hex, err);
	rv_sha256_free(sha);
	if (result == 0)
		rv_json_member_string(out, RV_NAME_SHA256, hex);
	return result;
}

int rv_row_add_torn_head(struct rv_buffer *out, struct rv_span torn, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer lossy = RV_BUFFER_INIT;

	rv_text_add_lossy(&lossy, torn.data, torn.len);
	if (rv_buffer_check(&lossy, err) != 0)
		return -1;
	rv_buffer_add_byte(out, '{');
	rv_json_member_string(out, RV_NAME_PHASE, "torn");
	rv_json_member_span(out, RV_NAME_BYTES, (struct rv_span){ lossy.data, lossy.len });
	rv_json_add_name(out, RV_NAME_BYTES_BASE64);
	rv_buffer_add_byte(out, '"');
	rv_base64_add(out, torn.data, torn.len);
	rv_buffer_add_byte(out, '"');
	if (add_sha256(out, torn, err) != 0)
		return -1;
	rv_json_add_name(out, RV_NAME_RECOVERED_AT);
	return rv_buffer_check(out, err);
}

int rv_row_add_torn(struct rv_buffer *out, struct rv_span torn, int64_t recovered_at, struct rv_error *err)
{
	if (rv_row_add_torn_head(out, torn, err) != 0)
		return -1;
	rv_buffer_printf(out, "%lld}\n", (long long)recovered_at);
	return rv_buffer_check(out, err);
}

int rv_boot_id(char boot_id[37], struct rv_error *err)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	rv_auto_fd int fd = rv_io_open(path, O_RDONLY, 0, err);

	if (fd < 0)
		return -1;
	if (rv_io_pread_all(fd, boot_id, 36, 0, err) != 0)
		return rv_error_wrap(err, "%s", path);
	boot_id[36] = '\0';
	return 0;
}

/* The start of this process in ticks since boot: field 22 of stat, counted from behind the
 * name, which may hold anything. */
static int64_t start_ticks(const char *stat)
{
	const char *at = strrchr(stat, ')');

	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at == NULL ? -1 : strtoll(at + 1, NULL, 10);
}

static int start_time(int64_t *wall_ms, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer stat = RV_BUFFER_INIT;
	int64_t hertz = sysconf(_SC_CLK_TCK);
	struct timespec boot;
	const char *text;
	int64_t ticks;

	if (rv_io_read_file("/proc/self/stat", &stat, err) != 0)
		return -1;
	text = rv_buffer_string(&stat);
	if (text == NULL)
		return rv_error_nomem(err);
	ticks = start_ticks(text);
	if (ticks < 0 || hertz <= 0 || clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
		return rv_error_set(err, RV_E_IO, 0, "/proc/self/stat: no start time");
	*wall_ms = rv_clock_wall_ms() - ((int64_t)boot.tv_sec * 1000 + boot.tv_nsec / 1000000 - ticks * 1000 / hertz);
	return 0;
}

int rv_writer_init(struct rv_writer *writer, struct rv_error *err)
{
	struct utsname name;

	memset(writer, 0, sizeof *writer);
	writer->lock = -1;
	writer->pid = getpid();
	if (uname(&name) != 0)
		return rv_error_set(err, RV_E_IO, errno, "uname");
	(void)snprintf(writer->host, sizeof writer->host, "%.64s", name.nodename);
	if (rv_boot_id(writer->boot_id, err) != 0)
		return -1;
	return start_time(&writer->start_time, err);
}

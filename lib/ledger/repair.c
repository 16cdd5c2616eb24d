#include "lib/ledger/repair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/ledger/damage.h"
#include "lib/ledger/finish.h"
#include "lib/ledger/fs.h"
#include "lib/ledger/gather.h"
#include "lib/ledger/leftover.h"
#include "lib/ledger/lock.h"
#include "lib/ledger/patch.h"
#include "lib/ledger/torn.h"

#define LEASE_MAX_MS 2000

/* One run: the file, and what is known of it. */
struct job {
	struct rv_repair *repair;
	const char *path;
	char *real;
	int fd;
	bool check;
	int64_t deadline_ms;
	struct rv_copies copies;
};

const char *rv_repair_action_name(enum rv_repair_action action)
{
	static const char *const names[] = { "none", "terminated", "quarantined" };

	return names[action];
}

static int open_file(struct job *job, struct rv_error *err)
{
	int flags = (job->check ? O_RDONLY : O_RDWR | O_APPEND) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	struct stat st;

	/* Without blocking: another repair's lease may be on it. */
	while ((job->fd = open(job->path, flags)) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK || rv_clock_left_ms(job->deadline_ms) == 0)
			return rv_error_set(err, RV_E_IO, errno, "open");
		rv_clock_pause_ms(5);
	}
	if (fstat(job->fd, &st) != 0)
		return rv_error_set(err, RV_E_IO, errno, "fstat");
	if (!S_ISREG(st.st_mode))
		return rv_error_set(err, RV_E_IO, 0, "not a regular file");
	if (!job->check && rv_fs_check(job->fd, err) != 0) {
		err->code = RV_E_IO;
		return -1;
	}
	job->real = realpath(job->path, NULL);
	return job->real != NULL ? 0 : rv_error_set(err, RV_E_IO, errno, "realpath");
}

/* Fold all whole lines from the start. */
static int scan_afresh(struct job *job, struct rv_error *err)
{
	struct rv_scan *scan = &job->repair->scan;
	uint32_t file;

	rv_scan_release(scan);
	if (rv_scan_init(scan, true, err) != 0 || rv_scan_add_file(scan, &file, err) != 0)
		return -1;
	return rv_scan_pull(scan, file, job->fd, err);
}

/* What was read before the lock was had may have been repaired by another since: its tail is read
 * again in any case, and all of it where it seemed damaged. */
static int scan_again(struct job *job, struct rv_error *err)
{
	if (job->repair->scan.damage_count > 0)
		return scan_afresh(job, err);
	rv_scan_rewind(&job->repair->scan, 0);
	return rv_scan_pull(&job->repair->scan, 0, job->fd, err);
}

static int explain(struct job *job, const struct rv_leftover *leftover, struct rv_error *err)
{
	struct rv_scan *scan = &job->repair->scan;
	const struct rv_copy *copy = &job->copies.items[leftover->copy];
	struct rv_damage *damage = &scan->damage[leftover->damage];
	struct rv_repair_result *result = &job->repair->result;
	enum rv_tail kind;

	if (rv_lines_reader(&scan->lines, err) == NULL ||
	    rv_tail_judge(scan->lines.reader, (struct rv_span){ copy->bytes.data, copy->bytes.len }, &kind, err) != 0)
		return -1;
	*result = (struct rv_repair_result){
		.action = kind == RV_TAIL_TORN ? RV_REPAIR_QUARANTINED : RV_REPAIR_TERMINATED,
		.offset = damage->place.offset,
		.bytes = copy->bytes.len,
	};
	memcpy(result->sha256, copy->sha256, sizeof result->sha256);
	job->repair->line = damage->place.line;
	damage->reason = NULL;
	return 0;
}

/* Take the damage that is an interrupted repair's out of the list; what stays is interior damage. */
static int explain_damage(struct job *job, struct rv_error *err)
{
	struct rv_scan *scan = &job->repair->scan;
	struct rv_leftovers leftovers;
	size_t kept = 0;
	int result;

	if (scan->damage_count == 0)
		return 0;
	result = rv_leftovers_match(&leftovers, job->fd, scan, &job->copies, err);
	for (size_t i = 0; result == 0 && i < leftovers.count; i++)
		result = explain(job, &leftovers.items[i], err);
	rv_leftovers_release(&leftovers);
	if (result != 0)
		return -1;
	for (size_t i = 0; i < scan->damage_count; i++) {
		if (scan->damage[i].reason != NULL)
			scan->damage[kept++] = scan->damage[i];
	}
	scan->damage_count = kept;
	return 0;
}

static int refuse_damage(const struct job *job, struct rv_error *err)
{
	size_t count = job->repair->scan.damage_count;

	if (count == 0)
		return 0;
	return rv_error_set(err, RV_E_CORRUPT, 0, "%zu damaged line%s before the end: nothing was changed", count,
			    count == 1 ? "" : "s");
}

static int foresee_tail(struct job *job, struct rv_error *err)
{
	rv_auto_buffer struct rv_buffer tail = RV_BUFFER_INIT;
	struct rv_repair_result *result = &job->repair->result;
	struct rv_place at = rv_scan_position(&job->repair->scan, 0);
	struct rv_lines *lines = &job->repair->scan.lines;
	enum rv_tail kind;

	if (at.len == 0)
		return 0;
	if (rv_patch_read(job->fd, at.offset, at.offset + at.len, &tail, err) != 0 ||
	    rv_lines_reader(lines, err) == NULL || rv_tail_judge(lines->reader, (struct rv_span){ tail.data, tail.len }, &kind, err) != 0)
		return -1;
	*result = (struct rv_repair_result){
		.action = kind == RV_TAIL_TORN ? RV_REPAIR_QUARANTINED : RV_REPAIR_TERMINATED,
		.misshapen = kind == RV_TAIL_MISSHAPEN,
		.offset = at.offset,
		.bytes = at.len,
	};
	job->repair->line = at.line;
	if (rv_lines_sha256(lines, err) == NULL)
		return -1;
	return rv_sha256_hex(lines->sha, tail.data, tail.len, result->sha256, err);
}

/* Without a lock, which needs write permission: damage is believed once nobody writes. */
static int check(struct job *job, struct rv_error *err)
{
	const struct rv_source source = { .path = job->path, .fd = job->fd };

	for (;;) {
		bool certain;
		size_t failed;

		if (scan_afresh(job, err) != 0)
			return -1;
		rv_copies_release(&job->copies);
		if (rv_copies_list(&job->copies, job->real, false, err) != 0 || explain_damage(job, err) != 0 ||
		    rv_damage_is_certain(&job->repair->scan, &source, 1, &certain, &failed, err) != 0)
			return -1;
		if (certain || rv_clock_left_ms(job->deadline_ms) == 0)
			break;
		rv_clock_pause_ms(RV_REREAD_MS);
	}
	return refuse_damage(job, err) != 0 ? -1 : foresee_tail(job, err);
}

static int mend(struct job *job, int64_t wait_ms, struct rv_error *err)
{
	struct rv_mend how = { .fd = job->fd, .path = job->path, .real = job->real, .deadline_ms = job->deadline_ms,
			       .lease_ms = wait_ms / 2 < LEASE_MAX_MS ? wait_ms / 2 : LEASE_MAX_MS };
	struct rv_repair_result tail = { .action = RV_REPAIR_NONE };
	struct rv_repair_result left = { .action = RV_REPAIR_NONE };
	uint64_t line = rv_scan_position(&job->repair->scan, 0).line;

	if (rv_mend_tail(&how, &tail, err) != 0 || rv_finish_leftovers(&how, &left, err) != 0)
		return -1;
	if (tail.action != RV_REPAIR_NONE) {
		job->repair->result = tail;
		job->repair->line = line;
	} else {
		job->repair->result = left; /* its line is known from explain_damage() */
	}
	job->repair->result.stray_copies = left.stray_copies;
	return 0;
}

static int mend_locked(struct job *job, int64_t wait_ms, struct rv_error *err)
{
	if (scan_again(job, err) != 0 || rv_copies_list(&job->copies, job->real, false, err) != 0 ||
	    explain_damage(job, err) != 0 || refuse_damage(job, err) != 0)
		return -1;
	return mend(job, wait_ms, err);
}

static int run(struct job *job, int64_t wait_ms, struct rv_error *err)
{
	int result;

	if (open_file(job, err) != 0)
		return -1;
	if (job->check)
		return check(job, err);
	/* A long ledger is read before the lock is taken, so that its writers are not held up. */
	if (scan_afresh(job, err) != 0 || rv_append_lock(job->fd, job->deadline_ms, err) != 0)
		return -1;
	result = mend_locked(job, wait_ms, err);
	rv_append_unlock(job->fd);
	return result;
}

int rv_repair_run(struct rv_repair *repair, const char *path, const struct rv_repair_options *options,
		  struct rv_error *err)
{
	struct job job = { .repair = repair, .path = path, .fd = -1, .check = options->check,
			   .deadline_ms = rv_clock_mono_ms() + options->wait_ms };
	int result;

	memset(repair, 0, sizeof *repair);
	result = run(&job, options->wait_ms, err);
	if (result != 0)
		(void)rv_error_wrap(err, "%s", path);
	rv_copies_release(&job.copies);
	free(job.real);
	if (job.fd >= 0)
		(void)close(job.fd);
	return result;
}

void rv_repair_release(struct rv_repair *repair)
{
	rv_scan_release(&repair->scan);
}

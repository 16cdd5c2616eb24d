#include "lib/process/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/process/plan.h"

#define CHUNK ((size_t)64 * 1024)
#define LARGE_CHUNK ((size_t)1024 * 1024) /* of a tool that writes much: all that its pipe holds then */
#define BACKSTOP_MS 900 /* beyond timeout and grace: the worker needs 700 of it at worst */
#define SIDE ((size_t)4096)
#define PIPE_ROOM ((size_t)64 * 1024) /* of a new pipe (pipe(7)) */
#define LEFTOVER_MAX ((size_t)1 << 20) /* what a full pipe can hold behind a tool that is gone */

const char *rv_signal_name(int number, char text[16])
{
	const char *name = sigabbrev_np(number);

	if (name != NULL)
		(void)snprintf(text, 16, "SIG%.11s", name);
	else if (number >= SIGRTMIN && number <= SIGRTMAX)
		(void)snprintf(text, 16, "SIGRTMIN+%d", number - SIGRTMIN);
	else
		(void)snprintf(text, 16, "SIG%d", number);
	return text;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void close_watch(struct rv_run *run, struct rv_watch *watch)
{
	int fd = watch->fd;

	if (fd < 0)
		return;
	rv_loop_remove(run->loop, watch);
	(void)close(fd);
}

/* ---- the three streams ---- */

static void pass_written(struct rv_run *run, size_t len)
{
	while (run->part < RV_INPUT_PARTS && len >= run->input[run->part].iov_len) {
		len -= run->input[run->part].iov_len;
		run->part++;
	}
	if (len > 0) {
		run->input[run->part].iov_base = (char *)run->input[run->part].iov_base + len;
		run->input[run->part].iov_len -= len;
	}
}

/* As much as goes.  0 where nothing is left, else -1 with errno. */
static int write_parts(struct rv_run *run, int fd)
{
	while (run->part < RV_INPUT_PARTS) {
		ssize_t n = writev(fd, run->input + run->part, RV_INPUT_PARTS - run->part);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		pass_written(run, (size_t)n);
	}
	return 0;
}

/* SIGPIPE is ignored by the owner of the loop: a tool that does not read is no failure. */
static void write_input(struct rv_watch *watch, uint32_t events)
{
	struct rv_run *run = watch->owner;
	int left = write_parts(run, watch->fd);

	(void)events;
	if (left != 0 && errno != EAGAIN && errno != EPIPE)
		run->result.io_error = errno;
	if (left == 0 || errno != EAGAIN)
		close_watch(run, watch);
}

static void end_for_cap(struct rv_run *run)
{
	struct rv_wire_message message = { .op = RV_WIRE_CAP };
	struct rv_error ignored = RV_ERROR_INIT;

	if (run->result.reason != RV_RUN_NATURAL)
		return;
	run->result.reason = RV_RUN_OUTPUT_CAP;
	if (run->slot->socket >= 0)
		(void)rv_wire_send(run->slot->socket, &message, NULL, 0, &ignored); /* a gone worker is seen below */
}

/* Where the next chunk of stdout goes; NULL: to the side.  What most tools say, if anything, needs no memory of a
 * chunk's size. */
static char *output_room(struct rv_run *run, size_t *want)
{
	const struct rv_run_result *result = &run->result;
	uint64_t room = run->max_output - result->out.len;
	size_t chunk = result->stdout_bytes > CHUNK ? LARGE_CHUNK : CHUNK;

	*want = 0;
	if (result->stdout_bytes == 0 || result->stdout_bytes > run->max_output)
		return NULL;
	*want = room + 1 < chunk ? (size_t)room + 1 : chunk;
	return rv_buffer_reserve(&run->result.out, *want);
}

/* One chunk of stdout.  Returns what read(2) did. */
static ssize_t take_output(struct rv_run *run)
{
	struct rv_buffer *out = &run->result.out;
	uint64_t before = run->result.stdout_bytes;
	uint64_t room = run->max_output - out->len;
	size_t want;
	char side[SIDE];
	char *at = output_room(run, &want);
	ssize_t n = read(run->out.fd, at != NULL ? at : side, at != NULL ? want : SIDE);
	size_t fits;

	if (n <= 0)
		return n;
	run->result.stdout_bytes += (uint64_t)n;
	if (before <= CHUNK && run->result.stdout_bytes > CHUNK)
		rv_io_enlarge_pipe(run->out.fd); /* it writes much: fewer turns for both */
	fits = (uint64_t)n < room ? (size_t)n : (size_t)room;
	if (at != NULL)
		rv_buffer_commit(out, fits);
	else if (before == 0)
		rv_buffer_add(out, side, fits);
	if ((size_t)n > fits || out->failed)
		end_for_cap(run); /* no memory for what is allowed is a cap, too: the result is not whole */
	return n;
}

static ssize_t take_stderr(struct rv_run *run)
{
	char chunk[16384];
	struct rv_buffer *tail = &run->result.err_tail;
	ssize_t n = read(run->err.fd, chunk, sizeof chunk);
	size_t got;

	if (n <= 0)
		return n;
	got = (size_t)n;
	run->result.stderr_bytes += got;
	if (got >= RV_STDERR_TAIL) {
		rv_buffer_clear(tail);
		rv_buffer_add(tail, chunk + got - RV_STDERR_TAIL, RV_STDERR_TAIL);
		return n;
	}
	if (tail->len + got > RV_STDERR_TAIL) {
		size_t drop = tail->len + got - RV_STDERR_TAIL;

		memmove(tail->data, tail->data + drop, tail->len - drop);
		tail->len -= drop;
	}
	rv_buffer_add(tail, chunk, got);
	return n;
}

/* One chunk for each event: constant work, so that no writer can starve the rest of the loop. */
static void read_output(struct rv_watch *watch, uint32_t events)
{
	struct rv_run *run = watch->owner;
	ssize_t n;

	(void)events;
	n = watch == &run->out ? take_output(run) : take_stderr(run);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (n < 0) /* half an output that parses would be a wrong answer */
		run->result.io_error = errno;
	close_watch(run, watch);
}

/* The tool and all that it left are dead: take what the pipes still hold and not a byte of what
 * somebody outside may go on writing. */
static void drain(struct rv_run *run)
{
	size_t taken = 0;
	ssize_t n;

	while (run->out.fd >= 0 && run->result.stdout_bytes <= run->max_output && taken < LEFTOVER_MAX + run->max_output) {
		n = take_output(run);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			run->result.io_error = errno;
		if (n <= 0)
			break;
		taken += (size_t)n;
	}
	for (taken = 0; run->err.fd >= 0 && taken < LEFTOVER_MAX; taken += n > 0 ? (size_t)n : 0) {
		n = take_stderr(run);
		if (n <= 0 && !(n < 0 && errno == EINTR))
			break;
	}
}

/* ---- the end ---- */

static void finish(struct rv_run *run)
{
	drain(run);
	close_watch(run, &run->in);
	close_watch(run, &run->out);
	close_watch(run, &run->err);
	close_end(&run->kept[0]);
	close_end(&run->kept[1]);
	rv_loop_remove(run->loop, &run->control);
	run->finished = true;
}

static void lose(struct rv_run *run)
{
	rv_loop_remove(run->loop, &run->control);
	run->result.lost = true;
	run->result.survivors = rv_slot_lost(run->slot);
	run->result.signal_number = SIGKILL;
	finish(run);
}

static void take_done(struct rv_run *run, const struct rv_wire_message *done)
{
	struct rv_run_result *result = &run->result;

	result->step = done->step;
	result->errnum = done->errnum;
	if (done->reason != RV_RUN_NATURAL) /* a cap of ours that came behind its deadline decided nothing */
		result->reason = (enum rv_run_reason)done->reason;
	if (done->step == RV_START_OK) {
		if (WIFEXITED(done->status))
			result->exit_code = WEXITSTATUS(done->status);
		else if (WIFSIGNALED(done->status))
			result->signal_number = WTERMSIG(done->status);
	}
	result->survivors = done->survivors;
	run->slot->changed = done->changed != 0;
	result->cwd_removed = done->discard != 0;
	result->duration_ms = done->duration_us / 1000;
	result->user_ms = done->user_us / 1000;
	result->system_ms = done->system_us / 1000;
	result->max_rss_bytes = done->max_rss_bytes;
	result->cpu_reached = done->cpu_reached != 0;
}

static void on_control(struct rv_watch *watch, uint32_t events)
{
	struct rv_run *run = watch->owner;
	struct rv_wire_message done;
	int got = rv_wire_receive(run->slot->socket, &done, NULL);

	(void)events;
	if (got == 1 && done.op == RV_WIRE_DONE) {
		take_done(run, &done);
		finish(run);
	} else if (got == 0 || (got < 0 && errno != EAGAIN)) {
		lose(run);
	}
}

void rv_run_abort(struct rv_run *run)
{
	struct rv_wire_message message = { .op = RV_WIRE_ABORT };
	struct rv_error ignored = RV_ERROR_INIT;

	if (!run->finished && run->slot->socket >= 0)
		(void)rv_wire_send(run->slot->socket, &message, NULL, 0, &ignored);
}

void rv_run_give_up(struct rv_run *run)
{
	if (!run->finished)
		lose(run);
}

int64_t rv_run_deadline(const struct rv_run *run)
{
	return run->backstop_ms;
}

static bool worker_spoke(const struct rv_run *run)
{
	struct pollfd ready = { .fd = run->slot->socket, .events = POLLIN, .revents = 0 };

	return poll(&ready, 1, 0) > 0;
}

void rv_run_check(struct rv_run *run)
{
	if (run->finished || rv_clock_left_ms(run->backstop_ms) > 0)
		return;
	/* this process may have been stopped past every deadline: what the worker said meanwhile counts */
	while (!run->finished && worker_spoke(run))
		on_control(&run->control, EPOLLIN);
	if (!run->finished) {
		if (run->result.reason == RV_RUN_NATURAL)
			run->result.reason = RV_RUN_TIMEOUT;
		lose(run);
	}
}

/* ---- the start ---- */

struct pipes {
	int in[2], out[2], err[2]; /* [0] is read, [1] is written; -1 when handed on or not made */
};

static int make_pipe(int ends[2], int ours, struct rv_error *err)
{
	if (pipe2(ends, O_CLOEXEC) != 0)
		return rv_error_set(err, RV_E_IO, errno, "pipe");
	if (fcntl(ends[ours], F_SETFL, O_NONBLOCK) != 0)
		return rv_error_set(err, RV_E_IO, errno, "fcntl");
	return 0;
}

static void pipes_release(struct pipes *pipes)
{
	for (int i = 0; i < 2; i++) {
		close_end(&pipes->in[i]);
		close_end(&pipes->out[i]);
		close_end(&pipes->err[i]);
	}
}

static int watch_end(struct rv_run *run, struct rv_watch *watch, int *fd, uint32_t events, struct rv_error *err)
{
	if (rv_loop_add(run->loop, watch, *fd, events, err) != 0)
		return -1;
	*fd = -1; /* the watch closes it */
	return 0;
}

static int watch_all(struct rv_run *run, struct pipes *pipes, struct rv_error *err)
{
	if (rv_loop_add(run->loop, &run->control, run->slot->socket, EPOLLIN, err) != 0)
		return -1;
	if ((run->part < RV_INPUT_PARTS && watch_end(run, &run->in, &pipes->in[1], EPOLLOUT, err) != 0) ||
	    watch_end(run, &run->out, &pipes->out[0], EPOLLIN, err) != 0)
		return -1;
	return pipes->err[0] < 0 ? 0 : watch_end(run, &run->err, &pipes->err[0], EPOLLIN, err);
}

/* What fits into the pipe needs nobody to wait for its reader: the tool finds it there.  Who is given much may have
 * much to say. */
static void write_ahead(struct rv_run *run, int fd, int out)
{
	size_t len = 0;

	for (int i = 0; i < RV_INPUT_PARTS; i++)
		len += run->input[i].iov_len;
	if (len > PIPE_ROOM) {
		rv_io_enlarge_pipe(fd);
		rv_io_enlarge_pipe(out);
	}
	(void)write_parts(run, fd); /* what did not go is the loop's, its error too */
}

static void take_input(struct rv_run *run, const struct rv_run_plan *plan)
{
	for (int i = 0; i < RV_INPUT_PARTS; i++)
		run->input[i] = (struct iovec){ .iov_base = (void *)(uintptr_t)plan->input[i].data, .iov_len = plan->input[i].len };
	pass_written(run, 0); /* an empty part is no write of nothing */
}

static int send_run(struct rv_run *run, const struct rv_run_plan *plan, const struct rv_buffer *bytes,
		    struct rv_wire_message *message, int fds[RV_WIRE_FDS], struct rv_error *err)
{
	rv_auto_fd int stored = -1;
	int count = 3 + message->groups;
	int sent;

	message->op = RV_WIRE_RUN;
	message->timeout_ms = plan->timeout_ms;
	message->grace_ms = plan->grace_ms;
	message->discard = plan->discard;
	message->cpu_seconds = plan->cpu_seconds;
	message->data_bytes = plan->data_bytes != 0 ? plan->data_bytes : UINT64_MAX;
	message->plan_length = bytes->len;
	if (bytes->len <= sizeof message->path) {
		memcpy(message->path, bytes->data, bytes->len);
		message->length = (uint32_t)bytes->len;
		sent = rv_wire_send(run->slot->socket, message, fds, count, err);
		explicit_bzero(message->path, bytes->len);
		return sent;
	}
	fds[count] = stored = rv_plan_store(bytes, err);
	return stored < 0 ? -1 : rv_wire_send(run->slot->socket, message, fds, count + 1, err);
}

static int send_plan(struct rv_run *run, const struct rv_run_plan *plan, const struct pipes *pipes,
		     struct rv_error *err)
{
	struct rv_plan_text text = { plan->path, plan->cwd, plan->argv, plan->envp, plan->undo };
	struct rv_plan_size size;
	struct rv_buffer bytes = RV_BUFFER_INIT;
	struct rv_wire_message message;
	int count = 3;
	int fds[RV_WIRE_FDS] = { pipes->in[0], pipes->out[1], plan->stderr_fd >= 0 ? plan->stderr_fd : pipes->err[1] };
	int sent = -1;

	memset(&message, 0, offsetof(struct rv_wire_message, path));
	for (int i = 0; plan->group != NULL && i < RV_CGROUP_TREES; i++) {
		if (plan->group->entries[i] >= 0)
			fds[count++] = plan->group->entries[i];
	}
	message.groups = count - 3;
	if (rv_plan_add(&bytes, &text, &size, err) == 0) {
		message.argc = size.argc;
		message.envc = size.envc;
		message.undoc = size.undoc;
		message.flags = plan->flags;
		sent = send_run(run, plan, &bytes, &message, fds, err);
	}
	rv_plan_wipe(&bytes);
	return sent;
}

static int make_pipes(struct pipes *pipes, const struct rv_run_plan *plan, struct rv_error *err)
{
	if (make_pipe(pipes->in, 1, err) != 0 || make_pipe(pipes->out, 0, err) != 0)
		return -1;
	return plan->stderr_fd >= 0 ? 0 : make_pipe(pipes->err, 0, err);
}

static void keep_ends(struct rv_run *run, struct pipes *pipes)
{
	run->kept[0] = pipes->out[1];
	run->kept[1] = pipes->err[1];
	pipes->out[1] = -1;
	pipes->err[1] = -1;
}

int rv_run_start(struct rv_run *run, struct rv_loop *loop, struct rv_slot *slot, const struct rv_run_plan *plan,
		 struct rv_error *err)
{
	struct pipes pipes = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
	int result = -1;

	*run = (struct rv_run){
		.loop = loop, .slot = slot, .max_output = plan->max_output,
		.in = { -1, write_input, run }, .out = { -1, read_output, run }, .err = { -1, read_output, run },
		.control = { -1, on_control, run }, .kept = { -1, -1 },
	};
	run->result = (struct rv_run_result){ .exit_code = -1, .survivors = -1 };
	rv_buffer_init(&run->result.out, 0);
	rv_buffer_init(&run->result.err_tail, 0);
	take_input(run, plan);
	if (make_pipes(&pipes, plan, err) == 0) {
		write_ahead(run, pipes.in[1], pipes.out[0]);
		if (watch_all(run, &pipes, err) == 0)
			result = send_plan(run, plan, &pipes, err);
		keep_ends(run, &pipes);
	}
	run->backstop_ms = rv_clock_mono_ms() + plan->timeout_ms + plan->grace_ms + BACKSTOP_MS;
	pipes_release(&pipes);
	if (result != 0) {
		finish(run);
		if (rv_slot_has_ended(slot))
			(void)rv_slot_lost(slot);
		return rv_error_wrap(err, "cannot start");
	}
	return 0;
}

void rv_run_release(struct rv_run *run)
{
	rv_buffer_release(&run->result.out);
	rv_buffer_release(&run->result.err_tail);
}

/* lib/process: the wire, the plan, the loop, workdirs and their removal, descendants, slots and runs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/process/descend.h"
#include "lib/process/loop.h"
#include "lib/process/plan.h"
#include "lib/process/slot.h"
#include "lib/process/spawn.h"
#include "lib/process/supervise.h"
#include "lib/process/wire.h"
#include "lib/process/workdir.h"
#include "t/unit/tap.h"

/* The world of the test itself: without it there is nothing to test. */
static void must(bool good)
{
	if (good)
		return;
	perror("test-process");
	_exit(99);
}

/* How many descriptors this process has open. */
static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = -1; /* the directory's own */

	while (dir != NULL && readdir(dir) != NULL)
		count++;
	if (dir != NULL)
		(void)closedir(dir);
	return count;
}

/* ---- wire ---- */

static void test_wire(void)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_wire_message sent = { .op = RV_WIRE_DISCARD, .timeout_ms = 7, .path = "/a/path" };
	struct rv_wire_message got;
	int before = open_descriptors();
	int ends[2];
	int fds[RV_WIRE_FDS];
	int give[2] = { 0, 1 };

	(void)socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
	sent.length = (uint32_t)strlen(sent.path) + 1;
	tap_ok(rv_wire_send(ends[0], &sent, NULL, 0, &err) == 0 && rv_wire_receive(ends[1], &got, fds) == 1 &&
		       got.op == RV_WIRE_DISCARD && got.timeout_ms == 7 && strcmp(got.path, "/a/path") == 0 && fds[0] == -1,
	       "a message with a path and no descriptor");
	sent.length = 0;
	tap_ok(rv_wire_send(ends[0], &sent, give, 2, &err) == 0 && rv_wire_receive(ends[1], &got, fds) == 1 && fds[0] >= 0 &&
		       fds[1] >= 0 && fds[2] == -1 && (fcntl(fds[0], F_GETFD) & FD_CLOEXEC) != 0,
	       "descriptors, close-on-exec");
	(void)close(fds[0]);
	(void)close(fds[1]);
	(void)rv_wire_send(ends[0], &sent, give, 2, &err);
	tap_ok(rv_wire_receive(ends[1], &got, NULL) == 1 && open_descriptors() == before + 2, "unwanted ones are closed");
	(void)send(ends[0], "short", 5, 0);
	tap_ok(rv_wire_receive(ends[1], &got, NULL) == -1 && errno == EPROTO, "a message that is too short");
	sent.length = 100;
	(void)send(ends[0], &sent, offsetof(struct rv_wire_message, path) + 99, 0);
	tap_ok(rv_wire_receive(ends[1], &got, NULL) == -1 && errno == EPROTO, "a path that is not whole");
	(void)close(ends[0]);
	tap_ok(rv_wire_receive(ends[1], &got, NULL) == 0, "end of file");
	sent.length = 0;
	tap_ok(rv_wire_send(ends[1], &sent, NULL, 0, &err) == -1 && err.errnum == EPIPE, "nobody there, and no SIGPIPE");
	(void)close(ends[1]);
	tap_ok(open_descriptors() == before, "no descriptor is left");
}

/* ---- plan ---- */

static void test_plan(void)
{
	static char large[3000000];
	static char empty[] = "", words[] = "two words", a[] = "A=", b[] = "B=x=y";
	char *argv[] = { empty, words, large, NULL };
	char *envp[] = { a, b, NULL };
	char *none[] = { NULL };
	char *undo[] = { words, a, NULL };
	struct rv_plan_text text = { "/bin/x", "", argv, envp, undo };
	struct rv_error err = RV_ERROR_INIT;
	struct rv_buffer bytes = RV_BUFFER_INIT;
	struct rv_plan_view view;
	struct rv_plan_size size = { 0, 0, 0, 0 };
	struct rv_plan_size other;
	int fd;

	memset(large, 'l', sizeof large - 1);
	fd = rv_plan_add(&bytes, &text, &size, &err) == 0 ? rv_plan_store(&bytes, &err) : -1;
	tap_ok(fd >= 0 && size.argc == 3 && size.envc == 2 && size.undoc == 2 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "written");
	tap_ok(rv_plan_read(NULL, fd, &size, &view) == 0 && strcmp(view.path, "/bin/x") == 0 && view.cwd[0] == '\0' &&
		       view.argv[0][0] == '\0' && strcmp(view.argv[1], "two words") == 0 && strcmp(view.argv[2], large) == 0 &&
		       view.argv[3] == NULL && strcmp(view.envp[1], "B=x=y") == 0 && view.envp[2] == NULL &&
		       strcmp(view.undo[1], "A=") == 0 && view.undo[2] == NULL,
	       "read back");
	free(view.memory);
	other = size;
	other.length--;
	tap_ok(rv_plan_read(NULL, fd, &other, &view) == -1 && errno == EPROTO, "cut by a byte");
	other = size;
	other.undoc++;
	tap_ok(rv_plan_read(NULL, fd, &other, &view) == -1 && errno == EPROTO, "fewer words than were said");
	other = size;
	other.length++;
	tap_ok(rv_plan_read(NULL, fd, &other, &view) == -1 && errno == EPROTO, "longer than it is");
	other = (struct rv_plan_size){ 0, 0, 0, 0 };
	tap_ok(rv_plan_read(NULL, fd, &other, &view) == -1 && errno == EPROTO, "nothing at all");
	(void)close(fd);
	rv_plan_wipe(&bytes);
	text = (struct rv_plan_text){ "/x", "/y", none, envp, NULL };
	tap_ok(rv_plan_add(&bytes, &text, &size, &err) == 0 && rv_plan_read(bytes.data, -1, &size, &view) == 0 &&
		       view.argv[0] == NULL && strcmp(view.envp[0], "A=") == 0 && strcmp(view.cwd, "/y") == 0 && view.undo[0] == NULL,
	       "no words, out of a message");
	free(view.memory);
	rv_plan_wipe(&bytes);
}

/* ---- loop ---- */

static int turns;

static void count_turn(struct rv_watch *watch, uint32_t events)
{
	struct rv_loop *loop = ((void **)watch->owner)[0];
	struct rv_watch *other = ((void **)watch->owner)[1];

	(void)events;
	turns++;
	rv_loop_remove(loop, other); /* ready in this very turn, too */
}

static void test_loop(void)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_loop loop;
	struct rv_watch one = RV_WATCH_INIT;
	struct rv_watch two = RV_WATCH_INIT;
	void *of_one[] = { &loop, &two };
	void *of_two[] = { &loop, &one };
	int ends[2];
	int64_t began;

	(void)rv_loop_init(&loop, &err);
	one = (struct rv_watch){ -1, count_turn, of_one };
	two = (struct rv_watch){ -1, count_turn, of_two };
	must(pipe2(ends, O_CLOEXEC) >= 0);
	(void)rv_loop_add(&loop, &one, ends[1], EPOLLOUT, &err);
	must(write(ends[1], "x", 1) >= 0);
	(void)rv_loop_add(&loop, &two, ends[0], EPOLLIN, &err);
	tap_ok(rv_loop_turn(&loop, rv_clock_mono_ms() + 5000, &err) == 0 && turns == 1, "what was removed in a turn is not called in it");
	rv_loop_remove(&loop, &one);
	rv_loop_remove(&loop, &two);
	rv_loop_remove(&loop, &two);
	began = rv_clock_mono_ms();
	tap_ok(rv_loop_turn(&loop, began + 30, &err) == 0 && rv_clock_mono_ms() >= began + 30 && turns == 1, "a deadline");
	tap_ok(rv_loop_turn(&loop, began, &err) == 0 && rv_clock_mono_ms() < began + 5000, "one that is past");
	(void)close(ends[0]);
	(void)close(ends[1]);
	rv_loop_release(&loop);
	rv_loop_release(&loop);
}

/* ---- workdirs ---- */

static void test_workdir_name(void)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_buffer path = RV_BUFFER_INIT;
	char longer[300];

	tap_ok(rv_workdir_name(&path, "/tmp", RV_SPAN("tool"), "abcDEF", &err) == 0 && strcmp(path.data, "/tmp/rulvar-exec-tool-abcDEF") == 0, "a name");
	tap_ok(rv_workdir_name(&path, "/", RV_SPAN("a.b_c-9"), "abcDEF", &err) == 0 && strcmp(path.data, "/rulvar-exec-a.b_c-9-abcDEF") == 0, "at the root");
	tap_ok(rv_workdir_name(&path, "/t/", RV_SPAN("../x y\n\xC3\xA4"), "abcDEF", &err) == 0 && strcmp(path.data, "/t/rulvar-exec-.._x_y___-abcDEF") == 0, "reduced");
	tap_ok(rv_workdir_name(&path, "/t", ((struct rv_span){ "a\0b", 3 }), "abcDEF", &err) == 0 && strcmp(path.data, "/t/rulvar-exec-a_b-abcDEF") == 0, "with a NUL");
	memset(longer, 'n', sizeof longer);
	tap_ok(rv_workdir_name(&path, "/t", ((struct rv_span){ longer, sizeof longer }), "abcDEF", &err) == 0 &&
		       strlen(path.data) == strlen("/t/rulvar-exec-") + 64 + 7,
	       "a long one is cut");
	rv_buffer_release(&path);
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0)
		(void)close(fd);
}

static bool gone(const char *path)
{
	struct stat info;

	return lstat(path, &info) != 0 && errno == ENOENT;
}

/* Directories within each other, with a file at each; deeper than any path could be. */
static void make_deep(const char *top, int depth)
{
	int home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)mkdir(top, 0700);
	must(chdir(top) >= 0);
	for (int i = 0; i < depth; i++) {
		make_file("file");
		(void)mkdir("a-directory-with-a-name", 0700);
		must(chdir("a-directory-with-a-name") >= 0);
	}
	must(fchdir(home) >= 0);
	(void)close(home);
}

static void test_removal_plain(void)
{
	struct rv_error err = RV_ERROR_INIT;
	int before = open_descriptors();

	tap_ok(rv_workdir_remove("not-there", &err) == 0, "one that is not there");
	(void)mkdir("d", 0700);
	tap_ok(rv_workdir_remove("d", &err) == 0 && gone("d"), "an empty one");
	(void)mkdir("d", 0);
	tap_ok(rv_workdir_remove("d", &err) == 0 && gone("d"), "an empty one of mode 0");
	make_deep("d", 2000);
	tap_ok(rv_workdir_remove("d", &err) == 0 && gone("d"), "2,000 deep");
	for (int i = 0; i < 50; i++) {
		char path[64];

		(void)mkdir("d", 0700);
		for (int j = 0; j < 4; j++) {
			(void)snprintf(path, sizeof path, "d/.rv-%d", i + j);
			(void)mkdir(path, 0700);
			(void)snprintf(path, sizeof path, "d/.rv-%d/.rv-%d", i + j, j);
			(void)mkdir(path, 0500);
			(void)snprintf(path, sizeof path, "d/.rv-%d/.rv-%d/.rv-0", i + j, j);
			(void)mkdir(path, 0);
		}
		if (rv_workdir_remove("d", &err) != 0)
			break;
	}
	tap_ok(gone("d"), "names that the removal itself uses");
	tap_ok(open_descriptors() == before, "no descriptor is left");
}

static void test_removal_hostile(void)
{
	struct rv_error err = RV_ERROR_INIT;

	(void)mkdir("outside", 0700);
	make_file("outside/precious");
	(void)mkdir("d", 0700);
	(void)mkdir("d/closed", 0700);
	(void)mkdir("d/closed/inner", 0700);
	make_file("d/closed/inner/file");
	must(symlink("../../outside", "d/closed/link") >= 0);
	must(symlink("../outside", "d/link") >= 0);
	must(symlink("nowhere", "d/dangling") >= 0);
	must(symlink(".", "d/self") >= 0);
	(void)mkfifo("d/fifo", 0600);
	must(link("outside/precious", "d/hard") >= 0);
	make_file("d/a\nb");
	make_file("d/-rf");
	(void)chmod("d/closed/inner/file", 0);
	(void)chmod("d/closed/inner", 0);
	(void)chmod("d/closed", 0);
	(void)chmod("d", 0);
	tap_ok(rv_workdir_remove("d", &err) == 0 && gone("d"), "closed directories, links, a fifo");
	tap_ok(!gone("outside/precious"), "no link was followed");
	must(symlink("outside", "d") >= 0);
	tap_ok(rv_workdir_remove("d", &err) == 0 && !gone("outside/precious") && gone("d"), "a link in its place");
	make_file("d");
	tap_ok(rv_workdir_remove("d", &err) == 0 && gone("d"), "a file in its place");
	(void)unlink("outside/precious");
	(void)rmdir("outside");
}

static void test_removal_partial(void)
{
	struct rv_error err = RV_ERROR_INIT;
	struct stat info;

	if (geteuid() == 0) {
		tap_ok(stat("/proc/self/task", &info) == 0 && rv_workdir_remove("/proc/self/task", &err) == -1 && err.message[0] != '\0',
		       "what cannot be removed has a reason");
		return;
	}
	/* an ordinary user cannot remove from a directory of somebody else's */
	tap_ok(rv_workdir_remove("/usr/lib", &err) == -1 && stat("/usr/lib", &info) == 0 && strstr(err.message, "/usr/lib") != NULL,
	       "what cannot be removed has a reason");
}

/* ---- descendants ---- */

static void test_descend(void)
{
	int ready[2];
	pid_t child;
	pid_t spare;
	char byte;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	must(pipe2(ready, O_CLOEXEC) >= 0);
	tap_ok(rv_descend_signal(0, NULL, 0) == 0, "nobody");
	child = fork();
	if (child == 0) {
		if (fork() == 0) {
			(void)setsid();
			if (fork() != 0)
				_exit(0);
			must(write(ready[1], "x", 1) >= 0);
			for (;;)
				(void)pause();
		}
		must(write(ready[1], "x", 1) >= 0);
		for (;;)
			(void)pause();
	}
	must(read(ready[0], &byte, 1) >= 0);
	must(read(ready[0], &byte, 1) >= 0);
	spare = fork();
	if (spare == 0)
		for (;;)
			(void)pause();
	/* the one between them may still be on its way out */
	while (rv_descend_signal(0, NULL, 0) > 3)
		rv_clock_pause_ms(2);
	tap_ok(rv_descend_signal(0, NULL, 0) == 3, "a child, one that left its session, and another");
	tap_ok(rv_descend_signal(SIGKILL, &spare, 1) == 2, "all but one are signalled");
	while (rv_descend_signal(0, &spare, 1) > 0)
		rv_clock_pause_ms(2);
	tap_ok(kill(spare, 0) == 0 && waitpid(spare, NULL, WNOHANG) == 0, "the spared one lives");
	(void)kill(spare, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	tap_ok(rv_descend_signal(0, NULL, 0) == 0, "nobody again");
	(void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

static bool is_this(int proc, const char *pid, void *what)
{
	pid_t wanted = *(const pid_t *)what;

	return proc >= 0 && (wanted == 0 || strtol(pid, NULL, 10) == wanted);
}

static void test_descend_meant(void)
{
	int ready[2];
	pid_t all = 0;
	pid_t own = getppid();
	pid_t pair;
	pid_t other;
	char byte;

	must(pipe2(ready, O_CLOEXEC) >= 0);
	other = fork();
	if (other == 0)
		for (;;)
			(void)pause();
	pair = fork();
	if (pair == 0) {
		if (fork() == 0) {
			(void)setsid();
			must(write(ready[1], "x", 1) >= 0);
		}
		for (;;)
			(void)pause();
	}
	must(read(ready[0], &byte, 1) >= 0);
	tap_ok(rv_descend_signal_meant(0, true, is_this, &pair) == 2, "the one that is meant, and its child in another session");
	tap_ok(rv_descend_signal_meant(0, false, is_this, &pair) == 1, "without what is below it: it alone");
	tap_ok(rv_descend_signal_meant(0, true, is_this, &own) == 0, "never one that this process descends from");
	tap_ok(rv_descend_signal_meant(0, true, is_this, &all) >= 3, "all but its own line");
	tap_ok(rv_descend_signal_meant(SIGKILL, true, is_this, &pair) == 2, "they are signalled");
	tap_ok(waitpid(pair, NULL, 0) == pair && kill(other, 0) == 0 && waitpid(other, NULL, WNOHANG) == 0, "and nobody else");
	(void)kill(other, SIGKILL);
	(void)waitpid(other, NULL, 0);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

/* ---- spawn ---- */

static int return_it(void *data)
{
	return *(int *)data;
}

static int refuse_setup(pid_t child, void *data, struct rv_error *err)
{
	(void)child;
	*(int *)data = 99;
	return rv_error_set(err, RV_E_CONFIG, 0, "refused");
}

static int wait_for_ever(void *data)
{
	(void)data;
	while (pause() < 0)
		;
	return 0;
}

static void test_spawn(void)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_child child = RV_CHILD_INIT;
	int value = 7;
	int status = 0;
	int before = open_descriptors();
	struct rv_spawn_plan plan = { .child = return_it, .data = &value };

	tap_ok(rv_spawn(&plan, &child, &err) == 0 && (fcntl(child.pidfd, F_GETFD) & FD_CLOEXEC) != 0, "started");
	tap_ok(waitpid(child.pid, &status, 0) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 7, "its own status");
	(void)close(child.pidfd);
	plan.parent_setup = refuse_setup;
	tap_ok(rv_spawn(&plan, &child, &err) == -1 && err.code == RV_E_CONFIG && waitpid(-1, NULL, 0) < 0 && errno == ECHILD,
	       "the parent's refusal ends the child");
	plan = (struct rv_spawn_plan){ .child = wait_for_ever };
	tap_ok(rv_spawn(&plan, &child, &err) == 0 && rv_child_kill(&child, 5000, &status) == 1 && WIFSIGNALED(status) &&
		       WTERMSIG(status) == SIGKILL && child.pid == -1,
	       "killed and reaped");
	tap_ok(rv_child_kill(&child, 0, &status) == 1, "once more is nothing");
	tap_ok(open_descriptors() == before, "no descriptor is left");
}

/* ---- slots and runs ---- */

struct once {
	struct rv_loop loop;
	struct rv_slots slots;
	struct rv_slot slot;
};

static char shell[] = "sh", dash_c[] = "-c", path_value[] = "PATH=/usr/bin:/bin";

static void run_in(struct once *once, struct rv_run *run, const char *script, const struct rv_run_plan *bounds)
{
	char text[256];
	char *argv[] = { shell, dash_c, text, NULL };
	char *envp[] = { NULL };
	struct rv_run_plan plan = *bounds;
	struct rv_error err = RV_ERROR_INIT;

	(void)snprintf(text, sizeof text, "%s", script);
	plan.path = "/bin/sh";
	plan.argv = argv;
	plan.envp = envp;
	plan.cwd = bounds->discard ? bounds->cwd : "/";
	plan.stderr_fd = -1;
	if (rv_run_start(run, &once->loop, &once->slot, &plan, &err) != 0) {
		tap_ok(false, "started: %s", err.message);
		return;
	}
	while (!run->finished && rv_loop_turn(&once->loop, rv_run_deadline(run), &err) == 0)
		rv_run_check(run);
}

static const struct rv_run_plan usual = { .timeout_ms = 20000, .grace_ms = 300, .max_output = 1000 };

static void test_ends(struct once *once)
{
	struct rv_run_plan bounds = usual;
	struct rv_run run;

	bounds.input[0] = RV_SPAN("input\n");
	run_in(once, &run, "cat; echo words >&2; exit 3", &bounds);
	tap_ok(run.result.step == RV_START_OK && run.result.reason == RV_RUN_NATURAL && run.result.exit_code == 3 &&
		       run.result.signal_number == 0 && run.result.out.len == 6 && memcmp(run.result.out.data, "input\n", 6) == 0 &&
		       run.result.err_tail.len == 6 && run.result.survivors == 0 && run.result.max_rss_bytes > 0,
	       "a status, both streams");
	rv_run_release(&run);
	run_in(once, &run, "kill -9 $$", &bounds);
	tap_ok(run.result.exit_code == -1 && run.result.signal_number == SIGKILL && run.result.reason == RV_RUN_NATURAL && !run.result.lost, "a signal");
	rv_run_release(&run);
	bounds.timeout_ms = 100;
	run_in(once, &run, "trap '' TERM; while :; do :; done", &bounds);
	tap_ok(run.result.reason == RV_RUN_TIMEOUT && run.result.signal_number == SIGKILL && run.result.survivors == 0, "a deadline");
	rv_run_release(&run);
	bounds.timeout_ms = 20000;
	run_in(once, &run, "while :; do echo xxxxxxxxxxxxxxxxxxxxx; done", &bounds);
	tap_ok(run.result.reason == RV_RUN_OUTPUT_CAP && run.result.out.len == 1000 && run.result.stdout_bytes > 1000, "a cap");
	rv_run_release(&run);
	run_in(once, &run, "sleep 60 & setsid sleep 60 & echo 1", &bounds);
	tap_ok(run.result.reason == RV_RUN_NATURAL && run.result.exit_code == 0 && run.result.survivors == 0, "what it left is gone");
	rv_run_release(&run);
}

/* Abort from within the loop: at once, and again. */
static void test_abort(struct once *once)
{
	char text[] = "trap '' TERM; while :; do sleep 1; done";
	char *argv[] = { shell, dash_c, text, NULL };
	char *envp[] = { path_value, NULL };
	struct rv_run_plan plan = usual;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_run run;
	int64_t began = rv_clock_mono_ms();

	plan.path = "/bin/sh";
	plan.argv = argv;
	plan.envp = envp;
	plan.cwd = "/";
	plan.stderr_fd = -1;
	plan.grace_ms = 15000;
	(void)rv_run_start(&run, &once->loop, &once->slot, &plan, &err);
	rv_run_abort(&run);
	rv_run_abort(&run);
	while (!run.finished && rv_loop_turn(&once->loop, rv_run_deadline(&run), &err) == 0)
		rv_run_check(&run);
	tap_ok(run.result.reason == RV_RUN_ABORTED && rv_clock_mono_ms() - began < 10000, "aborted twice: no grace");
	rv_run_release(&run);
}

static void test_many(struct once *once)
{
	int before = open_descriptors();
	bool good = true;

	for (int i = 0; i < 100 && good; i++) {
		struct rv_run run;

		run_in(once, &run, i % 2 == 0 ? "echo 1" : "exit 9", &usual);
		good = run.finished && run.result.exit_code == (i % 2 == 0 ? 0 : 9) && run.result.out.len == (i % 2 == 0 ? 2 : 0);
		rv_run_release(&run);
	}
	tap_ok(good, "a hundred in one slot");
	tap_ok(open_descriptors() == before, "no descriptor is left");
}

/* The directory of a run that left it empty goes with it, and of no other. */
static void test_discard_with_run(struct once *once, const char *path)
{
	struct rv_run_plan bounds = usual;
	struct rv_run run;

	bounds.cwd = path;
	bounds.discard = true;
	run_in(once, &run, ": >file", &bounds);
	tap_ok(run.finished && !run.result.cwd_removed && !gone(path), "one that is not empty stays for a discard");
	rv_run_release(&run);
	run_in(once, &run, "rm file", &bounds);
	tap_ok(run.finished && run.result.cwd_removed && gone(path), "an empty one goes with the run");
	rv_run_release(&run);
}

static void test_workdirs_of(struct once *once)
{
	struct rv_error err = RV_ERROR_INIT;
	char here[512];
	char path[600];
	char below[700];

	must(getcwd(here, sizeof here) != NULL);
	(void)snprintf(path, sizeof path, "%s/announced", here);
	(void)mkdir(path, 0700);
	tap_ok(rv_slot_discard(&once->slot, path, &err) == 0 && rv_slot_discarded(&once->slot, 10000, &err) == 1 && gone(path), "removed on demand");
	make_file(path);
	(void)snprintf(below, sizeof below, "%s/below", path);
	tap_ok(rv_slot_discard(&once->slot, below, &err) == 0 && rv_slot_discarded(&once->slot, 10000, &err) == -1 &&
		       strstr(err.message, "announced/below") != NULL,
	       "and if it cannot be, why");
	tap_ok(rv_slot_discard(&once->slot, path, &err) == 0 && rv_slot_discarded(&once->slot, 10000, &err) == 1 && gone(path),
	       "a file in its place goes, too");
	(void)mkdir(path, 0700);
	test_discard_with_run(once, path);
	(void)mkdir(path, 0700);
	(void)rv_slot_arm(&once->slot, path, &err);
	rv_slot_stop(&once->slot, 10000);
	tap_ok(gone(path), "announced, and the host is gone: removed while it is empty");
}

static void test_lost(struct once *once)
{
	struct rv_error why = RV_ERROR_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_run run;

	tap_ok(rv_slot_start(&once->slot, &once->slots, RV_CONTAIN_SUBREAPER, &why, &err) == 0 &&
		       once->slot.containment == RV_CONTAIN_SUBREAPER,
	       "a sub-reaper, where that is wanted");
	run_in(once, &run, "sleep 60 & kill -9 $PPID; sleep 60", &usual);
	tap_ok(run.finished && run.result.lost && run.result.survivors == -1 && once->slot.socket == -1, "a worker that its tool killed");
	tap_ok(rv_descend_signal(0, NULL, 0) == 0, "nobody is left");
	rv_run_release(&run);
}

static void test_slots(void)
{
	struct once once = { .slots = { .first = NULL } };
	struct rv_error why = RV_ERROR_INIT;
	struct rv_error err = RV_ERROR_INIT;
	int before = open_descriptors();

	(void)signal(SIGPIPE, SIG_IGN);
	(void)rv_loop_init(&once.loop, &err);
	if (tap_ok(rv_slot_start(&once.slot, &once.slots, RV_CONTAIN_NAMESPACE, &why, &err) == 0, "a slot")) {
		tap_note("%s", rv_containment_name(once.slot.containment));
		test_ends(&once);
		test_abort(&once);
		test_many(&once);
		test_workdirs_of(&once);
		test_lost(&once);
	}
	rv_loop_release(&once.loop);
	tap_ok(open_descriptors() == before, "no descriptor is left by any slot");
}

/* In a child, which has mounts of its own: root's alone, as is a tool's mount that this process could meet. */
static void test_removal_of_mounts(void)
{
	struct rv_error err = RV_ERROR_INIT;
	char before[512], after[512];
	int status = 0;
	pid_t pid;

	if (geteuid() != 0)
		return;
	pid = fork();
	if (pid == 0) {
		must(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
		must(mkdir("d", 0700) == 0 && mkdir("d/m", 0700) == 0 && mount("none", "d/m", "tmpfs", 0, NULL) == 0);
		must(getcwd(before, sizeof before) != NULL);
		_exit(rv_workdir_remove("d", &err) == 0 && gone("d") && getcwd(after, sizeof after) != NULL &&
				      strcmp(before, after) == 0
			      ? 0
			      : 1);
	}
	must(waitpid(pid, &status, 0) == pid);
	tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a mount in a workdir, and the caller stands where it stood");
}

static void test_signal_names(void)
{
	char text[16];
	char want[16];

	tap_ok(strcmp(rv_signal_name(SIGKILL, text), "SIGKILL") == 0 && strcmp(rv_signal_name(SIGSEGV, text), "SIGSEGV") == 0, "names");
	(void)snprintf(want, sizeof want, "SIGRTMIN+3");
	tap_ok(strcmp(rv_signal_name(SIGRTMIN + 3, text), want) == 0, "a real-time signal");
	tap_ok(strcmp(rv_signal_name(32, text), "SIG32") == 0, "one without a name");
}

int main(void)
{
	char top[] = "test-process.XXXXXX";

	if (mkdtemp(top) == NULL || chdir(top) != 0)
		return 99;
	test_wire();
	test_plan();
	test_loop();
	test_workdir_name();
	test_removal_plain();
	test_removal_hostile();
	test_removal_partial();
	test_removal_of_mounts();
	test_signal_names();
	test_descend();
	test_descend_meant();
	test_spawn();
	test_slots();
	tap_ok(chdir("..") == 0 && rmdir(top) == 0, "nothing is left in the directory");
	return tap_end();
}

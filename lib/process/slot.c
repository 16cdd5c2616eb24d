#include "lib/process/slot.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/process/descend.h"
#include "lib/process/wire.h"
#include "lib/process/worker.h"

#define HELLO_MS 10000 /* a loaded machine may take its time; a silent worker may not take for ever */
#define LOST_MS 700
#define SPARED_MAX 4200 /* pids: two slots for each of 2 * 1024 jobs (see rv_stream_run), the spares, and the program beside them */

const char *rv_containment_name(enum rv_containment containment)
{
	return containment == RV_CONTAIN_NAMESPACE ? "pid-namespace" : "subreaper";
}

static int await(int socket, int wait_ms)
{
	struct pollfd ready = { .fd = socket, .events = POLLIN, .revents = 0 };
	int64_t deadline = rv_clock_mono_ms() + wait_ms;
	int n;

	do
		n = poll(&ready, 1, rv_clock_left_ms(deadline));
	while (n < 0 && errno == EINTR);
	return n;
}

bool rv_slot_has_ended(const struct rv_slot *slot)
{
	struct pollfd hung_up = { .fd = slot->socket, .events = 0, .revents = 0 };

	return slot->socket >= 0 && poll(&hung_up, 1, 0) > 0;
}

static void forget_page(struct rv_slot *slot)
{
	if (slot->page != NULL)
		(void)munmap(slot->page, sizeof *slot->page);
	slot->page = NULL;
}

static int share_page(struct rv_slot *slot, struct rv_error *err)
{
	void *page = mmap(NULL, sizeof *slot->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return rv_error_set(err, RV_E_IO, errno, "mmap");
	slot->page = page;
	return 0;
}

static bool read_limits(const struct rv_slot *slot, struct rlimit limits[RLIM_NLIMITS])
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		if (prlimit(slot->worker.pid, (__rlimit_resource_t)i, NULL, &limits[i]) != 0)
			return false;
	}
	return true;
}

bool rv_slot_is_changed(const struct rv_slot *slot)
{
	struct rlimit now[RLIM_NLIMITS];

	if (slot->changed)
		return true;
	/* in a namespace nobody but its own tools can, and behind them the worker has looked */
	if (slot->containment == RV_CONTAIN_NAMESPACE || !slot->limits_known)
		return false;
	if (!read_limits(slot, now))
		return true;
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		if (now[i].rlim_cur != slot->limits[i].rlim_cur || now[i].rlim_max != slot->limits[i].rlim_max)
			return true;
	}
	return false;
}

/* Start with exactly these namespaces; the worker itself says what it is. */
static int start_with(struct rv_slot *slot, uint64_t namespaces, struct rv_error *err)
{
	int ends[2];
	struct rv_worker_setup setup = {
		.namespaces = (namespaces & CLONE_NEWPID) != 0, .mounts = (namespaces & CLONE_NEWNS) != 0,
		.enclosure = namespaces != 0 ? slot->all->enclosure : NULL,
		.undo = slot->all->undo,
	};
	struct rv_spawn_plan plan = {
		.namespaces = namespaces,
		.parent_setup = (namespaces & CLONE_NEWUSER) != 0 ? rv_spawn_map_self : NULL,
		.child = rv_worker_main,
		.data = &setup,
	};
	struct rv_wire_message hello = { .op = 0 };
	int spawned;

	if (share_page(slot, err) != 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		forget_page(slot);
		return rv_error_set(err, RV_E_IO, errno, "socketpair");
	}
	setup.socket = ends[1];
	setup.page = slot->page;
	slot->socket = ends[0];
	spawned = rv_spawn(&plan, &slot->worker, err);
	(void)close(ends[1]);
	if (spawned == 0) {
		if (await(slot->socket, HELLO_MS) > 0 && rv_wire_receive(slot->socket, &hello, NULL) == 1 &&
		    hello.op == RV_WIRE_HELLO && (namespaces == 0 || hello.contained == 1) && hello.step == RV_START_OK) {
			slot->containment = namespaces != 0 ? RV_CONTAIN_NAMESPACE : RV_CONTAIN_SUBREAPER;
			slot->changed = false;
			slot->limits_known = namespaces == 0 && read_limits(slot, slot->limits);
			return 0;
		}
		(void)rv_child_kill(&slot->worker, LOST_MS, NULL);
		if (hello.op == RV_WIRE_HELLO && hello.step != RV_START_OK)
			(void)rv_error_set(err, RV_E_CONFIG, 0, "%.*s", (int)sizeof hello.path, hello.path);
		else
			(void)rv_error_set(err, RV_E_CONFIG, 0, "the slot worker did not come up");
	}
	forget_page(slot);
	(void)close(slot->socket);
	slot->socket = -1;
	return -1;
}

/* From the strongest that this host lets us have; each is tried and not guessed. */
static int start_enclosed(struct rv_slot *slot, struct rv_error *err)
{
	uint64_t namespaces = CLONE_NEWPID | CLONE_NEWNS;

	if (geteuid() == 0 && start_with(slot, namespaces, err) == 0)
		return 0;
	/* root of a container may have to make its own capabilities, as anybody else */
	if (geteuid() != 0 || err->errnum == EPERM) {
		rv_error_clear(err);
		return start_with(slot, CLONE_NEWUSER | namespaces, err);
	}
	return -1;
}

static int start_contained(struct rv_slot *slot, struct rv_error *why)
{
	static const uint64_t ways[] = {
		CLONE_NEWPID | CLONE_NEWNS,
		CLONE_NEWPID,
		CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS,
		CLONE_NEWUSER | CLONE_NEWPID,
	};
	size_t first = geteuid() == 0 ? 0 : 2; /* root needs no user namespace where it is a real one */

	for (size_t i = first; i < sizeof ways / sizeof ways[0]; i++) {
		if (start_with(slot, ways[i], why) == 0) {
			rv_error_clear(why);
			return 0;
		}
	}
	return rv_error_wrap(why, "no PID namespace can be made here (see user.max_user_namespaces, "
				  "kernel.apparmor_restrict_unprivileged_userns and the container's seccomp profile)");
}

int rv_slot_start(struct rv_slot *slot, struct rv_slots *all, enum rv_containment wanted, struct rv_error *why,
		  struct rv_error *err)
{
	int started;

	*slot = (struct rv_slot){ .worker = RV_CHILD_INIT, .socket = -1, .all = all, .next = NULL };
	if (wanted == RV_CONTAIN_NAMESPACE && all->enclosure != NULL) {
		if (start_enclosed(slot, err) != 0) {
			err->code = RV_E_CONFIG;
			return -1;
		}
		started = 0;
	} else {
		started = wanted == RV_CONTAIN_NAMESPACE ? start_contained(slot, why) : -1;
	}
	if (started != 0) {
		/* what a lost worker leaves comes to us, and not to init */
		if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
			return rv_error_set(err, RV_E_IO, errno, "prctl(PR_SET_CHILD_SUBREAPER)");
		started = start_with(slot, 0, err);
	}
	if (started == 0) {
		slot->next = all->first;
		all->first = slot;
	}
	return started;
}

static void forget(struct rv_slot *slot)
{
	struct rv_slot **link = &slot->all->first;

	while (*link != NULL && *link != slot)
		link = &(*link)->next;
	if (*link == slot)
		*link = slot->next;
}

void rv_slot_stop(struct rv_slot *slot, int wait_ms)
{
	if (slot->socket < 0)
		return;
	forget(slot);
	forget_page(slot);
	(void)close(slot->socket);
	slot->socket = -1;
	if (slot->removing || await(slot->worker.pidfd, wait_ms) > 0) {
		(void)waitpid(slot->worker.pid, NULL, WNOHANG);
		(void)close(slot->worker.pidfd);
		slot->worker = (struct rv_child)RV_CHILD_INIT;
		return;
	}
	(void)rv_child_kill(&slot->worker, LOST_MS, NULL);
}

void rv_slot_move(struct rv_slot *to, struct rv_slot *from)
{
	forget(from);
	*to = *from;
	to->next = to->all->first;
	to->all->first = to;
	*from = (struct rv_slot){ .worker = RV_CHILD_INIT, .socket = -1, .all = from->all, .next = NULL };
}

void rv_slot_leave(struct rv_slot *slot)
{
	if (slot->socket < 0)
		return;
	forget(slot);
	forget_page(slot);
	(void)close(slot->socket);
	(void)close(slot->worker.pidfd);
	slot->socket = -1;
	slot->worker = (struct rv_child)RV_CHILD_INIT;
}

static int put_path(char to[RV_WIRE_PATH_MAX], const char *path, uint32_t *length, struct rv_error *err)
{
	size_t len = strlen(path) + 1;

	if (len > RV_WIRE_PATH_MAX)
		return rv_error_set(err, RV_E_CONFIG, ENAMETOOLONG, "%s", path);
	memcpy(to, path, len);
	*length = (uint32_t)len;
	return 0;
}

int rv_slot_arm(const struct rv_slot *slot, const char *path, struct rv_error *err)
{
	uint32_t length;

	if (slot->socket < 0)
		return rv_error_set(err, RV_E_IO, 0, "the slot worker is gone");
	atomic_store(&slot->page->armed, false); /* half a path is no path */
	if (put_path(slot->page->path, path, &length, err) != 0)
		return -1;
	atomic_store(&slot->page->armed, true);
	return 0;
}

int rv_slot_discard(struct rv_slot *slot, const char *path, struct rv_error *err)
{
	struct rv_wire_message message;
	int sent;

	memset(&message, 0, offsetof(struct rv_wire_message, path));
	message.op = RV_WIRE_DISCARD;
	if (put_path(message.path, path, &message.length, err) != 0)
		return -1;
	sent = rv_wire_send(slot->socket, &message, NULL, 0, err);
	slot->removing = sent == 0;
	return sent;
}

int rv_slot_discarded(struct rv_slot *slot, int wait_ms, struct rv_error *err)
{
	struct rv_wire_message answer;

	if (await(slot->socket, wait_ms) == 0)
		return 0;
	slot->removing = false;
	if (rv_wire_receive(slot->socket, &answer, NULL) != 1 || answer.op != RV_WIRE_REMOVED) {
		(void)rv_slot_lost(slot);
		return rv_error_set(err, RV_E_IO, 0, "the slot worker is gone: the workdir may be left");
	}
	if (answer.errnum != 0)
		return rv_error_set(err, RV_E_IO, 0, "%.*s", (int)sizeof answer.path, answer.path);
	return 1;
}

int rv_slot_undo(struct rv_slot *slot, struct rv_error *err)
{
	struct rv_wire_message message = { .op = RV_WIRE_UNDO };
	int sent = rv_wire_send(slot->socket, &message, NULL, 0, err);

	slot->removing = sent == 0;
	return sent;
}

int rv_slot_undone(struct rv_slot *slot, int wait_ms, struct rv_error *err)
{
	struct rv_wire_message answer;

	if (await(slot->socket, wait_ms) == 0)
		return 0;
	slot->removing = false;
	if (rv_wire_receive(slot->socket, &answer, NULL) != 1 || answer.op != RV_WIRE_UNDONE) {
		(void)rv_slot_lost(slot);
		return rv_error_set(err, RV_E_IO, 0, "the slot worker is gone");
	}
	if (answer.errnum != 0)
		return rv_error_set(err, RV_E_IO, answer.errnum, "the engine does not say that it is gone");
	return 1;
}

static size_t list_spared(const struct rv_slots *all, pid_t *pids)
{
	size_t count = 0;

	for (size_t i = 0; i < sizeof all->beside / sizeof all->beside[0]; i++) {
		if (all->beside[i] != NULL && all->beside[i]->pid > 0)
			pids[count++] = all->beside[i]->pid;
	}
	for (const struct rv_slot *slot = all->first; slot != NULL && count < SPARED_MAX; slot = slot->next)
		pids[count++] = slot->worker.pid;
	return count;
}

/* Reap what came to us, but never what has an owner who does that. */
static void reap_strays(const pid_t *spare, size_t spared)
{
	siginfo_t info;

	for (;;) {
		bool known = false;

		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
			return;
		for (size_t i = 0; i < spared; i++)
			known = known || spare[i] == info.si_pid;
		if (known || waitpid(info.si_pid, NULL, WNOHANG) <= 0)
			return;
	}
}

int rv_slot_lost(struct rv_slot *slot)
{
	pid_t spare[SPARED_MAX];
	size_t spared;
	int64_t deadline = rv_clock_mono_ms() + LOST_MS;
	int alive;

	forget(slot);
	forget_page(slot);
	(void)close(slot->socket);
	slot->socket = -1;
	alive = rv_child_kill(&slot->worker, LOST_MS, NULL) == 1 ? 0 : -1;
	if (slot->containment == RV_CONTAIN_NAMESPACE)
		return alive; /* with its pid 1 the whole namespace is gone */
	spared = list_spared(slot->all, spare);
	do {
		alive = rv_descend_signal(SIGKILL, spare, spared);
		reap_strays(spare, spared);
		if (alive > 0)
			rv_clock_pause_ms(2);
	} while (alive > 0 && rv_clock_left_ms(deadline) > 0);
	return alive == 0 ? -1 : alive; /* what left the tree cannot be seen: never a comforting zero */
}

/*
 * kernel: what a tool in --sandbox kernel cannot do.  The attempts are those of rv-probe (t/probes), each made
 * first without a sandbox, in this very place: only one that has its effect there proves anything inside.
 */
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/helper.h"
#include "lib/conform/ask.h"
#include "lib/conform/outside.h"
#include "lib/conform/suites.h"

#define FLAGS (RV_COMMAND_BAD_DESCRIPTORS)
#define WORDS_MAX 96
/* The probes' lines, as one JSON string. */
#define SAY "PATH=/usr/bin:/bin; \"$@\" 2>&1 | { printf '\"'; base64 | tr -d '\\n'; printf '\"'; }"

static const char *const set[] = { "RV_PROBE_SECRET=1", NULL };

/* Words behind the program: what is outside, and the probes' names.  NULL noted. */
static const char **probe_words(struct rv_trial *trial, const char *probe, const char *const *keys, const char *const *names)
{
	const char **words = rv_trial_alloc(trial, WORDS_MAX * sizeof *words);
	size_t n = 0;

	if (words == NULL)
		return NULL;
	words[n++] = probe;
	for (size_t i = 0; keys[i] != NULL && n + 1 < WORDS_MAX; i++)
		words[n++] = keys[i];
	for (size_t i = 0; names[i] != NULL && n + 1 < WORDS_MAX; i++)
		words[n++] = names[i];
	return words;
}

/* The same attempts without a sandbox: what is said, a line each. */
static const char *control(struct rv_trial *trial, const char *const *words)
{
	const struct rv_command_plan plan = { .argv = words, .set = set, .flags = FLAGS };
	struct rv_command *command = rv_trial_run(trial, &plan);

	if (command == NULL || !rv_expect(trial, rv_trial_status(command) == 0, "rv-probe does not run here: %.*s",
					  (int)command->complained.len, command->complained.len > 0 ? command->complained.data : ""))
		return NULL;
	return rv_buffer_string(&command->said);
}

static const char *enclosed(struct rv_trial *trial, const char *const *words)
{
	const char *const readable[] = { words[0], NULL };
	const char *argv[WORDS_MAX + 4] = { "-c", SAY, "sh" };
	const struct rv_ask ask = {
		.command = "/bin/sh", .words = argv, .sandbox = "kernel", .readable = readable, .set = set, .flags = FLAGS,
	};
	const struct rv_buffer *said;

	for (size_t i = 0; words[i] != NULL; i++)
		argv[3 + i] = words[i];
	said = rv_answer_said(trial, rv_ask(trial, &ask));
	return said != NULL ? said->data : NULL;
}

static bool is_allowed(struct rv_trial *trial, const char *lines, const char *name)
{
	const char *line = rv_trial_printf(trial, "%s allowed", name);

	return line != NULL && rv_has_line(lines, line);
}

static bool was_tried(struct rv_trial *trial, const char *lines, const char *name)
{
	const char *start = rv_trial_printf(trial, "%s ", name);
	size_t len = start != NULL ? strlen(start) : 0;

	for (const char *at = lines; start != NULL && at != NULL; at = strchr(at, '\n'), at = at != NULL ? at + 1 : NULL) {
		if (strncmp(at, start, len) == 0)
			return true;
	}
	return false;
}

static bool compare(struct rv_trial *trial, const char *const *names, const char *without, const char *within)
{
	size_t count = 0;
	size_t counted = 0;

	for (; names[count] != NULL; count++) {
		if (!rv_expect(trial, was_tried(trial, within, names[count]), "%s was not tried inside: %s", names[count], within))
			return false;
		if (!is_allowed(trial, without, names[count]))
			continue;
		counted++;
		if (!rv_expect(trial, !is_allowed(trial, within, names[count]), "%s has its effect in the sandbox", names[count]))
			return false;
	}
	rv_did(trial, "tried %zu attempts in the sandbox, of which %zu have their effect here without it", count, counted);
	return counted > 0 || rv_skip(trial, "not one of the %zu attempts has its effect on this host without a sandbox", count);
}

static bool refuses(struct rv_trial *trial, const char *const *names)
{
	rv_auto_buffer struct rv_buffer probe = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_outside outside;
	const char **words;
	const char *without;
	const char *within;

	if (rv_helper_find(&probe, "rv-probe", &err) != 0)
		return rv_trial_failed(trial, &err);
	if (!rv_outside_open(trial, &outside))
		return false;
	words = probe_words(trial, rv_trial_printf(trial, "%s", probe.data), outside.keys, names);
	without = words != NULL ? control(trial, words) : NULL;
	if (without == NULL || !rv_outside_restore(trial, &outside))
		return false;
	within = enclosed(trial, words);
	return within != NULL && compare(trial, names, without, within);
}

#define ATTEMPTS(function, ...) \
	static bool function(struct rv_trial *trial) \
	{ \
		static const char *const names[] = { __VA_ARGS__, NULL }; \
		return refuses(trial, names); \
	}

ATTEMPTS(run_files, "read.open", "read.o-path", "read.access", "read.stat", "read.statx", "read.mmap", "read.directory",
	 "read.chdir", "read.handle", "read.etc-hostname", "read.etc-shadow", "read.etc-fstab", "read.etc-debian",
	 "read.var-dpkg", "read.root-profile", "read.run", "list.home", "list.var", "list.root", "list.run", "list.boot",
	 "list.opt", "list.srv")
ATTEMPTS(run_escapes, "read.alias", "read.dot-dot", "read.self-root", "read.self-cwd", "read.init-root", "read.parent-root",
	 "read.above-root", "read.symlink", "read.hard-link", "process.root", "process.exe")
ATTEMPTS(run_writes, "write.create", "write.creat", "write.tmpfile", "write.mkdir", "write.mkfifo", "write.mknod",
	 "write.symlink", "write.socket", "change.write", "change.append", "change.o-trunc", "change.truncate", "change.chmod",
	 "change.chown", "change.utime", "change.utimensat", "change.setxattr", "change.rename", "change.link",
	 "change.unlink", "change.mmap", "create.root", "create.usr", "create.usr-local", "create.etc", "create.var-tmp",
	 "create.dev")
ATTEMPTS(run_sys, "read.sys", "read.sys-uevent", "list.cgroup", "read.kcore", "read.kmsg", "kernel.log", "write.sysctl", "write.sysrq")
ATTEMPTS(run_devices, "device.tty", "device.ptmx", "device.console", "device.disk", "device.fuse", "device.tun", "read.dev-mem",
	 "change.dev-null")
ATTEMPTS(run_processes, "process.cmdline", "process.environ", "process.maps", "process.status", "process.ptrace-attach",
	 "process.ptrace-seize", "process.vm-readv", "process.vm-writev", "process.pidfd-getfd", "process.kcmp",
	 "process.setpriority", "process.setaffinity", "process.getaffinity", "process.prlimit", "process.ioprio",
	 "process.getsid", "read.init-cmdline", "read.init-maps")

static bool run_environ(struct rv_trial *trial)
{
	static const char *const names[] = { "process.environ", "read.init-environ", "inherit.variable", NULL };
	const struct rv_ask ask = {
		.script = "{ cat \"/proc/$PPID/environ\"; cat /proc/[0-9]*/environ; } 2>/dev/null | tr '\\0' '\\n' | say", .sandbox = "kernel",
	};
	const struct rv_buffer *said;

	if (!refuses(trial, names))
		return false;
	said = rv_answer_said(trial, rv_ask(trial, &ask));
	return said != NULL && rv_expect(trial, strstr(said->data, "RV_CONFORM_SECRET") == NULL, "the caller's secret is in a /proc/PID/environ");
}

ATTEMPTS(run_signals, "signal.kill", "signal.group", "signal.tkill", "signal.tgkill", "signal.sigqueue", "signal.pidfd-open",
	 "signal.pidfd")
ATTEMPTS(run_inherited, "inherit.descriptor")
ATTEMPTS(run_families, "socket.tcp4", "socket.tcp6", "socket.udp4", "socket.udp6", "socket.icmp", "socket.raw", "socket.packet",
	 "socket.mptcp", "socket.netlink", "socket.netlink-audit", "socket.netlink-uevent", "socket.vsock", "socket.alg",
	 "socket.key", "socket.xdp")
ATTEMPTS(run_network, "net.connect4", "net.connect6", "net.send4", "net.fast-open", "net.bind4", "net.listen")
ATTEMPTS(run_sockets, "net.unix-path", "net.unix-abstract")
ATTEMPTS(run_mounts, "mount.tmpfs", "mount.bind", "mount.proc", "mount.remount", "mount.fsopen", "mount.fspick",
	 "mount.open-tree", "mount.setattr", "mount.chroot", "namespace.mount", "namespace.user-mount")
ATTEMPTS(run_namespaces, "namespace.user", "namespace.pid", "namespace.net", "namespace.ipc", "namespace.uts",
	 "namespace.cgroup", "namespace.time", "namespace.clone-user", "namespace.setns")
ATTEMPTS(run_keyrings, "kernel.keyctl", "kernel.add-key")
ATTEMPTS(run_calls, "privilege.root", "privilege.setuid", "privilege.setgid", "privilege.setgroups", "privilege.sethostname",
	 "privilege.bounding", "privilege.ioperm", "kernel.bpf", "kernel.perf", "kernel.userfaultfd", "kernel.io-uring",
	 "kernel.fanotify", "kernel.personality", "kernel.ldt", "kernel.int80")
ATTEMPTS(run_terminal, "terminal.tiocsti", "terminal.tiocsti-high", "terminal.tioclinux")

const struct rv_check rv_checks_kernel[] = {
	{ "kernel.files", "no file outside the list is read, named or listed",
	  "What is not shown is not there: neither the caller's files nor those of other users and of the system.",
	  "A tool that reads a key needs no network of its own: its result carries the key out.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_files },
	{ "kernel.escapes", "no other path leads there",
	  "Neither .., nor a link, nor /proc/self/root, /proc/1/root or the parent's lead to a file outside.",
	  "A file has many names, and a list of forbidden ones is always one short.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_escapes },
	{ "kernel.writes", "nothing outside is made or changed",
	  "Every way to create, change, rename, link or remove outside the workdir and /tmp is refused.",
	  "What a tool can change outside, another program runs or believes later.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_writes },
	{ "kernel.sys", "/sys, sysctls and the kernel's log are out of reach",
	  "Neither /sys, /proc/kcore, /dev/kmsg nor a writable sysctl is there.",
	  "They describe the host, and some of them command it.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_sys },
	{ "kernel.devices", "no device but null, zero, full, random and urandom",
	  "Terminals, disks, /dev/fuse, /dev/net/tun and /dev/mem cannot be opened.",
	  "A device is a way around every file permission.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_devices },
	{ "kernel.processes", "other processes are neither seen nor touched",
	  "Their /proc, memory, descriptors, limits and priorities are out of reach.",
	  "The caller's memory holds what its files hide.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_processes },
	{ "kernel.environ", "nobody's environment is read",
	  "Neither /proc/PPID/environ, /proc/1/environ nor that of the user's other processes can be read.",
	  "A replaced environment hides nothing while the caller's stands in /proc.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_environ },
	{ "kernel.signals", "no signal leaves the sandbox",
	  "Processes outside are signalled by no call: kill, tgkill, sigqueue, pidfds.",
	  "A tool that can stop its supervisor has no deadline.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_signals },
	{ "kernel.inherited", "no descriptor is inherited but 0, 1 and 2",
	  "What the caller had open is closed in the sandbox.",
	  "An open descriptor is a file that no sandbox hides.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_inherited },
	{ "kernel.families", "no socket of any family but Unix",
	  "TCP, UDP, raw, packet, netlink, vsock, alg and the rest cannot even be made.",
	  "A rarely used family is rarely used code of the kernel.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_families },
	{ "kernel.network", "no network",
	  "Neither an address of the host nor any other is connected to, sent to or listened on.",
	  "The host's own services trust whoever reaches them on 127.0.0.1.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_network },
	{ "kernel.sockets", "no Unix socket outside, by path or abstract",
	  "A socket of the file system and one of the abstract namespace are out of reach.",
	  "Behind such a socket is a daemon that opens files for whoever asks.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_sockets },
	{ "kernel.mounts", "nothing is mounted or changes its root",
	  "The old and the new calls to mount, and chroot, are refused, in a nested user namespace as well.",
	  "Who can mount can uncover what is hidden.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_mounts },
	{ "kernel.namespaces", "no further namespace",
	  "No namespace is made or entered, a user namespace least of all.",
	  "In its own user namespace every process is root, before the kernel's least tested code.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_namespaces },
	{ "kernel.keyrings", "no keyring",
	  "Neither add_key nor keyctl is there.",
	  "Keyrings are the user's and know no namespace of files.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_keyrings },
	{ "kernel.calls", "no privilege, and no rarely used call",
	  "Neither another user nor root is become; bpf, perf, userfaultfd, io_uring and their kin are refused.",
	  "What a tool does not need is what an attack needs.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_calls },
	{ "kernel.terminal", "no character is put into a terminal",
	  "TIOCSTI and TIOCLINUX are refused, also with bits set beyond the number that the kernel looks at.",
	  "What is typed into the caller's terminal runs in the caller's shell.",
	  "rv-exec(1), The sandbox", RV_CAN_KERNEL, run_terminal },
	{ .id = NULL },
};

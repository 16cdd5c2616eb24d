/* lib/sandbox: a filter's program says what its table says; policies are rendered; a program runs behind the
 * boundary, and the host is told what is there. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/audit.h>

#include "lib/base/buffer.h"
#include "lib/json/json.h"
#include "lib/process/spawn.h"
#include "lib/sandbox/boundary.h"
#include "lib/sandbox/calls.h"
#include "lib/sandbox/filter.h"
#include "t/unit/tap.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* ---- filters: the program, interpreted, beside the table, read from top to bottom ---- */

static const struct rv_filter_values values = { .self = 2, .exec = 1000 };

static uint32_t load(const struct seccomp_data *data, uint32_t at)
{
	uint32_t word;

	memcpy(&word, (const char *)data + at, sizeof word);
	return word;
}

static uint32_t interpret(const struct sock_filter *code, int len, const struct seccomp_data *data, int *steps)
{
	uint32_t a = 0;

	for (int pc = 0; pc < len; pc++, (*steps)++) {
		const struct sock_filter *at = &code[pc];

		switch (at->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			a = load(data, at->k);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= at->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += (int)at->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == at->k ? at->jt : at->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= at->k ? at->jt : at->jf;
			break;
		case BPF_RET | BPF_K:
			return at->k;
		default:
			return 0xdead0001;
		}
	}
	return 0xdead0002;
}

static uint64_t argument(const struct seccomp_data *data, unsigned which)
{
	return data->args[which];
}

static uint32_t by_table(const struct rv_filter *filter, const struct seccomp_data *data)
{
	if (data->arch != ARCH)
		return SECCOMP_RET_KILL_PROCESS;
#if defined(__x86_64__)
	if ((uint32_t)data->nr >= 0x40000000U)
		return RV_FILTER_ERRNO(ENOSYS);
#endif
	for (size_t i = 0; i < filter->count; i++) {
		const struct rv_filter_rule *rule = &filter->rules[i];
		bool holds = (uint32_t)data->nr >= rule->first && (uint32_t)data->nr <= rule->last;

		for (size_t j = 0; j < RV_FILTER_TESTS; j++) {
			const struct rv_filter_test *test = &rule->tests[j];
			uint64_t value = test->symbol == RV_VALUE_SELF ? values.self
					 : test->symbol == RV_VALUE_EXEC ? values.exec : test->value;

			holds = holds && (argument(data, test->argument) & test->mask) == (value & test->mask);
		}
		if (holds)
			return rule->action;
	}
	return filter->otherwise;
}

/* Arguments near what the tables test: each value of a test, with a bit flipped, and with 2^32 added. */
static void vary(struct seccomp_data *data, const struct rv_filter *filter, unsigned long seed)
{
	for (unsigned i = 0; i < 6; i++)
		data->args[i] = seed >> i & 1 ? 0 : (uint64_t)(seed * 2654435761UL >> i);
	for (size_t i = 0; i < filter->count; i++) {
		const struct rv_filter_rule *rule = &filter->rules[i];

		if ((uint32_t)data->nr < rule->first || (uint32_t)data->nr > rule->last || (seed + i) % 3 != 0)
			continue;
		for (size_t j = 0; j < RV_FILTER_TESTS; j++) {
			const struct rv_filter_test *test = &rule->tests[j];

			if (test->mask == 0)
				continue;
			data->args[test->argument] = test->symbol == RV_VALUE_SELF ? values.self
						     : test->symbol == RV_VALUE_EXEC ? values.exec : test->value;
			if (seed % 4 == 1)
				data->args[test->argument] ^= 1ULL << (seed / 4 % 64);
			else if (seed % 4 == 2)
				data->args[test->argument] += 1ULL << 32;
		}
	}
}

static void check_filter(const char *name, const struct rv_filter *filter)
{
	static struct sock_filter code[RV_FILTER_MAX];
	int len = rv_filter_compile(filter, &values, code);
	long wrong = 0;
	long asked = 0;
	int deepest = 0;

	for (int number = -2; number < 700; number++) {
		for (unsigned long seed = 0; seed < 400; seed++) {
			struct seccomp_data data = { .nr = number, .arch = ARCH };
			int steps = 0;

			vary(&data, filter, seed);
			wrong += interpret(code, len, &data, &steps) != by_table(filter, &data);
			deepest = steps > deepest ? steps : deepest;
			asked++;
		}
	}
	tap_ok(len > 0 && wrong == 0, "%s: %d instructions say what the table says (%ld calls asked)", name, len, asked);
	tap_ok(deepest < 64, "%s: no call takes more than 64 instructions (%d)", name, deepest);
}

static uint32_t ask(const struct rv_filter *filter, uint32_t arch, long number, uint64_t first, uint64_t second)
{
	static struct sock_filter code[RV_FILTER_MAX];
	struct seccomp_data data = { .nr = (int)number, .arch = arch, .args = { first, second } };
	int len = rv_filter_compile(filter, &values, code);
	int steps = 0;

	return interpret(code, len, &data, &steps);
}

static void check_confine_answers(void)
{
	const struct rv_filter *filter = &rv_filter_confine;
	const uint32_t no = RV_FILTER_ERRNO(EPERM);
	const uint32_t absent = RV_FILTER_ERRNO(ENOSYS);

	tap_ok(ask(filter, AUDIT_ARCH_I386, SYS_read, 0, 0) == SECCOMP_RET_KILL_PROCESS, "another architecture ends the process");
	tap_ok(ask(filter, ARCH, 0x40000000 | SYS_read, 0, 0) == absent, "x32 is absent");
	tap_ok(ask(filter, ARCH, 435, 0, 0) == absent, "clone3 is absent");
	tap_ok(ask(filter, ARCH, SYS_clone, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_FS, 0) == SECCOMP_RET_ALLOW, "a thread");
	tap_ok(ask(filter, ARCH, SYS_clone, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWUSER, 0) == no, "no new namespace");
	tap_ok(ask(filter, ARCH, SYS_clone, SIGCHLD, 0) == no && ask(filter, ARCH, SYS_fork, 0, 0) == no, "no fork");
	tap_ok(ask(filter, ARCH, SYS_tgkill, 2, 2) == SECCOMP_RET_ALLOW && ask(filter, ARCH, SYS_tgkill, 1, 1) == no, "tgkill: the own group");
	tap_ok(ask(filter, ARCH, SYS_ioctl, 1, 0x5412) == RV_FILTER_ERRNO(ENOTTY) &&
		       ask(filter, ARCH, SYS_ioctl, 1, 0x5401 + (1ULL << 32)) == RV_FILTER_ERRNO(ENOTTY),
	       "ioctl: all 64 bits");
	tap_ok(ask(filter, ARCH, SYS_execve, 0, 0) == no, "no execve");
	tap_ok(ask(filter, ARCH, SYS_bpf, 0, 0) == absent && ask(filter, ARCH, 9999, 0, 0) == absent, "all else is absent");
}

/* ---- the filter of a confined program on a real terminal, which no pipe can stand for ---- */

#define STEAL 0x5412UL /* TIOCSTI */

struct answers {
	int size, steal, steal_high; /* errnos; 0: it was done */
	int loaded;
};

static int ask_terminal(int fd, unsigned long request)
{
	char bytes[64] = "x";

	return syscall(SYS_ioctl, fd, request, bytes) >= 0 ? 0 : errno;
}

/* In a child with a terminal of its own. */
static void ask_all(int other, bool filtered, struct answers *answers)
{
	const struct rv_filter_values own = { .self = (uint64_t)getpid(), .exec = 1000 };

	(void)setsid();
	(void)ioctl(other, TIOCSCTTY, 0);
	answers->loaded = 0;
	if (filtered && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || rv_filter_load(&rv_filter_confine, &own) != 0))
		answers->loaded = errno;
	answers->size = ask_terminal(other, TIOCGWINSZ);
	answers->steal = ask_terminal(other, STEAL);
	answers->steal_high = ask_terminal(other, STEAL + (1UL << 32));
}

static bool on_a_terminal(bool filtered, struct answers *answers)
{
	struct answers *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), other = -1, status = 1;
	pid_t pid;

	if (shared == MAP_FAILED || terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
		return false;
	other = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	pid = other >= 0 ? fork() : -1;
	if (pid == 0) {
		ask_all(other, filtered, shared);
		_exit(0);
	}
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	*answers = *shared;
	(void)munmap(shared, sizeof *shared);
	(void)close(other);
	(void)close(terminal);
	return pid > 0 && status == 0;
}

static void check_terminal(void)
{
	struct answers without = { -1, ENOTTY, ENOTTY, -1 }, with = { -1, -1, -1, -1 };

	bool asked = on_a_terminal(false, &without) && on_a_terminal(true, &with);

	tap_ok(asked && without.size == 0 && without.steal != ENOTTY && without.steal_high != ENOTTY,
	       "a terminal takes TIOCSTI, or has its own refusal, also above 32 bits (%d, %d)", without.steal, without.steal_high);
	tap_ok(asked && with.loaded == 0 && with.size == 0,
	       "behind the filter it is still a terminal, by its size (%d, %d)", with.loaded, with.size);
	tap_ok(with.steal == ENOTTY && with.steal_high == ENOTTY, "and TIOCSTI is ENOTTY (%d, %d)", with.steal, with.steal_high);
}

/* ---- rendering ---- */

static bool is_canonical(const struct rv_buffer *text)
{
	struct rv_error err = RV_ERROR_INIT;
	struct rv_buffer again = RV_BUFFER_INIT;
	struct rv_json_doc *doc = rv_json_doc_new(&err);
	const struct rv_json_node *root = rv_json_parse(doc, text->data, text->len, RV_JSON_STRICT, &err);
	bool same = root != NULL && rv_json_canonical(root, &again, &err) == 0 && again.len == text->len &&
		    memcmp(again.data, text->data, text->len) == 0;

	if (root == NULL)
		tap_note("%s", err.message);
	rv_buffer_release(&again);
	rv_json_doc_free(doc);
	return same;
}

static void check_rendering(void)
{
	static const char *const names[] = { "linux/1", "linux/1+proc", "landlock/1" };
	struct rv_buffer texts[3] = { RV_BUFFER_INIT, RV_BUFFER_INIT, RV_BUFFER_INIT };
	struct rv_filter_rule *rules = malloc(rv_filter_confine.count * sizeof *rules);
	struct rv_filter broken_filter = { rules, rv_filter_confine.count, rv_filter_confine.otherwise };
	struct rv_policy broken = rv_policy_linux;
	struct rv_buffer text = RV_BUFFER_INIT;

	for (int i = 0; i < 3; i++) {
		const struct rv_policy *policy = rv_policy_find(names[i]);

		tap_ok(policy != NULL && strcmp(policy->name, names[i]) == 0, "%s is a profile", names[i]);
		rv_policy_render(&texts[i], policy);
		tap_ok(is_canonical(&texts[i]), "%s: canonical JSON, %zu bytes", names[i], texts[i].len);
	}
	tap_ok(rv_policy_find("linux/2") == NULL && rv_policy_find("linux") == NULL, "no other name is one");
	memcpy(rules, rv_filter_confine.rules, rv_filter_confine.count * sizeof *rules);
	rules[rv_filter_confine.count / 2].action = RV_FILTER_ERRNO(EIO);
	broken.filter = &broken_filter;
	rv_policy_render(&text, &broken);
	tap_ok(text.len != texts[0].len || memcmp(text.data, texts[0].data, text.len) != 0, "a changed rule is another text");
	rv_buffer_release(&text);
	for (int i = 0; i < 3; i++)
		rv_buffer_release(&texts[i]);
	free(rules);
}

/* ---- the boundary ---- */

/* A run of a static program, t/probes/probe, behind a policy. */
struct trial {
	struct rv_boundary boundary;
	struct rv_boundary_report report;
	char record[256];
	char out[8192];
	int status; /* the program's, as waitpid(2) gives it; -1: not told */
	bool gone;  /* the spawned process has ended and was reaped */
};

static void read_rest(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	(void)close(fd);
}

static void identify(struct rv_source *source)
{
	struct stat info;

	if (stat(source->path, &info) == 0) {
		source->device = info.st_dev;
		source->inode = info.st_ino;
		source->checked = true;
	}
}

/* Run it: `go` false withholds the byte. */
static void run_trial(struct trial *trial, const struct rv_policy *policy, struct rv_source *sources, size_t count,
		      char *const *argv, bool go)
{
	static char *const none[] = { NULL };
	int record[2], gate[2], status[2], out[2];
	struct rv_boundary *boundary = &trial->boundary;
	struct rv_spawn_plan plan = { policy->namespaces, rv_boundary_map, rv_boundary_main, boundary };
	struct rv_child child = RV_CHILD_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct pollfd ended;

	*boundary = (struct rv_boundary){
		.instance = { .policy = policy, .sources = sources, .source_count = count, .landlock_abi = rv_landlock_abi(),
			      .limits = { [RV_LIMIT_CPU] = 7, [RV_LIMIT_NOFILE] = 64, [RV_LIMIT_DATA] = 1U << 30 } },
		.runtime = sources[0].path, .runtime_device = sources[0].device, .runtime_inode = sources[0].inode,
		.argv = argv, .envp = none, .cwd = policy->namespaces != 0 ? "/home" : "/tmp", .canary = "/etc/passwd",
		.write_probe = policy->namespaces != 0 ? "/home/probe" : "/tmp/probe", .admitted = "admitted\n",
	};
	rv_boundary_ids(boundary);
	trial->status = -1;
	memset(&trial->report, 0xff, sizeof trial->report);
	if (pipe2(record, O_CLOEXEC) != 0 || pipe2(gate, O_CLOEXEC) != 0 || pipe2(status, O_CLOEXEC) != 0 ||
	    pipe2(out, O_CLOEXEC) != 0)
		exit(EXIT_FAILURE);
	boundary->stdio[0] = gate[0];
	boundary->stdio[1] = boundary->stdio[2] = out[1];
	boundary->record = record[1];
	boundary->go = gate[0];
	boundary->status = status[1];
	if (rv_spawn(&plan, &child, &err) != 0)
		tap_note("spawn: %s", err.message);
	(void)close(record[1]);
	(void)close(gate[0]);
	(void)close(status[1]);
	(void)close(out[1]);
	if (read(record[0], &trial->report, sizeof trial->report) == (ssize_t)sizeof trial->report && go)
		(void)!write(gate[1], "g", 1);
	(void)close(gate[1]);
	read_rest(record[0], trial->record, sizeof trial->record);
	read_rest(out[0], trial->out, sizeof trial->out);
	(void)!read(status[0], &trial->status, sizeof trial->status);
	(void)close(status[0]);
	ended = (struct pollfd){ .fd = child.pidfd, .events = POLLIN };
	trial->gone = poll(&ended, 1, 10000) == 1 && rv_child_kill(&child, 1000, policy->namespaces == 0 ? &trial->status : NULL) == 1;
	if (trial->report.step != RV_BOUNDARY_READY)
		tap_note("step %s, %s (source %d)", rv_boundary_step_name(trial->report.step), strerror(trial->report.errnum),
			 trial->report.detail);
}

static void check_boundary(const struct rv_policy *policy, const char *program)
{
	static char names[][20] = { "start.execveat", "start.fork", "socket.tcp4" };
	char *const argv[] = { (char *)(uintptr_t)program, names[0], names[1], names[2], NULL };
	struct rv_source sources[1] = { { .name = "runtime", .path = program } };
	struct rv_policy unlimited = *policy;
	struct trial trial;

	identify(&sources[0]);
	run_trial(&trial, policy, sources, 1, argv, true);
	tap_ok(trial.report.step == RV_BOUNDARY_READY, "%s: ready", policy->name);
	tap_ok(strcmp(trial.record, "admitted\n") == 0, "%s: admitted, and nothing after it", policy->name);
	tap_ok(WIFEXITED(trial.status) && WEXITSTATUS(trial.status) == 0, "%s: its own status (%d)", policy->name, trial.status);
	/* without namespaces its own file has a path, and is not the one descriptor that may be executed */
	tap_ok(strcmp(trial.out, policy->namespaces != 0
					 ? "socket.tcp4 denied EPERM\nstart.fork denied EPERM\nstart.execveat denied EBADF\n"
					 : "socket.tcp4 denied EPERM\nstart.fork denied EPERM\nstart.execveat denied EPERM\n") == 0,
	       "%s: it ran, and could not do what it may not", policy->name);
	tap_ok(trial.gone, "%s: and ended", policy->name);
	tap_ok(trial.report.soft[RV_LIMIT_CPU] == 7 && trial.report.hard[RV_LIMIT_CPU] == 7 &&
		       trial.report.soft[RV_LIMIT_NOFILE] == 64 && trial.report.hard[RV_LIMIT_CORE] == 0 &&
		       trial.report.hard[RV_LIMIT_FSIZE] == 0 && trial.report.soft[RV_LIMIT_DATA] == 1U << 30,
	       "%s: the limits are measured", policy->name);
	tap_ok(trial.report.effects[RV_EFFECT_CANARY] == (policy->namespaces != 0 ? ENOENT : EACCES) &&
		       trial.report.effects[RV_EFFECT_SOCKET] == EPERM &&
		       trial.report.effects[RV_EFFECT_WRITE] == (policy->namespaces != 0 ? EROFS : EACCES),
	       "%s: the effects (%d %d %d)", policy->name, trial.report.effects[0], trial.report.effects[1],
	       trial.report.effects[2]);
	run_trial(&trial, policy, sources, 1, argv, false);
	tap_ok(trial.report.step == RV_BOUNDARY_READY && trial.record[0] == '\0' && trial.out[0] == '\0' && trial.gone,
	       "%s: without the byte nothing runs", policy->name);
	sources[0].inode++;
	run_trial(&trial, policy, sources, 1, argv, true);
	tap_ok(trial.report.step == (policy->namespaces != 0 ? RV_BOUNDARY_SOURCE : RV_BOUNDARY_RUNTIME) &&
		       trial.report.errnum == EXDEV && trial.out[0] == '\0',
	       "%s: another file at the path is refused", policy->name);
	identify(&sources[0]);
	unlimited.filter = NULL;
	run_trial(&trial, &unlimited, sources, 1, argv, false);
	tap_ok(trial.report.effects[RV_EFFECT_SOCKET] == 0 || policy->namespaces == 0, "%s: without seccomp the effect shows it",
	       policy->name);
}

/* Beside this program: t/probes/probe. */
static bool find_probe(char *path, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", path, size - 32);

	for (int up = 0; len > 0 && up < 2; up++) {
		path[len] = '\0';
		len = strrchr(path, '/') - path;
	}
	if (len <= 0)
		return false;
	(void)snprintf(path + len, size - (size_t)len, "/probes/probe");
	return access(path, X_OK) == 0;
}

int main(void)
{
	char program[4096];

	(void)signal(SIGPIPE, SIG_IGN);
	check_filter("confine", &rv_filter_confine);
	check_filter("kernel", &rv_filter_kernel);
	check_filter("kernel, net", &rv_filter_kernel_net);
	check_confine_answers();
	check_terminal();
	check_rendering();
	if (tap_ok(find_probe(program, sizeof program), "t/probes/probe is built")) {
		check_boundary(&rv_policy_linux, program);
		check_boundary(&rv_policy_landlock, program);
	}
	return tap_end();
}

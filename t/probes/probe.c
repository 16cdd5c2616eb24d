/*
 * Denial probes: one name, one attempt, one line of verdict.  Shared by the tests of rv-confine and of
 * `rv-exec --sandbox kernel`, and by rv-conform.  Static, so that it runs where there is nothing else.
 *
 *     probe [KEY=VALUE...] [NAME...]     run these (all without a name)
 *     probe --list                       the names
 *     probe PATH [KEY=VALUE...] [NAME...]  the same: rv-confine gives a runtime its entry first
 *
 * prints `NAME denied ERRNO`, `NAME killed SIGNAL`, `NAME allowed`, or `NAME unasked` where what it needs was not
 * given.  An attempt is made in a child of its own where one can be forked.  "Allowed" means that the attempt had
 * its effect: each is run without the sandbox first, and one that is not allowed there proves nothing inside.
 *
 * Keys: secret=FILE  a readable file that is not of the sandbox     dir=DIR    a writable directory outside
 *       alias=PATH   the secret by another path                     at=DIR     where writes are tried (dir)
 *       pid=N        a process outside                              port=N     a TCP and UDP port of 127.0.0.1 and ::1
 *       unix=PATH    a listening Unix socket                        abstract=NAME  one in the abstract namespace
 *       snapshot=ELF an executable file of the snapshots            suid=PATH  this program, setuid root
 */
#include "t/probes/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *probe_value[PROBE_KEYS];
pid_t probe_parent;
static const char *const key_names[PROBE_KEYS] = {
	[KEY_SECRET] = "secret", [KEY_DIR] = "dir", [KEY_ALIAS] = "alias", [KEY_AT] = "at", [KEY_PID] = "pid",
	[KEY_PORT] = "port", [KEY_UNIX] = "unix", [KEY_ABSTRACT] = "abstract", [KEY_SNAPSHOT] = "snapshot",
	[KEY_SUID] = "suid",
};

static const struct probe *const tables[] = { probes_files, probes_network, probes_processes, probes_kernel };

#define UNASKED 250 /* no errno has this number */
#define ALARM_S 5   /* an attempt that hangs is none that succeeded */

static int attempt(const struct probe *probe)
{
	int result;

	if (probe->needs != KEY_NONE && probe_value[probe->needs] == NULL)
		return UNASKED;
	errno = 0;
	result = probe->attempt();
	if (result == 0)
		return 0;
	return errno != 0 ? errno : EIO;
}

static void say(const struct probe *probe, const char *verdict, const char *detail)
{
	printf("%s %s%s%s\n", probe->name, verdict, detail[0] != '\0' ? " " : "", detail);
	(void)fflush(stdout);
}

static void say_result(const struct probe *probe, int result)
{
	const char *name = strerrorname_np(result);

	if (result == 0)
		say(probe, "allowed", "");
	else if (result == UNASKED)
		say(probe, "unasked", "");
	else
		say(probe, "denied", name != NULL ? name : "?");
}

static void run(const struct probe *probe)
{
	char text[32];
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		(void)alarm(ALARM_S);
		_exit(attempt(probe));
	}
	if (child < 0) { /* no process may be started: here, then */
		say_result(probe, attempt(probe));
		return;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status)) {
		(void)snprintf(text, sizeof text, "SIG%s", sigabbrev_np(WTERMSIG(status)));
		say(probe, "killed", text);
	} else {
		say_result(probe, WEXITSTATUS(status));
	}
}

static int each(int argc, char **argv, int first, void (*act)(const struct probe *))
{
	int found = 0;

	for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
		for (const struct probe *probe = tables[t]; probe->name != NULL; probe++) {
			bool wanted = first >= argc;

			for (int i = first; i < argc; i++)
				wanted = wanted || strcmp(argv[i], probe->name) == 0;
			if (wanted) {
				act(probe);
				found++;
			}
		}
	}
	return found;
}

static void list(const struct probe *probe)
{
	printf("%s\n", probe->name);
}

static int take_key(const char *word)
{
	for (int i = 1; i < PROBE_KEYS; i++) {
		size_t len = strlen(key_names[i]);

		if (strncmp(word, key_names[i], len) == 0 && word[len] == '=') {
			probe_value[i] = word + len + 1;
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	int first = 1;
	int wanted;

	if (argc > 1 && strcmp(argv[1], PROBE_EXECUTED) == 0) /* an exec of this program worked */
		return argc > 2 && strcmp(argv[2], "euid") == 0 ? (geteuid() == 0 ? 0 : EPERM) : 0;
	if (argc > 1 && strcmp(argv[1], "--list") == 0)
		return each(argc, argv, argc, list) > 0 ? 0 : 5;
	if (argc > 1 && argv[1][0] == '/')
		first++;
	while (first < argc && take_key(argv[first]))
		first++;
	if (probe_value[KEY_AT] == NULL)
		probe_value[KEY_AT] = probe_value[KEY_DIR];
	probe_parent = getppid();
	(void)signal(SIGPIPE, SIG_IGN);
	wanted = argc - first;
	if (each(argc, argv, first, run) >= (wanted > 0 ? wanted : 1))
		return 0;
	(void)fprintf(stderr, "probe: there is no such probe, or no probe at all\n");
	return 2;
}

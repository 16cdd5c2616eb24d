/* executor: the state in which a tool starts, whatever state its executor was started in. */
#include <stdlib.h>
#include <string.h>

#include "lib/conform/ask.h"
#include "lib/conform/suites.h"

/* "KEY VALUE" lines of /proc/self/status that the shell itself reads, so that it is the shell's. */
#define STATUS "while read -r k v; do case $k in SigBlk:|SigIgn:|NoNewPrivs:) echo \"$k$v\";; esac; done </proc/self/status | say"

static const char *ask_status(struct rv_trial *trial, unsigned flags, const struct rv_answer **answer)
{
	const struct rv_ask ask = { .script = STATUS, .flags = flags };
	const struct rv_buffer *said;

	*answer = rv_ask(trial, &ask);
	said = rv_answer_said(trial, *answer);
	return said != NULL ? said->data : NULL;
}

static bool is_zero(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	/* 32 and 33 are libc's own: no program can set them, so they say nothing of the executor */
	return at != NULL && (strtoull(at + strlen(key), NULL, 16) & ~(3ULL << 31)) == 0;
}

static bool run_mask(struct rv_trial *trial)
{
	const struct rv_answer *answer;
	const char *status = ask_status(trial, RV_COMMAND_BAD_SIGNALS, &answer);

	return status != NULL && rv_expect_reply(trial, answer, is_zero(status, "SigBlk:"),
						 "signals are blocked in the tool: %s", status);
}

static bool run_dispositions(struct rv_trial *trial)
{
	const struct rv_answer *answer;
	const char *status = ask_status(trial, RV_COMMAND_BAD_SIGNALS, &answer);

	return status != NULL && rv_expect_reply(trial, answer, is_zero(status, "SigIgn:"),
						 "signals are ignored in the tool: %s", status);
}

static bool run_privileges(struct rv_trial *trial)
{
	const struct rv_answer *answer;
	const char *status = ask_status(trial, 0, &answer);

	return status != NULL && rv_expect_reply(trial, answer, strstr(status, "NoNewPrivs:1") != NULL,
						 "no_new_privs is not set: %s", status);
}

static bool run_descriptors(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "for n in 3 4 5 6 7 8 9 37 120; do if [ -h /proc/self/fd/$n ]; then echo $n; fi; done | say",
		.flags = RV_COMMAND_BAD_DESCRIPTORS,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *said = rv_answer_said(trial, answer);

	return said != NULL && rv_expect_reply(trial, answer, said->len == 0,
					       "descriptors of the executor's caller are open in the tool: %s", said->data);
}

static bool run_session(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "read -r pid comm state parent group session rest </proc/self/stat; echo \"$pid $group $session\" | say",
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *said = rv_answer_said(trial, answer);
	char *end;
	long pid, group, session;

	if (said == NULL)
		return false;
	pid = strtol(said->data, &end, 10);
	group = strtol(end, &end, 10);
	session = strtol(end, &end, 10);
	return rv_expect_reply(trial, answer, pid > 0 && group == pid && session == pid,
			       "the tool's pid, process group and session are %s", said->data);
}

static bool run_umask(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "umask | say", .flags = RV_COMMAND_BAD_UMASK };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *said = rv_answer_said(trial, answer);

	return said != NULL && rv_expect_reply(trial, answer, strtol(said->data, NULL, 8) == 022, "the tool's umask is %s",
					       said->data);
}

const struct rv_check rv_checks_tool[] = {
	{ "signal.mask", "a tool starts with an empty signal mask",
	  "No signal is blocked in the tool, whatever the executor's caller had blocked.",
	  "exec keeps the mask: a tool that inherits a blocked SIGTERM cannot be asked to stop.",
	  "rv-exec(1), The tool", 0, run_mask },
	{ "signal.dispositions", "a tool starts with default dispositions",
	  "No signal is ignored in the tool, whatever the executor's caller ignored.",
	  "exec keeps what is ignored: with SIGPIPE ignored, yes | head never ends.",
	  "rv-exec(1), The tool", 0, run_dispositions },
	{ "privileges.none", "a tool can gain no privileges",
	  "no_new_privs is set.",
	  "A setuid program would leave every bound behind.",
	  "rv-exec(1), The tool", 0, run_privileges },
	{ "descriptor.leak", "a tool has descriptors 0, 1 and 2 alone",
	  "Nothing that the executor or its caller had open is open in the tool.",
	  "A leaked descriptor is a file or a socket that no path rule covers.",
	  "rv-exec(1), The tool", 0, run_descriptors },
	{ "session.own", "a tool leads a session of its own",
	  "Its pid is also its process group and its session.",
	  "In the caller's session it could write to the terminal's input, and get the terminal's signals.",
	  "rv-exec(1), The tool", 0, run_session },
	{ "umask.fixed", "a tool's umask is 022",
	  "The caller's umask does not reach the tool.",
	  "What a tool writes should not depend on who started the executor.",
	  "rv-exec(1), The tool", 0, run_umask },
	{ .id = NULL },
};

/* executor: the workdir, from 0700 to gone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/conform/ask.h"
#include "lib/conform/suites.h"

static bool run_mode(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "stat -c '%a %u %h' . | say", .flags = RV_COMMAND_BAD_UMASK };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *said = rv_answer_said(trial, answer);

	return said != NULL && rv_expect_reply(trial, answer, strncmp(said->data, "700 ", 4) == 0,
					       "the workdir's mode and owner are %s", said->data);
}

static bool run_name(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "pwd | say" };
	const struct rv_answer *answer = rv_ask(trial, &ask);
	const struct rv_buffer *said = rv_answer_said(trial, answer);
	const char *want = rv_trial_printf(trial, "%s/rulvar-exec-probe-", trial->base);

	return said != NULL && want != NULL && rv_expect_reply(trial, answer, strncmp(said->data, want, strlen(want)) == 0,
							       "the workdir is %s, and not %s...", said->data, want);
}

static bool is_gone(struct rv_trial *trial, const struct rv_answer *answer)
{
	return rv_expect_reply(trial, answer, rv_trial_entries(trial->base) == 0, "%d entries are left in the workdirs' base",
			       rv_trial_entries(trial->base));
}

static bool run_failures(struct rv_trial *trial)
{
	static const struct {
		const char *script;
		const char *code;
	} ends[] = {
		{ "inside \"$1\"; : >left; exit 1", "exit" }, { "inside \"$1\"; : >left; echo x", "protocol" }, { "inside \"$1\"; : >left; head -c 1000000 /dev/zero; exec sleep 3600.$2", "output-cap" },
		{ "inside \"$1\"; : >left; exec sleep 3600.$2", "timeout" }, { "inside \"$1\"; : >left; kill -9 $$", "exit" },
	};

	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		const struct rv_ask ask = {
			.script = ends[i].script, .timeout_ms = 700, .grace_ms = 300, .max_output = 65536,
		};
		const struct rv_answer *answer = rv_ask(trial, &ask);

		if (!rv_expect_error(trial, answer, ends[i].code) || !is_gone(trial, answer))
			return false;
	}
	return true;
}

static bool run_forbidden(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "inside \"$1\"; mkdir -p a/b c; : >a/b/f; : >c/f; chmod 0 a/b; chmod 500 c; chmod 0 a; chmod 0 .; " RV_ASK_NONCE,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_nonce(trial, answer) && is_gone(trial, answer);
}

static bool run_deep(struct rv_trial *trial)
{
	const struct rv_ask ask = {
		.script = "inside \"$1\"; d=dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd; "
			  "n=0; while [ $n -lt 90 ]; do mkdir $d && cd ./$d 2>/dev/null || break; n=$((n+1)); done; : >leaf; " RV_ASK_NONCE,
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_nonce(trial, answer) && is_gone(trial, answer);
}

static bool run_links(struct rv_trial *trial)
{
	const char *outside = rv_trial_path(trial, "outside");
	const struct rv_ask ask = {
		.script = "inside \"$1\"; mkdir \"$1/outside\"; : >\"$1/outside/precious\"; ln -s \"$1/outside\" link; "
			  "ln -s \"$1/outside/precious\" f; echo 1",
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_result(trial, answer, "1") && is_gone(trial, answer) &&
	       rv_expect_reply(trial, answer, rv_trial_entries(outside) == 1, "what a link in the workdir pointed at was removed");
}

static bool run_swapped(struct rv_trial *trial)
{
	const char *outside = rv_trial_path(trial, "outside");
	const struct rv_ask ask = {
		.script = "inside \"$1\"; mkdir \"$1/outside\"; : >\"$1/outside/precious\"; w=$(pwd); cd /; rm -rf \"$w\"; ln -s \"$1/outside\" \"$w\"; echo 1",
	};
	const struct rv_answer *answer = rv_ask(trial, &ask);

	return rv_expect_result(trial, answer, "1") &&
	       rv_expect_reply(trial, answer, rv_trial_entries(outside) == 1,
			       "the workdir was swapped for a link, and what that pointed at was removed");
}

static bool run_cwd(struct rv_trial *trial)
{
	const struct rv_ask ask = { .script = "inside \"$1\"; pwd | say" };
	const struct rv_answer *answer = rv_ask(trial, &ask);

	const struct rv_buffer *where = rv_answer_said(trial, answer);

	return where != NULL && rv_expect_reply(trial, answer, strncmp(where->data, trial->base, strlen(trial->base)) == 0 &&
						where->data[strlen(trial->base)] == '/', "the tool runs in %s", where->data);
}

const struct rv_check rv_checks_workdir[] = {
	{ "workdir.mode", "a workdir is for its tool alone",
	  "Its mode is 0700, whatever the caller's umask.",
	  "Other users of the machine would read what a tool works on.",
	  "rv-exec(1), The tool", 0, run_mode },
	{ "workdir.name", "a workdir says whose it is",
	  "It is called rulvar-exec-TOOL-XXXXXX, in its base.",
	  "What a crash leaves behind must be known for what it is.",
	  "rv-exec(1), The tool", 0, run_name },
	{ "workdir.cwd", "a tool starts in its workdir",
	  "The caller's directory is not the tool's.",
	  "A relative path would lead into the host's files.",
	  "rv-exec(1), The tool", 0, run_cwd },
	{ "workdir.failures", "a workdir goes also after a failure",
	  "exit, protocol, output-cap, timeout and a signal leave no workdir.",
	  "A host that fails often would fill its disk.",
	  "rv-exec(1), The tool", 0, run_failures },
	{ "workdir.forbidden", "directories without permissions go, too",
	  "What a tool has made unreadable or unwritable is removed.",
	  "An ordinary user's removal stops at the first of them.",
	  "rv-exec(1), The tool", 0, run_forbidden },
	{ "workdir.deep", "a tree beyond PATH_MAX goes, too",
	  "A tree of 90 directories with names of 100 characters is removed.",
	  "A path that is longer than the kernel takes cannot be named.",
	  "rv-exec(1), The tool", 0, run_deep },
	{ "workdir.links", "removal follows no link",
	  "What links in the workdir point at stays.",
	  "One link to a home directory would end it.",
	  "rv-exec(1), The tool", 0, run_links },
	{ "workdir.swapped", "a workdir that became a link is not followed",
	  "A tool that replaces its own workdir by a link loses the link and not what it points at.",
	  "The name is the tool's to change until it is removed.",
	  "rv-exec(1), The tool", 0, run_swapped },
	{ .id = NULL },
};

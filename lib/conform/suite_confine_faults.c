/* confine: what must hold where something goes wrong between two steps, found by --on-event. */
#include "lib/conform/confined.h"
#include "lib/conform/suites.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define SPIN "echo begun\nwhile :; do :; done\n"
#define REMOVED "namespace={\"durable\":true,\"state\":\"removed\"}", "root="
#define KEPT "namespace.state=\"quarantined\"", "namespace.path=\"{dir}/root" "/slot-0\"", "root=slot-0"

static const struct rv_scene scenes[] = {
	{ .id = "confine.claim",
	  .event = "counted", .hook = "mkdir -m 700 root/slot-0",
	  .options = WORDS("--max-retained", "1"),
	  .status = 3,
	  .expect = WORDS("reason=\"retained-limit\"", "namespace=null", "message~every slot is taken", "root=slot-0") },
	{ .id = "confine.integrity",
	  .event = "materialised", .hook = "chmod u+w $namespace/program/main.sh; echo 'echo bad' >$namespace/program/main.sh",
	  .status = 3,
	  .expect = WORDS("status=\"not-started\"", "reason=\"snapshot-mismatch\"", KEPT) },
	{ .id = "confine.links",
	  .event = "materialised", .hook = "ln $namespace/program/main.sh other",
	  .status = 3,
	  .expect = WORDS("reason=\"snapshot-mismatch\"", KEPT) },
	{ .id = "confine.aborted",
	  .event = "materialised", .hook = "kill -TERM $PPID",
	  .status = 3,
	  .expect = WORDS("status=\"not-started\"", "reason=\"aborted\"", REMOVED) },
	{ .id = "confine.gate",
	  .event = "launched", .hook = "kill -TERM $PPID",
	  .status = 1,
	  .expect = WORDS("status=\"observed\"", "attributable=false", "process.admission=\"absent\"", "process.stopped=\"cancelled\"",
			  "process.killSent=true", "out=", "problems~never ran", REMOVED) },
	{ .id = "confine.cancelled",
	  .script = SPIN,
	  .event = "admitted", .hook = "kill -INT $PPID",
	  .expect = WORDS("status=\"observed\"", "attributable=true", "process.stopped=\"cancelled\"",
			  "process.exit={\"code\":null,\"signal\":\"SIGKILL\"}", REMOVED) },
	{ .id = "confine.swapped",
	  .prepare = "cp /bin/sh rt && cp /bin/cat other",
	  .runtime = "{dir}/rt",
	  .event = "materialised", .hook = "mv other rt",
	  .status = 1,
	  .expect = WORDS("status=\"observed\"", "attributable=false", "process.admission=\"refused\"", "process.exit.code=125", "out=",
			  REMOVED) },
	{ .id = "confine.runtime-changed",
	  .prepare = "cp /bin/sh rt",
	  .runtime = "{dir}/rt",
	  .event = "collected", .hook = "printf x >>rt",
	  .status = 1,
	  .expect = WORDS("attributable=false", "problems=[\"runtime changed during the run\"]", "out=ran\n", REMOVED) },
	{ .id = "confine.slot-changed",
	  .event = "collected", .hook = "touch $namespace/input/more",
	  .status = 1,
	  .expect = WORDS("attributable=false", "problems~namespace changed", "out=ran\n", KEPT) },
	{ .id = "confine.cleanup",
	  .event = "collected", .hook = "ln -s \"$PWD\" $namespace/home/link",
	  .status = 1,
	  .expect = WORDS("attributable=false", KEPT, "file=precious\n") },
	{ .id = "confine.killed",
	  .script = SPIN,
	  .event = "admitted", .hook = "kill -KILL $pid",
	  .expect = WORDS("status=\"observed\"", "process.exit={\"code\":null,\"signal\":\"SIGKILL\"}", "process.killSent=false",
			  "process.stopped=null", REMOVED) },
};

static bool play(struct rv_trial *trial)
{
	return rv_scene_play(trial, scenes, sizeof scenes / sizeof scenes[0]);
}

/* ---- the host itself is killed ---- */

static bool run_alone(struct rv_trial *trial)
{
	const struct rv_scene scene = { .script = "echo begun\nwhile :; do :; done\n", .event = "admitted",
					.hook = "echo x >admitted; kill -KILL $PPID",
					.options = WORDS("--timeout", "60s", "--", trial->nonce) };
	const char *const *words;
	struct rv_command *command;

	if (!rv_scene_set(trial, &scene))
		return false;
	words = rv_scene_words(trial, &scene, NULL);
	command = words != NULL ? rv_trial_adapter(trial, words, RV_SPAN("")) : NULL;
	rv_did(trial, "killed rv-confine with SIGKILL while its program ran");
	return command != NULL &&
	       rv_expect(trial, rv_trial_exists(rv_trial_path(trial, "admitted")), "the program was not admitted") &&
	       rv_expect(trial, rv_trial_all_gone(trial, 8000), "the program outlived rv-confine") &&
	       rv_confined_expect(trial, NULL, "root=slot-0");
}

/* ---- pipes that somebody holds ---- */

static bool run_unresolved(struct rv_trial *trial)
{
	const struct rv_scene scene = {
		.script = SPIN, .event = "admitted", .status = 4,
		/* every pipe that rv-confine reads gets a writer that stays */
		.hook = "(n=3; for f in /proc/$PPID/fd/*; do case ${f##*/} in [012]) continue ;; esac\n"
			"case $(ls -l \"$f\") in lr-x*pipe:*) if [ $n -le 9 ] && true >>\"$f\"; then eval \"exec $n>>$f\"; n=$((n + 1)); fi ;; esac; done\n"
			"echo x >held; exec sleep 20) <&- >&- 2>&- & echo $! >holder\n"
			"i=0; until [ -e held ] || [ $((i += 1)) -gt 100 ]; do sleep 0.02; done\nkill -KILL $pid",
		.expect = WORDS("status=\"unresolved\"", "attributable=null", "process.pipesClosed=false", "problems~pipes", KEPT),
	};
	const char *const *words;
	struct rv_command *command;

	if (!rv_scene_set(trial, &scene))
		return false;
	words = rv_scene_words(trial, &scene, NULL);
	command = words != NULL ? rv_trial_adapter(trial, words, RV_SPAN("")) : NULL;
	rv_did(trial, "held the program's standard output open while it was killed");
	(void)rv_confined_shell(trial, "kill $(cat holder)");
	return command != NULL && rv_expect(trial, rv_trial_exists(rv_trial_path(trial, "held")), "the pipe could not be held") &&
	       rv_scene_expect(trial, &scene, command);
}

/* ---- a host that cannot ---- */

static bool run_unsupported(struct rv_trial *trial)
{
	static const char forbid[] = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"";
	const char *const prefix[] = { "unshare", "--user", "--map-root-user", "/bin/sh", "-c", forbid, "sh" };
	const char *const trial_run[] = { "unshare", "--user", "--map-root-user", "/bin/sh", "-c", forbid, "sh", "true", NULL };
	const struct rv_scene scene = { .status = 3,
					.expect = WORDS("status=\"not-started\"", "reason=\"unsupported-host\"", "namespace=null", "root=") };
	struct rv_command_plan plan = { .argv = trial_run };
	const char *const *words;
	const char **argv;
	size_t n = 0;

	if (rv_trial_status(rv_trial_run(trial, &plan)) != 0)
		return rv_skip(trial, "this host does not let a user namespace forbid further ones");
	if (!rv_scene_set(trial, &scene))
		return false;
	words = rv_scene_words(trial, &scene, NULL);
	argv = rv_trial_alloc(trial, 128 * sizeof *argv);
	if (words == NULL || argv == NULL)
		return false;
	for (size_t i = 0; i < sizeof prefix / sizeof prefix[0]; i++)
		argv[n++] = prefix[i];
	for (size_t i = 0; trial->adapter[i] != NULL && n < 64; i++)
		argv[n++] = trial->adapter[i];
	for (size_t i = 0; words[i] != NULL && n < 127; i++)
		argv[n++] = words[i];
	plan.argv = argv;
	rv_did(trial, "ran ADAPTER --confine where user namespaces are forbidden");
	return rv_scene_expect(trial, &scene, rv_trial_run(trial, &plan));
}

#define CLAUSE(section) "rv-confine(1), " section

const struct rv_check rv_checks_confine_faults[] = {
	{ "confine.claim", "a slot that is claimed after the count refuses the run", "Slots are claimed exclusively, and one that is taken is left as it is.", "Two controllers would run in one slot.", CLAUSE("--max-retained"), RV_CAN_CONFINE, play },
	{ "confine.integrity", "a snapshot that changed before the launch starts nothing", "A slot is verified before the launch, and one with other content is kept and never run.", "What runs would not be what was pinned.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.links", "a second link to a snapshot's file starts nothing", "A file of a slot has one link, or the run is a snapshot-mismatch.", "Somebody could change the program through the other name while it runs.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.aborted", "a cancellation before the launch is aborted", "Cancelled before there is a process, a run is not started, and its slot is removed.", "A cancelled run would leave its slot.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.gate", "a cancellation between spawn and go byte runs nothing", "The program is let go only if nobody has cancelled at that moment.", "A program would run after it was told not to.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.cancelled", "a cancellation while it runs is a fact", "A cancelled program is killed, the stop reason is cancelled, and the run stays attributable.", "An abort would look like a crash of the program.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.swapped", "a runtime that is swapped before the launch is not executed", "Another file at the runtime's path is refused behind the boundary.", "What was hashed would not be what runs.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.runtime-changed", "a runtime that changed during the run takes the attribution", "The runtime is verified again after the run.", "Output of unknown code would be credited to a pin.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.slot-changed", "a slot that changed during the run takes the attribution", "The slot is verified again after the run, and is kept where it changed.", "Output from unknown input would be credited to a pin.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.cleanup", "nothing is removed that was not made", "The removal stops at the first surprise and follows no link.", "A link in a slot would take away what it points at.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.killed", "a program killed from outside is reported so", "Its signal is the exit, and no kill is claimed that was not sent.", "An operator would look for a deadline that never passed.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.alone", "SIGKILL of rv-confine takes the program along", "Nothing behind the boundary outlives what supervises it, and its slot stays claimed.", "A program without a bound would run on.", CLAUSE("What is not promised"), RV_CAN_CONFINE, run_alone },
	{ "confine.unresolved", "pipes that stay open are unresolved", "Where the program's pipes are still open the answer is unresolved within the grace, and the slot is kept.", "What may still run would be taken for gone.", CLAUSE("Results"), RV_CAN_CONFINE, run_unresolved },
	{ "confine.unsupported", "a host that cannot is unsupported-host", "Where the boundary cannot be had nothing is started in place of it, and nothing is made.", "A program would run without the boundary that was asked for.", CLAUSE("--probe"), RV_CAN_CONFINE, run_unsupported },
	{ .id = NULL },
};

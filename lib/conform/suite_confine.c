/* confine: one program behind the boundary, and its result, by ADAPTER --confine. */
#include "lib/conform/confined.h"
#include "lib/conform/suites.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define SPIN "echo begun\nwhile :; do :; done\n"
#define REMOVED "namespace={\"durable\":true,\"state\":\"removed\"}", "root="
#define ATTRIBUTED "status=\"observed\"", "attributable=true", "problems=[]", "process.admission=\"admitted\"", REMOVED

static const struct rv_scene scenes[] = {
	{ .id = "confine.run",
	  .script = "read -r l </input/data\necho \"$l\"\necho problem >&2\n",
	  .expect = WORDS(ATTRIBUTED, "out=data\n", "process.stderrBase64=\"cHJvYmxlbQo=\"", "process.exit={\"code\":0,\"signal\":null}",
			  "process.pipesClosed=true", "process.stopped=null", "process.killSent=false", "process.outputBytes=13") },
	{ .id = "confine.profile",
	  .options = WORDS("--profile", "landlock/1"),
	  .expect = WORDS("identities.profile.name=\"landlock/1\"", ATTRIBUTED, "out=ran\n") },
	{ .id = "confine.failure",
	  .script = "echo before\nexit 3\n",
	  .expect = WORDS(ATTRIBUTED, "process.exit={\"code\":3,\"signal\":null}", "out=before\n") },
	{ .id = "confine.authority",
	  .script = "printf 'sf-confined/1 refused\\nexec 13\\n'\nprintf 'sf-confined/1 refused\\n' >&2\nexit 125\n",
	  .expect = WORDS(ATTRIBUTED, "process.exit={\"code\":125,\"signal\":null}", "out=sf-confined/1 refused\nexec 13\n") },
	{ .id = "confine.limits",
	  .script = "ulimit -t\nulimit -n\nulimit -c\nulimit -f\nif ulimit -n 64; then echo raised; fi\n",
	  .options = WORDS("--cpu-seconds", "7", "--max-descriptors", "33", "--max-data", "512MiB"),
	  .expect = WORDS("process.limits={\"coreBlocks\":{\"hard\":0,\"soft\":0},\"cpuSeconds\":{\"hard\":7,\"soft\":7},"
			  "\"dataBytes\":{\"hard\":536870912,\"soft\":536870912},\"descriptors\":{\"hard\":33,\"soft\":33},"
			  "\"fileBlocks\":{\"hard\":0,\"soft\":0}}", "identities.bounds.cpuSeconds=7", "out=7\n33\n0\n0\n") },
	{ .id = "confine.timeout",
	  .script = SPIN,
	  .options = WORDS("--timeout", "400ms"),
	  .expect = WORDS(ATTRIBUTED, "process.stopped=\"timeout\"", "process.killSent=true",
			  "process.exit={\"code\":null,\"signal\":\"SIGKILL\"}") },
	{ .id = "confine.output",
	  .script = "printf 12345\nprintf 67890 >&2\n",
	  .options = WORDS("--max-output", "10"),
	  .expect = WORDS(ATTRIBUTED, "process.stopped=null", "process.outputBytes=10", "out=12345",
			  "process.stderrBase64=\"Njc4OTA=\"") },
	{ .id = "confine.flood",
	  .script = "while :; do echo 0123456789; done\n",
	  .options = WORDS("--max-output", "1000"),
	  .expect = WORDS(ATTRIBUTED, "process.stopped=\"output-limit\"", "outlen=1000") },
	{ .id = "confine.memory",
	  .script = "x=0123456789abcdef\nwhile :; do x=$x$x; done\n",
	  .options = WORDS("--max-memory", "32MiB", "--timeout", "20s"),
	  .expect = WORDS("process.stopped=\"memory-limit\"", "identities.bounds.maxMemoryBytes=33554432", ATTRIBUTED) },
	{ .id = "confine.isolation",
	  .script = "echo \"$HOME $TMPDIR $TZ $LC_ALL $OPENSSL_CONF ${SHELL-none} ${USER-none} $*\"\npwd\nread -r l || echo eof\n",
	  .options = WORDS("--", "an argument"),
	  .expect = WORDS("out=/home /home UTC C /nonexistent/openssl.cnf none none an argument\n/input\neof\n", ATTRIBUTED) },
	{ .id = "confine.descriptors",
	  .script = "for n in 0 1 2 3 4 5 6 7 8 9; do if eval \"true >&$n\"; then echo \"open $n\"; fi; done\n",
	  .expect = WORDS(ATTRIBUTED, "out=open 0\nopen 1\nopen 2\n") },
	{ .id = "confine.writes",
	  .script = "for f in /home/x /tmp/x /input/x /program/x /x /program/main.sh /input/data /dev/shm/x; do\n"
		    "if echo x >\"$f\"; then echo \"wrote $f\"; fi; done\necho end\n",
	  .expect = WORDS(ATTRIBUTED, "out=end\n") },
	{ .id = "confine.reads",
	  .script = "for f in \"$1\" /etc/passwd /proc/self/status /etc/hostname; do if read -r l <\"$f\"; then echo \"read $f\"; fi; done\n"
		    "for d in /etc /proc /root /home/.. \"${1%/*}\"; do if [ \"$d\" != /home/.. ] && cd \"$d\"; then echo \"in $d\"; fi; done\n"
		    "echo end\n",
	  .options = WORDS("--", "{dir}/file"),
	  .expect = WORDS(ATTRIBUTED, "out=end\n") },
	{ .id = "confine.signals",
	  .script = "if kill -0 1; then echo signalled; fi\nif kill -0 -1; then echo all; fi\necho end\n",
	  .expect = WORDS(ATTRIBUTED, "out=end\n") },
	{ .id = "confine.fork",
	  .script = "echo begun\n(echo forked)\necho child &\nwait\n",
	  .expect = WORDS(ATTRIBUTED, "out=begun\n") },
	{ .id = "confine.exec",
	  .script = "echo begun\nexec /bin/sh -c 'echo again'\n",
	  .expect = WORDS(ATTRIBUTED, "out=begun\n") },
	{ .id = "confine.root",
	  .prepare = "chmod 750 root",
	  .status = 3,
	  .expect = WORDS("status=\"not-started\"", "reason=\"setup-failed\"", "namespace=null", "root=") },
	{ .id = "confine.retained",
	  .prepare = "echo >root/foreign",
	  .options = WORDS("--max-retained", "1"),
	  .status = 3,
	  .expect = WORDS("status=\"not-started\"", "reason=\"retained-limit\"", "namespace=null", "root=foreign") },
	{ .id = "confine.runtime",
	  .prepare = "printf '#!/bin/sh\\n' >rt && chmod 755 rt",
	  .runtime = "{dir}/rt",
	  .status = 3,
	  .expect = WORDS("status=\"not-started\"", "reason=\"runtime-mismatch\"", "namespace=null", "root=") },
	{ .id = "confine.receipt",
	  .prepare = "z=sha256:0000000000000000000000000000000000000000000000000000000000000000\n"
		     "printf '{\"kind\":\"rv-conform-receipt\",\"counts\":{\"failed\":0},\"runtimes\":[\"%s\"],\"profiles\":[\"%s\"]}' $z $z >receipt",
	  .options = WORDS("--receipt", "{dir}/receipt"),
	  .status = 3,
	  .expect = WORDS("status=\"not-started\"", "reason~-mismatch", "namespace=null", "message~receipt", "root=") },
};

static bool play(struct rv_trial *trial)
{
	return rv_scene_play(trial, scenes, sizeof scenes / sizeof scenes[0]);
}

#define CLAUSE(section) "rv-confine(1), " section

const struct rv_check rv_checks_confine[] = {
	{ "confine.run", "a program runs on its snapshots and is reported whole", "An admitted program reads its input, and its output, its exit and what became of its slot are in the result.", "Without it nothing else that is said of a run means anything.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.profile", "a profile is taken by its name alone", "A run has the profile that was asked for, and its result names it.", "A weaker boundary in place of the one that was asked for is a breach that nobody sees.", CLAUSE("--profile"), RV_CAN_CONFINE, play },
	{ "confine.failure", "a program's own failure is an attributable observation", "An exit that is not 0 changes neither the status nor the attribution.", "A verdict mixed into an observation cannot be taken out of it again.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.authority", "output has no authority", "Control text on the program's own streams and exit 125 change neither the admission nor the limits.", "A program that can forge its admission can forge everything.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.limits", "limits are measured, exactly those of the request, and cannot be raised", "What the result has are the values that the program itself sees.", "A limit that was set and not measured may not be there.", CLAUSE("Results"), RV_CAN_CONFINE, play },
	{ "confine.timeout", "the deadline kills, and is a fact", "A program that outlives its time is killed, the stop reason is timeout, and the run stays attributable.", "A program without an end holds its slot for ever.", CLAUSE("--timeout"), RV_CAN_CONFINE, play },
	{ "confine.output", "exactly the bound of output is no overflow", "Output of both streams together up to the bound is kept whole.", "A bound that is off by one loses a byte that somebody signed.", CLAUSE("--max-output"), RV_CAN_CONFINE, play },
	{ "confine.flood", "a flood is stopped, and what is kept is the bound", "More output than the bound stops the program with output-limit, and as many bytes as the bound are kept.", "A flood that is kept fills the memory of the host.", CLAUSE("--max-output"), RV_CAN_CONFINE, play },
	{ "confine.memory", "more memory than the bound stops the program", "A program that holds more than maxMemoryBytes is stopped with memory-limit.", "One program takes the machine from all others.", CLAUSE("--max-memory"), RV_CAN_CONFINE, play },
	{ "confine.isolation", "exactly five variables, the input as working directory, no standard input", "Nothing of the caller's environment or standard input reaches the program.", "What a program saw would depend on who called it.", "rv-confine-profile(7), Inside", RV_CAN_CONFINE, play },
	{ "confine.descriptors", "a program has descriptors 0, 1 and 2", "No other descriptor is open in it, and the record's is not.", "An inherited descriptor is a door through every wall.", "rv-confine-profile(7), Inside", RV_CAN_CONFINE, play },
	{ "confine.writes", "nothing can be written anywhere", "Neither the snapshots nor home, tmp or the root take a write.", "A program that leaves something behind is not stateless.", "rv-confine-profile(7), What is denied", RV_CAN_CONFINE, play },
	{ "confine.reads", "nothing outside the snapshots can be read or entered", "A file of the host that is neither snapshot nor runtime cannot be opened.", "Secrets of the host leave with the output.", "rv-confine-profile(7), What is denied", RV_CAN_CONFINE, play },
	{ "confine.signals", "no other process can be signalled", "A signal to another process is refused.", "A program could end what supervises it.", "rv-confine-profile(7), What is denied", RV_CAN_CONFINE, play },
	{ "confine.fork", "no other process can be made", "A fork is refused.", "What is reaped would not be all there was.", "rv-confine-profile(7), What is denied", RV_CAN_CONFINE, play },
	{ "confine.exec", "no other program can be executed", "An exec behind the first is refused.", "What was verified would not be what runs.", "rv-confine-profile(7), What is denied", RV_CAN_CONFINE, play },
	{ "confine.root", "a root that others can enter is refused", "A root that is not private is setup-failed, and nothing is made in it.", "Somebody else could change a slot.", CLAUSE("--root"), RV_CAN_CONFINE, play },
	{ "confine.retained", "foreign and leftover entries count", "A root with as many names as slots is retained-limit, and nothing is reclaimed.", "What an unresolved run left would be taken for free.", CLAUSE("--max-retained"), RV_CAN_CONFINE, play },
	{ "confine.runtime", "a runtime that cannot be verified starts nothing", "What is no ELF program of this host is runtime-mismatch before anything is made.", "What runs would be decided by what a file says of itself.", CLAUSE("--runtime"), RV_CAN_CONFINE, play },
	{ "confine.receipt", "with a receipt only what it names runs", "A runtime or a profile that the receipt does not name is a mismatch.", "Unproven boundaries would pass for proven ones.", CLAUSE("--receipt"), RV_CAN_CONFINE, play },
	{ .id = NULL },
};
